/* Sets of ranks. Each set is stored once, and the results of combining two sets are remembered: schedules have few
 * guards, and walks over millions of ops combine the same sets again and again. */
#include "schedule/verify/rules.h"

#include <stdlib.h>
#include <string.h>

void rank_sets_release(struct rank_sets *s)
{
    free(s->role);
    free(s->of_role);
    free(s->of_guard);
    free(s->bits);
    free(s->first);
    free(s->result);
    free(s->of_op);
    id_map_release(&s->by_bits);
    id_map_release(&s->by_operands);
    *s = (struct rank_sets){0};
}

/* --- sets by number; 0 is the empty one --- */

static uint32_t number_of(struct rank_sets *s, const uint64_t *bits)
{
    size_t bytes = s->words * sizeof *bits;
    uint64_t hash = hash_text((const char *)bits, bytes);
    for (struct id_probe p = id_map_start(&s->by_bits, hash); id_map_next(&s->by_bits, &p);)
        if (memcmp(s->bits + (size_t)p.row * s->words, bits, bytes) == 0)
            return p.row;
    if (s->count == s->capacity) {
        s->capacity = (uint32_t)heap_next_capacity(s->capacity, (size_t)s->count + 1);
        s->bits = heap_realloc(s->bits, s->capacity, bytes);
        s->first = heap_realloc(s->first, s->capacity, sizeof *s->first);
    }
    memcpy(s->bits + (size_t)s->count * s->words, bits, bytes);
    uint32_t first = IR_NONE;
    for (uint32_t rank = 0; rank < s->words * 64 && first == IR_NONE; rank++)
        if (bits[rank / 64] >> rank % 64 & 1)
            first = rank;
    s->first[s->count] = first;
    id_map_add(&s->by_bits, hash, s->count);
    return s->count++;
}

/* Returns the indices of all ranks in a group, IR_NONE for those outside. */
static uint32_t *group_indices(const struct ir *ir, uint32_t group, uint32_t ranks)
{
    uint32_t *index = heap_alloc(ranks, sizeof *index), instance;
    for (uint32_t rank = 0; rank < ranks; rank++)
        if (!group_locate(&ir->mesh, &ir->group[group], rank, &instance, &index[rank]))
            index[rank] = IR_NONE;
    return index;
}

const struct rank_sets *verify_ranks(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct rank_sets *s = &v->ranks;
    if (s->role)
        return s;
    uint32_t ranks = mesh_ranks(&ir->mesh);
    s->words = (ranks + 63) / 64;
    s->role = heap_alloc(ranks, sizeof *s->role);
    s->of_role = heap_zalloc((size_t)ir->role_count * s->words, sizeof *s->of_role);
    s->of_guard = heap_zalloc((size_t)ir->guard_count * s->words, sizeof *s->of_guard);
    memset(s->role, 0xff, ranks * sizeof *s->role);
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t role = ir->role_count; role-- > 0;)
            if (role_has(&ir->mesh, &ir->role[role], rank)) {
                s->role[rank] = (uint16_t)role;
                s->of_role[(size_t)role * s->words + rank / 64] |= UINT64_C(1) << rank % 64;
            }
    for (uint32_t group = 0; group < ir->group_count; group++) {
        uint32_t *index = NULL;
        for (uint32_t g = 0; g < ir->guard_count; g++) {
            const struct guard *guard = &ir->guard[g];
            if (guard->group != group)
                continue;
            if (!index)
                index = group_indices(ir, group, ranks);
            uint64_t *set = s->of_guard + (size_t)g * s->words;
            for (uint32_t rank = 0; rank < ranks; rank++) {
                bool passes = guard->test == GUARD_LT   ? index[rank] < guard->value
                              : guard->test == GUARD_GE ? index[rank] >= guard->value
                                                        : index[rank] == guard->value;
                if (passes && index[rank] != IR_NONE)
                    set[rank / 64] |= UINT64_C(1) << rank % 64;
            }
        }
        free(index);
    }
    s->of_op = heap_alloc((size_t)ir->guard_count + 1, sizeof *s->of_op);
    s->role_of_op = IR_NONE;
    uint64_t *empty = heap_zalloc(s->words, sizeof *empty);
    number_of(s, empty);
    free(empty);
    return s;
}

/* --- combining --- */

enum { UNION, MINUS, COMMON, AT };

static uint64_t hash_of(uint32_t how, uint32_t a, uint32_t b)
{
    return hash_word(hash_word(how, a), b);
}

/* Returns the remembered result of the same combination, or IR_NONE. */
static uint32_t find_result(struct rank_sets *s, uint32_t how, uint32_t a, uint32_t b)
{
    for (struct id_probe p = id_map_start(&s->by_operands, hash_of(how, a, b));
         id_map_next(&s->by_operands, &p);) {
        const struct rank_result *r = &s->result[p.row];
        if (r->how == how && r->a == a && r->b == b)
            return r->set;
    }
    return IR_NONE;
}

static uint32_t add_result(struct rank_sets *s, uint32_t how, uint32_t a, uint32_t b,
                           const uint64_t *bits)
{
    uint32_t set = number_of(s, bits);
    if (s->results == s->result_capacity) {
        s->result_capacity =
            (uint32_t)heap_next_capacity(s->result_capacity, (size_t)s->results + 1);
        s->result = heap_realloc(s->result, s->result_capacity, sizeof *s->result);
    }
    s->result[s->results] = (struct rank_result){.how = how, .a = a, .b = b, .set = set};
    id_map_add(&s->by_operands, hash_of(how, a, b), s->results++);
    return set;
}

static uint32_t combine(struct rank_sets *s, uint32_t how, uint32_t a, uint32_t b)
{
    uint32_t set = find_result(s, how, a, b);
    if (set != IR_NONE)
        return set;
    uint64_t *bits = heap_alloc(s->words, sizeof *bits);
    for (uint32_t i = 0; i < s->words; i++) {
        uint64_t x = s->bits[(size_t)a * s->words + i], y = s->bits[(size_t)b * s->words + i];
        bits[i] = how == UNION ? x | y : how == MINUS ? x & ~y : x & y;
    }
    set = add_result(s, how, a, b, bits);
    free(bits);
    return set;
}

uint32_t ranks_at(struct verifier *v, uint32_t group, uint32_t index)
{
    struct rank_sets *s = &v->ranks;
    uint32_t set = find_result(s, AT, group, index), ranks = mesh_ranks(&v->ir->mesh);
    if (set != IR_NONE)
        return set;
    uint32_t *index_of = group_indices(v->ir, group, ranks);
    uint64_t *bits = heap_zalloc(s->words, sizeof *bits);
    for (uint32_t rank = 0; rank < ranks; rank++)
        if (index_of[rank] == index)
            bits[rank / 64] |= UINT64_C(1) << rank % 64;
    set = add_result(s, AT, group, index, bits);
    free(index_of);
    free(bits);
    return set;
}

uint32_t ranks_union(struct verifier *v, uint32_t a, uint32_t b)
{
    return a == b || b == 0 ? a : a == 0 ? b : combine(&v->ranks, UNION, a, b);
}

uint32_t ranks_minus(struct verifier *v, uint32_t a, uint32_t b)
{
    return a == b || a == 0 ? 0 : b == 0 ? a : combine(&v->ranks, MINUS, a, b);
}

uint32_t ranks_common(struct verifier *v, uint32_t a, uint32_t b)
{
    return a == b ? a : a == 0 || b == 0 ? 0 : combine(&v->ranks, COMMON, a, b);
}

uint32_t ranks_first(struct verifier *v, uint32_t set)
{
    return v->ranks.first[set];
}

uint32_t ranks_of(struct verifier *v, uint32_t role, uint16_t guard)
{
    verify_ranks(v);
    struct rank_sets *s = &v->ranks;
    if (s->role_of_op != role) { /* remembered for one role at a time */
        memset(s->of_op, 0xff, ((size_t)v->ir->guard_count + 1) * sizeof *s->of_op);
        s->role_of_op = role;
    }
    uint32_t *set = &s->of_op[guard == IR_NONE16 ? v->ir->guard_count : guard];
    if (*set != IR_NONE)
        return *set;
    *set = number_of(s, s->of_role + (size_t)role * s->words);
    if (guard != IR_NONE16)
        *set = ranks_common(v, *set, number_of(s, s->of_guard + (size_t)guard * s->words));
    return *set;
}
