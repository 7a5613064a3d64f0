#include "schedule/attention/attention.h"

const struct attention_emitter attention_emitters[CHOICE_ATTENTION_COUNT] = {
#define ATTENTION(symbol, name, around, inner, cp, hp, simpler_at_one)                             \
    {around##_forward, around##_backward, inner##_forward, inner##_backward},
#include "schedule/choices/attention_choices.def"
#undef ATTENTION
};
