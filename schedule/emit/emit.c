#include "schedule/emit/emit.h"

#include "schedule/config/derived.h"

#include <assert.h>

buffer_id emit_buffer(struct emit *e, const char *stem, enum category category, enum dtype dtype,
                      int64_t d0, int64_t d1)
{
    struct buffer_desc desc = {
        .stem = stem,
        .number = IR_NONE,
        .memory = MEMORY_HBM,
        .dtype = (uint8_t)dtype,
        .category = (uint8_t)category,
        .role = e->role,
        .layer = e->op_tags.layer,
        .binding = IR_NONE16,
        .dims = {.count = d1 > 0 ? 2 : 1, .size = {d0, d1}},
    };
    return ir_add_buffer(e->ir, &desc);
}

buffer_id emit_activation_buffer(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    return emit_buffer(e, stem, CATEGORY_ACTIVATION, e->choices->dtype, rows, cols);
}

struct view view_whole(const struct emit *e, buffer_id buffer)
{
    return ir_whole_view(e->ir, buffer);
}

struct view emit_tensor(struct emit *e, const char *stem, enum category category, enum dtype dtype,
                        int64_t d0, int64_t d1)
{
    return view_whole(e, emit_buffer(e, stem, category, dtype, d0, d1));
}

struct view emit_compute_tensor(struct emit *e, const char *stem, enum category category,
                                int64_t d0, int64_t d1)
{
    return emit_tensor(e, stem, category, (enum dtype)e->choices->dtype, d0, d1);
}

struct view emit_tensor_like(struct emit *e, struct view x, int64_t count, const char *stem,
                             enum memory memory)
{
    enum category category = (enum category)e->ir->buffer.category[x.buffer.i];
    struct view y = emit_tensor(e, stem, category, dtype_of_view(e, x), count, 0);
    e->ir->buffer.memory[y.buffer.i] = (uint8_t)memory;
    return y;
}

buffer_id emit_bound_buffer(struct emit *e, const char *stem, struct binding binding,
                            enum category category, enum dtype dtype, int64_t count)
{
    buffer_id buffer = emit_buffer(e, stem, category, dtype, count, 0);
    e->ir->buffer.binding[buffer.i] = ir_add_binding(e->ir, binding);
    e->ir->buffer.flags[buffer.i] = BUFFER_PERSISTENT;
    return buffer;
}

enum dtype dtype_of_view(const struct emit *e, struct view x)
{
    return (enum dtype)e->ir->buffer.dtype[x.buffer.i];
}

int64_t bytes_of_view(const struct emit *e, struct view x)
{
    return (int64_t)(x.count * dtype_bytes(dtype_of_view(e, x)));
}

struct view view_rows(buffer_id buffer, int64_t begin, int64_t rows, int64_t cols)
{
    return (struct view){buffer, (uint64_t)(begin * cols), (uint64_t)(rows * cols)};
}

struct view view_slice(struct view view, int64_t begin, int64_t count)
{
    assert(begin >= 0 && count >= 0 && (uint64_t)(begin + count) <= view.count);
    return (struct view){view.buffer, view.begin + (uint64_t)begin, (uint64_t)count};
}

uint32_t part_index_of_embedding_or_head(const struct emit *e, enum embedding_or_head_part part)
{
    return (uint32_t)e->choices->model->layers + part;
}

bool has_weight(const struct emit *e, enum weight weight)
{
    return e->weights.slot[0][weight].rows > 0 || e->weights.slot[1][weight].rows > 0;
}

const struct weight_offset_and_shape *weight_offset_and_shape_of(const struct emit *e,
                                                                 uint32_t part, enum weight weight)
{
    bool experts = part < (uint32_t)e->whole_model->layers &&
                   transformer_layer_has_experts(e->whole_model, part);
    return &e->weights.slot[experts][weight];
}

/* Returns the part of the model that owns a weight, and sets *weight to its name there. A tied head is the embedding's
 * table; learned positions are a part of their own. Any other weight belongs to `part`. */
static uint32_t find_part_that_owns_weight(const struct emit *e, uint32_t part, enum weight *weight)
{
    if (*weight == WEIGHT_HEAD && e->choices->model->tied_head) {
        *weight = WEIGHT_EMBEDDING;
        return part_index_of_embedding_or_head(e, PART_EMBEDDING);
    }
    return *weight == WEIGHT_POSITIONS ? part_index_of_embedding_or_head(e, PART_POSITIONS) : part;
}

/* Returns the bundle that holds this weight of a part of the model. */
static uint32_t bundle_of_weight(const struct emit *e, uint32_t part, enum weight weight)
{
    const struct model_part *p = &e->weights.part[part];
    if (weight_is_of_adapter(weight))
        return p->adapters_bundle;
    if (weight_is_stored(e, weight) && p->stored_bundle != IR_NONE)
        return p->stored_bundle;
    return weight_is_of_experts(weight) && p->experts_bundle != IR_NONE ? p->experts_bundle
                                                                        : p->bundle;
}

bool weight_bundle_update_is_sharded(const struct emit *e, uint32_t bundle)
{
    const struct weight_bundle_state *b = &e->weights.bundle[bundle];
    return !b->is_frozen && e->choices->weights != CHOICE_WEIGHTS_REPLICATED &&
           b->ranks->shard_size > 1;
}

bool weight_is_stored(const struct emit *e, enum weight weight)
{
    static const bool is_linear[WEIGHT_COUNT] = {
        [WEIGHT_QKV] = true, [WEIGHT_Q_DOWN] = true,  [WEIGHT_Q_UP] = true,
        [WEIGHT_Q] = true,   [WEIGHT_KV_DOWN] = true, [WEIGHT_KV_UP] = true,
        [WEIGHT_O] = true,   [WEIGHT_UP] = true,      [WEIGHT_DOWN] = true,
    };
    return e->choices->frozen_weights != FROZEN_STORAGE_16BIT && is_linear[weight];
}

bool weight_is_frozen(const struct emit *e, enum weight weight)
{
    return e->choices->model->adapter_rank > 0 && !weight_is_of_adapter(weight);
}

static struct view weight_view_in_buffer(const struct emit *e, uint32_t part, enum weight weight,
                                         buffer_id buffer)
{
    const struct weight_offset_and_shape *slot = weight_offset_and_shape_of(e, part, weight);
    const struct model_part *p = &e->weights.part[part];
    const uint32_t bundle = bundle_of_weight(e, part, weight);
    assert(slot->rows > 0 && bundle != IR_NONE);
    if (bundle == p->stored_bundle) { /* the view counts bytes of codes, not elements */
        const enum frozen_storage storage = (enum frozen_storage)e->weights.bundle[bundle].storage;
        return (struct view){
            buffer,
            frozen_storage_code_bytes(storage, p->first_stored_element_in_bundle + slot->offset),
            frozen_storage_code_bytes(storage, (uint64_t)(slot->rows * slot->cols))};
    }
    const uint64_t first = bundle == p->bundle            ? p->first_element
                           : bundle == p->adapters_bundle ? p->first_adapter_element_in_bundle
                                                          : p->first_expert_element_in_bundle;
    return (struct view){buffer, first + slot->offset, (uint64_t)(slot->rows * slot->cols)};
}

struct view weight_view(const struct emit *e, uint32_t part, enum weight weight)
{
    part = find_part_that_owns_weight(e, part, &weight);
    return weight_view_in_buffer(e, part, weight,
                                 e->weights.bundle[bundle_of_weight(e, part, weight)].param);
}

/* Returns a bit mask of the weights of a part that a bundle holds; 0: it holds none of them, or this stage does not
 * have the part. */
static uint64_t weight_mask_of_bundle(const struct emit *e, uint32_t part, uint32_t bundle)
{
    const struct model_part *p = &e->weights.part[part];
    uint64_t mask = 0;
    for (int w = 0; w < WEIGHT_COUNT; w++)
        mask |= (uint64_t)(bundle_of_weight(e, part, (enum weight)w) == bundle) << w;
    return p->bundle == IR_NONE ? 0 : mask;
}

/* Zeroes the gradient of a bundle in a pass of its own. All its weights then count as written. */
static void emit_zero_gradient(struct emit *e, uint32_t bundle)
{
    uint8_t region = e->op_tags.region;
    e->op_tags.region = REGION_WEIGHT_COLLECTIVES;
    emit_zeros(e, view_whole(e, e->weights.bundle[bundle].grad));
    e->op_tags.region = region;
    for (uint32_t p = 0; p < part_index_of_embedding_or_head(e, END_PARTS); p++)
        e->weights.written[p] |= weight_mask_of_bundle(e, p, bundle);
}

struct view grad_view(struct emit *e, uint32_t part, enum weight weight, bool *accumulate)
{
    part = find_part_that_owns_weight(e, part, &weight);
    const uint32_t bundle = bundle_of_weight(e, part, weight);
    if (weights_have_zeroing_and_nan_checks(e->choices) &&
        (e->weights.written[part] & weight_mask_of_bundle(e, part, bundle)) == 0)
        emit_zero_gradient(e, bundle);
    /* Spread experts that no shard group divides have one gradient for all micro-batches. Its mask is that of the first
     * micro-batch. */
    uint64_t *touched = e->weights.bundle[bundle].has_spread_experts &&
                                e->weights.bundle[bundle].ranks->shard_size == 1
                            ? e->weights.written_weight_masks_by_micro_batch
                            : e->weights.written;
    *accumulate = (touched[part] >> weight) & 1;
    touched[part] |= UINT64_C(1) << weight;
    return weight_view_in_buffer(e, part, weight, e->weights.bundle[bundle].grad);
}

op_id emit_op_after(struct emit *e, op_id after, uint8_t stream, const struct work *work,
                    const struct view *read, uint32_t reads, const struct view *write,
                    uint32_t writes)
{
    op_id wait[2];
    uint32_t waits = 0;
    bool computes = stream == e->stream.compute && work->kind != WORK_HOST_SYNC;
    if (after.i != IR_NONE)
        wait[waits++] = after;
    if (computes && e->awaited_by_next_compute.i != IR_NONE) {
        wait[waits++] = e->awaited_by_next_compute;
        e->awaited_by_next_compute.i = IR_NONE;
    }
    struct op_desc desc = {
        .work = *work,
        .stream = stream,
        .read_count = (uint8_t)reads,
        .write_count = (uint8_t)writes,
        .guard = e->guard,
        .wait_count = (uint16_t)waits,
        .tags = e->op_tags,
        .read = read,
        .write = write,
        .wait = wait,
    };
    op_id op = ir_add_op(e->ir, &desc);
    for (uint32_t k = 0; k < writes; k++)
        emit_narrow_forget_copies(e, write[k].buffer);
    if (computes)
        e->last_compute = op;
    return op;
}

op_id emit_op(struct emit *e, uint8_t stream, const struct work *work, const struct view *read,
              uint32_t reads, const struct view *write, uint32_t writes)
{
    return emit_op_after(e, (op_id){IR_NONE}, stream, work, read, reads, write, writes);
}

void emit_host_wait(struct emit *e, uint8_t stream)
{
    struct work work = {.kind = WORK_HOST_SYNC};
    emit_op(e, stream, &work, NULL, 0, NULL, 0);
}

struct view emit_zeros(struct emit *e, struct view x)
{
    struct work work = {.kind = WORK_FILL, .elements = {(int64_t)x.count, 0}};
    emit_op(e, e->stream.compute, &work, NULL, 0, &x, 1);
    return x;
}

op_id emit_host_device_copy(struct emit *e, enum work_kind kind, bool blocking, struct view x,
                            struct view y)
{
    struct work work = {.kind = (uint8_t)kind, .copy = {bytes_of_view(e, x), blocking}};
    return emit_op(e, kind == WORK_D2H ? e->stream.d2h : e->stream.h2d, &work, &x, 1, &y, 1);
}

struct view emit_cast(struct emit *e, struct view x, struct view y)
{
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)x.count, 0}};
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

struct view emit_in_dtype(struct emit *e, struct view x, enum dtype dtype, const char *stem,
                          enum category category)
{
    if (dtype_of_view(e, x) == dtype)
        return x;
    return emit_cast(e, x, emit_tensor(e, stem, category, dtype, (int64_t)x.count, 0));
}

struct view emit_pack_or_unpack(struct emit *e, enum work_kind kind, struct view x, struct view y,
                                int64_t rows, int64_t parts, int64_t width)
{
    struct work work = {.kind = (uint8_t)kind, .pack = {rows, parts, {width, 0, 0}}};
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

op_id emit_message(struct emit *e, enum work_kind kind, uint8_t stream, int64_t by, struct view x,
                   int64_t channel)
{
    bool sends = kind == WORK_SEND;
    struct work work = {.kind = (uint8_t)kind,
                        .p2p = {e->group.pp, by, bytes_of_view(e, x), channel, 0}};
    return emit_op(e, stream, &work, &x, sends, &x, !sends);
}

int64_t activation_function_to_emit(const struct emit *e)
{
    static const uint8_t function_of_activation[ACTIVATION_COUNT] = {
        [ACTIVATION_GEGLU] = FUNCTION_GELU,
        [ACTIVATION_RELU2] = FUNCTION_RELU2,
        [ACTIVATION_SWIGLU_CLAMPED] = FUNCTION_CLAMPED,
    };
    return function_of_activation[e->choices->model->activation];
}

void emit_add(struct emit *e, struct view a, struct view b, struct view y)
{
    emit_add_bias(e, a, b, view_none(), y);
}

void emit_add_bias(struct emit *e, struct view a, struct view b, struct view bias, struct view y)
{
    struct work work = {.kind = WORK_ADD, .elements = {(int64_t)y.count, (int64_t)bias.count}};
    emit_op(e, e->stream.compute, &work, (struct view[]){a, b, bias}, bias.count > 0 ? 3 : 2, &y,
            1);
}

/* True if the norm with this weight is a LayerNorm. The norms of q, of k and of latents never are. */
static bool is_layernorm(const struct emit *e, enum weight weight)
{
    return e->choices->model->norm == NORM_LAYERNORM && weight != WEIGHT_Q_NORM &&
           weight != WEIGHT_K_NORM && weight != WEIGHT_Q_DOWN_NORM && weight != WEIGHT_KV_DOWN_NORM;
}

struct view emit_new_norm_stats_tensor(struct emit *e, enum weight weight, int64_t rows,
                                       int64_t beside)
{
    int64_t each = is_layernorm(e, weight) ? 2 : 1, more = (beside + 3) / 4;
    struct view all =
        emit_tensor(e, "stats", CATEGORY_ACTIVATION, DTYPE_F32,
                    more > 0 ? rows * each + more : rows, more == 0 && each > 1 ? each : 0);
    return view_slice(all, 0, rows * each);
}

struct view emit_new_residual_stream_tensor(struct emit *e)
{
    int64_t rows = e->unit.own_rows, h = e->choices->model->hidden;
    int64_t wide = e->kept_extra_bytes.input / 2;
    return view_slice(view_whole(e, emit_activation_buffer(e, "x", rows, h * (1 + wide))), 0,
                      rows * h);
}

struct view view_of_residual(const struct emit *e, buffer_id x)
{
    struct view all = view_whole(e, x);
    uint64_t count = (uint64_t)(e->unit.own_rows * e->choices->model->hidden);
    return all.count > count ? view_slice(all, 0, (int64_t)count) : all;
}

void emit_norm(struct emit *e, uint32_t part, enum weight weight, struct view x, struct view y,
               struct view stats, int64_t rows, int64_t cols)
{
    const bool layernorm = is_layernorm(e, weight), bare = !has_weight(e, weight);
    struct work work = {.kind = layernorm ? WORK_LAYERNORM : WORK_RMSNORM, .rows = {rows, cols, 0}};
    e->narrow.last_norm_result = y.buffer;
    struct view read[3] = {x, bare ? view_none() : weight_view(e, part, weight)};
    if (bare)
        work.rmsnorm.bare = 1;
    if (layernorm)
        read[2] = weight_view(e, part, weight + 1);
    emit_op(e, e->stream.compute, &work, read,
            layernorm ? 3
            : bare    ? 1
                      : 2,
            (struct view[]){y, stats}, 2);
}

static struct view new_gradient_that_nothing_reads(struct emit *e, int64_t cols)
{
    return emit_tensor(e, "unread_grad", CATEGORY_WORKSPACE, (enum dtype)e->weights.grad_dtype,
                       cols, 0);
}

/* Returns the bytes per element that exist only while an implementation runs the backward of this norm
 * (schedule/choices/kept.def). */
static int64_t norm_backward_temp_bytes_per_element(const struct emit *e, enum weight weight)
{
    const struct kept_bytes_row *kept = &e->kept_extra_bytes;
    switch (weight) {
    case WEIGHT_NORM1:
    case WEIGHT_NORM2:
    case WEIGHT_FINAL_NORM:
        return kept->d_norm;
    case WEIGHT_NORM1_AFTER:
    case WEIGHT_NORM2_AFTER:
        return kept->d_narrow > 0 ? kept->d_narrow + 2 : 0;
    case WEIGHT_Q_NORM:
    case WEIGHT_K_NORM:
        return kept->d_narrow;
    default:
        return 0;
    }
}

void emit_norm_backward(struct emit *e, uint32_t part, enum weight weight, struct view dy,
                        struct view x, struct view stats, struct view dx, int64_t rows,
                        int64_t cols)
{
    bool layernorm = is_layernorm(e, weight), accumulate = false;
    const bool frozen = weight_is_frozen(e, weight);
    if (!has_weight(e, weight)) {
        const struct work bare = {.kind = WORK_RMSNORM_BACKWARD,
                                  .rmsnorm_backward = {rows, cols, 0, 1}};
        emit_op(e, e->stream.compute, &bare, (struct view[]){dy, x, stats}, 3, &dx, 1);
        return;
    }
    /* kernels compute the gradient of a frozen weight, too; it goes to a buffer that nothing reads */
    struct view write[3] = {dx, frozen ? new_gradient_that_nothing_reads(e, cols)
                                       : grad_view(e, part, weight, &accumulate)};
    if (layernorm)
        write[2] = frozen ? new_gradient_that_nothing_reads(e, cols)
                          : grad_view(e, part, weight + 1, &accumulate);
    struct work work = {.kind = layernorm ? WORK_LAYERNORM_BACKWARD : WORK_RMSNORM_BACKWARD,
                        .rows = {rows, cols, accumulate}};
    struct view read[6] = {dy, x, weight_view(e, part, weight), stats, write[1], write[2]};
    uint32_t writes = layernorm ? 3 : 2;
    const int64_t temporary = layernorm ? 0 : norm_backward_temp_bytes_per_element(e, weight);
    const uint32_t reads = accumulate ? 3 + writes : 4;
    if (temporary > 0)
        write[writes++] =
            emit_tensor(e, "norm_temporary", CATEGORY_ACTIVATION, DTYPE_U8, rows * cols, temporary);
    emit_op(e, e->stream.compute, &work, read, reads, write, writes);
}

/* Returns the index of the unit's first token in e->positions, which holds the positions of one sequence or, if
 * documents determine how each sequence is cut, of all sequences of the rank. */
static int64_t positions_index_of_unit(const struct emit *e)
{
    const struct choices *c = e->choices;
    if (!derived_binds_positions_by_sequence(c))
        return e->unit.first_token;
    return e->unit.first_token +
           (e->unit.first_sequence + e->unit.positions_sequence_index) * (c->seq / c->hp / c->cp);
}

struct view view_of_unit_positions(const struct emit *e)
{
    return view_rows(e->positions, positions_index_of_unit(e), e->unit.tokens, 1);
}

struct view view_of_head_group_positions(const struct emit *e)
{
    int64_t hp = e->group.hp == IR_NONE16 ? 1 : e->choices->hp;
    return view_rows(e->positions_gathered, positions_index_of_unit(e) * hp, e->unit.tokens * hp,
                     1);
}

struct view view_of_tensor_rank_positions(const struct emit *e)
{
    int64_t tp = (int64_t)e->choices->sequence_parallel_ranks;
    return view_rows(e->positions_own, positions_index_of_unit(e) / tp, e->unit.own_tokens, 1);
}

void emit_extend_lifetime(struct emit *e, buffer_id buffer, op_id until)
{
    e->extension = heap_grow(e->extension, &e->extension_capacity, e->extension_count + 1u,
                             sizeof *e->extension);
    e->extension[e->extension_count++] = (struct lifetime_extension){buffer, until};
}

void emit_add_dependency(struct emit *e, op_id op, op_id until)
{
    e->added_dependencies =
        heap_grow(e->added_dependencies, &e->added_dependency_capacity,
                  e->added_dependency_count + 1u, sizeof *e->added_dependencies);
    e->added_dependencies[e->added_dependency_count++] = (struct added_dependency){op, until};
}

void saved_buffers_add(struct saved_buffers *saved, buffer_id buffer)
{
    saved->buffer =
        heap_grow(saved->buffer, &saved->capacity, saved->count + 1u, sizeof *saved->buffer);
    saved->buffer[saved->count++] = buffer;
}

static bool is_recomputed_module(const struct emit *e, enum recompute_module module)
{
    return (e->choices->recompute_modules >> module & 1) != 0 && e->op_tags.layer != IR_NONE16 &&
           e->op_tags.phase == PHASE_FORWARD;
}

void emit_record_recomputed_buffer(struct emit *e, enum recompute_module module, buffer_id buffer)
{
    if (!is_recomputed_module(e, module))
        return;
    e->recomputed_buffers =
        heap_grow(e->recomputed_buffers, &e->recomputed_buffer_capacity,
                  e->recomputed_buffer_count + 1u, sizeof *e->recomputed_buffers);
    e->recomputed_buffers[e->recomputed_buffer_count++] =
        (struct recomputed_buffer){buffer, (uint8_t)module};
}

struct emitted_counts emit_counts_so_far(const struct emit *e)
{
    return (struct emitted_counts){e->ir->buffer.count, e->ir->op.count};
}

void emit_record_recomputed_module(struct emit *e, enum recompute_module module,
                                   struct emitted_counts before, buffer_id result)
{
    const struct emitted_counts now = emit_counts_so_far(e);
    if (!is_recomputed_module(e, module))
        return;
    for (uint32_t b = before.buffers; b < now.buffers; b++)
        emit_record_recomputed_buffer(e, module, (buffer_id){b});
    emit_record_recomputed_buffer(e, module, result);
    e->recomputed_module_ops =
        heap_grow(e->recomputed_module_ops, &e->recomputed_module_capacity,
                  e->recomputed_module_count + 1u, sizeof *e->recomputed_module_ops);
    e->recomputed_module_ops[e->recomputed_module_count++] =
        (struct recomputed_module_ops){before.ops, now.ops, (uint8_t)module};
}

void emit_record_kept_product_result(struct emit *e, buffer_id buffer)
{
    if (e->choices->activations == CHOICE_ACTIVATIONS_SELECTIVE_OP)
        saved_buffers_add(&e->kept_buffers, buffer);
}

void emit_narrow_forget_copies(struct emit *e, buffer_id buffer)
{
    if (buffer.i < e->narrow.buffer_capacity)
        e->narrow.first_narrow_copy_of_buffer[buffer.i] = 0;
}
