/* schedule/step/attention_operator.h: the attention operator of one layer by itself, as microbenchmarks of papers
 * run it. */
#ifndef SCHEDULE_STEP_ATTENTION_OPERATOR_H
#define SCHEDULE_STEP_ATTENTION_OPERATOR_H

#include "schedule/emit/emit.h"

/* Emits only the attention operator of one layer. Ops of region none make its inputs. */
void emit_operator(struct emit *e);

#endif
