/* traces/align.h: matches rows of two programs that do the same work, without op ids.
 *
 * A sequence is what one rank did in one step on one lane (kernels, communication, copies; streams of one lane are
 * merged by start). Its items are the rows of heavy work: matrix products, attention, messages, copies. All other
 * rows (norms, element-wise) stand between items, since no two programs split those in the same way. Attention is one
 * item from its first row to its last, whether it is one kernel, products written out or tiles. A row of
 * communication that moves no bytes belongs to a collective: a call and copies into a buffer to the next one, copies
 * out of a buffer to the last one.
 *
 * Two sequences are aligned by dynamic programming over blocks. A block is one item against up to ALIGN_MANY of the
 * other side, or a pair of equal ones against up to ALIGN_SOME, all of one class, whose amounts (flops from the
 * recorded shapes, bytes) have equal sums. So three projections can match a fused one, and their six backward
 * products its two. An item of unknown amount, as attention always is, matches only one other. Equal phases and equal
 * places in the periodic structure (the layers) add a little to the score of a block. The method is that of
 * Needleman and Wunsch, J. Mol. Biol. 48 (1970), with blocks for letters.
 * Private to traces/foreign.h and the files that include it.
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
    uint32_t row;         /* row of the trace; the first row if the item has several */
    uint32_t rows;
    uint32_t place;     /* the item's rows are align_sequence.row[place .. place + rows) */
    int32_t unit;       /* number of the repeated unit (layer) that holds the item; -1: none */
    double seconds;     /* sum of row times */
    double work_amount; /* flops or bytes; 0: unknown */
};

/* A row between items. */
struct align_filler {
    uint8_t class, phase;
    uint32_t row;
    uint32_t place; /* number of items before the filler */
    double seconds;
};

struct align_sequence {
    struct align_item *item;
    size_t count, capacity;
    struct align_filler *filler;
    size_t filler_count, filler_capacity;
    uint32_t *row; /* rows of the trace in the order in which they were added */
    size_t row_count, row_capacity;
    /* Rows that belong to the next message, from row[before_place] on: copies into its buffer, and its call. */
    uint32_t before, before_place;
    double before_s;
    struct compare_period period; /* the period of the forward pass */
};

/* Appends a row of the trace, which has this class. Rows must be added in order. */
void align_add_row(struct align_sequence *sequence, const struct trace *trace, uint32_t row,
                   enum kernel_class class);
/* Finds the repeated units (layers) of a sequence. Call after the last row was added. */
void align_find_periods(struct align_sequence *sequence);
void align_release(struct align_sequence *sequence);

/* A match of items [a, a + a_count) of one sequence with items [b, b + b_count) of the other. */
struct align_block {
    uint32_t a, b;
    uint8_t a_count, b_count;
};

/* Aligns two sequences of at most ALIGN_ITEMS_MAX items each. Returns the number of blocks and puts them, in order,
 * into *blocks, which the caller frees. */
size_t align_blocks(const struct align_sequence *a, const struct align_sequence *b,
                    struct align_block **blocks);

#endif
