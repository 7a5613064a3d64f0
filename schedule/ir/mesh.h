/* schedule/ir/mesh.h: ranks on a mesh with named axes, groups of ranks, guards, roles.
 *
 * The last axis is the fastest: with axes cp=4 hp=2, ranks 0 and 1 differ in hp.
 * A group is an ordered list of axes, each with all its coordinates or an explicit
 * set; ranks that agree on all other axes form one instance of the group. A rank's
 * index in its instance counts along the listed axes, last fastest. */
#ifndef SCHEDULE_MESH_H
#define SCHEDULE_MESH_H

#include <stdbool.h>
#include <stdint.h>

#define MESH_AXES_MAX 8
#define MESH_NAME_MAX 24 /* the NUL included */
#define MESH_RANKS_MAX (1u << 20)

struct mesh {
    uint32_t axis_count; /* 0: a single rank */
    struct mesh_axis {
        char name[MESH_NAME_MAX];
        uint32_t size;
    } axis[MESH_AXES_MAX];
};

struct axis_coordinate_set {
    uint8_t axis;   /* index of the axis in mesh.axis */
    uint32_t count; /* number of coordinates in the set; 0: all */
    /* the coordinates, ascending, in the owner's memory (the ir's arena); NULL: all */
    const uint32_t *coordinates;
};

struct group {
    char name[MESH_NAME_MAX];
    uint32_t axis_count;
    struct axis_coordinate_set axis[MESH_AXES_MAX];
};

/* The ranks that run one and the same list of ops: those whose coordinates lie in all listed sets. */
struct role {
    char name[MESH_NAME_MAX];
    uint32_t axis_count; /* 0: all ranks */
    struct axis_coordinate_set axis[MESH_AXES_MAX];
    uint32_t op_begin, op_count; /* its ops, which are contiguous in the op table */
};

enum guard_comparison { GUARD_LT, GUARD_GE, GUARD_EQ, GUARD_COMPARISON_COUNT };

/* An op with a guard does its work on ranks whose index in the group passes the test. */
struct guard {
    uint16_t group;
    uint8_t comparison_kind; /* enum guard_comparison */
    uint32_t value;
};

/* Returns the number of ranks: the product of the sizes of the axes. Sizes must be at least 1, and the product at most
 * MESH_RANKS_MAX. */
uint32_t mesh_rank_count(const struct mesh *mesh);
/* Returns the index of an axis by name, or -1. */
int mesh_find_axis(const struct mesh *mesh, const char *name);
/* mesh_coordinates() fills coordinate[] with the coordinates of a rank, one for each axis; mesh_rank_at() returns the
 * rank that has given coordinates. */
void mesh_coordinates(const struct mesh *mesh, uint32_t rank, uint32_t coordinate[MESH_AXES_MAX]);
uint32_t mesh_rank_at(const struct mesh *mesh, const uint32_t coordinate[MESH_AXES_MAX]);

/* Returns the bit mask of the axes that a group lists. */
uint32_t group_axis_mask(const struct group *group);
/* group_rank_count() returns the number of ranks in one instance of a group, group_instance_count() the number of its
 * instances. */
uint32_t group_rank_count(const struct mesh *mesh, const struct group *group);
uint32_t group_instance_count(const struct mesh *mesh, const struct group *group);
/* Sets *instance to the instance in which a rank is, and *index to its index there. Returns false if the rank is in no
 * instance, because an explicit set leaves it out. */
bool group_find_member(const struct mesh *mesh, const struct group *group, uint32_t rank,
                       uint32_t *instance, uint32_t *index);
/* Returns the rank with an index in an instance of a group; the inverse of group_find_member(). */
uint32_t group_global_rank_of_member(const struct mesh *mesh, const struct group *group,
                                     uint32_t instance, uint32_t index);

/* True if the rank runs the role's list. */
bool role_has_rank(const struct mesh *mesh, const struct role *role, uint32_t rank);
/* True if the op is in the role's list. */
static inline bool role_has_op(const struct role *role, uint32_t op)
{
    return op >= role->op_begin && op - role->op_begin < role->op_count;
}
/* Sets *peer to the rank whose index in the group's instance is that of `rank` plus `by`. Returns false if that index
 * is outside the group, or the rank is. */
bool group_peer(const struct mesh *mesh, const struct group *group, uint32_t rank, int64_t by,
                uint32_t *peer);
/* True if the rank passes the guard's test. A rank outside the guard's group does not. */
bool guard_passes(const struct mesh *mesh, const struct group *groups, const struct guard *guard,
                  uint32_t rank);

#endif
