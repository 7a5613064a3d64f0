/* predict/setup/resolved.h: a request with every choice made: those that the user left open, and those that only a
 * model and the costs of a cluster decide. The latter are the length of each subsequence, the bytes that can be
 * offloaded while it is computed, and the subsequences that stages share. */
#ifndef PREDICT_SETUP_RESOLVED_H
#define PREDICT_SETUP_RESOLVED_H

#include "predict/setup/setup.h"
#include "predict/setup/shared_units.h"

#include <stdbool.h>

/* The struct holds pointers into itself, so it must not be copied. All-zero is empty. */
struct resolved {
    /* a copy of the request, with lengths, offload bytes and shared units filled in */
    struct request request;
    struct choices choices; /* the choices that follow from `request`; they borrow from it */
    /* on the heap: tokens of each subsequence; NULL: the request came with them, asks for equal lengths, or has no
     * subsequences */
    int64_t *subsequence_tokens;
    /* on the heap: request.offload_hidden_bytes_by_subsequence; NULL: the request came with its own, or has none */
    double *offload_hidden_bytes;
    /* the ranking of shared units; request.shared_units points to the element in use, which is the first until
     * resolved_use_ranked_shared_units() takes another. Empty if the request came with its own, or if the pipeline
     * shares none */
    struct shared_units_worth_trying shared_units_worth_trying;
};

/* Returns whether the model or costs decide a part of the request. */
bool resolved_needs_costs(const struct request *request);

/* Copies the request and makes all of its choices. What it leaves open is decided by the model and the costs of *setup.
 * note may be NULL. The caller releases *resolved in either case. */
enum status resolved_make(struct resolved *resolved, const struct setup *setup,
                          const struct request *request, struct diag *note, struct diag *diag);
void resolved_release(struct resolved *resolved);

/* Shares units as number `rank` of the ranking does. A higher number is slower and needs less memory. */
enum status resolved_use_ranked_shared_units(struct resolved *resolved, uint32_t rank,
                                             struct diag *diag);

#endif
