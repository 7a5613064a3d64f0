/* Emits products of matrices, whose operands a schedule may quantise to 8 or 4 bits. */
#include "schedule/emit/emit.h"

#include <assert.h>

/* Returns the current layer's bundle of stored weights if its parameters are in `buffer`, else IR_NONE. */
static uint32_t stored_bundle_of_buffer(const struct emit *e, buffer_id buffer)
{
    if (e->choices->frozen_weights == FROZEN_STORAGE_16BIT || e->op_tags.layer == IR_NONE16)
        return IR_NONE;
    const uint32_t bundle = e->weights.part[e->op_tags.layer].stored_bundle;
    return bundle != IR_NONE && e->weights.bundle[bundle].param.i == buffer.i ? bundle : IR_NONE;
}

/* Returns the scales of the stored weight whose codes begin at byte `begin` of its bundle. */
static struct view scales_of_stored_weight(const struct emit *e, uint32_t bundle, uint64_t begin)
{
    const struct weight_bundle_state *state = &e->weights.bundle[bundle];
    const struct bundle *row = &e->ir->bundle[state->ir_bundle_row];
    const enum frozen_storage storage = (enum frozen_storage)state->storage;
    uint64_t elements = 0, first = 0;
    for (uint32_t t = row->tensor_begin;; t++) {
        const struct tensor *tensor = &e->ir->tensor[t];
        const uint64_t bytes = frozen_storage_scale_bytes(storage, tensor->rows, tensor->cols);
        assert(t < row->tensor_begin + row->tensor_count);
        if (frozen_storage_code_bytes(storage, elements) == begin)
            return (struct view){state->scales, first, bytes};
        elements += (uint64_t)(tensor->rows * tensor->cols);
        first += bytes;
    }
}

/* Emits the pass that converts a stored weight [rows, cols] to the compute dtype, and returns its result. Returns w
 * itself if the weight is not stored. bitsandbytes runs this pass before each product that reads the weight, forward
 * and backward (bitsandbytes/autograd/_functions.py, MatMul4Bit). */
static struct view emit_dequantisation_if_stored(struct emit *e, struct view w, int64_t rows,
                                                 int64_t cols)
{
    const uint32_t bundle = stored_bundle_of_buffer(e, w.buffer);
    if (bundle == IR_NONE)
        return w;
    const struct work work = {.kind = WORK_DEQUANTISE,
                              .dequantise = {rows, cols, e->weights.bundle[bundle].storage}};
    const struct view read[] = {w, scales_of_stored_weight(e, bundle, w.begin)};
    const struct view wide = emit_compute_tensor(e, "w_wide", CATEGORY_PARAMETER, rows, cols);
    emit_op(e, e->stream.compute, &work, read, 2, &wide, 1);
    return wide;
}

void emit_matmul(struct emit *e, enum matmul_form form, struct view a, struct view b,
                 struct view bias, struct view y, int64_t m, int64_t n, int64_t k)
{
    struct work work = {.kind = WORK_MATMUL, .matmul = {m, n, k, form, EPILOGUE_NONE, 0}};
    if (form != MATMUL_TN)
        b = emit_dequantisation_if_stored(e, b, form == MATMUL_NT ? n : k,
                                          form == MATMUL_NT ? k : n);
    struct view read[5] = {a, b, bias};
    if (bias.count > 0)
        work.matmul.epilogue = EPILOGUE_BIAS;
    struct view product = y;
    if (form == MATMUL_NN && emit_narrow_rescales_result(e))
        product = emit_compute_tensor(e, "unscaled", CATEGORY_ACTIVATION, m, n);
    uint32_t reads = emit_narrow_operands(e, &work, read, bias.count > 0 ? 3 : 2);
    emit_op(e, e->stream.compute, &work, read, reads, &product, 1);
    if (product.buffer.i != y.buffer.i)
        emit_cast(e, product, y);
}

void emit_matmul_with_own_head_rows(struct emit *e, enum matmul_form form, struct view a,
                                    struct view b, struct view y, int64_t m, int64_t n, int64_t k)
{
    if (e->choices->hp == 1) {
        emit_matmul(e, form, a, b, view_none(), y, m, n, k);
        return;
    }
    struct work work = {.kind = WORK_MATMUL,
                        .matmul = {.m = m,
                                   .n = n,
                                   .k = k,
                                   .form = form,
                                   .groups = (int64_t)e->choices->hp,
                                   .part = 1 + e->group.hp}};
    emit_op(e, e->stream.compute, &work, (struct view[]){a, b}, 2, &y, 1);
}

void emit_grouped_matmul(struct emit *e, enum matmul_form form, struct view a, struct view b,
                         struct view bias, struct view y, struct expert_rows rows, int64_t n,
                         int64_t k)
{
    struct work work = {.kind = WORK_MATMUL,
                        .matmul = {.m = rows.capacity_rows,
                                   .n = n,
                                   .k = k,
                                   .form = form,
                                   .epilogue = bias.count > 0 ? EPILOGUE_BIAS : EPILOGUE_NONE,
                                   .groups = e->choices->model->experts / (int64_t)e->choices->ep,
                                   .route = rows.route,
                                   .dealt = rows.dealt,
                                   .kept = rows.kept}};
    struct view read[5] = {a, b, bias};
    e->narrow.is_experts = true;
    const uint32_t reads = emit_narrow_operands(e, &work, read, bias.count > 0 ? 3 : 2);
    e->narrow.is_experts = false;
    emit_op(e, e->stream.compute, &work, read, reads, &y, 1);
}
