/* predict/setup/resolved.h: a request with every choice made: what the user left open, and what only a model and a
 * cluster's costs decide, which is how long each subsequence is, how many bytes can be offloaded while it is computed,
 * and which subsequences stages share. */
#ifndef PREDICT_SETUP_RESOLVED_H
#define PREDICT_SETUP_RESOLVED_H

#include "predict/setup/setup.h"
#include "predict/setup/shared_units.h"

#include <stdbool.h>

/* It holds pointers into itself: it must not be copied. All-zero is empty. */
struct resolved {
    struct request request; /* as asked, with lengths, offload bytes and shared units filled in */
    struct choices choices; /* that follow from it, and borrow from it */
    int64_t
        *lengths;   /* heap: tokens of each subsequence; NULL: the request has them, or has none */
    double *hidden; /* heap: request.offload_hidden_of; NULL: the same */
    struct shared_ranking shared; /* request.shared is its first; none where the request has it */
};

/* True if costs decide a part of the request. */
bool resolved_needs_costs(const struct request *request);

/* Copies the request and makes all of its choices, by the costs of *setup where the request leaves them open. note may
 * be NULL. *resolved needs a release in either case. */
enum status resolved_make(struct resolved *resolved, const struct setup *setup,
                          const struct request *request, struct diag *note, struct diag *diag);
void resolved_release(struct resolved *resolved);

/* Makes the stages share as the ranking's choice number `rank` says: a slower one that needs less memory. */
enum status resolved_share(struct resolved *resolved, uint32_t rank, struct diag *diag);

#endif
