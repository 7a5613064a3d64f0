/* schedule/attention/attention.h: the attention choices, one file each. */
#ifndef SCHEDULE_ATTENTION_ATTENTION_H
#define SCHEDULE_ATTENTION_ATTENTION_H

#include "schedule/emit.h"

void local_attention_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void local_attention_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
void ulysses_attention_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void ulysses_attention_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);

#endif
