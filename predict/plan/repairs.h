/* predict/plan/repairs.h: the repairs of a configuration, by which a search changes one that does not fit in memory: it
 * computes the loss and the feed-forward part in more pieces, and moves the optimizer to the host. The configuration
 * without any change counts as one of its repairs, too. */
#ifndef PREDICT_PLAN_REPAIRS_H
#define PREDICT_PLAN_REPAIRS_H

#include "predict/plan/space.h"

/* A configuration, and which of its repairs have been tried. */
struct repairs {
    const struct request *given_request; /* the user's request: options that it sets stay */
    const struct space_open *open;
    struct request unrepaired_request; /* the configuration without any repair */
    /* the pieces of the unrepaired configuration; 0 if that is refused */
    int64_t loss_chunks, ffn_chunks;
    size_t next_row;           /* the row of the table to try next */
    bool has_tried_any_repair; /* some row has been tried */
    /* the configuration with the repair of the last row that was tried */
    struct request last_repaired_request;
};

/* Makes the repairs of the configuration `asked`, none of which has been tried. given and open must outlive the
 * result. */
struct repairs repairs_make(const struct request *given, const struct space_open *open,
                            const struct request *asked);

/* Sets *request to the configuration with its next repair; one that changes nothing from the repair before it is left
 * out. Repairs come in the order of the time that a step takes with them, the shortest first: fewer pieces before more,
 * and the optimizer on the device before that on the host. So the first one is the unchanged configuration or, where
 * that has more pieces than it needs, as with FPDT, one with fewer. Returns false after the last. */
bool repairs_apply_next(struct request *request, struct repairs *repairs);

/* Sets *request to the configuration with the last repair that the user's options allow, which needs the least GPU
 * memory. Returns false if none is allowed. */
bool repairs_apply_last(struct request *request, const struct repairs *repairs);

#endif
