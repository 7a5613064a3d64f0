/* cli/plan/report_details.c: the details that --all adds to the screen of a search: the ranking, each strategy,
 * each split of the ranks, bounds, and the winner's step on other machines. */
#include "cli/plan/report.h"

#include "base/interrupt.h"
#include "base/units.h"
#include "cli/plan/ranking.h"
#include "cli/report/kernels.h"
#include "cli/report/report.h"
#include "predict/setup/choice_rows.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status find_lag_splits(struct plan_report *r, struct diag *diag)
{
    size_t count;
    const struct outcome *winner = &r->best->row[0], *loser[PLAN_STRATEGIES_MAX] = {NULL};
    strategies_list(&count);
    assert(count <= PLAN_STRATEGIES_MAX);
    if (r->best->goal == GOAL_LONGEST)
        return STATUS_OK;
    for (size_t s = 0; s < count; s++)
        if (s != winner->strategy)
            loser[s] = plan_strategy_results(r->best, (uint8_t)s).best;
    return splits_find_lag_by_cause(r->lag_by_cause_by_strategy, loser, count, winner, r->setup,
                                    diag);
}

enum status plan_report_make(struct plan_report *r, struct diag *diag)
{
    if (r->best->row_count == 0 || r->best->row[0].kind != OUTCOME_SIMULATED)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (r->has_details)
        status = sensitivities_find(r->sensitivity, r->setup, &r->best->row[0].request, diag);
    for (size_t i = 0; i < r->best->row_count && i < r->shown_row_count && status == STATUS_OK; i++)
        if (r->best->row[i].kind == OUTCOME_SIMULATED)
            status = sensitivity_find_intervals(&r->best->row[i].intervals, r->setup,
                                                &r->best->row[i].request, diag);
    return status == STATUS_OK && r->has_details ? find_lag_splits(r, diag) : status;
}

/* ---- details ---- */

/* Appends the shares of the step in which pipeline stages are idle and in which it waits for
 * copies: ", stages idle 7.6 %, waiting for copies 0.1 %". Without a pipeline the first is left
 * out; the second is left out if it is below 0.05 %. */
static void put_idle_shares(struct text *out, const struct outcome *o)
{
    if (o->request.pp > 1)
        text_printf(out, ", stages idle %.1f %%", 100 * o->bubble_share);
    if (o->exposed_copy_share >= 0.0005)
        text_printf(out, ", waiting for copies %.1f %%", 100 * o->exposed_copy_share);
}

static void put_part_seconds(struct text *out, const char *what, double seconds)
{
    text_printf(out, "%s %s", what, seconds <= -5e-10 ? "-" : "");
    report_put_time(out, fabs(seconds), fabs(seconds));
}

/* Appends, under the line of a strategy, a line that splits its loss: "           per sequence: layout 1.2 s, kernels 0
 * s, framework 30 ms". Appends nothing if the split is not known. */
static void put_lag_split(struct text *out, const struct lag_by_cause *split)
{
    if (!split->is_known)
        return;
    text_printf(out, "\n%-11s", "");
    put_part_seconds(out, "per sequence: layout", split->layout_s);
    put_part_seconds(out, ", kernels", split->kernels_s);
    put_part_seconds(out, ", framework", split->framework_s);
}

static void put_ranking_row(struct text *out, const struct plan_report *r, size_t i)
{
    const struct outcome *o = &r->best->row[i];
    char rank[24];
    snprintf(rank, sizeof rank, "%zu", i + 1);
    text_printf(out, "%-11s", rank);
    if (r->best->goal == GOAL_LONGEST) {
        units_put_tokens(out, o->sequence_tokens);
        text_puts(out, o->is_open_ended ? " tokens at least, " : " tokens, ");
    }
    double step_s = plan_step_s(o);
    text_printf(out, "%.1f tokens/s/GPU, step ", o->rate_bound);
    report_put_time(out, step_s, step_s);
    intervals_put_in_brackets(out, " (90 %: ", &o->intervals.intervals_by_quantity[RESIDUAL_TIME],
                              step_s, report_time_format_for(step_s).seconds_per_unit);
    plan_put_batch_spread(out, o);
    if (i > 0)
        plan_put_batches_won(out, o);
    text_puts(out, ", ");
    plan_put_needed_device_memory(out, &o->verdict);
    put_idle_shares(out, o);
    text_puts(out, ": ");
    plan_put_row_options(out, r, o);
    if (i > 0 && r->best->goal != GOAL_LONGEST)
        plan_put_slowdown(out, o, &r->best->row[0]);
    text_putc(out, '\n');
}

/* ---- the splits of the winner's strategy ---- */

static bool have_same_parallel_degrees(const struct request *a, const struct request *b)
{
    return a->tp == b->tp && a->pp == b->pp && a->dp == b->dp && a->cp == b->cp && a->hp == b->hp;
}

/* Both outcomes have the same split of ranks. Returns whether a represents that split better than b: it came nearer
 * to being simulated or, if both have the same kind, it is faster or lacks less memory. */
static bool represents_split_better(const struct outcome *a, const struct outcome *b)
{
    if (a->kind != b->kind)
        return b->kind == OUTCOME_NOT_SEARCHED ||
               (a->kind > b->kind && a->kind != OUTCOME_NOT_SEARCHED);
    if (a->kind == OUTCOME_SIMULATED || a->kind == OUTCOME_BOUND_NOT_BETTER)
        return a->rate_bound > b->rate_bound;
    return a->missing_bytes < b->missing_bytes;
}

/* Appends the line for one split of the ranks into tensor ranks and stages: "tp 16 x pp 2, best of
 * 4 with 64 subsequences: 310.2 tokens/s/GPU, ...". o: the configuration that represents the split;
 * if it was not simulated, the line says what is known of it. members: the number of configurations
 * with this split. */
static void put_line_of_tp_and_pp_split(struct text *out, const struct plan_report *r,
                                        const struct outcome *o, size_t members)
{
    const struct outcome *winner = &r->best->row[0];
    text_printf(out, "%-11stp %lld x pp %lld", "split", (long long)o->request.tp,
                (long long)o->request.pp);
    if (o->request.dp > 1)
        text_printf(out, " x dp %lld", (long long)o->request.dp);
    text_printf(out, ", best of %zu with %lld subsequences: ", members,
                (long long)o->request.subsequences);
    switch (o->kind) {
    case OUTCOME_SIMULATED:
        text_printf(out, "%.1f tokens/s/GPU, ", o->rate_bound);
        plan_put_needed_device_memory(out, &o->verdict);
        put_idle_shares(out, o);
        if (o != winner && winner->kind == OUTCOME_SIMULATED)
            plan_put_slowdown(out, o, winner);
        break;
    case OUTCOME_NOT_SEARCHED:
        text_puts(out, "not searched");
        break;
    case OUTCOME_BOUND_NOT_BETTER:
        text_printf(out, "no more than %.1f tokens/s/GPU", o->rate_bound);
        break;
    case OUTCOME_DOES_NOT_FIT:
    case OUTCOME_OVER_MEMORY_BOUND:
        plan_put_unfit_reason(out, o);
        if (o->kind == OUTCOME_OVER_MEMORY_BOUND)
            text_puts(out, " of states and what cannot leave alone");
        break;
    default:
        text_puts(out, "cannot be built");
    }
    text_putc(out, '\n');
}

/* Appends a line for every split of ranks, if the winner's strategy cuts sequences into subsequences. */
static void put_line_of_each_rank_split(struct text *out, const struct plan_report *r)
{
    size_t count;
    const struct best *best = r->best;
    for (size_t i = 0; i < best->row_count; i++) {
        const struct outcome *o = &best->row[i];
        size_t members = 0;
        bool seen = false;
        if (o->strategy != best->row[0].strategy ||
            !strategies_list(&count)[o->strategy].fills_subsequences)
            continue;
        for (size_t k = 0; k < best->row_count; k++) {
            if (best->row[k].strategy != o->strategy ||
                !have_same_parallel_degrees(&best->row[k].request, &best->row[i].request))
                continue;
            seen = seen || k < i;
            members++;
            o = represents_split_better(&best->row[k], o) ? &best->row[k] : o;
        }
        if (!seen)
            put_line_of_tp_and_pp_split(out, r, o, members);
    }
}

/* ---- the other lines ---- */

/* Appends why no length beyond the winner's was tried, if its search ended before memory was full. */
static void put_why_search_ended(struct text *out, const struct plan_report *r)
{
    const struct outcome *winner = &r->best->row[0];
    if (r->best->row_count == 0 || !winner->is_open_ended || winner->kind != OUTCOME_SIMULATED)
        return;
    text_printf(out, "%-11snot asked about: %s\n", "next", ladder_end_reason(&winner->ladder));
}

static void put_strategy_line(struct text *out, const struct plan_report *r, uint8_t strategy)
{
    size_t count;
    const struct outcome *winner = &r->best->row[0];
    struct strategy_results f = plan_strategy_results(r->best, strategy);
    if (f.member_count == 0 || (winner->kind == OUTCOME_SIMULATED && winner->strategy == strategy))
        return;
    text_printf(out, "%-11s%s: ", "lost", strategies_list(&count)[strategy].name);
    plan_put_strategy_result(out, r, &f);
    if (f.best != NULL) {
        text_puts(out, ": ");
        plan_put_row_options(out, r, f.best);
        put_lag_split(out, &r->lag_by_cause_by_strategy[strategy]);
    } else if (f.unsearched_count == 0 && f.longest_open_ended_outcome == NULL &&
               f.slower_count == 0 && f.nearest_unfit != NULL) {
        text_puts(out, " with ");
        request_put_options(out, &f.nearest_unfit->request);
    }
    text_putc(out, '\n');
}

static void put_sensitivities(struct text *out, const struct plan_report *r)
{
    const struct outcome *winner = &r->best->row[0];
    bool first = true;
    if (interrupt_caught_signal_number() != 0) /* after an interrupt they were not simulated */
        return;
    text_printf(out, "%-11s", "if");
    for (int i = 0; i < SENSITIVITIES; i++) {
        if (!(r->sensitivity[i].step_s > 0))
            continue;
        text_printf(out, "%s%s: %+.1f %%", first ? "" : ", ", sensitivity_name(i),
                    100 * (winner->step_s / r->sensitivity[i].step_s - 1));
        first = false;
    }
    text_puts(out, " tokens/s\n");
}

static void put_search_request(struct text *out, const struct plan_report *r)
{
    static const char *const goals[GOAL_COUNT] = {"most tokens/s/GPU", "fewest GPUs",
                                                  "longest sequence"};
    const struct best *best = r->best;
    text_printf(out, "%-11s%s: %s", "goal", goals[best->goal], r->setup->model.name);
    if (best->goal != GOAL_LONGEST) {
        text_puts(out, ", ");
        units_put_tokens(out, r->setup->request.seq);
        text_puts(out, " tokens");
        if (r->setup->request.global_batch > 0)
            text_printf(out, " x %lld", (long long)r->setup->request.global_batch);
    }
    text_printf(out, ", %zu GPU%s of %s", best->gpu_count, best->gpu_count == 1 ? "" : "s",
                r->setup->cluster.name);
    if (r->only_framework != NULL)
        text_printf(out, ", of what %s expresses", r->only_framework);
    text_putc(out, '\n');
    text_printf(out,
                "%-11s%zu configurations: %zu have no room for states and layer inputs, %zu do not "
                "fit, %zu cannot be better, %zu simulated, %zu cannot be built\n",
                "searched", best->row_count, best->outcome_count_of_kind[OUTCOME_OVER_MEMORY_BOUND],
                best->outcome_count_of_kind[OUTCOME_DOES_NOT_FIT],
                best->outcome_count_of_kind[OUTCOME_BOUND_NOT_BETTER],
                best->outcome_count_of_kind[OUTCOME_SIMULATED],
                best->outcome_count_of_kind[OUTCOME_REFUSED]);
    if (best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0)
        text_printf(out, "%-11s%zu of them were not searched: %s ended the search\n", "left",
                    best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED], best_end_reason(best));
}

/* Appends a speed that none of the configurations that were not simulated exceeds. If one that was
 * not searched may be faster than the winner, appends instead that nothing is proved. Appends
 * nothing if neither is so. members: the number of configurations of the winner's strategy. */
static void put_rate_bound_of_unsimulated(struct text *out, const struct best *best, size_t members)
{
    double most = 0, left = 0;
    for (size_t i = 0; i < best->row_count; i++) {
        if (best->row[i].kind == OUTCOME_BOUND_NOT_BETTER)
            most = fmax(most, best->row[i].rate_bound);
        if (best->row[i].kind == OUTCOME_NOT_SEARCHED)
            left = fmax(left, best->row[i].rate_bound);
    }
    if (left > best->row[0].rate_bound)
        text_printf(out, "%-11snone: one that was not searched may reach %.1f tokens/s/GPU\n",
                    "proof", left);
    else if (most > 0)
        text_printf(out,
                    "%-11sno configuration that was not simulated exceeds %.1f tokens/s/GPU; the "
                    "winner's strategy has %zu\n",
                    "proof", fmax(most, left), members);
}

/* Adds to *kernels, for every strategy, the attention kernels of its first configuration that has a rate. Returns
 * the kernels of the first row of the ranking; ATTENTION_FA2 if that has no rate. */
static enum attention_impl collect_attention_kernels(struct rows_by_attention_kernels *kernels,
                                                     const struct best *best)
{
    size_t strategy_count;
    const struct strategy *table = strategies_list(&strategy_count);
    bool *seen = heap_zalloc(strategy_count, sizeof *seen);
    enum attention_impl attention_impl_of_winner = ATTENTION_FA2;
    for (size_t i = 0; i < best->row_count; i++) {
        const struct outcome *o = &best->row[i];
        struct choices c;
        struct diag diag = {0};
        bool has_speed = o->kind == OUTCOME_SIMULATED || o->kind == OUTCOME_BOUND_NOT_BETTER;
        if (has_speed && !seen[o->strategy] &&
            resolve_choices(&c, &o->request, NULL, &diag) == STATUS_OK) {
            seen[o->strategy] = true;
            kernels_add_row_of_attention_impl(kernels, (enum attention_impl)c.attention_impl,
                                              table[o->strategy].name);
            attention_impl_of_winner =
                i == 0 ? (enum attention_impl)c.attention_impl : attention_impl_of_winner;
        }
        diag_release(&diag);
    }
    free(seen);
    return attention_impl_of_winner;
}

void plan_print_attention_kernels(const struct screen *screen, const struct best *best)
{
    struct rows_by_attention_kernels kernels = {0};
    struct text line = {0};
    enum attention_impl attention_impl_of_winner = collect_attention_kernels(&kernels, best);
    put_attention_kernels_if_differ(&line, &kernels, attention_impl_of_winner);
    if (line.size > 0)
        screen_put_labelled_line(screen, "kernels", line.data);
    text_release(&line);
    kernels_release(&kernels);
}

void plan_report_print_details(struct text *out, const struct plan_report *r)
{
    const struct best *best = r->best;
    bool found = best->row_count > 0 && best->row[0].kind == OUTCOME_SIMULATED;
    size_t strategy_count;
    strategies_list(&strategy_count);
    put_search_request(out, r);
    if (!found && best->row_count == 0 && r->only_framework != NULL)
        text_printf(out,
                    "%-11snothing: %s expresses none of what is left open; --emit %s --emit-winner "
                    "says why of the winner\n",
                    "fits", r->only_framework, r->only_framework);
    else if (!found)
        text_printf(out, "%-11snothing%s\n", "fits",
                    best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0 ? " so far" : "");
    if (found) {
        text_printf(out, "%-11s", "predict");
        plan_put_base_command(out, r);
        text_puts(out, " with the options of a row:\n");
    }
    for (size_t i = 0;
         i < best->row_count && i < r->shown_row_count && best->row[i].kind == OUTCOME_SIMULATED;
         i++)
        put_ranking_row(out, r, i);
    if (found)
        intervals_put_line(out, &best->row[0].intervals);
    if (best->goal != GOAL_LONGEST)
        put_line_of_each_rank_split(out, r);
    put_why_search_ended(out, r);
    for (size_t s = 0; s < strategy_count; s++)
        put_strategy_line(out, r, (uint8_t)s);
    if (!found)
        return;
    struct strategy_results f = plan_strategy_results(best, best->row[0].strategy);
    if (best->goal != GOAL_LONGEST)
        put_rate_bound_of_unsimulated(out, best, f.member_count);
    put_sensitivities(out, r);
}
