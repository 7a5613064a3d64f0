#include "predict/observe.h"

#include "base/ascending.h"
#include "schedule/choices/chains.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* UPDATES: how often fit_kind_factors() improves its factors. STRAYS_SHOWN: rows without an op that are named. */
enum { UPDATES = 200, STRAYS_SHOWN = 4 };
/* longer gaps between kernels do not count: the queue was empty meanwhile */
static const double GAP_MOST_S = 50e-6;

void observed_release(struct observation_set *o)
{
    free(o->row);
    free(o->step_span_s);
    free(o->s_to_start_op_of_each_step);
    text_release(&o->longest_unmatched_rows);
    *o = (struct observation_set){0};
}

static void add_observation(struct observation_set *o, struct observation row)
{
    if (o->observation_count == o->capacity) {
        o->capacity = heap_next_capacity(o->capacity, o->observation_count + 1);
        o->row = heap_realloc(o->row, o->capacity, sizeof *o->row);
    }
    o->row[o->observation_count++] = row;
}

static void add_step_span(struct observation_set *o, double span_s, double start_s)
{
    if (o->step_count == o->step_capacity) {
        o->step_capacity = heap_next_capacity(o->step_capacity, o->step_count + 1);
        o->step_span_s = heap_realloc(o->step_span_s, o->step_capacity, sizeof *o->step_span_s);
        o->s_to_start_op_of_each_step = heap_realloc(
            o->s_to_start_op_of_each_step, o->step_capacity, sizeof *o->s_to_start_op_of_each_step);
    }
    o->step_span_s[o->step_count] = span_s;
    o->s_to_start_op_of_each_step[o->step_count++] = start_s;
}

/* Returns a quantile of value[0..count), count > 0: the value below which the share `share` lies. It sorts the
 * array. */
static double quantile(double *value, size_t count, double share)
{
    qsort(value, count, sizeof *value, ascending_double);
    double at = share * (double)(count - 1);
    size_t low = (size_t)at;
    double next = low + 1 < count ? value[low + 1] : value[low];
    return value[low] + (at - (double)low) * (next - value[low]);
}

/* ---- recordings of other programs ---- */

static bool is_op_on_compute_stream(const struct prediction *p, uint32_t op)
{
    return p->ir.stream[p->ir.op.stream[op]].stream_class == STREAM_COMPUTE;
}

static uint32_t count_kernels(const struct prediction *p, const struct trace *predicted,
                              uint32_t rank)
{
    uint32_t count = 0;
    for (size_t i = 0; i < predicted->ops.count; i++)
        count += predicted->ops.rank[i] == rank && is_op_on_compute_stream(p, predicted->ops.op[i]);
    return count;
}

static double predicted_row_s(const struct trace *predicted, uint32_t row)
{
    return fmax(predicted->ops.end_s[row] - predicted->ops.start_s[row], 1e-12);
}

/* Sets, for each kind of work, the least factor on its predicted times with which no op moves its bytes faster than the
 * GPU's memory can by its data sheet. Only ops in gaps between blocks count; the factor of a kind without any is 0. The
 * factor ignores that an L2 cache may hold the operands of a small op. The function is called only for GPUs, since on
 * processors caches hold the operands of most ops. */
static void find_min_factor_by_work_kind(const struct row_matches *m, const struct trace *predicted,
                                         const struct prediction *p, double least[WORK_KIND_COUNT])
{
    const struct device_cost *cost = &p->setup->cost;
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        least[kind] = 0;
    for (size_t i = 0; i < m->match_count; i++) {
        const struct predicted_rows_match *match = &m->matches[i];
        for (uint32_t k = 0; match->is_of_rows_between_blocks && k < match->row_count; k++) {
            uint32_t row = m->rows[match->row_begin + k], op = predicted->ops.op[row];
            double bytes = cost_memory_traffic_bytes(
                cost, (enum attention_impl)p->choices.attention_impl, ir_work(&p->ir, op));
            double *of_kind = &least[p->ir.op.kind[op]];
            *of_kind = fmax(*of_kind, bytes / cost->device_memory_bytes_per_s /
                                          predicted_row_s(predicted, row));
        }
    }
}

/* Finds a factor on the predicted time of each kind of work, so that the predicted times of all gaps between blocks
 * (traces/row_matches.h) come as near as possible to the measured ones. Kinds whose predicted times have the same ratio
 * in every gap keep that ratio. No factor is below the kind's least factor, because a kind would otherwise get no time
 * at all if the program ran only short kernels in the gaps where the schedule has that kind. */
static void fit_kind_factors(const struct row_matches *m, const struct trace *predicted,
                             const struct prediction *p, bool on_host,
                             double factor[WORK_KIND_COUNT])
{
    double least[WORK_KIND_COUNT] = {0};
    if (!on_host)
        find_min_factor_by_work_kind(m, predicted, p, least);
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        factor[kind] = fmax(1, least[kind]);
    for (int update = 0; update < UPDATES; update++) {
        double got[WORK_KIND_COUNT] = {0}, wanted[WORK_KIND_COUNT] = {0};
        for (size_t i = 0; i < m->match_count; i++) {
            const struct predicted_rows_match *match = &m->matches[i];
            double sum = 0;
            if (!match->is_of_rows_between_blocks || match->measured_rows == 0)
                continue;
            for (uint32_t k = 0; k < match->row_count; k++) {
                uint32_t row = m->rows[match->row_begin + k];
                sum +=
                    factor[p->ir.op.kind[predicted->ops.op[row]]] * predicted_row_s(predicted, row);
            }
            for (uint32_t k = 0; k < match->row_count; k++) {
                uint32_t row = m->rows[match->row_begin + k];
                uint8_t kind = p->ir.op.kind[predicted->ops.op[row]];
                got[kind] += predicted_row_s(predicted, row);
                wanted[kind] +=
                    factor[kind] * predicted_row_s(predicted, row) * match->measured_s / sum;
            }
        }
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            if (got[kind] > 0)
                factor[kind] = fmax(wanted[kind] / got[kind], least[kind]);
    }
}

/* Divides the measured seconds of a block, or of a gap between blocks, among its ops, in proportion to their predicted
 * seconds; in a gap these are first multiplied by the factors of their kinds. Adds an observation for each op. */
static void split_block_time(struct observation_set *o, const struct row_matches *m,
                             const struct predicted_rows_match *match,
                             const struct trace *predicted, const struct prediction *p,
                             uint32_t rank, uint32_t first_step,
                             const double factor[WORK_KIND_COUNT])
{
    double sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < match->row_count; k++) {
            uint32_t row = m->rows[match->row_begin + k], op = predicted->ops.op[row];
            double share_s = predicted_row_s(predicted, row) *
                             (match->is_of_rows_between_blocks ? factor[p->ir.op.kind[op]] : 1);
            if (pass == 0) {
                sum += share_s;
                o->matched_ops_s += predicted_row_s(predicted, row);
                continue;
            }
            add_observation(o, (struct observation){p->ir.op.shape[op], op, rank,
                                                    first_step + match->step,
                                                    match->measured_s * share_s / sum});
        }
}

/* Returns the median of those gaps between consecutive rows of a stream that are below GAP_MOST_S; 0: there is none. */
static double median_gap_s(const struct trace *trace)
{
    const struct trace_ops *ops = &trace->ops;
    double *gap = heap_alloc(ops->count + 1, sizeof *gap);
    size_t count = 0;
    for (size_t i = 1; i < ops->count; i++) {
        double gap_s = ops->start_s[i] - ops->end_s[i - 1];
        if (ops->stream[i] == ops->stream[i - 1] && ops->rank[i] == ops->rank[i - 1] &&
            gap_s >= 0 && gap_s < GAP_MOST_S)
            gap[count++] = gap_s;
    }
    double middle = count > 0 ? quantile(gap, count, 0.5) : 0;
    free(gap);
    return middle;
}

static void note_unmatched_rows(struct observation_set *o, const struct row_matches *m)
{
    for (size_t i = 0; i < m->stray_count; i++)
        o->unmatched_rows_s += m->strays[i].seconds;
    for (size_t i = 0; i < m->stray_count && i < STRAYS_SHOWN && m->step_count > 0; i++)
        text_printf(&o->longest_unmatched_rows, "%srank %u: %s %.3f ms a step",
                    o->longest_unmatched_rows.size > 0 ? ", " : "", m->rank, m->strays[i].name,
                    1e3 * m->strays[i].seconds / (double)m->step_count);
}

/* Returns the median of those gaps between queued kernels that are below GAP_MOST_S; 0: there is none. */
static double median_queued_gap_s(const struct kineto_host_calls *issue)
{
    double *gap_s = heap_alloc(issue->queued_gap_count + 1, sizeof *gap_s);
    size_t count = 0;
    for (size_t i = 0; i < issue->queued_gap_count; i++)
        if (issue->gaps_of_queued_gpu_work_s[i] < GAP_MOST_S)
            gap_s[count++] = issue->gaps_of_queued_gpu_work_s[i];
    double middle = count > 0 ? quantile(gap_s, count, 0.5) : 0;
    free(gap_s);
    return middle;
}

static enum status add_recording_of_other_program(struct observation_set *o,
                                                  const struct prediction *p,
                                                  const struct trace *trace,
                                                  const struct kineto_host_calls *issue,
                                                  const char *name, struct diag *diag)
{
    struct trace predicted = {0};
    struct row_matches m = {0};
    double factor[WORK_KIND_COUNT];
    uint32_t rank = trace->ops.count > 0 ? trace->ops.rank[0] : 0, ranks = p->sim.rank_count;
    if (rank >= ranks)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "is a recording of rank %u, but the schedule has only %u rank%s; give "
                          "the options of the run that was recorded",
                          rank, ranks, ranks == 1 ? "" : "s");
    sim_make_trace(&p->ir, &p->sim, rank, rank + 1, false, &predicted);
    enum status status = row_matches_find(&m, &predicted, trace, name, diag);
    if (status == STATUS_OK) {
        bool on_host = strncmp(trace->labels[trace->ops.stream[0]], "cpu.", 4) == 0;
        double starts = count_kernels(p, &predicted, m.predicted_rank);
        double gap_s = issue->step_count > 0 ? median_queued_gap_s(issue) : median_gap_s(trace);
        uint32_t first = (uint32_t)o->step_count;
        fit_kind_factors(&m, &predicted, p, on_host, factor);
        for (size_t i = 0; i < m.match_count; i++)
            if (m.matches[i].measured_rows > 0)
                split_block_time(o, &m, &m.matches[i], &predicted, p, rank, first, factor);
        for (size_t i = 0; i < m.step_count; i++)
            add_step_span(o, m.recorded_steps[i].span_s,
                          on_host ? m.recorded_steps[i].idle_s / fmax(starts, 1) : gap_s);
        for (size_t i = 0; i < trace->ops.count; i++)
            o->all_rows_s += trace->ops.end_s[i] - trace->ops.start_s[i];
        for (uint32_t i = 0; i < predicted.ops.count; i++)
            o->predicted_ops_s += (double)m.step_count * predicted_row_s(&predicted, i);
        note_unmatched_rows(o, &m);
        o->is_recorded_on_cpu |= on_host;
    }
    row_matches_release(&m);
    trace_release(&predicted);
    return status;
}

/* ---- traces of longhaul ---- */

static enum status check_trace_row(const struct prediction *p, const struct trace *trace, size_t i,
                                   const char *name, struct diag *diag)
{
    uint32_t op = trace->ops.op[i], rank = trace->ops.rank[i];
    const char *kind = trace->labels[trace->ops.kind[i]];
    struct loc at = {.name = name};
    if (rank >= p->sim.rank_count)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "has an op of rank %u, but the schedule has only %u ranks", rank,
                          p->sim.rank_count);
    if (op >= p->ir.op.count)
        return diag_error(diag, at, STATUS_BAD_INPUT, "has op %u, but the schedule has only %u ops",
                          op, p->ir.op.count);
    const char *wanted = work_kind_info(p->ir.op.kind[op])->name;
    if (strcmp(kind, wanted) != 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "op %u is %s, but in the schedule it is %s; give the options of the "
                          "run that was recorded",
                          op, kind, wanted);
    return STATUS_OK;
}

static enum status add_own_trace(struct observation_set *o, const struct prediction *p,
                                 const struct trace *trace, const char *name, struct diag *diag)
{
    const struct trace_ops *ops = &trace->ops;
    double first_s = INFINITY, last_s = -INFINITY;
    if (ops->count == 0)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT, "has no rows");
    for (size_t i = 0; i < ops->count; i++) {
        enum status status = check_trace_row(p, trace, i, name, diag);
        if (status != STATUS_OK)
            return status;
        double seconds = ops->end_s[i] - ops->start_s[i];
        first_s = fmin(first_s, ops->start_s[i]);
        last_s = fmax(last_s, ops->end_s[i]);
        o->all_rows_s += seconds;
        add_observation(o, (struct observation){p->ir.op.shape[ops->op[i]], ops->op[i],
                                                ops->rank[i], (uint32_t)o->step_count, seconds});
    }
    const char *step = trace_get_key(trace, "step_s");
    double step_s = last_s - first_s;
    if (step != NULL && (!parse_double(step, strlen(step), &step_s) || !(step_s > 0)))
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "step_s is '%s': expected the seconds of a step", step);
    add_step_span(o, step_s, median_gap_s(trace));
    return STATUS_OK;
}

enum status observed_add_recording(struct observation_set *o, const struct prediction *p,
                                   const struct trace *trace, bool foreign,
                                   const struct kineto_host_calls *issue, const char *name,
                                   struct diag *diag)
{
    assert(p->is_simulated);
    o->recording_count++;
    return foreign ? add_recording_of_other_program(o, p, trace, issue, name, diag)
                   : add_own_trace(o, p, trace, name, diag);
}

/* ---- points, and the spread of steps ---- */

/* Orders observations by shape, step, op and seconds, so that those of a message's ranks follow each other, the fastest
 * first. */
static int compare_observations(const void *left, const void *right)
{
    const struct observation *a = left, *b = right;
    if (a->shape_index != b->shape_index)
        return a->shape_index < b->shape_index ? -1 : 1;
    if (a->step_number != b->step_number)
        return a->step_number < b->step_number ? -1 : 1;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    return a->seconds < b->seconds ? -1 : a->seconds > b->seconds;
}

/* Returns the number of nodes over which the first instance of a group extends. */
static uint16_t node_count_of_group(const struct prediction *p, const struct group *group)
{
    const struct mesh *mesh = &p->ir.mesh;
    uint32_t size = group_rank_count(mesh, group), nodes = 0;
    int64_t per_node = p->setup->cluster.gpus_per_node, last = -1;
    for (uint32_t i = 0; i < size; i++) {
        int64_t node = group_global_rank_of_member(mesh, group, 0, i) / per_node;
        nodes += node != last;
        last = node;
    }
    return (uint16_t)(nodes < UINT16_MAX ? nodes : UINT16_MAX);
}

static bool is_message(const struct work *work)
{
    return work_comm_group(work) >= 0 &&
           work_kind_info((enum work_kind)work->kind)->stream == STREAM_COMM;
}

/* Fills *point for the shape of an op, except for its times. Returns false if the shape gets no point:
 * synchronisations, sends, receives, and kinds of work that the profile runs as chains of kernels. */
static bool fill_point_of_shape(struct point *point, const struct prediction *p, uint32_t op,
                                const struct cost_elementwise_chain *chain)
{
    const struct work *work = ir_work(&p->ir, op);
    enum stream_class stream = p->ir.stream[p->ir.op.stream[op]].stream_class;
    *point = (struct point){.role = stream == STREAM_HOST      ? POINT_HOST
                                    : stream == STREAM_COMPUTE ? POINT_STEP
                                                               : POINT_WORK,
                            .attention_impl = POINT_NO_IMPL,
                            .nodes = 1,
                            .work = *work};
    switch ((enum work_kind)work->kind) {
    case WORK_HOST_SYNC:
    case WORK_BARRIER:
    case WORK_SEND:
    case WORK_RECV:
        return false;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
    case WORK_MERGE:
        point->attention_impl =
            (uint8_t)work_attention_impl(work, (enum attention_impl)p->choices.attention_impl);
        break;
    default:
        break;
    }
    if (is_message(work)) {
        const struct group *group = &p->ir.group[work_comm_group(work)];
        point->nodes = node_count_of_group(p, group);
        point->loopback = p->setup->cluster.fabric.kind == FABRIC_LOOPBACK;
        point->work.p[0] = group_rank_count(&p->ir.mesh, group);
    }
    return chain[work->kind].bytes_per_element == 0;
}

/* The observed seconds of one shape of work. */
struct observed_shape_times {
    /* [instances] the seconds of each instance; for a message the least of its ranks' times, that of the rank that
     * arrives last */
    double *seconds;
    double *shape_mean_s_of_each_step; /* the mean over the instances of each step */
    size_t count, step_count;
};

/* Sets the median and the percentiles of a point's seconds. each_s: the seconds that starting an op takes, which are
 * added to each of them; 0: nothing is added. Sorts the arrays of *times. */
static void set_point_times(struct point *point, struct observed_shape_times *times, double each_s)
{
    point->median_s = quantile(times->shape_mean_s_of_each_step, times->step_count, 0.5) + each_s;
    point->p10_s = fmin(quantile(times->seconds, times->count, 0.1) + each_s, point->median_s);
    point->p90_s = fmax(quantile(times->seconds, times->count, 0.9) + each_s, point->median_s);
    point->repeats = (int64_t)times->count;
}

/* Collects the times of one shape from its observations, which are in the order of compare_observations(). Of a message
 * only its fastest rank counts. shape_mean_s_of_each_step: the sum over a step's instances, divided by their number. */
static void collect_times_of_shape(struct observed_shape_times *times,
                                   const struct observation *row, size_t count, bool message)
{
    size_t first = 0; /* index in times->seconds of the step's first instance */
    times->count = times->step_count = 0;
    for (size_t i = 0; i < count; i++) {
        bool next = i == 0 || row[i].step_number != row[i - 1].step_number;
        if (next) {
            first = times->count;
            times->shape_mean_s_of_each_step[times->step_count++] = 0;
        }
        if (!next && message && row[i].op == row[i - 1].op)
            continue; /* another rank of this message, which arrived earlier */
        times->seconds[times->count++] = row[i].seconds;
        double instances = (double)(times->count - first);
        double *mean = &times->shape_mean_s_of_each_step[times->step_count - 1];
        *mean += (row[i].seconds - *mean) / instances;
    }
}

static void add_point_of_op_start(const struct observation_set *o, struct loc at,
                                  struct points *points)
{
    struct point point = {.at = at,
                          .role = POINT_START,
                          .attention_impl = POINT_NO_IMPL,
                          .nodes = 1,
                          .work = {.kind = WORK_FILL, .in = DTYPE_F32, .out = DTYPE_F32}};
    struct observed_shape_times times = {
        .seconds = heap_alloc(o->step_count, sizeof *times.seconds),
        .shape_mean_s_of_each_step =
            heap_alloc(o->step_count, sizeof *times.shape_mean_s_of_each_step),
        .count = o->step_count,
        .step_count = o->step_count};
    memcpy(times.seconds, o->s_to_start_op_of_each_step,
           o->step_count * sizeof *o->s_to_start_op_of_each_step);
    memcpy(times.shape_mean_s_of_each_step, o->s_to_start_op_of_each_step,
           o->step_count * sizeof *o->s_to_start_op_of_each_step);
    point.work.elements.count = 1;
    set_point_times(&point, &times, 0);
    if (point.p10_s > 0)
        points_add(points, &point);
    free(times.seconds);
    free(times.shape_mean_s_of_each_step);
}

static void note_kinds_run_as_chains(const struct prediction *p, const bool *chained,
                                     struct text *notes)
{
    const char *separator = ":";
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        if (!chained[kind])
            continue;
        if (separator[0] == ':')
            text_printf(notes, "not fitted, since profile %s runs them as chains of kernels",
                        p->profile->name);
        text_printf(notes, "%s %s", separator, work_kind_info((enum work_kind)kind)->name);
        separator = ",";
    }
    if (separator[0] == ',')
        text_putc(notes, '\n');
}

/* Returns the median, over the steps, of the seconds that starting an op takes. */
static double median_s_to_start_op(const struct observation_set *o)
{
    double *start_s = heap_alloc(o->step_count, sizeof *start_s);
    memcpy(start_s, o->s_to_start_op_of_each_step, o->step_count * sizeof *start_s);
    double median_start_s = quantile(start_s, o->step_count, 0.5);
    free(start_s);
    return median_start_s;
}

void append_points_of_observed_steps(const struct observation_set *o, const struct prediction *p,
                                     const char *name, struct points *points, struct text *notes)
{
    if (o->observation_count == 0 || o->step_count == 0)
        return;
    struct observation *row = heap_alloc(o->observation_count, sizeof *row);
    struct observed_shape_times times = {
        .seconds = heap_alloc(o->observation_count, sizeof *times.seconds),
        .shape_mean_s_of_each_step =
            heap_alloc(o->observation_count, sizeof *times.shape_mean_s_of_each_step)};
    struct cost_elementwise_chain chain[WORK_KIND_COUNT] = {{0}};
    bool chained[WORK_KIND_COUNT] = {false};
    bool kept = p->choices.activations == CHOICE_ACTIVATIONS_KEEP ||
                p->choices.activations == CHOICE_ACTIVATIONS_RATIO;
    struct loc at = {.name = arena_text(&points->arena, name, strlen(name))};
    double each_s = median_s_to_start_op(o);
    if (p->has_choices)
        chains_fill_for_choices(p->profile, &p->choices, kept, chain);
    memcpy(row, o->row, o->observation_count * sizeof *row);
    qsort(row, o->observation_count, sizeof *row, compare_observations);
    add_point_of_op_start(o, at, points);
    for (size_t i = 0, end; i < o->observation_count; i = end) {
        struct point point;
        const struct work *work = &p->ir.shape[row[i].shape_index];
        for (end = i; end < o->observation_count && row[end].shape_index == row[i].shape_index;)
            end++;
        chained[work->kind] |= chain[work->kind].bytes_per_element > 0;
        if (!fill_point_of_shape(&point, p, row[i].op, chain))
            continue;
        collect_times_of_shape(&times, row + i, end - i, is_message(work));
        point.at = at;
        set_point_times(&point, &times, is_op_on_compute_stream(p, row[i].op) ? each_s : 0);
        if (point.p10_s > 0)
            points_add(points, &point);
    }
    note_kinds_run_as_chains(p, chained, notes);
    free(row);
    free(times.seconds);
    free(times.shape_mean_s_of_each_step);
}

struct observed_step_time_spread observed_step_spread(const struct observation_set *o)
{
    struct observed_step_time_spread spread = {0};
    if (o->step_count == 0)
        return spread;
    double *span_s = heap_alloc(o->step_count, sizeof *span_s);
    memcpy(span_s, o->step_span_s, o->step_count * sizeof *span_s);
    spread.median_s = quantile(span_s, o->step_count, 0.5);
    spread.low_s = span_s[0];
    spread.high_s = span_s[o->step_count - 1];
    free(span_s);
    return spread;
}
