/* cli/plan/report_json.c: prints the result of a search as JSON. */
#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/plan/ranking.h"
#include "cli/report/report.h"
#include "predict/result_names.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

#include <math.h>
#include <string.h>

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). Rows are filled
 * in the order of the columns. A description such as "common.json" or "plan_batches" names the schema or the table
 * that describes the column. */
/* clang-format off */
static const struct column outcome[] = {
    {"outcome", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "no room, refused, does not fit, cannot be better, simulated or not searched."},
    {"strategy", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "choices.json"},
    {"options", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "Options that, with those given, predict it."},
    {"command", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "The whole command that predicts it."},
    {"tokens", NULL, NULL, COLUMN_COUNT, 0, "Tokens of its sequence."},
    {"asked_tokens", NULL, NULL, COLUMN_COUNT | COLUMN_OPTIONAL, 0, "The longest length that was asked about, where the search ended before memory did."},
    /* the columns from `tokens_per_s_gpu` to `host_needed_bytes` are filled only if the outcome is "simulated" */
    {"tokens_per_s_gpu", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "common.json"},
    {"step_s", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, "common.json"},
    {"step_low_s", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, "common.json"},
    {"step_high_s", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, "common.json"},
    {"batches", NULL, NULL, COLUMN_NESTED_ROW | COLUMN_OPTIONAL, 0, "plan_batches"},
    {"sequences", NULL, NULL, COLUMN_COUNT | COLUMN_OPTIONAL, 0, "choices.json"},
    {"slower_cause", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_OPTIONAL, 0, "The cause that takes most longer than in the winner's step: a member of waterfall without its unit."},
    {"slower_cause_s_per_sequence", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, NULL},
    {"narrow_products", NULL, NULL, COLUMN_NESTED_ROW | COLUMN_OPTIONAL, 0, "narrow_products"},
    {"stages_idle", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "Share of the step in which pipeline stages are idle."},
    {"waiting_for_copies", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "Share of the step."},
    {"device_needed_bytes", NULL, NULL, COLUMN_BYTES_WITH_UNIT | COLUMN_OPTIONAL, 0, "common.json"},
    {"device_cache_bytes", NULL, NULL, COLUMN_BYTES_WITH_UNIT | COLUMN_OPTIONAL, 0, "common.json"},
    {"fits_probability", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "common.json"},
    {"host_needed_bytes", NULL, NULL, COLUMN_BYTES_WITH_UNIT | COLUMN_OPTIONAL, 0, "common.json"},
    /* filled only if the outcome is "cannot be better" or "not searched" */
    {"most_tokens_per_s_gpu", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "A bound that it does not exceed."},
    /* filled only if the outcome is "no room", "refused" or "does not fit" */
    {"missing_bytes", NULL, NULL, COLUMN_BYTES | COLUMN_OPTIONAL, 0, "Bytes of memory that it lacks."},
};

static const struct column batches[] = {
    {"steps", NULL, NULL, COLUMN_COUNT, 0, "Batches of packed documents that it was predicted on."},
    {"median_step_s", NULL, NULL, COLUMN_SECONDS, 0, "The same as step_s."},
    {"high_step_s", NULL, NULL, COLUMN_SECONDS, 0, "9 of 10 steps take no longer."},
    {"worst_step_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"faster_than_best", NULL, NULL, COLUMN_COUNT, 0, "The number of these batches in which it is faster than the first of the ranking."},
};

static const struct column family[] = {
    {"strategy", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "choices.json"},
    {"configurations", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"most_tokens_per_s_gpu", NULL, NULL, COLUMN_NUMBER, 0, "What no member exceeds."},
    {"asked_tokens", NULL, NULL, COLUMN_COUNT | COLUMN_OPTIONAL, 0, NULL},
    {"best", NULL, NULL, COLUMN_NESTED_ROW | COLUMN_OPTIONAL, 0, "plan_outcome"},
    {"layout_s_per_sequence", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, "Seconds more than the winner takes that are due to the layout."},
    {"kernels_s_per_sequence", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, NULL},
    {"framework_s_per_sequence", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, NULL},
};
/* clang-format on */

const struct row_table plan_tables[PLAN_TABLE_COUNT] = {
    [PLAN_OUTCOME] = {"plan_outcome", outcome, ARRAY_LEN(outcome)},
    [PLAN_BATCHES] = {"plan_batches", batches, ARRAY_LEN(batches)},
    [PLAN_FAMILY] = {"plan_family", family, ARRAY_LEN(family)},
};

/* Skips the columns of the row that stand before the one with the key. */
static void skip_columns_until_key(struct rows *rows, const char *key)
{
    while (strcmp(rows->column[rows->filled_columns].key, key) != 0)
        rows_skip_column(rows);
}

static void put_number_or_skip(struct rows *rows, bool has, double value)
{
    if (has)
        rows_put_number(rows, value);
    else
        rows_skip_column(rows);
}

/* Puts the cause that slows an outcome most, and by how much (plan_slower_cause()). Skips both columns for the winner,
 * in searches for the longest sequence, and if no cause takes longer. */
static void put_slowdown(struct rows *rows, const struct plan_report *r, const struct outcome *o)
{
    double by_s = 0;
    const struct outcome *winner = &r->best->row[0];
    enum cause cause = plan_slower_cause(o, winner, &by_s);
    if (o == winner || r->best->goal == GOAL_LONGEST || by_s <= 0) {
        skip_columns_until_key(rows, "narrow_products");
        return;
    }
    rows_put_text(rows, result_name_of_words(cause_name(cause)).text);
    rows_put_number(rows, by_s);
}

/* Puts the spread of the steps over packed batches; without documents, skips the column. */
static void put_spread_over_batches(struct rows *rows, const struct outcome *o)
{
    const struct step_spread *s = &o->spread;
    struct rows one;
    if (s->step_count == 0) {
        rows_skip_column(rows);
        return;
    }
    rows_begin_nested_row(&one, rows, &plan_tables[PLAN_BATCHES]);
    rows_put_number(&one, (double)s->step_count);
    rows_put_number(&one, s->median_s);
    rows_put_number(&one, s->percentile_90_s);
    rows_put_number(&one, s->longest_s);
    rows_put_number(&one, (double)o->won_batch_count);
    rows_end(&one);
}

static void put_products(struct rows *rows, const struct prediction_products *products)
{
    struct rows one;
    if (products->narrow_s <= 0) {
        rows_skip_column(rows);
        return;
    }
    rows_begin_nested_row(&one, rows, &report_tables[REPORT_TABLE_PRODUCTS]);
    report_fill_products(&one, products);
    rows_end(&one);
}

/* Puts the columns that only simulated outcomes have. */
static void put_columns_of_simulated(struct rows *rows, const struct plan_report *r,
                                     const struct outcome *o)
{
    const struct interval *time = &o->intervals.intervals_by_quantity[RESIDUAL_TIME];
    const double step_s = plan_step_s(o);
    rows_put_number(rows, o->rate_bound);
    rows_put_number(rows, step_s);
    put_number_or_skip(rows, interval_is_known(time), interval_low(time, step_s));
    put_number_or_skip(rows, interval_is_known(time), interval_high(time, step_s));
    put_spread_over_batches(rows, o);
    rows_put_number(rows, o->step_sequences);
    put_slowdown(rows, r, o);
    put_products(rows, &o->products);
    rows_put_number(rows, o->bubble_share);
    rows_put_number(rows, o->exposed_copy_share);
    rows_put_number(rows, (double)o->verdict.needed_bytes[LIMIT_DEVICE]);
    rows_put_number(rows, (double)o->verdict.cache_bytes);
    rows_put_number(rows, o->verdict.fits_probability);
    rows_put_number(rows, (double)o->verdict.needed_bytes[LIMIT_HOST]);
}

static void put_outcome(struct rows *rows, const struct plan_report *r, const struct outcome *o)
{
    static const char *const kinds[OUTCOME_KIND_COUNT] = {
        "no room", "refused", "does not fit", "cannot be better", "simulated", "not searched"};
    const bool timed = o->kind == OUTCOME_SIMULATED,
               bounded = o->kind == OUTCOME_BOUND_NOT_BETTER || o->kind == OUTCOME_NOT_SEARCHED;
    struct text options = {0}, command = {0};
    size_t count;
    plan_put_row_options(&options, r, o);
    plan_put_base_command(&command, r);
    text_printf(&command, " %s", options.data);
    rows_put_text(rows, kinds[o->kind]);
    rows_put_text(rows, strategies_list(&count)[o->strategy].name);
    rows_put_text(rows, options.data);
    rows_put_text(rows, command.data);
    rows_put_number(rows, (double)o->sequence_tokens);
    put_number_or_skip(rows, o->is_open_ended,
                       o->is_open_ended ? (double)ladder_longest_tokens(&o->ladder) : 0);
    if (timed)
        put_columns_of_simulated(rows, r, o);
    else
        skip_columns_until_key(rows, "most_tokens_per_s_gpu");
    put_number_or_skip(rows, bounded, o->rate_bound);
    put_number_or_skip(rows, !timed && !bounded, o->missing_bytes);
    text_release(&options);
    text_release(&command);
}

static void put_strategy_results_json(struct rows *rows, const struct plan_report *r,
                                      uint8_t strategy)
{
    const struct strategy_results f = plan_strategy_results(r->best, strategy);
    const struct outcome *o = f.best != NULL ? f.best : f.nearest_unfit;
    const struct lag_by_cause *split = &r->lag_by_cause_by_strategy[strategy];
    struct rows one;
    size_t count;
    if (f.member_count == 0)
        return;
    rows_put_text(rows, strategies_list(&count)[strategy].name);
    rows_put_number(rows, (double)f.member_count);
    rows_put_number(rows, f.rate_bound);
    put_number_or_skip(rows, f.longest_open_ended_outcome != NULL,
                       f.longest_open_ended_outcome != NULL
                           ? (double)ladder_longest_tokens(&f.longest_open_ended_outcome->ladder)
                           : 0);
    if (o != NULL) {
        rows_begin_nested_row(&one, rows, &plan_tables[PLAN_OUTCOME]);
        put_outcome(&one, r, o);
        rows_end(&one);
    } else {
        rows_skip_column(rows);
    }
    put_number_or_skip(rows, split->is_known, split->layout_s);
    put_number_or_skip(rows, split->is_known, split->kernels_s);
    put_number_or_skip(rows, split->is_known, split->framework_s);
}

void plan_report_print_json(struct text *out, const struct plan_report *r)
{
    static const char *const goals[GOAL_COUNT] = {"speed", "gpus", "longest"};
    const struct best *best = r->best;
    struct json_out w = {.out = out};
    size_t strategies;
    strategies_list(&strategies);
    command_begin_json(&w, "plan");
    json_put_text(&w, "goal", goals[best->goal]);
    json_put_count(&w, "gpus", best->gpu_count);
    json_put_text(&w, "only", r->only_framework);
    json_put_count(&w, "configurations", best->row_count);
    json_put_count(&w, "simulated", best->outcome_count_of_kind[OUTCOME_SIMULATED]);
    json_put_count(&w, "not_searched", best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED]);
    if (best->row_count > 0 && best->row[0].kind == OUTCOME_SIMULATED && best->goal != GOAL_LONGEST)
        json_put_number(&w, "proved_gap", best_share_unsimulated_may_gain(best));
    json_put_number(&w, "asked_probability", r->fits_probabilities->asked_probability);
    json_put_number(&w, "taken_probability", r->fits_probabilities->search_probability);
    struct rows rows = {.json = &w};
    if (r->fits_probabilities->less_probable_outcome.kind == OUTCOME_SIMULATED) {
        rows_begin_single_row(&rows, "less_probable", &plan_tables[PLAN_OUTCOME]);
        put_outcome(&rows, r, &r->fits_probabilities->less_probable_outcome);
        rows_end(&rows);
    }
    rows_begin(&rows, "ranking", NULL, &plan_tables[PLAN_OUTCOME]);
    for (size_t i = 0;
         i < best->row_count && i < r->shown_row_count && best->row[i].kind == OUTCOME_SIMULATED;
         i++)
        put_outcome(&rows, r, &best->row[i]);
    rows_end(&rows);
    rows_begin(&rows, "families", NULL, &plan_tables[PLAN_FAMILY]);
    for (size_t s = 0; s < strategies; s++)
        put_strategy_results_json(&rows, r, (uint8_t)s);
    rows_end(&rows);
    json_begin_object(&w, "sensitivities");
    for (int i = 0; i < SENSITIVITIES; i++)
        json_put_number(&w, sensitivity_json_key(i),
                        r->sensitivity[i].step_s > 0 ? r->sensitivity[i].step_s : NAN);
    json_end_object(&w);
    json_end_object(&w);
    text_putc(out, '\n');
}
