/* cli/figure/window.h: the part of a trace's time that a figure shows. */
#ifndef CLI_FIGURE_WINDOW_H
#define CLI_FIGURE_WINDOW_H

#include "base/diag.h"
#include "cli/figure/figure.h"
#include "cli/report/report.h"
#include "traces/trace.h"

struct figure_window {
    double from_s, to_s;
    struct report_time_format time_format; /* the unit of the time axis */
};

/* Finds the interval that a figure shows.
 *
 * If wanted->op_window_text is NULL, the interval is wanted->shown_from_s to wanted->shown_to_s or, if shown_to_s is 0,
 * to end_s, the end of the trace. Otherwise it is the time from the first start to the last end of the ops of
 * wanted->rank that op_window_text selects. op_window_text is a phase, or KEY=N, or KEY=N..M, where KEY is op, layer,
 * chunk or step; or several of these joined by ':', all of which must be true: "backward:layer=1", "op=100..200". */
enum status figure_window_find(struct figure_window *window, const struct trace *trace,
                               double end_s, const struct figure_options *wanted,
                               struct diag *diag);

/* Sets the script's variables `unit`, `from` and `to`. */
void figure_window_set_script_variables(struct figure *figure, const struct figure_window *window);

#endif
