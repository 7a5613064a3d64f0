/* traces/explain_tile.h: splits the time of one rank's step into parts (enum explain_part): kernels by class, messages,
 * copies, waits for other ranks, idle time. Private to traces/explain*.c. */
#ifndef TRACES_EXPLAIN_TILE_H
#define TRACES_EXPLAIN_TILE_H

#include "traces/explain_part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fields of a trace row that the explanation needs. */
struct explain_row {
    uint32_t rank;
    int32_t step;
    /* for EXPLAIN_MESSAGES: rows of all ranks with the same number are one message */
    uint32_t message_number;
    uint8_t part; /* enum explain_part */
    double start_s, end_s;
    /* for a message: the time at which its last rank arrives, of the ranks that arrive before this row ends */
    double last_rank_arrival_s;
};

struct rows_to_explain {
    struct explain_row *rows; /* ordered by step, rank and start */
    size_t row_count, capacity;
};

void explain_add_row(struct rows_to_explain *rows, const struct explain_row *row);
/* Sorts the rows by step, rank and start, and sets last_rank_arrival_s of messages. together: the rows are recordings
 * of several ranks, each with a clock of its own. Their times are shifted first so that messages end at the same time
 * on all ranks, in the median over messages. */
void explain_align_and_sort_rows(struct rows_to_explain *rows, bool together);
void explain_rows_release(struct rows_to_explain *rows);

/* Splits the time from begin_s to end_s into parts, and adds the seconds of each to part_s[]. row[0..count): all rows
 * of one rank in one step. */
void explain_split_interval_by_part(const struct explain_row *row, size_t count, double begin_s,
                                    double end_s, double part_s[EXPLAIN_PART_COUNT]);

#endif
