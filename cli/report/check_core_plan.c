#include "cli/report/check_core_plan.h"

#include "base/json_write.h"
#include "cli/common/output.h"
#include "schedule/core_plan/coverage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The figures of one sequence that are printed. */
struct core_plan_sequence_traffic {
    double visible_pairs, pairs_of_fullest; /* visible pairs of all ranks; of the fullest rank */
    uint32_t fullest_rank;
    /* rows of keys received by the rank that receives the most keys; the same of queries */
    int64_t most_keys_received, most_queries_received;
    double mean_received_key_rows; /* rows of keys that a rank receives, a mean over ranks */
    /* lower bounds of the rows of keys that ranks receive if all queries stay where they are */
    struct received_keys_lower_bound received_keys_bound_if_queries_stay;
    /* most_rows_moved: the rows of the rank that moves the most, where a query counts twice because its result returns;
     * least_rows: a lower bound of that number for any division of the work */
    double most_rows_moved, least_rows;
};

static struct core_plan_sequence_traffic
count_traffic_rows_of_sequence(const struct core_plan *plan, size_t sequence)
{
    const struct row_bytes rows = {.key = 1, .query = 1, .result = 1};
    const struct core_sequence *s = &plan->sequence[sequence];
    const struct document_list documents = core_plan_document_list(s);
    struct coverage_rank_load *load = heap_alloc(plan->rank_count, sizeof *load);
    struct core_plan_sequence_traffic w = {0};
    coverage_find_rank_loads(plan, sequence, load);
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        w.visible_pairs += load[r].visible_pairs;
        if (load[r].visible_pairs > w.pairs_of_fullest) {
            w.pairs_of_fullest = load[r].visible_pairs;
            w.fullest_rank = r;
        }
        w.most_keys_received = load[r].received_keys > w.most_keys_received ? load[r].received_keys
                                                                            : w.most_keys_received;
        w.most_queries_received = load[r].received_queries > w.most_queries_received
                                      ? load[r].received_queries
                                      : w.most_queries_received;
        w.mean_received_key_rows += (double)load[r].received_keys / plan->rank_count;
        w.most_rows_moved = fmax(w.most_rows_moved, (double)load[r].received_keys +
                                                        2 * (double)load[r].received_queries);
    }
    w.received_keys_bound_if_queries_stay = coverage_bound_of_received_keys(
        &documents, plan->window_tokens, plan->rank_count, w.visible_pairs);
    w.least_rows = coverage_bound_of_busiest_rank_bytes(
        w.visible_pairs, plan->rank_count, (double)s->tokens / plan->rank_count, &rows, true);
    free(load);
    return w;
}

static double fullest_over_mean_pairs(const struct core_plan *plan,
                                      const struct core_plan_sequence_traffic *w)
{
    return w->visible_pairs > 0 ? w->pairs_of_fullest * plan->rank_count / w->visible_pairs : 1;
}

/* Appends the ratio of `rows` to the lower bound `least`: ", 1.50 times the least". Appends nothing if the bound is
 * 0. */
static void put_ratio_to_lower_bound(struct text *out, double rows, double least)
{
    if (least > 0)
        text_printf(out, ", %.2f times the least", rows / least);
}

static void put_traffic_of_sequence(struct text *out, const struct core_plan *plan, size_t i)
{
    const char *const indent = "                   ";
    struct core_plan_sequence_traffic w = count_traffic_rows_of_sequence(plan, i);
    text_printf(out,
                "sequence %-9zu %.0f visible pairs; rank %u has the most, %.0f, %.3f times the "
                "mean\n",
                i, w.visible_pairs, w.fullest_rank, w.pairs_of_fullest,
                fullest_over_mean_pairs(plan, &w));
    text_printf(out,
                "%sa rank receives at most %lld rows of keys, %.1f on average, and at most %lld of "
                "queries\n",
                indent, (long long)w.most_keys_received, w.mean_received_key_rows,
                (long long)w.most_queries_received);
    text_printf(out, "%swith queries at home at least %.1f of keys on average", indent,
                w.received_keys_bound_if_queries_stay.all_ranks / plan->rank_count);
    if (w.most_queries_received == 0)
        put_ratio_to_lower_bound(out, w.mean_received_key_rows,
                                 w.received_keys_bound_if_queries_stay.all_ranks /
                                     plan->rank_count);
    text_printf(out, "; some rank at least %.1f",
                w.received_keys_bound_if_queries_stay.fullest_rank);
    if (w.most_queries_received == 0)
        put_ratio_to_lower_bound(out, (double)w.most_keys_received,
                                 w.received_keys_bound_if_queries_stay.fullest_rank);
    text_printf(out,
                "\n%sin any division some rank moves at least %.1f rows, queries counted twice; "
                "here %.0f",
                indent, w.least_rows, w.most_rows_moved);
    put_ratio_to_lower_bound(out, w.most_rows_moved, w.least_rows);
    text_putc(out, '\n');
}

static void put_text(struct text *out, const struct core_plan *plan)
{
    text_printf(out, "coverage           ok: %zu sequences, %u ranks\n", plan->sequence_count,
                plan->rank_count);
    for (size_t i = 0; i < plan->sequence_count; i++)
        put_traffic_of_sequence(out, plan, i);
    text_puts(out, "right\n");
}

static void put_json(struct text *out, const struct core_plan *plan, bool right)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "check");
    json_put_bool(&json, "right", right);
    json_put_count(&json, "ranks", plan->rank_count);
    json_begin_array(&json, "sequences");
    for (size_t i = 0; i < plan->sequence_count && right; i++) {
        struct core_plan_sequence_traffic w = count_traffic_rows_of_sequence(plan, i);
        json_begin_object(&json, NULL);
        json_put_number(&json, "pairs", w.visible_pairs);
        json_put_number(&json, "fullest_over_mean", fullest_over_mean_pairs(plan, &w));
        json_put_count(&json, "fullest_rank", w.fullest_rank);
        json_put_count(&json, "most_key_rows", (uint64_t)w.most_keys_received);
        json_put_number(&json, "mean_key_rows", w.mean_received_key_rows);
        json_put_number(&json, "least_key_rows",
                        w.received_keys_bound_if_queries_stay.fullest_rank);
        json_put_number(&json, "least_mean_key_rows",
                        w.received_keys_bound_if_queries_stay.all_ranks / plan->rank_count);
        json_put_count(&json, "most_query_rows", (uint64_t)w.most_queries_received);
        json_put_number(&json, "most_rows", w.most_rows_moved);
        json_put_number(&json, "least_rows", w.least_rows);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    text_putc(out, '\n');
}

enum status check_core_plan(const char *name, const struct text *text,
                            const struct options *options, struct diag *diag)
{
    struct core_plan plan = {0};
    struct text out = {0};
    enum status status = core_plan_parse(&plan, name, text->data, text->size, diag);
    enum status verdict = STATUS_OK;
    if (status == STATUS_OK) {
        verdict = core_plan_check(&plan, name, diag);
        if (is_option_given(options, "json"))
            put_json(&out, &plan, verdict == STATUS_OK);
        else if (verdict == STATUS_OK)
            put_text(&out, &plan);
        else
            text_puts(&out, "wrong\n");
        if (!is_option_given(options, "quiet"))
            status = command_print(&out, diag);
    }
    text_release(&out);
    core_plan_release(&plan);
    return status == STATUS_OK ? verdict : status;
}
