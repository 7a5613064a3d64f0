/* predict/plan/room.h: whether a plan takes a configuration, by the memory that it needs.
 *
 * Every search below predict/plan/ asks here, so that there is one criterion. It must be monotone: what needs more
 * memory than another configuration, and is otherwise the same, is not taken where that one is not. */
#ifndef PREDICT_PLAN_ROOM_H
#define PREDICT_PLAN_ROOM_H

#include "predict/setup/setup.h"
#include "predict/verdict.h"

/* True if a plan takes a configuration with this verdict: it fits with the probability that the setup asks for. */
bool room_fits(const struct setup *setup, const struct verdict *verdict);

/* Fills *verdict with the bytes that a request needs at least by closed forms (predict/bounds.h), without a schedule.
 * Returns false if the request is refused. */
bool room_bound(struct verdict *verdict, const struct setup *setup, const struct request *request);

/* True if a memory is exceeded by more than that share of it. */
bool room_lacks(const struct verdict *verdict, double share);

#endif
