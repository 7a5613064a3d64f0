/* schedule/config/mesh_parts.h: the parts of the device mesh that choices ask for. */
#ifndef SCHEDULE_CONFIG_MESH_PARTS_H
#define SCHEDULE_CONFIG_MESH_PARTS_H

#include "schedule/choices/choices.h"

#include <stdint.h>

/* The degree of parallelism to which a part of the mesh belongs. A part is an axis of the mesh, or several axes if a
 * run of neighbouring ranks ends inside the part (schedule/emit/process_groups.c). */
enum mesh_part_kind {
    MESH_PART_DP,
    MESH_PART_PP,
    MESH_PART_OUTER, /* the windows of a ring */
    MESH_PART_INNER, /* the ranks of a window */
    MESH_PART_HP,
    MESH_PART_TP,
    MESH_PART_SAME_KV_HEADS, /* the ranks that hold the same key and value heads */
    MESH_PART_KIND_COUNT
};
struct mesh_part {
    const char *name;
    uint32_t size;
    uint8_t kind; /* enum mesh_part_kind */
    /* for a part of the ring: its place in the order in which the ring visits ranks, the slowest part first */
    uint8_t order_among_ring_parts;
};
enum { MESH_PARTS_MAX = 7 };
/* Fills part[] with the parts in the order of ranks, the slowest first, and returns their number. The parts of tensor
 * ranks, which come after all others, are not among them. */
uint32_t mesh_parts_of_choices(const struct choices *c, struct mesh_part part[MESH_PARTS_MAX]);
/* Returns whether a run of `ranks` neighbouring ranks of a stage cuts at most one part of the mesh, and cuts it evenly.
 * Ranks that differ only as tensor ranks count as one. */
bool mesh_parts_are_cut_evenly_by_run(const struct choices *c, int64_t ranks);

#endif
