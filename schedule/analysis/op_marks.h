/* schedule/analysis/op_marks.h: one bit per op of a list, for data that only some ops have.
 *
 * Such data (for example, the live ranges that end at an op) is stored in an array as long as the list. The marks say
 * which of its elements are valid and which valid one comes next, so the array need not be initialised, and a walk
 * over a long list visits only the marked ops. */
#ifndef SCHEDULE_ANALYSIS_OP_MARKS_H
#define SCHEDULE_ANALYSIS_OP_MARKS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Heap; free `bit`. */
struct op_marks {
    uint32_t begin, ops; /* ops begin .. begin + ops, and one more after the last */
    uint64_t *bit;
};

static inline struct op_marks op_marks_none(uint32_t begin, uint32_t ops)
{
    return (struct op_marks){begin, ops, heap_zalloc((size_t)ops / 64 + 1, sizeof(uint64_t))};
}

/* Marks an op; false: it was marked already. */
static inline bool op_marks_add(struct op_marks *m, uint32_t op)
{
    uint32_t at = op - m->begin;
    uint64_t *word = &m->bit[at / 64], bit = UINT64_C(1) << at % 64;
    bool is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

/* Returns the first marked op from `op` on; UINT32_MAX: there is none. */
static inline uint32_t op_marks_next(const struct op_marks *m, uint32_t op)
{
    uint32_t at = op - m->begin, word = at / 64;
    if (at > m->ops)
        return UINT32_MAX;
    uint64_t bits = m->bit[word] & ~UINT64_C(0) << at % 64;
    while (bits == 0 && word < m->ops / 64)
        bits = m->bit[++word];
    return bits == 0 ? UINT32_MAX : m->begin + word * 64 + (uint32_t)__builtin_ctzll(bits);
}

#endif
