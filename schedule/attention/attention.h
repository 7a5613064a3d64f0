/* schedule/attention/attention.h: the attention choices, one file each. */
#ifndef SCHEDULE_ATTENTION_ATTENTION_H
#define SCHEDULE_ATTENTION_ATTENTION_H

#include "schedule/emit.h"

extern const struct attention_emitter attention_local;
extern const struct attention_emitter attention_ulysses;

#endif
