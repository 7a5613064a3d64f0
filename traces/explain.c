#include "traces/explain.h"

#include "base/ascending.h"
#include "base/text.h"
#include "traces/compare.h"
#include "traces/explain_tile.h"
#include "traces/kernel_class.h"
#include "traces/row_matches.h"
#include "traces/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kernels are slower for one common reason, the clock, if the mean slowdown over all parts with kernels exceeds
 * SLOWER_LEAST, and the slowdowns of these parts differ by less than ALIKE times the mean. A slowdown is a share of the
 * predicted time. A part with less than PART_LEAST of the kernels' time does not count. */
static const double ALIKE = 0.35, SLOWER_LEAST = 0.03, PART_LEAST = 0.05;

void explanation_release(struct explanation *e)
{
    free(e->times_of_ranks);
    arena_release(&e->arena);
    *e = (struct explanation){0};
}

/* ---- rows ---- */

static enum explain_part explain_part_of_kernel_class(enum kernel_class class)
{
    switch (class) {
    case CLASS_MATMUL:
        return EXPLAIN_PRODUCTS;
    case CLASS_ATTENTION:
        return EXPLAIN_ATTENTION;
    case CLASS_OPTIMIZER:
        return EXPLAIN_OPTIMIZER;
    case CLASS_COPY:
        return EXPLAIN_COPIES;
    case CLASS_COMMUNICATION:
        return EXPLAIN_MESSAGES;
    case CLASS_NORM:
    case CLASS_ELEMENTWISE:
        return EXPLAIN_MEMORY_BOUND;
    default:
        return EXPLAIN_STRAY;
    }
}

/* Adds the rows of a trace of this program. Work on host streams counts as copies. is_unpredicted_by_row: [rows] true
 * if the prediction does not have the row; NULL: the trace is the prediction. */
static void add_longhaul_rows(struct rows_to_explain *rows, const struct trace *trace,
                              const bool *is_unpredicted_by_row)
{
    const struct trace_ops *ops = &trace->ops;
    for (size_t i = 0; i < ops->count; i++) {
        enum kernel_class class = kernel_class_of_kind(trace->labels[ops->kind[i]]);
        if (class == CLASS_NO_WORK)
            continue;
        enum explain_part part = explain_part_of_kernel_class(class);
        if (is_unpredicted_by_row != NULL && is_unpredicted_by_row[i] &&
            part < EXPLAIN_KERNEL_PARTS)
            part = EXPLAIN_STRAY;
        if (stream_role_of(trace->labels[ops->stream[i]]) == ROLE_HOST)
            part = EXPLAIN_COPIES;
        explain_add_row(rows, &(struct explain_row){.rank = ops->rank[i],
                                                    .message_number = ops->op[i],
                                                    .part = (uint8_t)part,
                                                    .start_s = ops->start_s[i],
                                                    .end_s = ops->end_s[i]});
    }
}

static enum kernel_class kernel_class_of_class_name(const char *name)
{
    for (int class = 0; class < CLASS_COUNT; class ++)
        if (strcmp(name, kernel_class_name((enum kernel_class) class)) == 0)
            return (enum kernel_class) class;
    return CLASS_OTHER;
}

struct trace_row_with_start {
    int32_t step;
    double start_s;
    uint32_t row;
};

static int compare_started_rows(const void *left, const void *right)
{
    const struct trace_row_with_start *a = left, *b = right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Adds the rows of a recording. Messages that move bytes are numbered within a step in the order of their starts, which
 * is the same on all ranks: equal numbers are the same message. */
static void add_profiler_rows(struct rows_to_explain *rows, const struct trace *trace,
                              const bool *is_unpredicted_by_row)
{
    const struct trace_ops *ops = &trace->ops;
    struct trace_row_with_start *order = heap_alloc(ops->count + 1, sizeof *order);
    uint32_t messages = 0;
    for (size_t i = 0; i < ops->count; i++)
        order[i] = (struct trace_row_with_start){ops->step[i], ops->start_s[i], (uint32_t)i};
    qsort(order, ops->count, sizeof *order, compare_started_rows);
    for (size_t k = 0; k < ops->count; k++) {
        uint32_t i = order[k].row;
        enum kernel_class class = kernel_class_of_class_name(trace->labels[ops->region[i]]);
        enum explain_part part = explain_part_of_kernel_class(class);
        if (class == CLASS_NO_WORK)
            continue;
        if (is_unpredicted_by_row[i] && part < EXPLAIN_KERNEL_PARTS)
            part = EXPLAIN_STRAY;
        if (k > 0 && order[k].step != order[k - 1].step)
            messages = 0;
        bool moves = part == EXPLAIN_MESSAGES && ops->bytes[i] > 0;
        explain_add_row(rows, &(struct explain_row){
                                  .rank = ops->rank[i],
                                  .step = ops->step[i],
                                  .message_number = moves ? ++messages : UINT32_MAX - ops->rank[i],
                                  .part = (uint8_t)part,
                                  .start_s = ops->start_s[i],
                                  .end_s = ops->end_s[i]});
    }
    free(order);
}

/* ---- parts of every rank ---- */

static struct explain_rank *find_rank(struct explanation *e, uint32_t rank)
{
    for (size_t i = 0; i < e->rank_count; i++)
        if (e->times_of_ranks[i].rank == rank)
            return &e->times_of_ranks[i];
    return NULL;
}

/* Sets step_start_and_end_s[] to the first start and the last end of row[0..count). */
static void find_step_span(const struct explain_row *row, size_t count,
                           double step_start_and_end_s[2])
{
    step_start_and_end_s[0] = INFINITY;
    step_start_and_end_s[1] = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        step_start_and_end_s[0] = fmin(step_start_and_end_s[0], row[i].start_s);
        step_start_and_end_s[1] = fmax(step_start_and_end_s[1], row[i].end_s);
    }
}

/* Splits each step of each rank into parts, adds their seconds to measured_s (is_measured) or to predicted_s of the
 * rank in e->times_of_ranks, and returns the number of steps. represents_all: the rows are of one predicted rank, and
 * count for every rank. Our own traces have one clock, so each rank's step lasts from the first row of all ranks to the
 * last; in recordings (foreign) it lasts from the first row of the rank to its last. */
static size_t add_step_seconds_by_part(struct explanation *e, const struct rows_to_explain *rows,
                                       bool foreign, bool is_measured, bool represents_all)
{
    double step_start_and_end_s[2];
    size_t steps = 0;
    if (!foreign)
        find_step_span(rows->rows, rows->row_count, step_start_and_end_s);
    for (size_t i = 0, end; i < rows->row_count; i = end) {
        const struct explain_row *row = rows->rows + i;
        for (end = i; end < rows->row_count && rows->rows[end].rank == row->rank &&
                      rows->rows[end].step == row->step;)
            end++;
        double part_s[EXPLAIN_PART_COUNT] = {0};
        if (foreign)
            find_step_span(row, end - i, step_start_and_end_s);
        explain_split_interval_by_part(row, end - i, step_start_and_end_s[0],
                                       step_start_and_end_s[1], part_s);
        steps += i == 0 || rows->rows[i - 1].step != row->step;
        for (size_t r = 0; r < e->rank_count; r++)
            if (represents_all || e->times_of_ranks[r].rank == row->rank)
                for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
                    (is_measured ? e->times_of_ranks[r].measured_s
                                 : e->times_of_ranks[r].predicted_s)[part] += part_s[part];
    }
    return steps;
}

static void list_ranks(struct explanation *e, const struct rows_to_explain *rows)
{
    e->times_of_ranks = heap_zalloc(rows->row_count + 1, sizeof *e->times_of_ranks);
    for (size_t i = 0; i < rows->row_count; i++) {
        uint32_t rank = rows->rows[i].rank;
        if (find_rank(e, rank) == NULL)
            e->times_of_ranks[e->rank_count++].rank = rank;
    }
}

/* ---- causes ---- */

static double measured_minus_predicted_part_s(const struct explain_rank *rank, int part)
{
    return rank->measured_s[part] - rank->predicted_s[part];
}

/* Returns by how many seconds a part takes longer than predicted: the median over all ranks but
 * e->least_waiting_rank_index. If there is only that rank, it is its own excess. */
static double median_excess_of_others_s(const struct explanation *e, int part)
{
    double *value = heap_alloc(e->rank_count + 1, sizeof *value);
    size_t count = 0;
    for (size_t i = 0; i < e->rank_count; i++)
        if (e->rank_count == 1 || i != e->least_waiting_rank_index)
            value[count++] = measured_minus_predicted_part_s(&e->times_of_ranks[i], part);
    qsort(value, count, sizeof *value, ascending_double);
    double middle = (value[(count - 1) / 2] + value[count / 2]) / 2;
    free(value);
    return middle;
}

static void add_explain_cause(struct explanation *e, double seconds, int64_t rank, const char *name,
                              const char *text)
{
    if (seconds == 0)
        return;
    e->cause[e->cause_count++] = (struct explain_cause){name, text, rank, seconds};
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* Returns by how many seconds ranks wait longer than predicted: the median over all ranks but
 * e->least_waiting_rank_index; 0 if there is only that rank. */
static double median_extra_wait_s(const struct explanation *e)
{
    return e->rank_count > 1 ? median_excess_of_others_s(e, EXPLAIN_WAITS) : 0;
}

static void add_cause_of_late_or_early_rank(struct explanation *e, const double *own,
                                            const double *common)
{
    const struct explain_rank *slowest = &e->times_of_ranks[e->least_waiting_rank_index];
    double seconds = 0, base_s = 0;
    for (int part = 0; part < EXPLAIN_STRAY; part++) {
        seconds += own[part];
        base_s += slowest->predicted_s[part] + common[part];
    }
    const char *text =
        seconds > 0
            ? arena_printf(&e->arena,
                           "rank %u: its kernels take %.1f %% longer than those of other ranks, "
                           "which wait %.3f ms",
                           slowest->rank, percent(seconds, base_s), 1e3 * median_extra_wait_s(e))
            : arena_printf(&e->arena, "rank %u: its kernels take %.1f %% less than those of others",
                           slowest->rank, -percent(seconds, base_s));
    add_explain_cause(e, seconds, slowest->rank, seconds > 0 ? "late rank" : "early rank", text);
}

/* True if kernels are slower for one common reason, the clock, as the comment on ALIKE says; at least two parts must
 * count. common[part]: the seconds by which a part is slower on all ranks. */
static bool is_clock_slowdown(const struct explain_rank *slowest, const double *common)
{
    double sum_s = 0, more = 0, least = INFINITY, most = -INFINITY;
    size_t parts = 0;
    for (int part = 0; part < EXPLAIN_STRAY; part++) {
        sum_s += slowest->predicted_s[part];
        more += common[part];
    }
    for (int part = 0; part < EXPLAIN_STRAY && sum_s > 0; part++) {
        if (slowest->predicted_s[part] < PART_LEAST * sum_s)
            continue;
        double slower = common[part] / slowest->predicted_s[part];
        least = fmin(least, slower);
        most = fmax(most, slower);
        parts++;
    }
    double mean = sum_s > 0 ? more / sum_s : 0;
    return parts > 1 && mean > SLOWER_LEAST && most - least < ALIKE * mean;
}

static void add_cause_of_slowdown_on_all_ranks(struct explanation *e, const double *common)
{
    const struct explain_rank *slowest = &e->times_of_ranks[e->least_waiting_rank_index];
    if (is_clock_slowdown(slowest, common)) {
        double seconds = 0, base_s = 0;
        for (int part = 0; part < EXPLAIN_STRAY; part++) {
            seconds += common[part];
            base_s += slowest->predicted_s[part];
        }
        add_explain_cause(
            e, seconds, -1, "clock",
            arena_printf(&e->arena,
                         "kernels of all sorts take %.1f %% longer than predicted, as under a "
                         "lower clock",
                         percent(seconds, base_s)));
        return;
    }
    for (int part = 0; part < EXPLAIN_STRAY; part++)
        add_explain_cause(e, common[part], -1, explain_part_name((enum explain_part)part),
                          arena_printf(&e->arena, "takes %.1f %% %s than predicted",
                                       percent(fabs(common[part]), slowest->predicted_s[part]),
                                       common[part] > 0 ? "longer" : "less"));
}

/* Adds a cause for a part in which no kernel of the schedule runs. seconds: the difference that it explains. rank: the
 * rank that has the cause; -1: all ranks. */
static void add_cause_without_kernel(struct explanation *e, int part, double seconds, int64_t rank)
{
    static const char *const names[EXPLAIN_PART_COUNT] = {
        [EXPLAIN_STRAY] = "stray work",
        [EXPLAIN_MESSAGES] = "slow link",
        [EXPLAIN_COPIES] = "copy in the open",
        [EXPLAIN_WAITS] = "waits",
        [EXPLAIN_IDLE] = "host",
    };
    static const char *const less[EXPLAIN_PART_COUNT] = {
        [EXPLAIN_MESSAGES] = "fast link",
        [EXPLAIN_COPIES] = "hidden copy",
    };
    static const char *const texts[EXPLAIN_PART_COUNT] = {
        [EXPLAIN_STRAY] = "work that the schedule does not have",
        [EXPLAIN_MESSAGES] = "messages that move while no kernel runs",
        [EXPLAIN_COPIES] = "copies and work of the host that no kernel hides",
        [EXPLAIN_WAITS] = "waits for other ranks, also on the rank that waits least",
        [EXPLAIN_IDLE] = "nothing runs: launches, the host, gaps between kernels",
    };
    const struct explain_rank *slowest = &e->times_of_ranks[e->least_waiting_rank_index];
    struct text text = {0};
    if (rank >= 0)
        text_printf(&text, "rank %lld, and not the others: ", (long long)rank);
    text_printf(&text, "%s, measured %.3f ms, predicted %.3f ms", texts[part],
                1e3 * slowest->measured_s[part], 1e3 * slowest->predicted_s[part]);
    const char *name = seconds < 0 && less[part] != NULL ? less[part] : names[part];
    add_explain_cause(e, seconds, rank, name, arena_text(&e->arena, text.data, text.size));
    text_release(&text);
}

static int compare_causes(const void *left, const void *right)
{
    const struct explain_cause *a = left, *b = right;
    double x = fabs(a->seconds), y = fabs(b->seconds);
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void find_causes(struct explanation *e)
{
    double own[EXPLAIN_PART_COUNT], common[EXPLAIN_PART_COUNT];
    for (size_t i = 0; i < e->rank_count; i++)
        if (e->times_of_ranks[i].measured_s[EXPLAIN_WAITS] <
            e->times_of_ranks[e->least_waiting_rank_index].measured_s[EXPLAIN_WAITS])
            e->least_waiting_rank_index = i;
    const struct explain_rank *slowest = &e->times_of_ranks[e->least_waiting_rank_index];
    for (int part = 0; part < EXPLAIN_PART_COUNT; part++) {
        common[part] = part == EXPLAIN_WAITS ? measured_minus_predicted_part_s(slowest, part)
                                             : median_excess_of_others_s(e, part);
        own[part] = measured_minus_predicted_part_s(slowest, part) - common[part];
        /* For a part in which no kernel of the schedule runs: if the rank's own excess and the common one have
         * different signs, they would be shown as two causes that cancel, so the whole excess counts as common. The
         * other parts are summed before they become a cause (add_cause_of_late_or_early_rank()). */
        if (part >= EXPLAIN_STRAY && own[part] * common[part] < 0) {
            common[part] = measured_minus_predicted_part_s(slowest, part);
            own[part] = 0;
        }
        e->predicted_s += slowest->predicted_s[part];
        e->measured_s += slowest->measured_s[part];
    }
    add_cause_of_late_or_early_rank(e, own, common);
    add_cause_of_slowdown_on_all_ranks(e, common);
    for (int part = EXPLAIN_STRAY; part < EXPLAIN_PART_COUNT; part++) {
        add_cause_without_kernel(e, part, own[part], slowest->rank);
        add_cause_without_kernel(e, part, common[part], -1);
    }
    qsort(e->cause, e->cause_count, sizeof *e->cause, compare_causes);
}

/* ---- the whole explanation ---- */

/* Returns an array with true for each measured row whose op the prediction lacks, or has with another kind. The caller
 * frees it. */
static bool *mark_unmatched_longhaul_rows(const struct trace *predicted,
                                          const struct trace *measured)
{
    bool *is_unpredicted_by_row =
        heap_zalloc(measured->ops.count + 1, sizeof *is_unpredicted_by_row);
    uint32_t most = 0;
    for (size_t i = 0; i < predicted->ops.count; i++)
        most = predicted->ops.op[i] > most ? predicted->ops.op[i] : most;
    const char **kind = heap_zalloc((size_t)most + 1, sizeof(const char *));
    for (size_t i = 0; i < predicted->ops.count; i++)
        kind[predicted->ops.op[i]] = predicted->labels[predicted->ops.kind[i]];
    for (size_t i = 0; i < measured->ops.count; i++) {
        uint32_t op = measured->ops.op[i];
        is_unpredicted_by_row[i] = op > most || kind[op] == NULL ||
                                   strcmp(kind[op], measured->labels[measured->ops.kind[i]]) != 0;
    }
    free((void *)kind);
    return is_unpredicted_by_row;
}

static enum status add_measured_rows(struct rows_to_explain *rows, const struct trace *predicted,
                                     const struct trace *measured, const char *name, bool foreign,
                                     struct diag *diag)
{
    struct row_matches matches = {0};
    enum status status = STATUS_OK;
    if (measured->ops.count == 0)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT, "has no rows");
    if (foreign) {
        status = row_matches_find(&matches, predicted, measured, name, diag);
        if (status == STATUS_OK)
            add_profiler_rows(rows, measured, matches.is_stray_by_row);
    } else {
        bool *is_unpredicted_by_row = mark_unmatched_longhaul_rows(predicted, measured);
        add_longhaul_rows(rows, measured, is_unpredicted_by_row);
        free(is_unpredicted_by_row);
    }
    row_matches_release(&matches);
    return status;
}

static bool has_single_rank(const struct trace *trace)
{
    for (size_t i = 1; i < trace->ops.count; i++)
        if (trace->ops.rank[i] != trace->ops.rank[0])
            return false;
    return true;
}

static enum status check_ranks(struct explanation *e, const char *name, struct diag *diag)
{
    for (size_t i = 0; i < e->rank_count; i++) {
        double sum_s = 0;
        for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
            sum_s += e->times_of_ranks[i].predicted_s[part];
        if (!(sum_s > 0))
            return diag_error(
                diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                "rank %u is not in the prediction, which has only one of all equal ranks; "
                "predict with --exact to have all ranks",
                e->times_of_ranks[i].rank);
    }
    return STATUS_OK;
}

/* Sets e->matched_time_share to the smallest comparison.matched_time_share of the measured traces. */
static enum status find_matched_time_share(struct explanation *e, const struct trace *predicted,
                                           const struct trace *const *measured,
                                           const char *const *names, size_t count, bool foreign,
                                           struct diag *diag)
{
    enum status status = STATUS_OK;
    e->matched_time_share = 1;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct comparison c = {0};
        status = foreign ? compare_with_profiler_trace(&c, predicted, measured[i], names[i], diag)
                         : compare_with_longhaul_trace(&c, predicted, measured[i], names[i], diag);
        if (status == STATUS_OK)
            e->matched_time_share = fmin(e->matched_time_share, c.matched_time_share);
        comparison_release(&c);
    }
    return status;
}

enum status explain_measured_against_predicted(struct explanation *e, const struct trace *predicted,
                                               const struct trace *const *measured,
                                               const char *const *names, size_t count, bool foreign,
                                               struct diag *diag)
{
    struct rows_to_explain p = {0}, m = {0};
    enum status status = STATUS_OK;
    if (predicted->ops.count == 0)
        return diag_error(diag, (struct loc){.name = "the prediction"}, STATUS_BAD_INPUT,
                          "has no rows");
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = add_measured_rows(&m, predicted, measured[i], names[i], foreign, diag);
    if (status == STATUS_OK) {
        add_longhaul_rows(&p, predicted, NULL);
        explain_align_and_sort_rows(&p, false);
        explain_align_and_sort_rows(&m, foreign && count > 1);
        list_ranks(e, &m);
        e->measured_steps = add_step_seconds_by_part(e, &m, foreign, true, false);
        add_step_seconds_by_part(e, &p, false, false, has_single_rank(predicted));
        for (size_t i = 0; i < e->rank_count; i++)
            for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
                e->times_of_ranks[i].measured_s[part] /= (double)e->measured_steps;
        status = check_ranks(e, names[0], diag);
    }
    if (status == STATUS_OK)
        status = find_matched_time_share(e, predicted, measured, names, count, foreign, diag);
    if (status == STATUS_OK)
        find_causes(e);
    explain_rows_release(&p);
    explain_rows_release(&m);
    return status;
}
