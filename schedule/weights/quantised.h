/* schedule/weights/quantised.h: the buffers of quantised weights (--primary-weights), and how a rank's part of a bundle
 * is quantised. Private to schedule/weights/. */
#ifndef SCHEDULE_QUANTISED_H
#define SCHEDULE_QUANTISED_H

#include "schedule/emit/emit.h"

/* If a tensor has one scale, returns the number of experts in a bundle, each of which has a scale of its own; 0 if it
 * has no experts. */
int64_t quantised_expert_scales(const struct emit *e, uint32_t bundle);
/* Returns the work that quantises a rank's part of a bundle, or all of it where there are no parts. */
struct work quantised_part(const struct emit *e, uint32_t bundle);
/* Returns how many scales, and how many numbers of the quantised dtype, that work writes. */
int64_t quantised_scales(const struct work *work);
int64_t quantised_numbers(const struct emit *e, const struct work *work);
/* Makes the persistent buffers of a bundle's quantised weights and of their scales. */
void quantised_make_buffers(struct emit *e, uint32_t bundle);
/* Makes the buffers of sharded parameters that are gathered in 8 bits: what products name until the shards are gathered
 * (shard.c), the scale, and 16-bit parameters without memory, of which norms and biases are read. */
void quantised_make_sharded_buffers(struct emit *e, uint32_t bundle);
/* Emits the cast of a rank's part of a bundle's masters. Returns the part; *scales: set to a new buffer of its scales
 * if it is empty, else where they are written. */
struct view quantised_emit_part(struct emit *e, uint32_t bundle, struct view largest,
                                struct view *scales);

#endif
