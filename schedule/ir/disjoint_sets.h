/* schedule/ir/disjoint_sets.h: disjoint sets of numbers, each named by its least member, the root. */
#ifndef SCHEDULE_DISJOINT_SETS_H
#define SCHEDULE_DISJOINT_SETS_H

#include "base/arena.h"

/* Returns the parents of the numbers below `count`, on the heap. At first each number is a set by itself, and its own
 * parent. */
static inline uint32_t *roots_make(uint32_t count)
{
    uint32_t *parent = heap_alloc(count, sizeof *parent);
    for (uint32_t i = 0; i < count; i++)
        parent[i] = i;
    return parent;
}

/* Returns the root of the set of i, and shortens the chain of parents that leads to it. */
static inline uint32_t root_of(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Joins the sets of two members. */
static inline void join_sets_of_two(uint32_t *parent, uint32_t i, uint32_t other)
{
    uint32_t a = root_of(parent, i), b = root_of(parent, other);
    parent[a > b ? a : b] = a > b ? b : a;
}

#endif
