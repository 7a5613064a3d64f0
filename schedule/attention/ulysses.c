/* DeepSpeed-Ulysses (Jacobs et al., arXiv 2309.14509): outside the core, every rank holds a slice of the tokens with
 * all heads; all-to-alls before and after the core exchange that for all tokens with a slice of the heads. A single
 * rank has nothing to send; it takes q, k and v apart, and then rotates them. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"

static struct head_exchange shape_of(const struct emit *e, uint32_t layer)
{
    struct head_exchange z = exchange_of(e, layer);
    if (z.ranks > 1)
        return z;
    z.rope_after = z.rope_after || z.rope_before;
    z.rope_before = false;
    z.positions_all = z.positions;
    z.kv_sent = z.kv_heads;
    z.kv_width = z.kv_sent * z.dim;
    z.v_width = z.kv_sent * transformer_v_head_dim(e->choices->model);
    z.is_split = z.latent || z.norms;
    return z;
}

/* Returns the work of the causal core on a whole sequence of the micro-batch. */
static struct work core_work(const struct emit *e, uint32_t layer, int64_t sequence,
                             const struct head_exchange *z, enum work_kind kind)
{
    struct work work = attention_work(e, kind, z->s, z->heads / z->ranks, z->kv_sent / z->ranks);
    return attention_masked(e, layer, sequence, work, 0);
}

void ulysses_forward(struct emit *e, uint32_t layer, int64_t sequence, struct view qkv,
                     struct view out)
{
    struct head_exchange z = shape_of(e, layer);
    struct attention_saved *saved = &e->saved[layer].attention[sequence];
    saved->in = exchange_in(e, layer, &z, qkv, (struct qkv){0}, saved);
    struct view o = exchange_output(e, &z, out);
    if (z.ranks > 1)
        core_sync(e);
    attention_save(e, saved, o, z.s, z.heads / z.ranks);
    attention_tile(e, core_work(e, layer, sequence, &z, WORK_ATTENTION), &saved->in, o, saved->lse);
    attention_sinks(e, layer, saved, z.s, z.heads / z.ranks);
    if (z.ranks > 1)
        core_sync(e);
    exchange_out(e, &z, o, out);
}

void ulysses_backward(struct emit *e, uint32_t layer, int64_t sequence, struct view d_out,
                      struct view dqkv)
{
    struct head_exchange z = shape_of(e, layer);
    const struct attention_saved *saved = &e->saved[layer].attention[sequence];
    struct view d_o = exchange_out_backward(e, &z, d_out);
    attention_sinks_backward(e, layer, saved->o, saved->lse, d_o, z.s, z.heads / z.ranks);
    struct qkv grads = exchange_gradients(e, &z, dqkv);
    attention_tile_backward(e, core_work(e, layer, sequence, &z, WORK_ATTENTION_BACKWARD),
                            &saved->in, saved->o, saved->lse, d_o, &grads);
    exchange_in_backward(e, layer, &z, grads, dqkv, saved);
}
