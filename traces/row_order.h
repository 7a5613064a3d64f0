/* traces/row_order.h: groups the rows of a table by rank and label, each group in order of time.
 *
 * Ranks and labels are any numbers and rows stand in any order, so nothing may be indexed by
 * rank. The time is linear in the rows if those of each group are in order of time already. */
#ifndef TRACES_ROW_ORDER_H
#define TRACES_ROW_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct row_order {
    uint64_t *keys; /* keys[i] is rank << 16 | label of row rows[i]; the keys ascend */
    /* rows of the table; equal keys are in order of time, and at equal times in the order of the table */
    uint32_t *rows;
    size_t row_count;
};

/* Orders rows 0 to count - 1 of a table with these columns; count is at most UINT32_MAX. */
void row_order_init(struct row_order *order, size_t count, const uint32_t *rank,
                    const uint16_t *label, const double *time_s);
void row_order_release(struct row_order *order);

/* Returns the end of the group that begins at `begin`: rows[begin..end) have the same key. */
size_t row_order_end_of_equal_keys(const struct row_order *order, size_t begin);

#endif
