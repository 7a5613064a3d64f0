/* traces/align.h: matches rows of two programs that do the same work, without op ids.
 *
 * A sequence is what one rank did in one step on one lane (kernels, communication, copies; streams of one lane are
 * merged by start). Its items are the rows of heavy work: matrix products, attention, messages, copies. All other rows
 * (norms, element-wise work) lie between items and are not aligned one by one, because no two programs split them in
 * the same way. Attention is one item from its first row to its last, whether it is one kernel, products written out or
 * tiles. A row of communication that moves no bytes belongs to a collective: a call and copies into a buffer to the
 * next one, copies out of a buffer to the last one.
 *
 * Two sequences are aligned by dynamic programming over blocks. A block matches one item with up to ALIGN_MANY items of
 * the other side, or a pair of equal items with up to ALIGN_SOME. All items of a block have one class, and the amounts
 * of both sides (flops from the recorded shapes, or bytes) have equal sums. So three projections can match a fused one,
 * and their six backward products its two. An item of unknown amount, as attention always is, matches only one other.
 * Equal phases and equal places in the periodic structure (the layers) add a little to the score of a block. The method
 * is that of Needleman and Wunsch, J. Mol. Biol. 48 (1970), with blocks for letters. Private to traces/foreign.h and
 * the files that include it.
 *
 * The folder traces/ holds the tables of what happened or would happen: timed rows of ops, measurements that others
 * published, and the code that reads and compares them. */
#ifndef TRACES_ALIGN_H
#define TRACES_ALIGN_H

#include "traces/compare.h"
#include "traces/kernel_class.h"
#include "traces/trace.h"

enum { ALIGN_SOME = 6, ALIGN_MANY = 12, ALIGN_ITEMS_MAX = 1000000 };

enum align_lane { LANE_COMPUTE, LANE_COMMUNICATION, LANE_COPY, LANE_COUNT };

enum align_phase {
    ALIGN_UNKNOWN,
    ALIGN_FORWARD,
    ALIGN_RECOMPUTE,
    ALIGN_BACKWARD,
    ALIGN_OPTIMIZER,
    ALIGN_PHASE_COUNT
};

struct align_item {
    uint8_t class, phase; /* enum kernel_class, enum align_phase */
    uint32_t first_row;   /* row of the trace; the first row if the item has several */
    uint32_t row_count;
    /* the item's rows are align_sequence.rows[rows_begin .. rows_begin + row_count) */
    uint32_t rows_begin;
    int32_t repeat_number; /* number of the repetition (layer) that holds the item; -1: none */
    double seconds;        /* sum of row times */
    double flops_or_bytes; /* 0: unknown */
};

/* A row between items. */
struct align_filler {
    uint8_t class, phase;
    uint32_t trace_row;
    uint32_t items_before; /* number of items before the filler */
    double seconds;
};

struct align_sequence {
    struct align_item *items;
    size_t item_count, item_capacity;
    struct align_filler *fillers;
    size_t filler_count, filler_capacity;
    uint32_t *rows; /* rows of the trace in the order in which they were added */
    size_t row_count, row_capacity;
    /* The number of rows, from rows[pending_begin] on, that belong to the next message, which has not been added yet:
     * copies into the message's buffer, and its call. */
    uint32_t pending_rows, pending_begin;
    double pending_s;
    struct compare_period forward_period; /* the period of the forward pass */
};

/* Appends a row of the trace, which has this class. Rows must be added in order. */
void align_add_row(struct align_sequence *sequence, const struct trace *trace, uint32_t row,
                   enum kernel_class class);
/* Finds the period of a sequence and numbers its repetitions (layers). Call it after the last row was added. */
void align_find_periods(struct align_sequence *sequence);
void align_release(struct align_sequence *sequence);

/* A match of items [a_begin, a_begin + a_count) of one sequence with items [b_begin, b_begin + b_count) of the
 * other. */
struct align_block {
    uint32_t a_begin, b_begin;
    uint8_t a_count, b_count;
};

/* Aligns two sequences of at most ALIGN_ITEMS_MAX items each. Returns the number of blocks and puts them, in order,
 * into *blocks, which the caller frees. */
size_t align_blocks(const struct align_sequence *a, const struct align_sequence *b,
                    struct align_block **blocks);

#endif
