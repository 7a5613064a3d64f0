/* The page of a comparison: a prediction beside a measured trace. */
#include "cli/page/pages.h"

#include "base/units.h"
#include "cli/folder/stored.h"
#include "cli/measure/compare_report.h"
#include "cli/measure/compared.h"
#include "cli/measure/explain_report.h"
#include "cli/page/sources.h"

#include <math.h>
#include <stdlib.h>

enum { OPS_SHOWN = 20 };

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
    struct explanation e = {0};
    const struct trace *trace = &c->measured;
    enum status status = explain_measured_against_predicted(&e, &c->predicted, &trace, &measured, 1,
                                                            c->comparison.is_profiler_trace, diag);
    if (status == STATUS_OK) {
        page_put_heading(page, "Why");
        if (e.matched_time_share < COMPARE_MATCHED_SHARE_MIN)
            page_put_text(page, "Too little was matched: the causes may be those of unlike work.");
        explain_report_put_causes(&(struct rows){.page = page}, &e);
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
    double error = comparison_signed_relative_error(c->predicted.step_s, c->measured.step_s);
    text_printf(&text, "%s beside %s", predicted, measured);
    page_begin(page, title != NULL ? title : "A prediction beside a measurement", text.data);
    text.size = 0;
    if (c->matched_time_share < COMPARE_MATCHED_SHARE_MIN)
        text_printf(&text, "No verdict: %.1f %% of the time was matched, and 90 %% must be.",
                    100 * c->matched_time_share);
    else
        text_printf(&text, "The step was predicted to take %.3f ms and took %.3f ms: %+.1f %%.",
                    1e3 * c->predicted.step_s, 1e3 * c->measured.step_s, 100 * error);
    page_put_verdict(page,
                     c->matched_time_share < COMPARE_MATCHED_SHARE_MIN ? PAGE_BAD
                     : fabs(error) < 0.05                              ? PAGE_GOOD
                                                                       : PAGE_BORDERLINE,
                     text.data);
    text.size = 0;
    text_printf(&text,
                "Pairs cover %.1f %% of the time of both sides; %zu of %zu predicted and %zu "
                "of %zu measured rows have no partner.",
                100 * c->matched_time_share, c->predicted.unmatched_rows, c->predicted.rows,
                c->measured.unmatched_rows, c->measured.rows);
    page_put_text(page, text.data);
    status = put_causes(page, &compared, measured, diag);
    if (status != STATUS_OK)
        goto out;
    page_put_heading(page, "By kind of work");
    struct rows rows = {.page = page};
    for (int by = 0; by < BY_COUNT; by++)
        compare_report_put_groups(&rows, c, (enum compare_grouping)by, SIZE_MAX);
    page_put_heading(page, "Ops that carry most of the error");
    compare_report_put_ops(&rows, c, OPS_SHOWN);
    if (c->planned_memory_count + c->peak_memory_count > 0)
        page_put_heading(page, "Memory");
    compare_report_put_memory(&rows, c);
    page_put_heading(page, "Timelines of a rank");
    status = put_timelines(page, &compared, diag);
    const char *by[] = {trace_get_key(&compared.predicted, "made_by"),
                        trace_get_key(&compared.measured, "made_by")};
    page_put_sources(page, trace_get_key(&compared.predicted, "model"),
                     trace_get_key(&compared.predicted, "cluster"), NULL,
                     trace_get_key(&compared.predicted, "profile"));
    page_put_heading(page, "Made by");
    text.size = 0;
    text_printf(&text, "predicted: %s; measured: %s; compared by longhaul " LONGHAUL_VERSION,
                by[0] != NULL ? by[0] : "?", by[1] != NULL ? by[1] : "?");
    page_put_text(page, text.data);
    page_end(page);
out:
    text_release(&text);
    compared_release(&compared);
    return status;
}
