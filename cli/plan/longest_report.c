#include "cli/plan/longest_report.h"

#include "base/interrupt.h"
#include "base/json_write.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "predict/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
static const struct column option_columns[] = {
    {"option", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"longest_tokens", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"asked_tokens", NULL, NULL, COLUMN_COUNT | COLUMN_OPTIONAL, 0,
     "Set if no longer sequence was tried."},
};
const struct row_table longest_table = {"plan_longest_option", option_columns,
                                        ARRAY_LEN(option_columns)};

/* ---- text ---- */

static void put_tokens(struct text *out, int64_t tokens)
{
    units_put_tokens(out, tokens);
    text_printf(out, " tokens");
}

static void print_step_time(const struct screen *screen, const struct prediction *p)
{
    const struct intervals intervals = intervals_of_prediction(p);
    struct text line = {0};
    report_put_time(&line, p->sim.step_s, p->sim.step_s);
    intervals_put_in_brackets(&line, " (90 %: ", &intervals.intervals_by_quantity[RESIDUAL_TIME],
                              p->sim.step_s,
                              report_time_format_for(p->sim.step_s).seconds_per_unit);
    text_printf(&line, ", %.1f tokens/s/GPU", p->tokens_per_s_gpu);
    screen_put_labelled_line(screen, "step", line.data);
    text_release(&line);
}

/* Prints what is in memory at the moment that needs most: "activations 61.2 GiB, ..., op 966 (cross_entropy,
 * forward)". */
static void print_peak(const struct screen *screen, const struct prediction *p)
{
    const struct sim_peak *peak = prediction_device_memory_peak(p);
    struct text line = {0}, piece = {0};
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        if (peak->category_bytes[c] == 0)
            continue;
        text_printf(&piece, "%s ", category_labels[c]);
        units_put_gib(&piece, (double)peak->category_bytes[c]);
        report_put_piece_after_comma(&line, &piece);
    }
    if (peak->op != IR_NONE) {
        text_printf(&piece, "op %u (%s, %s)", prediction_find_op_in_whole_list(p, peak->op).id,
                    work_kind_info((enum work_kind)p->ir.op.kind[peak->op])->name,
                    phase_names[p->ir.op.phase[peak->op]]);
        report_put_piece_after_comma(&line, &piece);
    }
    screen_put_labelled_line(screen, "at its peak", line.data);
    text_release(&piece);
    text_release(&line);
}

/* Appends why the next length does not fit: "825K tokens: device memory needs ... (213 MiB too
 * much), 223346688 bytes"; that it fits with a smaller probability than was asked for; or, if no
 * longer one was tried, why not. */
static void put_why_next_length_fails(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    if (l->shortest_unfit_tokens == 0) {
        text_printf(out, "not asked about: %s",
                    l->is_interrupted ? interrupt_describe_signal()
                                      : ladder_end_reason(&r->ladder));
        return;
    }
    put_tokens(out, l->shortest_unfit_tokens);
    if (l->refusal_of_shortest_unfit[0] != '\0') {
        text_printf(out, ": refused: %s", l->refusal_of_shortest_unfit);
        return;
    }
    const char *between = ": ";
    for (int limit = 0; limit < LIMIT_COUNT; limit++) {
        if (verdict_margin_bytes(&l->verdict_of_shortest_unfit, (enum limiting_memory_kind)limit) >=
            0)
            continue;
        text_printf(out, "%s%s ", between, prediction_limit_name((enum limiting_memory_kind)limit));
        verdict_print(out, &l->verdict_of_shortest_unfit, (enum limiting_memory_kind)limit);
        text_printf(
            out, ", %.0f bytes",
            -verdict_margin_bytes(&l->verdict_of_shortest_unfit, (enum limiting_memory_kind)limit));
        between = "; ";
    }
    if (l->verdict_of_shortest_unfit.fits) {
        text_puts(out, ": fits only ");
        verdict_put_probability(out, l->verdict_of_shortest_unfit.fits_probability);
    }
}

/* Appends the longest length that fits with a smaller probability than was asked for: "728K tokens fit in 6 of 10
 * cases". */
static void put_less_probable_length(struct text *out, const struct longest_certificate *r)
{
    put_tokens(out, r->less_probable_longest.tokens);
    text_puts(out, " fit ");
    verdict_put_probability(out, r->less_probable_longest.verdict.fits_probability);
}

/* Appends the first SHOWN of the options with each of which a longer sequence fits, or that there
 * is none. After an interrupt, says that others were not searched. */
static void put_enabling_options(struct text *out, const struct longest_certificate *r)
{
    enum { SHOWN = 4 };
    for (size_t i = 0; i < r->longest_with_option_count && i < SHOWN; i++) {
        text_printf(out, "%s%s: %s", i > 0 ? ", " : "", r->longest_length_with_option[i].option,
                    r->longest_length_with_option[i].tokens_if_longer_may_fit > 0 ? "at least "
                                                                                  : "");
        units_put_tokens(out, r->longest_length_with_option[i].tokens);
    }
    if (interrupt_caught_signal_number() != 0)
        text_printf(out, "%s other options were not searched: %s ended the search",
                    r->longest_with_option_count > 0 ? " fits;" : "", interrupt_describe_signal());
    else
        text_puts(out, r->longest_with_option_count == 0
                           ? "no one other option makes a longer sequence fit"
                           : " fits");
}

/* Appends the longest length: "824K tokens (843776), in steps of 1024, 22 lengths asked about". If
 * all lengths that were tried fit, it is "at least 1732K tokens ..."; if the shortest does not fit,
 * "none: 1K tokens do not fit". If the search ended before a length was found that fits, it is "not
 * known: no length that was asked about fits". */
static void put_longest_length(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    if (l->tokens == 0 && l->is_interrupted) {
        text_puts(out, "not known: no length that was asked about fits");
        return;
    }
    if (l->tokens == 0) {
        text_puts(out, "none: ");
        put_tokens(out, ladder_tokens_of_rung(&r->ladder, 0));
        text_puts(out, " do not fit");
        return;
    }
    text_puts(out, longest_is_lower_bound(l) ? "at least " : "");
    put_tokens(out, l->tokens);
    text_printf(out, " (%lld), in steps of %lld, %u lengths asked about", (long long)l->tokens,
                (long long)r->ladder.first_length_or_step_tokens, l->built_length_count);
}

static void print_fit_probability(const struct screen *screen, const struct verdict *v)
{
    struct text line = {0};
    text_printf(&line, "%s ", prediction_limit_name(v->limiting_memory));
    verdict_print(&line, v, v->limiting_memory);
    verdict_put_probability_or_cache(&line, v);
    screen_put_labelled_line(screen, "fits", line.data);
    text_release(&line);
}

static void print_workload(const struct screen *screen, const struct prediction *p)
{
    const struct report at = {.prediction = p};
    struct text line = {0};
    report_put_workload(&line, &at);
    screen_put_labelled_line(screen, "model", line.data);
    line.size = 0;
    report_put_choices(&line, &at);
    screen_put_labelled_line(screen, "layout", line.data);
    text_release(&line);
}

/* Prints a line with a label, whose text is appended by put(). */
static void print_labelled_line(const struct screen *screen, const char *label,
                                void (*put)(struct text *, const struct longest_certificate *),
                                const struct longest_certificate *r)
{
    struct text line = {0};
    put(&line, r);
    screen_put_labelled_line(screen, label, line.data);
    text_release(&line);
}

void longest_report_print(const struct screen *screen, const struct longest_certificate *r,
                          bool all)
{
    const struct longest *l = &r->longest;
    print_labelled_line(screen, "longest", put_longest_length, r);
    if (l->tokens > 0)
        print_fit_probability(screen, &l->verdict);
    if (r->is_less_probable)
        screen_put_labelled_line(screen, "safe", "no length fits as surely as was asked");
    print_labelled_line(screen, "next", put_why_next_length_fails, r);
    if (r->less_probable_longest.tokens > 0)
        print_labelled_line(screen, "less sure", put_less_probable_length, r);
    if (r->has_tried_options)
        print_labelled_line(screen, "with", put_enabling_options, r);
    if (all && r->next_prediction.is_simulated)
        print_peak(screen, &r->next_prediction);
    if (!r->longest_prediction.is_simulated)
        return;
    print_workload(screen, &r->longest_prediction);
    print_step_time(screen, &r->longest_prediction);
    const struct intervals intervals = intervals_of_prediction(&r->longest_prediction);
    screen_put_heading(screen, "How sure this is");
    report_print_intervals(&(struct sheet){.screen = screen}, &intervals,
                           r->longest_prediction.sim.step_s, &l->verdict);
}

enum status longest_report_add_interrupt_error(const struct longest_certificate *r,
                                               struct diag *diag)
{
    const struct longest *l = &r->longest;
    struct text what = {0};
    if (!l->is_interrupted) {
        text_puts(&what, l->tokens > 0 && !r->longest_prediction.is_simulated
                             ? "the longest sequence was not simulated"
                             : "not all other options were searched");
    } else {
        text_puts(&what, "lengths ");
        text_puts(&what, l->shortest_unfit_tokens == 0 ? "beyond "
                         : l->tokens == 0              ? "below "
                                                       : "between ");
        if (l->tokens > 0)
            units_put_tokens(&what, l->tokens);
        text_puts(&what, l->tokens > 0 && l->shortest_unfit_tokens > 0 ? " and " : "");
        if (l->shortest_unfit_tokens > 0)
            units_put_tokens(&what, l->shortest_unfit_tokens);
        text_puts(&what, " tokens were not asked about");
    }
    enum status status = diag_error(diag, (struct loc){.name = "plan"}, STATUS_SYSTEM,
                                    "ended by %s; %s", interrupt_describe_signal(), what.data);
    text_release(&what);
    return status;
}

/* ---- JSON ---- */

static void put_json_verdict(struct json_out *w, const char *key, const struct verdict *v)
{
    json_begin_object(w, key);
    report_json_verdict(w, v);
    json_end_object(w);
}

void longest_report_print_json(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    struct json_out w = {.out = out};
    command_begin_json(&w, "plan_longest");
    json_put_count(&w, "longest_tokens", (uint64_t)l->tokens);
    if (longest_is_lower_bound(l))
        json_put_count(&w, "asked_tokens", (uint64_t)l->tokens);
    json_put_count(&w, "step_tokens", (uint64_t)r->ladder.first_length_or_step_tokens);
    json_put_count(&w, "next_tokens", (uint64_t)l->shortest_unfit_tokens);
    json_put_text(&w, "next_refused",
                  l->refusal_of_shortest_unfit[0] != '\0' ? l->refusal_of_shortest_unfit : NULL);
    json_put_bool(&w, "search_ended_early", l->is_interrupted);
    json_put_count(&w, "less_probable_tokens", (uint64_t)r->less_probable_longest.tokens);
    if (l->tokens > 0)
        put_json_verdict(&w, "at_longest", &l->verdict);
    if (r->longest_prediction.is_simulated) {
        const struct intervals intervals = intervals_of_prediction(&r->longest_prediction);
        json_put_number(&w, "step_s", r->longest_prediction.sim.step_s);
        report_json_step_interval(&w, &intervals, r->longest_prediction.sim.step_s);
        json_put_number(&w, "tokens_per_s_gpu", r->longest_prediction.tokens_per_s_gpu);
    }
    if (l->shortest_unfit_tokens > 0 && l->refusal_of_shortest_unfit[0] == '\0')
        put_json_verdict(&w, "at_next", &l->verdict_of_shortest_unfit);
    struct rows rows = {.json = &w};
    rows_begin(&rows, "with_option", NULL, &longest_table);
    for (size_t i = 0; i < r->longest_with_option_count; i++) {
        rows_put_text(&rows, r->longest_length_with_option[i].option);
        rows_put_number(&rows, (double)r->longest_length_with_option[i].tokens);
        if (r->longest_length_with_option[i].tokens_if_longer_may_fit > 0)
            rows_put_number(&rows,
                            (double)r->longest_length_with_option[i].tokens_if_longer_may_fit);
        else
            rows_skip_column(&rows);
    }
    rows_end(&rows);
    json_end_object(&w);
    text_putc(out, '\n');
}
