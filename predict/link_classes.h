/* predict/link_classes.h: the classes of links that a schedule uses (within a node, between nodes and the like), and
 * which of them were measured on the machine. */
#ifndef PREDICT_LINK_CLASSES_H
#define PREDICT_LINK_CLASSES_H

#include "models/cluster.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stddef.h>

enum { LINK_CLASSES_MAX = 10 };

struct link_class {
    const char *name; /* a name for texts: "copies to a device" */
    bool is_measured; /* cluster_fact_is_measured() of the number that sets its rate */
    /* the source of the number that sets its rate, or "the device's costs" if the cluster file does not give it */
    const char *source;
};

/* Lists the classes of links that ops of the schedule use on this cluster. Returns their number; 0 on ideal
 * hardware. */
size_t link_classes_list(struct link_class class[LINK_CLASSES_MAX], const struct ir *ir,
                         const struct cluster *cluster);

#endif
