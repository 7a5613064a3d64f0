/* The page of a comparison: a prediction beside a measured trace. */
#include "cli/page/pages.h"

#include "base/units.h"
#include "cli/folder/stored.h"
#include "cli/measure/compared.h"
#include "cli/measure/explain_report.h"
#include "cli/page/sources.h"

#include <math.h>
#include <stdlib.h>

enum { OPS_SHOWN = 20 };

static void put_error(struct page *page, double predicted, double measured)
{
    double error = compare_error(predicted, measured);
    if (isfinite(error))
        page_cellf(page, "%+.1f", 100 * error);
    else
        page_cell(page, "-");
}

static void put_groups(struct page *page, const struct comparison *c, enum compare_by by)
{
    const char *const heads[] = {
        compare_by_name(by), "pairs", "predicted ms", "measured ms", "error %", "off by ms", NULL};
    struct compare_group *group;
    size_t count = compare_groups(c, by, &group);
    page_begin_table(page, by == BY_KIND ? NULL : compare_by_name(by), heads);
    for (size_t i = 0; i < count; i++) {
        if (group[i].name != NULL)
            page_cell(page, group[i].name[0] == '\0' ? "(none)" : group[i].name);
        else
            page_cellf(page, "%u", group[i].rank);
        page_cellf(page, "%zu", group[i].pairs);
        page_cellf(page, "%.3f", 1e3 * group[i].predicted_s);
        page_cellf(page, "%.3f", 1e3 * group[i].measured_s);
        put_error(page, group[i].predicted_s, group[i].measured_s);
        page_cellf(page, "%.3f", 1e3 * group[i].off_s);
        page_end_row(page);
    }
    page_end_table(page);
    free(group);
}

static void put_ops(struct page *page, const struct comparison *c)
{
    static const char *const heads[] = {"op",
                                        "kind",
                                        "phase",
                                        "layer",
                                        "predicted ms",
                                        "measured ms",
                                        "error %",
                                        "share of all errors %",
                                        NULL};
    struct compare_op *op;
    size_t count = compare_ops(c, &op);
    page_begin_table(page, NULL, heads);
    for (size_t i = 0; i < count && i < OPS_SHOWN; i++) {
        page_cellf(page, "%u", op[i].first->op);
        page_cell(page, op[i].first->kind);
        page_cell(page, op[i].first->phase);
        page_cellf(page, op[i].first->layer >= 0 ? "%d" : "-", op[i].first->layer);
        page_cellf(page, "%.3f", 1e3 * op[i].predicted_s);
        page_cellf(page, "%.3f", 1e3 * op[i].measured_s);
        put_error(page, op[i].predicted_s, op[i].measured_s);
        page_cellf(page, "%.1f", 100 * op[i].share);
        page_end_row(page);
    }
    page_end_table(page);
    free(op);
}

static void put_bytes(struct page *page, const struct comparison *c)
{
    static const char *const heads[] = {"memory",   "rank",    "what", "predicted",
                                        "measured", "error %", NULL};
    if (c->arena_count + c->memory_count == 0)
        return;
    page_heading(page, "Memory");
    page_begin_table(page, NULL, heads);
    for (size_t i = 0; i < c->arena_count + c->memory_count; i++) {
        bool arena = i < c->arena_count;
        const struct compare_memory *row = arena ? &c->arena[i] : &c->memory[i - c->arena_count];
        page_cell(page, row->memory);
        page_cellf(page, "%u", row->rank);
        page_cell(page, arena ? "arena, bytes" : "peak, bytes");
        page_cellf(page, "%.0f", row->predicted_bytes);
        page_cellf(page, "%.0f", row->measured_bytes);
        put_error(page, row->predicted_bytes, row->measured_bytes);
        page_end_row(page);
    }
    page_end_table(page);
}

static enum status put_timelines(struct page *page, const struct compared *c, struct diag *diag)
{
    const struct trace *trace[] = {&c->predicted, &c->measured};
    static const char *const captions[] = {"Predicted.", "Measured, on a time axis of its own."};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        struct figure figure = {0};
        struct figure_options wanted = {.title = i == 0 ? "predicted" : "measured"};
        if (trace[i]->ops.count > 0)
            wanted.rank = (long)trace[i]->ops.rank[0];
        status = page_draw(page, &figure, figure_timeline(&figure, trace[i], &wanted, diag),
                           captions[i], diag);
        figure_release(&figure);
    }
    return status;
}

/* Appends the causes of the difference, the largest first. */
static enum status put_causes(struct page *page, const struct compared *c, const char *measured,
                              struct diag *diag)
{
    static const char *const heads[] = {"more ms", "cause", "what", NULL};
    struct explanation e = {0};
    const struct trace *trace = &c->measured;
    double rest_s;
    enum status status =
        explain_make(&e, &c->predicted, &trace, &measured, 1, c->comparison.foreign, diag);
    if (status == STATUS_OK) {
        size_t shown = explain_report_shown(&e, &rest_s);
        page_heading(page, "Why");
        page_begin_table(page, NULL, heads);
        for (size_t i = 0; i < shown; i++) {
            page_cellf(page, "%+.3f", 1e3 * e.cause[i].seconds);
            page_cell(page, e.cause[i].name);
            page_cell(page, e.cause[i].text);
            page_end_row(page);
        }
        page_cellf(page, "%+.3f", 1e3 * rest_s);
        page_cell(page, "rest");
        page_cell(page, "");
        page_end_row(page);
        page_end_table(page);
    }
    explanation_release(&e);
    return status;
}

enum status page_of_comparison(struct page *page, const char *predicted, const char *measured,
                               const char *title, struct diag *diag)
{
    struct compared compared = {0};
    const struct comparison *c = &compared.comparison;
    struct text text = {0};
    enum status status = compared_make(&compared, predicted, measured, diag);
    if (status != STATUS_OK)
        goto out;
    double error = compare_error(c->predicted.step_s, c->measured.step_s);
    text_printf(&text, "%s beside %s", predicted, measured);
    page_begin(page, title != NULL ? title : "A prediction beside a measurement", text.data);
    text.size = 0;
    if (c->match_rate < COMPARE_MATCH_MIN)
        text_printf(&text, "No verdict: %.1f %% of the time was matched, and 90 %% must be.",
                    100 * c->match_rate);
    else
        text_printf(&text, "The step was predicted to take %.3f ms and took %.3f ms: %+.1f %%.",
                    1e3 * c->predicted.step_s, 1e3 * c->measured.step_s, 100 * error);
    page_verdict(page,
                 c->match_rate < COMPARE_MATCH_MIN ? PAGE_BAD
                 : fabs(error) < 0.05              ? PAGE_GOOD
                                                   : PAGE_CLOSE,
                 text.data);
    text.size = 0;
    text_printf(&text,
                "Pairs cover %.1f %% of the time of both sides; %zu of %zu predicted and %zu "
                "of %zu measured rows have no partner.",
                100 * c->match_rate, c->predicted.unmatched_rows, c->predicted.rows,
                c->measured.unmatched_rows, c->measured.rows);
    page_text(page, text.data);
    status = put_causes(page, &compared, measured, diag);
    if (status != STATUS_OK)
        goto out;
    page_heading(page, "By kind of work");
    for (int by = 0; by < BY_COUNT; by++)
        put_groups(page, c, (enum compare_by)by);
    page_heading(page, "Ops that carry most of the error");
    put_ops(page, c);
    put_bytes(page, c);
    page_heading(page, "Timelines of a rank");
    status = put_timelines(page, &compared, diag);
    const char *by[] = {trace_get(&compared.predicted, "made_by"),
                        trace_get(&compared.measured, "made_by")};
    page_put_sources(page, trace_get(&compared.predicted, "model"),
                     trace_get(&compared.predicted, "cluster"), NULL,
                     trace_get(&compared.predicted, "profile"));
    page_heading(page, "Made by");
    text.size = 0;
    text_printf(&text, "predicted: %s; measured: %s; compared by longhaul " LONGHAUL_VERSION,
                by[0] != NULL ? by[0] : "?", by[1] != NULL ? by[1] : "?");
    page_text(page, text.data);
    page_end(page);
out:
    text_release(&text);
    compared_release(&compared);
    return status;
}
