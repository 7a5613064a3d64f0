/* cli/figure/figure.h: figures: data as CSV and the script of plots/ that draws it.
 *
 * A figure holds the CSV that its script reads and the variables that the script says it needs, both made from results
 * of longhaul. figure_draw() runs gnuplot on them; names and paths from the user reach gnuplot only as quoted text.
 *
 * The folder cli/figure/ draws figures: each from CSV by a script of plots/. */
#ifndef CLI_FIGURE_FIGURE_H
#define CLI_FIGURE_FIGURE_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/common/table.h"
#include "sim/waterfall.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* The data and variables of a figure. All-zero is empty. */
struct figure {
    const char *script_name; /* the name of the script: "sweep" for plots/sweep.gp */
    /* size of the SVG in points; a PNG has twice as many pixels in each direction */
    int width, height;
    int narrow_height; /* the height if the figure is FIGURE_NARROW wide; 0: the same as height */
    struct text csv;   /* CSV that the script reads */
    struct text gnuplot_settings; /* commands that set the script's variables and ticks of axes */
};
void figure_release(struct figure *figure);

enum figure_format { FIGURE_SVG, FIGURE_PNG };

/* The format, colours and width of a drawing; all-zero is an SVG, light, as wide as the figure. */
struct figure_look {
    enum figure_format format;
    bool is_dark;
    /* colours that differ between light and dark are written as marks such as #010101, which cli/page/svg.h replaces by
     * variables of a page's style sheet */
    bool follows_theme;
    bool is_narrow; /* the figure is FIGURE_NARROW wide, for pages on a telephone */
};
enum { FIGURE_NARROW = 360 };

/* Draws the figure and appends the picture. If gnuplot is missing, the error says how to get it. */
enum status figure_draw(const struct figure *figure, struct figure_look look, struct text *picture,
                        struct diag *diag);

/* Writes data.csv and figure.gp, which `gnuplot figure.gp` draws, into a folder, which is created if it does not
 * exist. */
enum status figure_save(const struct figure *figure, struct figure_look look, const char *folder,
                        struct diag *diag);

/* Appends a text in single quotes for gnuplot, in which only the quote itself is special: it is doubled. Control
 * characters become blanks, and bytes that are not UTF-8 are replaced. */
void figure_put_quoted(struct text *out, const char *text);

/* Set a variable of the script to a text or to a number. */
void figure_set_text(struct figure *figure, const char *name, const char *text);
void figure_set_number(struct figure *figure, const char *name, double value);

/* Appends a name to a list for a script. Blanks separate the names of the list; a blank within a name is written as
 * '_', and the script turns it back. */
void figure_put_name_in_list(struct text *list, const char *name);

/* Appends the model, the cluster and the strategy of the trace's header: ": llama3-8b on dgx-h100, ulysses hp=8
 * dp=1". Those that the header lacks are left out. */
void figure_put_subject(struct text *title, const struct trace *trace);

/* The largest number of series in a figure: plots/common.gp has that many combinations of colour, dash and mark. */
enum { FIGURE_SERIES_MAX = 24 };

/* Sets the script's variables `series`, `name1`, `name2`, ..., and makes the figure so large that its key fits in one
 * column next to the plot. */
void figure_set_series_names(struct figure *figure, const char *const *name, size_t count);

/* The shown part of an axis. All-zero is the whole axis. */
struct figure_axis_range {
    bool has_low, has_high; /* the lower and the upper end are given */
    double low, high;
};

/* The options of a figure that the user can set. All-zero has none of them set. */
struct figure_options {
    const char *title;
    const char *x_column, *y_column; /* columns; for the figure `error`, y is a metric */
    /* the interval of a time axis that is shown, in seconds; shown_to_s 0: to the end */
    double shown_from_s, shown_to_s;
    /* ops that give the interval, in place of times (cli/figure/window.h); NULL: times give it */
    const char *op_window_text;
    long rank;               /* the rank of a trace whose rows are drawn */
    const char *memory_name; /* the memory that is drawn; NULL: "hbm" */
    /* A memory figure shows a line at the bytes that a GPU needs, which are more than those of its buffers. It may
     * be set only if `rank` is the rank that needs the most. */
    bool shows_needed_bytes;
    struct figure_axis_range y_range; /* the shown part of the y axis, in the units of its label */
    bool is_y_log;
    /* conditions such as "hp=2,4"; a row is drawn only if it meets all of them */
    const char *const *row_conditions;
    size_t row_condition_count;
};

/* Sets the script's variable `y_log`, and `y_low` and `y_high` if the options give them. */
void figure_set_y_axis(struct figure *figure, const struct figure_options *wanted);

/* Each of these functions makes one kind of figure: it fills an all-zero *figure. Release it even after an error. */
enum status figure_timeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag);
enum status figure_pipeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag);
enum status figure_memory(struct figure *figure, const struct trace *trace,
                          const struct figure_options *wanted, struct diag *diag);
/* A trace of figure_memory_of_several_traces(). The figure overlays the memory of several traces, each as the sum of
 * its categories over time, from the start of the trace's window. */
struct figure_trace {
    const char *name;
    const struct trace *trace;
};
enum status figure_memory_of_several_traces(struct figure *figure,
                                            const struct figure_trace *traces, size_t count,
                                            const struct figure_options *wanted, struct diag *diag);
enum status figure_waterfall(struct figure *figure, const char *name, const char *subject,
                             const struct waterfall *waterfall, const struct figure_options *wanted,
                             struct diag *diag);
enum status figure_sweep(struct figure *figure, const struct table *sweep,
                         const struct figure_options *wanted, struct diag *diag);
enum status figure_heatmap(struct figure *figure, const struct table *sweep,
                           const struct figure_options *wanted, struct diag *diag);
enum status figure_mfu(struct figure *figure, const struct table *sweep,
                       const struct figure_options *wanted, struct diag *diag);
enum status figure_error(struct figure *figure, const struct table *validated,
                         const struct figure_options *wanted, struct diag *diag);

#endif
