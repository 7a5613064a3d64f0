/* Times of the long list from those of the short one: three conditions under which they follow
 * (docs/simulation.md, "Depth folding"), the writing down, and the check of every start. */
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

enum { STRIP = 8 }; /* of dates: vectors */

/* Ops in a row, so many, that come by_s later. */
static void write_ops(const double *restrict in, double *restrict out, size_t ops, double by_s)
{
    size_t i = 0;
    for (; i + STRIP <= ops; i += STRIP)
        for (size_t j = 0; j < STRIP; j++)
            out[i + j] = in[i + j] + by_s;
    for (; i < ops; i++)
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

bool depth_steady(const struct depth_cut *cut, const struct depth_run *run,
                  struct sim_steady *steady)
{
    const struct ir *ir = cut->whole;
    uint32_t op = run->begin + (run->first_kept - 1) * run->ops, i = 0;
    uint32_t periods = run->periods - run->kept + 2;
    while (i < ir->repeat_count &&
           ir->repeat[i].op + ir->repeat[i].ops * ir->repeat[i].periods <= op)
        i++;
    if (i == ir->repeat_count || run->ops % ir->repeat[i].ops != 0)
        return false;
    const struct ir_repeat *repeat = &ir->repeat[i];
    uint32_t end = repeat->op + repeat->ops * repeat->periods;
    for (; periods > 0 && op < repeat->op; periods--)
        op += run->ops;
    while (periods > 0 && op + run->ops * periods > end)
        periods--;
    *steady = (struct sim_steady){op, run->ops, periods, run->period_s};
    return periods > 1;
}

/* Of a class's ops, one after the other. */
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

/* The first of some ops that does not start when the last of what it needs has ended (as in
 * scheduler.c); end: none. */
static uint32_t check_ops(struct check *c, uint32_t begin, uint32_t end)
{
    const struct ir *ir = c->x->cut->whole;
    const double *start_s = c->start_s, *end_s = c->end_s;
    for (uint32_t op = begin; op < end; op++) {
        double host_s = issued_s(c, ir, op), need_s = host_s;
        uint32_t before = before_on_stream(c, ir, op);
        if (before != IR_NONE && end_s[before] > need_s)
            need_s = end_s[before];
        const op_id *wait = ir_waits(ir, op);
        for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
            if (end_s[wait[w].i] > need_s)
                need_s = end_s[wait[w].i];
        if (!same(c->x, start_s[op], need_s))
            return op;
        c->host_s = host_s;
        if (!is_sync(ir, op))
            c->last[ir->op.stream[op]] = op;
        if (ir_blocks_host(ir, op))
            hold_host(c, ir, op);
    }
    return end;
}

/* What an op of the second of steady periods waits for that does not move with it from one to the next:
 * its k-th wait. */
struct apart {
    uint32_t op, k;
};

/* Checks the second period. *moves: is each start told by the host, or by the end of something that comes a
 * period later in the next one? Then *apart has what does not. */
static uint32_t check_second(struct check *c, const struct sim_steady *s, bool *moves,
                             struct apart *apart, uint32_t *count)
{
    const struct ir *ir = c->x->cut->whole;
    uint32_t begin = s->op + s->ops, end = begin + s->ops;
    *moves = true;
    for (uint32_t op = begin; op < end; op++) {
        double moving_s = issued_s(c, ir, op);
        uint32_t before = before_on_stream(c, ir, op), wait = ir->op.wait_begin[op];
        if (before != IR_NONE && before >= s->op && c->end_s[before] > moving_s)
            moving_s = c->end_s[before];
        for (uint32_t w = wait; w < wait + ir->op.wait_count[op]; w++) {
            uint32_t other = ir->wait[w].i;
            uint32_t next = ir->wait[ir->op.wait_begin[op + s->ops] + (w - wait)].i;
            if (other < s->op || other >= op || next - other != s->ops)
                apart[(*count)++] = (struct apart){op, w - wait};
            else if (c->end_s[other] > moving_s)
                moving_s = c->end_s[other];
        }
        *moves = *moves && same(c->x, c->start_s[op], moving_s);
        if (check_ops(c, op, op + 1) == op)
            return op;
    }
    return end;
}

/* The first op of the third period to the last but one that starts before what it waits for apart from its
 * like has ended; IR_NONE: none. */
static uint32_t check_apart(const struct check *c, const struct sim_steady *s,
                            const struct apart *apart, uint32_t count)
{
    const struct ir *ir = c->x->cut->whole;
    for (uint32_t p = 2; p + 1 < s->periods; p++)
        for (uint32_t i = 0; i < count; i++) {
            uint32_t op = apart[i].op + (p - 1) * s->ops;
            uint32_t other = ir->wait[ir->op.wait_begin[op] + apart[i].k].i;
            if (c->end_s[other] > c->start_s[op] + c->x->same_s)
                return op;
        }
    return IR_NONE;
}

/* Goes on behind `periods` of the steady ones, in each of which the host comes so much later. */
static void leave_out(struct check *c, const struct sim_steady *s, uint32_t periods, double host_s)
{
    c->host_s += periods * host_s;
    for (uint32_t i = 0; i < c->x->cut->whole->stream_count; i++)
        if (c->last[i] != IR_NONE && c->last[i] >= s->op)
            c->last[i] += periods * s->ops;
}

/* As check_ops(), of steady periods: the first two and the last tell of those between. The host comes to
 * each the same time behind the one before. So it is late nowhere when it is not in the first and in the
 * last, and where it tells a start of the second, it tells those of all. What moves along with the periods
 * does so too; other waits are looked up. */
static uint32_t check_steady(struct check *c, const struct sim_steady *s)
{
    const uint16_t *waits = c->x->cut->whole->op.wait_count;
    uint32_t second = s->op + s->ops, third = second + s->ops, end = s->op + s->periods * s->ops;
    uint32_t wrong = check_ops(c, s->op, second), room = 1, count = 0;
    if (wrong < second)
        return wrong;
    for (uint32_t op = second; op < third; op++)
        room += waits[op];
    struct apart *apart = heap_alloc(room, sizeof *apart);
    double from_s = c->host_s;
    bool moves;
    wrong = check_second(c, s, &moves, apart, &count);
    if (wrong == third && moves) {
        uint32_t late = check_apart(c, s, apart, count);
        leave_out(c, s, s->periods - 3, c->host_s - from_s);
        third = end - s->ops;
        wrong = late == IR_NONE ? third : late;
    }
    free(apart);
    return wrong < third ? wrong : check_ops(c, third, end);
}

/* The first op of a class that does not start when it must; x->ops: none. */
static uint32_t find_wrong_start(struct check *c)
{
    const struct depth_cut *cut = c->x->cut;
    uint32_t at = 0;
    c->host_s = 0;
    for (uint32_t i = 0; i < cut->whole->stream_count; i++)
        c->last[i] = IR_NONE;
    for (uint32_t r = 0; r < cut->run_count; r++) {
        struct sim_steady steady;
        if (!depth_steady(cut, &cut->run[r], &steady) || steady.periods < 4)
            continue;
        uint32_t wrong = check_ops(c, at, steady.op);
        if (wrong < steady.op)
            return wrong;
        at = steady.op + steady.ops * steady.periods;
        wrong = check_steady(c, &steady);
        if (wrong < at)
            return wrong;
    }
    return check_ops(c, at, c->x->ops);
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
        wrong = find_wrong_start(&(struct check){.x = &x,
                                                 .start_s = of_whole->start_s + to,
                                                 .end_s = of_whole->end_s + to,
                                                 .passes = passes_of(&x, c),
                                                 .last = last});
    }
    free(last);
    for (uint32_t op = 0; of_whole->op_class && op < x.ops; op++)
        of_whole->op_class[op] = of_short->op_class[depth_image(cut, op)];
    for (uint32_t r = 0; wrong < x.ops && r < cut->run_count; r++)
        if (cut->run[r].begin <= wrong && is_first_of_its_kind(cut, r))
            be_patient(patience, &cut->run[r]);
    return wrong == x.ops;
}
