/* cli/figure/waterfall.c: the figure of a waterfall, which shows where the time of a step goes. */
#include "cli/figure/figure.h"

#include "cli/report/report.h"

#include <math.h>

/* Returns the colour of a cause. It depends on its kind: necessary work, avoidable work, waiting. */
static int cause_colour(enum cause cause)
{
    switch (cause) {
    case CAUSE_USEFUL:
        return 3;
    case CAUSE_IMBALANCE:
    case CAUSE_RECOMPUTE:
    case CAUSE_INEFFICIENCY:
    case CAUSE_MEMORY_BOUND:
    case CAUSE_OPTIMIZER:
        return 2;
    default:
        return cause == CAUSE_HOST || cause == CAUSE_OTHER ? 8 : 1;
    }
}

enum status figure_waterfall(struct figure *figure, const char *name, const char *subject,
                             const struct waterfall *w, const struct figure_options *wanted,
                             struct diag *diag)
{
    struct report_time_format time = report_time_format_for(w->step_s);
    long long rounded[CAUSE_COUNT]; /* rounded like those of the report, so that they add up */
    struct text label = {0};
    double at_s = 0;
    int rows = 0;
    if (!(w->step_s > 0))
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "the step takes no time: there is nothing to draw");
    report_round_parts(w->cause_s, CAUSE_COUNT, w->step_s, time, rounded);
    for (int i = 0; i < CAUSE_COUNT; i++) {
        double cause_s = w->cause_s[i];
        if (rounded[i] == 0)
            continue;
        text_printf(&figure->csv, "%d,%.9g,%.9g,%d,\"%s\",\"%.*f %s  %.1f %%\"\n", rows,
                    at_s / time.unit_s, (at_s + cause_s) / time.unit_s, cause_colour((enum cause)i),
                    cause_label((enum cause)i), time.decimals,
                    (double)rounded[i] / pow(10, time.decimals), time.name,
                    100 * cause_s / w->step_s);
        at_s += cause_s;
        rows++;
    }
    text_printf(&label, "Where a step of %.*f %s goes%s%s", time.decimals, w->step_s / time.unit_s,
                time.name, subject[0] != '\0' ? ": " : "", subject);
    figure->script_name = "waterfall";
    figure->width = 900;
    figure->height = 110 + 32 * rows;
    figure->narrow_height = 90 + 40 * rows;
    figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : label.data);
    figure_set_text(figure, "unit", time.name);
    figure_set_number(figure, "rows", rows);
    figure_set_number(figure, "step", w->step_s / time.unit_s);
    text_release(&label);
    return STATUS_OK;
}
