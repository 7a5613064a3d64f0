#include "cli/plan/ranking.h"

#include "base/units.h"
#include "cli/report/report.h"
#include "predict/setup/choice_rows.h"

#include <math.h>

struct strategy_results plan_strategy_results(const struct best *best, uint8_t strategy)
{
    struct strategy_results f = {0};
    for (size_t i = 0; i < best->row_count; i++) {
        const struct outcome *o = &best->row[i];
        if (o->strategy != strategy)
            continue;
        f.member_count++;
        if (o->kind == OUTCOME_SIMULATED && f.best == NULL)
            f.best = o;
        if (o->kind == OUTCOME_SIMULATED || o->kind == OUTCOME_BOUND_NOT_BETTER ||
            o->kind == OUTCOME_NOT_SEARCHED)
            f.rate_bound = fmax(f.rate_bound, o->rate_bound);
        f.slower_count += o->kind == OUTCOME_BOUND_NOT_BETTER;
        f.unsearched_count += o->kind == OUTCOME_NOT_SEARCHED;
        if (o->is_open_ended && (f.longest_open_ended_outcome == NULL ||
                                 ladder_longest_tokens(&o->ladder) >
                                     ladder_longest_tokens(&f.longest_open_ended_outcome->ladder)))
            f.longest_open_ended_outcome = o;
        if ((o->kind == OUTCOME_DOES_NOT_FIT || o->kind == OUTCOME_OVER_MEMORY_BOUND) &&
            (f.nearest_unfit == NULL || o->missing_bytes < f.nearest_unfit->missing_bytes))
            f.nearest_unfit = o;
    }
    return f;
}

/* Times are divided by sequences because steps may have different numbers of sequences on the same GPUs. */
enum cause plan_slower_cause(const struct outcome *o, const struct outcome *winner, double *by_s)
{
    enum cause largest_cause = CAUSE_OTHER;
    *by_s = 0;
    if (!o->has_final_causes || !winner->has_final_causes)
        return largest_cause;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        double more_s =
            o->cause_s[c] / o->step_sequences - winner->cause_s[c] / winner->step_sequences;
        if (more_s > *by_s) {
            *by_s = more_s;
            largest_cause = (enum cause)c;
        }
    }
    return largest_cause;
}

void plan_put_slowdown(struct text *out, const struct outcome *o, const struct outcome *winner)
{
    double by_s, loss = 100 * (o->rate_bound / winner->rate_bound - 1);
    enum cause cause = plan_slower_cause(o, winner, &by_s);
    if (fabs(loss) < 0.05) {
        text_puts(out, " (as fast)");
        return;
    }
    text_printf(out, " (%+.1f %%", loss);
    if (by_s > 0) {
        text_puts(out, "; per sequence ");
        report_put_time(out, by_s, by_s);
        text_printf(out, " more: %s", cause_label(cause));
    }
    text_putc(out, ')');
}

void plan_put_needed_device_memory(struct text *out, const struct verdict *v)
{
    units_put_gib(out, (double)v->needed_bytes[LIMIT_DEVICE]);
    if (v->fits_probability < VERDICT_SURE_PROBABILITY) {
        text_puts(out, " (fits ");
        verdict_put_probability(out, v->fits_probability);
        text_putc(out, ')');
    } else if (verdict_is_full_by_cache(v)) {
        text_puts(out, " (");
        units_put_gib(out, (double)v->cache_bytes);
        text_puts(out, " of it cache)");
    }
}

void plan_put_unfit_reason(struct text *out, const struct outcome *o)
{
    struct text odds = {0};
    if (o->missing_bytes > 0 || !o->verdict.fits) {
        units_put_gib(out, o->missing_bytes);
        text_puts(out, " too much");
        return;
    }
    verdict_put_probability(&odds, o->verdict.fits_probability);
    if (odds.size > 0)
        text_printf(out, "fits at most %s", odds.data);
    else
        text_printf(out, "fits with a probability of %.2g at most", o->verdict.fits_probability);
    text_release(&odds);
}

double plan_step_s(const struct outcome *o)
{
    return o->spread.step_count > 0 ? o->spread.median_s : o->step_s;
}

void plan_put_batch_spread(struct text *out, const struct outcome *o)
{
    const struct step_spread *s = &o->spread;
    if (s->step_count == 0)
        return;
    text_puts(out, ", 90 % at most ");
    report_put_time(out, s->percentile_90_s, s->longest_s);
    text_puts(out, ", worst ");
    report_put_time(out, s->longest_s, s->longest_s);
    text_printf(out, " in %zu batch%s", s->step_count, s->step_count == 1 ? "" : "es");
}

void plan_put_batches_won(struct text *out, const struct outcome *o)
{
    if (o->spread.step_count > 1)
        text_printf(out, ", faster than the best in %zu of %zu batches", o->won_batch_count,
                    o->spread.step_count);
    else if (o->spread.step_count == 1)
        text_puts(out, ", in 1 batch");
}

void plan_put_row_options(struct text *out, const struct plan_report *r, const struct outcome *o)
{
    request_put_options(out, &o->request);
    if (r->best->goal != GOAL_LONGEST)
        return;
    text_puts(out, " --seq ");
    units_put_tokens(out, o->sequence_tokens);
}

void plan_put_base_command(struct text *out, const struct plan_report *r)
{
    text_puts(out, r->base_command);
    if (r->best->goal == GOAL_GPUS)
        text_printf(out, " --gpus %zu", r->best->gpu_count);
}

void plan_put_strategy_result(struct text *out, const struct plan_report *r,
                              const struct strategy_results *f)
{
    bool longest = r->best->goal == GOAL_LONGEST;
    if (f->best != NULL && longest) {
        units_put_tokens(out, f->best->sequence_tokens);
        text_puts(out, f->best->is_open_ended ? " tokens at least" : " tokens");
    } else if (f->best != NULL) {
        text_printf(out, "%.1f tokens/s/GPU", f->best->rate_bound);
        plan_put_slowdown(out, f->best, &r->best->row[0]);
    } else if (f->unsearched_count > 0) {
        text_printf(out, "%zu of its %zu configurations were not searched", f->unsearched_count,
                    f->member_count);
    } else if (f->longest_open_ended_outcome != NULL) {
        text_puts(out, "not asked about beyond ");
        units_put_tokens(out, ladder_longest_tokens(&f->longest_open_ended_outcome->ladder));
        text_printf(out, " tokens: %s", ladder_end_reason(&f->longest_open_ended_outcome->ladder));
    } else if (f->slower_count > 0 && longest) {
        text_puts(out, "does not reach the winner's length");
    } else if (f->slower_count > 0) {
        text_printf(out, "at most %.1f tokens/s/GPU by its bounds, so that it was not simulated",
                    f->rate_bound);
    } else if (f->nearest_unfit != NULL) {
        text_puts(out, f->nearest_unfit->missing_bytes > 0 ? "does not fit: " : "");
        plan_put_unfit_reason(out, f->nearest_unfit);
    } else {
        text_puts(out, "cannot be built here");
    }
}
