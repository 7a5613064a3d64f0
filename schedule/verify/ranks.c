/* Sets of ranks. Each set is stored once, because schedules have few guards, and walks over millions of ops combine the
 * same sets again and again. */
#include "schedule/verify/rules.h"

#include <stdlib.h>
#include <string.h>

void rank_sets_release(struct rank_sets *s)
{
    free(s->role);
    free(s->ranks_of_role);
    free(s->ranks_of_guard);
    free(s->bits);
    free(s->scratch_set_words);
    id_map_release(&s->set_by_bits);
    *s = (struct rank_sets){0};
}

/* ---- sets by number (0 is the empty set), and those of roles and guards ---- */

static uint32_t find_or_add_set(struct rank_sets *s, const uint64_t *bits)
{
    size_t bytes = s->words_per_set * sizeof *bits;
    uint64_t hash = hash_text((const char *)bits, bytes);
    for (struct id_probe p = id_map_begin_probe(&s->set_by_bits, hash);
         id_map_next_row_with_hash(&s->set_by_bits, &p);)
        if (memcmp(s->bits + (size_t)p.row * s->words_per_set, bits, bytes) == 0)
            return p.row;
    s->bits = heap_grow(s->bits, &s->capacity, (size_t)s->set_count + 1, bytes);
    memcpy(s->bits + (size_t)s->set_count * s->words_per_set, bits, bytes);
    id_map_add(&s->set_by_bits, hash, s->set_count);
    return s->set_count++;
}

static void add_rank_to_set(uint64_t *bits, uint32_t rank)
{
    bits[rank / 64] |= UINT64_C(1) << rank % 64;
}

const struct rank_sets *verifier_rank_sets(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct rank_sets *s = &v->ranks;
    if (s->role)
        return s;
    uint32_t ranks = mesh_rank_count(&ir->mesh);
    s->words_per_set = (ranks + 63) / 64;
    s->role = heap_alloc(ranks, sizeof *s->role);
    s->ranks_of_role =
        heap_zalloc((size_t)ir->role_count * s->words_per_set, sizeof *s->ranks_of_role);
    s->ranks_of_guard =
        heap_zalloc((size_t)ir->guard_count * s->words_per_set, sizeof *s->ranks_of_guard);
    memset(s->role, 0xff, ranks * sizeof *s->role);
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t role = ir->role_count; role-- > 0;)
            if (role_has_rank(&ir->mesh, &ir->role[role], rank)) {
                s->role[rank] = (uint16_t)role;
                add_rank_to_set(s->ranks_of_role + (size_t)role * s->words_per_set, rank);
            }
    for (uint32_t g = 0; g < ir->guard_count; g++)
        for (uint32_t rank = 0; rank < ranks; rank++)
            if (guard_passes(&ir->mesh, ir->group, &ir->guard[g], rank))
                add_rank_to_set(s->ranks_of_guard + (size_t)g * s->words_per_set, rank);
    s->scratch_set_words = heap_zalloc(s->words_per_set, sizeof *s->scratch_set_words);
    find_or_add_set(s, s->scratch_set_words);
    return s;
}

/* ---- combining and reading sets ---- */

enum rank_set_operation { UNION, MINUS, COMMON };

static uint32_t combine_rank_sets(struct rank_sets *s, enum rank_set_operation how, uint32_t a,
                                  uint32_t b)
{
    for (uint32_t i = 0; i < s->words_per_set; i++) {
        uint64_t x = s->bits[(size_t)a * s->words_per_set + i],
                 y = s->bits[(size_t)b * s->words_per_set + i];
        s->scratch_set_words[i] = how == UNION ? x | y : how == MINUS ? x & ~y : x & y;
    }
    return find_or_add_set(s, s->scratch_set_words);
}

uint32_t ranks_with_group_index(struct verifier *v, uint32_t group, uint32_t index)
{
    struct rank_sets *s = &v->ranks;
    const struct mesh *mesh = &v->ir->mesh;
    const struct group *g = &v->ir->group[group];
    memset(s->scratch_set_words, 0, s->words_per_set * sizeof *s->scratch_set_words);
    uint32_t instances = index < group_rank_count(mesh, g) ? group_instance_count(mesh, g) : 0;
    for (uint32_t i = 0; i < instances; i++)
        add_rank_to_set(s->scratch_set_words, group_global_rank_of_member(mesh, g, i, index));
    return find_or_add_set(s, s->scratch_set_words);
}

uint32_t ranks_union(struct verifier *v, uint32_t a, uint32_t b)
{
    return a == b || b == 0 ? a : a == 0 ? b : combine_rank_sets(&v->ranks, UNION, a, b);
}

uint32_t ranks_difference(struct verifier *v, uint32_t a, uint32_t b)
{
    return a == b || a == 0 ? 0 : b == 0 ? a : combine_rank_sets(&v->ranks, MINUS, a, b);
}

uint32_t ranks_intersection(struct verifier *v, uint32_t a, uint32_t b)
{
    return a == b ? a : a == 0 || b == 0 ? 0 : combine_rank_sets(&v->ranks, COMMON, a, b);
}

uint32_t ranks_lowest(struct verifier *v, uint32_t set)
{
    const uint64_t *bits = v->ranks.bits + (size_t)set * v->ranks.words_per_set;
    for (uint32_t rank = 0; rank < v->ranks.words_per_set * 64; rank++)
        if (bits[rank / 64] >> rank % 64 & 1)
            return rank;
    return IR_NONE;
}

uint32_t ranks_running_with_guard(struct verifier *v, uint32_t role, uint16_t guard)
{
    verifier_rank_sets(v);
    struct rank_sets *s = &v->ranks;
    uint32_t set = find_or_add_set(s, s->ranks_of_role + (size_t)role * s->words_per_set);
    if (guard == IR_NONE16)
        return set;
    return ranks_intersection(
        v, set, find_or_add_set(s, s->ranks_of_guard + (size_t)guard * s->words_per_set));
}
