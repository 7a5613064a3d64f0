/* schedule/analysis/happens_before.h: which op of a role is ordered before which (happens-before).
 *
 * Op a is ordered before op b when a has ended, on every rank of the role and whatever the ops cost, before b starts.
 * The order follows from four rules: ops of one stream run in list order; an op starts after the ops it waits for; the
 * host issues in list order, so that nothing listed after a HOST_SYNC, a BARRIER or a blocking copy starts before that
 * has ended; HOST_SYNC ends after all that was issued before on its stream. An op whose guard fails keeps its place and
 * its waits, so one pass serves all ranks. The order between ranks, which messages make, is not computed here.
 *
 * The order is held as one vector clock per op: a row with one uint32_t for each stream, which is 1 + the last op of
 * that stream that has ended when the op starts (0: none). Ops of a stream end in list order, so one number for each
 * stream is enough, and the clocks of a role take ops x streams numbers.
 *
 * order_compute_clocks_of_role() computes the clocks of a finished list. A pass that emits a list can build them as it
 * goes, and look at the clock of the op it is about to emit:
 *
 *     order_begin_list(&order, ir->stream_count, first_op);
 *     for each op: order_open_op(&order, ORDER_RUNS_ON_STREAM, stream);
 *                  if (!order_open_op_is_after(&order, writer)) order_add_wait(&order, writer);  // a wait
 *                  order_close_op(&order); */
#ifndef SCHEDULE_ANALYSIS_HAPPENS_BEFORE_H
#define SCHEDULE_ANALYSIS_HAPPENS_BEFORE_H

#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* The kinds of ops that the order distinguishes, by where an op runs and what it makes wait. */
enum order_op_kind {
    ORDER_RUNS_ON_STREAM,         /* runs on its stream */
    ORDER_BLOCKS_HOST_UNTIL_DONE, /* runs on its stream, and the host waits for its end */
    ORDER_HOST_WAITS_FOR_STREAM,  /* HOST_SYNC: the host waits for what was issued on the stream */
    ORDER_RUNS_ON_HOST_ONLY,      /* BARRIER: on the host, in no stream */
    ORDER_PLACE_COUNT
};

#define ORDER_NO_STREAM UINT8_MAX /* the stream of ops that are in no stream */

/* All-zero is empty. first_op, op_count, clock_column_count, clocks and stream_of_op may be read; the other members are
 * only for happens_before.c. */
struct order {
    /* clocks of ops first_op .. first_op + op_count - 1, in list order */
    uint32_t first_op, op_count;
    uint32_t stream_count;       /* number of columns in use */
    uint32_t clock_column_count; /* number of columns of a row; columns that are not in use are 0 */
    uint32_t *clocks;            /* (op_count, clock_column_count) */
    uint8_t *stream_of_op;       /* (op_count) the op's stream, or ORDER_NO_STREAM */
    /* (stream_count) 1 + the last op of the stream; 0: none yet */
    uint32_t *last_op_of_stream_plus_1;
    /* (clock_column_count) for each stream, 1 + the last op that has ended when the host issues the next op */
    uint32_t *host_clock;
    uint32_t capacity;
    uint8_t open_op_kind; /* enum order_op_kind of the op under construction */
};

void order_release(struct order *order);

/* Computes the clocks of all ops of a role into *order, whose memory is reused. A wait for an op that does not come
 * earlier in the role's list is ignored here; the verifier reports it. */
void order_compute_clocks_of_role(struct order *order, const struct ir *ir, uint32_t role);

/* Starts an empty list whose ops will use streams 0 .. streams - 1 and be numbered from first_op. */
void order_begin_list(struct order *order, uint32_t streams, uint32_t first_op);

/* Opens the next op, whose id is first_op + op_count, and returns its clock before any waits are joined. The pointer is
 * valid until the next order_open_op(). `stream` is the op's stream column; ORDER_RUNS_ON_HOST_ONLY ignores it. */
const uint32_t *order_open_op(struct order *order, enum order_op_kind place, uint32_t stream);

/* Makes the open op wait for `op`. Does nothing if `op` does not come earlier in the list. */
void order_add_wait(struct order *order, uint32_t op);

/* Closes the open op, which becomes the last op of the list. */
void order_close_op(struct order *order);

/* Returns where an op of a schedule runs, and what waits for it. */
enum order_op_kind order_kind_of_op(const struct ir *ir, uint32_t op);

static inline const uint32_t *order_clock_of(const struct order *order, uint32_t op)
{
    return order->clocks + (size_t)(op - order->first_op) * order->clock_column_count;
}

/* True if op a has ended when op b starts. Both are ops of the list; b may be the open one. */
static inline bool order_is_before(const struct order *order, uint32_t a, uint32_t b)
{
    uint8_t stream = order->stream_of_op[a - order->first_op];
    if (stream == ORDER_NO_STREAM)
        return a < b;
    return order_clock_of(order, b)[stream] > a;
}

/* True if the open op already starts after op a, so that a wait for a would add nothing. */
static inline bool order_open_op_is_after(const struct order *order, uint32_t a)
{
    return order_is_before(order, a, order->first_op + order->op_count);
}

#endif
