/* schedule/ir/loops_roll.h: lines of a flat schedule that repeat, rolled into loops. Private to
 * schedule/ir/loops_*.c.
 *
 * A line is a shape (its text without its numbers) and its numbers. Consecutive lines whose shapes repeat, and whose
 * numbers change by the same amount from one iteration to the next, become one loop; loops repeat like lines, so they
 * nest. Every number of every iteration is compared. */
#ifndef SCHEDULE_LOOPS_ROLL_H
#define SCHEDULE_LOOPS_ROLL_H

#include "base/text.h"
#include "schedule/ir/id_map.h"

#include <stdbool.h>
#include <stdint.h>

/* In the text of a shape a number stands as one of these: the name of an op, or any other. */
enum { LOOPS_OP = '\2', LOOPS_NUMBER = '\1' };

/* The common part of nodes that differ only by their numbers: a line's text, or the body of a loop. */
struct loops_shape {
    const char *text; /* of a line; NULL: a loop */
    uint32_t *body;   /* shapes of an iteration, in order */
    uint32_t count;   /* of body */
    uint32_t trips;   /* at least 2 */
    int64_t *stride;  /* per number of an iteration: what it grows by in the next */
    uint32_t numbers; /* of the node: those of a line, or of a loop's first iteration */
    uint32_t ops;     /* op lines of a node, all iterations together */
    uint32_t loops;   /* of a node, itself among them */
};

struct loops_node {
    uint32_t shape;
    uint64_t number; /* the first of its numbers in loops.number */
};

/* All-zero is empty. */
struct loops {
    struct loops_shape *shape;
    uint32_t shape_count;
    size_t shape_capacity;
    struct id_map shapes;
    int64_t *number;
    size_t number_count, number_capacity;
    struct loops_node *node; /* top-level, in order */
    size_t count, capacity;
    struct arena arena; /* of shapes */
};

void loops_release(struct loops *loops);

/* Appends a line (without its end) as a node. is_op: it is the line of an op. */
void loops_add_line(struct loops *loops, const char *line, size_t size, bool is_op);

/* The labels of an op, as they stand in the text of a shape. */
enum { LOOPS_LABELS = 4 };
extern const char *const loops_labels[LOOPS_LABELS];

/* Returns which of the numbers of a shape is that of a label; UINT32_MAX: the shape is a loop's, or has no such label. */
uint32_t loops_rank(const struct loops_shape *shape, const char *label);

/* Rolls nodes from `from` on, which become fewer. */
void loops_roll(struct loops *loops, uint64_t from);

/* Appends all nodes as text of version 2 of the format, with aliases at the end. */
void loops_print(struct text *out, struct loops *loops);

#endif
