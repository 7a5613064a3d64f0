/* sim/memory/memory_gaps.h: what the copies that a sample leaves out do to memory.
 *
 * At a gap of a sample, memory changes periodically: what came and went in the last period does so once more in each
 * copy. So all that follows a date near the gap finds memory fuller (or emptier) by the copies' growth, and of the
 * copies none is fuller than both the periods before and after them. */
#ifndef SIM_MEMORY_GAPS_H
#define SIM_MEMORY_GAPS_H

#include "sim/memory/memory_changes.h"

struct memory_gap {
    size_t at;      /* the first change that the copies come before; as many as there are: none */
    double shift_s; /* so much later it comes */
    int64_t growth[MEMORY_COUNT][CATEGORY_COUNT]; /* of all copies */
};

/* The gaps of a class's role in a list of changes. Heap; *count: how many. Returns false when the changes of the periods
 * before and after a date near a gap are not the same; then there are none. */
bool memory_gaps(const struct changes *changes, const struct ir *ir,
                 const struct sim_result *result, const struct sim_class *class,
                 struct memory_gap **gaps, uint32_t *count);

#endif
