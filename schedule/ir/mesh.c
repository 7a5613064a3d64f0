#include "schedule/ir/mesh.h"

#include <assert.h>
#include <string.h>

uint32_t mesh_rank_count(const struct mesh *mesh)
{
    uint32_t ranks = 1;
    for (uint32_t a = 0; a < mesh->axis_count; a++)
        ranks *= mesh->axis[a].size;
    return ranks;
}

int mesh_find_axis(const struct mesh *mesh, const char *name)
{
    for (uint32_t a = 0; a < mesh->axis_count; a++)
        if (strcmp(mesh->axis[a].name, name) == 0)
            return (int)a;
    return -1;
}

void mesh_coordinates(const struct mesh *mesh, uint32_t rank, uint32_t coordinate[MESH_AXES_MAX])
{
    for (uint32_t a = mesh->axis_count; a-- > 0;) {
        coordinate[a] = rank % mesh->axis[a].size;
        rank /= mesh->axis[a].size;
    }
    assert(rank == 0);
}

uint32_t mesh_rank_at(const struct mesh *mesh, const uint32_t coordinate[MESH_AXES_MAX])
{
    uint32_t rank = 0;
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        assert(coordinate[a] < mesh->axis[a].size);
        rank = rank * mesh->axis[a].size + coordinate[a];
    }
    return rank;
}

/* Returns the number of coordinates of an axis in a set. */
static uint32_t axis_coordinate_set_size(const struct mesh *mesh,
                                         const struct axis_coordinate_set *set)
{
    return set->count ? set->count : mesh->axis[set->axis].size;
}

/* Sets *place to the index of a coordinate in the set; returns false if the set does not have it. */
static bool index_in_axis_coordinate_set(const struct axis_coordinate_set *set, uint32_t coordinate,
                                         uint32_t *place)
{
    if (set->count == 0) {
        *place = coordinate;
        return true;
    }
    *place = 0;
    while (*place < set->count && set->coordinates[*place] != coordinate)
        ++*place;
    return *place < set->count;
}

uint32_t group_axis_mask(const struct group *group)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < group->axis_count; i++)
        axes |= 1u << group->axis[i].axis;
    return axes;
}

uint32_t group_rank_count(const struct mesh *mesh, const struct group *group)
{
    uint32_t size = 1;
    for (uint32_t i = 0; i < group->axis_count; i++)
        size *= axis_coordinate_set_size(mesh, &group->axis[i]);
    return size;
}

uint32_t group_instance_count(const struct mesh *mesh, const struct group *group)
{
    uint32_t listed = group_axis_mask(group), instances = 1;
    for (uint32_t a = 0; a < mesh->axis_count; a++)
        if (!(listed >> a & 1))
            instances *= mesh->axis[a].size;
    return instances;
}

bool group_find_member(const struct mesh *mesh, const struct group *group, uint32_t rank,
                       uint32_t *instance, uint32_t *index)
{
    uint32_t coordinate[MESH_AXES_MAX];
    mesh_coordinates(mesh, rank, coordinate);
    *index = 0;
    for (uint32_t i = 0; i < group->axis_count; i++) {
        const struct axis_coordinate_set *set = &group->axis[i];
        uint32_t place;
        if (!index_in_axis_coordinate_set(set, coordinate[set->axis], &place))
            return false;
        *index = *index * axis_coordinate_set_size(mesh, set) + place;
    }
    uint32_t listed = group_axis_mask(group);
    *instance = 0;
    for (uint32_t a = 0; a < mesh->axis_count; a++)
        if (!(listed >> a & 1))
            *instance = *instance * mesh->axis[a].size + coordinate[a];
    return true;
}

uint32_t group_global_rank_of_member(const struct mesh *mesh, const struct group *group,
                                     uint32_t instance, uint32_t index)
{
    uint32_t coordinate[MESH_AXES_MAX], listed = group_axis_mask(group);
    for (uint32_t i = group->axis_count; i-- > 0;) {
        const struct axis_coordinate_set *set = &group->axis[i];
        uint32_t size = axis_coordinate_set_size(mesh, set);
        uint32_t place = index % size;
        coordinate[set->axis] = set->count ? set->coordinates[place] : place;
        index /= size;
    }
    for (uint32_t a = mesh->axis_count; a-- > 0;)
        if (!(listed >> a & 1)) {
            coordinate[a] = instance % mesh->axis[a].size;
            instance /= mesh->axis[a].size;
        }
    assert(index == 0 && instance == 0);
    return mesh_rank_at(mesh, coordinate);
}

bool group_peer(const struct mesh *mesh, const struct group *group, uint32_t rank, int64_t by,
                uint32_t *peer)
{
    uint32_t instance, index;
    int64_t size = group_rank_count(mesh, group);
    if (!group_find_member(mesh, group, rank, &instance, &index) || by <= -size || by >= size ||
        index + by < 0 || index + by >= size)
        return false;
    *peer = group_global_rank_of_member(mesh, group, instance, (uint32_t)(index + by));
    return true;
}

bool role_has_rank(const struct mesh *mesh, const struct role *role, uint32_t rank)
{
    uint32_t coordinate[MESH_AXES_MAX], place;
    mesh_coordinates(mesh, rank, coordinate);
    for (uint32_t i = 0; i < role->axis_count; i++)
        if (!index_in_axis_coordinate_set(&role->axis[i], coordinate[role->axis[i].axis], &place))
            return false;
    return true;
}

bool guard_passes(const struct mesh *mesh, const struct group *groups, const struct guard *guard,
                  uint32_t rank)
{
    uint32_t instance, index;
    if (!group_find_member(mesh, &groups[guard->group], rank, &instance, &index))
        return false;
    switch ((enum guard_comparison)guard->comparison_kind) {
    case GUARD_LT:
        return index < guard->value;
    case GUARD_GE:
        return index >= guard->value;
    default:
        assert(guard->comparison_kind == GUARD_EQ);
        return index == guard->value;
    }
}
