/* Times of the long list from those of the short one: three conditions under which they follow
 * (docs/simulation.md, "Depth folding"), the writing down, and the check of every start. */
#include "sim/depth.h"

#include "base/arena.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Dates that are one date: SimGrid joins events within 1e-12 s, and sums of dates round. What that
 * leaves in a time between periods is at most multiplied by their number. */
#define SAME_S 1e-11
#define SAME_SHARE 1e-12

struct expand {
    const struct depth_cut *cut;
    const struct plan *plan;
    const struct fold *fold;
    const struct depth_times *in;
    struct depth_times *out;
    uint32_t ops, cut_ops;
    double same_s;
};

static bool same(const struct expand *x, double a, double b)
{
    return fabs(a - b) <= x->same_s;
}

static bool class_runs(const struct expand *x, uint32_t class)
{
    return x->plan->role_of_rank[x->fold->rank_of_class[class]] != IR_NONE;
}

/* The rows of a class in the short list, in the long list: classes without a role have none. */
static size_t rows_before(const struct expand *x, uint32_t class, uint32_t ops)
{
    size_t rows = 0;
    for (uint32_t c = 0; c < class; c++)
        rows += class_runs(x, c) ? ops : 0;
    return rows;
}

static bool passes(const struct expand *x, uint32_t class, uint16_t guard)
{
    uint32_t rank = x->fold->rank_of_class[class];
    return guard == IR_NONE16 || x->plan->passes[(size_t)rank * x->plan->ir->guard_count + guard];
}

static bool is_event(const struct expand *x, uint32_t class, uint32_t op)
{
    return x->in->op_class[op] == OP_EVENT && passes(x, class, x->cut->ir.op.guard[op]);
}

/* ---- the conditions ---- */

/* The dates of period p + 1 are those of p and period_s, on all ranks. */
static bool repeats(const struct expand *x, const struct depth_run *run, uint32_t p)
{
    const double *start_s = x->in->start_s, *end_s = x->in->end_s;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (!class_runs(x, c))
            continue;
        size_t row = rows_before(x, c, x->cut_ops) + run->cut_begin + (size_t)p * run->ops;
        for (size_t i = row; i < row + run->ops; i++)
            if (!same(x, start_s[i] + run->period_s, start_s[i + run->ops]) ||
                !same(x, end_s[i] + run->period_s, end_s[i + run->ops]))
                return false;
    }
    return true;
}

/* When the first event of the period behind the gap begins, on any rank. */
static double first_event_s(const struct expand *x, const struct depth_run *run)
{
    double first_s = DBL_MAX;
    uint32_t begin = run->cut_begin + run->first_kept * run->ops;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (!class_runs(x, c))
            continue;
        const double *start_s = x->in->start_s + rows_before(x, c, x->cut_ops);
        for (uint32_t op = begin; op < begin + run->ops; op++)
            if (is_event(x, c, op) && start_s[op] < first_s)
                first_s = start_s[op];
    }
    return first_s;
}

/* Looks at all events that are open at some time in [from_s, from_s + period_s): they must be the
 * run's own. *lag: how many periods back they lie, at most. */
static bool is_alone(const struct expand *x, const struct depth_run *run, double from_s,
                     uint32_t *lag)
{
    uint32_t first = run->cut_begin, last = first + run->first_kept * run->ops;
    double to_s = from_s + run->period_s - x->same_s;
    *lag = 0;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (!class_runs(x, c))
            continue;
        size_t row = rows_before(x, c, x->cut_ops);
        const double *start_s = x->in->start_s + row, *end_s = x->in->end_s + row;
        for (uint32_t op = 0; op < x->cut_ops; op++) {
            if (start_s[op] >= to_s || end_s[op] <= from_s + x->same_s || !is_event(x, c, op))
                continue;
            if (op < first || op >= last + run->ops)
                return false;
            uint32_t back = run->first_kept - (op - first) / run->ops;
            if (back > *lag)
                *lag = back;
        }
    }
    return true;
}

/* Finds the time between periods, or that there is no one time. */
static bool settle(const struct expand *x, struct depth_run *run)
{
    uint32_t b = run->first_kept - 1, lag = 0; /* period b stands for those left out behind it */
    size_t last_row = run->cut_begin + (size_t)(b + 2) * run->ops - 1;
    uint32_t c = 0;
    while (!class_runs(x, c))
        c++;
    const double *end_s = x->in->end_s + rows_before(x, c, x->cut_ops);
    run->period_s = end_s[last_row] - end_s[last_row - run->ops];
    double from_s = first_event_s(x, run);
    if (from_s != DBL_MAX && !is_alone(x, run, from_s, &lag))
        return false;
    if (lag > b)
        return false;
    run->period_s = (end_s[last_row] - end_s[last_row - (size_t)(lag + 1) * run->ops]) / (lag + 1);
    for (uint32_t p = b - lag; p <= b; p++)
        if (!repeats(x, run, p))
            return false;
    return true;
}

/* ---- the long list ---- */

/* Ops in a row, so many, that come by_s later. */
static void write_ops(const double *in, double *out, uint32_t ops, double by_s)
{
    for (uint32_t i = 0; i < ops; i++)
        out[i] = in[i] + by_s;
}

/* Period first_kept - 1 stands for those left out, and shift_s is that of the run. */
static void write_run(const struct depth_run *run, const double *in, double *out, double shift_s)
{
    uint32_t left_out = run->periods - run->kept;
    for (uint32_t p = 0; p < run->periods; p++) {
        uint32_t out_of = p >= run->first_kept ? p + 1 - run->first_kept : 0; /* periods behind b */
        if (out_of > left_out)
            out_of = left_out;
        write_ops(in + (size_t)(p - out_of) * run->ops, out + (size_t)p * run->ops, run->ops,
                  shift_s + out_of * run->period_s);
    }
}

static void write_class(const struct expand *x, const double *in, double *out)
{
    const struct depth_cut *cut = x->cut;
    double shift_s = 0;
    uint32_t op = 0, at = 0; /* in the long list, in the short one */
    for (uint32_t r = 0; r < cut->run_count; r++) {
        const struct depth_run *run = &cut->run[r];
        write_ops(in + at, out + op, run->begin - op, shift_s);
        write_run(run, in + run->cut_begin, out + run->begin, shift_s);
        shift_s += (run->periods - run->kept) * run->period_s;
        op = run->begin + run->periods * run->ops;
        at = run->cut_begin + run->kept * run->ops;
    }
    write_ops(in + at, out + op, x->ops - op, shift_s);
}

/* ---- the check ---- */

/* The first op of a class that does not start when the last of what it needs has ended (as in
 * scheduler.c); x->ops: none. */
static uint32_t find_wrong_start(const struct expand *x, uint32_t class, const double *start_s,
                                 const double *end_s, uint32_t *last)
{
    const struct ir *ir = x->cut->whole;
    const double *cost_s = x->plan->costs->issue_s, *return_s = x->plan->costs->return_s;
    double host_s = 0;
    for (uint32_t i = 0; i < ir->stream_count; i++)
        last[i] = IR_NONE;
    for (uint32_t op = 0; op < x->ops; op++) {
        uint8_t kind = ir->op.kind[op], stream = ir->op.stream[op];
        bool sync = kind == WORK_HOST_SYNC || kind == WORK_BARRIER;
        bool runs = passes(x, class, ir->op.guard[op]);
        if (cost_s && !sync && runs)
            host_s += cost_s[ir->op.shape[op]];
        double need_s = host_s;
        if (kind != WORK_BARRIER && last[stream] != IR_NONE && end_s[last[stream]] > need_s)
            need_s = end_s[last[stream]];
        if (!sync)
            last[stream] = op;
        const op_id *wait = ir->wait + ir->op.wait_begin[op];
        for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
            if (end_s[wait[w].i] > need_s)
                need_s = end_s[wait[w].i];
        if (!same(x, start_s[op], need_s))
            return op;
        if (ir_blocks_host(ir, op))
            host_s = end_s[op] + (return_s && runs ? return_s[ir->op.shape[op]] : 0);
    }
    return x->ops;
}

/* ---- what failed ---- */

static void be_patient(struct depth_patience *patience, const struct depth_run *run)
{
    uint32_t i = 0;
    while (i < patience->count && patience->row[i].run != run->hash)
        i++;
    if (i == patience->count && i < ARRAY_LEN(patience->row))
        patience->row[patience->count++].run = run->hash;
    if (i < patience->count)
        patience->row[i].tries++;
}

/* Is the run the first with these ops? Those that share them fail together. */
static bool is_first_of_its_kind(const struct depth_cut *cut, uint32_t r)
{
    for (uint32_t i = 0; i < r; i++)
        if (cut->run[i].hash == cut->run[r].hash)
            return false;
    return true;
}

static bool settle_all(const struct expand *x, struct depth_patience *patience)
{
    uint64_t blamed = 0;
    bool all = true;
    for (uint32_t r = 0; r < x->cut->run_count; r++) {
        struct depth_run *run = &x->cut->run[r];
        if (settle(x, run))
            continue;
        if (all || run->hash != blamed)
            be_patient(patience, run);
        blamed = run->hash;
        all = false;
    }
    return all;
}

bool depth_expand(const struct depth_cut *cut, const struct plan *plan, const struct fold *fold,
                  const struct depth_times *of_short, struct depth_times *of_whole,
                  struct depth_patience *patience)
{
    struct expand x = {.cut = cut,
                       .plan = plan,
                       .fold = fold,
                       .in = of_short,
                       .out = of_whole,
                       .ops = cut->whole->op.count,
                       .cut_ops = cut->ir.op.count};
    double until_s = 0;
    size_t rows = rows_before(&x, fold->class_count, x.cut_ops);
    for (size_t i = 0; i < rows; i++)
        until_s = of_short->end_s[i] > until_s ? of_short->end_s[i] : until_s;
    x.same_s = SAME_S + SAME_SHARE * until_s;
    if (!settle_all(&x, patience))
        return false;
    uint32_t wrong = x.ops, *last = heap_alloc(cut->whole->stream_count + 1u, sizeof *last);
    x.same_s += SAME_SHARE * until_s * x.ops / x.cut_ops; /* sums of many periods */
    for (uint32_t c = 0; wrong == x.ops && c < fold->class_count; c++) {
        if (!class_runs(&x, c))
            continue;
        size_t from = rows_before(&x, c, x.cut_ops), to = rows_before(&x, c, x.ops);
        write_class(&x, of_short->start_s + from, of_whole->start_s + to);
        write_class(&x, of_short->end_s + from, of_whole->end_s + to);
        wrong = find_wrong_start(&x, c, of_whole->start_s + to, of_whole->end_s + to, last);
    }
    free(last);
    for (uint32_t op = 0; of_whole->op_class && op < x.ops; op++)
        of_whole->op_class[op] = of_short->op_class[depth_image(cut, op)];
    for (uint32_t r = 0; wrong < x.ops && r < cut->run_count; r++)
        if (cut->run[r].begin <= wrong && is_first_of_its_kind(cut, r))
            be_patient(patience, &cut->run[r]);
    return wrong == x.ops;
}
