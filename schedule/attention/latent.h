/* schedule/attention/latent.h: the projections of latent attention (MLA: DeepSeek-V2, arXiv 2405.04434, section 2.1).
 *
 * x goes through two narrow products, q_a and kv_a; their results are normed and widened to all heads by q_b and kv_b.
 * kv_a also makes rope_dim key columns that all heads share. The last rope_dim columns of each head of q, and the
 * shared columns of k, are rotated here, so attention choices rotate nothing. What follows is attention with as many
 * key heads as query heads, whose v is narrower than its k. A model without q_latent makes the queries by one product,
 * q.
 *
 * q, k and v of a sequence lie one after the other: [n, q width], [n, k width], [n, v width]; or, if head ranks send
 * latents, q, the normed latents and the rotated shared columns: [n, q width], [n, kv_latent], [n, rope_dim].
 *
 * Tensor ranks hold q_a, kv_a and their norms whole, and project their own tokens. Then the normed latents and the
 * shared columns are gathered; they have fewer elements than x. q_b, kv_b and q are divided by heads (Megatron-LM,
 * megatron/core/transformer/multi_latent_attention.py). */
#ifndef SCHEDULE_ATTENTION_LATENT_H
#define SCHEDULE_ATTENTION_LATENT_H

#include "schedule/emit/emit.h"

/* Returns qkv of `rows` rows, those of all tensor ranks, made from x, this rank's own rows. positions: the positions of
 * these rows, which belong to one sequence; empty: the rows are all sequences of the unit, one after another, and have
 * the positions that view_of_unit_positions() gives for each. */
struct view latent_project(struct emit *e, uint32_t layer, struct view x, int64_t rows,
                           struct view positions, struct latent_saved *saved);
/* Writes this rank's own rows of dx, and the gradients of the weights, from dqkv. */
void latent_project_backward(struct emit *e, uint32_t layer, struct view dqkv, struct view x,
                             struct view dx, int64_t rows, struct view positions,
                             const struct latent_saved *saved);

/* These two serve layers whose head ranks send latents (enum mla_exchange). latent_expand() makes the keys and values
 * of this rank's heads from the normed latents[rows, kv_latent] and the rotated shared columns[rows, rope_dim] of the
 * same tokens. latent_expand_backward() writes the gradients of latents and of shared columns, summed over this rank's
 * heads, and the gradient of kv_b. */
void latent_expand(struct emit *e, uint32_t layer, struct view latents, struct view shared,
                   struct view k, struct view v);
void latent_expand_backward(struct emit *e, uint32_t layer, struct view latents, struct view dk,
                            struct view dv, struct view d_latents, struct view d_shared);

#endif
