/* schedule/step/step.h: the ops of one stage in a training step, from its layers, its embedding and its head.
 *
 * The folder schedule/step/ puts a whole training step together: embedding, layers, head and loss of each stage, and
 * the finished schedule. */
#ifndef SCHEDULE_STEP_STEP_H
#define SCHEDULE_STEP_STEP_H

#include "schedule/emit/emit.h"

/* Emits the ops of a whole step of the stage e->stage. */
void emit_step(struct emit *e);
/* Emits only the attention operator of one layer, as microbenchmarks of papers run it. Ops of region none make its
 * inputs. */
void emit_attention_operator(struct emit *e);
/* Makes the rows in which layers keep data of one unit for their backward. */
struct layer_saved *layer_saved_new(struct emit *e);

#endif
