#include "sim/waterfall.h"

#include "base/arena.h"
#include "schedule/ir/visible.h"
#include "sim/traffic/traffic.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The seconds of thousands of intervals are summed, and the sum must equal the step in all digits that are printed. */
typedef long double wide;

struct waterfall_maker {
    const struct ir *ir;
    uint32_t op_begin, op_count;
    const double *start_s, *end_s; /* [ops] start and end of each op of the rank */
    /* [ops] the previous op on the stream of each op; for a HOST_SYNC, the op that it waits for; IR_NONE: none */
    uint32_t *stream_predecessor_by_op;
    /* [ops] the last op before each that blocked the host; IR_NONE: none */
    uint32_t *host_blocking_op_by_op;
    struct waterfall_peak peak;
    /* [shapes] seconds that the flops of the shape take at the device's peak; 0: it has no flops */
    wide *kernel_time_at_peak_rate_s;
    double rounding_tolerance_s; /* dates that differ by less are the same */
    /* the start of the first backward kernel and the end of the last forward kernel; infinite: there is none */
    double first_backward_s, last_forward_s;
    bool is_rank_in_pipeline; /* the rank sends or receives as a stage does */
    /* the number of times that the gap which is being explained occurs */
    uint32_t gap_occurrences;
    wide cause_s[CAUSE_COUNT];
};

static const struct {
    const char *name, *label;
} causes[CAUSE_COUNT] = {
    [CAUSE_USEFUL] = {"model flops at peak", "model flops at the GPU's peak"},
    [CAUSE_MASKED_PAIRS] = {"causal imbalance", "causal imbalance"},
    [CAUSE_RECOMPUTE] = {"recomputation", "recomputation"},
    [CAUSE_INEFFICIENCY] = {"kernel inefficiency", "kernels slower than peak"},
    [CAUSE_MEMORY_BOUND] = {"memory-bound work", "memory-bound kernels"},
    [CAUSE_OPTIMIZER] = {"optimizer", "optimizer"},
    [CAUSE_ALL_TO_ALL] = {"all-to-all", "waiting for all-to-all"},
    [CAUSE_RING] = {"ring", "waiting for the ring"},
    [CAUSE_WEIGHT_COLLECTIVES] = {"weight gather/reduce", "waiting for weights, gradients"},
    [CAUSE_OTHER_COLLECTIVES] = {"other gather/reduce", "waiting for other collectives"},
    [CAUSE_PIPELINE_FILL] = {"pipeline fill", "pipeline fill"},
    [CAUSE_PIPELINE_DRAIN] = {"pipeline drain", "pipeline drain"},
    [CAUSE_PIPELINE_IMBALANCE] = {"pipeline imbalance", "pipeline imbalance"},
    [CAUSE_DOCUMENT_IMBALANCE] = {"imbalance of documents", "imbalance of documents"},
    [CAUSE_OFFLOAD] = {"offload", "waiting for offloaded data"},
    [CAUSE_HOST] = {"host", "waiting for the CPU"},
    [CAUSE_OTHER] = {"other ranks", "waiting for other ranks"},
};

const char *cause_name(enum cause cause)
{
    assert(cause < CAUSE_COUNT);
    return causes[cause].name;
}

const char *cause_label(enum cause cause)
{
    assert(cause < CAUSE_COUNT);
    return causes[cause].label;
}

/* ---- the causes of ops that are no kernels ---- */

static bool is_stage_message(const struct ir *ir, uint32_t op)
{
    return (ir->op.kind[op] == WORK_SEND || ir->op.kind[op] == WORK_RECV) &&
           ir->op.region[op] != REGION_ATTENTION;
}

/* Returns the cause of the time in which an op that is no kernel runs. */
static enum cause cause_of_non_kernel_op(const struct ir *ir, uint32_t op)
{
    uint8_t region = ir->op.region[op];
    switch (ir->op.kind[op]) {
    case WORK_ALL_TO_ALL:
        return CAUSE_ALL_TO_ALL;
    case WORK_EXCHANGE:
    case WORK_SHIFT:
        return CAUSE_RING;
    case WORK_SEND:
    case WORK_RECV:
        return region == REGION_ATTENTION ? CAUSE_RING : CAUSE_PIPELINE_IMBALANCE;
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
    case WORK_ALL_REDUCE:
    case WORK_REDUCE:
    case WORK_BROADCAST:
    case WORK_SCATTER:
        if (region == REGION_OFFLOAD) /* copies that one rank makes for all */
            return CAUSE_OFFLOAD;
        return region == REGION_WEIGHT_COLLECTIVES || region == REGION_OPTIMIZER
                   ? CAUSE_WEIGHT_COLLECTIVES
                   : CAUSE_OTHER_COLLECTIVES;
    case WORK_HOST_SYNC:
    case WORK_BARRIER:
        return CAUSE_HOST;
    case WORK_ADAMW: /* AdamW runs on a host stream */
        return CAUSE_OPTIMIZER;
    default:
        return CAUSE_OFFLOAD; /* copies, and other work on a host stream */
    }
}

/* ---- the time in which kernels run ---- */

/* Returns the share of a kernel's flops that the model needs. In attention's backward one of the five products, that
 * of queries and keys, recomputes the scores that the forward did not keep. For matrix products, struct
 * waterfall_peak has the share that is not needed. */
static double model_flops_share(const struct waterfall_maker *m, uint32_t op)
{
    const struct work work = work_cost_equivalent(ir_work(m->ir, op));
    switch ((enum work_kind)work.kind) {
    case WORK_ATTENTION_BACKWARD:
        return 1 - 2 * (double)work.attention.dim / work_attention_pair_flops(&work);
    case WORK_MATMUL:
        return 1 - (m->ir->op.layer[op] != IR_NONE16 ? m->peak.layers_repeated_share
                                                     : m->peak.head_repeated_share);
    default:
        return 1;
    }
}

/* Adds a kernel's seconds to their causes. While several kernels run at once, each counts an equal part of the time. A
 * kernel of a short list counts for the copies that the list leaves out, too. */
static void add_kernel_s(struct waterfall_maker *m, uint32_t row, wide seconds)
{
    uint32_t op = m->op_begin + row, times = repeats_occurrence_count(&m->ir->repeats, op);
    wide all = times * seconds;
    switch (m->ir->op.phase[op]) {
    case PHASE_RECOMPUTE:
        m->cause_s[CAUSE_RECOMPUTE] += all;
        return;
    case PHASE_OPTIMIZER:
        m->cause_s[CAUSE_OPTIMIZER] += all;
        return;
    default:
        break;
    }
    wide at_peak = m->kernel_time_at_peak_rate_s[m->ir->op.shape[op]];
    if (!(at_peak > 0)) {
        m->cause_s[CAUSE_MEMORY_BOUND] += all;
        return;
    }
    if (at_peak > seconds)
        at_peak = seconds;
    wide useful = at_peak * model_flops_share(m, op);
    m->cause_s[CAUSE_USEFUL] += times * useful;
    m->cause_s[CAUSE_RECOMPUTE] += times * (at_peak - useful);
    m->cause_s[CAUSE_INEFFICIENCY] += times * (seconds - at_peak);
}

/* ---- the time in which no kernel runs ---- */

/* True if the op `row` ends later than the op `other`. If both end at the same time up to rounding, the later one in
 * the list counts as the later: rounding depends on how ranks were folded. */
static bool does_op_end_later(const struct waterfall_maker *m, uint32_t row, uint32_t other)
{
    double by_s = m->end_s[row] - m->end_s[other];
    return by_s > m->rounding_tolerance_s || (by_s >= -m->rounding_tolerance_s && row > other);
}

/* Sets *last to the op that ended last among the stream predecessor and the waits of `row`. Returns false if there is
 * none. */
static bool find_last_dependency(const struct waterfall_maker *m, uint32_t row, uint32_t *last)
{
    const struct ir *ir = m->ir;
    uint32_t op = m->op_begin + row;
    *last = m->stream_predecessor_by_op[row];
    bool found = *last != IR_NONE;
    for (uint32_t w = 0; w < ir->op.wait_count[op]; w++) {
        uint32_t other = ir->wait[ir->op.wait_begin[op] + w].i - m->op_begin;
        if (!found || does_op_end_later(m, other, *last))
            *last = other;
        found = true;
    }
    return found;
}

/* Returns the cause of a pipeline stage's idle time from from_s to to_s: fill, drain or the time between. */
static enum cause stage_idle_cause(const struct waterfall_maker *m, double from_s, double to_s)
{
    if (to_s <= m->first_backward_s)
        return CAUSE_PIPELINE_FILL;
    return from_s >= m->last_forward_s ? CAUSE_PIPELINE_DRAIN : CAUSE_PIPELINE_IMBALANCE;
}

static void add_idle_s(struct waterfall_maker *m, enum cause cause, double from_s, double to_s,
                       double floor_s)
{
    if (from_s < floor_s)
        from_s = floor_s;
    if (cause == CAUSE_PIPELINE_IMBALANCE)
        cause = stage_idle_cause(m, from_s, to_s);
    if (to_s > from_s)
        m->cause_s[cause] += m->gap_occurrences * ((wide)to_s - (wide)from_s);
}

/* Gives causes to the time from floor_s to the start of an op: first to the op's dependency that ended last, then to
 * the last dependency of that one, and so on backwards. The last earlier op that blocked the host is a dependency, too.
 * The time from the end of all dependencies to the start is the host's. */
static void explain_gap_before_op(struct waterfall_maker *m, uint32_t row, double floor_s)
{
    double until_s = m->start_s[row];
    m->gap_occurrences = repeats_occurrence_count(&m->ir->repeats, m->op_begin + row);
    while (until_s > floor_s) {
        uint32_t last, holder = m->host_blocking_op_by_op[row];
        bool found = find_last_dependency(m, row, &last);
        if (holder != IR_NONE &&
            (!found || m->end_s[holder] > m->end_s[last] + m->rounding_tolerance_s)) {
            last = holder;
            found = true;
        }
        if (!found) {
            add_idle_s(m, CAUSE_HOST, floor_s, until_s, floor_s);
            return;
        }
        add_idle_s(m, CAUSE_HOST, m->end_s[last], until_s, floor_s);
        enum cause cause = traffic_is_kernel(m->ir, m->op_begin + last)
                               ? CAUSE_OTHER
                               : cause_of_non_kernel_op(m->ir, m->op_begin + last);
        if (m->end_s[last] < until_s)
            until_s = m->end_s[last];
        add_idle_s(m, cause, m->start_s[last], until_s, floor_s);
        if (m->start_s[last] < until_s)
            until_s = m->start_s[last];
        row = last;
    }
}

/* Explains the time from floor_s, the end of the last kernel, to the end of the step. While the op runs that the rank
 * ended last, the cause is that op; before its start, explain_gap_before_op() finds the causes; after its end, the
 * cause is the drain of a pipeline, or other ranks. */
static void explain_step_end(struct waterfall_maker *m, double floor_s, double step_s)
{
    uint32_t last = IR_NONE;
    for (uint32_t row = 0; row < m->op_count; row++)
        if (last == IR_NONE || does_op_end_later(m, row, last))
            last = row;
    double end_s = last == IR_NONE ? 0 : m->end_s[last];
    m->gap_occurrences = 1;
    add_idle_s(m, m->is_rank_in_pipeline ? CAUSE_PIPELINE_DRAIN : CAUSE_OTHER, end_s, step_s,
               floor_s);
    if (end_s <= floor_s)
        return;
    add_idle_s(m, cause_of_non_kernel_op(m->ir, m->op_begin + last), m->start_s[last], end_s,
               floor_s);
    if (m->start_s[last] > floor_s)
        explain_gap_before_op(m, last, floor_s);
}

/* ---- the walk over the step ---- */

static void find_predecessors(struct waterfall_maker *m)
{
    const struct ir *ir = m->ir;
    uint32_t *tail = ir_new_empty_ids(ir->stream_count + 1u), holder = IR_NONE;
    for (uint32_t row = 0; row < m->op_count; row++) {
        uint32_t op = m->op_begin + row;
        uint8_t stream = ir->op.stream[op];
        m->stream_predecessor_by_op[row] = ir->op.kind[op] == WORK_BARRIER ? IR_NONE : tail[stream];
        m->host_blocking_op_by_op[row] = holder;
        if (!traffic_is_sync(ir, op))
            tail[stream] = row;
        if (ir_blocks_host(ir, op))
            holder = row;
    }
    free(tail);
}

struct kernel_row_with_start {
    double start_s;
    uint32_t row;
};

static int compare_kernels(const void *left, const void *right)
{
    const struct kernel_row_with_start *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Returns the kernels that take time, sorted by start. Also finds the first backward and the last forward kernel, which
 * divide a pipeline stage's idle time into fill, drain and the time between. */
static struct kernel_row_with_start *list_kernels(struct waterfall_maker *m, uint32_t *count)
{
    struct kernel_row_with_start *kernels_by_start =
        heap_alloc(m->op_count + 1u, sizeof *kernels_by_start);
    m->first_backward_s = INFINITY;
    m->last_forward_s = -INFINITY;
    bool sorted = true;
    *count = 0;
    for (uint32_t row = 0; row < m->op_count; row++) {
        uint32_t op = m->op_begin + row;
        m->is_rank_in_pipeline = m->is_rank_in_pipeline || is_stage_message(m->ir, op);
        if (!traffic_is_kernel(m->ir, op))
            continue;
        if (m->ir->op.phase[op] == PHASE_FORWARD)
            m->last_forward_s = fmax(m->last_forward_s, m->end_s[row]);
        if (m->ir->op.phase[op] == PHASE_BACKWARD)
            m->first_backward_s = fmin(m->first_backward_s, m->start_s[row]);
        if (!(m->end_s[row] > m->start_s[row]))
            continue;
        sorted = sorted && (*count == 0 || kernels_by_start[*count - 1].start_s <= m->start_s[row]);
        kernels_by_start[(*count)++] = (struct kernel_row_with_start){m->start_s[row], row};
    }
    if (!sorted)
        qsort(kernels_by_start, *count, sizeof *kernels_by_start, compare_kernels);
    return kernels_by_start;
}

/* The kernels that run at the same time. Several compute streams share the processors equally, as in the simulator.
 * Kernels are taken in the order of their starts, and each interval between two starts or ends is divided among the
 * kernels that run in it. */
struct running_kernels {
    uint32_t row[IR_STREAMS_MAX], count;
    wide share_so_far_s[IR_STREAMS_MAX];
};

/* Divides the time from from_s on among the running kernels, until until_s or until all of them
 * have ended. Returns the date that it has reached: from_s if no kernel runs. */
static double run_kernels_until(struct waterfall_maker *m, struct running_kernels *r, double from_s,
                                double until_s)
{
    while (r->count > 0 && from_s < until_s) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < r->count; i++)
            if (m->end_s[r->row[i]] < m->end_s[r->row[first]])
                first = i;
        double end_s = m->end_s[r->row[first]], to_s = end_s < until_s ? end_s : until_s;
        wide share_s = (wide)to_s - (wide)from_s;
        /* the division takes longer than the rest of the loop, and changes nothing for one kernel */
        if (r->count > 1)
            share_s /= r->count;
        for (uint32_t i = 0; i < r->count; i++)
            r->share_so_far_s[i] += share_s;
        from_s = to_s;
        if (end_s > to_s)
            break;
        add_kernel_s(m, r->row[first], r->share_so_far_s[first]);
        r->count--;
        r->row[first] = r->row[r->count];
        r->share_so_far_s[first] = r->share_so_far_s[r->count];
    }
    return from_s;
}

/* Explains the whole step, from kernel to kernel and to its end. */
static void attribute_step(struct waterfall_maker *m, double step_s)
{
    uint32_t kernels;
    struct kernel_row_with_start *kernel = list_kernels(m, &kernels);
    struct running_kernels running = {.count = 0};
    double done_s = 0; /* [0, done_s] is explained */
    find_predecessors(m);
    for (uint32_t k = 0; k < kernels; k++) {
        uint32_t row = kernel[k].row;
        done_s = run_kernels_until(m, &running, done_s, m->start_s[row]);
        if (m->start_s[row] >
            done_s + m->rounding_tolerance_s) { /* a shorter gap is the later kernel's */
            explain_gap_before_op(m, row, done_s);
            done_s = m->start_s[row];
        }
        assert(running.count < IR_STREAMS_MAX);
        running.row[running.count] = row;
        running.share_so_far_s[running.count++] = 0;
    }
    done_s = run_kernels_until(m, &running, done_s, INFINITY);
    explain_step_end(m, done_s, step_s);
    free(kernel);
}

bool waterfall_adds_up(const struct waterfall *waterfall)
{
    double sum = 0;
    for (int c = 0; c < CAUSE_COUNT; c++)
        sum += waterfall->cause_s[c];
    return fabs(sum - waterfall->step_s) <= 1e-9 * waterfall->step_s;
}

void waterfall_attribute_documents(struct waterfall *w, const struct waterfall *uniform)
{
    /* longer_s: by how much longer the rank waits in total. grown_s: the same, summed only over causes that grew. */
    double longer_s = 0, grown_s = 0;
    for (int c = CAUSE_ALL_TO_ALL; c < CAUSE_COUNT; c++) {
        double by_s = w->cause_s[c] - uniform->cause_s[c];
        longer_s += by_s;
        grown_s += fmax(by_s, 0);
    }
    if (!(longer_s > 0))
        return;
    for (int c = CAUSE_ALL_TO_ALL; c < CAUSE_COUNT; c++)
        w->cause_s[c] -= fmax(w->cause_s[c] - uniform->cause_s[c], 0) / grown_s * longer_s;
    w->cause_s[CAUSE_DOCUMENT_IMBALANCE] = longer_s;
}

void waterfall_make(struct waterfall *waterfall, const struct ir *ir,
                    const struct sim_result *result, struct waterfall_peak peak, uint32_t rank)
{
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    struct waterfall_maker m = {.ir = ir,
                                .op_begin = class->op_begin,
                                .op_count = class->op_count,
                                .start_s = sim_op_starts_of_rank_s(result, rank),
                                .end_s = sim_op_ends_of_rank_s(result, rank),
                                .peak = peak,
                                .rounding_tolerance_s = 1e-12 * result->step_s};
    assert(peak.flop_per_s > 0 && !isinf(peak.flop_per_s));
    double *flops = ir_flops_by_shape_on_rank(ir, rank);
    m.kernel_time_at_peak_rate_s =
        heap_alloc(ir->shape_count + 1u, sizeof *m.kernel_time_at_peak_rate_s);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        m.kernel_time_at_peak_rate_s[i] =
            (wide)flops[i] / (peak.flop_per_s * work_peak_rate_over_bf16_peak(&ir->shape[i]));
    m.stream_predecessor_by_op = heap_alloc(m.op_count + 1u, sizeof *m.stream_predecessor_by_op);
    m.host_blocking_op_by_op = heap_alloc(m.op_count + 1u, sizeof *m.host_blocking_op_by_op);
    attribute_step(&m, result->simulated_end_s);
    *waterfall = (struct waterfall){.step_s = result->step_s};
    for (int c = 0; c < CAUSE_COUNT; c++)
        waterfall->cause_s[c] = (double)m.cause_s[c];
    free(flops);
    free(m.kernel_time_at_peak_rate_s);
    free(m.stream_predecessor_by_op);
    free(m.host_blocking_op_by_op);
}
