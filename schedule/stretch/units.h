/* schedule/stretch/units.h: a schedule of few micro-batches made into one of many.
 *
 * Behind its warm-up and before its cool-down a role does the same with one micro-batch after the other
 * (with one pipeline: with so many), its period: all of a unit, or one unit's forward and an earlier
 * one's backward. So a role is emitted, rewritten and finished with few of them, and the periods left
 * out are copies whose ids go on by strides.
 *
 * Nothing is taken on trust: three periods in a row must be the same, row for row, and what they refer
 * to must be the same thing or lie one period further. Ops refer back (operands, waits) and buffers
 * ahead (free sets); where a stage holds many units, the periods whose ops are alike come behind those
 * whose buffers are. What the rows behind them refer to moves up with the unit it is of, or with the
 * periods behind the cut. Where that does not tell, there is no stretching, and the role is emitted
 * with all of them. tests/schedule/test_stretch.c compares both ways op for op. */
#ifndef SCHEDULE_STRETCH_UNITS_H
#define SCHEDULE_STRETCH_UNITS_H

#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* A bound buffer of which every period takes the next part. */
struct units_input {
    uint32_t buffer;
    uint64_t step; /* elements */
};

enum { UNITS_INPUTS_MAX = 8 };

struct units {
    struct ir *ir;
    uint16_t role;
    uint32_t step; /* units of a period */
    uint32_t more; /* periods that were left out */

    uint32_t periods; /* that are there; the last one's end is behind all */
    uint32_t *op_at,
        *buffer_at;        /* (periods + 1) where each begins, which the last one's end does */
    uint32_t first_buffer; /* of the role */
    uint16_t *micro_of;    /* per buffer of the role: of the op it is born with */
    uint32_t alike;        /* from here on periods have the same rows; */
    struct units_steady {
        uint32_t low, high; /* these refer to the same things, */
        uint32_t cut;       /* and copies stand behind this one */
    } back, ahead;          /* operands and waits; free sets */
    struct units_input input[UNITS_INPUTS_MAX];
    uint32_t input_count;
};

/* Finds the periods of a role, the last in *ir, whose waits and free sets are settled. False: there are none
 * that are steady. */
bool units_survey(struct units *units, struct ir *ir, uint16_t role, uint32_t step, uint32_t more);
void units_release(struct units *units);

/* Puts the periods that were left out, without offsets, and a row of ir.repeat. False: it cannot be told what
 * something refers to; *ir is of no use then. */
bool units_insert(struct units *units);

/* Rows of each of the periods that are alike. */
static inline uint32_t units_ops(const struct units *u)
{
    return u->op_at[u->alike + 1] - u->op_at[u->alike];
}
static inline uint32_t units_buffers(const struct units *u)
{
    return u->buffer_at[u->alike + 1] - u->buffer_at[u->alike];
}

#endif
