/* schedule/attention/exchange.h: tokens against heads, as Ulysses and 2D attention share it.
 *
 * A head group of P ranks holds s tokens, n = s / P on each with all heads. All-to-alls turn that
 * into all s tokens and a slice of the heads around the core, and back. A scatter of heads sends
 * [P, n, w], w = heads / P * head_dim, and receives [P, n, w] from ranks in order, which is [s, w]
 * in the order of the gathered tokens; a gather of heads is the inverse. With P = 1 nothing is sent.
 * Profiles differ in the layout passes around an all-to-all, in where positions are rotated, in
 * how many copies of key and value heads are sent, and in what waits for what. */
#ifndef SCHEDULE_ATTENTION_EXCHANGE_H
#define SCHEDULE_ATTENTION_EXCHANGE_H

#include "schedule/attention/project.h"

struct exchange {
    int64_t n, s, dim;                /* tokens of a rank, and of its head group, of a sequence */
    int64_t ranks;                    /* P */
    int64_t heads, kv_heads, kv_sent; /* of the model; kv heads that take part in the core */
    int64_t q_width, kv_width;        /* columns of q, and of k as sent, on all ranks together */
    int64_t width;                    /* columns of the projection */
    bool rope_before, rope_after;
    struct view positions, positions_all; /* of a rank's tokens, and of its head group's */
    bool apart;                           /* q, k and v are taken apart before they are packed */
};

struct exchange exchange_of(const struct emit *e);

/* q [s, q_width / P], k and v [s, kv_width / P] from qkv[n, W]. kv: where k, and v behind it, shall
 * lie; view_none(): in buffers of their own. */
struct qkv exchange_in(struct emit *e, uint32_t layer, const struct exchange *z, struct view qkv,
                       struct view kv, struct attention_saved *saved);
/* The same with k and v each where `to` says. */
struct qkv exchange_in_to(struct emit *e, uint32_t layer, const struct exchange *z, struct view qkv,
                          struct qkv to, struct attention_saved *saved);
/* out[n, q_width] from o[s, q_width / P]. */
void exchange_out(struct emit *e, const struct exchange *z, struct view o, struct view out);

/* d_o[s, q_width / P] from d_out[n, q_width]. */
struct view exchange_out_backward(struct emit *e, const struct exchange *z, struct view d_out);
/* dqkv[n, W] from the gradients of what exchange_in() gave. */
void exchange_in_backward(struct emit *e, uint32_t layer, const struct exchange *z,
                          struct qkv grads, struct view dqkv, const struct attention_saved *saved);

/* ---- the pieces of which they consist ---- */

/* x[rows, parts width] as [parts, rows, width] in a send buffer; and the inverse, into y. */
struct view pack_one(struct emit *e, struct view x, int64_t rows, int64_t parts, int64_t width);
void unpack_one(struct emit *e, struct view x, struct view y, int64_t rows, int64_t parts,
                int64_t width);
/* packed[P, n, width] becomes [s, width] of this rank's heads, in `to` or a new buffer; `sync`: the
 * next compute op waits for the exchange. */
struct view scatter_heads(struct emit *e, const struct exchange *z, struct view packed,
                          const char *stem, enum category category, int64_t width, bool sync,
                          struct view to);
/* x[s, width] becomes [P, n, width], which unpack_one() puts in order. */
struct view gather_heads(struct emit *e, const struct exchange *z, struct view x, int64_t width,
                         bool sync);

/* Before and after the core in the forward: profile.core_sync. */
void core_sync(struct emit *e);

#endif
