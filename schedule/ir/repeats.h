/* schedule/ir/repeats.h: ops in a row, of which those that repeat (ir.repeat) are visited once.
 *
 * For what is asked of an op's shape, kind, region and the like, which are those of its like in every
 * period:
 *
 *     struct repeats_walk walk = repeats_begin(ir, role->op_begin, role->op_count);
 *     while (repeats_next(&walk))
 *         for (uint32_t op = walk.begin; op < walk.end; op++)
 *             count[ir->op.shape[op]] += walk.times; */
#ifndef SCHEDULE_REPEATS_H
#define SCHEDULE_REPEATS_H

#include "schedule/ir/ir.h"

struct repeats_walk {
    const struct ir *ir;
    uint32_t at, until, repeat; /* what is left; the next row of ir.repeat */
    uint32_t begin, end, times; /* ops [begin, end) are there so many times */
};

static inline struct repeats_walk repeats_begin(const struct ir *ir, uint32_t op, uint32_t ops)
{
    return (struct repeats_walk){.ir = ir, .at = op, .until = op + ops};
}

/* The next ops; false: there are none. */
static inline bool repeats_next(struct repeats_walk *w)
{
    if (w->at >= w->until)
        return false;
    while (w->repeat < w->ir->repeat_count && w->ir->repeat[w->repeat].op < w->at)
        w->repeat++;
    const struct ir_repeat none = {.op = w->until};
    const struct ir_repeat *repeat =
        w->repeat < w->ir->repeat_count ? &w->ir->repeat[w->repeat] : &none;
    bool repeats = repeat->op == w->at && repeat->ops * repeat->periods <= w->until - w->at;
    w->begin = w->at;
    w->times = repeats ? repeat->periods : 1;
    if (repeats)
        w->end = w->begin + repeat->ops;
    else
        w->end = repeat->op > w->at && repeat->op < w->until ? repeat->op : w->until;
    w->at += (w->end - w->begin) * w->times;
    return true;
}

#endif
