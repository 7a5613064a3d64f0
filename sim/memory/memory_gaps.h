/* sim/memory/memory_gaps.h: how the periods that a short list leaves out ("copies") change the live bytes after them.
 *
 * At a gap of a short list, memory changes periodically: each copy repeats the changes of the last period before it. So
 * after the gap the live bytes are higher (or lower) by the growth of all copies, and the peak within a copy is at most
 * the higher of the peaks of the period before the gap and of the period after it. */
#ifndef SIM_MEMORY_GAPS_H
#define SIM_MEMORY_GAPS_H

#include "sim/memory/memory_changes.h"

struct memory_gap {
    /* row of the first change after the copies; the number of changes if none comes after */
    size_t next_change_row;
    /* seconds of the copies that are left out here; in the whole list the change next_change_row, and all after
     * it, come later by this */
    double left_out_copies_s;
    /* the bytes by which all copies together grow the live bytes */
    int64_t growth_bytes[MEMORY_COUNT][CATEGORY_COUNT];
};

/* Finds the gaps of the role of a class in the list of changes, and sets *gaps to an array of *count elements, which
 * the caller frees. Returns false if the periods before and after a gap differ in their changes; then *gaps has no
 * meaning, but must be freed, too. */
bool memory_gaps_find(const struct memory_changes *changes, const struct live_buffers *live_buffers,
                      const struct ir *ir, const struct sim_result *result,
                      const struct sim_class *class, struct memory_gap **gaps, uint32_t *count);

#endif
