/* cli/figure/figure.h: figures: data as CSV and the script of plots/ that draws it.
 *
 * A figure is made from a file of ours: the CSV that its script reads, and the variables the script
 * says it needs. figure_draw() runs gnuplot on it, which never sees a name or a path that a user
 * gave but as quoted text. */
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
    int wide, high;     /* of the SVG, in points; a PNG has twice as many pixels */
    struct text data;   /* CSV */
    struct text set;    /* gnuplot: the script's variables */
};
void figure_release(struct figure *figure);

enum figure_format { FIGURE_SVG, FIGURE_PNG };

/* Appends the picture. Without gnuplot, an error says how to get it. */
enum status figure_draw(const struct figure *figure, enum figure_format format, bool dark,
                        struct text *picture, struct diag *diag);

/* Writes data.csv and figure.gp, which `gnuplot figure.gp` draws, into a folder, which is made when it
 * is not there. */
enum status figure_save(const struct figure *figure, enum figure_format format, bool dark,
                        const char *folder, struct diag *diag);

/* Appends a text of gnuplot in single quotes, where only the quote itself means something. */
void figure_put_quoted(struct text *out, const char *text);

/* Sets a variable to a text or a number. */
void figure_set_text(struct figure *figure, const char *name, const char *text);
void figure_set_number(struct figure *figure, const char *name, double value);

/* Lines and marks that can be told apart: so many colours, dashes and marks plots/common.gp has. */
enum { FIGURE_SERIES_MAX = 24 };

/* Sets series and name1, name2, ..., and makes the figure as large as its key, which stands in one
 * column beside it, needs. */
void figure_set_series(struct figure *figure, const char *const *name, size_t count);

/* Part of an axis; all-zero is all of it. */
struct figure_range {
    bool from, to; /* whether an end is given */
    double low, high;
};

/* What the reader wants of a figure; all-zero leaves it open. */
struct figure_options {
    const char *title;
    const char *x, *y;           /* columns, or a metric */
    double from_s, to_s;         /* of a time axis; 0, 0: all of it */
    const char *window;          /* or the ops that it shows: cli/figure/window.h */
    long rank;                   /* of a trace */
    const char *memory;          /* "hbm" */
    struct figure_range y_range; /* in the units of its label */
    bool y_log;
    const char *const *only; /* "hp=2,4": rows that are drawn; all of them hold */
    size_t onlys;
};

/* Sets y_log, and y_low and y_high where the options ask for them. */
void figure_set_y(struct figure *figure, const struct figure_options *wanted);

/* The figures. Each fills an all-zero *figure; release it in either case. */
enum status figure_timeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag);
enum status figure_memory(struct figure *figure, const struct trace *trace,
                          const struct figure_options *wanted, struct diag *diag);
/* Several on one another, each by the sum of its categories and from the start of its window. */
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
