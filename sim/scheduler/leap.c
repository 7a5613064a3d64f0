#include "sim/scheduler/leap.h"
#include "sim/scheduler/event_queue.h"

#include <math.h>
#include <stdlib.h>

enum {
    STREAK = 2, /* periods in a row that repeat before a gap may follow */
    TAIL = 1    /* periods simulated after a gap, whose times show whether it was right */
};

/* Returns the tolerance in seconds within which two dates are one, as in depth_expand.c. */
static double same_s(const struct scheduler *s)
{
    return 1e-11 + 1e-12 * s->times->step_s;
}

static bool is_same(const struct scheduler *s, double a, double b)
{
    return fabs(a - b) <= same_s(s);
}

static struct depth_run *watched_run(const struct scheduler *s)
{
    return &s->times->run[s->leap.at];
}

/* Makes hosts wait after `periods` periods of the watched run. */
static void stop_behind(struct scheduler *s, uint32_t periods)
{
    const struct depth_run *run = watched_run(s);
    s->leap.stop = run->begin + periods * run->ops;
    s->leap.issued = periods;
}

static void watch(struct scheduler *s, uint32_t at)
{
    struct leap *leap = &s->leap;
    leap->at = at;
    leap->watched = leap->streak = 0;
    leap->stop = IR_NONE;
    if (at == s->times->run_count)
        return;
    const struct depth_run *run = watched_run(s);
    leap->open = heap_realloc(leap->open, run->periods, sizeof *leap->open);
    for (uint32_t p = 0; p < run->periods; p++)
        leap->open[p] = run->ops * s->rank_state_count;
    stop_behind(s, s->times->ahead + 1);
}

void leap_init(struct scheduler *s)
{
    s->leap.stop = IR_NONE;
    if (s->times->run_count == 0)
        return;
    for (uint32_t r = 0; r < s->rank_state_count; r++)
        if (s->rank_state[r].role != 0) { /* a rank without ops ends none */
            s->leap.at = s->times->run_count;
            return;
        }
    s->leap.gap = heap_alloc(s->times->run_count, sizeof *s->leap.gap);
    watch(s, 0);
}

bool leap_may_issue(const struct scheduler *s, struct rank_state *r)
{
    const struct leap *leap = &s->leap;
    if (r->gap < leap->gap_count && r->issued == leap->gap[r->gap].begin)
        r->issued = leap->gap[r->gap++].end;
    return r->issued != leap->stop;
}

/* ---- does it repeat? ---- */

/* True if period p + 1 is period p after one and the same time on all ranks, and, within a streak, after the same
 * time as before. */
static bool repeats(struct scheduler *s, uint32_t p)
{
    const struct depth_run *run = watched_run(s);
    const double *start_s = s->times->start_s, *end_s = s->times->end_s;
    size_t last = s->rank_state[0].row + run->begin + (size_t)(p + 1) * run->ops - 1;
    double period_s = end_s[last + run->ops] - end_s[last];
    bool same = s->leap.streak == 0 || is_same(s, period_s, s->leap.period_s);
    s->leap.period_s = period_s;
    for (uint32_t r = 0; same && r < s->rank_state_count; r++) {
        size_t row = s->rank_state[r].row + run->begin + (size_t)p * run->ops;
        for (size_t i = row; same && i < row + run->ops; i++)
            same = is_same(s, start_s[i] + period_s, start_s[i + run->ops]) &&
                   is_same(s, end_s[i] + period_s, end_s[i + run->ops]);
    }
    return same;
}

/* ---- the gap ---- */

static void give_up(struct scheduler *s)
{
    s->leap.late = true;
    if (s->why->size == 0)
        text_puts(s->why, "what periods left out was too late");
}

static void satisfy(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s)
{
    size_t row = s->rank_state[rank_index].row + op;
    if (s->times->start_s[row] < date_s)
        s->times->start_s[row] = date_s;
    if (--s->left[row] == 0)
        scheduler_push(s, rank_index, op);
}

/* Passes a date to the ops after the gap that wait for op `op` of the gap. */
static void pass_on(struct scheduler *s, const struct leap_gap *gap, uint32_t op,
                    uint32_t rank_index, double date_s)
{
    const struct program *program = &s->program[0];
    for (uint32_t i = program->after_begin[op + 1];
         i > program->after_begin[op] && program->after[i - 1] >= gap->end; i--)
        satisfy(s, rank_index, program->after[i - 1], date_s);
}

/* Passes on, across a new gap, the ends of simulated ops that stand for left-out ones and have ended; leap_ended()
 * passes on the others. */
static void tell_of_gap(struct scheduler *s, const struct leap_gap *gap)
{
    const struct program *program = &s->program[0];
    for (uint32_t op = gap->begin; op < gap->end; op++) {
        uint32_t after = program->after_begin[op + 1];
        if (after == program->after_begin[op] || program->after[after - 1] < gap->end)
            continue;
        bool clamped = op - gap->run_begin < gap->end - gap->begin;
        uint32_t image = clamped ? gap->run_begin + (op - gap->run_begin) % gap->ops
                                 : op - (gap->end - gap->begin);
        for (uint32_t r = 0; r < s->rank_state_count; r++) {
            size_t row = s->rank_state[r].row + image;
            if (s->left[row] == OP_ENDED)
                pass_on(s, gap, op, r, s->times->end_s[row]);
            else if (clamped)
                give_up(s); /* its end would not be passed on */
        }
    }
}

static void leave_out(struct scheduler *s)
{
    struct depth_run *run = watched_run(s);
    struct leap_gap *gap = &s->leap.gap[s->leap.gap_count++];
    run->first_kept = s->leap.issued;
    run->kept = s->leap.issued + TAIL;
    *gap = (struct leap_gap){.begin = s->leap.stop,
                             .end = run->begin + (run->periods - TAIL) * run->ops,
                             .run_begin = run->begin,
                             .ops = run->ops};
    for (uint32_t r = 0; r < s->rank_state_count; r++)
        s->rank_state[r].ended += gap->end - gap->begin;
    tell_of_gap(s, gap);
}

/* ---- ends ---- */

/* Continues when all ranks have ended the watched period: leaves periods out, or lets hosts issue further ones. */
static void go_on(struct scheduler *s)
{
    struct leap *leap = &s->leap;
    const struct depth_run *run = watched_run(s);
    for (; leap->watched < leap->issued && leap->open[leap->watched] == 0; leap->watched++)
        if (leap->watched > 0)
            leap->streak = repeats(s, leap->watched - 1) ? leap->streak + 1 : 0;
    uint32_t issued = leap->watched + s->times->ahead;
    if (leap->issued + TAIL >= run->periods) {
        watch(s, leap->at + 1);
    } else if (leap->streak >= STREAK) {
        leave_out(s);
        watch(s, leap->at + 1);
    } else if (issued > leap->issued) {
        stop_behind(s, issued);
    }
    for (uint32_t r = 0; r < s->rank_state_count; r++)
        if (s->rank_state[r].held == IR_NONE)
            scheduler_issue(s, r);
}

void leap_ended(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s)
{
    struct leap *leap = &s->leap;
    uint32_t g = leap->gap_count;
    while (g > 0 && leap->gap[g - 1].begin > op)
        g--;
    if (g < leap->gap_count && op >= leap->gap[g].run_begin) {
        const struct leap_gap *gap = &leap->gap[g];
        uint32_t multiplicity = op + (gap->end - gap->begin);
        if (multiplicity >= gap->begin)
            pass_on(s, gap, multiplicity, rank_index, date_s);
    }
    if (leap->at == s->times->run_count)
        return;
    const struct depth_run *run = watched_run(s);
    if (op < run->begin || op - run->begin >= run->ops * run->periods)
        return;
    uint32_t period = (op - run->begin) / run->ops;
    if (--leap->open[period] == 0 && period == leap->watched)
        go_on(s);
}

void leap_check_date(struct scheduler *s, double date_s)
{
    if (s->times->run_count > 0 && date_s < s->now_s - same_s(s))
        give_up(s);
}

/* ---- the end ---- */

static const struct depth_run *leapt_run(const struct scheduler *s, uint32_t op)
{
    for (uint32_t i = 0; i < s->times->run_count; i++) {
        const struct depth_run *run = &s->times->run[i];
        if (run->kept < run->periods && op - run->begin < run->ops * run->periods &&
            (op - run->begin) / run->ops == run->first_kept - 1)
            return run;
    }
    return NULL;
}

void leap_count_events(struct scheduler *s)
{
    for (uint32_t k = 0; s->leap.gap_count > 0 && k < s->fold->channel_class_count; k++) {
        const struct channel_state *channel = &s->channel[k];
        const struct side *side = &s->side[channel->side_begin];
        for (uint32_t n = 0; channel->side_count > 0 && n < side->count; n++) {
            const struct depth_run *run = leapt_run(s, side->ops[n]);
            uint32_t transfer = s->event[channel->event_begin + n].transfer;
            if (run && transfer != IR_NONE)
                s->times->transfers_done[transfer] += (uint64_t)(run->periods - run->kept);
        }
    }
}
