/* 2D attention (LoongTrain, arXiv 2406.18485, section 4): head ranks exchange tokens for heads, and then ranks with
 * the same heads pass keys and values round a ring. With one head rank it is ring attention (arXiv 2310.01889). With
 * one context rank it would be Ulysses, which resolve_choices() chooses instead. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"
#include "schedule/attention/ring.h"
#include "schedule/choices/profile.h"

static struct ring_attention_sizes ring_attention_sizes_of_layer(const struct head_exchange *z,
                                                                 uint32_t layer, int64_t sequence)
{
    return (struct ring_attention_sizes){
        .layer = layer,
        .sequence = sequence,
        .rank_tokens = z->group_tokens,
        .heads = z->heads / z->head_ranks,
        .kv_heads = z->core_kv_heads / z->head_ranks,
        .q_width = z->q_width / z->head_ranks,
        .kv_width = z->kv_width / z->head_ranks,
        .v_width = z->v_width / z->head_ranks,
        .o_width = z->o_width / z->head_ranks,
    };
}

static bool keeps_kv_blocks_of_all_ranks(const struct emit *e)
{
    return e->choices->profile->ring_keeps_blocks && e->choices->rotation == ROTATE_P2P;
}

void two_d_forward(struct emit *e, uint32_t layer, int64_t sequence, struct view qkv,
                   struct view out)
{
    e->unit.positions_sequence_index = sequence;
    struct head_exchange z = exchange_of_layer(e, layer);
    struct ring_attention_sizes shape = ring_attention_sizes_of_layer(&z, layer, sequence);
    struct attention_saved *saved = &e->layer_saved[layer].attention[sequence];
    struct qkv to = {0};
    if (!z.is_latent || z.head_ranks > 1) /* else v lies after k already */
        to = ring_split_kv_block(&shape, ring_new_blocks(e, &shape, "kv", 1));
    saved->qkv = exchange_qkv(e, layer, &z, qkv, to, saved);
    struct view o = exchange_view_for_core_output(e, &z, out);
    core_emit_host_wait(e);
    if (e->choices->rotation == ROTATE_BY_CORE_PLAN)
        ring_planned_forward(e, &shape, saved, o);
    else if (e->choices->rotation == ROTATE_NEEDED_ROWS)
        ring_needed_rows_forward(e, &shape, saved, o);
    else if (keeps_kv_blocks_of_all_ranks(e))
        ring_retained_forward(e, &shape, saved, o);
    else
        ring_forward(e, &shape, saved, o);
    attention_sinks(e, layer, saved, shape.rank_tokens, shape.heads);
    core_emit_host_wait(e);
    exchange_attention_output(e, &z, o, out);
}

void two_d_backward(struct emit *e, uint32_t layer, int64_t sequence, struct view d_out,
                    struct view dqkv)
{
    e->unit.positions_sequence_index = sequence;
    struct head_exchange z = exchange_of_layer(e, layer);
    struct ring_attention_sizes shape = ring_attention_sizes_of_layer(&z, layer, sequence);
    const struct attention_saved *saved = &e->layer_saved[layer].attention[sequence];
    struct view d_o = exchange_attention_output_backward(e, &z, d_out);
    attention_sinks_backward(e, layer, saved->o, saved->lse, d_o, shape.rank_tokens, shape.heads);
    struct qkv grads =
        e->choices->rotation == ROTATE_BY_CORE_PLAN ? ring_planned_backward(e, &shape, saved, d_o)
        : e->choices->rotation == ROTATE_NEEDED_ROWS
            ? ring_needed_rows_backward(e, &shape, saved, d_o)
        : keeps_kv_blocks_of_all_ranks(e) ? ring_retained_backward(e, &shape, saved, d_o)
                                          : ring_backward(e, &shape, saved, d_o);
    exchange_qkv_backward(e, layer, &z, grads, dqkv, saved);
}
