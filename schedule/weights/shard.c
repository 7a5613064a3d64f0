/* ZeRO (Rajbhandari et al., arXiv 1910.02054), HSDP and plain data parallelism as a rewriting of the list: sharded
 * parameters are gathered before each run of ops that reads them, gradients are reduced after the last op that adds to
 * them, and the optimizer follows. Weight gradients are partial sums over data, context and head ranks alike, so one
 * reduction covers all of these. Layers may have several bundles, for example one of experts that are spread over
 * ranks; what follows holds for the bundles of each kind by themselves (bundle_kind_of_use_run()).
 *
 * At most prefetch_layers + 1 gathered bundles are in memory, unless bundles stay gathered
 * (find_runs_that_reuse_gathers()): a gather waits for the end of the run whose memory it may reuse. If gradients are
 * reduced in every micro-batch, at most two unreduced ones are in memory: the first op that writes a gradient waits for
 * the reduction of the gradient two before it. From the second micro-batch on, the reduced part of a gradient is added
 * to the kept part at the same point, where computation waits for the reduction anyway; directly after the reduction,
 * the addition would stall computation until the reduction has ended. */
#include "schedule/weights/shard.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/emit/emit.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/early_gather.h"
#include "schedule/weights/quantised.h"
#include "schedule/weights/weights.h"

#include <stdlib.h>
#include <string.h>

/* True if the bundle belongs to FSDP's root module of a stage: embedding, or final norm and head. */
static bool is_bundle_of_fsdp_root(const struct emit *e, uint32_t bundle)
{
    return bundle == e->weights.part[part_index_of_embedding_or_head(e, PART_EMBEDDING)].bundle ||
           bundle == e->weights.part[part_index_of_embedding_or_head(e, PART_HEAD)].bundle;
}

/* True if the pipeline's stages are those of torch.distributed.pipelining. */
static bool has_torch_pipeline_stages(const struct emit *e)
{
    return e->choices->pp > 1 && e->choices->profile->stages_reduce_gradients_at_step_end;
}

/* True if an op is part of the root module's forward: it is an op of the forward, or of a loss in pieces that belongs
 * to the root module. Such a loss computes gradients before the forward returns: Liger's fused loss and chunked losses
 * do so (Liger-Kernel, ops/fused_linear_cross_entropy.py), but not LOSS_CUT_CROSS_ENTROPY. */
static bool is_in_root_forward(const struct shard *s, uint32_t op)
{
    const struct choices *c = s->e->choices;
    bool pieces = c->profile->loss_in_root_unit && c->loss_chunks > 1 &&
                  c->loss != LOSS_CUT_CROSS_ENTROPY && s->ir->op.region[op] == REGION_LOSS;
    return pieces || s->ir->op.phase[op] == PHASE_FORWARD;
}

/* True if `op` needs a new gather of a bundle that op `before` was the last to read: `before` belongs to a forward,
 * `op` to a backward, and the bundle has been freed in between. A layer's bundle is freed there on PyTorch's stages,
 * where the backward is that of another micro-batch; the root bundle is freed with RESHARD_ROOT. */
static bool backward_needs_new_gather(const struct shard *s, uint32_t bundle, uint32_t before,
                                      uint32_t op)
{
    bool freed = is_bundle_of_fsdp_root(s->e, bundle) ? s->e->choices->reshard == RESHARD_ROOT
                                                      : has_torch_pipeline_stages(s->e);
    return freed && is_in_root_forward(s, before) && !is_in_root_forward(s, op);
}

/* Returns the kind of the bundle that a run uses, by which it is distinguished from other bundles of the same layers.
 * 0: the main bundle; from 1 on: those of stored weights, adapters or experts, in the order in which they were laid
 * out. */
static uint32_t bundle_kind_of_use_run(const struct shard *s, uint32_t r)
{
    const uint32_t bundle = s->run[r].bundle;
    return bundle - s->e->weights.bundle[bundle].main_bundle_of_same_layers;
}

/* True if both bundles are of the same layers. */
static bool bundles_are_of_same_layers(const struct shard *s, uint32_t a, uint32_t b)
{
    const struct weight_bundle_state *bundle = s->e->weights.bundle;
    return bundle[a].main_bundle_of_same_layers == bundle[b].main_bundle_of_same_layers;
}

/* Returns the run that a use of the bundle by `op` continues; NULL: the use begins a new run. Uses of other bundles of
 * the same layers in between do not end a run. */
static struct weight_use_run *
find_use_run_that_op_continues(const struct shard *s, const struct op_list *list, uint32_t bundle,
                               struct unit_chunk_pass pass, uint32_t op)
{
    uint32_t r = s->run_count;
    while (r > 0 && s->run[r - 1].bundle != bundle &&
           bundles_are_of_same_layers(s, s->run[r - 1].bundle, bundle))
        r--;
    struct weight_use_run *run = r > 0 ? &s->run[r - 1] : NULL;
    bool same = run != NULL && run->bundle == bundle &&
                run->pass_that_uses_weights.chunk == pass.chunk &&
                run->pass_that_uses_weights.unit == pass.unit &&
                run->pass_that_uses_weights.is_forward == pass.is_forward;
    return same && !backward_needs_new_gather(s, bundle, list->op[run->end_position - 1], op)
               ? run
               : NULL;
}

/* Returns the count-th run before run r among the runs whose bundles are of the same kind as that of r
 * (bundle_kind_of_use_run()); IR_NONE: there are fewer. count 0: run r itself. */
static uint32_t nth_run_of_same_kind_before(const struct shard *s, uint32_t r, uint32_t count)
{
    const uint32_t kind = bundle_kind_of_use_run(s, r);
    while (count > 0 && r > 0)
        count -= bundle_kind_of_use_run(s, --r) == kind;
    return count == 0 ? r : IR_NONE;
}

/* True if the run after r is of another bundle of the same layers. */
static bool next_run_is_of_same_layers(const struct shard *s, uint32_t r)
{
    const uint32_t a = s->run[r].bundle, b = s->run[r + 1].bundle;
    return a != b && bundles_are_of_same_layers(s, a, b);
}

/* Returns the last run of the layer that comes `count` layers after the layer of run r; if there are fewer, the last
 * run. */
static uint32_t last_use_run_of_nth_layer_after(const struct shard *s, uint32_t r, uint32_t count)
{
    for (; r + 1 < s->run_count; r++)
        if (!next_run_is_of_same_layers(s, r) && count-- == 0)
            break;
    return r;
}

/* Returns the position of the first op that waits for the gather of a new run of the bundle. That is i, the position of
 * the op that reads the bundle first. But if the loss is part of the root's forward, the root's backward begins with
 * the backward of the loss, which comes before i. */
static uint32_t position_that_waits_for_gather(const struct shard *s, const struct op_list *list,
                                               uint32_t bundle, uint32_t i)
{
    const struct weight_use_run *before = s->run_count > 0 ? &s->run[s->run_count - 1] : NULL;
    bool loss =
        s->e->choices->profile->loss_in_root_unit && before != NULL && before->bundle == bundle;
    while (loss && i > before->end_position && !is_in_root_forward(s, list->op[i - 1]))
        i--;
    return i;
}

static void add_read_to_weight_use_runs(struct shard *s, const struct op_list *list,
                                        uint32_t bundle, uint32_t i)
{
    uint32_t op = list->op[i];
    struct unit_chunk_pass pass = {0, 0, false};
    if (s->has_remote_weights) {
        pass = remote_unit_chunk_pass_of_op(s->e, op);
        if (remote_stages_sharing_pipeline_unit(s->e, pass.chunk, pass.unit).count == 1)
            return;
    }
    struct weight_use_run *before = find_use_run_that_op_continues(s, list, bundle, pass, op);
    if (before != NULL) {
        before->end_position = i + 1;
        return;
    }
    uint32_t begin = position_that_waits_for_gather(s, list, bundle, i);
    s->run = heap_grow(s->run, &s->run_capacity, s->run_count + 1u, sizeof *s->run);
    s->run[s->run_count++] =
        (struct weight_use_run){bundle, begin, i + 1, pass, begin, IR_NONE, {IR_NONE}, {IR_NONE}};
}

static void record_gradient_write(struct shard *s, uint32_t buffer, uint32_t i)
{
    struct bundle_of_weight_buffer *of = &s->buffer[buffer];
    if (of->row_of_written_gradient == IR_NONE) {
        s->gradient = heap_grow(s->gradient, &s->gradient_capacity, s->gradient_count + 1u,
                                sizeof *s->gradient);
        of->row_of_written_gradient = s->gradient_count++;
        s->gradient[of->row_of_written_gradient] =
            (struct bundle_gradient){.buffer = {buffer},
                                     .bundle = of->grad,
                                     .first_position = i,
                                     .remote_grad = of->remote_grad,
                                     .last_op_of_reduction = {IR_NONE},
                                     .reduced_part_to_add = {IR_NONE}};
        s->gradients_left[of->grad] += of->remote_grad == IR_NONE;
    }
    s->gradient[of->row_of_written_gradient].last_position = i;
}

/* True if the backward of a micro-batch has ended at position i, and the framework waits there for its reductions, so
 * that unreduced gradients are free (FSDP's _post_backward_final_callback(), DeepSpeed's reduction epilogue). */
static bool backward_ends_at_position(const struct shard *s, const struct op_list *list, uint32_t i)
{
    return s->e->choices->profile->compute_waits_for_reductions && s->e->choices->pp == 1 &&
           i > 0 && s->ir->op.phase[list->op[i]] == PHASE_FORWARD &&
           s->ir->op.phase[list->op[i - 1]] == PHASE_BACKWARD;
}

static void find_use_runs(struct shard *s, const struct op_list *list)
{
    const struct ir *ir = s->ir;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
            uint32_t buffer = ir_touched_buffer(ir, op, k);
            if (k >= ir->op.read_count[op] && s->buffer[buffer].grad != IR_NONE)
                record_gradient_write(s, buffer, i);
            else if (k < ir->op.read_count[op] && s->buffer[buffer].param != IR_NONE)
                add_read_to_weight_use_runs(s, list, s->buffer[buffer].param, i);
        }
    }
}

/* True if two runs use the root bundle, of embedding and head, in one micro-batch, and the bundle is not freed between
 * them. */
static bool runs_use_same_root_gather(const struct shard *s, const struct op_list *list,
                                      uint32_t before, uint32_t r)
{
    const struct weight_use_run *a = &s->run[before], *b = &s->run[r];
    bool freed = s->e->choices->reshard == RESHARD_ROOT &&
                 is_in_root_forward(s, list->op[a->end_position - 1]) &&
                 !is_in_root_forward(s, list->op[b->first_position]);
    return weights_have_root_unit(s->e->choices) && !freed &&
           b->bundle ==
               s->e->weights.part[part_index_of_embedding_or_head(s->e, PART_EMBEDDING)].bundle &&
           s->ir->op.micro[list->op[a->first_position]] ==
               s->ir->op.micro[list->op[b->first_position]];
}

/* True if a bundle stays gathered after its run `before`, so that its next run uses the same gather. After a forward
 * every bundle stays gathered with RESHARD_NEVER, and the root bundle on stages of torch.distributed.pipelining, unless
 * RESHARD_ROOT frees it. After a backward every bundle stays gathered on such stages
 * (set_reshard_after_backward(False)), and none elsewhere. */
static bool bundle_stays_gathered_after_run(const struct shard *s, const struct op_list *list,
                                            uint32_t before)
{
    const struct choices *c = s->e->choices;
    const struct weight_use_run *run = &s->run[before];
    bool stage = has_torch_pipeline_stages(s->e);
    if (is_in_root_forward(s, list->op[run->end_position - 1]))
        return c->reshard == RESHARD_NEVER ||
               (stage && c->reshard != RESHARD_ROOT && is_bundle_of_fsdp_root(s->e, run->bundle));
    return stage;
}

/* Finds the runs that use what an earlier run of the bundle gathered. If the profile's `param_reuse_distance_elements`
 * is above 0 (DeepSpeed's stage3_max_reuse_distance), these are the runs before which at most that many elements of
 * other bundles were read since the earlier run. They are runs of the last layers and of the head, between forward and
 * backward. Further cases are those of runs_use_same_root_gather() and bundle_stays_gathered_after_run(). */
static void find_runs_that_reuse_gathers(struct shard *s, const struct op_list *list)
{
    const struct emit *e = s->e;
    uint64_t reach = (uint64_t)e->choices->profile->param_reuse_distance_elements, read = 0;
    /* last: [bundles] 1 + the bundle's last run so far; 0: none. then: [bundles] the number of elements of all bundles
     * that had been read at the end of that run */
    uint32_t *last = arena_array(&s->arena, e->weights.bundle_count, sizeof *last);
    uint64_t *then = arena_array(&s->arena, e->weights.bundle_count, sizeof *then);
    for (uint32_t r = 0; r < s->run_count; r++) {
        uint32_t b = s->run[r].bundle;
        if (last[b] > 0 && ((reach > 0 && read - then[b] <= reach) ||
                            runs_use_same_root_gather(s, list, last[b] - 1, r) ||
                            bundle_stays_gathered_after_run(s, list, last[b] - 1)))
            s->run[r].earlier_gather_run = last[b] - 1;
        read += e->weights.bundle[b].elements;
        last[b] = r + 1;
        then[b] = read;
    }
}

/* Emits the copy of this rank's part of parameters from the host to the device, and returns the new buffer. The copy
 * starts after op `after`, whose end frees the memory; IR_NONE: at once. */
static buffer_id copy_part_to_device(struct shard *s, buffer_id part, uint32_t after)
{
    struct view from = view_whole(s->e, part);
    struct view to = emit_tensor_like(s->e, from, (int64_t)from.count, "fetched", MEMORY_HBM);
    op_id op = emit_host_device_copy(s->e, WORK_H2D, false, from, to);
    if (after != IR_NONE)
        emit_add_dependency(s->e, op, (op_id){after});
    return to.buffer;
}

/* Returns the buffer by which ops name a bundle's parameters, until the gathered parameters take its place. */
static buffer_id placeholder_buffer_of_params(const struct weight_bundle_state *bundle)
{
    return bundle->narrow.i != IR_NONE ? bundle->narrow : bundle->param;
}

/* Returns this rank's part of parameters that are gathered in 8 bits. Emits the op that quantises it, unless the part
 * is quantised once a step. */
static buffer_id own_part_in_8_bits_to_gather(struct emit *e, uint32_t b)
{
    const struct weight_bundle_state *bundle = &e->weights.bundle[b];
    struct view scales = view_whole(e, bundle->narrow_scales);
    return bundle->own_part_in_8_bits.i != IR_NONE
               ? bundle->own_part_in_8_bits
               : quantised_emit_own_part(e, b, bundle->amax_of_bundle, &scales).buffer;
}

/* Emits the gather of the parameters of run r before the op at position i (if the weights are sent to other stages,
 * their transfer, by remote_receive_params()); if an earlier run's gather serves run r, emits nothing. Among the runs
 * of bundles of the same kind, the gather starts after the end of the run prefetch_layers + 1 before r, whose memory it
 * may reuse. With the profile's switch weight_collectives_block_issue a gather, but not such a transfer, starts after
 * the op at position i - 1 instead. */
static void emit_gather_of_run(struct shard *s, uint32_t r, uint32_t i, const struct op_list *in)
{
    struct emit *e = s->e;
    struct weight_use_run *run = &s->run[r];
    if (run->earlier_gather_run != IR_NONE) {
        run->gathered_buffer = s->run[run->earlier_gather_run].gathered_buffer;
        return;
    }
    uint32_t first = in->op[run->first_position];
    uint32_t before = nth_run_of_same_kind_before(s, r, e->choices->profile->prefetch_layers + 1);
    buffer_id part = e->weights.bundle[run->bundle].param_shard;
    op_id op;
    weights_set_op_labels(e, (enum phase)s->ir->op.phase[first], REGION_WEIGHT_COLLECTIVES, first);
    if (s->has_remote_weights) {
        run->gathered_buffer =
            remote_receive_params(e, run->pass_that_uses_weights, run->bundle, &op);
        if (run->pass_that_uses_weights.chunk == e->stage)
            run->gathered_buffer.i = IR_NONE; /* the owner's ops read its own parameters */
    } else {
        const struct weight_bundle_state *bundle = &e->weights.bundle[run->bundle];
        const bool narrow = bundle->narrow.i != IR_NONE;
        run->gathered_buffer = ir_add_buffer_like(s->ir, placeholder_buffer_of_params(bundle));
        if (narrow)
            part = own_part_in_8_bits_to_gather(e, run->bundle);
        else if (s->ir->buffer.memory[part.i] != MEMORY_HBM)
            part = copy_part_to_device(
                s, part, before != IR_NONE ? in->op[s->run[before].end_position - 1] : IR_NONE);
        if (!narrow && bundle->storage == FROZEN_STORAGE_16BIT &&
            s->ir->buffer.dtype[part.i] != e->choices->dtype) {
            buffer_id in_compute_dtype = weights_new_shard_buffer(
                e, run->bundle, "cast", CATEGORY_COMMUNICATION, e->choices->dtype);
            emit_cast(e, view_whole(e, part), view_whole(e, in_compute_dtype));
            part = in_compute_dtype;
        }
        buffer_id to = run->gathered_buffer;
        if (e->choices->profile->gathers_to_flat_buffer)
            to = run->flat_gather_buffer = ir_add_buffer_like(s->ir, run->gathered_buffer);
        op = weights_emit_collective(e, e->stream.weight_gather, WORK_ALL_GATHER,
                                     e->weights.bundle[run->bundle].ranks->shard_group, part, to);
    }
    if (!s->has_remote_weights && e->choices->profile->weight_collectives_block_issue && i > 0)
        emit_add_dependency(e, op, (op_id){in->op[i - 1]});
    else if (before != IR_NONE)
        emit_add_dependency(e, op, (op_id){in->op[s->run[before].end_position - 1]});
}

/* Emits the copy of a run's parameters out of the flat buffer into which they were gathered; does nothing if there is
 * none. In the forward the flat buffer stays in memory until the copy of the next run, so that a copy and the next
 * gather may overlap (FSDPParamGroup.wait_for_unshard()). */
static void copy_from_flat_buffer(struct shard *s, const struct weight_use_run *run, uint32_t op)
{
    if (run->flat_gather_buffer.i == IR_NONE)
        return;
    enum phase phase = (enum phase)s->ir->op.phase[op];
    struct view from = view_whole(s->e, run->flat_gather_buffer),
                to = view_whole(s->e, run->gathered_buffer);
    weights_set_op_labels(s->e, phase, REGION_WEIGHT_COLLECTIVES, op);
    emit_pack_or_unpack(s->e, WORK_PACK, from, to, (int64_t)from.count, 1, 1);
    if (phase == PHASE_FORWARD && s->flat_buffer_of_last_copy.i != IR_NONE)
        emit_extend_lifetime(s->e, s->flat_buffer_of_last_copy, s->e->last_compute);
    s->flat_buffer_of_last_copy =
        phase == PHASE_FORWARD ? run->flat_gather_buffer : (buffer_id){IR_NONE};
}

/* Emits, before the op at position i, the gathers of all runs up to `last` that are not emitted yet. */
static void emit_gathers_up_to_run(struct shard *s, uint32_t last, uint32_t i,
                                   const struct op_list *in)
{
    for (; s->first_run_without_gather <= last && s->first_run_without_gather < s->run_count;
         s->first_run_without_gather++)
        emit_gather_of_run(s, s->first_run_without_gather, i, in);
}

/* Emits the gathers that are due before the op at position i, which belongs to run r, and the copy out of the run's
 * flat buffer. Makes the op read the gathered parameters. */
static void emit_gathers_due_before_op(struct shard *s, uint32_t r, uint32_t i,
                                       const struct op_list *in)
{
    const struct profile *profile = s->e->choices->profile;
    const struct weight_use_run *run = &s->run[r];
    uint32_t op = in->op[i],
             param = placeholder_buffer_of_params(&s->e->weights.bundle[run->bundle]).i;
    if (run->first_position == i)
        emit_gathers_up_to_run(
            s,
            profile->prefetches_weights_after_core
                ? r
                : last_use_run_of_nth_layer_after(s, r, profile->prefetch_layers),
            i, in);
    if (run->position_after_attention_core == i)
        emit_gathers_up_to_run(s, last_use_run_of_nth_layer_after(s, r, profile->prefetch_layers),
                               i, in);
    if (run->first_position == i)
        copy_from_flat_buffer(s, run, op);
    for (uint32_t k = 0; run->gathered_buffer.i != IR_NONE && k < s->ir->op.read_count[op]; k++)
        if (ir_touched_buffer(s->ir, op, k) == param)
            ir_redirect_operand(s->ir, op, k, run->gathered_buffer);
}

/* Sets position_after_attention_core of each run: the position after the last op of attention in a forward or its
 * recomputation. */
static void set_positions_after_attention_core(struct shard *s, const struct op_list *list)
{
    const struct ir *ir = s->ir;
    for (uint32_t r = 0; r < s->run_count; r++) {
        for (uint32_t i = s->run[r].first_position; i + 1 < s->run[r].end_position; i++) {
            uint32_t op = list->op[i];
            if (ir->op.region[op] == REGION_ATTENTION && ir->op.phase[op] != PHASE_BACKWARD)
                s->run[r].position_after_attention_core = i + 1;
        }
    }
}

/* Emits the clipping of gradients and the updates of parameters. If gradients are clipped, all updates wait for the
 * last reduction; else each bundle is updated as soon as its gradient is final, while others are being reduced. Updates
 * are in the order of bundles if shard_reduces_in_bundle_order() says so, else in the order in which gradients become
 * final; then a tied embedding that two stages hold comes last. */
static void emit_clipping_and_updates(struct shard *s)
{
    struct emit *e = s->e;
    bool in_order = shard_reduces_in_bundle_order(s), clips = weights_clip_gradients(e->choices);
    uint32_t *bundle = arena_array(&s->arena, e->weights.bundle_count, sizeof *bundle), count = 0;
    uint32_t emitted = s->ir->op.count;
    for (uint32_t b = 0; in_order && b < e->weights.bundle_count; b++)
        if (!e->weights.bundle[b].has_states_elsewhere)
            bundle[count++] = b;
    for (int both_ends = 0; !in_order && both_ends < 2; both_ends++)
        for (uint32_t row = 0; row < s->gradient_count; row++) {
            uint32_t b = s->gradient[row].bundle;
            if (!s->gradient[row].is_last_reduced_of_bundle ||
                e->weights.bundle[b].is_on_first_and_last_stage != both_ends)
                continue;
            bundle[count++] = b;
            if (clips)
                continue;
            shard_add_reduced_parts_to_kept(s, row + 1, IR_NONE);
            weights_emit_clip_and_update(e, &b, 1);
        }
    if (in_order || clips)
        weights_emit_clip_and_update(e, bundle, count);
    /* The first op of clipping waits for the last reduction. The others come after it on its stream, or wait for ops
     * there. */
    if (clips && s->ir->op.count > emitted)
        emit_add_dependency(e, (op_id){emitted}, s->last_op_that_finishes_gradient);
}

/* Sets, for each buffer, the bundle whose parameters or gradient it holds (s->buffer). */
static void record_bundles_of_buffers(struct shard *s)
{
    const struct emit_weights *w = &s->e->weights;
    s->buffer_count = s->ir->buffer.count;
    s->buffer = heap_alloc(s->buffer_count, sizeof *s->buffer);
    memset(s->buffer, 0xff, s->buffer_count * sizeof *s->buffer);
    for (uint32_t b = 0; b < w->bundle_count; b++)
        if (s->has_remote_weights || (s->gathers_params && w->bundle[b].ranks->shard_size > 1))
            s->buffer[placeholder_buffer_of_params(&w->bundle[b]).i].param = b;
    for (uint32_t i = 0; i < w->grad_buffer_count; i++)
        if (w->grad_buffer[i].i != IR_NONE)
            s->buffer[w->grad_buffer[i].i].grad = i % w->bundle_count;
    for (uint32_t i = 0; i < w->remote_grad_count; i++) {
        s->buffer[w->remote_grad[i].buffer.i].grad = w->remote_grad[i].bundle;
        s->buffer[w->remote_grad[i].buffer.i].remote_grad = i;
    }
}

static void shard_init(struct shard *s, struct emit *e, const struct op_list *list)
{
    *s = (struct shard){
        .e = e,
        .ir = e->ir,
        .first_unlisted_op = e->ir->op.count,
        .gathers_params = weights_shard_params(e->choices) && e->group.dense.shard_size > 1,
        .has_remote_weights = pipeline_has_remote_weights(e->choices),
        .last_two_summed_gradients = {IR_NONE, IR_NONE},
        .flat_buffer_of_last_copy = {IR_NONE},
    };
    if (s->has_remote_weights)
        remote_select_own_gradients_again(e);
    record_bundles_of_buffers(s);
    s->gradients_left = arena_array(&s->arena, e->weights.bundle_count, sizeof *s->gradients_left);
    s->reduced_gradients =
        arena_array(&s->arena, e->weights.bundle_count, sizeof *s->reduced_gradients);
    find_use_runs(s, list);
    set_positions_after_attention_core(s, list);
    if (!s->has_remote_weights)
        find_runs_that_reuse_gathers(s, list);
}

/* Begins the gradients that `op`, at position i, is the first to write, and moves *next past their rows. Before `op`,
 * for each of them: adds the reduced parts of the gradients two or more rows before it to the kept parts, and zeroes
 * its padding. If shard_has_write_wait_for_reduction() says so, `op` waits for the reduction of the gradient two rows
 * before it. */
static void begin_gradients_written_by_op(struct shard *s, uint32_t i, uint32_t op, uint32_t *next)
{
    for (; *next < s->gradient_count && s->gradient[*next].first_position == i; ++*next) {
        const uint32_t row = *next, two_before = row >= 2 ? row - 2 : IR_NONE;
        if (two_before != IR_NONE)
            shard_add_reduced_parts_to_kept(s, two_before + 1, i);
        shard_zero_padding(s, row, op);
        if (two_before == IR_NONE || !shard_has_write_wait_for_reduction(s, row))
            continue;
        const struct bundle_gradient *before = &s->gradient[two_before];
        if (before->last_position < i && before->last_op_of_reduction.i != IR_NONE)
            emit_add_dependency(s->e, (op_id){op}, before->last_op_of_reduction);
    }
}

/* Writes the new list: the ops of `list`, with gathers before the ops that read parameters, and reductions after the
 * ops that complete a gradient. */
static void rewrite_list(struct shard *s, const struct op_list *list)
{
    bool holds = s->e->choices->profile->weight_collectives_block_issue && !shard_reduces_at_end(s);
    uint32_t r = 0, next = 0; /* the run and the gradient to come */
    op_id held = {IR_NONE};   /* a reduction that the next op waits for */
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t op = list->op[i];
        while (r < s->run_count && s->run[r].end_position <= i)
            r++;
        for (uint32_t k = r; k < s->run_count && s->run[k].first_position <= i; k++)
            if (s->run[k].end_position > i)
                emit_gathers_due_before_op(s, k, i, list);
        if (backward_ends_at_position(s, list, i))
            shard_add_reduced_parts_to_kept(s, s->gradient_count, i);
        begin_gradients_written_by_op(s, i, op, &next);
        if (held.i != IR_NONE)
            emit_add_dependency(s->e, (op_id){op}, held);
        shard_append_emitted_ops(s);
        op_list_push(&s->new_list, (op_id){op});
        uint32_t emitted = s->ir->op.count;
        shard_emit_reductions_due_at_op(s, i, op);
        held.i = holds && s->ir->op.count > emitted ? s->last_op_that_finishes_gradient.i : IR_NONE;
    }
}

/* Keeps the gathered parameters of FSDP2's root in memory as long as the module is gathered: in the backward, until all
 * of it has ended (_root_post_backward_final_callback()); in the forward, if the loss is part of the module
 * (loss_in_root_unit), until the loss has been computed. */
static void extend_root_lifetime(struct shard *s, const struct op_list *list)
{
    const struct profile *profile = s->e->choices->profile;
    for (uint32_t r = 0; profile->gathers_to_flat_buffer && r < s->run_count; r++) {
        const struct weight_use_run *run = &s->run[r];
        uint32_t last = run->end_position - 1;
        bool forward = is_in_root_forward(s, list->op[last]);
        if (!weights_have_root_unit(s->e->choices) || !is_bundle_of_fsdp_root(s->e, run->bundle) ||
            run->gathered_buffer.i == IR_NONE || (forward && !profile->loss_in_root_unit))
            continue;
        while (last + 1 < list->count && is_in_root_forward(s, list->op[last + 1]) == forward)
            last++;
        emit_extend_lifetime(s->e, run->gathered_buffer, (op_id){list->op[last]});
    }
}

/* Keeps gradients that are allocated in the backward in memory until the step's last op, since only the zero_grad() of
 * the next step frees them. */
static void extend_gradient_lifetimes(struct emit *e)
{
    op_id last = {e->ir->op.count - 1};
    for (uint32_t b = 0;
         weights_allocate_gradients_in_backward(e->choices) && b < e->weights.bundle_count; b++) {
        const struct weight_bundle_state *bundle = &e->weights.bundle[b];
        const buffer_id grad[] = {bundle->grad_shard, weights_reduce_each_micro_batch(e->choices)
                                                          ? (buffer_id){IR_NONE}
                                                          : bundle->grad};
        for (size_t i = 0; i < ARRAY_LEN(grad); i++)
            if (grad[i].i != IR_NONE)
                emit_extend_lifetime(e, grad[i], last);
    }
}

/* Emits the gathers with which a step begins. If layers may not compute meanwhile (PARAM_GATHER_END), the first op of
 * the list waits for the last gather. */
static void emit_gathers_that_begin_step(struct shard *s, const struct op_list *list)
{
    op_id last = early_gather_emit_all_bundles(s->e);
    shard_append_emitted_ops(s);
    if (last.i != IR_NONE && s->e->choices->param_gather == PARAM_GATHER_END && list->count > 0)
        emit_add_dependency(s->e, (op_id){list->op[0]}, last);
}

void pass_weights(struct emit *e, struct op_list *list)
{
    struct shard s;
    shard_init(&s, e, list);
    if (e->choices->scope == SCOPE_WHOLE_STEP)
        emit_gathers_that_begin_step(&s, list);
    rewrite_list(&s, list);
    for (uint32_t k = 0; k < 2; k++)
        shard_add_remote_sum(&s, k);
    if (pipeline_shards_weights(e->choices))
        remote_return_gradient_parts(e, shard_last_op_on_unshared_gradient(&s, list));
    if (shard_reduces_at_end(&s))
        shard_reduce_in_bundle_order(&s, list);
    shard_reduce_tied_embedding(&s);
    if (weights_clip_gradients(e->choices) || e->choices->profile->host_before_optimizer_s > 0 ||
        e->choices->scope != SCOPE_WHOLE_STEP)
        shard_add_reduced_parts_to_kept(&s, s.gradient_count, IR_NONE);
    shard_wait_between_backward_and_step(&s);
    if (e->choices->scope == SCOPE_WHOLE_STEP)
        emit_clipping_and_updates(&s);
    extend_gradient_lifetimes(e);
    extend_root_lifetime(&s, list);
    shard_append_emitted_ops(&s);
    free(s.run);
    free(s.gradient);
    free(s.buffer);
    arena_release(&s.arena);
    op_list_release(list);
    *list = s.new_list;
}
