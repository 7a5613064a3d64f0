/* schedule/weights/quantised.h: the buffers of quantised weights (--primary-weights), and how a rank's part of a bundle
 * is quantised. Private to schedule/weights/. */
#ifndef SCHEDULE_QUANTISED_H
#define SCHEDULE_QUANTISED_H

#include "schedule/emit/emit.h"

/* Returns the number of experts of a rank in a bundle, if each of them has a scale of its own: the recipe's scales are
 * those of whole tensors. If ep is 1, every bundle of a model with experts is taken to have all experts. Returns 0 if
 * the bundle has no experts, or with other scales. */
int64_t quantised_expert_scale_count(const struct emit *e, uint32_t bundle);
/* Returns the work that quantises this rank's part of a bundle; all of the bundle if each rank updates all of it. */
struct work quantised_work_of_own_part(const struct emit *e, uint32_t bundle);
/* quantised_scale_count() returns the number of scales that the work writes, quantised_element_count() the number of
 * elements of the quantised dtype. One element of e2m1x2 holds two numbers. */
int64_t quantised_scale_count(const struct work *work);
int64_t quantised_element_count(const struct emit *e, const struct work *work);
/* Makes the persistent buffers of a bundle's quantised weights and of their scales. */
void quantised_make_buffers(struct emit *e, uint32_t bundle);
/* Makes two buffers for sharded parameters that are gathered in 8 bits: one by which products name the parameters until
 * the gathered ones take its place (shard.c), and a persistent one for the scales. */
void quantised_make_sharded_buffers(struct emit *e, uint32_t bundle);
/* Emits the cast of this rank's part of a bundle's masters, and returns the quantised part, in a new buffer. largest:
 * the largest element on which ranks agreed; empty: the cast finds it itself. *scales: where the scales are written; if
 * it is empty, it is set to a new buffer of them. */
struct view quantised_emit_own_part(struct emit *e, uint32_t bundle, struct view largest,
                                    struct view *scales);

#endif
