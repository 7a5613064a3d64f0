/* traces/align.h: matches rows of two programs that do the same work, without op ids.
 *
 * A sequence is what one rank did in one step on one lane (kernels, communication, copies; streams of one lane are
 * merged by start). Its items are the rows of heavy work: matrix products, attention, messages, copies. All other rows
 * (norms, element-wise work) lie between items and are not aligned one by one, since programs split them
 * differently. Attention is one item from its first row to its last, whether it is one kernel, products written out or
 * tiles. A row of communication that moves no bytes is part of a collective. The call of a collective, and copies into
 * its buffer, become part of the next message; copies out of its buffer become part of the item before them.
 *
 * Two sequences are aligned by dynamic programming over blocks. A block matches one item with up to ALIGN_MANY items of
 * the other side, or a pair of equal items with up to ALIGN_SOME. All items of a block have one class, and the amounts
 * of both sides (flops from the recorded shapes, or bytes) have equal sums. So three projections can match a fused one,
 * and their six backward products its two backward products. An item of unknown amount matches only a single item;
 * attention always has an unknown amount, since programs count masked pairs differently. The score of a block is a
 * little higher if its first items have the same phase, and the same number among the repetitions (layers). The method
 * is that of Needleman and Wunsch, J. Mol. Biol. 48 (1970), with blocks in place of letters. Private to
 * traces/foreign.h and the files that include it.
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
    ALIGN_PHASE_UNKNOWN,
    ALIGN_PHASE_FORWARD,
    ALIGN_PHASE_RECOMPUTE,
    ALIGN_PHASE_BACKWARD,
    ALIGN_PHASE_OPTIMIZER,
    ALIGN_PHASE_COUNT
};

struct align_item {
    uint8_t class, phase; /* enum kernel_class, enum align_phase */
    /* row of the trace: the message of a collective, else the first row of the item */
    uint32_t first_row;
    uint32_t row_count;
    /* the item's rows are align_sequence.rows[rows_begin .. rows_begin + row_count) */
    uint32_t rows_begin;
    /* number of the repetition (layer) that holds the item; -1: none */
    int32_t repeated_layer_number;
    double seconds;        /* sum of row times */
    double flops_or_bytes; /* 0: unknown */
};

/* A row that is no item and lies between items. */
struct align_row_outside_items {
    uint8_t class, phase;      /* enum kernel_class, enum align_phase */
    uint32_t row_of_trace;     /* the row of the trace */
    uint32_t items_before_row; /* number of items of the sequence before the row */
    double seconds;
};

struct align_sequence {
    struct align_item *items;
    size_t item_count, item_capacity;
    struct align_row_outside_items *rows_outside_items;
    size_t rows_outside_items_count, rows_outside_items_capacity;
    /* rows of the trace: those of an item one after the other, else in the order in which they were added */
    uint32_t *rows;
    size_t row_count, row_capacity;
    /* Pending rows are calls of a collective and copies into its buffer, while its message has not been added. They
     * become part of the item of the next message, or an item of their own if none follows. They are rows[pending_begin
     * .. pending_begin + pending_rows), and take pending_rows_s. */
    uint32_t pending_rows, pending_begin;
    double pending_rows_s;
    struct compare_layer_period forward_period; /* the period of the forward pass */
};

/* Appends a row of the trace, which has this class. Rows must be added in the order of their starts. */
void align_add_row(struct align_sequence *sequence, const struct trace *trace, uint32_t row,
                   enum kernel_class class);
/* Finds the period of the items in each pass (forward; the rest) and numbers its repetitions (layers). Call it after
 * the last row was added. */
void align_find_periods(struct align_sequence *sequence);
void align_release(struct align_sequence *sequence);

/* A match of items [a_begin, a_begin + a_count) of one sequence with items [b_begin, b_begin + b_count) of the
 * other. */
struct align_matched_items {
    uint32_t a_begin, b_begin;
    uint8_t a_count, b_count;
};

/* Aligns two sequences of at most ALIGN_ITEMS_MAX items each. Returns the number of blocks and puts them, in order,
 * into *blocks, which the caller frees. */
size_t align_blocks(const struct align_sequence *a, const struct align_sequence *b,
                    struct align_matched_items **blocks);

#endif
