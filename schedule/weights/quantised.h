/* schedule/weights/quantised.h: the buffers of quantised weights (--primary-weights), and how a rank's part of a bundle
 * is quantised. Private to schedule/weights/. */
#ifndef SCHEDULE_QUANTISED_H
#define SCHEDULE_QUANTISED_H

#include "schedule/emit/emit.h"

/* Returns the number of a rank's experts in a bundle, each of which has a scale of its own. If ep is 1, every bundle of
 * a model with experts is taken to have them. Returns 0 if the bundle has no experts, or if a scale is not that of a
 * whole tensor. */
int64_t quantised_expert_scales(const struct emit *e, uint32_t bundle);
/* Returns the work that quantises a rank's part of a bundle, or all of it where there are no parts. */
struct work quantised_part(const struct emit *e, uint32_t bundle);
/* Return how many scales, and how many elements of the quantised dtype, the work writes. An element of e2m1x2 is two
 * numbers. */
int64_t quantised_scales(const struct work *work);
int64_t quantised_numbers(const struct emit *e, const struct work *work);
/* Makes the persistent buffers of a bundle's quantised weights and of their scales. */
void quantised_make_buffers(struct emit *e, uint32_t bundle);
/* Makes two buffers for sharded parameters that are gathered in 8 bits: the one that products name until the shards are
 * gathered (shard.c), and the persistent one of the scales. */
void quantised_make_sharded_buffers(struct emit *e, uint32_t bundle);
/* Emits the cast of this rank's part of a bundle's masters, and returns a view of the quantised part, in a new buffer.
 * largest: the largest element on which ranks agreed; empty: they did not. *scales: where the scales are written; if it
 * is empty, it is set to a new buffer of them. */
struct view quantised_emit_part(struct emit *e, uint32_t bundle, struct view largest,
                                struct view *scales);

#endif
