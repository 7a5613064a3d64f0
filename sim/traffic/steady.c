/* sim/traffic/steady.c: derives the times of the iterations that a short list leaves out (its copies) from those of the
 * iterations before and after the gap.
 *
 * find_period() takes the period of a gap from the last three simulated iterations around it, and checks the conditions
 * of docs/simulation.md, "Short lists". check_extrapolated_starts_of_class() then goes through the ops in the order of
 * the whole list, and checks that each starts when the last of its dependencies ends. */
#include "sim/traffic/steady.h"

#include "base/arena.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Dates are the same if they differ by at most EQUAL_DATES_TOLERANCE_S plus the share EQUAL_DATES_TOLERANCE_SHARE of
 * the last date: SimGrid joins events within 1e-12 s, and sums of dates are rounded. For dates of the whole list, which
 * are sums of more periods, find_periods() widens this tolerance in proportion to the number of ops. */
#define EQUAL_DATES_TOLERANCE_S 1e-11
#define EQUAL_DATES_TOLERANCE_SHARE 1e-11
/* An event that begins less than this share of a period before the period's end belongs to the next period. */
#define EQUAL_DATES_TOLERANCE_OF_PERIOD 1e-9

struct steady {
    const struct traffic *traffic;
    const struct repeats *repeats;
    const struct fold *fold;
    struct steady_times times;
    double *period_s_by_run; /* [runs] the time from one iteration to the next */
    /* [runs] the seconds of the copies that earlier runs of the same role leave out */
    double *left_out_s_of_earlier_runs;
    double tolerance_s;
};

static bool times_are_equal(const struct steady *x, double a, double b)
{
    return fabs(a - b) <= x->tolerance_s;
}

static inline double max_date_s(double a_s, double b_s)
{
    return a_s > b_s ? a_s : b_s;
}

static uint32_t role_of_class(const struct steady *x, uint32_t class)
{
    return x->traffic->role_of_rank[x->fold->lowest_rank_by_class[class]];
}

/* Returns the times of a class's ops, indexed by op id. */
static struct steady_times times_of_class(const struct steady *x, uint32_t class)
{
    size_t row = x->fold->first_op_row_by_class[class] -
                 x->traffic->ir->role[role_of_class(x, class)].op_begin;
    return (struct steady_times){x->times.start_s + row, x->times.end_s + row};
}

/* True if the op is an event on the class's rank: it waits for other ranks, or uses links, and the rank runs it. */
static bool is_event_op(const struct steady *x, uint32_t class, uint32_t op)
{
    return x->traffic->op_duration_rule[op] == OP_EVENT &&
           traffic_rank_runs_op(x->traffic, x->fold->lowest_rank_by_class[class], op);
}

/* Returns run number `gap` of a role; NULL: the role has fewer. */
static const struct repeat_run *find_nth_run_of_role(const struct steady *x, uint32_t role,
                                                     uint32_t gap)
{
    for (uint32_t i = 0; i < x->repeats->run_count; i++)
        if (x->repeats->run[i].role == role && gap-- == 0)
            return &x->repeats->run[i];
    return NULL;
}

static double period_of_run_s(const struct steady *x, const struct repeat_run *run)
{
    return x->period_s_by_run[run - x->repeats->run];
}

static double left_out_s_before_run(const struct steady *x, const struct repeat_run *run)
{
    return x->left_out_s_of_earlier_runs[run - x->repeats->run];
}

/* Returns the first op of the i-th simulated iteration. */
static uint32_t iteration_begin_op(const struct repeat_run *run, uint32_t i)
{
    return run->first_op + i * run->ops_per_iteration;
}

/* ---- the conditions under which iterations repeat ---- */

/* True if each op of iteration i + 1 starts and ends one period later than the same op of iteration i, on all ranks of
 * the run's role. */
static bool iteration_repeats_one_period_later(const struct steady *x, const struct repeat_run *run,
                                               uint32_t i)
{
    uint32_t begin = iteration_begin_op(run, i), next = iteration_begin_op(run, i + 1);
    double period_s = period_of_run_s(x, run);
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (role_of_class(x, c) != run->role)
            continue;
        struct steady_times t = times_of_class(x, c);
        for (uint32_t k = 0; k < run->ops_per_iteration; k++)
            if (!times_are_equal(x, t.start_s[begin + k] + period_s, t.start_s[next + k]) ||
                !times_are_equal(x, t.end_s[begin + k] + period_s, t.end_s[next + k]))
                return false;
    }
    return true;
}

/* Returns when the first event of the iteration after the gap begins, on any rank; DBL_MAX: there is none. */
static double first_event_after_gap_s(const struct steady *x, uint32_t gap)
{
    double first_s = DBL_MAX;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        const struct repeat_run *run = find_nth_run_of_role(x, role_of_class(x, c), gap);
        if (run == NULL)
            continue;
        uint32_t begin = iteration_begin_op(run, run->gap_before_iteration);
        for (uint32_t op = begin; op < begin + run->ops_per_iteration; op++)
            if (is_event_op(x, c, op))
                first_s = fmin(first_s, times_of_class(x, c).start_s[op]);
    }
    return first_s;
}

/* True if, during the period that begins at from_s, only events of the run's iterations up to the first one after the
 * gap are open. Raises *lag to the number of iterations between the earliest iteration with an open
 * event and that first iteration. */
static bool no_other_event_is_open(const struct steady *x, uint32_t gap, double from_s,
                                   double period_s, uint32_t *lag)
{
    double to_s = from_s + period_s - x->tolerance_s - EQUAL_DATES_TOLERANCE_OF_PERIOD * period_s;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        if (role_of_class(x, c) == IR_NONE)
            continue;
        const struct repeat_run *run = find_nth_run_of_role(x, role_of_class(x, c), gap);
        const struct role *role = &x->traffic->ir->role[role_of_class(x, c)];
        struct steady_times t = times_of_class(x, c);
        for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++) {
            if (t.start_s[op] >= to_s || t.end_s[op] <= from_s + x->tolerance_s ||
                !is_event_op(x, c, op))
                continue;
            if (run == NULL || op < run->first_op ||
                op >= iteration_begin_op(run, run->gap_before_iteration + 1))
                return false;
            uint32_t back =
                op >= iteration_begin_op(run, run->gap_before_iteration)
                    ? 0
                    : run->gap_before_iteration - (op - run->first_op) / run->ops_per_iteration;
            *lag = back > *lag ? back : *lag;
        }
    }
    return true;
}

/* Sets period_s_by_run[] for run number `gap` of every role. Returns false if the periods of roles differ, events of
 * other ops are open meanwhile, or iterations before the gap are too few or do not repeat. */
static bool find_period(struct steady *x, uint32_t gap)
{
    double period_s = -1;
    uint32_t lag = 1;
    for (uint32_t c = 0; c < x->fold->class_count; c++) {
        const struct repeat_run *run = find_nth_run_of_role(x, role_of_class(x, c), gap);
        if (run == NULL)
            continue;
        const double *end_s = times_of_class(x, c).end_s + run->ops_per_iteration - 1;
        double own_s = (end_s[iteration_begin_op(run, run->gap_before_iteration)] -
                        end_s[iteration_begin_op(run, run->gap_before_iteration - 2)]) /
                       2;
        if (period_s >= 0 && !times_are_equal(x, own_s, period_s))
            return false;
        period_s = period_s >= 0 ? period_s : own_s;
    }
    const struct repeats *r = x->repeats;
    for (uint32_t i = 0; i < r->run_count; i++)
        if (find_nth_run_of_role(x, r->run[i].role, gap) == &r->run[i])
            x->period_s_by_run[i] = period_s;
    double from_s = first_event_after_gap_s(x, gap);
    if (from_s != DBL_MAX && !no_other_event_is_open(x, gap, from_s, period_s, &lag))
        return false;
    for (uint32_t i = 0; i < r->run_count; i++) {
        const struct repeat_run *run = &r->run[i];
        if (find_nth_run_of_role(x, run->role, gap) != run)
            continue;
        if (lag >= run->gap_before_iteration)
            return false;
        for (uint32_t k = run->gap_before_iteration - 1 - lag; k < run->gap_before_iteration; k++)
            if (!iteration_repeats_one_period_later(x, run, k))
                return false;
    }
    return true;
}

/* ---- the check that left-out ops start as they must ---- */

/* Returns the seconds by which an op of a role comes later in the whole list than in the short list. */
static double op_shift_in_whole_list_s(const struct steady *x, uint32_t role, uint32_t op)
{
    const struct repeat_run *run = repeats_last_run_up_to_op(x->repeats, op);
    if (run == NULL || run->role != role)
        return 0;
    return left_out_s_before_run(x, run) +
           (op >= iteration_begin_op(run, run->gap_before_iteration)
                ? x->repeats->copies_per_gap * period_of_run_s(x, run)
                : 0);
}

/* The check of one class of ranks: its ops in the order of the whole list; of the copies that are left out, only the
 * first and the last are checked. */
struct extrapolated_start_check {
    const struct steady *steady;
    struct steady_times times;
    uint32_t rank, role;
    double next_issue_s; /* date at which the host issues the next op */
    double *last_s;      /* [streams] date at which the stream's last op ends */
    /* [ops of a run] the dependencies at whose end the op starts in every copy that was checked, as bits:
     * starts_when_dependencies_end() */
    uint64_t *deciding_dependency_bits_by_op;
};

/* Returns when the op of the whole list ends for which copy number `copy` of op `from` waits, as `from` waits for `op`
 * in the short list. Copy 0 is `from` itself. If from == op, returns when the copy itself ends. */
static double end_of_awaited_op_s(const struct extrapolated_start_check *c, uint32_t from,
                                  uint32_t copy, uint32_t op)
{
    const struct repeats *r = c->steady->repeats;
    struct repeat_place at = repeats_whole_list_place_of_ref(r, from, copy, op);
    if (at.run == NULL)
        return c->times.end_s[op] + op_shift_in_whole_list_s(c->steady, c->role, op);
    uint32_t gap = at.run->gap_before_iteration,
             after = at.iteration < gap ? 0 : at.iteration - gap + 1;
    after = after > r->copies_per_gap ? r->copies_per_gap : after;
    uint32_t row =
        at.run->first_op + (at.iteration - after) * at.run->ops_per_iteration + at.op_in_iteration;
    return c->times.end_s[row] + left_out_s_before_run(c->steady, at.run) +
           after * period_of_run_s(c->steady, at.run);
}

static uint64_t dependency_bit_if_deciding(const struct extrapolated_start_check *c, double start_s,
                                           double need_s, uint32_t bit)
{
    return times_are_equal(c->steady, start_s, need_s) ? UINT64_C(1) << (bit < 63 ? bit : 63) : 0;
}

/* True if the op starts when the last of its dependencies (issue, stream and waits) ends, as it would in
 * scheduler_run.c. Sets *needed to the dependencies that end just then: bit 0 for the issue, 1 for the stream and 2 + w
 * for wait w. Advances the date of the host to the end of the op's issue or, if the op blocks the host, to when the
 * host continues. Unless the op is a synchronisation, advances the date of its stream to its end. */
static bool starts_when_dependencies_end(struct extrapolated_start_check *c, uint32_t op,
                                         uint32_t copy, uint64_t *needed)
{
    const struct ir *ir = c->steady->traffic->ir;
    const struct sim_costs *costs = c->steady->traffic->costs;
    uint32_t shape = ir->op.shape[op];
    bool issues = traffic_rank_runs_op(c->steady->traffic, c->rank, op),
         sync = traffic_is_sync(ir, op);
    double end_s = end_of_awaited_op_s(c, op, copy, op),
           start_s = end_s - c->times.end_s[op] + c->times.start_s[op];
    double *last_s = &c->last_s[ir->op.stream[op]];
    double before_s = ir->op.kind[op] == WORK_BARRIER ? 0 : *last_s;
    if (costs->issue_s && !sync && issues)
        c->next_issue_s += costs->issue_s[shape];
    double need_s = max_date_s(c->next_issue_s, before_s);
    *needed = dependency_bit_if_deciding(c, start_s, c->next_issue_s, 0) |
              dependency_bit_if_deciding(c, start_s, before_s, 1);
    for (uint32_t w = 0; w < ir->op.wait_count[op]; w++) {
        double wait_s = end_of_awaited_op_s(c, op, copy, ir_waits(ir, op)[w].i);
        need_s = max_date_s(need_s, wait_s);
        *needed |= dependency_bit_if_deciding(c, start_s, wait_s, 2 + w);
    }
    if (!sync)
        *last_s = end_s;
    if (ir_blocks_host(ir, op))
        c->next_issue_s =
            end_s +
            (costs->host_return_s_by_shape && issues ? costs->host_return_s_by_shape[shape] : 0);
    return times_are_equal(c->steady, start_s, need_s);
}

/* True if, in copy number `copy` of the run's last iteration before the gap, each op starts when the last of its
 * dependencies ends, and this is the same dependency as in the copies that were checked before. If that is true of the
 * first and of the last copy, it is true of every copy between them, as dates change linearly from copy to copy. */
static bool repeat_copy_starts_as_extrapolated(struct extrapolated_start_check *c,
                                               const struct repeat_run *run, uint32_t copy)
{
    uint32_t begin = run->first_op + (run->gap_before_iteration - 1) * run->ops_per_iteration;
    for (uint32_t op = begin; op < begin + run->ops_per_iteration; op++) {
        uint64_t needed;
        if (!starts_when_dependencies_end(c, op, copy, &needed))
            return false;
        c->deciding_dependency_bits_by_op[op - begin] =
            copy == 1 ? needed : c->deciding_dependency_bits_by_op[op - begin] & needed;
        if (c->deciding_dependency_bits_by_op[op - begin] == 0)
            return false;
    }
    return true;
}

/* Advances the dates of the host and of the streams by `left_out` copies, to the start of the last copy. Each stream
 * that the ops use advances by a period for each copy. So does the host if an op blocks it; otherwise it advances by
 * host_s for each copy. */
static void advance_by_copies(struct extrapolated_start_check *c, const struct repeat_run *run,
                              uint32_t left_out, double host_s)
{
    const struct ir *ir = c->steady->traffic->ir;
    bool touched[IR_STREAMS_MAX] = {false}, holds = false;
    uint32_t begin = run->first_op + (run->gap_before_iteration - 1) * run->ops_per_iteration;
    for (uint32_t op = begin; op < begin + run->ops_per_iteration; op++) {
        touched[ir->op.stream[op]] |= !traffic_is_sync(ir, op);
        holds |= ir_blocks_host(ir, op);
    }
    c->next_issue_s += left_out * (holds ? period_of_run_s(c->steady, run) : host_s);
    for (uint32_t s = 0; s < ir->stream_count; s++)
        c->last_s[s] += touched[s] ? left_out * period_of_run_s(c->steady, run) : 0;
}

static bool repeat_copies_start_as_extrapolated(struct extrapolated_start_check *c,
                                                const struct repeat_run *run)
{
    uint32_t copies = c->steady->repeats->copies_per_gap;
    double host_s = c->next_issue_s;
    if (!repeat_copy_starts_as_extrapolated(c, run, 1))
        return false;
    if (copies > 2)
        advance_by_copies(c, run, copies - 2, c->next_issue_s - host_s);
    return copies < 2 || repeat_copy_starts_as_extrapolated(c, run, copies);
}

static bool class_starts_as_extrapolated(struct extrapolated_start_check *c)
{
    const struct ir *ir = c->steady->traffic->ir;
    const struct role *role = &ir->role[c->role];
    const struct repeat_run *run = find_nth_run_of_role(c->steady, c->role, 0);
    uint32_t next = 0;
    uint64_t needed;
    for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++) {
        if (run != NULL && op == iteration_begin_op(run, run->gap_before_iteration)) {
            if (!repeat_copies_start_as_extrapolated(c, run))
                return false;
            run = find_nth_run_of_role(c->steady, c->role, ++next);
        }
        if (!starts_when_dependencies_end(c, op, 0, &needed))
            return false;
    }
    return true;
}

static bool check_extrapolated_starts_of_class(const struct steady *x, uint32_t class,
                                               double *step_s)
{
    const struct ir *ir = x->traffic->ir;
    struct extrapolated_start_check c = {.steady = x,
                                         .times = times_of_class(x, class),
                                         .rank = x->fold->lowest_rank_by_class[class],
                                         .role = role_of_class(x, class)};
    const struct role *role = &ir->role[c.role];
    c.last_s = heap_zalloc(ir->stream_count + 1u, sizeof *c.last_s);
    c.deciding_dependency_bits_by_op =
        heap_alloc((size_t)role->op_count + 1, sizeof *c.deciding_dependency_bits_by_op);
    bool starts_as_extrapolated = class_starts_as_extrapolated(&c);
    for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++)
        *step_s = max_date_s(*step_s, end_of_awaited_op_s(&c, op, 0, op));
    free(c.last_s);
    free(c.deciding_dependency_bits_by_op);
    return starts_as_extrapolated;
}

/* ---- all gaps and all classes ---- */

/* Sets tolerance_s, period_s_by_run[] and left_out_s_of_earlier_runs[]. Returns false if times do not repeat. */
static bool find_periods(struct steady *x)
{
    const struct ir *ir = x->traffic->ir;
    const struct repeats *r = x->repeats;
    double until_s = 0;
    for (size_t i = 0; i < x->fold->first_op_row_by_class[x->fold->class_count]; i++)
        until_s = max_date_s(until_s, x->times.end_s[i]);
    x->tolerance_s = EQUAL_DATES_TOLERANCE_S + EQUAL_DATES_TOLERANCE_SHARE * until_s;
    for (uint32_t gap = 0; gap < r->run_count; gap++) {
        bool any = false;
        for (uint32_t role = 0; role < ir->role_count; role++)
            any |= find_nth_run_of_role(x, role, gap) != NULL;
        if (any && !find_period(x, gap))
            return false;
    }
    for (uint32_t i = 1; i < r->run_count; i++)
        if (r->run[i].role == r->run[i - 1].role)
            x->left_out_s_of_earlier_runs[i] = x->left_out_s_of_earlier_runs[i - 1] +
                                               r->copies_per_gap * x->period_s_by_run[i - 1];
    /* a date is a sum of many periods, and its rounding grows with their number */
    x->tolerance_s +=
        x->tolerance_s * repeats_whole_op_count(r, REPEATS_ALL_ROLES, ir->op.count) / ir->op.count;
    return true;
}

/* True if every op of the whole list starts when the last of its dependencies has ended. Sets
 * *step_s to the latest end of the ops that were checked. */
static bool all_classes_start_as_extrapolated(const struct steady *x, double *step_s)
{
    bool starts_as_extrapolated = true;
    *step_s = 0;
    for (uint32_t c = 0; starts_as_extrapolated && c < x->fold->class_count; c++)
        starts_as_extrapolated =
            role_of_class(x, c) == IR_NONE || check_extrapolated_starts_of_class(x, c, step_s);
    return starts_as_extrapolated;
}

bool steady_find_periods_and_step(const struct traffic *traffic, const struct fold *fold,
                                  struct steady_times times, double *period_s, double *step_s)
{
    const struct repeats *r = &traffic->ir->repeats;
    struct steady x = {.traffic = traffic,
                       .repeats = r,
                       .fold = fold,
                       .times = times,
                       .period_s_by_run = period_s,
                       .left_out_s_of_earlier_runs =
                           heap_zalloc(r->run_count + 1u, sizeof *x.left_out_s_of_earlier_runs)};
    bool steady = find_periods(&x) && all_classes_start_as_extrapolated(&x, step_s);
    free(x.left_out_s_of_earlier_runs);
    return steady;
}
