#include "cli/plan/winner_settings.h"

#include "base/interrupt.h"
#include "base/units.h"
#include "cli/plan/ranking.h"
#include "cli/plan/settings.h"
#include "cli/report/report.h"
#include "predict/plan/probable.h"
#include "predict/setup/choice_rows.h"
#include "schedule/config/resolve_config.h"

#include <float.h>
#include <math.h>

static enum status put_settings(struct text *out, enum framework framework,
                                const struct request *request, struct diag *diag)
{
    struct choices choices;
    enum status status = resolve_choices(&choices, request, NULL, diag);
    if (status == STATUS_OK)
        status = settings_print(out, framework, &choices, diag);
    return status;
}

static void put_gpu_count_line(struct text *out, int64_t gpus)
{
    text_printf(out, "# %lld GPU%s; written by longhaul plan\n", (long long)gpus,
                gpus == 1 ? "" : "s");
}

enum status plan_print_settings_of_request(struct text *out, enum framework framework,
                                           const struct request *request, struct diag *diag)
{
    put_gpu_count_line(out, request->ranks);
    return put_settings(out, framework, request, diag);
}

/* Appends the best outcome: the length or the number of GPUs, if the goal asks for it, its rate, and its options: "768K
 * tokens, 310.2 tokens/s/GPU: --strategy ...". */
static void put_outcome(struct text *out, const struct best *best)
{
    const struct outcome *o = &best->row[0];
    if (best->goal == GOAL_LONGEST) {
        units_put_tokens(out, o->sequence_tokens);
        text_puts(out, " tokens, ");
    }
    if (best->goal == GOAL_GPUS)
        text_printf(out, "%zu GPU%s, ", best->gpu_count, best->gpu_count == 1 ? "" : "s");
    text_printf(out, "%.1f tokens/s/GPU: ", o->rate_bound);
    request_put_options(out, &o->request);
    text_putc(out, '\n');
}

static void put_outcome_as_comment_line(struct text *out, const char *what, const struct best *best)
{
    text_printf(out, "# %s: ", what);
    put_outcome(out, best);
}

/* Appends the line with the prediction of an outcome: "# predicted: a step of 5.60 s (90 %: 4.37 to 8.82); a GPU needs
 * 32.1 GiB (90 %: ...) of its 79.1 GiB, P(fits) 0.99". */
static void put_prediction_line(struct text *out, const struct outcome *o)
{
    const double step_s = plan_step_s(o), needed = (double)o->verdict.needed_bytes[LIMIT_DEVICE];
    text_puts(out, "# predicted: a step of ");
    report_put_time(out, step_s, step_s);
    intervals_put_in_brackets(out, " (90 %: ", &o->intervals.intervals_by_quantity[RESIDUAL_TIME],
                              step_s, report_time_format_for(step_s).seconds_per_unit);
    text_puts(out, "; a GPU needs ");
    units_put_gib(out, needed);
    intervals_put_in_brackets(out, " (90 %: ", &o->intervals.intervals_by_quantity[RESIDUAL_MEMORY],
                              needed, 0x1p30);
    if (verdict_margin_bytes(&o->verdict, LIMIT_DEVICE) < DBL_MAX) {
        text_puts(out, " of its ");
        units_put_gib(out, (double)o->verdict.available_bytes[LIMIT_DEVICE]);
    }
    text_printf(out, ", P(fits) %.2f\n", o->verdict.fits_probability);
}

/* Appends how far the best of `own` is from the best of `all`, by the measure of the goal: "12.3 %
 * slower than", "as fast as", or "2 times as many GPUs as". */
static void put_how_much_worse_than_best(struct text *out, const struct best *own,
                                         const struct best *all)
{
    const struct outcome *a = &own->row[0], *b = &all->row[0];
    if (all->goal == GOAL_GPUS && own->gpu_count != all->gpu_count) {
        text_printf(out, "%.3g times as many GPUs as",
                    (double)own->gpu_count / (double)all->gpu_count);
        return;
    }
    bool length = all->goal == GOAL_LONGEST && a->sequence_tokens != b->sequence_tokens;
    double part = length ? (double)a->sequence_tokens / (double)b->sequence_tokens
                         : a->rate_bound / b->rate_bound;
    double percent = 100 * (part - 1);
    if (fabs(percent) < 0.05)
        text_puts(out, "as fast as");
    else
        text_printf(out, "%.1f %% %s than", fabs(percent),
                    length        ? percent < 0 ? "shorter" : "longer"
                    : percent < 0 ? "slower"
                                  : "faster");
}

enum status plan_print_settings_of_winner(struct text *out, enum framework framework,
                                          const struct best *all, struct diag *diag)
{
    put_gpu_count_line(out, all->row[0].request.ranks);
    put_outcome_as_comment_line(out, "the winner of all strategies", all);
    put_prediction_line(out, &all->row[0]);
    return put_settings(out, framework, &all->row[0].request, diag);
}

enum status plan_print_best_expressible_settings(struct text *out, enum framework framework,
                                                 const struct best *all, struct setup *setup,
                                                 struct space_open open, struct diag *diag)
{
    struct best own = {.limits = all->limits};
    struct text name = {0};
    open.only_framework = &framework;
    if (space_allows_request(&open, &all->row[0].request))
        return plan_print_settings_of_winner(out, framework, all, diag);
    struct fits_probabilities_of_winner fits_probabilities;
    enum status status = probable_find(&fits_probabilities, &own, all->goal, setup, open,
                                       setup->fits_probability, diag);
    if (status == STATUS_OK) {
        const struct request *request = &own.row[0].request;
        put_gpu_count_line(out, request->ranks);
        text_printf(&name, "the best %sthat %s expresses",
                    interrupt_caught_signal_number() != 0 ? "so far " : "",
                    framework_names[framework]);
        put_outcome_as_comment_line(out, name.data, &own);
        put_prediction_line(out, &own.row[0]);
        text_puts(out, "# ");
        put_how_much_worse_than_best(out, &own, all);
        text_printf(out,
                    " the winner of all strategies with profile %s, for which see --emit-winner: ",
                    setup->request.profile);
        put_outcome(out, all);
        status = put_settings(out, framework, request, diag);
    } else if (status == STATUS_NO) {
        text_printf(out, "# nothing that %s expresses fits\n", framework_names[framework]);
        put_outcome_as_comment_line(
            out, "the winner of all strategies, for which see --emit-winner", all);
    }
    text_release(&name);
    best_release(&own);
    return status;
}

enum status plan_print_settings_if_interrupted(struct text *out, enum framework framework,
                                               const struct best *all, struct space_open open,
                                               bool winner, struct diag *diag)
{
    text_printf(
        out,
        "# the search was ended by %s: %zu of %zu configurations were not searched, and one "
        "of them may be better\n",
        best_end_reason(all), all->outcome_count_of_kind[OUTCOME_NOT_SEARCHED], all->row_count);
    open.only_framework = &framework;
    for (size_t i = 0; i < all->row_count && all->row[i].kind == OUTCOME_SIMULATED; i++) {
        struct best one = *all;
        one.row = &all->row[i];
        if (!winner && !space_allows_request(&open, &one.row->request))
            continue;
        put_gpu_count_line(out, one.row->request.ranks);
        put_outcome_as_comment_line(out, "the best so far", &one);
        put_prediction_line(out, &one.row[0]);
        return put_settings(out, framework, &one.row->request, diag);
    }
    text_printf(out, "# nothing that was searched fits and is what %s expresses\n",
                framework_names[framework]);
    if (all->row_count > 0 && all->row[0].kind == OUTCOME_SIMULATED)
        put_outcome_as_comment_line(out, "the best so far, for which see --emit-winner", all);
    return STATUS_NO;
}
