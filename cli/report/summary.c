/* Prints the screen of a prediction: the answer first, then the numbers that support it. */
#include "cli/report/report.h"

#include "base/units.h"
#include "predict/intervals.h"
#include "predict/setup/at_most.h"
#include "schedule/choices/products.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- the verdict ---- */

/* Appends "a GPU needs 31.7 GiB of its 79.1 GiB of memory; 47.4 GiB stay free" or "...; 3.1 GiB too much"; if
 * `at_most`, "needs at most". If the memory has no limit, says so. */
static void put_needed_memory(struct text *out, const struct verdict *v,
                              enum limiting_memory_kind limit, bool at_most)
{
    double margin = verdict_margin_bytes(v, limit);
    text_printf(out, "%s needs %s", limit == LIMIT_HOST ? "the host of a node" : "a GPU",
                at_most ? "at most " : "");
    units_put_gib(out, (double)v->needed_bytes[limit]);
    if (margin == DBL_MAX) {
        text_puts(out, " of memory, and its memory is infinite");
        return;
    }
    text_puts(out, " of its ");
    units_put_gib(out, (double)v->available_bytes[limit]);
    text_puts(out, " of memory; ");
    units_put_gib(out, fabs(margin));
    text_puts(out, margin < 0 ? " too much" : " stay free");
}

/* Prints the verdict. It names every memory that does not suffice, first the one that lacks the largest share. */
static void print_verdict(struct sheet *sheet, const struct report *r)
{
    const struct verdict *v = &r->prediction->verdict;
    const bool at_most = r->prediction->setup->mask_of_reasons_run_does_less != 0;
    const bool unknown = at_most && !v->fits;
    const enum verdict_word word = verdict_word(v->fits_probability);
    struct text rest = {0}, odds = {0};
    if (!unknown)
        verdict_put_probability(&odds, v->fits_probability);
    text_printf(&rest, "%s%s: ",
                odds.size == 0                   ? ""
                : word == VERDICT_PROBABLY_FAILS ? ", only "
                                                 : ", ",
                odds.size == 0 ? "" : odds.data);
    text_release(&odds);
    put_needed_memory(&rest, v, v->limiting_memory, at_most);
    for (int limit = 0; limit < LIMIT_COUNT; limit++) {
        if (limit == (int)v->limiting_memory || v->needed_bytes[limit] <= v->available_bytes[limit])
            continue;
        text_puts(&rest, ", and ");
        put_needed_memory(&rest, v, (enum limiting_memory_kind)limit, at_most);
    }
    text_putc(&rest, '.');
    if (word == VERDICT_FITS && verdict_is_full_by_cache(v) && v->limiting_memory == LIMIT_DEVICE) {
        text_putc(&rest, ' ');
        units_put_gib(&rest, (double)v->cache_bytes);
        text_puts(&rest, " of it is unused cache of PyTorch's allocator, which gives it back when "
                         "memory runs out.");
    }
    sheet_put_verdict(sheet,
                      word == VERDICT_FITS                       ? SCREEN_GOOD
                      : word == VERDICT_PROBABLY_FITS || unknown ? SCREEN_BORDERLINE
                                                                 : SCREEN_BAD,
                      unknown ? "May fit" : verdict_words[word], rest.data);
    text_release(&rest);
}

/* ---- the figures ---- */

static void print_workload(struct sheet *sheet, const struct report *r)
{
    struct text line = {0};
    report_put_workload(&line, r);
    sheet_put_line(sheet, "model", line.data);
    line.size = 0;
    report_put_choices(&line, r);
    sheet_put_line(sheet, "layout", line.data);
    text_release(&line);
    report_print_documents(sheet, r);
    report_print_routing(sheet, r);
}

void report_print_products(struct sheet *sheet, const struct prediction_products *products,
                           const char *recipe, double step_s)
{
    struct text line = {0};
    if (products->narrow_s <= 0)
        return;
    const double less = 1 - products->narrow_s / products->wide_s;
    text_printf(&line, "%s: products %.0f %% %s than in %s, casts %.0f %% of the step",
                recipe != NULL ? recipe : "8 or 4 bits", 100 * fabs(less),
                less >= 0 ? "shorter" : "longer", dtype_name((enum dtype)products->dtype),
                100 * products->casts_s / step_s);
    if (products->casts_s > products->wide_s - products->narrow_s)
        text_puts(&line, ": they take more than the products gain");
    sheet_put_line(sheet, "products", line.data);
    text_release(&line);
}

static void print_key_numbers(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct intervals intervals = intervals_of_prediction(p);
    const struct interval *interval = &intervals.intervals_by_quantity[RESIDUAL_TIME];
    const struct interval rate = interval_of_reciprocal(interval);
    double fraction[MFU_CONVENTION_COUNT] = {0};
    struct text value = {0}, line = {0}, excess = {0};
    report_put_time(&value, p->sim.step_s, p->sim.step_s);
    text_puts(&line, "");
    intervals_put_in_brackets(&line, " (90 %: ", interval, p->sim.step_s,
                              report_time_format_for(p->sim.step_s).seconds_per_unit);
    sheet_put_labelled_value(sheet, "step", value.data, line.data);
    value.size = line.size = 0;
    if (prediction_is_recorded(p)) { /* how many ranks read the same tokens is not known */
        /* 0, which is not printed, if several stages were recorded */
        const int64_t tokens = p->recorded.count == 1 ? p->recorded.recording[0].token_count : 0;
        const double per_s = (double)tokens / p->sim.step_s;
        text_printf(&value, "%.1f", per_s);
        text_puts(&line, " of the recorded rank");
        intervals_put_in_brackets(&line, " (90 %: ", &rate, per_s, 1);
        if (tokens > 0)
            sheet_put_labelled_value(sheet, "tokens/s", value.data, line.data);
        text_release(&line);
        text_release(&value);
        report_print_recorded_mfu(sheet, p);
        return;
    }
    text_printf(&value, "%.1f", p->tokens_per_s_gpu);
    text_puts(&line, "");
    intervals_put_in_brackets(&line, " (90 %: ", &rate, p->tokens_per_s_gpu, 1);
    if (r->packed_batch != NULL)
        text_puts(&line, ", padding not counted");
    sheet_put_labelled_value(sheet, "tokens/s/GPU", value.data, line.data);
    report_print_products(sheet, &p->products,
                          p->has_choices ? products_names[p->choices.products] : NULL,
                          p->sim.step_s);
    if (p->has_choices) {
        double percent = 100 * prediction_mfu(p, r->mfu);
        value.size = line.size = 0;
        text_printf(&value, "%.1f %%", percent);
        intervals_put_in_brackets(&line, " (90 %: ", &rate, percent, 1);
        text_printf(&line, ", convention %s%s", mfu_names[r->mfu],
                    p->products.narrow_s > 0 ? ", of the bf16 peak" : "");
        fraction[r->mfu] = percent / 100;
        mfu_explain_fractions_above_one(&excess, fraction);
        if (excess.size > 0)
            text_printf(&line, "; %s", excess.data);
        sheet_put_labelled_value(sheet, "MFU", value.data, line.data);
    }
    text_release(&excess);
    text_release(&line);
    text_release(&value);
}

/* ---- where the step's time goes, and what fills memory ---- */

static void print_causes(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct waterfall *w = &p->waterfall;
    struct screen_bar bar[CAUSE_COUNT];
    long long rounded[CAUSE_COUNT];
    struct report_time_format time = report_time_format_for(w->step_s);
    struct text heading = {0};
    report_round_parts(w->cause_s, CAUSE_COUNT, w->step_s, time, rounded);
    for (int i = 0; i < CAUSE_COUNT; i++)
        bar[i] = (struct screen_bar){cause_label((enum cause)i), (double)rounded[i] *
                                                                     time.seconds_per_unit /
                                                                     pow(10, time.decimals)};
    text_printf(&heading, "Where the step goes (%s)",
                p->sim.uniform_rank_count > 0 ? "every rank: they are taken as even" : "rank 0");
    sheet_begin_section(sheet, SHEET_SECTION_CAUSES, heading.data);
    sheet_put_bars(sheet, bar, CAUSE_COUNT, w->step_s, report_put_time, r->shows_all);
    text_release(&heading);
}

static void put_gib(struct text *out, double bytes, double whole)
{
    (void)whole;
    units_put_gib(out, bytes);
}

/* Prints what is in the memory of a GPU at the moment at which the step needs most. */
static void print_memory(struct sheet *sheet, const struct report *r)
{
    enum { PARTS = CATEGORY_COUNT + RESERVED_PART_COUNT };
    const struct prediction *p = r->prediction;
    const struct sim_peak *peak = prediction_device_memory_peak(p);
    double needed = (double)p->verdict.needed_bytes[LIMIT_DEVICE], rest = needed;
    struct screen_bar bar[PARTS] = {{0}};
    struct text heading = {0};
    for (int i = 0; i < CATEGORY_COUNT; i++)
        bar[i] = (struct screen_bar){category_labels[i], (double)peak->category_bytes[i]};
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        if (i != RESERVED_TENSORS && (p->verdict.is_by_reserved_memory || i == RESERVED_CONTEXT))
            bar[CATEGORY_COUNT + i] = (struct screen_bar){
                reserved_part_label((enum reserved_part)i), (double)p->reserved.bytes[i]};
    for (int i = 0; i < PARTS; i++)
        rest -= bar[i].value;
    bar[CATEGORY_COUNT + RESERVED_TENSORS] =
        (struct screen_bar){"gaps between tensors", fmax(rest, 0)};
    text_puts(&heading, "What fills the ");
    units_put_gib(&heading, needed);
    text_puts(&heading, " that a GPU needs");
    sheet_begin_section(sheet, SHEET_SECTION_MEMORY, heading.data);
    sheet_put_bars(sheet, bar, PARTS, needed, put_gib, r->shows_all);
    text_release(&heading);
}

/* ---- the intervals of the figures ---- */

/* If the step fits although the upper end of its memory interval exceeds the available memory,
 * appends how much of the needed memory is unused cache of the allocator; nothing if none is. */
static void put_unused_cache(struct text *out, const struct interval *interval,
                             const struct verdict *v)
{
    const double needed = (double)v->needed_bytes[LIMIT_DEVICE];
    if (v->cache_bytes == 0 || verdict_word(v->fits_probability) != VERDICT_FITS ||
        interval_high(interval, needed) <= (double)v->available_bytes[LIMIT_DEVICE])
        return;
    text_puts(out, " Of the predicted ");
    units_put_gib(out, needed);
    text_puts(out, ", ");
    units_put_gib(out, (double)v->cache_bytes);
    text_puts(out, " are unused cache of PyTorch's allocator, which gives it back when memory runs "
                   "out; without it, the step fits in at least 9 of 10 cases.");
}

static void print_interval_of_quantity(struct sheet *sheet, const struct intervals *intervals,
                                       enum residual_quantity of, double value,
                                       const struct verdict *verdict)
{
    const struct interval *interval = &intervals->intervals_by_quantity[of];
    struct report_time_format time = report_time_format_for(value);
    struct text text = {0};
    if (!intervals_are_known(intervals, of))
        return;
    text_puts(&text, of == RESIDUAL_TIME ? "A measured step takes " : "A GPU needs ");
    intervals_put_low_to_high(&text, interval, value,
                              of == RESIDUAL_TIME ? time.seconds_per_unit : 0x1p30);
    text_printf(&text, " %s in 9 of 10 cases; ", of == RESIDUAL_TIME ? time.name : "GiB");
    intervals_put_evidence(&text, intervals, of);
    text_putc(&text, '.');
    if (of == RESIDUAL_MEMORY)
        put_unused_cache(&text, interval, verdict);
    sheet_put_text(sheet, text.data);
    text_release(&text);
}

void report_print_intervals(struct sheet *sheet, const struct intervals *intervals, double step_s,
                            const struct verdict *verdict)
{
    print_interval_of_quantity(sheet, intervals, RESIDUAL_TIME, step_s, verdict);
    print_interval_of_quantity(sheet, intervals, RESIDUAL_MEMORY,
                               (double)verdict->needed_bytes[LIMIT_DEVICE], verdict);
}

static void print_confidence(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct intervals intervals = intervals_of_prediction(p);
    bool known = intervals_are_known(&intervals, RESIDUAL_TIME) ||
                 intervals_are_known(&intervals, RESIDUAL_MEMORY);
    struct text beware = {0};
    report_put_warnings_in_one_line(&beware, r);
    if (r->times_of_model_part != NULL && beware.size == 0)
        return;
    sheet_begin_section(sheet, SHEET_SECTION_CONFIDENCE, "How sure this is");
    if (p->setup->mask_of_reasons_run_does_less != 0) {
        struct text text = {0};
        text_puts(&text, "What is predicted takes at most this time and memory: ");
        at_most_put_reasons(&text, p->setup->mask_of_reasons_run_does_less);
        text_puts(&text, ". The intervals are those of all that is predicted.");
        sheet_put_warning(sheet, text.data);
        text_release(&text);
    }
    report_print_intervals(sheet, &intervals, p->sim.step_s, &p->verdict);
    if (!known && r->times_of_model_part == NULL)
        sheet_put_text(sheet, "There is no interval: no measured run is on ideal hardware or "
                              "without overheads.");
    if (beware.size > 0) {
        struct text text = {0};
        text_printf(&text, "Beware: %s.", beware.data);
        sheet_put_warning(sheet, text.data);
        text_release(&text);
    }
    text_release(&beware);
}

/* ---- the whole sheet ---- */

static void print_sheet(struct sheet *sheet, const struct report *report)
{
    bool whole = report->times_of_model_part == NULL;
    assert(report->prediction->is_simulated);
    sheet_begin(sheet);
    if (whole)
        print_verdict(sheet, report);
    print_workload(sheet, report);
    if (whole) {
        print_key_numbers(sheet, report);
    } else {
        struct text line = {0};
        report_put_times_of_model_part(&line, report);
        sheet_put_line(sheet, "part", line.data);
        text_release(&line);
    }
    report_print_training_run(sheet, report);
    if (whole || report->prediction->choices.scope >= SCOPE_ALL_LAYERS)
        print_causes(sheet, report);
    if (prediction_is_recorded(report->prediction))
        report_print_modules(sheet, report);
    if (whole)
        print_memory(sheet, report);
    print_confidence(sheet, report);
    if (report->shows_all || sheet->json != NULL)
        report_print_details(sheet, report);
    if (whole)
        report_print_commands_to_try(sheet, report);
    sheet_end(sheet);
}

void report_print(const struct screen *screen, const struct report *report)
{
    print_sheet(&(struct sheet){.screen = screen}, report);
    if (report->times_of_model_part == NULL && !report->shows_all)
        screen_put_wrapped_text(screen,
                                "Add --all for every figure, --json for programs, or -o DIR and "
                                "`longhaul report DIR` for a page.");
}

void report_json_sheet(struct json_out *json, const struct report *report)
{
    print_sheet(&(struct sheet){.json = json}, report);
}
