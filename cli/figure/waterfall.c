/* cli/figure/waterfall.c: the figure of a waterfall, which shows where the time of a step goes. */
#include "cli/figure/figure.h"

#include "cli/report/report.h"

#include <math.h>

/* The colours of causes, by their index in colour[] of plots/common.gp. */
enum waterfall_colour {
    COLOUR_WAITING = 1,    /* blue: kernels wait for other ranks or for copies */
    COLOUR_OTHER_WORK = 2, /* orange: time of kernels that is not in COLOUR_USEFUL */
    COLOUR_USEFUL = 3,     /* green: the flops that the model needs, at the device's peak */
    COLOUR_HOST = 8        /* grey: the host issues work, or the cause is CAUSE_OTHER */
};

static enum waterfall_colour cause_colour(enum cause cause)
{
    switch (cause) {
    case CAUSE_USEFUL:
        return COLOUR_USEFUL;
    case CAUSE_MASKED_PAIRS:
    case CAUSE_RECOMPUTE:
    case CAUSE_INEFFICIENCY:
    case CAUSE_MEMORY_BOUND:
    case CAUSE_OPTIMIZER:
        return COLOUR_OTHER_WORK;
    case CAUSE_HOST:
    case CAUSE_OTHER:
        return COLOUR_HOST;
    default:
        return COLOUR_WAITING;
    }
}

/* Sizes in points. ROW_HIGH: the height of a row, a bar with its label; AROUND_ROWS: the height of the title and the
 * axis. NARROW_ROW_HIGH, NARROW_AROUND_ROWS: the same of a narrow figure, whose labels are above the bars. */
enum { ROW_HIGH = 32, AROUND_ROWS = 110, NARROW_ROW_HIGH = 40, NARROW_AROUND_ROWS = 90 };

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
                    at_s / time.seconds_per_unit, (at_s + cause_s) / time.seconds_per_unit,
                    (int)cause_colour((enum cause)i), cause_label((enum cause)i), time.decimals,
                    (double)rounded[i] / pow(10, time.decimals), time.name,
                    100 * cause_s / w->step_s);
        at_s += cause_s;
        rows++;
    }
    text_printf(&label, "Where a step of %.*f %s goes%s%s", time.decimals,
                w->step_s / time.seconds_per_unit, time.name, subject[0] != '\0' ? ": " : "",
                subject);
    figure->script_name = "waterfall";
    figure->width = 900;
    figure->height = AROUND_ROWS + ROW_HIGH * rows;
    figure->narrow_height = NARROW_AROUND_ROWS + NARROW_ROW_HIGH * rows;
    figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : label.data);
    figure_set_text(figure, "unit", time.name);
    figure_set_number(figure, "rows", rows);
    figure_set_number(figure, "step", w->step_s / time.seconds_per_unit);
    text_release(&label);
    return STATUS_OK;
}
