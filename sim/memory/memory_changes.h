/* sim/memory/memory_changes.h: what comes to and goes from a class of ranks' memories, in the order of time.
 * What memory.c adds up. */
#ifndef SIM_MEMORY_CHANGES_H
#define SIM_MEMORY_CHANGES_H

#include "sim/result/sim_result.h"

/* The buffers of a role, by their first writer; those that live from the start come first. */
struct lifetimes {
    uint32_t count;
    struct lifetime {
        uint64_t bytes;
        uint32_t buffer;
        uint32_t writer; /* row of the first writer in the role; IR_NONE: live from the start */
        uint8_t memory, category;
    } * row;
};

void lifetimes_init(struct lifetimes *lifetimes, const struct ir *ir, uint32_t role);

struct change {
    double time_s;
    int64_t bytes;            /* > 0: from now on; < 0: no longer */
    uint32_t op;              /* that starts, or that ended last; IR_NONE: the start of the step */
    uint32_t row;             /* of the role's lifetimes; of node sums: unused */
    uint8_t memory, category; /* of the buffer */
};

/* All-zero is empty; the rows are the caller's to free. */
struct changes {
    size_t count, capacity;
    struct change *row;
};

/* Room for so many in all. */
void changes_reserve(struct changes *changes, size_t capacity);

/* Fills *changes with those of a class of ranks, in the order of time. */
void changes_of_class(struct changes *changes, const struct ir *ir, const struct sim_result *result,
                      const struct lifetimes *lifetimes, const struct sim_class *class);

/* How far apart dates may be that rounding alone tells apart. */
double changes_same_date_s(const struct sim_result *result);

/* The time at which the last of the ops that a buffer waits for ends, and that op. */
double changes_last_end_s(const struct ir *ir, const double *end_s, uint32_t buffer, double same_s,
                          uint32_t *op);

/* When a buffer goes, by the ends of all ops, and with which op: the last of its free set, of those that
 * end at one date the last in the list. IR_NONE: it stays. Nearly all sets are of one op. */
static inline double changes_free_date_s(const struct ir *ir, const double *end_s, uint32_t buffer,
                                         double same_s, uint32_t *op)
{
    uint32_t count = ir->buffer.free_count[buffer];
    if (count > 1)
        return changes_last_end_s(ir, end_s, buffer, same_s, op);
    *op = count > 0 ? ir->buffer.free_op[buffer].i : IR_NONE;
    return count > 0 ? end_s[*op] : -1;
}

/* In the order of time; what ends at a date stands before what starts. Dates that rounding alone tells
 * apart become one date, else it would be luck whether memory is given back before it is taken. Quick
 * when the rows are few sorted runs. */
void changes_sort(struct changes *changes, const struct sim_result *result);

#endif
