/* The reduction of weight gradients, sharded or replicated: they are padded, summed over tensor ranks, reduced over
 * the ranks that share a copy of the weights, and sent back to the stage that owns them. */
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/shard.h"
#include "schedule/weights/weights.h"

/* Emits the work of a framework's host thread once a step, between backward and optimizer, if the profile has any
 * (host_per_step_s): it reads the norm of all gradients, so the device must have finished, and then waits for all
 * ranks. */
void shard_end_backward(struct shard *s, struct op_list *out)
{
    struct emit *e = s->e;
    struct work sync = {.kind = WORK_HOST_SYNC};
    if (e->choices->profile->host_per_step_s <= 0 || e->choices->ranks == 1 ||
        s->final.i == IR_NONE)
        return;
    e->tags = (struct op_tags){PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE16,
                               IR_NONE16,       IR_NONE16,        IR_NONE16};
    struct work all = {.kind = WORK_BARRIER, .barrier = {ir_add_group(s->ir, "world", NULL, 0)}};
    /* on the stream of the last reduction: all ops before the sync on that stream have ended then */
    op_list_push(out, emit_op(e, s->ir->op.stream[s->final.i], &sync, NULL, 0, NULL, 0));
    op_list_push(out, emit_op(e, e->stream.compute, &all, NULL, 0, NULL, 0));
}

static buffer_id whole_grad(const struct shard *s, uint32_t op, uint32_t row)
{
    for (uint32_t k = s->ir->op.reads[op];; k++) {
        uint32_t buffer = ir_touched(s->ir, op, k);
        if (buffer < s->buffers && s->of_grad[buffer] == row)
            return (buffer_id){buffer};
    }
}

/* True if the gradient belongs to one micro-batch, or to one shared unit, and is cut into parts when it is summed. */
static bool scatters_each(const struct shard *s, uint32_t row)
{
    const struct choices *c = s->e->choices;
    return s->gradient[row].remote_grad != IR_NONE
               ? pipeline_shards_weights(c)
               : weights_reduce_each_micro_batch(c) && s->e->group.shard_size > 1;
}

/* True if the first write to the gradient waits for the reduction of the one before the last. */
bool shard_waits_for_sums(const struct shard *s, uint32_t row)
{
    return s->gradient[row].remote_grad != IR_NONE ? pipeline_shards_weights(s->e->choices)
                                                   : weights_reduce_each_micro_batch(s->e->choices);
}

/* Zeroes the padding of a gradient that is cut into parts when it is summed; no other op writes the padding. */
void shard_fill_padding(struct shard *s, uint32_t row, uint32_t op, struct op_list *out)
{
    const struct bundle_state *bundle = &s->e->weights.bundle[s->gradient[row].bundle];
    if (!scatters_each(s, row) || bundle->elements == bundle->used)
        return;
    shard_set_tags(s, s->ir, op, PHASE_BACKWARD, REGION_WEIGHTS);
    struct work work = {.kind = WORK_FILL,
                        .elements = {(int64_t)(bundle->elements - bundle->used)}};
    struct view padding = {whole_grad(s, op, row), bundle->used, bundle->elements - bundle->used};
    op_list_push(out, emit_op(s->e, s->e->stream.compute, &work, NULL, 0, &padding, 1));
}

/* Sums `count` elements of a gradient, from `begin` on, over the tensor ranks. */
static void sum_over_tensor_ranks(struct shard *s, uint32_t row, uint16_t group, buffer_id grad,
                                  uint64_t begin, uint64_t count, struct op_list *out)
{
    struct emit *e = s->e;
    struct view part = {grad, begin, count};
    struct work work = {.kind = WORK_ALL_REDUCE};
    if (count == 0 || group == IR_NONE16)
        return;
    work.all_reduce.group = group;
    work.all_reduce.bytes = (int64_t)(count * dtype_bytes(e->weights.grad_dtype));
    s->reduced[row] = emit_op(e, e->stream.reduce, &work, &part, 1, &part, 1);
    op_list_push(out, s->reduced[row]);
}

/* Sums over tensor ranks the gradients of weights that each of them holds whole. Before that, a rank's gradient
 * covers only its own tokens (norms, biases after a scatter), its own heads (norms of heads), or, if key and value
 * heads are copied, the queries of its own ones. */
static void reduce_tensor(struct shard *s, uint32_t row, buffer_id grad, struct op_list *out)
{
    const struct emit *e = s->e;
    static const enum weight projections[] = {WEIGHT_QKV, WEIGHT_QKV_BIAS};
    uint32_t layers = (uint32_t)e->whole->layers, parts = part_count(e);
    for (uint32_t p = 0; p < parts; p++) {
        const struct model_part *part = &e->weights.part[p];
        if (part->bundle != s->gradient[row].bundle)
            continue;
        for (size_t i = 0; p < layers && i < ARRAY_LEN(projections); i++) {
            const struct weight_slot *slot = &e->weights.slot[projections[i]];
            int64_t q = transformer_q_width(e->choices->model);
            if (slot->rows > 0)
                sum_over_tensor_ranks(s, row, e->tensor.copy_group, grad,
                                      part->base + slot->offset + (uint64_t)(q * slot->cols),
                                      (uint64_t)((slot->rows - q) * slot->cols), out);
        }
        sum_over_tensor_ranks(s, row, e->tensor.group, grad, part->base + part->whole_begin,
                              part->whole_count, out);
    }
}

/* Sums a bundle's last gradient over the ranks that hold equal shards. */
static void sum_over_replicas(struct shard *s, uint32_t row, buffer_id part, struct op_list *out)
{
    struct emit *e = s->e;
    if (e->group.replica_size == 1 || !s->gradient[row].is_last)
        return;
    s->reduced[row] =
        weights_collective(e, e->stream.reduce, WORK_ALL_REDUCE, e->group.replica, part, part);
    s->final = s->reduced[row];
    op_list_push(out, s->final);
}

/* Emits a pass over a whole gradient that checks it for NaN. */
static void look_through(struct shard *s, buffer_id grad, struct op_list *out)
{
    struct emit *e = s->e;
    buffer_id squares = emit_buffer(e, "squares", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
    struct view all = ir_whole(s->ir, grad), sum = ir_whole(s->ir, squares);
    struct work work = {.kind = WORK_SQUARE_SUM, .square_sum = {(int64_t)all.count, false, 0}};
    op_list_push(out, emit_op(e, e->stream.compute, &work, &all, 1, &sum, 1));
}

/* Emits the passes over memory in which PyTorch's FSDP1 flattens gradients. FSDP1 concatenates the gradients of a
 * unit's parameters in 16 bits (4 bytes per element), casts them to fp32 (6) and divides these in place (8). Our
 * products write fp32 at once (2 less), so the rest is as many bytes as a copy in fp32 and back. FSDP1's reduction
 * stream computes on the multiprocessors that the backward uses, so here these passes stand between the backward's
 * ops. */
static void flatten(struct shard *s, buffer_id grad, struct op_list *out)
{
    buffer_id flat = emit_buffer(s->e, "flat", CATEGORY_GRADIENT, s->e->weights.grad_dtype,
                                 (int64_t)ir_buffer_elements(s->ir, grad), 0);
    shard_cast(s, grad, flat, out);
    shard_cast(s, flat, grad, out);
}

/* True if gradients are reduced in fp32 although they are kept in 16 bits. DeepSpeed does so where ranks share a
 * sequence (runtime/engine.py: communication_data_type = seq_parallel_communication_data_type). */
static bool reduces_wide(const struct emit *e)
{
    const struct choices *c = e->choices;
    return c->profile->reduces_f32 && c->cp * c->hp > 1 && e->weights.grad_dtype != DTYPE_F32;
}

static buffer_id widen(struct shard *s, buffer_id grad, struct op_list *out)
{
    buffer_id wide = emit_buffer(s->e, "wide", CATEGORY_GRADIENT, DTYPE_F32,
                                 (int64_t)ir_buffer_elements(s->ir, grad), 0);
    shard_cast(s, grad, wide, out);
    return wide;
}

/* InternLM flattens a bucket of whole gradients, divides the flat tensor, sums it over all ranks and copies the parts
 * back. Here all copies come before the sum, and the division in place is one more copy. Returns the flat tensor. */
static buffer_id flatten_bucket(struct shard *s, buffer_id grad, struct op_list *out)
{
    struct emit *e = s->e;
    struct view all = ir_whole(s->ir, grad);
    buffer_id flat =
        emit_buffer(e, "flat", CATEGORY_GRADIENT, e->weights.grad_dtype, (int64_t)all.count, 0);
    struct view copy = view_all(e, flat);
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)all.count, 0}};
    for (uint8_t i = 0; i + 1 < e->choices->profile->bucket_passes; i++)
        op_list_push(out, emit_op(e, e->stream.compute, &work, &all, 1, &copy, 1));
    op_list_push(out, emit_op(e, e->stream.compute, &work, &copy, 1, &all, 1));
    return flat;
}

/* Reduces a gradient whose last part has been added to it. */
static void reduce(struct shard *s, uint32_t row, uint32_t op, struct op_list *out)
{
    struct emit *e = s->e;
    struct gradient *gradient = &s->gradient[row];
    struct bundle_state *bundle = &e->weights.bundle[gradient->bundle];
    buffer_id grad = whole_grad(s, op, row), part = grad;
    bool wide = reduces_wide(e);
    gradient->adds = s->reduced_of[gradient->bundle]++ > 0;
    gradient->is_last = --s->left[gradient->bundle] == 0;
    shard_set_tags(s, s->ir, op, PHASE_BACKWARD, REGION_WEIGHTS);
    s->reduced[row].i = IR_NONE;
    if (weights_pass_over_gradients(e->choices))
        look_through(s, grad, out);
    if (e->choices->profile->flattens_gradients && e->group.shard_size > 1 &&
        weights_reduce_each_micro_batch(e->choices))
        flatten(s, grad, out);
    buffer_id flat = {IR_NONE};
    bool once = !weights_reduce_each_micro_batch(e->choices);
    if (e->choices->profile->bucket_passes > 0 && once &&
        e->group.shard_size * e->group.replica_size > 1)
        flat = flatten_bucket(s, grad, out);
    reduce_tensor(s, row, grad, out);
    if (e->group.shard_size > 1) {
        part = bundle->grad_shard;
        buffer_id target = part, whole = wide ? widen(s, grad, out) : grad;
        if (wide || gradient->adds)
            target = s->to_add[row] = weights_shard_buffer(
                e, gradient->bundle, "reduced", CATEGORY_GRADIENT,
                wide ? DTYPE_F32 : (enum dtype)e->weights.grad_dtype, MEMORY_HBM);
        s->reduced[row] = weights_collective(e, e->stream.reduce, WORK_REDUCE_SCATTER,
                                             e->group.shard, whole, target);
        op_list_push(out, s->reduced[row]);
        if (e->choices->profile->all_reduces &&
            flat.i != IR_NONE) { /* an all-reduce ends with an all-gather */
            s->reduced[row] = weights_collective(e, e->stream.reduce, WORK_ALL_GATHER,
                                                 e->group.shard, target, flat);
            op_list_push(out, s->reduced[row]);
        }
    }
    if (s->to_add[row].i == IR_NONE)
        sum_over_replicas(s, row, part, out);
}

/* Returns the reduced part of a gradient in the dtype in which gradients are kept. If no other reduction has been
 * added to the kept part, the result is the kept part itself. */
static buffer_id narrow(struct shard *s, uint32_t row, buffer_id kept, struct op_list *out)
{
    struct emit *e = s->e;
    const struct gradient *gradient = &s->gradient[row];
    buffer_id part = s->to_add[row], to = kept;
    if (s->ir->buffer.dtype[part.i] == e->weights.grad_dtype)
        return part;
    if (gradient->adds)
        to = weights_shard_buffer(e, gradient->bundle, "narrowed", CATEGORY_GRADIENT,
                                  e->weights.grad_dtype, MEMORY_HBM);
    s->final = shard_cast(s, part, to, out);
    return to;
}

/* Casts the reduced parts of gradients in rows before `end` and adds them to the kept parts, each only if the last op
 * that adds to the gradient stands before position i. After the last part of a bundle, the kept part is summed over the
 * replicas. The gradient of a tied embedding begins first and ends last, and must delay no other gradient. */
void shard_add_reduced(struct shard *s, uint32_t end, uint32_t i, struct op_list *out)
{
    struct emit *e = s->e;
    while (s->next_add < end && s->to_add[s->next_add].i == IR_NONE &&
           (e->group.shard_size == 1 || s->reduced[s->next_add].i != IR_NONE))
        s->next_add++;
    for (uint32_t row = s->next_add; row < end; row++) {
        if (s->to_add[row].i == IR_NONE || s->gradient[row].last >= i)
            continue;
        buffer_id kept = e->weights.bundle[s->gradient[row].bundle].grad_shard;
        shard_set_tags(s, s->ir, s->reduced[row].i, PHASE_BACKWARD, REGION_WEIGHTS);
        buffer_id part = narrow(s, row, kept, out);
        if (part.i != kept.i) {
            struct view read[2] = {ir_whole(s->ir, part), ir_whole(s->ir, kept)};
            struct work work = {.kind = WORK_ADD, .elements = {(int64_t)read[1].count}};
            s->final = emit_op(e, e->stream.compute, &work, read, 2, &read[1], 1);
            op_list_push(out, s->final);
        }
        s->to_add[row].i = IR_NONE;
        sum_over_replicas(s, row, kept, out);
    }
}

/* Sums the gradient of a tied embedding over the first and the last stage. This comes after all other reductions,
 * since the two stages finish their parts at very different times. */
void shard_reduce_ends(struct shard *s, struct op_list *out)
{
    struct emit *e = s->e;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        struct bundle_state *bundle = &e->weights.bundle[b];
        if (!bundle->at_both_ends || bundle->borrowed)
            continue;
        shard_add_reduced(s, s->gradient_count, IR_NONE, out);
        buffer_id grad = bundle->grad_shard.i != IR_NONE ? bundle->grad_shard : bundle->grad;
        e->tags = (struct op_tags){PHASE_BACKWARD, REGION_WEIGHTS, IR_NONE16,
                                   IR_NONE16,      IR_NONE16,      IR_NONE16};
        s->final =
            weights_collective(e, e->stream.reduce, WORK_ALL_REDUCE, e->group.ends, grad, grad);
        op_list_push(out, s->final);
    }
}

/* Adds the sum in row `owed[k]` to the stage's own gradient, once computation need not wait for it. */
void shard_finalize(struct shard *s, uint32_t k, struct op_list *out)
{
    if (s->owed[k] == IR_NONE)
        return;
    const struct remote_grad *remote_grad = &s->e->weights.remote_grad[s->owed[k]];
    if (remote_grad->sum.i != IR_NONE)
        op_list_push(out, remote_add(s->e, remote_grad));
    s->owed[k] = IR_NONE;
}

/* Sums a complete gradient of a shared unit over the unit's stages, after adding the sum before the last. */
static void give_back(struct shard *s, uint32_t row, uint32_t op, struct op_list *out)
{
    shard_set_tags(s, s->ir, op, PHASE_BACKWARD, REGION_WEIGHTS);
    shard_finalize(s, 0, out);
    s->owed[0] = s->owed[1];
    s->owed[1] = s->gradient[row].remote_grad;
    s->reduced[row] = remote_sum(s->e, &s->e->weights.remote_grad[s->owed[1]]);
    op_list_push(out, s->reduced[row]);
}

/* Returns the last op that adds to the gradients that this stage computes by itself, without those of shared units;
 * IR_NONE: there is none. */
op_id shard_last_alone(const struct shard *s, const struct op_list *list)
{
    uint32_t last = 0;
    for (uint32_t row = 0; row < s->gradient_count; row++)
        if (s->gradient[row].remote_grad == IR_NONE && s->gradient[row].last > last)
            last = s->gradient[row].last;
    return (op_id){last > 0 ? list->op[last] : IR_NONE};
}

/* Sums over a unit's stages the gradient that the op at position i was the last to add to, if the unit is shared. */
void shard_give_back(struct shard *s, uint32_t i, uint32_t op, struct op_list *out)
{
    uint32_t reads = s->ir->op.reads[op], operands = reads + s->ir->op.writes[op];
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = ir_touched(s->ir, op, k);
        uint32_t row = buffer < s->buffers ? s->of_grad[buffer] : IR_NONE;
        if (row != IR_NONE && s->gradient[row].remote_grad != IR_NONE &&
            s->gradient[row].last == i) {
            give_back(s, row, op, out);
            return; /* an op adds to one bundle */
        }
    }
}

/* Reduces the gradients that the op at position i was the last to add to; it may write several parts of one. */
void shard_reduce_finished(struct shard *s, uint32_t i, uint32_t op, struct op_list *out)
{
    const struct ir *ir = s->ir;
    uint32_t reads = ir->op.reads[op], operands = reads + ir->op.writes[op], done = IR_NONE;
    for (uint32_t k = reads; k < operands; k++) {
        uint32_t buffer = ir_touched(ir, op, k);
        uint32_t row = buffer < s->buffers ? s->of_grad[buffer] : IR_NONE;
        if (row == IR_NONE || row == done || s->gradient[row].last != i)
            continue;
        reduce(s, row, op, out);
        s->final.i = out->op[out->count - 1];
        done = row;
    }
}

/* True if all stages must reduce and update in the order of the bundles: stages that share subsequences use weights
 * in different orders, and add to gradients until the end. */
bool shard_in_order(const struct shard *s)
{
    return pipeline_of(s->e->choices)->multiplexed;
}

/* Returns the last op of the compute stream among the first `count`. */
static op_id last_computed(const struct shard *s, const struct op_list *out, uint32_t count)
{
    while (count > 0 && s->ir->op.stream[out->op[count - 1]] != s->e->stream.compute)
        count--;
    return (op_id){count > 0 ? out->op[count - 1] : IR_NONE};
}

/* True if no reduction starts before all of the backward has ended. */
bool shard_reduces_at_end(const struct shard *s)
{
    const struct choices *c = s->e->choices;
    return shard_in_order(s) ||
           (c->profile->reduce_at_end && !weights_reduce_each_micro_batch(c) && !s->remote_weights);
}

void shard_reduce_in_order(struct shard *s, const struct op_list *list, struct op_list *out)
{
    uint32_t begin = out->count;
    for (uint32_t b = 0; b < s->e->weights.bundle_count; b++)
        for (uint32_t row = 0; row < s->gradient_count; row++)
            if (s->gradient[row].bundle == b && s->gradient[row].remote_grad == IR_NONE) {
                reduce(s, row, list->op[s->gradient[row].last], out);
                s->final.i = out->op[out->count - 1];
            }
    if (!shard_in_order(s) && begin > 0 && out->count > begin)
        emit_add_dependency(s->e, (op_id){out->op[begin]}, last_computed(s, out, begin));
}
