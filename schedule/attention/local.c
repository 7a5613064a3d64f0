/* Attention on one rank's own tokens: a single rank, with nothing to send. */
#include "schedule/attention/attention.h"
#include "schedule/attention/project.h"

static bool rotary(const struct emit *e)
{
    return e->choices->model->positions == POSITIONS_ROPE;
}

void local_attention_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out)
{
    const struct transformer *model = e->choices->model;
    int64_t q = transformer_q_width(model), n = e->n, width = q + 2 * transformer_kv_width(model);
    struct view positions = view_all(e, e->positions);
    buffer_id qkv = project_qkv(e, layer, x);
    e->tags.region = REGION_ATTENTION;
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        struct attention_saved *saved = &e->saved[layer].attention[i];
        struct qkv parts = split_qkv(e, view_rows(qkv, i * n, n, width), n, 1);
        if (has_head_norms(e))
            head_norms(e, layer, &parts, saved, n);
        if (rotary(e)) {
            parts.q = rotate(e, view_all(e, parts.q), positions, n, model->heads, false);
            parts.k = rotate(e, view_all(e, parts.k), positions, n, model->kv_heads, false);
        }
        saved->q = parts.q;
        saved->k = parts.k;
        saved->v = parts.v;
        attention_core(e, saved, view_rows(out, i * n, n, q), n, model->heads, model->kv_heads);
    }
}

void local_attention_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx)
{
    const struct transformer *model = e->choices->model;
    int64_t q = transformer_q_width(model), n = e->n, width = q + 2 * transformer_kv_width(model);
    struct view positions = view_all(e, e->positions);
    e->tags.region = REGION_ATTENTION;
    buffer_id dqkv = emit_activation(e, "dqkv", e->rows, width);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        const struct attention_saved *saved = &e->saved[layer].attention[i];
        struct qkv grads = attention_core_backward(e, saved, view_rows(d_out, i * n, n, q), n,
                                                   model->heads, model->kv_heads);
        if (rotary(e)) {
            grads.q = rotate(e, view_all(e, grads.q), positions, n, model->heads, true);
            grads.k = rotate(e, view_all(e, grads.k), positions, n, model->kv_heads, true);
        }
        if (has_head_norms(e))
            head_norms_backward(e, layer, &grads, saved, n);
        join_qkv(e, &grads, view_rows(dqkv, i * n, n, width), n, 1);
    }
    project_qkv_backward(e, layer, dqkv, e->saved[layer].norm1, dx);
}
