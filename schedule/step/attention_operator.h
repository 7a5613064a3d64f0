/* schedule/step/attention_operator.h: the attention operator of one layer by itself, as microbenchmarks of papers run it. */
#ifndef SCHEDULE_STEP_ATTENTION_OPERATOR_H
#define SCHEDULE_STEP_ATTENTION_OPERATOR_H

#include "schedule/emit/emit.h"

/* One layer's attention operator alone. Ops in region none make what it starts from. */
void emit_operator(struct emit *e);

#endif
