/* Remote weights in the form MSP_WEIGHTS_SHARD (remote_weights.h): each of the stages that share units holds an equal
 * part of the chunk's bundles, in the order of stages.
 *
 * The owner has no buffers of its own for its part: it sends the part from its parameters, and its part of each sum is
 * added to its gradients. */
#include "schedule/emit/emit.h"
#include "schedule/emit/process_groups.h"
#include "schedule/pipeline/multiplex.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/remote_weights.h"

#include <stdlib.h>

static bool stage_ranges_are_equal(const struct stages_sharing_pipeline_unit *a,
                                   const struct stages_sharing_pipeline_unit *b)
{
    return a->chunk == b->chunk && a->first_stage == b->first_stage && a->count == b->count;
}

struct stage_bundle_part *remote_find_or_add_part(struct emit *e, uint32_t bundle,
                                                  const struct stages_sharing_pipeline_unit *shared)
{
    for (uint32_t i = 0; i < e->weights.stage_bundle_part_count; i++)
        if (e->weights.stage_bundle_part[i].bundle == bundle &&
            stage_ranges_are_equal(&e->weights.stage_bundle_part[i].sharing_stages, shared))
            return &e->weights.stage_bundle_part[i];
    e->weights.stage_bundle_part =
        heap_grow(e->weights.stage_bundle_part, &e->weights.stage_bundle_part_capacity,
                  e->weights.stage_bundle_part_count + 1u, sizeof *e->weights.stage_bundle_part);
    struct stage_bundle_part *part =
        &e->weights.stage_bundle_part[e->weights.stage_bundle_part_count++];
    *part = (struct stage_bundle_part){.bundle = bundle,
                                       .sharing_stages = *shared,
                                       .param = {IR_NONE},
                                       .grad = {IR_NONE},
                                       .last_gradient_sum_op = {IR_NONE}};
    return part;
}

static uint64_t elements_of_stage_part(const struct emit *e, const struct stage_bundle_part *part)
{
    return e->weights.bundle[part->bundle].elements / part->sharing_stages.count;
}

/* Returns a view of `count` parts of a bundle that is in the buffer `whole`, from part number `index` on. Parts are
 * numbered as the stages that share the bundle are. */
static struct view view_of_parts(const struct emit *e, const struct stage_bundle_part *part,
                                 buffer_id whole, uint32_t index, uint32_t count)
{
    uint64_t elements = elements_of_stage_part(e, part);
    return (struct view){whole, index * elements, count * elements};
}

static struct view view_of_own_part(const struct emit *e, const struct stage_bundle_part *part,
                                    buffer_id whole)
{
    return view_of_parts(e, part, whole, part->sharing_stages.index, 1);
}

static buffer_id new_buffer_of_stage_part(struct emit *e, const struct stage_bundle_part *part,
                                          const char *stem, enum category category,
                                          enum dtype dtype)
{
    return emit_buffer(e, stem, category, dtype, (int64_t)elements_of_stage_part(e, part), 0);
}

void remote_emit_copy_of_own_part(struct emit *e, struct stage_bundle_part *part, buffer_id params)
{
    part->parameters_have_arrived = true;
    if (part->sharing_stages.this_stage_owns_layers)
        return;
    part->param = new_buffer_of_stage_part(e, part, "param_part", CATEGORY_PARAMETER,
                                           (enum dtype)e->choices->dtype);
    struct view from = view_of_own_part(e, part, params), to = view_whole(e, part->param);
    struct work work = {.kind = WORK_PACK, .pack = {1, 1, {(int64_t)to.count, 0, 0}}};
    uint8_t stream = ir_add_stream(e->ir, "compute.parts", STREAM_COMPUTE);
    emit_op(e, stream, &work, &from, 1, &to, 1);
}

op_id remote_gather_parts(struct emit *e, const struct stage_bundle_part *part, buffer_id to)
{
    struct view all = view_whole(e, to);
    struct view from = part->sharing_stages.this_stage_owns_layers
                           ? view_of_own_part(e, part, e->weights.bundle[part->bundle].param)
                           : view_whole(e, part->param);
    uint16_t group = multiplex_group_of_sharing_stages(
        e, "weights",
        (struct stages_sharing_subsequence){part->sharing_stages.first_stage,
                                            part->sharing_stages.count});
    struct work work = {.kind = WORK_ALL_GATHER, .collective = {group, bytes_of_view(e, from)}};
    return emit_op(e, e->stream.weight_gather, &work, &from, 1, &all, 1);
}

op_id remote_sum_parts(struct emit *e, struct remote_grad *remote_grad)
{
    struct stage_bundle_part *part =
        remote_find_or_add_part(e, remote_grad->bundle, &remote_grad->sharing_stages);
    bool adds = part->sharing_stages.this_stage_owns_layers || part->grad.i != IR_NONE;
    buffer_id to = new_buffer_of_stage_part(e, part, adds ? "reduced" : "grad_part",
                                            CATEGORY_GRADIENT, (enum dtype)e->weights.grad_dtype);
    if (adds)
        remote_grad->gradient_sum_to_add = to;
    else
        part->grad = to;
    return part->last_gradient_sum_op =
               weights_emit_collective(e, e->stream.grad_reduce, WORK_REDUCE_SCATTER,
                                       remote_grad->group, remote_grad->buffer, to);
}

struct view remote_view_of_own_gradient_part(const struct emit *e,
                                             const struct stage_bundle_part *part)
{
    return part->sharing_stages.this_stage_owns_layers
               ? view_of_own_part(e, part, e->weights.grad_buffer[part->bundle])
               : view_whole(e, part->grad);
}

/* ---- the return of parts of gradients to their owners ---- */

/* Orders parts by the time at which their gradients are complete, the earliest first. Parts of a chunk's last units,
 * which stages before the owner share, come before parts of its first units, since the backward begins with the last
 * units. Within each kind, later chunks come first. */
static int compare_parts_by_ready_time(const void *left, const void *right)
{
    const struct stage_bundle_part *a = left, *b = right;
    bool late_a = a->sharing_stages.first_stage < a->sharing_stages.chunk,
         late_b = b->sharing_stages.first_stage < b->sharing_stages.chunk;
    if (late_a != late_b)
        return late_a ? -1 : 1;
    if (a->sharing_stages.chunk != b->sharing_stages.chunk)
        return a->sharing_stages.chunk > b->sharing_stages.chunk ? -1 : 1;
    if (a->bundle != b->bundle)
        return a->bundle > b->bundle ? -1 : 1;
    if (a->sharing_stages.first_stage != b->sharing_stages.first_stage)
        return a->sharing_stages.first_stage < b->sharing_stages.first_stage ? -1 : 1;
    return (a->sharing_stages.count > b->sharing_stages.count) -
           (a->sharing_stages.count < b->sharing_stages.count);
}

static op_id emit_part_message(struct emit *e, enum work_kind kind, uint32_t peer, struct view x)
{
    enum { CHANNEL_PARTS = 2 };
    const char *name = kind == WORK_SEND ? "comm.parts_out" : "comm.parts_in";
    uint8_t stream = ir_add_stream(e->ir, name, STREAM_COMM);
    return emit_message(e, kind, stream, (int64_t)peer - e->stage, x, CHANNEL_PARTS);
}

/* Receives the parts `begin` to `end` - 1 of a gradient, which are next to each other, from their stages and adds them
 * to the owner's gradient. The receives wait for the last sum of the part and for op `last_unshared`, unless that is
 * IR_NONE. */
static void emit_receive_and_add_gradient_parts(struct emit *e,
                                                const struct stage_bundle_part *part,
                                                uint32_t begin, uint32_t end, op_id last_unshared)
{
    if (begin == end)
        return;
    uint32_t count = end - begin;
    buffer_id given =
        emit_buffer(e, "returned", CATEGORY_GRADIENT, (enum dtype)e->weights.grad_dtype,
                    (int64_t)(count * elements_of_stage_part(e, part)), 0);
    for (uint32_t i = 0; i < count; i++) {
        op_id op = emit_part_message(e, WORK_RECV, part->sharing_stages.first_stage + begin + i,
                                     view_of_parts(e, part, given, i, 1));
        emit_add_dependency(e, op, part->last_gradient_sum_op);
        if (last_unshared.i != IR_NONE)
            emit_add_dependency(e, op, last_unshared);
    }
    struct view own = view_of_parts(e, part, e->weights.grad_buffer[part->bundle], begin, count);
    emit_add(e, view_whole(e, given), own, own);
}

void remote_return_gradient_parts(struct emit *e, op_id last_unshared)
{
    weights_set_op_labels(e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES, IR_NONE);
    if (e->weights.stage_bundle_part_count > 0)
        qsort(e->weights.stage_bundle_part, e->weights.stage_bundle_part_count,
              sizeof *e->weights.stage_bundle_part, compare_parts_by_ready_time);
    for (uint32_t i = 0; i < e->weights.stage_bundle_part_count; i++) {
        const struct stage_bundle_part *part = &e->weights.stage_bundle_part[i];
        const struct stages_sharing_pipeline_unit *shared = &part->sharing_stages;
        if (part->last_gradient_sum_op.i == IR_NONE)
            continue;
        if (!shared->this_stage_owns_layers) {
            emit_part_message(e, WORK_SEND, shared->chunk, view_whole(e, part->grad));
            continue;
        }
        emit_receive_and_add_gradient_parts(e, part, 0, shared->index, last_unshared);
        emit_receive_and_add_gradient_parts(e, part, shared->index + 1, shared->count,
                                            last_unshared);
    }
}
