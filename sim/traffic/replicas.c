#include "sim/traffic/replicas.h"

#include "schedule/ir/visible.h"

/* Returns the number of ranks of the smallest part of the machine whose links no other part uses: a fabric domain,
 * or, if leaf switches limit the network, as many domains as fill whole leaves. */
static uint64_t rank_count_of_isolated_part(const struct cluster *cluster)
{
    const struct network *network = &cluster->network;
    int64_t nodes = cluster->domain_nodes;
    if (network->nodes_per_leaf_switch > 0 && network->oversubscription > 1)
        while (nodes % network->nodes_per_leaf_switch != 0)
            nodes += cluster->domain_nodes;
    return (uint64_t)(nodes * cluster->gpus_per_node);
}

/* True if the flows of a communication do not depend on which of its members comes first. */
static bool kind_ignores_member_order(enum work_kind kind)
{
    switch (kind) {
    case WORK_ALL_TO_ALL:
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
    case WORK_ALL_REDUCE:
    case WORK_BROADCAST: /* a ring through all members, whatever the root is */
    case WORK_REDUCE:
    case WORK_BARRIER:
        return true;
    default:
        return false;
    }
}

/* Returns a bit mask of the listed axes. only_sets: an axis counts only if it is listed with a set of coordinates. */
static uint32_t mask_of_listed_axes(const struct axis_coordinate_set *axis, uint32_t count,
                                    bool only_sets)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < count; i++)
        axes |= (uint32_t)(!only_sets || axis[i].count > 0) << axis[i].axis;
    return axes;
}

/* Returns the axes along which ranks see different keys of packed documents: always those of context ranks, and those
 * of data-parallel ranks if their sequences are packed differently. */
static uint32_t document_axes_mask(const struct ir *ir)
{
    uint32_t replicas, axes = ir_mask_of_axes_named(ir, "cp"), dp = ir_mask_of_axes_named(ir, "dp");
    ir_rank_index_along_axes(ir, 0, dp, &replicas);
    return documents_equal_on_ranks(&ir->documents, replicas) ? axes : axes | dp;
}

/* Returns a bit mask of the axes along which some ranks do other work than others. */
static uint32_t mesh_axes_mask_of_uneven_work(const struct ir *ir)
{
    uint32_t axes = 0;
    for (uint32_t r = 0; r < ir->role_count; r++)
        axes |= mask_of_listed_axes(ir->role[r].axis, ir->role[r].axis_count, false);
    for (uint32_t g = 0; g < ir->guard_count; g++) {
        const struct group *group = &ir->group[ir->guard[g].group];
        axes |= mask_of_listed_axes(group->axis, group->axis_count, false);
    }
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *work = &ir->shape[s];
        struct row_use use;
        if (work_pairs_depend_on_rank(work) || row_use_if_work_moves_rows(work, &use))
            axes |= document_axes_mask(ir);
        if (work_comm_group(work) < 0)
            continue;
        const struct group *group = &ir->group[work_comm_group(work)];
        axes |= mask_of_listed_axes(group->axis, group->axis_count,
                                    kind_ignores_member_order(work->kind));
    }
    return axes;
}

struct mesh replicas_planned_mesh(const struct ir *ir, const struct cluster *cluster)
{
    struct mesh mesh = ir->mesh;
    uint32_t uneven = mesh_axes_mask_of_uneven_work(ir);
    uint64_t part = rank_count_of_isolated_part(cluster), stride = 1;
    for (uint32_t a = mesh.axis_count; a-- > 0;) {
        uint32_t size = mesh.axis[a].size, by = uneven >> a & 1 ? size : 1;
        while (by < size && (by * stride % part != 0 || size % by != 0))
            by++; /* grows to the shortest rotation that maps parts onto parts */
        mesh.axis[a].size = by;
        stride *= size;
    }
    return mesh;
}

uint32_t replicas_rank_in_full_mesh(const struct mesh *all, const struct mesh *planned,
                                    uint32_t row)
{
    uint32_t coordinate_by_axis[MESH_AXES_MAX];
    mesh_coordinates(planned, row, coordinate_by_axis);
    return mesh_rank_at(all, coordinate_by_axis);
}

uint32_t replicas_rank_in_planned_mesh(const struct mesh *all, const struct mesh *planned,
                                       uint32_t rank)
{
    uint32_t coordinate_by_axis[MESH_AXES_MAX];
    mesh_coordinates(all, rank, coordinate_by_axis);
    for (uint32_t a = 0; a < all->axis_count; a++)
        coordinate_by_axis[a] %= planned->axis[a].size;
    return mesh_rank_at(planned, coordinate_by_axis);
}
