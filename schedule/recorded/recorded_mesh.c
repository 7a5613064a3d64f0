/* Finds the mesh on which the groups of a recording lie. PyTorch's device meshes number ranks row by row, so a group
 * is a product of arithmetic progressions: ranks 0, 4, 8, 12 of 16 are an axis of 4 whose neighbours are 4 apart. */
#include "schedule/recorded/recorded_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One progression of a group: `size` ranks that are `stride` apart. The first is the one with the least stride. */
struct progression {
    int64_t stride, size;
};

enum { CUTS_MAX = 64 };

/* Splits a group into progressions, and returns how many; 0: it is no product of progressions. */
static uint32_t split_group(const struct step_group *group, struct progression out[MESH_AXES_MAX])
{
    uint32_t count = 0;
    for (int64_t done = 1; done < group->count; count++) {
        const int64_t stride = group->rank[done] - group->rank[0];
        int64_t size = 1;
        if (count == MESH_AXES_MAX)
            return 0;
        while (done * (size + 1) <= group->count &&
               group->rank[done * size] - group->rank[0] == stride * size)
            size++;
        if (size < 2 || group->count % (done * size) != 0)
            return 0;
        out[count] = (struct progression){stride, size};
        done *= size;
    }
    for (int64_t i = 0; i < group->count; i++) {
        int64_t rest = i, rank = group->rank[0];
        for (uint32_t k = 0; k < count; k++) {
            rank += rest % out[k].size * out[k].stride;
            rest /= out[k].size;
        }
        if (rank != group->rank[i])
            return 0;
    }
    return count;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum status refuse_group(const struct recorded_maker *m, const struct step_group *group)
{
    return diag_error(m->diag, (struct loc){.name = m->name}, STATUS_BAD_INPUT,
                      "group '%s' (%s) of ranks %lld, %lld, ... is no group of a mesh of %u ranks "
                      "on which the other groups lie: only groups of a device mesh are predicted",
                      group->key, group->name, (long long)group->rank[0],
                      (long long)group->rank[group->count > 1 ? 1 : 0], m->r->world);
}

/* Finds where the mesh is cut: cut[0] = 1 < cut[1] < ... = world, each a multiple of the one before. */
static enum status find_cuts(const struct recorded_maker *m, int64_t cut[CUTS_MAX], uint32_t *cuts)
{
    struct progression p[MESH_AXES_MAX];
    uint32_t count = 0;
    cut[count++] = 1;
    cut[count++] = m->r->world;
    for (uint32_t g = 0; g < m->r->groups; g++) {
        const uint32_t parts = split_group(&m->r->group[g], p);
        if (parts == 0 && m->r->group[g].count > 1)
            return refuse_group(m, &m->r->group[g]);
        for (uint32_t k = 0; k < parts; k++) {
            const int64_t ends[] = {p[k].stride, p[k].stride * p[k].size};
            for (size_t e = 0; e < ARRAY_LEN(ends); e++) {
                uint32_t i = 0;
                while (i < count && cut[i] != ends[e])
                    i++;
                if (i == count && count == CUTS_MAX)
                    return refuse_group(m, &m->r->group[g]);
                if (i == count)
                    cut[count++] = ends[e];
            }
        }
        qsort(cut, count, sizeof *cut, by_value);
        for (uint32_t i = 1; i < count; i++)
            if (cut[i] % cut[i - 1] != 0 || cut[i] > m->r->world)
                return refuse_group(m, &m->r->group[g]);
    }
    *cuts = m->r->world == 1 ? 1 : count;
    return STATUS_OK;
}

/* Adds a group under the name that the program gave it, made distinct. */
static uint16_t add_group(struct recorded_maker *m, uint32_t g, const struct axis_set *axes,
                          uint32_t count)
{
    const struct step_group *group = &m->r->group[g];
    char name[MESH_NAME_MAX];
    const size_t size = strlen(group->name);
    snprintf(name, sizeof name, "%s",
             ir_name_ok(group->name, size) && size < sizeof name - 6 ? group->name : "group");
    if (ir_find(m->ir, IR_GROUP, name, strlen(name)) != IR_NONE) {
        const size_t end = strlen(name);
        snprintf(name + end, sizeof name - end, "_%u", g);
    }
    return ir_add_group(m->ir, name, axes, count);
}

enum status recorded_mesh(struct recorded_maker *m)
{
    int64_t cut[CUTS_MAX];
    uint32_t cuts = 1;
    struct mesh *mesh = &m->ir->mesh;
    enum status status = find_cuts(m, cut, &cuts);
    if (status != STATUS_OK)
        return status;
    if (cuts - 1 > MESH_AXES_MAX)
        return diag_error(m->diag, (struct loc){.name = m->name}, STATUS_BAD_INPUT,
                          "the groups lie on a mesh of %u axes; at most %d are read", cuts - 1,
                          MESH_AXES_MAX);
    mesh->axis_count = cuts - 1;
    for (uint32_t a = 0; a < mesh->axis_count; a++) { /* the last axis is the fastest */
        const uint32_t i = cuts - 2 - a;
        snprintf(mesh->axis[a].name, sizeof mesh->axis[a].name, "axis%u", a);
        mesh->axis[a].size = (uint32_t)(cut[i + 1] / cut[i]);
    }
    for (uint32_t g = 0; g < m->r->groups; g++) {
        struct progression p[MESH_AXES_MAX];
        struct axis_set axes[MESH_AXES_MAX];
        uint32_t count = 0, parts = split_group(&m->r->group[g], p);
        for (uint32_t a = 0; a < mesh->axis_count; a++)
            for (uint32_t k = 0; k < parts; k++) {
                const int64_t low = cut[cuts - 2 - a];
                if (low >= p[k].stride && low < p[k].stride * p[k].size)
                    axes[count++] = (struct axis_set){(uint8_t)a, 0, NULL};
            }
        m->group[g] = add_group(m, g, axes, count);
    }
    return STATUS_OK;
}
