#include "schedule/config/mesh_parts.h"

/* Adds the parts of the context axis to part[], and returns their number: the windows (outer ring) and the ranks of a
 * window (inner ring). With interleaved windows, the ring visits the even ranks of a node before the odd ones: rank 2 k
 * + o of the node is number k of the even (o = 0) or odd (o = 1) ranks. */
static uint32_t add_ring_parts(const struct choices *c, struct mesh_part part[4])
{
    uint32_t w = c->ring_window, node = c->ring_ranks_per_node;
    if (node > 0) {
        part[0] = (struct mesh_part){"cp_node", c->cp / node, MESH_PART_OUTER, 0};
        part[1] = (struct mesh_part){"cp_window", node / 2 / w, MESH_PART_OUTER, 2};
        part[2] = (struct mesh_part){"cp_in", w, MESH_PART_INNER, 3};
        part[3] = (struct mesh_part){"cp_odd", 2, MESH_PART_OUTER, 1};
        return 4;
    }
    bool two = w > 1 && w < c->cp;
    part[0] = (struct mesh_part){two ? "cp_out" : "cp", c->cp / w, MESH_PART_OUTER, 0};
    part[1] = (struct mesh_part){two ? "cp_in" : "cp", w, MESH_PART_INNER, 3};
    return 2;
}

uint32_t mesh_parts_of_choices(const struct choices *c, struct mesh_part part[MESH_PARTS_MAX])
{
    const struct mesh_part stages = {"pp", c->pp, MESH_PART_PP, 0};
    uint32_t count = 0;
    if (c->pp > 1 && c->stage_placement == STAGES_OUTER)
        part[count++] = stages;
    part[count++] = (struct mesh_part){"dp", c->dp, MESH_PART_DP, 0};
    if (c->pp > 1 && c->stage_placement == STAGES_INNER)
        part[count++] = stages;
    if (c->placement == PLACEMENT_CONTEXT_FIRST)
        part[count++] = (struct mesh_part){"hp", c->hp, MESH_PART_HP, 0};
    struct mesh_part ring[4];
    uint32_t parts = add_ring_parts(c, ring);
    for (uint32_t i = 0; i < parts; i++)
        if (ring[i].size > 1)
            part[count++] = ring[i];
    if (c->placement == PLACEMENT_HEAD_FIRST)
        part[count++] = (struct mesh_part){"hp", c->hp, MESH_PART_HP, 0};
    return count;
}

bool mesh_parts_are_cut_evenly_by_run(const struct choices *c, int64_t ranks)
{
    struct mesh_part part[MESH_PARTS_MAX];
    for (uint32_t i = mesh_parts_of_choices(c, part); i-- > 0;) {
        if (part[i].kind == MESH_PART_PP)
            continue;
        if (ranks <= part[i].size)
            return part[i].size % ranks == 0;
        if (ranks % part[i].size != 0)
            return false;
        ranks /= part[i].size;
    }
    return false;
}
