/* Compares our own traces: rows with the same (rank, op) are instances of the same op, one for each step. */
#include "base/text.h"
#include "traces/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct instance {
    uint32_t rank, op;
    double start_s;
    uint32_t row;
};

static int compare_instances(const void *left, const void *right)
{
    const struct instance *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static struct instance *list_instances_sorted(const struct trace *trace)
{
    const struct trace_ops *ops = &trace->ops;
    struct instance *instance = heap_alloc(ops->count + 1, sizeof *instance);
    for (size_t i = 0; i < ops->count; i++)
        instance[i] = (struct instance){ops->rank[i], ops->op[i], ops->start_s[i], (uint32_t)i};
    if (ops->count > 0)
        qsort(instance, ops->count, sizeof *instance, compare_instances);
    return instance;
}

static bool is_same_op(const struct instance *a, const struct instance *b)
{
    return a->rank == b->rank && a->op == b->op;
}

static double row_seconds(const struct trace *trace, uint32_t row)
{
    return trace->ops.end_s[row] - trace->ops.start_s[row];
}

/* The start and the end of each step of a trace. Step k consists of instance k of every op, counted from 0. */
struct step_spans {
    size_t step_count;
    double *start_s, *end_s;
};

static struct step_spans find_step_spans(const struct trace *trace, const struct instance *instance)
{
    struct step_spans spans = {0};
    size_t count = trace->ops.count;
    for (size_t i = 0, k = 0; i < count; i++) {
        k = i > 0 && is_same_op(&instance[i - 1], &instance[i]) ? k + 1 : 0;
        spans.step_count = k + 1 > spans.step_count ? k + 1 : spans.step_count;
    }
    spans.start_s = heap_alloc(spans.step_count + 1, sizeof *spans.start_s);
    spans.end_s = heap_alloc(spans.step_count + 1, sizeof *spans.end_s);
    for (size_t k = 0; k < spans.step_count; k++) {
        spans.start_s[k] = INFINITY;
        spans.end_s[k] = -INFINITY;
    }
    for (size_t i = 0, k = 0; i < count; i++) {
        k = i > 0 && is_same_op(&instance[i - 1], &instance[i]) ? k + 1 : 0;
        spans.start_s[k] = fmin(spans.start_s[k], instance[i].start_s);
        spans.end_s[k] = fmax(spans.end_s[k], trace->ops.end_s[instance[i].row]);
    }
    return spans;
}

static void release_step_spans(struct step_spans *spans)
{
    free(spans->start_s);
    free(spans->end_s);
}

static void set_step_times(struct comparison *c, struct step_spans *spans)
{
    for (size_t k = 0; k < spans->step_count; k++) {
        spans->start_s[k] = spans->end_s[k] - spans->start_s[k];
        c->shortest_step_s =
            k == 0 ? spans->start_s[k] : fmin(c->shortest_step_s, spans->start_s[k]);
        c->longest_step_s = fmax(c->longest_step_s, spans->start_s[k]);
    }
    c->measured_steps = spans->step_count;
    c->measured.step_s = comparison_sort_and_find_median(spans->start_s, spans->step_count);
}

/* Returns the median of the seconds of instance[0..count), which are all of one (rank, op). scratch has room for
 * `count` numbers. */
static double median_seconds(const struct trace *trace, const struct instance *instance,
                             size_t count, double *scratch)
{
    for (size_t i = 0; i < count; i++)
        scratch[i] = row_seconds(trace, instance[i].row);
    return comparison_sort_and_find_median(scratch, count);
}

/* Returns how many instances in a row, from `begin` on and below `end`, are of the same op of the same rank. */
static size_t length_of_equal_instances(const struct instance *instance, size_t begin, size_t end)
{
    size_t i = begin + 1;
    while (i < end && is_same_op(&instance[begin], &instance[i]))
        i++;
    return i - begin;
}

struct rank_instance_pairing {
    struct comparison *comparison;
    const struct trace *predicted, *measured;
    /* the instances of one rank on both sides */
    const struct instance *predicted_instances, *measured_instances;
    size_t predicted_count, measured_count;
    uint32_t rank;
    double *scratch;
};

/* True if two instances with the same (rank, op) have the same kind. If not, the traces are of different schedules. */
static bool is_same_kind(const struct rank_instance_pairing *join, const struct instance *p,
                         const struct instance *m)
{
    return strcmp(join->predicted->labels[join->predicted->ops.kind[p->row]],
                  join->measured->labels[join->measured->ops.kind[m->row]]) == 0;
}

static void add_pair(struct rank_instance_pairing *join, size_t i, size_t p_run, size_t j,
                     size_t m_run)
{
    const struct trace_ops *ops = &join->predicted->ops;
    const char *const *label = join->predicted->labels;
    uint32_t row = join->predicted_instances[i].row;
    struct compare_pair *pair = comparison_add_pair(join->comparison);
    pair->rank = join->rank;
    pair->op = join->predicted_instances[i].op;
    pair->kind = label[ops->kind[row]];
    pair->stream = label[ops->stream[row]];
    pair->phase = label[ops->phase[row]];
    pair->layer = ops->layer[row];
    pair->predicted_rows = pair->measured_rows = 1;
    pair->predicted_s =
        median_seconds(join->predicted, join->predicted_instances + i, p_run, join->scratch);
    pair->measured_s =
        median_seconds(join->measured, join->measured_instances + j, m_run, join->scratch);
}

/* Adds instance[0..count), which have no partner, and their seconds to the unmatched rows of a side. */
static void count_unmatched(struct compare_side *side, const struct trace *trace,
                            const struct instance *instance, size_t count)
{
    side->unmatched_rows += count;
    for (size_t i = 0; i < count; i++)
        side->unmatched_s += row_seconds(trace, instance[i].row);
}

static void pair_instances_of_rank(struct rank_instance_pairing *join)
{
    struct comparison *c = join->comparison;
    size_t i = 0, j = 0;
    while (i < join->predicted_count || j < join->measured_count) {
        size_t p_run =
            i < join->predicted_count
                ? length_of_equal_instances(join->predicted_instances, i, join->predicted_count)
                : 0;
        size_t m_run =
            j < join->measured_count
                ? length_of_equal_instances(join->measured_instances, j, join->measured_count)
                : 0;
        bool p_first = m_run == 0 || (p_run > 0 && join->predicted_instances[i].op <
                                                       join->measured_instances[j].op);
        bool m_first = p_run == 0 || (m_run > 0 && join->measured_instances[j].op <
                                                       join->predicted_instances[i].op);
        if (!p_first && !m_first &&
            is_same_kind(join, &join->predicted_instances[i], &join->measured_instances[j])) {
            add_pair(join, i, p_run, j, m_run);
        } else {
            if (!m_first)
                count_unmatched(&c->predicted, join->predicted, join->predicted_instances + i,
                                p_run);
            if (!p_first)
                count_unmatched(&c->measured, join->measured, join->measured_instances + j, m_run);
        }
        if (!m_first)
            i += p_run;
        if (!p_first)
            j += m_run;
    }
    for (size_t k = 0; k < join->predicted_count; k++)
        c->predicted.busy_s += row_seconds(join->predicted, join->predicted_instances[k].row);
    for (size_t k = 0; k < join->measured_count; k++)
        c->measured.busy_s += row_seconds(join->measured, join->measured_instances[k].row);
    c->predicted.rows += join->predicted_count;
    c->measured.rows += join->measured_count;
    c->compared_rank_count++;
}

static size_t end_index_of_rank(const struct instance *instance, size_t begin, size_t count)
{
    size_t end = begin;
    while (end < count && instance[end].rank == instance[begin].rank)
        end++;
    return end;
}

static void join_ranks(struct rank_instance_pairing *join, const struct instance *p,
                       const struct instance *m)
{
    size_t p_count = join->predicted->ops.count, m_count = join->measured->ops.count;
    bool represents_all = end_index_of_rank(p, 0, p_count) == p_count;
    for (size_t j = 0, i = 0; j < m_count;) {
        size_t j_end = end_index_of_rank(m, j, m_count);
        if (!represents_all)
            while (i < p_count && p[i].rank < m[j].rank)
                i = end_index_of_rank(p, i, p_count);
        size_t i_end = end_index_of_rank(p, i, p_count);
        if (represents_all || (i < p_count && p[i].rank == m[j].rank)) {
            join->rank = m[j].rank;
            join->predicted_instances = p + i;
            join->predicted_count = i_end - i;
            join->measured_instances = m + j;
            join->measured_count = j_end - j;
            pair_instances_of_rank(join);
        } else {
            join->comparison->unpredicted_rank_count++;
        }
        j = j_end;
    }
}

/* Refuses a measured rank that is not below the number of ranks that the prediction's header states. */
static enum status check_ranks(const struct trace *predicted, const struct instance *m,
                               size_t m_count, const char *name, struct diag *diag)
{
    const char *text = trace_get_key(predicted, "ranks");
    uint64_t ranks;
    uint32_t last = m[m_count - 1].rank; /* the highest rank, since instances are ordered by rank */
    if (text == NULL || !parse_u64(text, strlen(text), &ranks) || last < ranks)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                      "has rows of rank %u, but the prediction is for %s ranks", last, text);
}

/* Divides busy_s and unmatched_s, which are sums over all steps, by the number of steps. */
static void average_side_times_over_steps(struct compare_side *side, size_t steps)
{
    side->busy_s /= (double)steps;
    side->unmatched_s /= (double)steps;
}

enum status compare_with_longhaul_trace(struct comparison *c, const struct trace *predicted,
                                        const struct trace *measured, const char *name,
                                        struct diag *diag)
{
    struct loc at = {.name = name};
    if (predicted->ops.count == 0 || measured->ops.count == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "nothing to compare: the %s trace has no rows",
                          predicted->ops.count == 0 ? "predicted" : "measured");
    struct instance *p = list_instances_sorted(predicted), *m = list_instances_sorted(measured);
    enum status status = check_ranks(predicted, m, measured->ops.count, name, diag);
    if (status != STATUS_OK) {
        free(p);
        free(m);
        return status;
    }
    struct rank_instance_pairing join = {
        .comparison = c, .predicted = predicted, .measured = measured};
    size_t rows = predicted->ops.count + measured->ops.count;
    join.scratch = heap_alloc(rows, sizeof *join.scratch);
    join_ranks(&join, p, m);
    struct step_spans spans = find_step_spans(measured, m),
                      predicted_spans = find_step_spans(predicted, p);
    set_step_times(c, &spans);
    if (c->measured_steps == 1)
        c->measured.step_s = comparison_step_s_of_header(measured, c->measured.step_s);
    c->predicted.step_s = comparison_step_s_of_header(predicted, predicted_spans.end_s[0] -
                                                                     predicted_spans.start_s[0]);
    average_side_times_over_steps(&c->measured, c->measured_steps);
    average_side_times_over_steps(&c->predicted, predicted_spans.step_count);
    release_step_spans(&spans);
    release_step_spans(&predicted_spans);
    free(join.scratch);
    free(p);
    free(m);
    if (c->compared_rank_count == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "none of its %zu ranks is in the prediction; predict with --exact to "
                          "have all",
                          c->unpredicted_rank_count);
    comparison_finish(c, predicted, measured);
    return STATUS_OK;
}
