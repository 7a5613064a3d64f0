/* schedule/analysis/first_uses.h: the op and the clock at which the live range of each buffer of a role starts.
 * (Clocks: schedule/analysis/happens_before.h.)
 *
 * An op touches a buffer if it reads or writes it. A live range starts with the first touch in list order. Later
 * touches need not be ordered after that one: two halves of a buffer may be written on two streams. So an op counts as
 * completed before the first use only if it has completed before every touch. The clock of the first use therefore is
 * the least, in each column, of the clocks of the ops that touch the buffer. The planner of arenas and the verifier of
 * plans both use this clock. */
#ifndef SCHEDULE_ANALYSIS_FIRST_USES_H
#define SCHEDULE_ANALYSIS_FIRST_USES_H

#include "schedule/analysis/happens_before.h"

#include <stdbool.h>
#include <stdint.h>

/* All-zero is empty. */
struct first_uses {
    /* [buffers] the first op of the role that reads or writes each buffer; IR_NONE: none does */
    uint32_t *first_op_by_buffer;
    /* [buffers] row of `own_clocks_of_first_uses` with the clock of the first use; IR_NONE: it is the clock of op
     * `first_op_by_buffer` */
    uint32_t *own_clock_row_by_buffer;
    uint32_t *own_clocks_of_first_uses; /* (own_clock_count, clock_column_count) */
    size_t capacity;                    /* rows for which own_clocks_of_first_uses has room */
    uint32_t own_clock_count, clock_column_count;
    uint32_t *buffers_by_first_use; /* the buffers in the order of their first uses */
    uint32_t used_buffer_count;
};

void first_uses_release(struct first_uses *first_uses);

/* Empties *first_uses and prepares it for `buffers` buffers. The caller then adds the touches of a role's ops in list
 * order. */
void first_uses_begin(struct first_uses *first_uses, const struct order *order, uint32_t buffers);

/* Records that `op` touches a buffer, but is not ordered after its first touch: lowers each column of the clock of the
 * first use to that of the clock of `op`, where this is smaller. */
void first_uses_add_unordered_touch(struct first_uses *first_uses, const struct order *order,
                                    uint32_t buffer, uint32_t op);

/* Records that an op, whose clock is in `order`, touches a buffer. */
static inline void first_uses_add_touch(struct first_uses *first_uses, const struct order *order,
                                        uint32_t buffer, uint32_t op)
{
    uint32_t first = first_uses->first_op_by_buffer[buffer];
    if (first == IR_NONE) {
        first_uses->first_op_by_buffer[buffer] = op;
        first_uses->buffers_by_first_use[first_uses->used_buffer_count++] = buffer;
    } else if (first != op && !order_is_before(order, first, op)) {
        first_uses_add_unordered_touch(first_uses, order, buffer, op);
    }
}

/* Fills the first uses of all buffers that ops of a role touch. `order` holds the clocks of that role. */
void first_uses_of_role(struct first_uses *first_uses, const struct ir *ir,
                        const struct order *order);

/* Sets each column of `clock` to that of `other` if that is smaller. */
static inline void first_uses_lower_clock(uint32_t *clock, const uint32_t *other, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        clock[i] = clock[i] < other[i] ? clock[i] : other[i];
}

/* Returns the clock of a buffer's first use. */
static inline const uint32_t *first_uses_clock(const struct first_uses *first_uses,
                                               const struct order *order, uint32_t buffer)
{
    uint32_t early = first_uses->own_clock_row_by_buffer[buffer];
    return early == IR_NONE ? order_clock_of(order, first_uses->first_op_by_buffer[buffer])
                            : first_uses->own_clocks_of_first_uses +
                                  (size_t)early * first_uses->clock_column_count;
}

/* True if all ops of set[count], the free set of another buffer, have ended when the live range of `buffer` starts. */
bool first_uses_starts_after_free_set(const struct first_uses *first_uses,
                                      const struct order *order, uint32_t buffer, const op_id *set,
                                      uint32_t count);

#endif
