/* DeepSpeed-Ulysses (Jacobs et al., arXiv 2309.14509): outside the core, every rank holds a slice of the tokens with
 * all heads; all-to-alls before and after the core exchange that for all tokens with a slice of the heads. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"

void ulysses_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out)
{
    struct exchange z = exchange_of(e);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        struct attention_saved *saved = &e->saved[layer].attention[i];
        struct qkv in = exchange_in(e, layer, &z, view_rows(qkv, i * z.n, z.n, z.width),
                                    (struct qkv){0}, saved);
        struct view o = emit_computed(e, "o", CATEGORY_ACTIVATION, z.s, z.q_width / z.ranks);
        core_sync(e);
        attention_core(e, layer, i, in, o, z.s, z.heads / z.ranks, z.kv_sent / z.ranks);
        core_sync(e);
        exchange_out(e, &z, o, view_rows(out, i * z.n, z.n, z.q_width));
    }
}

void ulysses_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv)
{
    struct exchange z = exchange_of(e);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        const struct attention_saved *saved = &e->saved[layer].attention[i];
        struct view d_o = exchange_out_backward(e, &z, view_rows(d_out, i * z.n, z.n, z.q_width));
        struct qkv grads =
            attention_core_backward(e, layer, i, d_o, z.s, z.heads / z.ranks, z.kv_sent / z.ranks);
        exchange_in_backward(e, layer, &z, grads, view_rows(dqkv, i * z.n, z.n, z.width), saved);
    }
}
