/* schedule/attention/narrow_core.h: the core of attention in 8 bits (--attention-products fp8), as TransformerEngine's
 * fp8_dpa has it. Private to schedule/attention/. */
#ifndef SCHEDULE_ATTENTION_NARROW_CORE_H
#define SCHEDULE_ATTENTION_NARROW_CORE_H

#include "schedule/emit/emit.h"

/* Emits the casts of saved->qkv and then the core, which writes `o` and saved->lse. The casts' results become
 * saved->narrow and saved->narrow_scales. work: the core as it would be in the step's dtype. */
void narrow_core_forward(struct emit *e, struct work work, struct attention_saved *saved,
                         struct view o);
/* Emits the cast of d_o, and the backward of the core, which writes `grads` in the step's dtype. */
void narrow_core_backward(struct emit *e, struct work work, const struct attention_saved *saved,
                          struct view d_o, const struct qkv *grads);

#endif
