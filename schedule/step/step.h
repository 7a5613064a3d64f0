/* schedule/step/step.h: the ops of one stage in a training step, from its layers, its embedding and its head.
 *
 * The folder schedule/step/ puts a whole training step together: embedding, layers, head and loss of each stage, and
 * the finished schedule. */
#ifndef SCHEDULE_STEP_STEP_H
#define SCHEDULE_STEP_STEP_H

#include "schedule/emit/emit.h"

/* Emits the ops of the stage e->stage in a step. In a scope smaller than a step, zeros replace the results of the
 * embedding and of the head. */
void emit_step(struct emit *e);
/* Emits only the attention operator of one layer, as microbenchmarks of papers run it, or the part of the operator that
 * --scope names. The ops that make its inputs have the region none. */
void emit_attention_operator(struct emit *e);
/* Returns an array with an element for each layer, in which layers keep what their backward of one unit needs. It is in
 * e->arena. */
struct layer_saved *layer_saved_new(struct emit *e);

#endif
