/* schedule/attention/exchange.h: the all-to-alls between tokens and heads, which several attention choices share.
 *
 * The P ranks of a head group together hold s tokens; before the core each has n = s / P tokens with all heads, and
 * for the core each has all s tokens with 1 / P of the heads. A scatter of heads sends [P, n, w], w = heads / P *
 * head_dim, and receives [P, n, w] from the ranks in order, which is [s, w] in the order of the gathered tokens; a
 * gather of heads is the inverse. With P = 1 nothing is sent. Profiles differ in the layout passes around an
 * all-to-all, in where positional encodings are applied, in how many copies of key and value heads are sent, and in
 * what waits for what. */
#ifndef SCHEDULE_ATTENTION_EXCHANGE_H
#define SCHEDULE_ATTENTION_EXCHANGE_H

#include "schedule/attention/project.h"

struct head_exchange {
    int64_t first_row; /* for a chunk of FPDT: its first row among the rank's rows */
    /* tokens of a sequence on a rank (n above), and on its head group (s above) */
    int64_t rank_tokens, group_tokens, head_dim;
    int64_t head_ranks; /* number of ranks in the head group, P */
    /* numbers of heads of the model; core_kv_heads: those of key and value heads that take part in the core, copies
     * included */
    int64_t heads, kv_heads, core_kv_heads;
    int64_t q_width, kv_width; /* columns of q, and of k as sent, on all ranks together */
    /* columns of v as sent, and of the core's output, on all ranks together; in most models those of k and of q */
    int64_t v_width, o_width;
    int64_t projection_width; /* columns of the projection */
    bool rope_before_exchange, rope_after_exchange;
    /* positions of a rank's tokens, and of the tokens of its head group */
    struct view rank_positions, group_positions;
    bool norms_heads_of_q_and_k; /* the layer norms the heads of q and k */
    bool splits_qkv_before_pack; /* q, k and v are separated before they are packed */
    /* q, k and v of a sequence are three parts one after another in the projection's result, not columns of it
     * (schedule/attention/latent.h) */
    bool is_latent;
    /* with latent attention, ranks exchange latents in place of k and v (enum mla_exchange), and each then makes k and
     * v of its own heads */
    bool sends_latents;
};

struct head_exchange exchange_of_layer(const struct emit *e, uint32_t layer);

/* Returns q[s, q_width / P], k[s, kv_width / P] and v[s, v_width / P], made from qkv[n, projection_width]. k and v are
 * written to `to.k` and `to.v` where these are not empty. Else they are, as q is, in new buffers or in what the
 * projection has written. `to.q` is not used. */
struct qkv exchange_qkv(struct emit *e, uint32_t layer, const struct head_exchange *z,
                        struct view qkv, struct qkv to, struct attention_saved *saved);
/* Returns where the core writes o[s, o_width / P]: a new tensor, or, with P = 1, `out` itself. */
struct view exchange_view_for_core_output(struct emit *e, const struct head_exchange *z,
                                          struct view out);
/* Writes out[n, o_width] from o[s, o_width / P]. With P = 1 it does nothing, as the core has written `out`. */
void exchange_attention_output(struct emit *e, const struct head_exchange *z, struct view o,
                               struct view out);

/* Returns d_o[s, o_width / P], made from d_out[n, o_width]; with P = 1 that is d_out itself. */
struct view exchange_attention_output_backward(struct emit *e, const struct head_exchange *z,
                                               struct view d_out);
/* Returns where the core writes the gradients of q, k and v: new tensors, or, where exchange_qkv_backward() has nothing
 * to send or to rearrange, parts of dqkv. */
struct qkv exchange_views_for_core_grads(struct emit *e, const struct head_exchange *z,
                                         struct view dqkv);
/* Writes dqkv[n, projection_width] from the gradients of the q, k and v that exchange_qkv() returned. */
void exchange_qkv_backward(struct emit *e, uint32_t layer, const struct head_exchange *z,
                           struct qkv grads, struct view dqkv, const struct attention_saved *saved);

/* ---- steps of the functions above, and a wait around the core ---- */

/* Copies x[rows, parts * width] into a new send buffer as [parts, rows, width], and returns that. */
struct view pack_tensor(struct emit *e, struct view x, int64_t rows, int64_t parts, int64_t width);
/* Emits the all-to-all from tokens to heads: packed[P, n, width] becomes [s, width], all tokens with this rank's heads.
 * The result is written to `to`, or, if `to` is empty, to a new buffer with this stem and category. sync: the next
 * compute op waits for the exchange. */
struct view exchange_tokens_to_heads(struct emit *e, const struct head_exchange *z,
                                     struct view packed, const char *stem, enum category category,
                                     int64_t width, bool sync, struct view to);
/* Emits the all-to-all from heads to tokens: x[s, width] becomes [P, n, width], which the caller has to unpack to [n,
 * P, width]. With P = 1 it returns x. sync: as above. */
struct view exchange_heads_to_tokens(struct emit *e, const struct head_exchange *z, struct view x,
                                     int64_t width, bool sync);

/* Returns the parts of qkv that hold q, k and v of one sequence of latent attention; they lie one after another. If
 * ranks exchange latents, `k` is the latents, and `v` the key columns that heads share. */
struct qkv latent_qkv_views(const struct emit *e, const struct head_exchange *z, struct view qkv);
/* Emits the all-gather of x over the head group, and returns the result, in the order of the ranks; returns x itself
 * with P = 1. The next compute op waits for it if the profile's switch forward_exchange_blocks_compute is set. */
struct view gather_rows_over_hp(struct emit *e, struct view x, const char *stem);

/* Emits a wait of the host for the stream of computation if the profile's switch host_waits_around_core is set. The
 * forward calls it before and after the core. */
void core_emit_host_wait(struct emit *e);

#endif
