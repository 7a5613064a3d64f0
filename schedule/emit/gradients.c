/* The gradients of weights and biases. A product that is the gradient of a weight is computed in one of three ways.
 *
 * At once: the usual way. The product is written to the gradient, or adds to it.
 *
 * Deferred: the product is only recorded, in the list e->weights.deferred, and emit_deferred_gradients() emits what a
 * list holds. Pipelines that split backwards (zb-1p, zb-v) do so in an action several units later; with
 * --expert-overlap delayed-wgrad, emit_gradients_delayed_for_overlap() does so later in the same layer. Column sums,
 * the gradients of biases, are deferred as well.
 *
 * Late: the product is computed at once, but into a 16-bit buffer of its own. emit_add_late_products_to_grads() adds it
 * to the gradient after the backward of the micro-batch (profile switch adds_grads_after_backward).
 *
 * A weight gradient to which several pieces of the tokens contribute may be summed in an fp32 buffer of its own
 * (emit_fp32_sum_begin()): the buffer is filled with zeros, the product of each piece in the compute dtype is added,
 * and at the end the sum is cast to the gradient (DeepSpeed's fpdt_layer.py: grad_w1.add_(torch.matmul(...)),
 * grad_w1.to(dtype)). */
#include "schedule/choices/profile.h"
#include "schedule/emit/emit.h"

#include <assert.h>

/* Returns the number of experts that a rank has. */
static int64_t own_expert_count(const struct emit *e)
{
    return e->choices->model->experts / (int64_t)e->choices->ep;
}

void emit_fp32_sum_begin(struct emit *e, uint32_t part, enum weight weight)
{
    const struct choices *c = e->choices;
    if (c->attention != CHOICE_ATTENTION_FPDT || !c->profile->fpdt_sums_weight_gradients_in_fp32 ||
        e->weights.deferred != NULL || weight_is_frozen(e, weight))
        return;
    assert(e->weights.fp32_sum_by_weight[weight].count == 0);
    int64_t count = (int64_t)weight_view(e, part, weight).count;
    e->weights.fp32_sum_by_weight[weight] =
        emit_zeros(e, emit_tensor(e, "grad_sum", CATEGORY_GRADIENT, DTYPE_F32, count, 0));
}

/* Emits the product of one piece of the tokens, in the compute dtype, and adds it to the weight's fp32 sum. */
static void add_piece_product_to_fp32_sum(struct emit *e, enum weight weight, struct view dy,
                                          struct view x, int64_t m, int64_t n, int64_t k)
{
    struct view sum = e->weights.fp32_sum_by_weight[weight];
    struct view piece = emit_compute_tensor(e, "grad_piece", CATEGORY_GRADIENT, m * n, 0);
    emit_matmul(e, MATMUL_TN, dy, x, view_none(), piece, m, n, k);
    emit_add(e, sum, piece, sum);
}

void emit_fp32_sum_end(struct emit *e, uint32_t part, enum weight weight)
{
    struct view sum = e->weights.fp32_sum_by_weight[weight];
    bool accumulate;
    if (sum.count == 0)
        return;
    struct view dw = grad_view(e, part, weight, &accumulate), to = dw;
    if (accumulate)
        to = emit_tensor(e, "grad_piece", CATEGORY_GRADIENT, (enum dtype)e->weights.grad_dtype,
                         (int64_t)dw.count, 0);
    emit_cast(e, sum, to);
    if (accumulate)
        emit_add(e, dw, to, dw);
    e->weights.fp32_sum_by_weight[weight] = view_none();
}

/* Appends a gradient to the list of deferred ones, with the labels that ops get now. */
static void defer_gradient(struct emit *e, struct deferred_gradient what)
{
    struct deferred_gradient_list *to = e->weights.deferred;
    struct deferred_gradient *row = arena_alloc(&e->arena, sizeof *row);
    *row = what;
    row->op_tags = e->op_tags;
    if (to->end == NULL)
        to->end = &to->first;
    *to->end = row;
    to->end = &row->next;
}

void emit_deferred_gradients(struct emit *e, struct deferred_gradient_list *deferred_gradient_list)
{
    struct op_tags tags = e->op_tags;
    for (const struct deferred_gradient *row = deferred_gradient_list->first; row != NULL;
         row = row->next) {
        e->op_tags = row->op_tags;
        e->op_tags.phase = PHASE_WEIGHT_GRADIENT;
        /* a row with m > 0 is a product, one with m = 0 a column sum */
        if (row->m > 0 && weight_is_of_experts(row->weight))
            emit_expert_grad(e, row->part, row->weight, row->dy, row->x, row->m, row->n,
                             (struct expert_rows){row->k, row->route, row->dealt, row->kept});
        else if (row->covers_own_heads_only)
            emit_grad_of_own_head_rows(e, row->part, row->weight, row->dy, row->x, row->m, row->n,
                                       row->k);
        else if (row->m > 0)
            emit_weight_grad(e, row->part, row->weight, row->dy, row->x, row->m, row->n, row->k);
        else
            emit_expert_bias_grad(e, row->part, row->weight, row->dy,
                                  (struct expert_rows){row->k, row->route, row->dealt, row->kept},
                                  row->n);
    }
    *deferred_gradient_list = (struct deferred_gradient_list){0};
    e->op_tags = tags;
}

void emit_gradients_delayed_for_overlap(struct emit *e)
{
    struct deferred_gradient_list *delayed = e->weights.deferred;
    if (delayed == NULL || e->choices->expert_overlap != EXPERT_OVERLAP_DELAYED_WGRAD)
        return;
    e->weights.deferred = NULL;
    emit_deferred_gradients(e, delayed);
    e->weights.deferred = delayed;
}

/* Records a product for emit_add_late_products_to_grads(), which adds it to the gradient `to` or, if `accumulate` is
 * false, casts it into `to`. */
static void record_late_gradient_product(struct emit *e, struct view product, struct view to,
                                         bool accumulate)
{
    struct late_gradient_product *row = arena_alloc(&e->arena, sizeof *row);
    *row = (struct late_gradient_product){
        .product = product, .to = to, .accumulate = accumulate, .op_tags = e->op_tags};
    if (e->weights.late_end == NULL)
        e->weights.late_end = &e->weights.late;
    *e->weights.late_end = row;
    e->weights.late_end = &row->next;
}

void emit_add_late_products_to_grads(struct emit *e)
{
    const struct op_tags tags = e->op_tags;
    for (const struct late_gradient_product *row = e->weights.late; row != NULL; row = row->next) {
        e->op_tags = row->op_tags;
        if (row->accumulate)
            emit_add(e, row->to, row->product, row->to);
        else
            emit_cast(e, row->product, row->to);
    }
    e->weights.late = NULL;
    e->weights.late_end = NULL;
    e->op_tags = tags;
}

void emit_weight_grad(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                      struct view x, int64_t m, int64_t n, int64_t k)
{
    if (weight_is_frozen(e, weight))
        return;
    if (e->weights.deferred != NULL) {
        defer_gradient(
            e, (struct deferred_gradient){
                   .part = part, .weight = weight, .dy = dy, .x = x, .m = m, .n = n, .k = k});
        return;
    }
    if (e->weights.fp32_sum_by_weight[weight].count > 0) {
        add_piece_product_to_fp32_sum(e, weight, dy, x, m, n, k);
        return;
    }
    bool accumulate;
    struct view dw = grad_view(e, part, weight, &accumulate), product = dw;
    e->narrow.is_router = weight == WEIGHT_ROUTER;
    const bool late =
        e->choices->profile->adds_grads_after_backward && dtype_of_view(e, dw) != e->choices->dtype;
    /* The product gets a buffer of its own in three cases: it must still be multiplied by scales; it is the gradient of
     * autocast's 16-bit copy, which autograd casts to the parameter's dtype; or it is added late. */
    const bool apart = emit_narrow_rescales_result(e) || e->weights.uses_autocast || late;
    const bool adds = accumulate && !apart;
    struct work work = {.kind = WORK_MATMUL,
                        .matmul = {m, n, k, MATMUL_TN, EPILOGUE_NONE, adds, 0}};
    struct view read[5] = {dy, x, dw};
    uint32_t reads = adds ? 3 : 2;
    if (apart)
        product =
            emit_compute_tensor(e, e->weights.uses_autocast || late ? "grad_16bit" : "unscaled",
                                CATEGORY_GRADIENT, m, n);
    reads = emit_narrow_operands(e, &work, read, reads);
    e->narrow.is_router = false;
    emit_op(e, e->stream.compute, &work, read, reads, &product, 1);
    if (late)
        record_late_gradient_product(e, product, dw, accumulate);
    else if (apart && accumulate)
        emit_add(e, dw, product, dw);
    else if (apart)
        emit_cast(e, product, dw);
}

/* Emits, or defers, the gradient of a weight as one product of `groups` matrices; does nothing if the weight is frozen.
 * The groups are the head ranks' rows of the weight if grad->covers_own_heads_only, else experts. */
static void emit_grouped_grad(struct emit *e, const struct deferred_gradient *grad, int64_t groups)
{
    if (weight_is_frozen(e, grad->weight))
        return;
    if (e->weights.deferred != NULL) {
        defer_gradient(e, *grad);
        return;
    }
    bool accumulate;
    struct view dw = grad_view(e, grad->part, grad->weight, &accumulate);
    struct work work = {.kind = WORK_MATMUL,
                        .matmul = {.m = grad->m,
                                   .n = grad->n,
                                   .k = grad->k,
                                   .form = MATMUL_TN,
                                   .accumulate = accumulate,
                                   .groups = groups,
                                   .part = grad->covers_own_heads_only ? 1 + e->group.hp : 0,
                                   .route = grad->route,
                                   .dealt = grad->dealt,
                                   .kept = grad->kept}};
    struct view read[5] = {grad->dy, grad->x, dw};
    uint32_t reads = accumulate ? 3 : 2;
    if (!grad->covers_own_heads_only) {
        e->narrow.is_experts = true;
        reads = emit_narrow_operands(e, &work, read, reads);
        e->narrow.is_experts = false;
    }
    emit_op(e, e->stream.compute, &work, read, reads, &dw, 1);
}

void emit_grad_of_own_head_rows(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                                struct view x, int64_t m, int64_t n, int64_t k)
{
    const struct deferred_gradient grad = {.part = part,
                                           .weight = weight,
                                           .dy = dy,
                                           .x = x,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .covers_own_heads_only = true};
    if (e->choices->hp == 1)
        emit_weight_grad(e, part, weight, dy, x, m, n, k);
    else
        emit_grouped_grad(e, &grad, (int64_t)e->choices->hp);
}

void emit_expert_grad(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                      struct view x, int64_t m, int64_t n, struct expert_rows rows)
{
    const struct deferred_gradient grad = {.part = part,
                                           .weight = weight,
                                           .dy = dy,
                                           .x = x,
                                           .m = m,
                                           .n = n,
                                           .k = rows.capacity_rows,
                                           .route = rows.route,
                                           .dealt = rows.dealt,
                                           .kept = rows.kept};
    emit_grouped_grad(e, &grad, own_expert_count(e));
}

void emit_bias_grad(struct emit *e, uint32_t part, enum weight bias, struct view dy, int64_t rows,
                    int64_t cols)
{
    emit_expert_bias_grad(e, part, bias, dy, (struct expert_rows){.capacity_rows = rows}, cols);
}

void emit_expert_bias_grad(struct emit *e, uint32_t part, enum weight bias, struct view dy,
                           struct expert_rows rows, int64_t cols)
{
    if (!has_weight(e, bias) || weight_is_frozen(e, bias))
        return;
    if (e->weights.deferred != NULL) {
        defer_gradient(e, (struct deferred_gradient){.part = part,
                                                     .weight = bias,
                                                     .dy = dy,
                                                     .n = cols,
                                                     .k = rows.capacity_rows,
                                                     .route = rows.route,
                                                     .dealt = rows.dealt});
        return;
    }
    bool accumulate;
    struct view db = grad_view(e, part, bias, &accumulate);
    struct work work = {
        .kind = WORK_COLUMN_SUM,
        .column_sum = {.rows = rows.capacity_rows,
                       .cols = cols,
                       .accumulate = accumulate,
                       .groups = weight_is_of_experts(bias) ? own_expert_count(e) : 0,
                       .route = rows.route,
                       .dealt = rows.dealt}};
    struct view read[2] = {dy, db};
    emit_op(e, e->stream.compute, &work, read, accumulate ? 2 : 1, &db, 1);
}
