/* tests/cli/test_measured_rows.c: published figures predicted from their rows. */
#include "cli/validate/external_setup.h"
#include "predict/validate/validation.h"
#include "schedule/choices/strategies.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "id,source,place,framework,gpu,gpus,seq_len,metric,value,unit,group,against,counts,args\n"

/* Predicts the rows of a text. Release *runs and *v. */
static void predict(struct external_runs *runs, struct validation *v, const char *rows)
{
    struct diag diag = {0};
    struct text text = {0};
    text_puts(&text, COLUMNS);
    text_puts(&text, rows);
    CHECK_INT("parse", external_parse(runs, "rows.csv", text.data, text.size, &diag), STATUS_OK);
    v->setup_loader = external_setup_read_args;
    CHECK_INT("run", validation_run(v, runs, &diag), STATUS_OK);
    CHECK_TEXT("messages", diag.text, "");
    text_release(&text);
    diag_release(&diag);
}

/* True if a row has a measured time, rate, MFU or speed-up of a step, or the time of its attention, under the strategy.
 * 2D attention with one head rank counts as a ring, too. A speed-up that column `counts` leaves out of means does not
 * count. */
static bool is_compared_under_strategy(const struct external_run *row, const char *strategy)
{
    const char *system = row->cells[EXTERNAL_FRAMEWORK];
    bool timed = row->metric == METRIC_TGS || row->metric == METRIC_MFU ||
                 row->metric == METRIC_STEP_MS || row->metric == METRIC_ATTENTION_MS ||
                 row->metric == METRIC_SPEEDUP;
    if (row->metric == METRIC_SPEEDUP && !row->is_counted)
        return false;
    if (strcmp(system, "2d") == 0 && strcmp(strategy, "ring") == 0)
        return timed && strstr(row->cells[EXTERNAL_ARGS], "--hp 1 ") != NULL;
    return timed && strcmp(system, strategy) == 0;
}

static void a_strategy_was_compared_on_as_many_ranks_as_it_says(void)
{
    size_t count;
    const struct strategy *strategies = strategies_list(&count);
    struct external_runs rows = {0};
    CHECK_INT("loaded",
              external_load(&rows, check_path("../traces/published/measurements.csv"), NULL),
              STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        int64_t most = 0;
        for (size_t k = 0; k < rows.row_count; k++)
            if (is_compared_under_strategy(&rows.rows[k], strategies[i].name) &&
                rows.rows[k].gpus > most)
                most = rows.rows[k].gpus;
        CHECK_INT(strategies[i].name, strategies[i].max_compared_ranks, most);
    }
    external_release(&rows);
}

#define GPT "--model gpt-2.7b --cluster dgx-a100 --gpus 4 --strategy ulysses --seq "

/* A speed-up divides the rate of the args by that of `against`. */
static void speedup_is_rate_over_baseline_rate(void)
{
    struct external_runs rows = {0};
    struct validation v = {0};
    predict(&rows, &v,
            "a,S,1,u,a100,4,8192,tgs,1,tokens/s/gpu,,,," GPT "8K --checkpoint none\n"
            "b,S,1,u,a100,4,8192,tgs,1,tokens/s/gpu,,,," GPT "8K --checkpoint full\n"
            "c,S,1,u,a100,4,8192,speedup,1.2,ratio,," GPT "8K --checkpoint full,," GPT
            "8K --checkpoint none\n");
    CHECK_INT("outcome", v.row[2].result.outcome, OUTCOME_OK);
    CHECK_CLOSE("quotient", v.row[2].result.predicted,
                v.row[0].result.predicted / v.row[1].result.predicted, 1e-9);
    CHECK("recomputing takes longer", v.row[2].result.predicted > 1.1);
    validation_release(&v);
    external_release(&rows);
}

/* A longest length is that of the longest layout of its group that fits; a layout itself is compared with nothing. */
static void a_longest_length_is_searched_among_layouts(void)
{
    struct external_runs rows = {0};
    struct validation v = {0};
    predict(&rows, &v,
            "a,S,1,u,a100,4,,max_seq_len,65536,tokens,lengths=x,,," GPT "8K\n"
            "b,S,4,u,a100,4,8192,layout,,,lengths=x,,," GPT "8K\n"
            "c,S,4,u,a100,4,65536,layout,,,lengths=x,,," GPT "64K\n"
            "d,S,4,u,a100,4,16777216,layout,,,lengths=x,,," GPT "16M\n"
            "e,S,4,u,a100,4,131072,layout,,,lengths=y,,," GPT "128K\n"
            "f,S,1,u,a100,4,,max_seq_len,8192,tokens,lengths=x,,least," GPT "8K\n");
    CHECK_INT("right", v.row[0].result.outcome, OUTCOME_RIGHT);
    CHECK_CLOSE("longest", v.row[0].result.predicted, 65536, 0);
    CHECK("beyond", !v.answer[v.row[0].run_index].verdict_on_next_length_or_against.fits);
    CHECK_INT("layout", v.row[1].result.outcome, OUTCOME_NOT_COMPARABLE);
    CHECK_INT("at least", v.row[5].result.outcome, OUTCOME_RIGHT);
    validation_release(&v);
    external_release(&rows);
}

/* Column `counts` decides whether a row is part of means, and gives the reason why not. A column
 * that contradicts the args is an error. */
static void counts_column_leaves_rows_out(void)
{
    struct external_runs rows = {0};
    struct validation v = {0};
    predict(&rows, &v,
            "a,S,1,u,a100,4,8192,mfu,0.3,fraction,,,," GPT "8K\n"
            "b,S,1,u,a100,4,8192,mfu,0.3,fraction,,,a reason," GPT "8K\n"
            "c,S,1,u,a100,8,8192,mfu,0.3,fraction,,,," GPT "8K\n"
            "d,S,1,u,a100,4,8192,mfu,0.3,fraction,,,," GPT "8K --mfu fpdt\n");
    CHECK("counted", v.row[0].counts_in_means && !v.row[1].counts_in_means);
    CHECK_TEXT("why", v.row[1].remark, "a reason");
    CHECK_INT("one prediction", (int64_t)v.row[1].run_index, (int64_t)v.row[0].run_index);
    CHECK_INT("outcome", v.row[2].result.outcome, OUTCOME_PREDICTION_FAILED);
    CHECK_TEXT("contradiction", v.row[2].result.status_reason,
               "the options in column args make 4, but column gpus says 8");
    CHECK("the convention is one of the args",
          fabs(v.row[3].result.predicted / v.row[0].result.predicted - 1) > 0.01);
    validation_release(&v);
    external_release(&rows);
}

static const struct check_case cases[] = {
    {"a strategy was compared on as many ranks as it says",
     a_strategy_was_compared_on_as_many_ranks_as_it_says},
    {"a speed-up divides by the run against it", speedup_is_rate_over_baseline_rate},
    {"a longest length is searched among layouts", a_longest_length_is_searched_among_layouts},
    {"columns decide", counts_column_leaves_rows_out},
};
CHECK_MAIN("measured_rows", cases)
