/* cli/plan/screen.c: the screen of a search. It has the best configuration and its command, the next ones, and the best
 * step of each other strategy. */
#include "base/interrupt.h"
#include "base/units.h"
#include "cli/plan/ranking.h"
#include "cli/report/report.h"
#include "predict/plan/all_batches.h"
#include "predict/setup/at_most.h"
#include "schedule/choices/products.h"
#include "schedule/choices/strategies.h"

#include <stdlib.h>

/* Appends the length of an outcome, "824K tokens, ", if lengths are searched for. */
static void put_length(struct text *out, const struct plan_report *r, const struct outcome *o)
{
    if (r->best->goal != GOAL_LONGEST)
        return;
    units_put_tokens(out, o->sequence_tokens);
    text_puts(out, o->is_open_ended ? " tokens at least, " : " tokens, ");
}

/* Appends what a step of the outcome computes: " for 4 sequences of 1M tokens". The number of sequences differs between
 * outcomes if the search may choose the number of data-parallel ranks. */
static void put_step_workload(struct text *out, const struct outcome *o, int64_t tokens)
{
    text_printf(out, " for %.0f sequence%s of ", o->step_sequences,
                o->step_sequences == 1 ? "" : "s");
    units_put_tokens(out, tokens);
    text_puts(out, " tokens");
}

static void print_winner(const struct screen *screen, const struct plan_report *r)
{
    static const char *const answers[GOAL_COUNT] = {"Fastest", "Fewest GPUs", "Longest"};
    const struct best *best = r->best;
    const struct outcome *o = &best->row[0];
    bool open = best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0 ||
                o->verdict.fits_probability < VERDICT_SURE_PROBABILITY;
    struct text rest = {0};
    text_puts(&rest, best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0 ? " so far: " : ": ");
    if (best->goal == GOAL_GPUS)
        text_printf(&rest, "%zu, ", best->gpu_count);
    put_length(&rest, r, o);
    double step_s = plan_step_s(o);
    text_printf(&rest, "%.1f tokens/s/GPU, a %sstep of ", o->rate_bound,
                o->spread.step_count > 0 ? "median " : "");
    report_put_time(&rest, step_s, step_s);
    intervals_put_in_brackets(&rest, " (90 %: ", &o->intervals.intervals_by_quantity[RESIDUAL_TIME],
                              step_s, report_time_format_for(step_s).seconds_per_unit);
    put_step_workload(&rest, o,
                      best->goal == GOAL_LONGEST ? o->sequence_tokens : r->setup->request.seq);
    text_puts(&rest, "; a GPU needs ");
    plan_put_needed_device_memory(&rest, &o->verdict);
    text_putc(&rest, '.');
    screen_put_verdict(screen, open ? SCREEN_BORDERLINE : SCREEN_GOOD, answers[best->goal],
                       rest.data);
    text_release(&rest);
}

/* Prints an outcome that is better than the winner, but fits with a lower probability than was asked for. If nothing
 * fits with the probability that was asked for, prints instead that the winner is the safest. Otherwise prints
 * nothing. */
static void print_fit_probability(const struct screen *screen, const struct plan_report *r)
{
    const struct best *best = r->best;
    const struct outcome *o = &r->fits_probabilities->less_probable_outcome,
                         *winner = &best->row[0];
    struct text text = {0};
    if (r->fits_probabilities->search_probability < r->fits_probabilities->asked_probability) {
        text_printf(&text, "No configuration fits with a probability of %g; this is the safest.",
                    r->fits_probabilities->asked_probability);
    } else if (o->kind == OUTCOME_SIMULATED) {
        text_puts(&text, "Less sure: ");
        if (best->goal == GOAL_GPUS)
            text_printf(&text, "%zu GPU%s", r->fits_probabilities->less_probable_gpu_count,
                        r->fits_probabilities->less_probable_gpu_count == 1 ? "" : "s");
        else if (best->goal == GOAL_LONGEST)
            units_put_tokens(&text, o->sequence_tokens);
        else
            text_printf(&text, "%.1f %% faster", 100 * (o->rate_bound / winner->rate_bound - 1));
        text_puts(&text, best->goal == GOAL_LONGEST ? " tokens fit " : ", but fits only ");
        verdict_put_probability(&text, o->verdict.fits_probability);
        text_puts(&text, ": ");
        plan_put_row_options(&text, r, o);
    }
    if (text.size > 0)
        screen_put_wrapped_text(screen, text.data);
    text_release(&text);
}

/* Prints that nothing fits and, if configurations lack memory, the one that lacks the least; or
 * that the framework of --only expresses none of the configurations. */
static void print_nothing_fits(const struct screen *screen, const struct plan_report *r)
{
    const struct best *best = r->best;
    const struct outcome *nearest = NULL;
    struct text rest = {0};
    for (size_t i = 0; i < best->row_count; i++) {
        const struct outcome *o = &best->row[i];
        if ((o->kind == OUTCOME_DOES_NOT_FIT || o->kind == OUTCOME_OVER_MEMORY_BOUND) &&
            (nearest == NULL || o->missing_bytes < nearest->missing_bytes))
            nearest = o;
    }
    text_puts(&rest, best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0 ? " so far" : "");
    if (best->row_count == 0 && r->only_framework != NULL) {
        text_printf(&rest,
                    ": %s expresses none of what is left open; --emit %s --emit-winner says why of "
                    "the winner.",
                    r->only_framework, r->only_framework);
    } else if (nearest != NULL) {
        text_puts(&rest, ": the nearest lacks ");
        units_put_gib(&rest, nearest->missing_bytes);
        text_puts(&rest, " with ");
        plan_put_row_options(&rest, r, nearest);
        text_putc(&rest, '.');
    } else {
        text_putc(&rest, '.');
    }
    screen_put_verdict(screen, SCREEN_BAD, "Nothing fits", rest.data);
    text_release(&rest);
}

/* Appends what is proved about the configurations that were not simulated: by how much one of them
 * may be faster than the best or, if the longest sequence is searched for, whether one may take a
 * longer one. With the goal of fewest GPUs, says first what is known of the next smaller number. */
static void put_bound_of_unsimulated(struct text *out, const struct best *best)
{
    double gap = best->goal == GOAL_LONGEST ? 0 : best_share_unsimulated_may_gain(best);
    if (best->goal == GOAL_LONGEST && best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0)
        text_puts(out, "nothing yet: one that was not searched may take a longer sequence");
    else if (best->goal == GOAL_LONGEST && best->row[0].is_open_ended)
        text_puts(out, "nothing beyond the best's sequence: no longer one was asked about");
    else if (best->goal == GOAL_LONGEST)
        text_puts(out, "no configuration fits a sequence that is a step longer than the best's");
    if (best->goal == GOAL_LONGEST)
        return;
    if (best->goal == GOAL_GPUS && best->gpu_count > 1 &&
        best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] == 0)
        text_puts(out, best->has_unfinished_search_on_fewer_gpus
                           ? "a smaller number of GPUs was not searched to its end; on these "
                           : "no configuration fits on the next smaller number of GPUs; on these ");
    if (gap < 0.0005)
        text_puts(out, "no configuration that was not simulated can be faster than the best");
    else
        text_printf(out,
                    "no configuration that was not simulated can be more than %.1f %% faster than "
                    "the best",
                    100 * gap);
}

static void print_search_request(const struct screen *screen, const struct plan_report *r)
{
    const struct best *best = r->best;
    const struct setup *setup = r->setup;
    struct text line = {0};
    text_puts(&line, setup->model.name);
    if (best->goal != GOAL_LONGEST) {
        const long long batch = (long long)setup->request.global_batch;
        if (batch > 0)
            text_printf(&line, ", %lld sequence%s of ", batch, batch == 1 ? "" : "s");
        else
            text_puts(&line, ", sequences of ");
        units_put_tokens(&line, setup->request.seq);
        text_puts(&line,
                  batch > 0 ? " tokens a step" : " tokens, as many a step as the layout takes");
    }
    text_printf(&line, ", %zu GPU%s of %s", best->gpu_count, best->gpu_count == 1 ? "" : "s",
                setup->cluster.name);
    if (r->only_framework != NULL)
        text_printf(&line, ", of what %s expresses", r->only_framework);
    screen_put_labelled_line(screen, "model", line.data);
    line.size = 0;
    text_printf(&line,
                "%zu configurations: %zu simulated, %zu that cannot be better, %zu that do "
                "not fit, %zu that cannot be built",
                best->row_count, best->outcome_count_of_kind[OUTCOME_SIMULATED],
                best->outcome_count_of_kind[OUTCOME_BOUND_NOT_BETTER],
                best->outcome_count_of_kind[OUTCOME_OVER_MEMORY_BOUND] +
                    best->outcome_count_of_kind[OUTCOME_DOES_NOT_FIT],
                best->outcome_count_of_kind[OUTCOME_REFUSED]);
    if (best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED] > 0)
        text_printf(&line, ", %zu not searched: %s ended the search",
                    best->outcome_count_of_kind[OUTCOME_NOT_SEARCHED], best_end_reason(best));
    screen_put_labelled_line(screen, "searched", line.data);
    line.size = 0;
    if (setup->mask_of_reasons_run_does_less != 0) {
        text_puts(&line, "what does not fit may fit, since its memory and time are at most those "
                         "that are predicted: ");
        at_most_put_reasons(&line, setup->mask_of_reasons_run_does_less);
        screen_put_labelled_line(screen, "at most", line.data);
        line.size = 0;
    }
    if (best->row_count > 0 && best->row[0].kind == OUTCOME_SIMULATED) {
        put_bound_of_unsimulated(&line, best);
        screen_put_labelled_line(screen, "proved", line.data);
        const struct outcome *winner = &best->row[0];
        report_print_products(&(struct sheet){.screen = screen}, &winner->products,
                              products_names[winner->request.products], winner->step_s);
    }
    text_release(&line);
}

/* Prints the spread of the winner's steps over packed batches, and how many configurations were simulated on all
 * batches, on COMPARED_FIRST of them, and on one. Prints nothing without documents. */
static void print_spread_over_batches(const struct screen *screen, const struct best *best)
{
    const struct outcome *o = &best->row[0];
    size_t all = o->spread.step_count, on_all = 0, on_some = 0, on_one = 0;
    struct text line = {0};
    if (all == 0)
        return;
    for (size_t i = 0; i < best->row_count && best->row[i].kind == OUTCOME_SIMULATED; i++) {
        size_t steps = best->row[i].spread.step_count;
        on_all += steps == all;
        on_some += steps < all && steps > 1;
        on_one += steps < all && steps == 1;
    }
    text_puts(&line, "median ");
    report_put_time(&line, o->spread.median_s, o->spread.longest_s);
    plan_put_batch_spread(&line, o);
    text_printf(&line, "; %zu configuration%s simulated on all", on_all,
                on_all == 1 ? " was" : "s were");
    if (on_some > 0)
        text_printf(&line, ", %zu on %d", on_some, COMPARED_FIRST);
    if (on_one > 0)
        text_printf(&line, ", %zu on 1", on_one);
    screen_put_labelled_line(screen, "batches", line.data);
    text_release(&line);
}

/* Prints the command of the best configuration, and the options of the next ones. */
static void print_ranking(const struct screen *screen, const struct plan_report *r)
{
    enum { INDENT = 5 };
    const struct best *best = r->best;
    struct text line = {0};
    screen_put_heading(screen, "The best, as a command");
    plan_put_base_command(&line, r);
    text_putc(&line, ' ');
    plan_put_row_options(&line, r, &best->row[0]);
    screen_put_command(screen, line.data);
    for (size_t i = 1;
         i < best->row_count && i < r->shown_row_count && best->row[i].kind == OUTCOME_SIMULATED;
         i++) {
        const struct outcome *o = &best->row[i];
        if (i == 1)
            screen_put_heading(screen, "What comes after it");
        line.size = 0;
        put_length(&line, r, o);
        text_printf(&line, "%.1f tokens/s/GPU, ", o->rate_bound);
        plan_put_needed_device_memory(&line, &o->verdict);
        if (best->goal != GOAL_LONGEST)
            plan_put_slowdown(&line, o, &best->row[0]);
        plan_put_batches_won(&line, o);
        text_puts(&line, ": ");
        plan_put_row_options(&line, r, o);
        text_printf(screen->out, "  %-2zu ", i + 1);
        screen_wrap(screen->out, line.data, INDENT, INDENT, screen->width);
    }
    text_release(&line);
}

static void print_other_strategies(const struct screen *screen, const struct plan_report *r)
{
    size_t count;
    const struct strategy *table = strategies_list(&count);
    const struct outcome *winner = &r->best->row[0];
    bool found = winner->kind == OUTCOME_SIMULATED, first = true;
    for (size_t s = 0; s < count; s++) {
        struct strategy_results f = plan_strategy_results(r->best, (uint8_t)s);
        struct text line = {0};
        if (f.member_count == 0 || (found && winner->strategy == s))
            continue;
        if (first)
            screen_put_heading(screen, found ? "What other strategies reach" : "What each lacks");
        first = false;
        plan_put_strategy_result(&line, r, &f);
        screen_put_labelled_line(screen, table[s].name, line.data);
        text_release(&line);
    }
}

void plan_report_print(const struct screen *screen, const struct plan_report *r)
{
    const struct best *best = r->best;
    bool found = best->row_count > 0 && best->row[0].kind == OUTCOME_SIMULATED;
    if (found)
        print_winner(screen, r);
    else
        print_nothing_fits(screen, r);
    if (found)
        print_fit_probability(screen, r);
    text_putc(screen->out, '\n');
    print_search_request(screen, r);
    if (found)
        print_spread_over_batches(screen, best);
    if (found)
        plan_print_attention_kernels(screen, best);
    if (found)
        print_ranking(screen, r);
    if (best->row_count > 0)
        print_other_strategies(screen, r);
    if (found) {
        const struct outcome *winner = &best->row[0];
        screen_put_heading(screen, "How sure this is");
        report_print_intervals(&(struct sheet){.screen = screen}, &winner->intervals,
                               winner->step_s, &winner->verdict);
    }
    if (r->has_details) {
        struct text details = {0};
        screen_put_heading(screen, "Details");
        plan_report_print_details(&details, r);
        screen_wrap_labelled(screen->out, details.data, PLAN_LABEL, screen->width);
        text_release(&details);
    } else if (found) {
        screen_put_heading(screen, "What to try next");
        screen_put_wrapped_text(
            screen, "Add --all to see why others lost, --top N for more of them, --emit "
                    "torchtitan, megatron or deepspeed for settings, or -o DIR for a "
                    "page of the best.");
    }
}
