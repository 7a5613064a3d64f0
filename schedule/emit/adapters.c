#include "schedule/emit/adapters.h"

#include "schedule/choices/chains.h"

#include <assert.h>

/* The linear layers (adapter targets) that one product of the schedule stands for. */
struct product_targets {
    enum adapter_target first;
    uint32_t count;
    int64_t inputs, rows;
    int64_t output_columns[ADAPTERS_OF_PRODUCT]; /* columns of each target */
    bool has_adapter[ADAPTERS_OF_PRODUCT];       /* the layer has the target's adapter */
    /* the first target whose adapter the layer has; `count`: it has none */
    uint32_t first_target_with_adapter;
};

static struct product_targets product_targets_of(const struct emit *e, uint32_t layer,
                                                 enum adapter_target first, uint32_t count,
                                                 int64_t rows)
{
    const struct transformer *model = e->choices->model;
    struct product_targets t = {.first = first,
                                .count = count,
                                .inputs = transformer_adapter_in_features(model, first),
                                .rows = rows,
                                .first_target_with_adapter = count};
    assert(count <= ADAPTERS_OF_PRODUCT);
    for (uint32_t i = count; i-- > 0;) {
        const enum adapter_target target = (enum adapter_target)(first + i);
        t.output_columns[i] = transformer_adapter_out_features(model, target);
        t.has_adapter[i] = transformer_layer_has_adapter(model, layer, target);
        if (t.has_adapter[i])
            t.first_target_with_adapter = i;
    }
    return t;
}

static enum weight adapter_weight_of_target(const struct product_targets *t, uint32_t i,
                                            bool second)
{
    return (enum weight)(WEIGHT_ADAPTER_Q_A + 2 * (int)(t->first + i) + second);
}

/* True if the adapters are those of PEFT over Transformers' layers, in a step that computes in 16 bits. */
static bool has_peft_adapters(const struct emit *e)
{
    const struct choices *c = e->choices;
    return (c->profile->chains == CHAINS_HF || c->profile->chains == CHAINS_HF_AUTOCAST) &&
           c->dtype != DTYPE_F32;
}

/* True if each adapter casts what it reads to fp32 and back. PEFT's adapters do so over layers with 16-bit weights.
 * Over layers of bitsandbytes, with weights in 8 or 4 bits, they leave the cast to autocast (peft/tuners/lora/bnb.py,
 * Linear4bit.forward()). */
static bool casts_adapter_input(const struct emit *e)
{
    return has_peft_adapters(e) && e->choices->frozen_weights == FROZEN_STORAGE_16BIT;
}

/* Emits a cast of x to fp32, the dtype of the adapter's weights, and one back to the compute dtype. Returns the
 * latter's result. */
static struct view cast_to_fp32_and_back(struct emit *e, struct view x, int64_t rows, int64_t cols)
{
    struct view wide = emit_tensor(e, "adapter_wide", CATEGORY_ACTIVATION, DTYPE_F32, rows, cols);
    emit_cast(e, x, wide);
    return emit_cast(e, wide,
                     emit_compute_tensor(e, "adapter_in", CATEGORY_ACTIVATION, rows, cols));
}

/* Emits the pass that joins the results of all targets, parts[], to the columns of `whole` (WORK_UNPACK), or that
 * splits the gradient `whole` into parts[] (WORK_PACK). */
static void emit_join_or_split(struct emit *e, enum work_kind kind, const struct product_targets *t,
                               const struct view *parts, struct view whole)
{
    struct work work = {.kind = (uint8_t)kind, .pack = {t->rows, 1, {0, 0, 0}}};
    for (uint32_t i = 0; i < t->count; i++)
        work.pack.w[i] = t->output_columns[i];
    if (kind == WORK_UNPACK)
        emit_op(e, e->stream.compute, &work, parts, t->count, &whole, 1);
    else
        emit_op(e, e->stream.compute, &work, &whole, 1, parts, t->count);
}

void adapters_forward(struct emit *e, uint32_t layer, enum adapter_target first, uint32_t count,
                      struct view x, struct view y, int64_t rows, struct adapters_saved *saved)
{
    const struct product_targets t = product_targets_of(e, layer, first, count, rows);
    const int64_t rank = e->choices->model->adapter_rank;
    struct view part[ADAPTERS_OF_PRODUCT];
    if (t.first_target_with_adapter == count)
        return;
    for (uint32_t i = 0; i < count; i++) {
        part[i] =
            emit_compute_tensor(e, "adapter_out", CATEGORY_ACTIVATION, rows, t.output_columns[i]);
        if (!t.has_adapter[i]) {
            emit_zeros(e, part[i]);
            continue;
        }
        saved->x[i] =
            casts_adapter_input(e) ? cast_to_fp32_and_back(e, x, rows, t.inputs) : view_none();
        saved->narrow[i] =
            emit_compute_tensor(e, "adapter_narrow", CATEGORY_ACTIVATION, rows, rank);
        emit_matmul(e, MATMUL_NT, casts_adapter_input(e) ? saved->x[i] : x,
                    weight_view(e, layer, adapter_weight_of_target(&t, i, false)), view_none(),
                    saved->narrow[i], rows, rank, t.inputs);
        emit_matmul(e, MATMUL_NT, saved->narrow[i],
                    weight_view(e, layer, adapter_weight_of_target(&t, i, true)), view_none(),
                    part[i], rows, t.output_columns[i], rank);
    }
    struct view all = part[0];
    if (count > 1) {
        all = emit_compute_tensor(e, "adapters_out", CATEGORY_ACTIVATION, (int64_t)y.count, 0);
        emit_join_or_split(e, WORK_UNPACK, &t, part, all);
    } else if (has_peft_adapters(e)) {
        all = emit_cast(
            e, all,
            emit_compute_tensor(e, "adapters_out", CATEGORY_ACTIVATION, (int64_t)y.count, 0));
    }
    emit_add(e, y, all, y);
}

void adapters_backward(struct emit *e, uint32_t layer, enum adapter_target first, uint32_t count,
                       struct view dy, struct view x, struct view dx, int64_t rows,
                       const struct adapters_saved *saved)
{
    const struct product_targets t = product_targets_of(e, layer, first, count, rows);
    const int64_t rank = e->choices->model->adapter_rank;
    struct view part[ADAPTERS_OF_PRODUCT] = {dy};
    if (t.first_target_with_adapter == count)
        return;
    for (uint32_t i = 0; i < count && (count > 1 || has_peft_adapters(e)); i++)
        part[i] =
            emit_compute_tensor(e, "d_adapter", CATEGORY_ACTIVATION, rows, t.output_columns[i]);
    if (count > 1)
        emit_join_or_split(e, WORK_PACK, &t, part, dy);
    else if (has_peft_adapters(e))
        emit_cast(e, dy, part[0]);
    for (uint32_t i = 0; i < count; i++) {
        if (!t.has_adapter[i])
            continue;
        const enum weight a = adapter_weight_of_target(&t, i, false),
                          b = adapter_weight_of_target(&t, i, true);
        struct view d_narrow =
            emit_compute_tensor(e, "d_adapter_narrow", CATEGORY_ACTIVATION, rows, rank);
        struct view d_x =
            emit_compute_tensor(e, "d_adapter_in", CATEGORY_ACTIVATION, rows, t.inputs);
        emit_matmul(e, MATMUL_NN, part[i], weight_view(e, layer, b), view_none(), d_narrow, rows,
                    rank, t.output_columns[i]);
        emit_weight_grad(e, layer, b, part[i], saved->narrow[i], t.output_columns[i], rank, rows);
        emit_matmul(e, MATMUL_NN, d_narrow, weight_view(e, layer, a), view_none(), d_x, rows,
                    t.inputs, rank);
        emit_weight_grad(e, layer, a, d_narrow, casts_adapter_input(e) ? saved->x[i] : x, rank,
                         t.inputs, rows);
        if (casts_adapter_input(e))
            d_x = cast_to_fp32_and_back(e, d_x, rows, t.inputs);
        emit_add(e, dx, d_x, dx);
    }
}
