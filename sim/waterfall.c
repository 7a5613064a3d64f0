#include "sim/waterfall.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Thousands of intervals must add up to the step to the last digits that a double shows. */
typedef long double wide;

/* Rows [begin, end) of steady periods: as those of the period before, so many times. */
struct skip {
    uint32_t begin, end, ops, times;
    double period_s;
};

struct maker {
    const struct ir *ir;
    struct skip *skip; /* in the order of rows */
    uint32_t skip_count;
    uint32_t op_begin, op_count;
    const double *start_s, *end_s; /* of the rank's ops */
    uint32_t *before;              /* the op before each on its stream; of HOST_SYNC the awaited */
    uint32_t *holder;              /* the last op before each that held the host */
    struct waterfall_peak peak;
    wide *at_peak_s;                         /* per shape: its flops; 0: it has none */
    double rounding_s;                       /* dates that differ by less are the same */
    double first_backward_s, last_forward_s; /* kernels' start and end; infinite: none */
    bool in_pipeline;                        /* the rank sends or receives as a stage does */
    wide cause_s[CAUSE_COUNT];
};

static const char *const names[CAUSE_COUNT] = {
    [CAUSE_USEFUL] = "model flops at peak",
    [CAUSE_IMBALANCE] = "causal imbalance",
    [CAUSE_RECOMPUTE] = "recomputation",
    [CAUSE_INEFFICIENCY] = "kernel inefficiency",
    [CAUSE_MEMORY_BOUND] = "memory-bound work",
    [CAUSE_OPTIMIZER] = "optimizer",
    [CAUSE_ALL_TO_ALL] = "all-to-all",
    [CAUSE_RING] = "ring",
    [CAUSE_WEIGHTS] = "weight gather/reduce",
    [CAUSE_GATHER] = "other gather/reduce",
    [CAUSE_FILL] = "pipeline fill",
    [CAUSE_DRAIN] = "pipeline drain",
    [CAUSE_PIPELINE] = "pipeline imbalance",
    [CAUSE_OFFLOAD] = "offload",
    [CAUSE_HOST] = "host",
    [CAUSE_OTHER] = "other ranks",
};

const char *cause_name(enum cause cause)
{
    assert(cause < CAUSE_COUNT);
    return names[cause];
}

/* ---- rows that are looked at ---- */

/* Of steady periods all but the first two and the last. */
static void find_skips(struct maker *m, const struct sim_result *result)
{
    m->skip = heap_alloc(result->steady_count + 1u, sizeof *m->skip);
    for (uint32_t i = 0; i < result->steady_count; i++) {
        const struct sim_steady *s = &result->steady[i];
        if (s->periods > 3)
            m->skip[m->skip_count++] = (struct skip){.begin = s->op + 2 * s->ops,
                                                     .end = s->op + (s->periods - 1) * s->ops,
                                                     .ops = s->ops,
                                                     .times = s->periods - 3,
                                                     .period_s = s->period_s};
    }
}

/* Where the rows before the i-th skip begin. */
static uint32_t rows_begin(const struct maker *m, uint32_t i)
{
    return i > 0 ? m->skip[i - 1].end : 0;
}

static uint32_t rows_end(const struct maker *m, uint32_t i)
{
    return i < m->skip_count ? m->skip[i].begin : m->op_count;
}

/* The row that `of` has for a row: of one that is skipped, that of its like before, as far on; but what
 * came before all of the periods stays what it is. */
static uint32_t row_of(const struct maker *m, const uint32_t *of, uint32_t row)
{
    for (uint32_t i = 0; i < m->skip_count && m->skip[i].begin <= row; i++) {
        const struct skip *skip = &m->skip[i];
        if (row >= skip->end)
            continue;
        uint32_t like = skip->begin - skip->ops + (row - skip->begin) % skip->ops, at = of[like];
        bool goes_on = at != IR_NONE && at >= skip->begin - 2 * skip->ops;
        return goes_on ? at + (row - like) : at;
    }
    return of[row];
}

/* ---- what an op is ---- */

static bool is_sync(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_HOST_SYNC || ir->op.kind[op] == WORK_BARRIER;
}

static bool is_compute(const struct ir *ir, uint32_t op)
{
    return !is_sync(ir, op) && ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE;
}

static bool is_stage_message(const struct ir *ir, uint32_t op)
{
    return (ir->op.kind[op] == WORK_SEND || ir->op.kind[op] == WORK_RECV) &&
           ir->op.region[op] != REGION_ATTENTION;
}

/* The cause of the time in which an op that is no kernel runs. */
static enum cause cause_of(const struct ir *ir, uint32_t op)
{
    uint8_t region = ir->op.region[op];
    switch (ir->op.kind[op]) {
    case WORK_ALL_TO_ALL:
        return CAUSE_ALL_TO_ALL;
    case WORK_SHIFT:
        return CAUSE_RING;
    case WORK_SEND:
    case WORK_RECV:
        return region == REGION_ATTENTION ? CAUSE_RING : CAUSE_PIPELINE;
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
    case WORK_ALL_REDUCE:
    case WORK_REDUCE:
    case WORK_BROADCAST:
    case WORK_SCATTER:
        if (region == REGION_OFFLOAD) /* what one rank copies for all */
            return CAUSE_OFFLOAD;
        return region == REGION_WEIGHTS || region == REGION_OPTIMIZER ? CAUSE_WEIGHTS
                                                                      : CAUSE_GATHER;
    case WORK_HOST_SYNC:
    case WORK_BARRIER:
        return CAUSE_HOST;
    case WORK_ADAMW: /* on a host stream */
        return CAUSE_OPTIMIZER;
    default:
        return CAUSE_OFFLOAD; /* copies, and whatever runs on a host stream */
    }
}

/* ---- while a kernel runs ---- */

/* The share of a kernel's flops that the model needs. Of the five products of attention's backward
 * one makes the scores again, which the forward did not keep. */
static double model_share(const struct maker *m, uint32_t op)
{
    switch ((enum work_kind)m->ir->op.kind[op]) {
    case WORK_ATTENTION_BACKWARD:
        return 4.0 / 5;
    case WORK_MATMUL:
        return 1 - (m->ir->op.layer[op] != IR_NONE16 ? m->peak.layers_again : m->peak.head_again);
    default:
        return 1;
    }
}

/* The time that a kernel had for itself: of every instant its part among those that ran. */
static void add_busy(struct maker *m, uint32_t row, wide seconds)
{
    uint32_t op = m->op_begin + row;
    switch (m->ir->op.phase[op]) {
    case PHASE_RECOMPUTE:
        m->cause_s[CAUSE_RECOMPUTE] += seconds;
        return;
    case PHASE_OPTIMIZER:
        m->cause_s[CAUSE_OPTIMIZER] += seconds;
        return;
    default:
        break;
    }
    wide at_peak = m->at_peak_s[m->ir->op.shape[op]];
    if (!(at_peak > 0)) {
        m->cause_s[CAUSE_MEMORY_BOUND] += seconds;
        return;
    }
    if (at_peak > seconds)
        at_peak = seconds;
    wide useful = at_peak * model_share(m, op);
    m->cause_s[CAUSE_USEFUL] += useful;
    m->cause_s[CAUSE_RECOMPUTE] += at_peak - useful;
    m->cause_s[CAUSE_INEFFICIENCY] += seconds - at_peak;
}

/* ---- while none runs ---- */

/* Of ops that end at once, but for rounding, which depends on how ranks were folded, the last in the
 * list is the later one. */
static bool ends_later(const struct maker *m, uint32_t row, uint32_t other)
{
    double by_s = m->end_s[row] - m->end_s[other];
    return by_s > m->rounding_s || (by_s >= -m->rounding_s && row > other);
}

/* The op that ended last among those that `row` had to wait for, in streams and waits. False: none. */
static bool last_dependency(const struct maker *m, uint32_t row, uint32_t *last)
{
    const struct ir *ir = m->ir;
    uint32_t op = m->op_begin + row;
    *last = row_of(m, m->before, row);
    bool found = *last != IR_NONE;
    for (uint32_t w = 0; w < ir->op.wait_count[op]; w++) {
        uint32_t other = ir->wait[ir->op.wait_begin[op] + w].i - m->op_begin;
        if (!found || ends_later(m, other, *last))
            *last = other;
        found = true;
    }
    return found;
}

/* Which part of a pipeline's idle time it is that a message takes, or the end of other stages. */
static enum cause stage_cause(const struct maker *m, double from_s, double to_s)
{
    if (to_s <= m->first_backward_s)
        return CAUSE_FILL;
    return from_s >= m->last_forward_s ? CAUSE_DRAIN : CAUSE_PIPELINE;
}

static void add_idle(struct maker *m, enum cause cause, double from_s, double to_s, double floor_s)
{
    if (from_s < floor_s)
        from_s = floor_s;
    if (cause == CAUSE_PIPELINE)
        cause = stage_cause(m, from_s, to_s);
    if (to_s > from_s)
        m->cause_s[cause] += (wide)to_s - (wide)from_s;
}

/* Explains the time from floor_s to the start of an op: what ended last, what that waited for, and
 * so on back. Time between the end of all dependencies and the start is the host's. */
static void explain_gap(struct maker *m, uint32_t row, double floor_s)
{
    double until_s = m->start_s[row];
    while (until_s > floor_s) {
        uint32_t last, holder = row_of(m, m->holder, row);
        bool found = last_dependency(m, row, &last);
        if (holder != IR_NONE && (!found || m->end_s[holder] > m->end_s[last] + m->rounding_s)) {
            last = holder;
            found = true;
        }
        if (!found) {
            add_idle(m, CAUSE_HOST, floor_s, until_s, floor_s);
            return;
        }
        add_idle(m, CAUSE_HOST, m->end_s[last], until_s, floor_s);
        enum cause cause = is_compute(m->ir, m->op_begin + last)
                               ? CAUSE_OTHER
                               : cause_of(m->ir, m->op_begin + last);
        if (m->end_s[last] < until_s)
            until_s = m->end_s[last];
        add_idle(m, cause, m->start_s[last], until_s, floor_s);
        if (m->start_s[last] < until_s)
            until_s = m->start_s[last];
        row = last;
    }
}

/* From the end of the last kernel to the end of the step: what the rank ended last. */
static void explain_end(struct maker *m, double floor_s, double step_s)
{
    uint32_t last = IR_NONE;
    for (uint32_t i = 0; i <= m->skip_count; i++)
        for (uint32_t row = rows_begin(m, i), end = rows_end(m, i); row < end; row++)
            if (last == IR_NONE || ends_later(m, row, last))
                last = row;
    double end_s = last == IR_NONE ? 0 : m->end_s[last];
    add_idle(m, m->in_pipeline ? CAUSE_DRAIN : CAUSE_OTHER, end_s, step_s, floor_s);
    if (end_s <= floor_s)
        return;
    add_idle(m, cause_of(m->ir, m->op_begin + last), m->start_s[last], end_s, floor_s);
    if (m->start_s[last] > floor_s)
        explain_gap(m, last, floor_s);
}

/* ---- tables ---- */

static void find_before(struct maker *m)
{
    const struct ir *ir = m->ir;
    uint32_t *tail = heap_alloc(ir->stream_count + 1u, sizeof *tail), holder = IR_NONE;
    memset(tail, 0xff, (ir->stream_count + 1u) * sizeof *tail);
    for (uint32_t i = 0; i <= m->skip_count; i++) {
        for (uint32_t row = rows_begin(m, i), end = rows_end(m, i); row < end; row++) {
            uint32_t op = m->op_begin + row;
            uint8_t stream = ir->op.stream[op];
            m->before[row] = ir->op.kind[op] == WORK_BARRIER ? IR_NONE : tail[stream];
            m->holder[row] = holder;
            if (!is_sync(ir, op))
                tail[stream] = row;
            if (ir_blocks_host(ir, op))
                holder = row;
        }
        if (i == m->skip_count)
            break;
        const struct skip *skip = &m->skip[i];
        for (uint32_t k = 0; k <= ir->stream_count; k++) {
            uint32_t *last = k < ir->stream_count ? &tail[k] : &holder;
            if (*last != IR_NONE && *last >= skip->begin - skip->ops)
                *last += skip->end - skip->begin;
        }
    }
    free(tail);
}

struct kernel {
    double start_s;
    uint32_t row;
};

static int compare_kernels(const void *left, const void *right)
{
    const struct kernel *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Kernels that take time, by start; those of one stream are in that order already. Others are not
 * told apart by periods: nothing is skipped then. */
static struct kernel *list_kernels(struct maker *m, uint32_t *count)
{
    struct kernel *kernel = heap_alloc(m->op_count + 1u, sizeof *kernel);
    bool sorted = true;
    *count = 0;
    for (uint32_t i = 0; i <= m->skip_count; i++)
        for (uint32_t row = rows_begin(m, i), end = rows_end(m, i); row < end; row++) {
            if (!is_compute(m->ir, m->op_begin + row) || !(m->end_s[row] > m->start_s[row]))
                continue;
            sorted = sorted && (*count == 0 || kernel[*count - 1].start_s <= m->start_s[row]);
            kernel[(*count)++] = (struct kernel){m->start_s[row], row};
        }
    if (!sorted && m->skip_count > 0) {
        free(kernel);
        m->skip_count = 0;
        return list_kernels(m, count);
    }
    if (!sorted)
        qsort(kernel, *count, sizeof *kernel, compare_kernels);
    return kernel;
}

/* Does any rank send something to another alone? */
static bool has_messages(const struct ir *ir)
{
    for (uint32_t i = 0; i < ir->shape_count; i++)
        if (ir->shape[i].kind == WORK_SEND || ir->shape[i].kind == WORK_RECV)
            return true;
    return false;
}

/* Only of stages is it asked, whose time idle is told apart by them. */
static void find_turns(struct maker *m)
{
    m->first_backward_s = INFINITY;
    m->last_forward_s = -INFINITY;
    for (uint32_t i = 0; i <= m->skip_count && has_messages(m->ir); i++)
        for (uint32_t row = rows_begin(m, i), end = rows_end(m, i); row < end; row++) {
            uint32_t op = m->op_begin + row;
            uint8_t phase = m->ir->op.phase[op];
            m->in_pipeline = m->in_pipeline || is_stage_message(m->ir, op);
            if (!is_compute(m->ir, op))
                continue;
            if (phase == PHASE_FORWARD && m->end_s[row] > m->last_forward_s)
                m->last_forward_s = m->end_s[row];
            if (phase == PHASE_BACKWARD && m->start_s[row] < m->first_backward_s)
                m->first_backward_s = m->start_s[row];
        }
}

/* Several compute streams share the processors equally, as the simulator lets them: kernels are taken
 * in the order of their starts, and every interval between starts and ends is cut among those that
 * run in it. */
struct running {
    uint32_t row[IR_STREAMS_MAX], count;
    wide share_s[IR_STREAMS_MAX];
};

/* Runs them until `until_s`; returns when the last of them ended, or until_s. */
static double run_until(struct maker *m, struct running *r, double from_s, double until_s)
{
    while (r->count > 0 && from_s < until_s) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < r->count; i++)
            if (m->end_s[r->row[i]] < m->end_s[r->row[first]])
                first = i;
        double end_s = m->end_s[r->row[first]], to_s = end_s < until_s ? end_s : until_s;
        wide share_s = (wide)to_s - (wide)from_s;
        if (r->count > 1) /* a division takes longer than all the rest */
            share_s /= r->count;
        for (uint32_t i = 0; i < r->count; i++)
            r->share_s[i] += share_s;
        from_s = to_s;
        if (end_s > to_s)
            break;
        add_busy(m, r->row[first], r->share_s[first]);
        r->count--;
        r->row[first] = r->row[r->count];
        r->share_s[first] = r->share_s[r->count];
    }
    return from_s;
}

/* What is explained, where a period begins. */
struct progress {
    double done_s; /* [0, done_s] is explained */
    struct running running;
    wide cause_s[CAUSE_COUNT];
};

static bool runs_the_same(const struct maker *m, const struct progress *before,
                          const struct progress *now, const struct skip *skip)
{
    const struct running *a = &before->running, *b = &now->running;
    if (fabs(now->done_s - before->done_s - skip->period_s) > m->rounding_s || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->row[i] + skip->ops != b->row[i] ||
            fabs((double)(b->share_s[i] - a->share_s[i])) > m->rounding_s)
            return false;
    return true;
}

/* What one period was explained by, the skipped ones are too. False: they are not. */
static bool skip_periods(struct maker *m, const struct progress *before, struct progress *now,
                         const struct skip *skip)
{
    memcpy(now->cause_s, m->cause_s, sizeof m->cause_s);
    if (!runs_the_same(m, before, now, skip))
        return false;
    for (int c = 0; c < CAUSE_COUNT; c++)
        m->cause_s[c] += skip->times * (now->cause_s[c] - before->cause_s[c]);
    now->done_s += skip->times * skip->period_s;
    for (uint32_t i = 0; i < now->running.count; i++)
        now->running.row[i] += skip->times * skip->ops;
    return true;
}

/* From the first kernel to the end of the step. False: periods that were skipped are not alike. */
static bool explain(struct maker *m, double step_s)
{
    uint32_t kernels, skips = 0;
    struct kernel *kernel = list_kernels(m, &kernels);
    struct progress before = {.done_s = 0}, now = {.done_s = 0};
    bool is_noted = false, alike = true;
    memset(m->cause_s, 0, sizeof m->cause_s);
    find_before(m);
    find_turns(m);
    for (uint32_t k = 0; alike && k < kernels; k++) {
        uint32_t row = kernel[k].row;
        const struct skip *skip = skips < m->skip_count ? &m->skip[skips] : NULL;
        if (skip && row >= skip->end) {
            alike = is_noted && skip_periods(m, &before, &now, skip);
            is_noted = false;
            skip = ++skips < m->skip_count ? &m->skip[skips] : NULL;
        }
        if (skip && !is_noted && row >= skip->begin - skip->ops) {
            memcpy(now.cause_s, m->cause_s, sizeof m->cause_s);
            before = now;
            is_noted = true;
        }
        now.done_s = run_until(m, &now.running, now.done_s, m->start_s[row]);
        if (m->start_s[row] >
            now.done_s + m->rounding_s) { /* a shorter gap is the later kernel's */
            explain_gap(m, row, now.done_s);
            now.done_s = m->start_s[row];
        }
        assert(now.running.count < IR_STREAMS_MAX);
        now.running.row[now.running.count] = row;
        now.running.share_s[now.running.count++] = 0;
    }
    now.done_s = run_until(m, &now.running, now.done_s, INFINITY);
    explain_end(m, now.done_s, step_s);
    free(kernel);
    return alike && skips == m->skip_count;
}

void waterfall_make(struct waterfall *waterfall, const struct ir *ir,
                    const struct sim_result *result, struct waterfall_peak peak, uint32_t rank)
{
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    struct maker m = {.ir = ir,
                      .op_begin = class->op_begin,
                      .op_count = class->op_count,
                      .start_s = sim_start_s(result, rank),
                      .end_s = sim_end_s(result, rank),
                      .peak = peak,
                      .rounding_s = 1e-12 * result->step_s};
    assert(peak.flop_per_s > 0 && !isinf(peak.flop_per_s));
    double *flops = ir_flops(ir);
    m.at_peak_s = heap_alloc(ir->shape_count + 1u, sizeof *m.at_peak_s);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        m.at_peak_s[i] = (wide)flops[i] / peak.flop_per_s;
    m.before = heap_alloc(m.op_count + 1u, sizeof *m.before);
    m.holder = heap_alloc(m.op_count + 1u, sizeof *m.holder);
    find_skips(&m, result);
    if (!explain(&m, result->step_s)) {
        m.skip_count = 0;
        (void)explain(&m, result->step_s);
    }
    *waterfall = (struct waterfall){.step_s = result->step_s};
    for (int c = 0; c < CAUSE_COUNT; c++)
        waterfall->cause_s[c] = (double)m.cause_s[c];
    free(m.skip);
    free(flops);
    free(m.at_peak_s);
    free(m.before);
    free(m.holder);
}
