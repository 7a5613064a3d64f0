/* schedule/analysis/waits.h: finds the earlier ops that an op must wait for because of the data it touches.
 *
 * For every buffer it keeps the accesses that a later op may have to wait for: writes, and the reads since. An op
 * conflicts with an access of another stream that overlaps its own if one of the two writes, unless the clocks say that
 * the op is ordered after that access already. Of the newest accesses of a buffer, those that a later write covers are
 * dropped, and reads that a later read of the same stream covers. So the lists stay short, and finding all waits of a
 * schedule is near-linear. */
#ifndef SCHEDULE_ANALYSIS_WAITS_H
#define SCHEDULE_ANALYSIS_WAITS_H

#include "schedule/analysis/happens_before.h"

#include <stdbool.h>
#include <stdint.h>

#define TOUCH_END_OF_WHOLE_BUFFER UINT64_MAX /* the end of an operand that is a whole buffer */

/* An operand of an op: elements first_element .. end_element - 1 of a buffer. */
struct touch {
    uint32_t buffer;
    bool is_write;
    uint64_t first_element, end_element;
};

struct waits;

/* Makes the state for buffers 0 .. buffers - 1. It keeps the pointer `order`; the open op of `order` is the one to
 * which later calls add waits. */
struct waits *waits_new(const struct order *order, uint32_t buffers);
void waits_free(struct waits *waits);

/* Adds an op for which the open op has to wait, whatever it touches. */
void waits_add_op(struct waits *waits, uint32_t op);

/* Adds to the list of waits the ops of other streams that conflict with one of touch[count], the elements that the open
 * op reads or writes, unless the open op starts after them anyway. stream: that of the open op. Returns the number of
 * ops that have been added for the open op so far. */
uint32_t waits_add_conflicting_ops(struct waits *waits, const struct touch *touch, uint32_t count,
                                   uint8_t stream);

/* Makes the open op of `order` wait for the added ops, and empties the list of them. Returns, in list order, only the
 * waits that are needed, and sets *count to their number (0: returns NULL): a wait is left out if the open op's clock
 * or another added op implies it. The array belongs to `waits`. */
const op_id *waits_join_and_return_needed(struct waits *waits, struct order *order,
                                          uint32_t *count);

/* Records touch[count], the elements that op `op` of `stream` reads or writes; later ops may conflict with them. */
void waits_record_touches(struct waits *waits, const struct touch *touch, uint32_t count,
                          uint8_t stream, uint32_t op);

#endif
