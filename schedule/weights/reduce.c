/* The reduction of weight gradients, sharded or replicated. Complete gradients are summed over tensor ranks where these
 * hold partial sums, and reduced over the ranks that share a copy of the weights. Gradients of units that stages share
 * are summed over these stages. schedule/weights/shard.h describes the functions. */
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/emit/emit.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/shard.h"

void shard_wait_between_backward_and_step(struct shard *s)
{
    struct emit *e = s->e;
    if (e->choices->profile->host_before_optimizer_s <= 0 || e->choices->ranks == 1 ||
        s->last_op_that_finishes_gradient.i == IR_NONE)
        return;
    weights_set_op_labels(e, PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE);
    struct work all = {.kind = WORK_BARRIER, .barrier = {ir_add_group(s->ir, "world", NULL, 0)}};
    /* The host waits for the stream of the last reduction, and so for all earlier ops of that stream, before the
     * barrier. */
    emit_host_wait(e, s->ir->op.stream[s->last_op_that_finishes_gradient.i]);
    emit_op(e, e->stream.compute, &all, NULL, 0, NULL, 0);
}

bool shard_has_write_wait_for_reduction(const struct shard *s, uint32_t row)
{
    return s->gradient[row].remote_grad != IR_NONE ? pipeline_shards_weights(s->e->choices)
                                                   : weights_reduce_each_micro_batch(s->e->choices);
}

void shard_zero_padding(struct shard *s, uint32_t row, uint32_t op)
{
    const struct weight_bundle_state *bundle = &s->e->weights.bundle[s->gradient[row].bundle];
    /* True if the sum cuts the gradient into parts, padding included, and the gradient is new: of one micro-batch, of
     * one shared unit, or allocated in the backward. Other gradients are persistent, so their padding stays 0. */
    bool cut = (shard_has_write_wait_for_reduction(s, row) ||
                weights_allocate_gradients_in_backward(s->e->choices)) &&
               (s->gradient[row].remote_grad != IR_NONE || bundle->ranks->shard_size > 1);
    if (!cut || bundle->elements == bundle->unpadded_elements)
        return;
    weights_set_op_labels(s->e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES, op);
    emit_zeros(s->e, (struct view){s->gradient[row].buffer, bundle->unpadded_elements,
                                   bundle->elements - bundle->unpadded_elements});
}

/* Emits the sum over the tensor ranks of `group` of `count` elements of a gradient, from `begin` on. Does nothing if
 * count is 0 or group is IR_NONE16. */
static void sum_over_tensor_ranks(struct shard *s, uint32_t row, uint16_t group, buffer_id grad,
                                  uint64_t begin, uint64_t count)
{
    struct emit *e = s->e;
    struct view part = {grad, begin, count};
    struct work work = {.kind = WORK_ALL_REDUCE, .all_reduce = {group, bytes_of_view(e, part)}};
    if (count == 0 || group == IR_NONE16)
        return;
    s->gradient[row].last_op_of_reduction =
        emit_op(e, e->stream.grad_reduce, &work, &part, 1, &part, 1);
}

/* Sums the gradients of the projections of keys and values in part p, if several tensor ranks hold copies of a key and
 * value head: each rank's gradient covers only the queries of its own heads. */
static void emit_sum_copied_heads(struct shard *s, uint32_t row, uint32_t p, buffer_id grad)
{
    static const enum weight projections[] = {WEIGHT_QKV, WEIGHT_QKV_BIAS};
    const struct emit *e = s->e;
    const int64_t q = transformer_q_columns(e->choices->model);
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        const struct weight_offset_and_shape *slot =
            weight_offset_and_shape_of(e, p, projections[i]);
        if (slot->rows > 0)
            sum_over_tensor_ranks(s, row, e->tensor.group_of_kv_head_copies, grad,
                                  e->weights.part[p].first_element + slot->offset +
                                      (uint64_t)(q * slot->cols),
                                  (uint64_t)((slot->rows - q) * slot->cols));
    }
}

/* Sums the gradients of the norms of query and key heads in part p: each rank's gradient covers only its own heads. */
static void emit_sum_head_norms(struct shard *s, uint32_t row, uint32_t p, buffer_id grad)
{
    static const enum weight norms[] = {WEIGHT_Q_NORM, WEIGHT_K_NORM};
    const struct emit *e = s->e;
    for (size_t i = 0; i < ARRAY_LEN(norms); i++) {
        const struct weight_offset_and_shape *slot = weight_offset_and_shape_of(e, p, norms[i]);
        sum_over_tensor_ranks(s, row, e->tensor.group, grad,
                              e->weights.part[p].first_element + slot->offset,
                              (uint64_t)(slot->rows * (slot->cols > 0 ? slot->cols : 1)));
    }
}

/* Sums over tensor ranks those gradients of a bundle that are partial sums although several ranks hold the same weight.
 * These are, in layers, the projections of copied key and value heads. Of the weights that every rank holds whole, they
 * are all that model_part.whole_begin names if each rank has its own tokens (norms, and biases that are added after a
 * reduce-scatter), and only the norms of query and key heads if each rank has all tokens. */
static void sum_partial_gradients(struct shard *s, uint32_t row, buffer_id grad)
{
    const struct emit *e = s->e;
    const uint32_t layers = (uint32_t)e->whole_model->layers,
                   parts = part_index_of_embedding_or_head(e, END_PARTS);
    const bool all_tokens = e->choices->sequence_parallel_ranks == 1;
    for (uint32_t p = 0; p < parts; p++) {
        const struct model_part *part = &e->weights.part[p];
        if (part->bundle != s->gradient[row].bundle)
            continue;
        if (p < layers)
            emit_sum_copied_heads(s, row, p, grad);
        if (p < layers && all_tokens)
            emit_sum_head_norms(s, row, p, grad);
        if (!all_tokens)
            sum_over_tensor_ranks(s, row, e->tensor.group, grad,
                                  part->first_element + part->whole_begin, part->whole_count);
    }
}

/* Sums a bundle's gradient over the ranks that hold the same shard, if there are several. It does so once for each
 * bundle, when the last of its gradients in the step has been reduced; before that it emits nothing. */
static void sum_gradient_over_replicas(struct shard *s, uint32_t row, buffer_id part)
{
    struct emit *e = s->e;
    const struct weight_ranks *ranks = e->weights.bundle[s->gradient[row].bundle].ranks;
    if (ranks->replica_size == 1 || !s->gradient[row].is_last_reduced_of_bundle)
        return;
    s->last_op_that_finishes_gradient = s->gradient[row].last_op_of_reduction =
        weights_emit_collective(e, e->stream.grad_reduce, WORK_ALL_REDUCE, ranks->replica_group,
                                part, part);
}

/* Emits a pass over a whole gradient that checks it for NaN. */
static void emit_nan_check(struct emit *e, buffer_id grad)
{
    struct view all = view_whole(e, grad);
    struct view sum = emit_tensor(e, "squares", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
    struct work work = {.kind = WORK_SQUARE_SUM, .square_sum = {(int64_t)all.count, false, 0}};
    emit_op(e, e->stream.compute, &work, &all, 1, &sum, 1);
}

static struct view new_gradient_tensor_like(struct emit *e, const char *stem, enum dtype dtype,
                                            struct view x)
{
    return emit_tensor(e, stem, CATEGORY_GRADIENT, dtype, (int64_t)x.count, 0);
}

/* Emits the passes over memory in which PyTorch's FSDP1 flattens gradients. FSDP1 concatenates the gradients of a
 * unit's parameters in 16 bits (4 bytes per element), casts them to fp32 (6) and divides these in place (8). Our
 * products write fp32 at once (2 bytes more), so 16 bytes are left: a copy in fp32 and one back. FSDP1's reduction
 * stream computes on the multiprocessors that the backward uses, so these passes are emitted between the ops of the
 * backward. */
static void emit_passes_that_flatten_gradient(struct emit *e, buffer_id grad)
{
    struct view all = view_whole(e, grad);
    emit_cast(e, emit_cast(e, all, new_gradient_tensor_like(e, "flat", e->weights.grad_dtype, all)),
              all);
}

/* True if gradients that are kept in 16 bits are reduced in fp32. DeepSpeed does so if ranks share a sequence
 * (runtime/engine.py: communication_data_type = seq_parallel_communication_data_type). */
static bool reduces_gradients_in_fp32(const struct emit *e)
{
    const struct choices *c = e->choices;
    return c->profile->reduces_f32 && c->cp * c->hp > 1 && e->weights.grad_dtype != DTYPE_F32;
}

static buffer_id emit_widen_gradient(struct emit *e, buffer_id grad)
{
    struct view all = view_whole(e, grad);
    return emit_cast(e, all, new_gradient_tensor_like(e, "wide", DTYPE_F32, all)).buffer;
}

/* Emits the copies of a bucket of whole gradients, and returns the flat tensor. InternLM flattens a bucket, divides the
 * flat tensor, sums it over all ranks and copies the parts back. Here all these copies come before the sum, and the
 * division in place counts as one more. */
static buffer_id flatten_gradient_bucket(struct emit *e, buffer_id grad)
{
    struct view all = view_whole(e, grad),
                flat = new_gradient_tensor_like(e, "flat", e->weights.grad_dtype, all);
    for (uint8_t i = 0; i + 1 < e->choices->profile->copy_passes_over_bucket; i++)
        emit_cast(e, all, flat);
    emit_cast(e, flat, all);
    return flat.buffer;
}

/* Emits the reduction of a complete gradient: the framework's own passes over it, its sum over tensor ranks, and the
 * reduce-scatter over the ranks that share one copy of its weights, after which an all-gather follows if the bucket has
 * been flattened and the profile has the switch buckets_all_reduced. The sum over replicas follows at once, unless
 * shard_add_reduced_parts_to_kept() must first cast the reduced part or add it to the kept part. */
static void reduce_gradient(struct shard *s, uint32_t row, uint32_t op)
{
    struct emit *e = s->e;
    const struct profile *profile = e->choices->profile;
    struct bundle_gradient *gradient = &s->gradient[row];
    const struct weight_ranks *ranks = e->weights.bundle[gradient->bundle].ranks;
    buffer_id grad = gradient->buffer, part = grad, flat = {IR_NONE};
    bool wide = reduces_gradients_in_fp32(e), each = weights_reduce_each_micro_batch(e->choices);
    gradient->adds_to_reduced_gradients = s->reduced_gradients[gradient->bundle]++ > 0;
    gradient->is_last_reduced_of_bundle = --s->gradients_left[gradient->bundle] == 0;
    weights_set_op_labels(e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES, op);
    if (weights_have_zeroing_and_nan_checks(e->choices))
        emit_nan_check(e, grad);
    if (profile->flattens_gradients && ranks->shard_size > 1 && each)
        emit_passes_that_flatten_gradient(e, grad);
    if (profile->copy_passes_over_bucket > 0 && !each &&
        ranks->shard_size * ranks->replica_size > 1)
        flat = flatten_gradient_bucket(e, grad);
    sum_partial_gradients(s, row, grad);
    if (ranks->shard_size > 1) {
        part = e->weights.bundle[gradient->bundle].grad_shard;
        buffer_id target = part, whole = wide ? emit_widen_gradient(e, grad) : grad;
        if (wide || gradient->adds_to_reduced_gradients ||
            e->weights.grad_part_dtype != e->weights.grad_dtype)
            target = gradient->reduced_part_to_add =
                weights_new_shard_buffer(e, gradient->bundle, "reduced", CATEGORY_GRADIENT,
                                         wide ? DTYPE_F32 : (enum dtype)e->weights.grad_dtype);
        gradient->last_op_of_reduction = weights_emit_collective(
            e, e->stream.grad_reduce, WORK_REDUCE_SCATTER, ranks->shard_group, whole, target);
        if (profile->buckets_all_reduced &&
            flat.i != IR_NONE) /* an all-reduce ends with an all-gather */
            gradient->last_op_of_reduction = weights_emit_collective(
                e, e->stream.grad_reduce, WORK_ALL_GATHER, ranks->shard_group, target, flat);
    }
    if (gradient->reduced_part_to_add.i == IR_NONE)
        sum_gradient_over_replicas(s, row, part);
}

/* Returns the reduced part of a gradient in the dtype of the kept part, casting it if need be. A cast of the first part
 * of its bundle goes to the kept part, which is then returned; a cast of a later part goes to a new buffer. */
static buffer_id cast_reduced_part_to_kept_dtype(struct shard *s,
                                                 const struct bundle_gradient *gradient,
                                                 buffer_id kept)
{
    struct emit *e = s->e;
    buffer_id part = gradient->reduced_part_to_add, to = kept;
    if (s->ir->buffer.dtype[part.i] == e->weights.grad_part_dtype)
        return part;
    if (gradient->adds_to_reduced_gradients)
        to = weights_new_shard_buffer(e, gradient->bundle, "narrowed", CATEGORY_GRADIENT,
                                      e->weights.grad_part_dtype);
    emit_cast(e, view_whole(e, part), view_whole(e, to));
    s->last_op_that_finishes_gradient = e->last_compute;
    return to;
}

void shard_add_reduced_parts_to_kept(struct shard *s, uint32_t end, uint32_t i)
{
    struct emit *e = s->e;
    while (s->next_gradient_to_add < end &&
           s->gradient[s->next_gradient_to_add].reduced_part_to_add.i == IR_NONE &&
           (e->weights.bundle[s->gradient[s->next_gradient_to_add].bundle].ranks->shard_size == 1 ||
            s->gradient[s->next_gradient_to_add].last_op_of_reduction.i != IR_NONE))
        s->next_gradient_to_add++;
    for (uint32_t row = s->next_gradient_to_add; row < end; row++) {
        struct bundle_gradient *gradient = &s->gradient[row];
        if (gradient->reduced_part_to_add.i == IR_NONE || gradient->last_position >= i)
            continue;
        buffer_id kept = e->weights.bundle[gradient->bundle].grad_shard;
        weights_set_op_labels(e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES,
                              gradient->last_op_of_reduction.i);
        buffer_id part = cast_reduced_part_to_kept_dtype(s, gradient, kept);
        if (part.i != kept.i) {
            emit_add(e, view_whole(e, part), view_whole(e, kept), view_whole(e, kept));
            s->last_op_that_finishes_gradient = e->last_compute;
        }
        gradient->reduced_part_to_add.i = IR_NONE;
        sum_gradient_over_replicas(s, row, kept);
    }
}

void shard_reduce_tied_embedding(struct shard *s)
{
    struct emit *e = s->e;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        if (!e->weights.bundle[b].is_on_first_and_last_stage ||
            e->weights.bundle[b].has_states_elsewhere || e->weights.bundle[b].is_frozen)
            continue;
        shard_add_reduced_parts_to_kept(s, s->gradient_count, IR_NONE);
        buffer_id grad = weights_gradient_of_optimizer(e, b);
        weights_set_op_labels(e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES, IR_NONE);
        s->last_op_that_finishes_gradient =
            weights_emit_collective(e, e->stream.grad_reduce, WORK_ALL_REDUCE,
                                    e->group.group_of_first_and_last_stages, grad, grad);
    }
}

void shard_add_remote_sum(struct shard *s, uint32_t k)
{
    if (s->last_two_summed_gradients[k] == IR_NONE)
        return;
    const struct remote_grad *remote_grad =
        &s->e->weights.remote_grad[s->last_two_summed_gradients[k]];
    if (remote_grad->gradient_sum_to_add.i != IR_NONE)
        remote_add_to_own_gradient(s->e, remote_grad);
    s->last_two_summed_gradients[k] = IR_NONE;
}

/* Emits the sum of a shared unit's complete gradient over the unit's stages. The stage's own gradient gets each sum two
 * calls later, when the sum has had time to end: this call first adds s->last_two_summed_gradients[0]. */
static void sum_gradient_over_sharing_stages(struct shard *s, uint32_t row, uint32_t op)
{
    weights_set_op_labels(s->e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES, op);
    shard_add_remote_sum(s, 0);
    s->last_two_summed_gradients[0] = s->last_two_summed_gradients[1];
    s->last_two_summed_gradients[1] = s->gradient[row].remote_grad;
    s->gradient[row].last_op_of_reduction =
        remote_sum_gradients(s->e, &s->e->weights.remote_grad[s->last_two_summed_gradients[1]]);
}

op_id shard_last_op_on_unshared_gradient(const struct shard *s, const struct op_list *list)
{
    uint32_t last = 0;
    for (uint32_t row = 0; row < s->gradient_count; row++)
        if (s->gradient[row].remote_grad == IR_NONE && s->gradient[row].last_position > last)
            last = s->gradient[row].last_position;
    return (op_id){last > 0 ? list->op[last] : IR_NONE};
}

void shard_emit_reductions_due_at_op(struct shard *s, uint32_t i, uint32_t op)
{
    const struct ir *ir = s->ir;
    uint32_t reads = ir->op.read_count[op], operands = reads + ir->op.write_count[op],
             done = IR_NONE;
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = ir_touched_buffer(ir, op, k);
        uint32_t row =
            buffer < s->buffer_count ? s->buffer[buffer].row_of_written_gradient : IR_NONE;
        if (row == IR_NONE || row == done || s->gradient[row].last_position != i)
            continue;
        done = row;
        if (s->gradient[row].remote_grad != IR_NONE) {
            sum_gradient_over_sharing_stages(s, row, op);
        } else if (!shard_reduces_at_end(s)) {
            reduce_gradient(s, row, op);
            s->last_op_that_finishes_gradient = shard_append_emitted_ops(s);
        }
    }
}

bool shard_reduces_in_bundle_order(const struct shard *s)
{
    return pipeline_of_choices(s->e->choices)->is_multiplexed;
}

bool shard_reduces_at_end(const struct shard *s)
{
    const struct choices *c = s->e->choices;
    bool stage = c->pp > 1 && c->profile->stages_reduce_gradients_at_step_end;
    return shard_reduces_in_bundle_order(s) ||
           ((c->profile->reduces_after_backward || stage) && !weights_reduce_each_micro_batch(c));
}

void shard_reduce_in_bundle_order(struct shard *s, const struct op_list *list)
{
    shard_append_emitted_ops(s);
    uint32_t begin = s->new_list.count;
    for (uint32_t b = 0; b < s->e->weights.bundle_count; b++)
        for (uint32_t row = 0; row < s->gradient_count; row++)
            if (s->gradient[row].bundle == b && s->gradient[row].remote_grad == IR_NONE) {
                reduce_gradient(s, row, list->op[s->gradient[row].last_position]);
                s->last_op_that_finishes_gradient = shard_append_emitted_ops(s);
            }
    if (!shard_reduces_in_bundle_order(s) && begin > 0 && s->new_list.count > begin)
        emit_add_dependency(
            s->e, (op_id){s->new_list.op[begin]},
            op_list_last_on_stream(&s->new_list, begin, s->ir, s->e->stream.compute));
}
