/* predict/plan/room.h: decides whether a configuration fits, or cannot fit, in the memory that there is.
 *
 * Every search below predict/plan/ asks here, so that there is one criterion. It must be monotone: if a configuration
 * does not fit, neither does one that is otherwise the same and needs more memory. */
#ifndef PREDICT_PLAN_ROOM_H
#define PREDICT_PLAN_ROOM_H

#include "predict/setup/setup.h"
#include "predict/verdict.h"

/* True if the configuration with this verdict fits with the probability that the setup asks for. */
bool room_fits_asked_probability(const struct setup *setup, const struct verdict *verdict);

/* room_lacks_memory() returns true if the memory `limit`, even if it were larger by `share`, is too small for the bytes
 * of a verdict, or suffices with a probability below `odds`. With odds of at most 0.5 only the bytes decide. They
 * include the allocator's cache; the probability leaves it out, since a step can do without it. The verdict may be that
 * of a bound, or of another schedule of the same choices. room_surely_lacks_memory() returns true if it does so for
 * either memory, the device's or the host's. */
bool room_lacks_memory(enum limiting_memory_kind limit, const struct setup *setup,
                       const struct choices *choices, const struct verdict *verdict, double share,
                       double odds);
bool room_surely_lacks_memory(const struct setup *setup, const struct choices *choices,
                              const struct verdict *verdict, double share, double odds);

/* Returns the probability that both memories suffice for the bytes of a verdict, without an allocator's cache. */
double room_fits_probability(const struct setup *setup, const struct choices *choices,
                             const struct verdict *verdict);

/* Does what room_surely_lacks_memory() does with `share` 0, without a schedule, for the bytes that a request needs at
 * least by closed forms (predict/bounds.h). Sets *verdict to these bytes and, if it returns true, to the probability
 * that the memories suffice for them. Returns false if the request is refused. */
bool room_bound_lacks_memory(struct verdict *verdict, const struct setup *setup,
                             const struct request *request, double odds);

#endif
