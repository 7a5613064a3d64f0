/* tests/schedule/test_mesh.c: ranks, coordinates and groups of a mesh follow from each other; roles and guards select
 * the right ranks. */
#include "schedule/ir/mesh.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* A head-first mesh: the ranks of a head group are neighbours. */
static const struct mesh head_first = {2, {{"cp", 4}, {"hp", 2}}};
static const struct mesh pipeline = {3, {{"pp", 4}, {"dp", 3}, {"tp", 2}}};
static const uint32_t ends[] = {0, 3};

static void the_last_axis_is_the_fastest(void)
{
    uint32_t coordinate[MESH_AXES_MAX];
    CHECK_INT("ranks", mesh_rank_count(&head_first), 8);
    CHECK_INT("no axes: one rank", mesh_rank_count(&(struct mesh){0}), 1);
    mesh_coordinates(&head_first, 5, coordinate);
    CHECK_INT("cp of 5", coordinate[0], 2);
    CHECK_INT("hp of 5", coordinate[1], 1);
    CHECK_INT("cp is the first axis", mesh_find_axis(&head_first, "cp"), 0);
    CHECK_INT("hp is the second", mesh_find_axis(&head_first, "hp"), 1);
    CHECK_INT("there is no tp", mesh_find_axis(&head_first, "tp"), -1);
}

static void ranks_and_coordinates_are_inverse(void)
{
    uint32_t coordinate[MESH_AXES_MAX];
    for (uint32_t rank = 0; rank < mesh_rank_count(&pipeline); rank++) {
        mesh_coordinates(&pipeline, rank, coordinate);
        CHECK_INT("rank", mesh_rank_at(&pipeline, coordinate), rank);
    }
}

static const struct {
    const char *label;
    const struct mesh *mesh;
    struct group group;
    uint32_t size, instances;
    uint32_t members[8]; /* those of `instance`, in index order */
    uint32_t instance;
} groups[] = {
    /* label, mesh, group, size, instances, members, instance */
    {"one axis", &head_first, {"hp", 1, {{1, 0, NULL}}}, 2, 4, {2, 3}, 1},
    {"the slow axis", &head_first, {"cp", 1, {{0, 0, NULL}}}, 4, 2, {1, 3, 5, 7}, 1},
    {"both",
     &head_first,
     {"all", 2, {{0, 0, NULL}, {1, 0, NULL}}},
     8,
     1,
     {0, 1, 2, 3, 4, 5, 6, 7},
     0},
    {"both, the other way",
     &head_first,
     {"cf", 2, {{1, 0, NULL}, {0, 0, NULL}}},
     8,
     1,
     {0, 2, 4, 6, 1, 3, 5, 7},
     0},
    {"no axes", &head_first, {"self", 0, {{0, 0, NULL}}}, 1, 8, {6}, 6},
    {"first and last stage",
     &pipeline,
     {"ends", 2, {{0, 2, ends}, {2, 0, NULL}}},
     4,
     3,
     {2, 3, 20, 21},
     1},
};

static void members_stand_in_index_order(void)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        const struct mesh *mesh = groups[i].mesh;
        const struct group *group = &groups[i].group;
        CHECK_INT(groups[i].label, group_rank_count(mesh, group), groups[i].size);
        CHECK_INT(groups[i].label, group_instance_count(mesh, group), groups[i].instances);
        for (uint32_t k = 0; k < groups[i].size; k++)
            CHECK_INT(groups[i].label,
                      group_global_rank_of_member(mesh, group, groups[i].instance, k),
                      groups[i].members[k]);
    }
}

static void locating_is_the_inverse_of_membership(void)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        const struct mesh *mesh = groups[i].mesh;
        const struct group *group = &groups[i].group;
        uint32_t inside = 0, instance, index;
        for (uint32_t rank = 0; rank < mesh_rank_count(mesh); rank++)
            if (group_find_member(mesh, group, rank, &instance, &index)) {
                inside++;
                CHECK(groups[i].label, instance < group_instance_count(mesh, group));
                CHECK(groups[i].label, index < group_rank_count(mesh, group));
                CHECK_INT(groups[i].label,
                          group_global_rank_of_member(mesh, group, instance, index), rank);
            }
        CHECK_INT(groups[i].label, inside,
                  group_rank_count(mesh, group) * group_instance_count(mesh, group));
    }
}

static void roles_are_the_ranks_in_every_set(void)
{
    static const uint32_t first[] = {0}, odd[] = {1};
    const struct role all = {.name = "all"};
    const struct role stage = {"stage0", 1, {{0, 1, first}}, 0, 0};
    const struct role both = {"both", 2, {{0, 1, first}, {2, 1, odd}}, 0, 0};
    uint32_t count[3] = {0};
    for (uint32_t rank = 0; rank < mesh_rank_count(&pipeline); rank++) {
        count[0] += role_has_rank(&pipeline, &all, rank);
        count[1] += role_has_rank(&pipeline, &stage, rank);
        count[2] += role_has_rank(&pipeline, &both, rank);
    }
    CHECK_INT("all", count[0], 24);
    CHECK_INT("one stage", count[1], 6);
    CHECK_INT("one stage and odd", count[2], 3);
    CHECK("rank 5", role_has_rank(&pipeline, &both, 5) && !role_has_rank(&pipeline, &both, 4));
}

static void guards_compare_index_in_group(void)
{
    static const struct {
        uint8_t test;
        uint32_t value;
        const char *passes; /* by rank of head_first, group cp */
    } guards[] = {
        {GUARD_LT, 1, "11000000"}, {GUARD_GE, 1, "00111111"}, {GUARD_EQ, 2, "00001100"},
        {GUARD_GE, 0, "11111111"}, {GUARD_LT, 9, "11111111"},
    };
    const struct group group = {"cp", 1, {{0, 0, NULL}}};
    for (size_t i = 0; i < ARRAY_LEN(guards); i++) {
        const struct guard guard = {0, guards[i].test, guards[i].value};
        char passes[9] = {0};
        for (uint32_t rank = 0; rank < 8; rank++)
            passes[rank] = guard_passes(&head_first, &group, &guard, rank) ? '1' : '0';
        CHECK_TEXT("cp", passes, guards[i].passes);
    }
    const struct group some = {"ends", 1, {{0, 2, ends}}};
    const struct guard any = {0, GUARD_GE, 0};
    CHECK("a rank in no instance fails", !guard_passes(&pipeline, &some, &any, 6));
    CHECK("others pass", guard_passes(&pipeline, &some, &any, 18));
}

static const struct check_case cases[] = {
    {"the last axis is the fastest", the_last_axis_is_the_fastest},
    {"ranks and coordinates are inverse", ranks_and_coordinates_are_inverse},
    {"members stand in index order", members_stand_in_index_order},
    {"locating is the inverse of membership", locating_is_the_inverse_of_membership},
    {"roles are the ranks in every set", roles_are_the_ranks_in_every_set},
    {"guards test the index in the group", guards_compare_index_in_group},
};
CHECK_MAIN("mesh", cases)
