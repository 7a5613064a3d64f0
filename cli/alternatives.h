/* cli/alternatives.h: the next option worth trying: neighbours of a request, predicted.
 *
 * Where a request fits, every option of a short table is tried alone and the fastest that fits is
 * named. Where it does not, options are added one by one, each time the one that lowers the need
 * most, until it fits. */
#ifndef CLI_ALTERNATIVES_H
#define CLI_ALTERNATIVES_H

#include "base/diag.h"
#include "cli/prediction.h"

#include <stdbool.h>
#include <stddef.h>

struct alternative {
    char options[160];      /* "--zero 3 --checkpoint offload"; "": none is better */
    struct verdict verdict; /* of it */
    double step_s;          /* 0: not simulated */
    size_t tried;           /* options looked at */
    double ideal_step_s;    /* the request itself with profile ideal; 0: not known */
};

/* base was made from request, and simulated. */
enum status alternatives_find(struct alternative *best, const struct prediction *base,
                              const struct request *request, bool exact, struct diag *diag);

#endif
