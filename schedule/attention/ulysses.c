/* DeepSpeed-Ulysses (Jacobs et al., arXiv 2309.14509): outside the core, every rank holds a slice of the tokens with
 * all heads. All-to-alls before and after the core exchange that for all tokens with a slice of the heads. With one
 * head rank nothing is sent; q, k and v are split first and rotated then, whatever the profile's order is. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"
#include "schedule/attention/narrow_core.h"
#include "schedule/choices/products.h"

static struct head_exchange head_exchange_for_ulysses(const struct emit *e, uint32_t layer)
{
    struct head_exchange z = exchange_of_layer(e, layer);
    if (z.head_ranks > 1)
        return z;
    z.rope_after_exchange = z.rope_after_exchange || z.rope_before_exchange;
    z.rope_before_exchange = false;
    z.group_positions = z.rank_positions;
    z.core_kv_heads = z.kv_heads;
    z.kv_width = z.core_kv_heads * z.head_dim;
    z.v_width = z.core_kv_heads * transformer_v_head_dim(e->choices->model);
    z.splits_qkv_before_pack = z.is_latent || z.norms_heads_of_q_and_k;
    return z;
}

/* Returns the work of the causal core on a whole sequence of the micro-batch. */
static struct work core_work(const struct emit *e, uint32_t layer, int64_t sequence,
                             const struct head_exchange *z, enum work_kind kind)
{
    struct work work = attention_causal_work(e, kind, z->group_tokens, z->heads / z->head_ranks,
                                             z->core_kv_heads / z->head_ranks);
    return attention_masked_work(e, layer, sequence, work, 0);
}

void ulysses_forward(struct emit *e, uint32_t layer, int64_t sequence, struct view qkv,
                     struct view out)
{
    struct head_exchange z = head_exchange_for_ulysses(e, layer);
    struct attention_saved *saved = &e->layer_saved[layer].attention[sequence];
    saved->qkv = exchange_qkv(e, layer, &z, qkv, (struct qkv){0}, saved);
    struct view o = exchange_view_for_core_output(e, &z, out);
    if (z.head_ranks > 1)
        core_emit_host_wait(e);
    attention_save_output_and_make_lse(e, saved, o, z.group_tokens, z.heads / z.head_ranks);
    const struct work work = core_work(e, layer, sequence, &z, WORK_ATTENTION);
    if (products_core_is_narrow(e->choices, layer))
        narrow_core_forward(e, work, saved, o);
    else
        attention_tile(e, work, &saved->qkv, o, saved->lse);
    attention_sinks(e, layer, saved, z.group_tokens, z.heads / z.head_ranks);
    if (z.head_ranks > 1)
        core_emit_host_wait(e);
    exchange_attention_output(e, &z, o, out);
}

void ulysses_backward(struct emit *e, uint32_t layer, int64_t sequence, struct view d_out,
                      struct view dqkv)
{
    struct head_exchange z = head_exchange_for_ulysses(e, layer);
    const struct attention_saved *saved = &e->layer_saved[layer].attention[sequence];
    struct view d_o = exchange_attention_output_backward(e, &z, d_out);
    attention_sinks_backward(e, layer, saved->o, saved->lse, d_o, z.group_tokens,
                             z.heads / z.head_ranks);
    struct qkv grads = exchange_views_for_core_grads(e, &z, dqkv);
    const struct work work = core_work(e, layer, sequence, &z, WORK_ATTENTION_BACKWARD);
    if (products_core_is_narrow(e->choices, layer))
        narrow_core_backward(e, work, saved, d_o, &grads);
    else
        attention_tile_backward(e, work, &saved->qkv, saved->o, saved->lse, d_o, &grads);
    exchange_qkv_backward(e, layer, &z, grads, dqkv, saved);
}
