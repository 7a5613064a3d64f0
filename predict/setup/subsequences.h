/* predict/setup/subsequences.h: derives from a model and a cluster's costs how long each subsequence is, how many
 * bytes can be offloaded while it is computed, and which subsequences stages share. */
#ifndef PREDICT_SETUP_SUBSEQUENCES_H
#define PREDICT_SETUP_SUBSEQUENCES_H

#include "predict/setup/setup.h"
#include "predict/setup/shared_units.h"

/* A request with its lengths, offload bytes and shared units filled in, if it needs any. It holds a pointer into
 * itself: it must not be copied. */
struct filled_request {
    struct request request;
    int64_t *length; /* heap */
    double *hidden;  /* heap: request.offload_hidden_of */
    struct shared_ranking
        shared; /* request.shared is its first; none where they were not asked for */
};

/* Copies the request and fills in the lengths, offload bytes and shared units that it leaves open, by the costs of
 * *setup. *filled needs a release in either case. */
enum status subsequences_fill(struct filled_request *filled, const struct setup *setup,
                              const struct request *request, struct diag *diag);
void filled_request_release(struct filled_request *filled);

/* Marks as open how strategy sppo cuts a sequence and what it offloads, unless the user has chosen it. */
void subsequences_open(struct request *request, const struct setup *setup);

#endif
