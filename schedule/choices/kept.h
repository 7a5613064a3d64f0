/* schedule/choices/kept.h: what a layer keeps for its backward beside what the schedule's ops read.
 *
 * A framework keeps copies that no op of a schedule reads: fp32 copies, casts, results between the operators of a
 * chain. The schedule has room for them in buffers that live as long: the statistics of a norm, the layer's input, the
 * feed-forward part's first product. The rows are in schedule/choices/kept.def. */
#ifndef SCHEDULE_CHOICES_KEPT_H
#define SCHEDULE_CHOICES_KEPT_H

#include "schedule/choices/choices.h"

/* Who wrote the layer: schedule/choices/kept.def. CODE_FUSED: kernels that keep what the schedule's ops read. */
enum layer_code { CODE_FUSED, CODE_TITAN, CODE_LLAMA, CODE_GEMMA, CODE_GPT2 };

/* Bytes an element, by column of schedule/choices/kept.def. */
struct kept {
    uint8_t code, kernels;
    bool autocast;
    uint8_t input, first, second, after, heads, inputs1, inputs2, act, d_act;
};

/* Returns the row of the choices: all columns 0 where the layer keeps nothing beside what the ops read. Where
 * activations go to the host, only what ops wrote is copied, so nothing is kept beside. */
struct kept kept_of(const struct choices *choices);

#endif
