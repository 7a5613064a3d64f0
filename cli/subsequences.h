/* cli/subsequences.h: what of subsequences follows from a model and a cluster's costs: how long each
 * is, and how much of what it keeps its computation hides. */
#ifndef CLI_SUBSEQUENCES_H
#define CLI_SUBSEQUENCES_H

#include "cli/setup.h"

/* A request whose lengths and hidden bytes are made, if it asks for any. */
struct filled_request {
    struct request request;
    int64_t *length; /* heap */
    double *hidden;  /* heap: request.offload_hidden_of */
};

/* Makes them by setup's costs; what is given stays. *filled needs a release in either case. */
enum status subsequences_fill(struct filled_request *filled, const struct setup *setup,
                              const struct request *request, struct diag *diag);
void filled_request_release(struct filled_request *filled);

/* How strategy sppo cuts a sequence and what it offloads, where the user left that open. */
void subsequences_open(struct request *request, const struct setup *setup);

#endif
