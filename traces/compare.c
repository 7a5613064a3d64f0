#include "traces/compare.h"

#include "base/ascending.h"
#include "base/text.h"
#include "traces/stats.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void comparison_release(struct comparison *comparison)
{
    free(comparison->pairs);
    free(comparison->peak_memory);
    free(comparison->planned_memory);
    *comparison = (struct comparison){0};
}

struct compare_pair *comparison_add_pair(struct comparison *comparison)
{
    if (comparison->pair_count == comparison->pair_capacity) {
        comparison->pair_capacity =
            heap_next_capacity(comparison->pair_capacity, comparison->pair_count + 1);
        comparison->pairs =
            heap_realloc(comparison->pairs, comparison->pair_capacity, sizeof *comparison->pairs);
    }
    struct compare_pair *pair = &comparison->pairs[comparison->pair_count++];
    *pair = (struct compare_pair){0};
    return pair;
}

double comparison_signed_relative_error(double predicted, double measured)
{
    return measured > 0 ? predicted / measured - 1 : NAN;
}

/* Returns the number that a header key states, if it is above 0; else `value_if_absent`. */
static double positive_header_number_or(const struct trace *trace, const char *key,
                                        double value_if_absent)
{
    const char *text = trace_get_key(trace, key);
    double number;
    if (text != NULL && parse_double(text, strlen(text), &number) && number > 0 && isfinite(number))
        return number;
    return value_if_absent;
}

double comparison_step_s_of_header(const struct trace *trace, double otherwise_s)
{
    return positive_header_number_or(trace, "step_s", otherwise_s);
}

double comparison_clock_mhz_of_header(const struct trace *trace, const char *kind)
{
    char key[80];
    snprintf(key, sizeof key, "sm_clock_mhz.%s", kind);
    return positive_header_number_or(trace, key,
                                     positive_header_number_or(trace, "sm_clock_mhz", 0));
}

double comparison_sort_and_find_median(double *value, size_t count)
{
    assert(count > 0);
    qsort(value, count, sizeof *value, ascending_double);
    return count % 2 == 1 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

/* ---- memory ---- */

static struct compare_memory *add_memory(struct compare_memory **table, size_t *count,
                                         size_t *capacity)
{
    if (*count == *capacity) {
        *capacity = heap_next_capacity(*capacity, *count + 1);
        *table = heap_realloc(*table, *capacity, sizeof **table);
    }
    return &(*table)[(*count)++];
}

static void add_peak_memory_pairs(struct comparison *c, const struct trace *predicted,
                                  const struct trace_stats *p, const struct trace *measured,
                                  const struct trace_stats *m)
{
    bool represents_all =
        p->memory_count > 0 && p->memories[0].rank == p->memories[p->memory_count - 1].rank;
    for (size_t j = 0; j < m->memory_count; j++) {
        const char *name = measured->labels[m->memories[j].memory];
        for (size_t i = 0; i < p->memory_count; i++) {
            if ((!represents_all && p->memories[i].rank != m->memories[j].rank) ||
                strcmp(predicted->labels[p->memories[i].memory], name) != 0)
                continue;
            *add_memory(&c->peak_memory, &c->peak_memory_count, &c->peak_memory_capacity) =
                (struct compare_memory){m->memories[j].rank, name, p->memories[i].peak_bytes,
                                        m->memories[j].peak_bytes};
            break;
        }
    }
}

/* Adds to c->planned_memory the planned bytes of each memory that both headers state ("arena_bytes.hbm").
 * compare_verdict_of() wants both to be equal, since an arena's size is planned and not measured. */
static void add_planned_memory_pairs(struct comparison *c, const struct trace *predicted,
                                     const struct trace *measured)
{
    static const char prefix[] = "arena_bytes.";
    for (size_t i = 0; i < predicted->header_count; i++) {
        const struct trace_key *key = &predicted->header_keys[i];
        if (strncmp(key->key, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *other = trace_get_key(measured, key->key);
        struct compare_memory row = {0, key->key + sizeof prefix - 1, 0, 0};
        if (other != NULL && parse_double(key->value, strlen(key->value), &row.predicted_bytes) &&
            parse_double(other, strlen(other), &row.measured_bytes))
            *add_memory(&c->planned_memory, &c->planned_memory_count, &c->planned_memory_capacity) =
                row;
    }
}

/* ---- copies and messages that no compute stream hides ---- */

/* Sets c->exposed_time_by_stream_role to means over the compared ranks. The prediction of a measured rank is the
 * predicted rank with its number, or the only predicted rank, which represents all. */
static void set_exposed_time_by_stream_role(struct comparison *c, const struct trace_stats *p,
                                            const struct trace_stats *m)
{
    double ranks = (double)c->compared_rank_count, rows = ranks * (double)c->measured_steps;
    for (size_t i = 0; i < m->rank_count; i++) {
        const struct stats_rank *measured = &m->ranks[i];
        const struct stats_rank *predicted =
            p->rank_count == 1 ? &p->ranks[0] : stats_find_rank(p, measured->rank);
        if (predicted == NULL)
            continue;
        for (int role = 0; role < ROLE_COUNT; role++) {
            struct compare_exposed *exposed = &c->exposed_time_by_stream_role[role];
            exposed->predicted_busy_s += predicted->busy_s[role] / ranks;
            exposed->predicted_exposed_s += predicted->exposed_s[role] / ranks;
            exposed->measured_busy_s += measured->busy_s[role] / rows;
            exposed->measured_exposed_s += measured->exposed_s[role] / rows;
        }
    }
}

/* ---- the end of a comparison ---- */

static double matched_time_share_of_side(const struct compare_side *side)
{
    return side->busy_s > 0 ? 1 - side->unmatched_s / side->busy_s : 1;
}

void comparison_finish(struct comparison *c, const struct trace *predicted,
                       const struct trace *measured)
{
    c->predicted.trace = predicted;
    c->measured.trace = measured;
    c->matched_time_share = fmax(0, fmin(matched_time_share_of_side(&c->predicted),
                                         matched_time_share_of_side(&c->measured)));
    if (c->pair_count == 0)
        c->matched_time_share = 0;
    struct trace_stats p, m;
    trace_stats_compute(&p, predicted);
    trace_stats_compute(&m, measured);
    add_peak_memory_pairs(c, predicted, &p, measured, &m);
    if (!c->is_profiler_trace)
        set_exposed_time_by_stream_role(c, &p, &m);
    trace_stats_release(&p);
    trace_stats_release(&m);
    add_planned_memory_pairs(c, predicted, measured);
}

/* ---- groups, ops and the verdict ---- */

const char *compare_grouping_name(enum compare_grouping by)
{
    static const char *const names[BY_COUNT] = {"kind", "stream", "phase", "rank"};
    assert(by < BY_COUNT);
    return names[by];
}

static const char *group_name(const struct compare_pair *pair, enum compare_grouping by)
{
    switch (by) {
    case BY_KIND:
        return pair->kind;
    case BY_STREAM:
        return pair->stream;
    case BY_PHASE:
        return pair->phase;
    case BY_RANK:
    case BY_COUNT:
        break;
    }
    return NULL;
}

static int compare_groups_by_time(const void *left, const void *right)
{
    const struct compare_group *a = left, *b = right;
    if (a->measured_s != b->measured_s)
        return a->measured_s > b->measured_s ? -1 : 1;
    if (a->name != NULL && b->name != NULL && strcmp(a->name, b->name) != 0)
        return strcmp(a->name, b->name);
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool has_group_name_or_rank(const struct compare_group *group, const char *name,
                                   uint32_t rank)
{
    return name == NULL ? group->rank == rank : strcmp(group->name, name) == 0;
}

size_t compare_list_groups(const struct comparison *c, enum compare_grouping by,
                           struct compare_group **out)
{
    struct compare_group *group = NULL;
    size_t count = 0, capacity = 0, last = 0;
    for (size_t i = 0; i < c->pair_count; i++) {
        const struct compare_pair *pair = &c->pairs[i];
        const char *name = group_name(pair, by);
        size_t g = last; /* there are few groups, and neighbours often share one */
        if (count == 0 || !has_group_name_or_rank(&group[g], name, pair->rank))
            for (g = 0; g < count && !has_group_name_or_rank(&group[g], name, pair->rank);)
                g++;
        if (g == count) {
            if (count == capacity) {
                capacity = heap_next_capacity(capacity, count + 1);
                group = heap_realloc(group, capacity, sizeof *group);
            }
            group[count++] = (struct compare_group){.name = name, .rank = name ? 0 : pair->rank};
        }
        group[g].pair_count++;
        group[g].is_on_compute_stream |= stream_role_of(pair->stream) == ROLE_COMPUTE;
        group[g].predicted_s += pair->predicted_s;
        group[g].measured_s += pair->measured_s;
        group[g].absolute_error_s += fabs(pair->predicted_s - pair->measured_s);
        last = g;
    }
    if (count > 0)
        qsort(group, count, sizeof *group, compare_groups_by_time);
    *out = group;
    return count;
}

struct compare_pair_of_op {
    uint32_t op, rank;
    const struct compare_pair *pair;
};

static int compare_pairs_by_op(const void *left, const void *right)
{
    const struct compare_pair_of_op *a = left, *b = right;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int compare_ops_by_error(const void *left, const void *right)
{
    const struct compare_op *a = left, *b = right;
    if (a->absolute_error_s != b->absolute_error_s)
        return a->absolute_error_s > b->absolute_error_s ? -1 : 1;
    return a->pair_of_lowest_rank->op < b->pair_of_lowest_rank->op
               ? -1
               : a->pair_of_lowest_rank->op > b->pair_of_lowest_rank->op;
}

size_t compare_list_ops(const struct comparison *c, struct compare_op **out)
{
    struct compare_pair_of_op *order = heap_alloc(c->pair_count + 1, sizeof *order);
    struct compare_op *op = heap_alloc(c->pair_count + 1, sizeof *op);
    size_t count = 0;
    double total_s = 0;
    for (size_t i = 0; i < c->pair_count; i++)
        order[i] = (struct compare_pair_of_op){c->pairs[i].op, c->pairs[i].rank, &c->pairs[i]};
    if (c->pair_count > 0)
        qsort(order, c->pair_count, sizeof *order, compare_pairs_by_op);
    for (size_t i = 0; i < c->pair_count; i++) {
        if (count == 0 || op[count - 1].pair_of_lowest_rank->op != order[i].op)
            op[count++] = (struct compare_op){.pair_of_lowest_rank = order[i].pair};
        struct compare_op *last = &op[count - 1];
        double off_s = fabs(order[i].pair->predicted_s - order[i].pair->measured_s);
        last->rank_count++;
        last->predicted_s += order[i].pair->predicted_s;
        last->measured_s += order[i].pair->measured_s;
        last->absolute_error_s += off_s;
        total_s += off_s;
    }
    for (size_t i = 0; i < count; i++)
        op[i].share_of_total_error = total_s > 0 ? op[i].absolute_error_s / total_s : 0;
    if (count > 0)
        qsort(op, count, sizeof *op, compare_ops_by_error);
    free(order);
    *out = op;
    return count;
}

enum compare_verdict compare_verdict_of(const struct comparison *c, double tolerance)
{
    if (c->matched_time_share < COMPARE_MATCHED_SHARE_MIN)
        return VERDICT_NONE;
    bool is_within = fabs(comparison_signed_relative_error(c->predicted.step_s,
                                                           c->measured.step_s)) <= tolerance;
    for (size_t i = 0; i < c->peak_memory_count; i++)
        is_within &=
            c->peak_memory[i].predicted_bytes == c->peak_memory[i].measured_bytes ||
            fabs(comparison_signed_relative_error(c->peak_memory[i].predicted_bytes,
                                                  c->peak_memory[i].measured_bytes)) <= tolerance;
    for (size_t i = 0; i < c->planned_memory_count; i++)
        is_within &= c->planned_memory[i].predicted_bytes == c->planned_memory[i].measured_bytes;
    return is_within ? VERDICT_WITHIN : VERDICT_BEYOND;
}
