/* Places ranks on a mesh, makes the groups in which they communicate, and begins roles.
 *
 * Stages of a pipeline lie along the slowest axis and sequences along the next, so that the ranks of a stage are
 * neighbours (Megatron-LM core/parallel_state.py, order tp-cp-ep-dp-pp; torchtitan's ParallelDims; DeepSpeed's
 * PipeModelDataParallelTopology). With stage placement "inner" it is the other way round, so that neighbouring stages
 * are as near to each other as the ranks of a sequence allow.
 *
 * Head-first placement makes the ranks of a head group neighbours, context-first placement those of a ring. A
 * Double-Ring cuts the context axis into windows. HSDP's shard is a run of neighbouring ranks; where it ends inside an
 * axis, it cuts that axis in two. The ranks that have different experts are such a run as well, and lie within a shard
 * (Megatron-LM's parallel_state.py: experts order the ranks of a stage ep-dp; torchtitan's ParallelDims: dp_shard cp =
 * efsdp ep). Tensor ranks are neighbours; a shard never spans them, since they hold different weights. If there are
 * more tensor ranks than key and value heads, those that hold the same heads are neighbours (axis tp_copy). The name of
 * an axis, up to the first '_', says which degree it belongs to (exec/bindings.h). */
#include "schedule/emit/process_groups.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/config/mesh_parts.h"
#include "schedule/emit/emit.h"
#include "schedule/pipeline/pipeline.h"

#include <assert.h>
#include <stdio.h>

struct mesh_axis_parts {
    /* [mesh axes] the part to which each axis belongs */
    struct mesh_part part[MESH_AXES_MAX];
    uint32_t count;
};

static void add_axis(struct ir *ir, struct mesh_axis_parts *axes, const struct mesh_part *part,
                     const char *suffix, uint32_t size)
{
    struct mesh_axis *axis = &ir->mesh.axis[ir->mesh.axis_count++];
    snprintf(axis->name, sizeof axis->name, "%s%s", part->name, suffix);
    axis->size = size;
    axes->part[axes->count++] = *part;
}

/* Adds the group of the ranks along the axes in `mask`. Its ranks are in the order of a ring (order_among_ring_parts).
 * Returns IR_NONE16, and adds nothing, if the group would have one rank. */
static uint16_t add_group(struct ir *ir, const char *name, const struct mesh_axis_parts *axes,
                          uint32_t mask)
{
    struct axis_coordinate_set set[MESH_AXES_MAX] = {{0}};
    uint32_t size = 1, count = 0;
    for (uint32_t order = 0; order < 4; order++)
        for (uint32_t i = 0; i < axes->count; i++)
            if ((mask >> i & 1) && axes->part[i].order_among_ring_parts == order) {
                set[count++].axis = (uint8_t)i;
                size *= ir->mesh.axis[i].size;
            }
    return size > 1 ? ir_add_group(ir, name, set, count) : IR_NONE16;
}

static uint32_t axis_mask_of_mesh_part(const struct mesh_axis_parts *axes, enum mesh_part_kind what)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < axes->count; i++)
        mask |= (uint32_t)(axes->part[i].kind == what) << i;
    return mask;
}

/* Returns the set of `count` stages, from `first` on, each `apart` stages after the one before it. */
static struct axis_coordinate_set coordinate_set_of_strided_stages(struct emit *e, uint32_t first,
                                                                   uint32_t count, uint32_t apart)
{
    uint32_t *set = arena_array(&e->arena, count, sizeof *set);
    for (uint32_t i = 0; i < count; i++)
        set[i] = first + i * apart;
    return (struct axis_coordinate_set){(uint8_t)mesh_find_axis(&e->ir->mesh, "pp"), count, set};
}

void emit_begin_role(struct emit *e, uint32_t stage)
{
    char name[MESH_NAME_MAX];
    e->stage = stage;
    e->role = 0;
    e->last_compute.i = e->last_compute_before_wo_backward.i = e->awaited_by_next_compute.i =
        IR_NONE;
    e->loss_is_written = false;
    emit_narrow_forget_all_copies(e);
    e->kept_buffers.count = e->recomputed_buffer_count = e->buffers_never_recomputed.count = 0;
    e->recomputed_module_count = 0;
    e->extension_count = e->added_dependency_count = 0;
    if (e->choices->pp == 1)
        return; /* there is one role, of all ranks */
    struct axis_coordinate_set set = coordinate_set_of_strided_stages(e, stage, 1, 0);
    snprintf(name, sizeof name, "stage%u", stage);
    e->role = ir_add_role(e->ir, name, &set, 1);
}

/* Two runs of neighbouring ranks that may cut an axis: [0] the ranks of a shard (choices.shard), [1] the ranks that
 * have different experts. size: the number of ranks in a run; the tensor ranks of a group count as one. axes: a bit
 * mask of the axes along which they lie. */
struct shard_and_expert_rank_runs {
    uint32_t size[2];
    uint32_t axes[2];
};

/* Adds a part of the mesh as one axis, or as several if runs end inside it: it is cut where a run ends. Adds to
 * runs->axes the axes along which each run lies. below: the number of ranks of all later parts, where the tensor ranks
 * of a group count as one. */
static void add_mesh_axes_of_part(struct ir *ir, struct mesh_axis_parts *axes,
                                  const struct mesh_part *part, uint32_t below,
                                  struct shard_and_expert_rank_runs *runs)
{
    static const char *const suffix[3][3] = {{""}, {"_out", "_in"}, {"_out", "_mid", "_in"}};
    uint32_t above = below * part->size, end[4] = {above}, cuts = 0;
    for (int i = 0; i < 2; i++) /* the longer run is cut off first */
        if (runs->size[i] > below && runs->size[i] < end[cuts])
            end[++cuts] = runs->size[i];
    end[cuts + 1] = below;
    for (uint32_t k = 0; k <= cuts; k++) {
        for (int i = 0; i < 2; i++)
            if (runs->size[i] >= end[k] && runs->size[i] > 1)
                runs->axes[i] |= 1u << axes->count;
        add_axis(ir, axes, part, suffix[cuts][k], end[k] / end[k + 1]);
    }
}

/* Adds all axes of the mesh, and sets runs->axes. */
static void add_all_mesh_axes(struct emit *e, struct mesh_axis_parts *axes, uint32_t stages,
                              struct shard_and_expert_rank_runs *runs)
{
    const struct choices *c = e->choices;
    struct ir *ir = e->ir;
    struct mesh_part part[MESH_PARTS_MAX];
    uint32_t parts = mesh_parts_of_choices(c, part);
    uint32_t below = c->ranks / stages / c->tp;
    uint32_t copies = (uint32_t)tensor_kv_copies(e->whole_model, c->tp);
    for (uint32_t i = 0; i < parts; i++) {
        if (part[i].kind == MESH_PART_PP && stages > 1) { /* each stage has weights of its own */
            add_axis(ir, axes, &part[i], "", part[i].size);
            continue;
        }
        below /= part[i].size;
        add_mesh_axes_of_part(ir, axes, &part[i], below, runs);
    }
    assert(below == 1);
    if (c->tp > copies)
        add_axis(ir, axes, &(struct mesh_part){"tp", 0, MESH_PART_TP, 0}, "", c->tp / copies);
    if (copies > 1)
        add_axis(ir, axes, &(struct mesh_part){"tp_copy", 0, MESH_PART_SAME_KV_HEADS, 0}, "",
                 copies);
}

/* Makes the two groups of ranks for a set of weights. shard_group: the ranks along the axes `cut`, which share one
 * copy. replica_group: the ranks along those axes of `partial` that are not in `cut`. `partial` has the axes over which
 * the weights' gradients are partial sums. */
static struct weight_ranks make_weight_ranks(struct ir *ir, const struct mesh_axis_parts *plain,
                                             uint32_t partial, uint32_t cut, const char *shard,
                                             const char *replica)
{
    struct weight_ranks ranks = {.shard_group = add_group(ir, shard, plain, cut),
                                 .replica_group = add_group(ir, replica, plain, partial & ~cut),
                                 .shard_size = 1,
                                 .replica_size = 1,
                                 .partial_axes = partial};
    for (uint32_t i = 0; i < plain->count; i++)
        if (partial >> i & 1)
            *(cut >> i & 1 ? &ranks.shard_size : &ranks.replica_size) *= ir->mesh.axis[i].size;
    return ranks;
}

void emit_mesh(struct emit *e)
{
    const struct choices *c = e->choices;
    struct ir *ir = e->ir;
    struct mesh_axis_parts axes = {.count = 0}, plain;
    uint32_t shard = c->weights == CHOICE_WEIGHTS_REPLICATED ? 1 : c->shard;
    uint32_t stages = pipeline_replicates_weights(c) ? 1 : c->pp;
    struct shard_and_expert_rank_runs runs = {.size = {shard, c->ep / c->tp}};
    add_all_mesh_axes(e, &axes, stages, &runs);
    uint32_t sharded = runs.axes[0], ep = runs.axes[1];
    bool two = c->ring_window > 1 && c->ring_window < c->cp;
    uint32_t hp = axis_mask_of_mesh_part(&axes, MESH_PART_HP),
             copy = axis_mask_of_mesh_part(&axes, MESH_PART_SAME_KV_HEADS);
    uint32_t tp = axis_mask_of_mesh_part(&axes, MESH_PART_TP) | copy;
    ep |= c->ep > 1 ? tp : 0;
    uint32_t all = ((1u << axes.count) - 1) & ~tp;
    if (stages > 1)
        all &= ~axis_mask_of_mesh_part(&axes, MESH_PART_PP);
    e->group.axes_with_partial_loss =
        all |
        (pipeline_of_choices(c)->is_multiplexed ? axis_mask_of_mesh_part(&axes, MESH_PART_PP) : 0);
    e->group.pp = add_group(ir, "pp", &axes, axis_mask_of_mesh_part(&axes, MESH_PART_PP));
    e->group.hp = add_group(ir, "hp", &axes, hp);
    uint32_t outer = axis_mask_of_mesh_part(&axes, MESH_PART_OUTER),
             inner = axis_mask_of_mesh_part(&axes, MESH_PART_INNER);
    if (c->ring_ranks_per_node > 0) /* says in which order ranks hold tokens */
        add_group(ir, "cp", &axes, outer | inner);
    e->group.outer_ring = (struct ring){.size = c->cp / c->ring_window};
    e->group.inner_ring = (struct ring){.size = c->ring_window};
    e->group.outer_ring.group = add_group(ir, two ? "cp_out" : "cp", &axes, outer);
    e->group.inner_ring.group = add_group(ir, two ? "cp_in" : "cp", &axes, inner);
    e->tensor = (struct tensor_ranks){.size = c->tp, .axes = tp, .kv_head_copy_axes = copy};
    e->tensor.group = add_group(ir, "tp", &axes, tp);
    e->tensor.group_of_kv_head_copies = add_group(ir, "tp_copy", &axes, copy == tp ? 0 : copy);
    if (copy == tp)
        e->tensor.group_of_kv_head_copies = e->tensor.group;
    plain = axes;
    for (uint32_t i = 0; i < plain.count; i++)
        plain.part[i].order_among_ring_parts = 0;
    e->group.all_ranks = IR_NONE16;
    if (c->attention == CHOICE_ATTENTION_FPDT && c->profile->host_waits_after_each_chunk_tile)
        e->group.all_ranks = add_group(ir, "all", &plain, all);
    e->group.dense = make_weight_ranks(ir, &plain, all, sharded, "shard", "replica");
    e->group.ep = add_group(ir, "ep", &plain, ep);
    if (c->ep > 1)
        e->group.experts = make_weight_ranks(ir, &plain, all & ~ep, sharded & ~ep, "expert_shard",
                                             "expert_replica");
    e->group.group_for_gradient_norm = IR_NONE16;
    if (weights_clip_gradients(c))
        e->group.group_for_gradient_norm = add_group(
            ir, "norm", &plain,
            sharded | ep | tp | (stages > 1 ? axis_mask_of_mesh_part(&axes, MESH_PART_PP) : 0));
    e->group.group_seen_by_attention_core =
        c->hp == 1 ? c->sequence_parallel_ranks > 1 ? e->tensor.group : IR_NONE16
        : c->sequence_parallel_ranks == 1 ? e->group.hp
                                          : add_group(ir, "hp_tp", &plain, hp | tp);
    struct axis_coordinate_set ends = coordinate_set_of_strided_stages(e, 0, 2, c->pp - 1);
    e->group.group_of_first_and_last_stages = IR_NONE16;
    if (pipeline_ends_share_embedding(c)) /* the first and the last stage both have the embedding */
        e->group.group_of_first_and_last_stages = ir_add_group(ir, "ends", &ends, 1);
}

uint16_t multiplex_group_of_sharing_stages(struct emit *e, const char *what,
                                           struct stages_sharing_subsequence share)
{
    char name[MESH_NAME_MAX];
    struct axis_coordinate_set axis =
        coordinate_set_of_strided_stages(e, share.first_stage, share.count, 1);
    if (share.count == e->choices->pp) /* the whole axis */
        axis = (struct axis_coordinate_set){.axis = axis.axis};
    snprintf(name, sizeof name, "%s%u-%u", what, share.first_stage,
             share.first_stage + share.count - 1);
    return ir_add_group(e->ir, name, &axis, 1);
}
