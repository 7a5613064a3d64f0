/* Attention on one rank's own tokens: a single rank, with nothing to send. */
#include "schedule/attention/attention.h"
#include "schedule/attention/project.h"

static bool rotary(const struct emit *e)
{
    return e->choices->model->positions == POSITIONS_ROPE;
}

void local_forward(struct emit *e, uint32_t layer, buffer_id qkv, buffer_id out)
{
    const struct transformer *model = e->choices->model;
    int64_t q = transformer_q_width(model), n = e->unit.n, width = qkv_width(e);
    struct view positions = emit_positions(e);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        struct attention_saved *saved = &e->saved[layer].attention[i];
        struct qkv parts = split_qkv(e, view_rows(qkv, i * n, n, width), n, 1, (struct qkv){0});
        if (has_head_norms(e))
            head_norms(e, layer, &parts, saved, n);
        if (rotary(e)) {
            parts.q = rotate(e, parts.q, positions, n, model->heads, false, view_none());
            parts.k = rotate(e, parts.k, positions, n, model->kv_heads, false, view_none());
        }
        attention_core(e, layer, i, parts, view_rows(out, i * n, n, q), n, model->heads,
                       model->kv_heads);
    }
}

void local_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dqkv)
{
    const struct transformer *model = e->choices->model;
    int64_t q = transformer_q_width(model), n = e->unit.n, width = qkv_width(e);
    struct view positions = emit_positions(e);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        const struct attention_saved *saved = &e->saved[layer].attention[i];
        struct qkv grads = attention_core_backward(e, layer, i, view_rows(d_out, i * n, n, q), n,
                                                   model->heads, model->kv_heads);
        if (rotary(e)) {
            grads.q = rotate(e, grads.q, positions, n, model->heads, true, view_none());
            grads.k = rotate(e, grads.k, positions, n, model->kv_heads, true, view_none());
        }
        if (has_head_norms(e))
            head_norms_backward(e, layer, &grads, saved, n);
        join_qkv(e, &grads, view_rows(dqkv, i * n, n, width), n, 1);
    }
}
