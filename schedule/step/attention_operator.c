/* Emits the attention operator of one layer, or a part of it (--scope), without the rest of the layer. */
#include "schedule/attention/attention.h"
#include "schedule/attention/project.h"
#include "schedule/step/step.h"

static buffer_id new_buffer_filled_with_zeros(struct emit *e, const char *stem, int64_t rows,
                                              int64_t cols)
{
    return emit_zeros(e, emit_compute_tensor(e, stem, CATEGORY_ACTIVATION, rows, cols)).buffer;
}

void emit_attention_operator(struct emit *e)
{
    int64_t o = transformer_o_columns(e->choices->model), width = qkv_column_count(e);
    e->layer_saved = layer_saved_new(e);
    e->op_tags = (struct op_tags){PHASE_FORWARD, REGION_NONE, 0, IR_NONE16, IR_NONE16, IR_NONE16};
    uint8_t scope = e->choices->scope;
    if (scope == SCOPE_CHUNK_FETCHES_FROM_HOST) {
        fpdt_emit_only_fetches(e);
        return;
    }
    bool whole = scope == SCOPE_ATTENTION_OPERATOR || scope == SCOPE_ATTENTION_EXCHANGES;
    buffer_id qkv = new_buffer_filled_with_zeros(e, "qkv", e->unit.rows, width), d_out = {IR_NONE};
    if (whole)
        d_out = new_buffer_filled_with_zeros(e, "d_out", e->unit.rows, o);
    buffer_id out = emit_activation_buffer(e, "attention", e->unit.rows, o);
    if (scope == SCOPE_ATTENTION_EXCHANGES) {
        exchange_emit_only_all_to_alls(e, qkv, out, d_out,
                                       emit_activation_buffer(e, "dqkv", e->unit.rows, width));
        return;
    }
    e->op_tags.region = REGION_ATTENTION;
    operator_forward(e, 0, qkv, out);
    if (scope == SCOPE_ATTENTION_OPERATOR_FORWARD)
        return;
    e->op_tags.phase = PHASE_BACKWARD;
    if (scope == SCOPE_ATTENTION_OPERATOR_BACKWARD) {
        e->op_tags.region = REGION_NONE;
        d_out = new_buffer_filled_with_zeros(e, "d_out", e->unit.rows, o);
        e->op_tags.region = REGION_ATTENTION;
    }
    buffer_id dqkv = emit_activation_buffer(e, "dqkv", e->unit.rows, width);
    operator_backward(e, 0, d_out, dqkv);
}
