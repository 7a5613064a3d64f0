/* schedule/attention/attention.h: the attention choices, one file each. */
#ifndef SCHEDULE_ATTENTION_ATTENTION_H
#define SCHEDULE_ATTENTION_ATTENTION_H

#include "schedule/emit/emit.h"

/* How an attention choice emits: from the normed input [N, h] to the output [N, heads
 * head_dim] before wo, and back from its gradient to the gradient of the normed input. The
 * operator is what lies between the projection qkv[N, W] and the output; a choice that projects
 * piece by piece has none of its own. */
struct attention_emitter {
    void (*forward)(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
    void (*backward)(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
    void (*operator_forward)(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
    void (*operator_backward)(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);
};
extern const struct attention_emitter attention_emitters[CHOICE_ATTENTION_COUNT];

/* The projection of all rows around the operator of the schedule's choice. */
void projected_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void projected_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);

/* Operators: out[N, heads head_dim] of qkv[N, W], and back. */
void local_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
void local_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);
void ulysses_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
void ulysses_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);
/* Ulysses in stages of one query head a rank, each projected on its own. */
void upipe_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void upipe_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
/* The caches of a row of e->prefix, made when they are first asked for; *width: elements of a token. */
struct prefix *prefix_open(struct emit *e, uint32_t row, int64_t *width);
/* The same two over subsequences: queries of one see the keys of those before it. */
void prefix_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
void prefix_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);
/* Rings, with a head group of one rank or more. */
void two_d_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
void two_d_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);
/* Chunks of the sequence, projected one by one. */
void fpdt_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out);
void fpdt_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx);
void fpdt_operator_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out);
void fpdt_operator_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv);

/* What a tile of each direction fetches of one chunk, alone, behind a synchronisation of the host. */
void fpdt_fetch_alone(struct emit *e);

/* The exchanges of either alone, each call between two synchronisations of the host. */
void exchange_alone(struct emit *e, buffer_id qkv, buffer_id out, buffer_id d_out, buffer_id dqkv);

#endif
