/* schedule/ir/loops_roll.h: lines of a flat schedule that repeat, rolled into loops. Private to schedule/ir/.
 *
 * A line is a shape (its text without its numbers) and its numbers. Consecutive lines whose shapes repeat, and whose
 * numbers change by the same amount from one iteration to the next, can become one loop; loops repeat like lines, so
 * they nest. Every number of every iteration is compared. */
#ifndef SCHEDULE_LOOPS_ROLL_H
#define SCHEDULE_LOOPS_ROLL_H

#include "base/text.h"
#include "schedule/ir/id_map.h"

#include <stdbool.h>
#include <stdint.h>

/* These characters stand for numbers in the text of a shape: LOOPS_OP for an op's name, LOOPS_NUMBER for any other
 * number. */
enum { LOOPS_OP = '\2', LOOPS_NUMBER = '\1' };

/* The common content of nodes that differ only in their numbers: the text of a line, or the body of a loop. */
struct loops_shape {
    const char *text;     /* text of a line; NULL: it is a loop */
    uint32_t *body;       /* the shapes of an iteration, in order */
    uint32_t body_length; /* length of body */
    uint32_t trip_count;  /* number of iterations; of a line 1 */
    /* [number_count] by how much each number changes from one iteration to the next */
    int64_t *stride;
    /* how many numbers a node has: those of a line, or those of a loop's first iteration */
    uint32_t number_count;
    uint32_t op_line_count; /* number of op lines of a node, all iterations together */
    uint32_t loop_count;    /* number of loops of a node, itself included */
};

struct loops_node {
    uint32_t shape;
    uint64_t index_of_first_number; /* index in loops.number[] of the first of its numbers */
};

/* The lines added so far, some of them rolled into loops. All-zero: no lines. */
struct loops {
    struct loops_shape *shape;
    uint32_t shape_count;
    size_t shape_capacity;
    struct id_map shape_map;
    int64_t *number;
    size_t number_count, number_capacity;
    struct loops_node *node; /* the top-level nodes, in order */
    size_t count, capacity;
    struct arena arena; /* memory of the shapes */
};

void loops_release(struct loops *loops);

/* Appends a line (without its end) as a node. is_op: it is the line of an op. */
void loops_add_line(struct loops *loops, const char *line, size_t size, bool is_op);

/* The labels of an op that are numbers, as they are in the text of a shape. */
enum { LOOPS_LABELS = 4 };
extern const char *const loops_labels[LOOPS_LABELS];

/* Finds a label, one of loops_labels[], in the text of a shape. Returns the index, among the shape's numbers, of the
 * number after the label; UINT32_MAX if the shape is a loop's or lacks the label. */
uint32_t loops_number_index_of_label(const struct loops_shape *shape, const char *label);

/* Rolls the nodes from `from` on into loops: each loop becomes one node, so there are fewer nodes afterwards. */
void loops_roll(struct loops *loops, uint64_t from);

/* Appends all nodes as text of version 2 of the format, with aliases at the end. */
void loops_print(struct text *out, struct loops *loops);

#endif
