#include "exec/training.h"

#include "base/arena.h"
#include "exec/number.h"
#include "schedule/ir/id_map.h"
#include "schedule/ir/visible.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- seeded numbers and initial values ---- */

/* Returns output number i of splitmix64 (Steele, Lea, Flood 2014) as a number in [0, 1). */
static double uniform_number(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

void training_random_tokens(int32_t *tokens, size_t count, int64_t vocab, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)(uniform_number(seed, i) * (double)vocab);
}

static double round_to_dtype(enum dtype dtype, double value)
{
    double rounded_value; /* has room for every dtype */
    number_write_element(&rounded_value, dtype, 0, value);
    return number_read_element(&rounded_value, dtype, 0);
}

/* Returns the dtype of AdamW's moments; f32 if the schedule has no moments. */
static enum dtype moment_dtype(const struct ir *ir)
{
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        uint16_t binding = ir->buffer.binding[b];
        if (binding != IR_NONE16 && ir->binding[binding].kind == BINDING_MOMENT1)
            return (enum dtype)ir->buffer.dtype[b];
    }
    return DTYPE_F32;
}

/* Makes the codes and scales of stored weights from the initial values of the reference or, without a reference, from
 * random values within cols^-0.5 of 0. */
static void encode_stored(struct training *t)
{
    for (uint32_t i = 0; t->stored != NULL && i < t->ir->tensor_count; i++) {
        const struct tensor *tensor = &t->ir->tensor[i];
        const size_t count = (size_t)(tensor->rows * tensor->cols);
        double *drawn = NULL;
        if (t->stored[i].codes == NULL)
            continue;
        if (t->reference == NULL) {
            drawn = heap_alloc(count, sizeof *drawn);
            for (size_t k = 0; k < count; k++)
                drawn[k] =
                    (2 * uniform_number(t->options.seed + i, k) - 1) / sqrt((double)tensor->cols);
        }
        stored_tensors_encode(&t->stored[i], tensor,
                              drawn != NULL ? drawn : t->initial_values[0][i]);
        free(drawn);
    }
    t->bindings.stored = t->stored;
}

/* Sets the reference's weights that the schedule stores in 4 or 8 bits to the values of their codes and scales. */
static void decode_stored(const struct training *t, struct reference *r)
{
    for (uint32_t i = 0; t->bindings.stored != NULL && i < t->ir->tensor_count; i++)
        if (t->stored[i].codes != NULL)
            stored_tensors_decode(&t->stored[i], &t->ir->tensor[i],
                                  training_find_tensor(r, t->ir->tensor[i].name)->param);
}

/* Sets the reference's weights, rounded to the schedule's dtype, and, unless options.starts_from_zero_moments is set,
 * its moments (TRAINING_MOMENT_SCALE). */
static void set_initial_values(const struct training *t, struct reference *r)
{
    enum dtype moments = moment_dtype(t->ir);
    reference_init_weights(r, t->options.seed);
    for (size_t n = 0; n < r->tensor_count; n++) {
        struct reference_tensor *tensor = &r->tensors[n];
        for (size_t i = 0; i < tensor->count; i++) {
            tensor->param[i] = round_to_dtype((enum dtype)t->ir->dtype, tensor->param[i]);
        }
        for (size_t i = 0; i < tensor->count && !t->options.starts_from_zero_moments; i++) {
            double m = uniform_number(t->options.seed + n, 2 * i),
                   v = uniform_number(t->options.seed + n, 2 * i + 1);
            tensor->m[i] = round_to_dtype(moments, TRAINING_MOMENT_SCALE * (m - 0.5));
            tensor->v[i] =
                round_to_dtype(moments, TRAINING_MOMENT_SCALE * TRAINING_MOMENT_SCALE * (0.25 + v));
        }
    }
    decode_stored(t, r);
}

/* ---- the schedule's tensors in the model ---- */

/* Returns the length of a tensor's name without the part that names a block of its rows: of "w13.weight:gate" it is the
 * length of "w13.weight". */
static size_t name_length_without_block(const char *name)
{
    return strcspn(name, ":");
}

struct reference_tensor *training_find_tensor(const struct reference *reference, const char *name)
{
    char name_without_block[128];
    size_t size = name_length_without_block(name);
    if (size >= sizeof name_without_block)
        return NULL;
    memcpy(name_without_block, name, size);
    name_without_block[size] = '\0';
    return reference_find_tensor(reference, name_without_block);
}

/* Returns how many rows of one of the model's tensors the schedule has, as one tensor or as several blocks. */
static int64_t tensor_rows_in_schedule(const struct ir *ir, const char *name)
{
    size_t size = strlen(name);
    int64_t rows = 0;
    for (uint32_t i = 0; i < ir->tensor_count; i++)
        if (name_length_without_block(ir->tensor[i].name) == size &&
            memcmp(ir->tensor[i].name, name, size) == 0)
            rows += ir->tensor[i].rows;
    return rows;
}

static enum status match_tensors(struct training *t, struct diag *diag)
{
    const struct ir *ir = t->ir;
    const struct loc at = {.name = t->name};
    for (int k = 0; k < 3; k++)
        t->initial_values[k] = heap_zalloc(ir->tensor_count + 1, sizeof *t->initial_values[k]);
    for (uint32_t i = 0; i < ir->tensor_count; i++) {
        const struct tensor *want = &ir->tensor[i];
        struct reference_tensor *tensor = training_find_tensor(t->reference, want->name);
        if (tensor == NULL)
            return diag_error(diag, at, STATUS_BAD_INPUT, "the model has no tensor '%s'",
                              want->name);
        bool block = want->name[name_length_without_block(want->name)] != '\0';
        bool fits = block ? want->rows <= tensor->rows - want->first_row
                          : want->rows == tensor->rows && want->first_row == 0;
        if (!fits || tensor->cols != want->cols)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "tensor '%s' is %" PRId64 " x %" PRId64 " here and %" PRId64
                              " x %" PRId64 " in the model",
                              want->name, want->rows, want->cols, tensor->rows, tensor->cols);
        t->initial_values[0][i] = tensor->param + want->first_row * want->cols;
        t->initial_values[1][i] = tensor->m + want->first_row * want->cols;
        t->initial_values[2][i] = tensor->v + want->first_row * want->cols;
    }
    for (size_t n = 0; n < t->reference->tensor_count; n++) {
        const char *name = t->reference->tensors[n].name;
        if (tensor_rows_in_schedule(ir, name) < t->reference->tensors[n].rows)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "the schedule lacks the model's tensor '%s'", name);
    }
    t->bindings.params = t->initial_values[0];
    t->bindings.moment1 = t->initial_values[1];
    t->bindings.moment2 = t->initial_values[2];
    return STATUS_OK;
}

bool training_has_binding(const struct ir *ir, enum binding_kind kind)
{
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.binding[b] != IR_NONE16 && ir->binding[ir->buffer.binding[b]].kind == kind)
            return true;
    return false;
}

static void set_collection_targets(struct training *t)
{
    for (int kind = BINDING_PARAM; kind <= BINDING_MOMENT2; kind++) {
        if (!training_has_binding(t->ir, (enum binding_kind)kind))
            continue;
        t->collected[kind] = heap_zalloc(t->ir->tensor_count + 1, sizeof *t->collected[kind]);
        for (uint32_t i = 0; i < t->ir->tensor_count; i++)
            t->collected[kind][i] = heap_zalloc(
                (size_t)t->ir->tensor[i].rows * (size_t)t->ir->tensor[i].cols, sizeof(double));
        t->bindings.collected[kind] = t->collected[kind];
    }
}

double training_heap_bytes(const struct transformer *model, const struct training_options *options)
{
    double each = options->makes_reference ? 4 * sizeof(double) : 0; /* param, grad, m, v */
    each += options->collects_tensors ? (BINDING_MOMENT2 - BINDING_PARAM + 1) * sizeof(double) : 0;
    return model != NULL ? each * (double)(transformer_parameters(model) +
                                           transformer_adapter_parameters(model))
                         : 0;
}

/* True if ranks compute one whole sequence at a time: no mesh axis cuts sequences, and a micro-batch is one
 * sequence. */
static bool ranks_have_whole_sequences(const struct ir *ir)
{
    static const char *const cuts[] = {"tp", "cp", "hp"};
    for (uint32_t i = 0; i < ir->mesh.axis_count; i++)
        for (size_t k = 0; k < ARRAY_LEN(cuts); k++)
            if (ir->mesh.axis[i].size > 1 && strncmp(ir->mesh.axis[i].name, cuts[k], 2) == 0)
                return false;
    return ir->micro_batch == 1;
}

enum training_eight_bit_vs_reference
training_find_eight_bit_products(const struct ir *ir, struct reference_eight_bit_products *products)
{
    bool whole = ranks_have_whole_sequences(ir), any = false;
    int64_t experts = 0, copies = 0;
    *products = (struct reference_eight_bit_products){.first_layer = INT64_MAX};
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work->kind == WORK_ROUTE) {
            experts = work->route.experts;
            copies = work->route.copies;
        }
        if (work->kind != WORK_MATMUL || work->matmul.scaling == SCALING_NONE ||
            ir->op.layer[op] == IR_NONE16)
            continue;
        const uint8_t a = ir->buffer.dtype[ir_touched_buffer(ir, op, 0)];
        const int64_t layer = ir->op.layer[op], scaling = work->matmul.scaling;
        any = true;
        products->first_layer = layer < products->first_layer ? layer : products->first_layer;
        products->layer_end = layer >= products->layer_end ? layer + 1 : products->layer_end;
        if (ir->op.phase[op] == PHASE_BACKWARD) {
            products->gradient_dtype = a;
            continue;
        }
        products->input_dtype = a;
        products->weight_dtype = ir->buffer.dtype[ir_touched_buffer(ir, op, 1)];
        products->weight_scaling = (uint8_t)scaling;
        products->scaling = (uint8_t)(scaling == SCALING_BLOCK ? SCALING_VECTOR : scaling);
        const bool of_experts = work_row_group_count(work) > 1;
        whole = whole && (!of_experts || work_row_group_count(work) == experts) &&
                work->matmul.m == ir->layout.sequence_tokens * (of_experts ? copies : 1);
    }
    if (!any)
        products->first_layer = 0;
    return !any    ? TRAINING_EIGHT_BIT_NO_PRODUCTS
           : whole ? TRAINING_EIGHT_BIT_SAME_OPERANDS
                   : TRAINING_EIGHT_BIT_OTHER_OPERANDS;
}

static bool has_work_kind(const struct ir *ir, enum work_kind kind)
{
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == kind)
            return true;
    return false;
}

enum status training_init(struct training *t, const struct ir *ir, const char *name,
                          const struct transformer *model, const struct training_options *options,
                          struct diag *diag)
{
    assert(model != NULL || !options->makes_reference);
    assert(options->makes_reference || !options->collects_tensors);
    *t = (struct training){.ir = ir, .name = name, .options = *options, .bindings = {.ir = ir}};
    enum status status = bindings_check(&t->bindings, name, diag);
    if (status != STATUS_OK)
        return status;
    t->stored = stored_tensors_new(ir);
    if (!options->makes_reference) {
        encode_stored(t);
        return status;
    }
    t->reference = reference_new(model);
    t->reference->router_weights_at_activation = has_work_kind(ir, WORK_PERMUTE_WEIGHTS);
    struct reference_eight_bit_products products;
    if (training_find_eight_bit_products(ir, &products) == TRAINING_EIGHT_BIT_SAME_OPERANDS)
        t->reference->eight_bit_products = products;
    status = match_tensors(t, diag);
    if (status == STATUS_OK && t->stored != NULL) {
        set_initial_values(t, t->reference);
        encode_stored(t);
    }
    if (status == STATUS_OK && options->collects_tensors)
        set_collection_targets(t);
    return status;
}

void training_release(struct training *t)
{
    for (int kind = 0; kind < BINDING_KIND_COUNT; kind++) {
        for (uint32_t i = 0; t->collected[kind] != NULL && i < t->ir->tensor_count; i++)
            free(t->collected[kind][i]);
        free((void *)t->collected[kind]);
    }
    for (int k = 0; k < 3; k++)
        free((void *)t->initial_values[k]);
    stored_tensors_free(t->stored, t->ir);
    reference_free(t->reference);
    free(t->losses);
    *t = (struct training){0};
}

/* ---- steps of a schedule and of the reference ---- */

static size_t tokens_per_batch(const struct ir *ir)
{
    return (size_t)ir->global_batch * (size_t)ir->layout.sequence_tokens;
}

/* The arguments of draw_weights(), which draws the blocks of a buffer. */
struct weights_draw {
    const struct training *training;
    exec_draw_function *draw_block;
    void *context;
};

/* Draws weights as those with which models begin: norms 1, biases 0, and matrices with standard deviation cols^-0.5, so
 * that a product is about as large as its input. Attention scores are then of size 1 and outputs vary, so that operands
 * draw as much power as a real model's. With options.draws_weights_near_zero all weights have the deviation
 * TRAINING_NEAR_ZERO_DEVIATION about 0. A block of rows gets the numbers of its place in the whole tensor, so that the
 * values do not depend on the schedule. */
static void draw_weights(void *context, const struct bindings_block *b)
{
    const struct weights_draw *d = context;
    const struct tensor *tensor = &d->training->ir->tensor[b->tensor];
    bool flat = d->training->options.draws_weights_near_zero,
         norm = reference_is_norm(tensor->name);
    double deviation = flat                                      ? TRAINING_NEAR_ZERO_DEVIATION
                       : norm || reference_is_bias(tensor->name) ? 0
                                                                 : 1 / sqrt((double)tensor->cols);
    const struct draw draw = {
        .seed = hash_word(d->training->options.seed,
                          hash_text(tensor->name, name_length_without_block(tensor->name))),
        .rows = b->rows,
        .cols = b->cols,
        .first_element = (uint64_t)(tensor->first_row * tensor->cols) + b->tensor_offset,
        .row_stride = b->row_stride,
        .centre = norm && !flat ? 1 : 0,
        .scale = (float)(deviation / DRAW_SUM_DEVIATION),
    };
    d->draw_block(d->context, b->buffer_offset, &draw);
}

bool training_draw_buffer(void *user, const struct exec_buffer *buffer, exec_draw_function *block,
                          void *context)
{
    struct weights_draw drawing = {user, block, context};
    enum binding_kind kind = (enum binding_kind)buffer->buffer_binding->kind;
    if (drawing.training->reference != NULL || kind > BINDING_MOMENT2 ||
        stored_tensors_is_source_of_buffer(buffer))
        return false;
    if (kind == BINDING_PARAM || kind == BINDING_MASTER)
        bindings_for_each_block(buffer, draw_weights, &drawing);
    return true;
}

static enum status fill_bound_buffer(void *user, const struct exec_buffer *buffer,
                                     struct diag *diag)
{
    struct training *t = user;
    t->bindings.tokens = t->batches + buffer->step * tokens_per_batch(t->ir);
    return bindings_fill_buffer(&t->bindings, buffer, diag);
}

static enum status collect_bound_buffer(void *user, const struct exec_buffer *buffer,
                                        struct diag *diag)
{
    struct training *t = user;
    enum status status = bindings_collect_buffer(&t->bindings, buffer, diag);
    t->losses[buffer->step] = t->bindings.loss; /* complete once all ranks have been read */
    return status;
}

static struct exec_adamw adamw_of_run(const struct training *t, const struct exec_adamw *adamw)
{
    struct exec_adamw from = *adamw;
    from.step_number =
        t->options.starts_from_zero_moments || t->reference == NULL ? 1 : TRAINING_STEP;
    return from;
}

/* Returns a digest of what the steps read: the options from which initial values follow, and the tokens of the
 * batches. */
static uint64_t input_digest(const struct training *t, size_t batch_count)
{
    const struct training_options *o = &t->options;
    const uint64_t numbers[] = {o->seed, o->draws_weights_near_zero, o->starts_from_zero_moments,
                                o->makes_reference, o->collects_tensors};
    return hash_word(hash_text((const char *)numbers, sizeof numbers),
                     hash_text((const char *)t->batches,
                               batch_count * tokens_per_batch(t->ir) * sizeof *t->batches));
}

enum status training_run_schedule(struct training *t, const struct exec_options *options,
                                  struct exec_result *result, struct diag *diag)
{
    struct exec_options run = *options;
    struct exec_io io = {.user = t,
                         .fill = fill_bound_buffer,
                         .draw = training_draw_buffer,
                         .read = collect_bound_buffer,
                         .read_each_step = run.runs_back_to_back ? 0 : 1u << BINDING_LOSS,
                         .read_after_last_step =
                             t->options.collects_tensors ? UINT32_MAX : 1u << BINDING_LOSS};
    uint32_t steps = run.warmup_steps + (run.measured_steps > 0 ? run.measured_steps : 1);
    run.adamw = adamw_of_run(t, &options->adamw);
    run.input_digest = input_digest(t, run.runs_back_to_back ? 1 : steps);
    if (t->reference != NULL)
        set_initial_values(t, t->reference);
    free(t->losses);
    t->losses = heap_zalloc(steps, sizeof *t->losses);
    t->bindings.last_collected_step_plus_1 = 0;
    t->bindings.differing_replica_elements = 0;
    return exec_run(t->ir, t->name, &run, &io, result, diag);
}

bool training_clips_gradients(const struct ir *ir)
{
    return has_work_kind(ir, WORK_SQUARE_SUM);
}

/* Rounds parameters and moments to `dtype`, that of the optimizer's states: with bf16 states no wider copy is kept
 * between steps. */
static void round_optimizer_states(struct reference *r, enum dtype dtype)
{
    for (size_t n = 0; n < r->tensor_count; n++) {
        struct reference_tensor *tensor = &r->tensors[n];
        for (size_t i = 0; i < tensor->count; i++) {
            tensor->param[i] = round_to_dtype(dtype, tensor->param[i]);
            tensor->m[i] = round_to_dtype(dtype, tensor->m[i]);
            tensor->v[i] = round_to_dtype(dtype, tensor->v[i]);
        }
    }
}

void training_update_reference(struct reference *reference, const struct ir *ir,
                               const struct exec_adamw *adamw, int64_t step)
{
    const struct reference_adamw a = {adamw->lr, adamw->beta1, adamw->beta2, adamw->eps,
                                      adamw->weight_decay};
    double factor = 1;
    if (training_clips_gradients(ir))
        factor = reference_clip_factor(reference, adamw->max_norm);
    reference_scale_gradients(reference, factor);
    reference_adamw_step(reference, &a, step);
    if (moment_dtype(ir) == DTYPE_BF16)
        round_optimizer_states(reference, DTYPE_BF16);
    if (!has_work_kind(ir, WORK_CLIP))
        reference_scale_gradients(reference, 1 / factor);
}

/* Returns how ranks route tokens to experts. routed_piece_count is the number of permutations in the forward of one
 * layer with experts, in its first micro-batch. If ops have more units than there are micro-batches, the units are
 * subsequences, which are routed separately. */
static struct reference_routing reference_routing_of_schedule(const struct ir *ir)
{
    struct reference_routing routing = {.layout = &ir->layout,
                                        .micro_batch = ir->micro_batch,
                                        .uneven_expert_routing =
                                            ir->routing.expert_count > 0 ? &ir->routing : NULL};
    uint32_t first = IR_NONE, size, units = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        if (ir->op.kind[op] != WORK_PERMUTE || ir->op.phase[op] != PHASE_FORWARD)
            continue;
        first = first == IR_NONE ? op : first;
        routing.routed_piece_count +=
            ir->op.layer[op] == ir->op.layer[first] && ir->op.micro[op] == ir->op.micro[first];
        units = ir->op.micro[op] >= units ? ir->op.micro[op] + 1u : units;
    }
    ir_rank_index_along_axes(ir, 0, ir_mask_of_axes_named(ir, "dp"), &size);
    routing.routes_by_subsequence = units > ir->global_batch / size / ir->micro_batch;
    routing.routed_piece_count = routing.routed_piece_count > 0 ? routing.routed_piece_count : 1;
    return routing;
}

enum status training_run_reference(struct training *t, const struct exec_adamw *adamw,
                                   uint32_t steps, double *loss, struct diag *diag)
{
    assert(t->reference != NULL);
    const struct reference_routing routing = reference_routing_of_schedule(t->ir);
    int64_t first = adamw_of_run(t, adamw).step_number;
    set_initial_values(t, t->reference);
    for (uint32_t i = 0; i < steps; i++) {
        struct reference_batch batch = {.tokens = t->batches + i * tokens_per_batch(t->ir),
                                        .routing = &routing,
                                        .sequences = t->ir->global_batch,
                                        .seq_len = t->ir->layout.sequence_tokens,
                                        .documents = &t->ir->documents};
        enum status status = reference_gradients(t->reference, &batch, &loss[i], diag);
        if (status != STATUS_OK)
            return status;
        training_update_reference(t->reference, t->ir, adamw, first + i);
    }
    return STATUS_OK;
}

void training_repeat_reference_update(struct training *t, const struct exec_adamw *adamw)
{
    set_initial_values(t, t->reference);
    training_update_reference(t->reference, t->ir, adamw, adamw_of_run(t, adamw).step_number);
}

enum dtype training_coarsest_result_dtype(const struct ir *ir)
{
    enum dtype coarsest_dtype = DTYPE_F64;
    for (uint32_t op = 0; op < ir->op.count; op++)
        for (uint32_t k = ir->op.read_count[op];
             k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++) {
            enum dtype dtype = (enum dtype)ir->buffer.dtype[ir_touched_buffer(ir, op, k)];
            if (number_significand_bits(dtype) > 0 &&
                number_significand_bits(dtype) < number_significand_bits(coarsest_dtype))
                coarsest_dtype = dtype;
        }
    return coarsest_dtype;
}

enum status training_run_rounded_reference(const struct training *t, struct reference *r,
                                           const struct exec_adamw *adamw, uint64_t seed,
                                           double *loss, struct diag *diag)
{
    const struct reference_routing routing = reference_routing_of_schedule(t->ir);
    const struct reference_batch batch = {
        .tokens = t->batches,
        .routing = &routing,
        .sequences = t->ir->global_batch,
        .seq_len = t->ir->layout.sequence_tokens,
        .documents = &t->ir->documents,
    };
    enum dtype dtype = training_coarsest_result_dtype(t->ir);
    set_initial_values(t, r);
    r->rounding = (struct reference_rounding){.significand_bits = number_significand_bits(dtype),
                                              .min_exponent = number_min_exponent(dtype),
                                              .seed = seed};
    enum status status = reference_gradients(r, &batch, loss, diag);
    if (status == STATUS_OK)
        training_update_reference(r, t->ir, adamw, adamw_of_run(t, adamw).step_number);
    return status;
}

static bool op_reads_tokens(const struct ir *ir, uint32_t op)
{
    uint16_t binding = ir->buffer.binding[ir_read_view(ir, op, 0).buffer.i];
    return binding != IR_NONE16 && ir->binding[binding].kind == BINDING_TOKENS;
}

int64_t training_vocab_rows(const struct ir *ir)
{
    int64_t vocab = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work->kind != WORK_EMBEDDING || !op_reads_tokens(ir, op))
            continue;
        /* the part of this rank begins at `first` and, if the table is cut over a group, at the part's index times its
         * rows */
        int64_t part = work_sharding_group(work);
        int64_t end = work->embedding.first +
                      work->embedding.vocab *
                          (part < 0 ? 1 : (int64_t)group_rank_count(&ir->mesh, &ir->group[part]));
        vocab = end > vocab ? end : vocab;
    }
    /* the last part of the table may have rows for padding; the loss states the number of tokens */
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work->kind == WORK_CROSS_ENTROPY_PARTIAL && work->loss_partial.total > 0 &&
            work->loss_partial.total < vocab)
            vocab = work->loss_partial.total;
    }
    return vocab;
}
