/* schedule/analysis/liveness.h: when a buffer's memory is free again.
 *
 * A buffer is touched by the ops that read or write it. Its live range starts with the first of them, and its memory is
 * free when all ops of its free set have completed. Two buffers may share bytes when every op of the free set of the
 * one is ordered (schedule/analysis/happens_before.h) before every touch of the other: then they are never live at
 * once, whatever the timing. Persistent buffers live throughout and have no free set. */
#ifndef SCHEDULE_ANALYSIS_LIVENESS_H
#define SCHEDULE_ANALYSIS_LIVENESS_H

#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* True if the buffer exists during the whole step. Bound buffers do, except gradients that are made during the
 * backward. */
static inline bool liveness_is_persistent(const struct ir *ir, uint32_t buffer)
{
    return (ir->buffer.flags[buffer] & BUFFER_PERSISTENT) != 0;
}

/* True if the implementation holds the buffer during the whole step, and not as part of another buffer. */
static inline bool liveness_is_separate_persistent(const struct ir *ir, uint32_t buffer)
{
    return liveness_is_persistent(ir, buffer) && (ir->buffer.flags[buffer] & BUFFER_PART) == 0;
}

/* Replaces all free sets by the smallest correct ones: for each stream of a role the last op that reads or writes the
 * buffer, except ops that always end before another op of the set starts. A persistent buffer, and one that no op uses,
 * gets an empty set. Members are in list order. */
void liveness_compute_free_sets(struct ir *ir);

#endif
