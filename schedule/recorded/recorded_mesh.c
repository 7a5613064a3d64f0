/* Finds the mesh on which the groups of all recordings lie, and adds the groups and roles of the schedule. PyTorch's
 * device meshes number ranks row by row, so a group is a product of arithmetic progressions: ranks 0, 4, 8, 12 of 16
 * are an axis of 4 whose neighbours are 4 apart. */
#include "base/ascending.h"
#include "schedule/recorded/recorded_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A progression: `size` ranks that are `stride` apart. A group of ranks is a product of progressions, in ascending
 * order of their strides. */
struct rank_progression {
    int64_t stride, size;
};

enum { CUTS_MAX = 64 };

/* Splits a group into progressions and returns their number; 0 if it has one rank or is no product of progressions. */
static uint32_t split_group_into_progressions(const struct step_group *group,
                                              struct rank_progression out[MESH_AXES_MAX])
{
    uint32_t count = 0;
    for (int64_t done = 1; done < group->rank_count; count++) {
        const int64_t stride = group->ranks[done] - group->ranks[0];
        int64_t size = 1;
        if (count == MESH_AXES_MAX)
            return 0;
        while (done * (size + 1) <= group->rank_count &&
               group->ranks[done * size] - group->ranks[0] == stride * size)
            size++;
        if (size < 2 || group->rank_count % (done * size) != 0)
            return 0;
        out[count] = (struct rank_progression){stride, size};
        done *= size;
    }
    for (int64_t i = 0; i < group->rank_count; i++) {
        int64_t rest = i, rank = group->ranks[0];
        for (uint32_t k = 0; k < count; k++) {
            rank += rest % out[k].size * out[k].stride;
            rest /= out[k].size;
        }
        if (rank != group->ranks[i])
            return 0;
    }
    return count;
}

/* The mesh's axes, counted from the fastest one: axis k has the stride strides[k] and the size strides[k + 1] /
 * strides[k]. strides[0] is 1, the last one is the number of ranks, and each is a multiple of the one before it. */
struct mesh_axis_strides {
    int64_t strides[CUTS_MAX];
    uint32_t count;
};

/* Adds the strides that a group needs. Returns false if there is no mesh on which this group and all earlier ones
 * lie. */
static bool add_strides_of_group(struct mesh_axis_strides *axis_strides,
                                 const struct step_group *group, int64_t world)
{
    struct rank_progression p[MESH_AXES_MAX];
    const uint32_t parts = split_group_into_progressions(group, p);
    if (parts == 0 && group->rank_count > 1)
        return false;
    for (uint32_t k = 0; k < parts; k++) {
        const int64_t ends[] = {p[k].stride, p[k].stride * p[k].size};
        for (size_t e = 0; e < ARRAY_LEN(ends); e++) {
            uint32_t i = 0;
            while (i < axis_strides->count && axis_strides->strides[i] != ends[e])
                i++;
            if (i == axis_strides->count && axis_strides->count == CUTS_MAX)
                return false;
            if (i == axis_strides->count)
                axis_strides->strides[axis_strides->count++] = ends[e];
        }
    }
    qsort(axis_strides->strides, axis_strides->count, sizeof *axis_strides->strides, ascending_i64);
    for (uint32_t i = 1; i < axis_strides->count; i++)
        if (axis_strides->strides[i] % axis_strides->strides[i - 1] != 0 ||
            axis_strides->strides[i] > world)
            return false;
    return true;
}

/* Returns a group of the recorded ranks, in ascending order. The caller frees its member `ranks`. */
static struct step_group new_group_of_all_recorded_ranks(const struct recorded_schedule_builder *m)
{
    struct step_group ranks = {.key = "", .name = "", .rank_count = m->recording_count};
    ranks.ranks = heap_alloc(m->recording_count, sizeof *ranks.ranks);
    for (uint32_t i = 0; i < m->recording_count; i++)
        ranks.ranks[i] = m->recordings[i].rank;
    qsort(ranks.ranks, ranks.rank_count, sizeof *ranks.ranks, ascending_i64);
    return ranks;
}

static enum status refuse_rank_group(const struct recorded_schedule_builder *m,
                                     const struct step_group *ranks)
{
    return diag_error(m->diag, (struct loc){.name = m->recordings[0].name}, STATUS_BAD_INPUT,
                      "ranks %lld, %lld, ... of the recordings are no group of a mesh of %u ranks "
                      "on which the other groups lie: record one rank of every stage, each in the "
                      "same place of its stage",
                      (long long)ranks->ranks[0], (long long)ranks->ranks[1],
                      m->recordings[0].world_size);
}

static enum status find_axis_strides(const struct recorded_schedule_builder *m,
                                     struct mesh_axis_strides *axis_strides)
{
    const uint32_t world = m->recordings[0].world_size;
    struct step_group ranks = new_group_of_all_recorded_ranks(m);
    enum status status = STATUS_OK;
    *axis_strides = (struct mesh_axis_strides){{1, world}, 2};
    for (uint32_t i = 0; i < m->recording_count && status == STATUS_OK; i++)
        for (uint32_t g = 0; g < m->recordings[i].group_count && status == STATUS_OK; g++) {
            const struct step_group *group = &m->recordings[i].group[g];
            if (!add_strides_of_group(axis_strides, group, world))
                status = diag_error(
                    m->diag, (struct loc){.name = m->recordings[i].name}, STATUS_BAD_INPUT,
                    "group '%s' (%s) of ranks %lld, %lld, ... is no group of a mesh of %u ranks on "
                    "which the other groups lie: only groups of a device mesh are predicted",
                    group->key, group->name, (long long)group->ranks[0],
                    (long long)group->ranks[group->rank_count > 1 ? 1 : 0], world);
        }
    if (status == STATUS_OK && !add_strides_of_group(axis_strides, &ranks, world))
        status = refuse_rank_group(m, &ranks);
    axis_strides->count = world == 1 ? 1 : axis_strides->count;
    free(ranks.ranks);
    return status;
}

/* Fills axes[] with the axes of the mesh that a group consists of, the slowest first, and returns their number. */
static uint32_t axes_of_group(const struct mesh *mesh, const struct step_group *group,
                              struct axis_coordinate_set axes[MESH_AXES_MAX])
{
    struct rank_progression p[MESH_AXES_MAX];
    const uint32_t parts = split_group_into_progressions(group, p);
    int64_t apart = mesh_rank_count(mesh);
    uint32_t count = 0;
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        apart /= mesh->axis[a].size;
        for (uint32_t k = 0; k < parts; k++)
            if (apart >= p[k].stride && apart < p[k].stride * p[k].size)
                axes[count++] = (struct axis_coordinate_set){(uint8_t)a, 0, NULL};
    }
    return count;
}

/* Adds group g of the recording, and returns its index. Its name is the one that the program gave it, or "group" if a
 * schedule does not allow that name or it is too long. A number is appended if another group has the same name. */
static uint16_t add_group(struct recorded_schedule_builder *m, uint32_t g,
                          const struct axis_coordinate_set *axes, uint32_t count)
{
    const struct step_group *group = &m->recording->group[g];
    char name[MESH_NAME_MAX];
    const size_t size = strlen(group->name);
    snprintf(name, sizeof name, "%s",
             ir_is_valid_name(group->name, size) && size < sizeof name - 6 ? group->name : "group");
    if (ir_find_by_name(m->ir, IR_GROUP, name, strlen(name)) != IR_NONE) {
        const size_t end = strlen(name);
        snprintf(name + end, sizeof name - end, "_%u", m->ir->group_count);
    }
    return ir_add_group(m->ir, name, axes, count);
}

/* Returns a group of the schedule with these axes. It must be one of the first groups_before groups, which other
 * recordings added, and no earlier group of this recording (before g) may be mapped to it. A group with the name of
 * group g is preferred. Returns IR_NONE16 if there is none. */
static uint16_t find_unmapped_group_with_axes(const struct recorded_schedule_builder *m, uint32_t g,
                                              const struct axis_coordinate_set *axes,
                                              uint32_t count, uint32_t groups_before)
{
    uint16_t found = IR_NONE16;
    for (uint32_t i = 0; i < groups_before; i++) {
        const struct group *group = &m->ir->group[i];
        bool same = group->axis_count == count;
        for (uint32_t a = 0; a < count && same; a++)
            same = group->axis[a].axis == axes[a].axis;
        for (uint32_t k = 0; k < g && same; k++)
            same = m->schedule_group_by_program_group[k] != i;
        if (same && (found == IR_NONE16 || strcmp(group->name, m->recording->group[g].name) == 0))
            found = (uint16_t)i;
    }
    return found;
}

void recorded_add_groups(struct recorded_schedule_builder *m)
{
    const uint32_t before = m->ir->group_count;
    for (uint32_t g = 0; g < m->recording->group_count; g++) {
        struct axis_coordinate_set axes[MESH_AXES_MAX];
        const uint32_t count = axes_of_group(&m->ir->mesh, &m->recording->group[g], axes);
        m->schedule_group_by_program_group[g] =
            find_unmapped_group_with_axes(m, g, axes, count, before);
        if (m->schedule_group_by_program_group[g] == IR_NONE16)
            m->schedule_group_by_program_group[g] = add_group(m, g, axes, count);
    }
}

void recorded_add_role(struct recorded_schedule_builder *m)
{
    struct step_group ranks = new_group_of_all_recorded_ranks(m);
    struct axis_coordinate_set axes[MESH_AXES_MAX];
    uint32_t coordinate[MESH_AXES_MAX];
    char name[MESH_NAME_MAX];
    const uint32_t count = axes_of_group(&m->ir->mesh, &ranks, axes);
    free(ranks.ranks);
    if (m->recording_count == 1)
        return;
    mesh_coordinates(&m->ir->mesh, m->recording->rank, coordinate);
    for (uint32_t a = 0; a < count; a++) {
        axes[a].count = 1;
        axes[a].coordinates = &coordinate[axes[a].axis];
    }
    snprintf(name, sizeof name, "rank%u", m->recording->rank);
    m->role = ir_add_role(m->ir, name, axes, count);
}

enum status recorded_make_mesh(struct recorded_schedule_builder *m)
{
    struct mesh_axis_strides axis_strides;
    struct mesh *mesh = &m->ir->mesh;
    enum status status = find_axis_strides(m, &axis_strides);
    if (status != STATUS_OK)
        return status;
    if (axis_strides.count - 1 > MESH_AXES_MAX)
        return diag_error(m->diag, (struct loc){.name = m->recordings[0].name}, STATUS_BAD_INPUT,
                          "the groups lie on a mesh of %u axes; at most %d are read",
                          axis_strides.count - 1, MESH_AXES_MAX);
    mesh->axis_count = axis_strides.count - 1;
    for (uint32_t a = 0; a < mesh->axis_count; a++) { /* the last axis is the fastest */
        const uint32_t i = axis_strides.count - 2 - a;
        snprintf(mesh->axis[a].name, sizeof mesh->axis[a].name, "axis%u", a);
        mesh->axis[a].size = (uint32_t)(axis_strides.strides[i + 1] / axis_strides.strides[i]);
    }
    return STATUS_OK;
}
