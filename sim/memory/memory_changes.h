/* sim/memory/memory_changes.h: the buffers that start and stop being live on a class of ranks, in the order of time;
 * memory.c adds their bytes up. */
#ifndef SIM_MEMORY_CHANGES_H
#define SIM_MEMORY_CHANGES_H

#include "sim/result/sim_result.h"

/* The buffers of a role in the order of their first writers; those that are live from the start of the step come
 * first. */
struct live_buffers {
    uint32_t count;
    struct live_buffer {
        uint64_t bytes;
        uint32_t buffer;
        uint32_t writer; /* row of the first writer in the role; IR_NONE: live from the start */
        uint8_t memory, category;
    } * row;
};

/* Lists the buffers of a role that take memory: persistent ones, unless they are part of another
 * buffer; and of the others those that an op of the role writes. The caller frees live_buffers->row. */
void live_buffers_init(struct live_buffers *live_buffers, const struct ir *ir, uint32_t role);

enum { MEMORY_CHANGE_ROW_MAX = (1 << 30) - 1 };
enum memory_change_kind {
    MEMORY_CHANGE_STARTS,
    MEMORY_CHANGE_ENDS,
    MEMORY_CHANGE_STARTS_AND_ENDS
}; /* MEMORY_CHANGE_STARTS_AND_ENDS: a buffer that stops being live at the date at which it starts */

/* One buffer that starts or stops being live. There are millions of changes, so each is small: the buffer's bytes are
 * in its row of live_buffers. */
struct memory_change {
    double time_s;
    /* MEMORY_CHANGE_ENDS: the op at whose end the buffer ends. Other kinds: the op that starts when the buffer starts;
     * IR_NONE: the buffer is live from the start of the step */
    uint32_t op;
    uint32_t row : 30, kind : 2; /* row: of live_buffers; kind: enum memory_change_kind */
};

/* Returns the bytes that a change adds to the live bytes: below 0 if its buffer ends, 0 if it starts and ends at
 * once. */
static inline int64_t memory_change_bytes(const struct memory_change *change,
                                          const struct live_buffers *live_buffers)
{
    int64_t bytes = (int64_t)live_buffers->row[change->row].bytes;
    return change->kind == MEMORY_CHANGE_STARTS ? bytes
           : change->kind == MEMORY_CHANGE_ENDS ? -bytes
                                                : 0;
}

/* The changes of live bytes of one class of ranks, or of the ranks of a node. All-zero is empty; the caller frees
 * `row`. */
struct memory_changes {
    size_t count, capacity;
    struct memory_change *row;
};

/* Makes room for `capacity` rows in all. */
void memory_changes_reserve(struct memory_changes *changes, size_t capacity);

/* Fills *changes with the changes of a class of ranks, in the order of time. */
void memory_changes_of_class(struct memory_changes *changes, const struct ir *ir,
                             const struct sim_result *result,
                             const struct live_buffers *live_buffers,
                             const struct sim_class *class);

/* Returns the tolerance in seconds: two dates that differ by no more are one date, apart only by rounding. */
double memory_changes_tolerance_s(const struct sim_result *result);

/* Sorts the changes by time; at equal dates, buffers that are live from the start of the step come
 * first, then those that end. Dates that differ only by rounding are made equal, since otherwise
 * rounding would decide whether bytes are returned before others are taken. It is fast if the rows
 * consist of a few sorted runs. */
void memory_changes_sort(struct memory_changes *changes, const struct sim_result *result);

#endif
