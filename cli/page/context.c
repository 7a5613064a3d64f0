#include "cli/page/context.h"

#include "base/arena.h"
#include "base/path.h"
#include "base/units.h"
#include "cli/folder/trace_folder.h"
#include "cli/page/values.h"
#include "cli/report/report.h"
#include "predict/result_names.h"
#include "traces/external.h"
#include "traces/residuals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- measured steps ---- */

enum { MEASURED_SHOWN = 6 };

/* Returns how different two runs are: each feature that differs adds its weight, and each size that both have adds its
 * weight times the absolute value of log2 of the ratio of the two sizes. */
static double dissimilarity_of_runs(const struct residual *a, const struct residual *b)
{
    const struct {
        const char *a, *b;
        double weight;
    } names[] = {{a->device, b->device, 4},
                 {a->context, b->context, 3},
                 {a->activations, b->activations, 1},
                 {a->framework, b->framework, 1},
                 {a->attention, b->attention, 0.5}};
    const struct {
        int64_t a, b;
        double weight;
    } sizes[] = {{a->seq_len, b->seq_len, 0.5},
                 {a->gpus, b->gpus, 0.5},
                 {a->parameters, b->parameters, 0.5},
                 {a->tp, b->tp, 0.5},
                 {a->pp, b->pp, 1}};
    double sum = a->spans_several_nodes != b->spans_several_nodes;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        sum += strcmp(names[i].a, names[i].b) == 0 ? 0 : names[i].weight;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (sizes[i].a > 0 && sizes[i].b > 0)
            sum += sizes[i].weight * fabs(log2((double)sizes[i].a / (double)sizes[i].b));
    return sum;
}

/* Returns the measured tokens/s/GPU of a run; NAN: no row of its source gives them or the seconds of a step. */
static double measured_tokens_per_s_gpu(const struct external_runs *published,
                                        const struct residual *run)
{
    for (size_t i = 0; i < published->row_count; i++) {
        const struct external_run *row = &published->rows[i];
        if (strcmp(row->cells[EXTERNAL_ID], run->run) != 0 ||
            strcmp(row->cells[EXTERNAL_SOURCE], run->source) != 0)
            continue;
        if (row->step_s > 0)
            return (double)(row->seq_len * row->global_batch) / (row->step_s * (double)row->gpus);
        if (row->is_number && row->metric == METRIC_TGS)
            return row->value * row->si_factor;
    }
    return NAN;
}

static void put_row_of_measured_run(struct page *page, const struct residual *row, double rate)
{
    struct text text = {0};
    page_put_cell(page, row->source);
    page_put_formatted_cell(page, "%lld %s", (long long)row->gpus, row->device);
    page_put_formatted_cell(page, "%.1f", (double)row->parameters / 1e9);
    units_put_tokens(&text, row->seq_len);
    page_put_cell(page, text.data);
    text.size = 0;
    text_puts(&text, strcmp(row->context, "none") == 0 ? "whole sequences" : row->context);
    if (row->tp > 1)
        text_printf(&text, ", tp %lld", (long long)row->tp);
    if (row->pp > 1)
        text_printf(&text, ", pp %lld", (long long)row->pp);
    page_put_cell(page, text.data);
    page_put_cell(page, row->framework);
    if (isnan(rate)) {
        page_put_cell(page, "");
        page_put_cell(page, "");
    } else {
        page_put_formatted_cell(page, "%.1f", rate);
        page_put_formatted_cell(page, "%.1f", rate * exp(row->log_ratio[RESIDUAL_TIME]));
    }
    page_put_formatted_cell(page, "%+.1f", 100 * expm1(row->log_ratio[RESIDUAL_TIME]));
    page_end_row(page);
    text_release(&text);
}

void page_put_similar_runs(struct page *page, struct json_node root)
{
    static const char *const heads[] = {
        "measured by", "GPUs",    "parameters (10⁹)",      "tokens",
        "parallelism", "profile", "measured tokens/s/GPU", "predicted",
        "error (%)",   NULL};
    struct json_node run = json_find_member(root, "run");
    struct residuals all = {0};
    struct external_runs published = {0};
    struct residual like = {0};
    const struct residual *shown[MEASURED_SHOWN];
    size_t count = 0;
    if (!json_is_object(run) || residual_read_json(&like, run, NULL) != STATUS_OK ||
        residuals_load_shipped(&all, NULL) != STATUS_OK ||
        external_load_shipped(&published, NULL) != STATUS_OK)
        goto out;
    for (size_t i = 0; i < all.row_count; i++) {
        const struct residual *row = &all.rows[i];
        if (isnan(row->log_ratio[RESIDUAL_TIME]) || row->set[0] != '\0')
            continue;
        size_t at = count;
        while (at > 0 &&
               dissimilarity_of_runs(row, &like) < dissimilarity_of_runs(shown[at - 1], &like))
            at--;
        if (at == MEASURED_SHOWN)
            continue;
        count += count < MEASURED_SHOWN;
        for (size_t k = count - 1; k > at; k--)
            shown[k] = shown[k - 1];
        shown[at] = row;
    }
    if (count == 0)
        goto out;
    page_put_heading(page, "Measured steps most like this one");
    page_begin_table(page, NULL, heads);
    for (size_t i = 0; i < count; i++)
        put_row_of_measured_run(page, shown[i], measured_tokens_per_s_gpu(&published, shown[i]));
    page_end_table(page);
    page_put_text(page,
                  "Each was predicted as this step was, with the profile of the framework that "
                  "ran it.");
out:
    external_release(&published);
    residuals_release(&all);
}

/* ---- the ranking of a search ---- */

/* Appends why a configuration is slower than the best: "-3.1 %; per sequence 83.2 ms more: waiting
 * for the ring", or "as fast" if the difference would be printed as 0. Of a configuration that was
 * not simulated, appends the bound of its rate, the memory that it lacks, or its outcome. */
static void put_reason_for_being_slower(struct text *out, struct json_node row, double best)
{
    const double rate = page_get_number_or_0(row, "tokens_per_s_gpu"),
                 most = page_get_number_or_0(row, "most_tokens_per_s_gpu"),
                 missing = page_get_number_or_0(row, "missing_bytes");
    const char *cause = page_get_text_or_empty(row, "slower_cause");
    if (rate > 0 && best > 0) {
        const double loss = 100 * (rate / best - 1);
        if (fabs(loss) < 0.05) {
            text_puts(out, "as fast");
            return;
        }
        text_printf(out, "%+.1f %%", loss);
        for (int c = 0; c < CAUSE_COUNT && cause[0] != '\0'; c++)
            if (strcmp(result_name_of_words(cause_name((enum cause)c)).text, cause) == 0) {
                const double by_s = page_get_number_or_0(row, "slower_cause_s_per_sequence");
                text_puts(out, "; per sequence ");
                report_put_time(out, by_s, by_s);
                text_printf(out, " more: %s", cause_label((enum cause)c));
            }
    } else if (most > 0) {
        text_printf(out, "not simulated: at most %.1f tokens/s/GPU", most);
    } else if (missing > 0) {
        text_puts(out, "does not fit: ");
        units_put_gib(out, missing);
        text_puts(out, " are missing");
    } else {
        text_puts(out, page_get_text_or_empty(row, "outcome"));
    }
}

static void put_tokens_per_s_cell(struct page *page, struct json_node row)
{
    const double rate = page_get_number_or_0(row, "tokens_per_s_gpu"),
                 needed = page_get_number_or_0(row, "device_needed_bytes");
    struct text text = {0};
    if (rate > 0)
        page_put_formatted_cell(page, "%.1f", rate);
    else
        page_put_cell(page, "");
    if (needed > 0)
        units_put_gib(&text, needed);
    page_put_cell(page, needed > 0 ? text.data : "");
    text_release(&text);
}

static void put_ranking_table(struct page *page, struct json_node rows, double best,
                              bool of_strategies)
{
    const char *const heads[] = {of_strategies ? "strategy" : "place",
                                 "tokens/s/GPU",
                                 "a GPU needs",
                                 "beside the best",
                                 "options",
                                 NULL};
    page_begin_table(page, NULL, heads);
    for (size_t i = 0; i < json_element_count(rows); i++) {
        struct json_node row = json_element_at(rows, i), at = row;
        struct text why = {0};
        if (of_strategies)
            row = json_is_object(json_find_member(at, "best")) ? json_find_member(at, "best") : at;
        put_reason_for_being_slower(&why, row, best);
        if (of_strategies)
            page_put_cell(page, page_get_text_or_empty(at, "strategy"));
        else
            page_put_formatted_cell(page, "%zu", i + 1);
        put_tokens_per_s_cell(page, row);
        page_put_cell(page, !of_strategies && i == 0 ? "" : why.data);
        page_put_cell(page, page_get_text_or_empty(row, "options"));
        page_end_row(page);
        text_release(&why);
    }
    page_end_table(page);
}

enum status page_put_ranking(struct page *page, const char *folder, struct json_node root,
                             struct diag *diag)
{
    struct text path = {0}, text = {0};
    struct json json = {0};
    enum status status = STATUS_OK;
    text_printf(&path, "%s/" TRACE_FOLDER_PLAN, folder);
    if (!path_exists(path.data)) /* the folder is not that of a search */
        goto out;
    status = text_read(&text, path.data, diag);
    if (status == STATUS_OK)
        status = json_parse(&json, path.data, text.data == NULL ? "" : text.data, text.size, diag);
    if (status != STATUS_OK)
        goto out;
    struct json_node plan = json_root(&json), ranking = json_find_member(plan, "ranking");
    struct json_node best = json_element_at(ranking, 0);
    const char *command = page_get_text_or_empty(best, "command");
    if (json_element_count(ranking) == 0 || command[0] == '\0' ||
        strcmp(command, page_get_text_or_empty(json_find_member(root, "made_by"), "command")) != 0)
        goto out; /* plan.json is of another search */
    const double rate = page_get_number_or_0(best, "tokens_per_s_gpu");
    page_put_heading(page, "Beside other configurations");
    text.size = 0;
    text_printf(&text,
                "The best of %.0f configurations, of which %.0f were simulated; of the others none "
                "that fits can be ",
                page_get_number_or_0(plan, "configurations"),
                page_get_number_or_0(plan, "simulated"));
    const double gap = page_get_number_or_0(plan, "proved_gap");
    text_printf(&text, gap < 0.0005 ? "faster." : "more than %.1f %% faster.", 100 * gap);
    if (page_get_number_or_0(plan, "not_searched") > 0) {
        text.size = 0;
        text_printf(&text, "The best so far: %.0f of %.0f configurations were not searched.",
                    page_get_number_or_0(plan, "not_searched"),
                    page_get_number_or_0(plan, "configurations"));
    }
    page_put_text(page, text.data);
    put_ranking_table(page, ranking, rate, false);
    page_put_text(page, "What each strategy reaches, and why it is not the best:");
    put_ranking_table(page, json_find_member(plan, "families"), rate, true);
out:
    json_release(&json);
    text_release(&text);
    text_release(&path);
    return status;
}
