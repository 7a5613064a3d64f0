/* Products in 8 or 4 bits (--products). This file decides which operands are quantised, where and how often.
 *
 * A copy of a tensor is made once, and all products that need it read it until the tensor is written again. The input
 * of a linear layer is read in the forward, and in the backward by the gradient of the weight; a gradient is read by
 * the gradients of input and of weight. A weight that stays whole during the step is quantised before its first use in
 * the step; a weight that is gathered is quantised after each gather. torchao quantises a weight in each forward and in
 * each backward.
 *
 * Each expert's matrix, and the rows of each expert, are quantised by themselves (TransformerEngine,
 * pytorch/module/grouped_linear.py, split_quantize(); torchao, torchao/prototype/moe_training). */
#include "schedule/emit/emit.h"

#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The tensor of a linear layer that an operand of a product is. */
enum operand_of_linear_layer { ROLE_INPUT, ROLE_WEIGHT, ROLE_GRADIENT };

/* The 8- or 4-bit copies of a tensor. */
struct narrow_copies_of_tensor {
    struct view source;
    struct view data[2], scales[2]; /* [1] is transposed; empty: the copy has not been made */
    bool has_copies_only;           /* the tensor itself has not been made */
    struct op_tags op_tags; /* of a weight: the labels that ops had when the copies were made */
    uint32_t next_row;      /* row of the next tensor in the same buffer; 0: none */
};

void emit_narrow_forget_all_copies(struct emit *e)
{
    e->narrow.last_norm_result.i = IR_NONE;
    e->narrow.count = 1; /* row 0 is not used, since 0 stands for none */
    if (e->narrow.first_narrow_copy_of_buffer != NULL)
        memset(e->narrow.first_narrow_copy_of_buffer, 0,
               e->narrow.buffer_capacity * sizeof *e->narrow.first_narrow_copy_of_buffer);
}

void emit_narrow_release(struct emit *e)
{
    free(e->narrow.copies);
    free(e->narrow.first_narrow_copy_of_buffer);
}

/* Returns the row with the copies of a view. Adds a row without copies if there is none for the view. */
static struct narrow_copies_of_tensor *find_or_add_narrow_copies(struct emit *e, struct view x)
{
    struct emit_narrow *n = &e->narrow;
    if (x.buffer.i >= n->buffer_capacity) {
        size_t capacity = n->buffer_capacity;
        n->first_narrow_copy_of_buffer =
            heap_grow(n->first_narrow_copy_of_buffer, &capacity, x.buffer.i + 1u,
                      sizeof *n->first_narrow_copy_of_buffer);
        memset(n->first_narrow_copy_of_buffer + n->buffer_capacity, 0,
               (capacity - n->buffer_capacity) * sizeof *n->first_narrow_copy_of_buffer);
        n->buffer_capacity = (uint32_t)capacity;
    }
    for (uint32_t i = n->first_narrow_copy_of_buffer[x.buffer.i]; i != 0; i = n->copies[i].next_row)
        if (n->copies[i].source.begin == x.begin && n->copies[i].source.count == x.count)
            return &n->copies[i];
    if (n->count == 0)
        n->count = 1;
    n->copies = heap_grow(n->copies, &n->capacity, n->count + 1u, sizeof *n->copies);
    n->copies[n->count] = (struct narrow_copies_of_tensor){
        .source = x, .next_row = n->first_narrow_copy_of_buffer[x.buffer.i]};
    n->first_narrow_copy_of_buffer[x.buffer.i] = n->count;
    return &n->copies[n->count++];
}

/* Returns whether a product that is emitted now multiplies in 8 or 4 bits. */
static bool is_narrow(const struct emit *e)
{
    return e->op_tags.region == REGION_LINEAR && e->op_tags.layer != IR_NONE16 &&
           !e->narrow.is_router && products_layer_is_narrow(e->choices, e->op_tags.layer);
}

/* Returns whether the parameters that products read now stay whole during the step. */
static bool read_parameters_stay_whole(const struct emit *e)
{
    const struct weight_ranks *ranks =
        e->narrow.is_experts && e->choices->ep > 1 ? &e->group.experts : &e->group.dense;
    return !(weights_shard_params(e->choices) && ranks->shard_size > 1);
}

/* Returns whether the copies of a weight are kept for the whole step, so that all micro-batches read them. */
static bool keeps_weight_copies(const struct emit *e)
{
    return read_parameters_stay_whole(e) && !e->choices->profile->backward_quantises_again;
}

/* Returns whether the choice of activations makes the backward compute linear layers of the forward again. With
 * CHOICE_ACTIVATIONS_SELECTIVE_CORE it computes only attention's core again. The modules of --recompute-modules do not
 * count: pass_discard() repeats the ops of the forward as they are, and the backward reads the copies that the repeated
 * ops make. As in TransformerEngine one pass of the repeated forward makes both copies of an input; the first forward
 * makes both, too, where it would need one. */
static bool recomputes_layers(const struct emit *e)
{
    const struct choices *c = e->choices;
    return c->activations != CHOICE_ACTIVATIONS_KEEP &&
           c->activations != CHOICE_ACTIVATIONS_RATIO &&
           c->activations != CHOICE_ACTIVATIONS_SELECTIVE_CORE;
}

/* True if a recomputed forward makes the copy again that the forward made: with whole layers, or if a module of
 * --recompute-modules drops it. */
static bool recomputes_copy(const struct emit *e, struct view copy)
{
    bool again = recomputes_layers(e);
    for (uint32_t i = e->recomputed_buffer_count; !again && copy.count > 0 && i-- > 0;)
        again = e->recomputed_buffers[i].buffer.i == copy.buffer.i;
    return again;
}

/* Forgets the copies of a weight that another micro-batch made, unless copies are kept (keeps_weight_copies()). In the
 * backward it also forgets those that the forward made, except where the backward reads the copies of a recomputed
 * forward. torchao makes new copies in each backward, with recomputation too. */
static void forget_weight_copies(struct emit *e, struct view w)
{
    struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, w);
    const struct op_tags *made = &copies->op_tags, *now = &e->op_tags;
    if (keeps_weight_copies(e))
        return;
    if (made->micro_batch != now->micro_batch ||
        (made->phase != now->phase &&
         (e->choices->profile->backward_quantises_again || !recomputes_copy(e, copies->data[0]))))
        *copies = (struct narrow_copies_of_tensor){
            .source = copies->source, .next_row = copies->next_row, .op_tags = *now};
}

/* True if the backward reads the copy of an input that the forward made; else the backward quantises the input again:
 * with torchao, which saves the input itself (torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args), and if
 * the input is recomputed. */
static bool saves_input_copies(const struct emit *e)
{
    return !recomputes_layers(e) && !e->choices->profile->backward_quantises_again;
}

/* True if one pass makes both copies of a tensor. A gradient needs both at once. An input or a weight needs the
 * transposed copy only in the backward, so one pass makes both only if copies are kept until then. With scales of
 * blocks, torchao has no kernel that makes both (torchao/testing/training/roofline_utils.py). */
static bool one_pass_makes_both_copies(const struct emit *e, enum operand_of_linear_layer role,
                                       struct view x)
{
    const enum scaling scaling = (enum scaling)products_recipe(e->choices)->scaling;
    bool makes_both_at_once = !e->choices->profile->backward_quantises_again ||
                              scaling == SCALING_TENSOR || scaling == SCALING_ROW;
    switch (role) {
    case ROLE_INPUT:
        return saves_input_copies(e) && (e->tensor.size == 1 || tensor_keeps_gathered(e->choices) ||
                                         x.buffer.i != e->narrow.last_gathered_buffer.i);
    case ROLE_WEIGHT:
        return keeps_weight_copies(e) && makes_both_at_once;
    default:
        return makes_both_at_once;
    }
}

/* Returns whether a pass of its own finds the largest element of a tensor. The result of a norm needs none with
 * TransformerEngine, whose norms write its largest element (csrc/extensions/normalization.cpp: FUSED_NORM_AMAX_FP8,
 * FUSED_NORM_AMAX_NVFP4). */
static bool needs_amax_pass(const struct emit *e, struct view x)
{
    const bool known = !e->choices->profile->backward_quantises_again &&
                       x.buffer.i == e->narrow.last_norm_result.i;
    return products_recipe(e->choices)->has_amax_pass && !known;
}

/* The sizes of an operand: one matrix or, for experts, `groups` matrices one after another. rows: the rows of all
 * matrices together. */
struct operand_matrix_sizes {
    int64_t rows, cols, groups;
    int64_t route, dealt; /* of the rows of experts */
};

/* Emits the op that quantises x, and records the copies that it makes: the one that `turned` selects, or both. */
static void emit_quantise(struct emit *e, enum operand_of_linear_layer role, struct view x,
                          struct operand_matrix_sizes size, bool turned, bool both)
{
    static const char *const stems[] = {
        [ROLE_INPUT] = "x_narrow", [ROLE_WEIGHT] = "w_narrow", [ROLE_GRADIENT] = "dy_narrow"};
    const struct products_recipe *recipe = products_recipe(e->choices);
    const enum scaling scaling =
        (enum scaling)(role == ROLE_WEIGHT ? recipe->weight_scaling : recipe->scaling);
    const enum dtype dtype = (enum dtype)(role == ROLE_INPUT    ? recipe->input_dtype
                                          : role == ROLE_WEIGHT ? recipe->weight_dtype
                                                                : recipe->gradient_dtype);
    const int64_t halves = dtype == DTYPE_E2M1X2 ? 2 : 1;
    const enum category category = role == ROLE_WEIGHT ? CATEGORY_PARAMETER : CATEGORY_ACTIVATION;
    struct work work = {.kind = WORK_QUANTISE,
                        .quantise = {.rows = size.rows,
                                     .cols = size.cols,
                                     .scaling = scaling,
                                     .turned = turned && !both,
                                     .both = both,
                                     .amax = needs_amax_pass(e, x),
                                     .groups = size.groups,
                                     .route = size.route,
                                     .dealt = size.dealt}};
    const int64_t count = size.rows * size.cols;
    struct view written_views[4];
    uint32_t writes = 0;
    assert(count == (int64_t)x.count);
    for (int t = 0; t < 2; t++) {
        if (!both && t != turned)
            continue;
        struct view data =
            emit_tensor(e, stems[role], category, dtype, (count + halves - 1) / halves, 0);
        const struct scaling_layout layout = work_scale_layout(&work, t);
        struct view scales = emit_tensor(e, "scales", category, scaling_scale_dtype(scaling),
                                         scaling_layout_scale_count(&layout), 0);
        struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, x);
        copies->data[t] = written_views[writes++] = data;
        copies->scales[t] = written_views[writes++] = scales;
        /* recomputation does not make these copies again */
        if (role == ROLE_WEIGHT && keeps_weight_copies(e)) {
            saved_buffers_add(&e->buffers_never_recomputed, data.buffer);
            saved_buffers_add(&e->buffers_never_recomputed, scales.buffer);
        }
    }
    emit_op(e, e->stream.compute, &work, &x, 1, written_views, writes);
}

/* Makes the transposed copy of x, a tensor that was gathered in 8 bits or a quantised weight, by transposing its copy
 * in the tensor's own order. Both copies have the same scales. */
static void transpose_gathered_copy(struct emit *e, enum operand_of_linear_layer role,
                                    struct view x, int64_t rows)
{
    const struct view data = find_or_add_narrow_copies(e, x)->data[0];
    const bool weight = role == ROLE_WEIGHT;
    struct view turned = emit_tensor(e, weight ? "w_turned" : "turned",
                                     weight ? CATEGORY_PARAMETER : CATEGORY_ACTIVATION,
                                     dtype_of_view(e, data), (int64_t)data.count, 0);
    emit_pack_or_unpack(e, WORK_PACK, data, turned, rows, (int64_t)data.count / rows, 1);
    if (weight) /* recomputation does not make it again */
        saved_buffers_add(&e->buffers_never_recomputed, turned.buffer);
    struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, x);
    copies->data[1] = turned;
    copies->scales[1] = copies->scales[0];
}

/* If the bundle of w stores quantised weights (--primary-weights), records the quantised weight as the copy of w. */
static void use_primary_weight_as_narrow_copy(struct emit *e, struct view w,
                                              struct operand_matrix_sizes size)
{
    const struct weight_bundle_state *bundle = NULL;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++)
        if (e->weights.bundle[b].param.i == w.buffer.i)
            bundle = &e->weights.bundle[b];
    if (bundle == NULL || bundle->narrow.i == IR_NONE)
        return;
    const struct products_recipe *recipe = products_recipe(e->choices);
    const uint64_t halves = recipe->weight_dtype == DTYPE_E2M1X2 ? 2 : 1;
    const struct work work = {.kind = WORK_QUANTISE,
                              .quantise = {.rows = size.rows,
                                           .cols = size.cols,
                                           .scaling = recipe->weight_scaling,
                                           .groups = size.groups}};
    const struct scaling_layout layout = work_scale_layout(&work, 0);
    const struct view all = view_whole(e, bundle->narrow_scales);
    const uint64_t scales = (uint64_t)scaling_layout_scale_count(&layout);
    uint64_t begin = w.begin * all.count / bundle->elements;
    if (begin + scales > all.count)
        begin = all.count - scales;
    struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, w);
    copies->data[0] =
        (struct view){bundle->narrow, w.begin / halves, (w.count + halves - 1) / halves};
    copies->scales[0] = (struct view){all.buffer, begin, scales};
    copies->has_copies_only = true;
}

/* If x is some rows of a tensor of which tensor ranks gathered only the 8-bit copy, records these rows of that copy,
 * with its scale, as the copy of x. */
static void record_rows_of_gathered_copy(struct emit *e, struct view x)
{
    const struct emit_narrow *n = &e->narrow;
    if (find_or_add_narrow_copies(e, x)->data[0].count > 0)
        return;
    for (uint32_t i = n->first_narrow_copy_of_buffer[x.buffer.i]; i != 0;
         i = n->copies[i].next_row) {
        const struct narrow_copies_of_tensor whole = n->copies[i];
        if (!whole.has_copies_only || whole.source.begin > x.begin ||
            x.begin + x.count > whole.source.begin + whole.source.count)
            continue;
        struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, x);
        copies->data[0] =
            view_slice(whole.data[0], (int64_t)(x.begin - whole.source.begin), (int64_t)x.count);
        copies->scales[0] = whole.scales[0];
        copies->has_copies_only = true;
        return;
    }
}

/* Returns the copy of an operand (`turned`: the transposed one, if products need such copies), and sets *scales to its
 * scales. Emits the op that makes the copy if there is none. */
static struct view make_or_find_narrow_copy(struct emit *e, enum operand_of_linear_layer role,
                                            struct view x, struct operand_matrix_sizes size,
                                            bool turned, struct view *scales)
{
    const bool pairs = products_need_transposed_copies(e->choices);
    turned = turned && pairs;
    if (role == ROLE_WEIGHT) {
        forget_weight_copies(e, x);
        use_primary_weight_as_narrow_copy(e, x, size);
    } else
        record_rows_of_gathered_copy(e, x);
    if (find_or_add_narrow_copies(e, x)->data[turned].count == 0 &&
        find_or_add_narrow_copies(e, x)->has_copies_only)
        transpose_gathered_copy(e, role, x, size.rows);
    else if (find_or_add_narrow_copies(e, x)->data[turned].count == 0)
        emit_quantise(e, role, x, size, turned,
                      pairs && !turned && one_pass_makes_both_copies(e, role, x));
    const struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, x);
    *scales = copies->scales[turned];
    return copies->data[turned];
}

uint32_t emit_narrow_operands(struct emit *e, struct work *work, struct view *read, uint32_t reads)
{
    static const struct {
        uint8_t a, b;            /* enum operand_of_linear_layer */
        bool a_turned, b_turned; /* the product sums over the operand's rows */
    } roles[MATMUL_FORM_COUNT] = {
        [MATMUL_NT] = {ROLE_INPUT, ROLE_WEIGHT, false, false},
        [MATMUL_NN] = {ROLE_GRADIENT, ROLE_WEIGHT, false, true},
        [MATMUL_TN] = {ROLE_GRADIENT, ROLE_INPUT, true, true},
    };
    const struct choices *c = e->choices;
    if (!is_narrow(e))
        return reads;
    const struct products_recipe *recipe = products_recipe(c);
    const enum matmul_form form = (enum matmul_form)work->matmul.form;
    const int64_t m = work->matmul.m, n = work->matmul.n, k = work->matmul.k;
    const bool a_turned = roles[form].a_turned, b_turned = roles[form].b_turned;
    const int64_t groups = work->matmul.groups;
    struct operand_matrix_sizes a = {.rows = a_turned ? k : m,
                                     .cols = a_turned ? m : k,
                                     .groups = groups,
                                     .route = work->matmul.route,
                                     .dealt = work->matmul.dealt};
    struct operand_matrix_sizes b = a;
    b.rows = b_turned ? k : n;
    b.cols = b_turned ? n : k;
    if (roles[form].b == ROLE_WEIGHT)
        b = (struct operand_matrix_sizes){
            .rows = b.rows * (groups > 1 ? groups : 1), .cols = b.cols, .groups = groups};
    read[0] = make_or_find_narrow_copy(e, (enum operand_of_linear_layer)roles[form].a, read[0], a,
                                       a_turned, &read[reads]);
    read[1] = make_or_find_narrow_copy(e, (enum operand_of_linear_layer)roles[form].b, read[1], b,
                                       b_turned, &read[reads + 1]);
    work->matmul.scaling = form == MATMUL_TN ? recipe->scaling : recipe->weight_scaling;
    /* The operands now both have k, over which the product sums, as their innermost axis. That is the form NT; the
     * product of experts' gradients keeps its form and says so by `turned`. */
    if (products_need_transposed_copies(c) && form == MATMUL_TN && groups > 1)
        work->matmul.turned = 1;
    else if (products_need_transposed_copies(c))
        work->matmul.form = MATMUL_NT;
    return reads + 2;
}

bool emit_narrow_gathers_in_8_bits(const struct emit *e)
{
    const struct products_recipe *recipe = products_recipe(e->choices);
    return is_narrow(e) && recipe->scaling == SCALING_TENSOR && recipe->has_amax_pass;
}

bool emit_narrow_rescales_result(const struct emit *e)
{
    return is_narrow(e) && products_recipe(e->choices)->scaling == SCALING_ROW &&
           e->choices->profile->backward_quantises_again;
}

struct view emit_narrow_copy_of_own_rows(struct emit *e, bool gradient, struct view x, int64_t cols,
                                         uint8_t stream, uint16_t group)
{
    const struct products_recipe *recipe = products_recipe(e->choices);
    const enum dtype dtype = (enum dtype)(gradient ? recipe->gradient_dtype : recipe->input_dtype);
    const int64_t rows = (int64_t)x.count / cols;
    if (find_or_add_narrow_copies(e, x)->data[0].count > 0 && saves_input_copies(e))
        return find_or_add_narrow_copies(e, x)->data[0];
    struct view largest = emit_tensor(e, "amax", CATEGORY_ACTIVATION, DTYPE_F32, 1, 0),
                all = emit_tensor(e, "amax_all", CATEGORY_ACTIVATION, DTYPE_F32, 1, 0);
    struct work work = {
        .kind = WORK_QUANTISE,
        .quantise = {rows, cols, SCALING_TENSOR, 0, 0, needs_amax_pass(e, x), 0, 1, 0}};
    emit_op(e, e->stream.compute, &work, &x, 1, &largest, 1);
    struct work reduce = {.kind = WORK_ALL_REDUCE,
                          .all_reduce = {group, bytes_of_view(e, largest), REDUCE_MAX}};
    emit_op(e, stream, &reduce, &largest, 1, &all, 1);
    struct view data = emit_tensor(e, gradient ? "dy_narrow" : "x_narrow", CATEGORY_ACTIVATION,
                                   dtype, rows * cols, 0);
    struct view scales = emit_tensor(e, "scales", CATEGORY_ACTIVATION, DTYPE_F32, 1, 0);
    work.quantise.finds = 0;
    work.quantise.amax = 0;
    work.quantise.given = 1;
    emit_op(e, e->stream.compute, &work, (struct view[]){x, all}, 2, (struct view[]){data, scales},
            2);
    struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, x);
    copies->data[0] = data;
    copies->scales[0] = scales;
    return data;
}

void emit_narrow_set_gathered_copy(struct emit *e, struct view part, struct view y,
                                   struct view data)
{
    const struct view scales = find_or_add_narrow_copies(e, part)->scales[0];
    struct narrow_copies_of_tensor *copies = find_or_add_narrow_copies(e, y);
    copies->data[0] = data;
    copies->scales[0] = scales;
    copies->has_copies_only = true;
}
