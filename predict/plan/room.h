/* predict/plan/room.h: whether a plan takes a configuration, by the memory that it needs.
 *
 * Every search below predict/plan/ asks here, so that there is one criterion. It must be monotone: if a configuration
 * is not taken, neither is one that is otherwise the same and needs more memory. */
#ifndef PREDICT_PLAN_ROOM_H
#define PREDICT_PLAN_ROOM_H

#include "predict/setup/setup.h"
#include "predict/verdict.h"

/* True if the configuration with this verdict fits with the probability that the setup asks for. */
bool room_fits(const struct setup *setup, const struct verdict *verdict);

/* room_lacks_memory() returns true if a memory that is larger by `share` would be too small for the bytes of a verdict,
 * or would suffice with a probability below `odds`. The verdict may be that of a bound, or of another schedule of the
 * same choices. The bytes include the allocator's cache; the probability leaves it out, since a step can do without it.
 * If odds are at most 0.5, only the bytes decide. room_lacks() checks both memories. */
bool room_lacks_memory(enum prediction_limit limit, const struct setup *setup,
                       const struct choices *choices, const struct verdict *verdict, double share,
                       double odds);
bool room_lacks(const struct setup *setup, const struct choices *choices,
                const struct verdict *verdict, double share, double odds);

/* Returns the probability that both memories suffice for the bytes of a verdict, without an allocator's cache. */
double room_fits_probability(const struct setup *setup, const struct choices *choices,
                             const struct verdict *verdict);

/* Does what room_lacks() does, without a schedule, by the bytes that a request needs at least by closed forms
 * (predict/bounds.h). Sets *verdict to these bytes and to the probability that memory has them. Returns false if the
 * request is refused. */
bool room_bound_lacks(struct verdict *verdict, const struct setup *setup,
                      const struct request *request, double odds);

#endif
