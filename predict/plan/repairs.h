/* predict/plan/repairs.h: what a search changes of a configuration that does not fit in memory, its repairs: the loss
 * and the feed-forward part are computed in more pieces, and the optimizer moves to the host. */
#ifndef PREDICT_PLAN_REPAIRS_H
#define PREDICT_PLAN_REPAIRS_H

#include "predict/plan/space.h"

/* A configuration and the repairs that have been tried. */
struct repairs {
    const struct request *given_request; /* the user's: what it sets is not changed */
    const struct space_open *open;
    struct request unrepaired_request; /* the configuration without any repair */
    /* the pieces of the unrepaired configuration; 0 if that is refused */
    int64_t loss_chunks, ffn_chunks;
    size_t next_row;             /* the row of the table to try next */
    bool has_tried;              /* a row has been tried */
    struct request last_request; /* the configuration with that row's repair */
};

/* Makes the repairs of the configuration `asked`, none of which has been tried. given and open must outlive the
 * result. */
struct repairs repairs_make(const struct request *given, const struct space_open *open,
                            const struct request *asked);

/* Sets *request to the configuration with the next repair that makes a difference; the first one is usually without any
 * repair. They come in the order of the time that a step takes: fewest pieces first, and host memory only if the GPU's
 * memory does not suffice. Returns false after the last. */
bool repairs_next(struct request *request, struct repairs *repairs);

/* Sets *request to the configuration with the last repair that the user's options allow, which needs the least GPU
 * memory. Returns false if none is allowed. */
bool repairs_last(struct request *request, const struct repairs *repairs);

#endif
