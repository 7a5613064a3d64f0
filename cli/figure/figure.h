/* cli/figure/figure.h: figures: data as CSV and the script of plots/ that draws it.
 *
 * A figure holds the CSV that its script reads and the variables that the script says it needs, both made from a file
 * that longhaul wrote. figure_draw() runs gnuplot on them; names and paths from the user reach gnuplot only as quoted
 * text.
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

/* All-zero is empty. */
struct figure {
    const char *script; /* "sweep": plots/sweep.gp */
    int wide, high;     /* size of the SVG in points; a PNG has twice as many pixels each way */
    struct text data;   /* CSV */
    struct text set;    /* gnuplot: the script's variables */
};
void figure_release(struct figure *figure);

enum figure_format { FIGURE_SVG, FIGURE_PNG };

/* Appends the picture. Without gnuplot, an error says how to get it. */
enum status figure_draw(const struct figure *figure, enum figure_format format, bool dark,
                        struct text *picture, struct diag *diag);

/* Writes data.csv and figure.gp, which `gnuplot figure.gp` draws, into a folder, which is created if it does not
 * exist. */
enum status figure_save(const struct figure *figure, enum figure_format format, bool dark,
                        const char *folder, struct diag *diag);

/* Appends a text in gnuplot's single quotes, in which only the quote itself is special. */
void figure_put_quoted(struct text *out, const char *text);

/* Sets a variable to a text or a number. */
void figure_set_text(struct figure *figure, const char *name, const char *text);
void figure_set_number(struct figure *figure, const char *name, double value);

/* Appends ": llama3-8b on dgx-h100, ulysses hp=8 dp=1", as far as the trace says what it is of. */
void figure_put_subject(struct text *title, const struct trace *trace);

/* The most series in one figure: plots/common.gp has as many combinations of colour, dash and mark. */
enum { FIGURE_SERIES_MAX = 24 };

/* Sets the script's variables series, name1, name2, ..., and enlarges the figure to fit its key, which stands in one
 * column beside the plot. */
void figure_set_series(struct figure *figure, const char *const *name, size_t count);

/* The part of an axis that is shown; all-zero is the whole axis. */
struct figure_range {
    bool from, to; /* whether an end is given */
    double low, high;
};

/* The user's options of a figure; all-zero has none set. */
struct figure_options {
    const char *title;
    const char *x, *y;           /* columns, or a metric */
    double from_s, to_s;         /* shown interval of a time axis; 0, 0: all of it */
    const char *window;          /* instead of times, the ops shown: cli/figure/window.h */
    long rank;                   /* of a trace */
    const char *memory;          /* "hbm" */
    struct figure_range y_range; /* in the units of its label */
    bool y_log;
    const char *const *only; /* "hp=2,4": conditions; rows that meet all of them are drawn */
    size_t onlys;
};

/* Sets the script's variables y_log and, where the options give them, y_low and y_high. */
void figure_set_y(struct figure *figure, const struct figure_options *wanted);

/* Each of these fills an all-zero *figure; release it even after an error. */
enum status figure_timeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag);
enum status figure_pipeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag);
enum status figure_memory(struct figure *figure, const struct trace *trace,
                          const struct figure_options *wanted, struct diag *diag);
/* A trace of figure_memories(), which overlays the memory of several traces, each as the sum of its categories over
 * time from the start of its window. */
struct figure_trace {
    const char *name;
    const struct trace *trace;
};
enum status figure_memories(struct figure *figure, const struct figure_trace *traces, size_t count,
                            const struct figure_options *wanted, struct diag *diag);
enum status figure_waterfall(struct figure *figure, const char *name,
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
