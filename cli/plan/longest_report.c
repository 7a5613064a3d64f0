#include "cli/plan/longest_report.h"

#include "base/interrupt.h"
#include "base/units.h"
#include "cli/json_out.h"
#include "cli/report/report.h"
#include "predict/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static void put_tokens(struct text *out, int64_t tokens)
{
    units_put_tokens(out, tokens);
    text_printf(out, " tokens");
}

static void put_step(struct text *out, const struct prediction *p)
{
    const struct intervals intervals = intervals_of(p);
    text_printf(out, "%-11s", "step");
    report_put_time(out, p->sim.step_s, p->sim.step_s);
    intervals_put_beside(out, " (90 %: ", &intervals.of[RESIDUAL_TIME], p->sim.step_s,
                         report_time_for(p->sim.step_s).unit_s);
    text_printf(out, ", %.1f tokens/s/GPU\n", p->tokens_per_s_gpu);
    intervals_put_line(out, &intervals);
}

/* "activation 61.2 GiB, ...; op 966 (cross_entropy, forward)": the moment that needs most. */
static void put_peak(struct text *out, const struct prediction *p)
{
    const struct sim_peak *peak = prediction_peak(p);
    bool first = true;
    text_printf(out, "%-11s", "at its peak");
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        if (peak->category_bytes[c] == 0)
            continue;
        text_puts(out, first ? " " : ", ");
        text_printf(out, "%s ", category_name((enum category)c));
        units_put_gib(out, (double)peak->category_bytes[c]);
        first = false;
    }
    if (peak->op != IR_NONE)
        text_printf(out, ", op %u (%s, %s)", prediction_op(p, peak->op).id,
                    work_kind_info((enum work_kind)p->ir.op.kind[peak->op])->name,
                    phase_name((enum phase)p->ir.op.phase[peak->op]));
    text_putc(out, '\n');
}

/* "the next length, 513K, does not fit: device memory needs ... (213 MiB too much)" */
static void put_next(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    text_printf(out, "%-11s", "next");
    if (l->next == 0) {
        text_printf(out, "not asked about: %s\n",
                    l->ended ? interrupt_name() : ladder_why_end(&r->ladder));
        return;
    }
    put_tokens(out, l->next);
    if (l->refused[0] != '\0') {
        text_printf(out, ": refused: %s\n", l->refused);
        return;
    }
    const char *between = ": ";
    for (int limit = 0; limit < LIMIT_COUNT; limit++) {
        if (verdict_margin(&l->beyond, (enum prediction_limit)limit) >= 0)
            continue;
        text_printf(out, "%s%s ", between, prediction_limit_name((enum prediction_limit)limit));
        verdict_print(out, &l->beyond, (enum prediction_limit)limit);
        text_printf(out, ", %.0f bytes", -verdict_margin(&l->beyond, (enum prediction_limit)limit));
        between = "; ";
    }
    text_putc(out, '\n');
}

static void put_flips(struct text *out, const struct longest_certificate *r)
{
    enum { SHOWN = 4 };
    text_printf(out, "%-11s", "with");
    for (size_t i = 0; i < r->flips && i < SHOWN; i++) {
        text_printf(out, "%s%s: ", i > 0 ? ", " : "", r->flip[i].option);
        units_put_tokens(out, r->flip[i].tokens);
    }
    if (interrupted() != 0)
        text_printf(out, "%s other options were not searched: %s ended the search\n",
                    r->flips > 0 ? " fits;" : "", interrupt_name());
    else
        text_puts(out,
                  r->flips == 0 ? "no one other option does a longer sequence fit\n" : " fits\n");
}

/* "longest    1732K tokens (1773568), in steps of 1024, 22 lengths asked about"; of a search that was ended
 * "at least 1732K tokens ..." or "not known: no length that was asked about fits" */
static void put_longest(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    text_printf(out, "%-11s", "longest");
    if (l->tokens == 0 && l->ended) {
        text_puts(out, "not known: no length that was asked about fits\n");
        return;
    }
    if (l->tokens == 0) {
        text_puts(out, "none: ");
        put_tokens(out, ladder_length(&r->ladder, 0));
        text_puts(out, " do not fit\n");
        return;
    }
    text_puts(out, l->ended ? "at least " : "");
    put_tokens(out, l->tokens);
    text_printf(out, " (%lld), in steps of %lld, %u lengths asked about\n", (long long)l->tokens,
                (long long)r->ladder.first, l->asked);
}

void longest_report_print(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    put_longest(out, r);
    if (r->at.simulated) {
        const struct report at = {.prediction = &r->at};
        struct text layout = {0};
        text_printf(out, "%-11s", "what");
        report_put_workload(out, &at);
        report_put_layout(&layout, &at);
        text_printf(out, ", %s\n", layout.data);
        text_release(&layout);
        put_step(out, &r->at);
    }
    if (l->tokens > 0) {
        text_printf(out, "%-11s%s ", "fits", prediction_limit_name(l->at.limit));
        verdict_print(out, &l->at, l->at.limit);
        verdict_put_close(out, &l->at);
        text_putc(out, '\n');
    }
    put_next(out, r);
    if (r->beyond.simulated)
        put_peak(out, &r->beyond);
    if (r->flips_asked)
        put_flips(out, r);
}

enum status longest_report_ended(const struct longest_certificate *r, struct diag *diag)
{
    const struct longest *l = &r->longest;
    struct text what = {0};
    if (!l->ended) {
        text_puts(&what, l->tokens > 0 && !r->at.simulated
                             ? "the longest sequence was not simulated"
                             : "not all other options were searched");
    } else {
        text_puts(&what, "lengths ");
        text_puts(&what, l->next == 0 ? "beyond " : l->tokens == 0 ? "below " : "between ");
        if (l->tokens > 0)
            units_put_tokens(&what, l->tokens);
        text_puts(&what, l->tokens > 0 && l->next > 0 ? " and " : "");
        if (l->next > 0)
            units_put_tokens(&what, l->next);
        text_puts(&what, " tokens were not asked about");
    }
    enum status status = diag_error(diag, (struct loc){.name = "plan"}, STATUS_SYSTEM,
                                    "ended by %s; %s", interrupt_name(), what.data);
    text_release(&what);
    return status;
}

/* ---- JSON ---- */

static void json_verdict(struct json_out *w, const char *key, const struct verdict *v)
{
    json_begin_object(w, key);
    report_json_verdict(w, v);
    json_end_object(w);
}

void longest_report_print_json(struct text *out, const struct longest_certificate *r)
{
    const struct longest *l = &r->longest;
    struct json_out w = {.out = out};
    json_begin_answer(&w, "plan_longest");
    json_put_count(&w, "longest_tokens", (uint64_t)l->tokens);
    json_put_count(&w, "step_tokens", (uint64_t)r->ladder.first);
    json_put_count(&w, "next_tokens", (uint64_t)l->next);
    json_put_text(&w, "next_refused", l->refused[0] != '\0' ? l->refused : NULL);
    json_put_bool(&w, "search_ended_early", l->ended);
    if (l->tokens > 0)
        json_verdict(&w, "at_longest", &l->at);
    if (r->at.simulated) {
        const struct intervals intervals = intervals_of(&r->at);
        json_put_number(&w, "step_s", r->at.sim.step_s);
        report_json_step_ends(&w, &intervals, r->at.sim.step_s);
        json_put_number(&w, "tokens_per_s_gpu", r->at.tokens_per_s_gpu);
    }
    if (l->next > 0 && l->refused[0] == '\0')
        json_verdict(&w, "at_next", &l->beyond);
    json_begin_array(&w, "with_option");
    for (size_t i = 0; i < r->flips; i++) {
        json_begin_object(&w, NULL);
        json_put_text(&w, "option", r->flip[i].option);
        json_put_count(&w, "longest_tokens", (uint64_t)r->flip[i].tokens);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    text_putc(out, '\n');
}
