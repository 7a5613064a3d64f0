/* Times of the periods that were left out: three conditions under which they follow (docs/simulation.md,
 * "Depth folding"), the writing down, and the check of every start. */
#include "sim/plan/depth.h"

#include "base/arena.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Dates that are one date: SimGrid joins events within 1e-12 s, and sums of dates round. What that
 * leaves in a time between periods is at most multiplied by their number. */
#define SAME_S 1e-11
#define SAME_SHARE 1e-12

struct expand {
    const struct plan *plan;
    const struct fold *fold;
    struct depth_run *run;
    uint32_t run_count;
    const struct depth_times *times;
    uint32_t ops;
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

/* Where the rows of a class begin: classes without a role have none. */
static size_t rows_before(const struct expand *x, uint32_t class)
{
    size_t rows = 0;
    for (uint32_t c = 0; c < class; c++)
        rows += class_runs(x, c) ? x->ops : 0;
    return rows;
}

/* Per guard: does it let the class's ranks through? */
static const uint8_t *passes_of(const struct expand *x, uint32_t class)
{
    return x->plan->passes + (size_t)x->fold->rank_of_class[class] * x->plan->ir->guard_count;
}

static bool passes(const struct expand *x, uint32_t class, uint16_t guard)
{
    return guard == IR_NONE16 || passes_of(x, class)[guard];
}

static bool is_event(const struct expand *x, uint32_t class, uint32_t op)
{
    return x->plan->op_class[op] == OP_EVENT && passes(x, class, x->plan->ir->op.guard[op]);
}

/* ---- the conditions ---- */

/* The first op of the i-th period that was simulated. */
static uint32_t kept_begin(const struct depth_run *run, uint32_t i)
{
    uint32_t left_out = i < run->first_kept ? 0 : run->periods - run->kept;
    return run->begin + (i + left_out) * run->ops;
}

/* The dates of the simulated period p + 1 are those of p and period_s, on all ranks. */
static bool repeats(const struct expand *x, const struct depth_run *run, uint32_t p)
{
    uint32_t begin = kept_begin(run, p), next = kept_begin(run, p + 1);
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (!class_runs(x, c))
            continue;
        const double *start_s = x->times->start_s + rows_before(x, c);
        const double *end_s = x->times->end_s + rows_before(x, c);
        for (uint32_t i = 0; i < run->ops; i++)
            if (!same(x, start_s[begin + i] + run->period_s, start_s[next + i]) ||
                !same(x, end_s[begin + i] + run->period_s, end_s[next + i]))
                return false;
    }
    return true;
}

/* When the first event of the period behind the gap begins, on any rank. */
static double first_event_s(const struct expand *x, const struct depth_run *run)
{
    double first_s = DBL_MAX;
    uint32_t begin = kept_begin(run, run->first_kept);
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (!class_runs(x, c))
            continue;
        const double *start_s = x->times->start_s + rows_before(x, c);
        for (uint32_t op = begin; op < begin + run->ops; op++)
            if (is_event(x, c, op) && start_s[op] < first_s)
                first_s = start_s[op];
    }
    return first_s;
}

/* How many simulated periods an op of the run lies before the one behind the gap; IR_NONE: it is not of
 * the run up to there. */
static uint32_t periods_back(const struct depth_run *run, uint32_t op)
{
    uint32_t behind = kept_begin(run, run->first_kept);
    if (op >= behind)
        return op < behind + run->ops ? 0 : IR_NONE;
    if (op < run->begin || op >= run->begin + run->first_kept * run->ops)
        return IR_NONE;
    return run->first_kept - (op - run->begin) / run->ops;
}

/* Looks at all events that are open at some time in [from_s, from_s + period_s): they must be the
 * run's own. *lag: how many periods back they lie, at most. Ops of gaps, of no time at all, are not. */
static bool is_alone(const struct expand *x, const struct depth_run *run, double from_s,
                     uint32_t *lag)
{
    double to_s = from_s + run->period_s - x->same_s;
    *lag = 0;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (!class_runs(x, c))
            continue;
        const double *start_s = x->times->start_s + rows_before(x, c);
        const double *end_s = x->times->end_s + rows_before(x, c);
        for (uint32_t op = 0; op < x->ops; op++) {
            if (start_s[op] >= to_s || end_s[op] <= from_s + x->same_s || !is_event(x, c, op))
                continue;
            uint32_t back = periods_back(run, op);
            if (back == IR_NONE)
                return false;
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
    uint32_t c = 0;
    while (!class_runs(x, c))
        c++;
    const double *last_s = x->times->end_s + rows_before(x, c) + run->ops - 1; /* of a period */
    run->period_s = last_s[kept_begin(run, b + 1)] - last_s[kept_begin(run, b)];
    double from_s = first_event_s(x, run);
    if (from_s != DBL_MAX && !is_alone(x, run, from_s, &lag))
        return false;
    if (lag > b)
        return false;
    run->period_s = (last_s[kept_begin(run, b + 1)] - last_s[kept_begin(run, b - lag)]) / (lag + 1);
    for (uint32_t p = b - lag; p <= b; p++)
        if (!repeats(x, run, p))
            return false;
    return true;
}

/* ---- the periods left out ---- */

static void move_on(double *row, uint32_t begin, uint32_t end, double by_s)
{
    for (uint32_t op = begin; by_s != 0 && op < end; op++)
        row[op] += by_s;
}

/* Period first_kept - 1 stands for those left out behind it. */
static void fill_gap(const struct depth_run *run, double *row, uint32_t begin, uint32_t end)
{
    double period_s = run->period_s;
    const double *of = row + begin - run->ops;
    for (uint32_t op = begin, i = 0, p = 1; op < end; op++) {
        row[op] = of[i] + p * period_s;
        if (++i == run->ops) {
            i = 0;
            p++;
        }
    }
}

/* The rows of a class, of starts or of ends. */
static void write_class(const struct expand *x, double *row)
{
    double shift_s = 0;
    uint32_t op = 0;
    for (uint32_t r = 0; r < x->run_count; r++) {
        const struct depth_run *run = &x->run[r];
        uint32_t left_out = run->periods - run->kept;
        if (left_out == 0)
            continue;
        uint32_t begin = run->begin + run->first_kept * run->ops, end = begin + left_out * run->ops;
        move_on(row, op, begin, shift_s);
        fill_gap(run, row, begin, end);
        shift_s += left_out * run->period_s;
        op = end;
    }
    move_on(row, op, x->ops, shift_s);
}

/* ---- the check ---- */

/* A check of a class's ops, one after the other. */
struct check {
    const struct expand *x;
    const double *start_s, *end_s; /* of its ops */
    const uint8_t *passes;         /* per guard: does it let the class's rank through? */
    double host_s;                 /* when the host comes to the next */
    uint32_t *last;                /* per stream: its last op; IR_NONE */
};

static bool is_sync(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_HOST_SYNC || ir->op.kind[op] == WORK_BARRIER;
}

/* The op that it comes behind on its stream; IR_NONE: none. */
static uint32_t before_on_stream(const struct check *c, const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_BARRIER ? IR_NONE : c->last[ir->op.stream[op]];
}

static bool host_issues(const struct check *c, const struct ir *ir, uint32_t op)
{
    return ir->op.guard[op] == IR_NONE16 || c->passes[ir->op.guard[op]];
}

static inline double issued_s(const struct check *c, const struct ir *ir, uint32_t op)
{
    const double *issue_s = c->x->plan->costs->issue_s;
    return issue_s && !is_sync(ir, op) && host_issues(c, ir, op)
               ? c->host_s + issue_s[ir->op.shape[op]]
               : c->host_s;
}

/* The host holds for an op that it has issued, to its end. */
static void hold_host(struct check *c, const struct ir *ir, uint32_t op)
{
    const double *return_s = c->x->plan->costs->return_s;
    bool returns = return_s && host_issues(c, ir, op);
    c->host_s = c->end_s[op] + (returns ? return_s[ir->op.shape[op]] : 0);
}

/* Does every op start when the last of what it needs has ended, as in scheduler.c? */
static bool starts_are_right(struct check *c)
{
    const struct ir *ir = c->x->plan->ir;
    const double *start_s = c->start_s, *end_s = c->end_s;
    for (uint32_t i = 0; i < ir->stream_count; i++)
        c->last[i] = IR_NONE;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        double host_s = issued_s(c, ir, op), need_s = host_s;
        uint32_t before = before_on_stream(c, ir, op);
        if (before != IR_NONE && end_s[before] > need_s)
            need_s = end_s[before];
        const op_id *wait = ir_waits(ir, op);
        for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
            if (end_s[wait[w].i] > need_s)
                need_s = end_s[wait[w].i];
        if (!same(c->x, start_s[op], need_s))
            return false;
        c->host_s = host_s;
        if (!is_sync(ir, op))
            c->last[ir->op.stream[op]] = op;
        if (ir_blocks_host(ir, op))
            hold_host(c, ir, op);
    }
    return true;
}

bool depth_expand(const struct plan *plan, const struct fold *fold, struct depth_run *run,
                  uint32_t run_count, const struct depth_times *times)
{
    struct expand x = {.plan = plan,
                       .fold = fold,
                       .run = run,
                       .run_count = run_count,
                       .times = times,
                       .ops = plan->ir->op.count};
    double until_s = 0;
    uint32_t left_out = 0;
    size_t rows = rows_before(&x, fold->class_count);
    for (size_t i = 0; i < rows; i++)
        until_s = times->end_s[i] > until_s ? times->end_s[i] : until_s;
    x.same_s = SAME_S + SAME_SHARE * until_s;
    for (uint32_t r = 0; r < run_count; r++) {
        if (run[r].kept < run[r].periods && !settle(&x, &run[r]))
            return false;
        left_out += (run[r].periods - run[r].kept) * run[r].ops;
    }
    x.same_s += SAME_SHARE * until_s * x.ops / (x.ops - left_out); /* sums of many periods */
    bool right = true;
    uint32_t *last = heap_alloc(plan->ir->stream_count + 1u, sizeof *last);
    for (uint32_t c = 0; right && c < fold->class_count; c++) {
        if (!class_runs(&x, c))
            continue;
        double *start_s = times->start_s + rows_before(&x, c);
        double *end_s = times->end_s + rows_before(&x, c);
        write_class(&x, start_s);
        write_class(&x, end_s);
        right = starts_are_right(&(struct check){
            .x = &x, .start_s = start_s, .end_s = end_s, .passes = passes_of(&x, c), .last = last});
    }
    free(last);
    return right;
}
