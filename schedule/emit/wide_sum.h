/* schedule/emit/wide_sum.h: gradients of a weight that are made of several pieces, summed in fp32. */
#ifndef SCHEDULE_EMIT_WIDE_SUM_H
#define SCHEDULE_EMIT_WIDE_SUM_H

#include "schedule/emit/emit.h"

#include <stdint.h>

/* Between emit_wide_sum_begin() and emit_wide_sum_end(), products add to an fp32 buffer instead of the weight's
 * gradient, if the profile does so; the end casts it to the gradient. */
void emit_wide_sum_begin(struct emit *e, uint32_t part, enum weight weight);
void emit_wide_sum_end(struct emit *e, uint32_t part, enum weight weight);
/* Adds one piece: a product in the compute dtype, and its sum. */
void emit_wide_sum_add(struct emit *e, enum weight weight, struct view dy, struct view x, int64_t m,
                       int64_t n, int64_t k);

#endif
