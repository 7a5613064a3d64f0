/* cli/figure/sweep_view.h: the rows of a sweep prepared for figures: the axes that vary and the lines that they make.
 *
 * The columns before "status" are the options that were varied. An option that has the same value in every row does
 * not distinguish lines, so it is put into the title. */
#ifndef CLI_FIGURE_SWEEP_VIEW_H
#define CLI_FIGURE_SWEEP_VIEW_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/common/table.h"
#include "cli/figure/figure.h"

#include <stdbool.h>
#include <stddef.h>

enum { SWEEP_VALUES_MAX = 400 };

struct sweep_view {
    const struct table *table; /* the caller's */
    size_t axes, status;       /* columns before column `status` are axes */
    size_t varying;            /* how many of them vary */
    bool *varies;              /* (axes) the axis has more than one value */
    struct arena arena;
};

/* Fills an all-zero view; release it even after an error. Errors: the table is no sweep, or has no rows. */
enum status sweep_view_make(struct sweep_view *view, const struct table *table, struct diag *diag);
void sweep_view_release(struct sweep_view *view);

/* Returns the last axis outside except[] that varies, or, if none does, the last one; SIZE_MAX: no axis is left. */
size_t sweep_view_last(const struct sweep_view *view, const size_t *except, size_t excepted);

/* Finds the column `wanted`, or `fallback` if `wanted` is NULL. With of_axes the column must be an axis. */
enum status sweep_view_choose(const struct sweep_view *view, const char *wanted,
                              const char *fallback, bool of_axes, size_t *column,
                              struct diag *diag);

/* The values of an axis in the order of the file, and the position of each on the axis. */
struct sweep_axis {
    size_t column, count;
    const char *text[SWEEP_VALUES_MAX];
    double at[SWEEP_VALUES_MAX];
    bool numbers, grows_by_factor;
};
enum status sweep_axis_make(struct sweep_axis *axis, const struct sweep_view *view, size_t column,
                            struct diag *diag);
/* Returns the index of a value on the axis, which must have that value. */
size_t sweep_axis_place(const struct sweep_axis *axis, const char *text);
/* Sets the ticks of the axis `which`, "x" or "y", at its values, or, with `index`, at their indices (cells of a
 * heatmap). Ticks are omitted until the rest can be read. Texts wider than `room` points are turned upright below the
 * x axis; the figure grows by the space that its ticks take. */
void sweep_axis_set_ticks(struct figure *figure, const char *which, const struct sweep_axis *axis,
                          bool index, int room);

/* The lines over axis x: one for each combination of values of the other varying axes, if any of its rows has a
 * number in column y. More lines than FIGURE_SERIES_MAX are an error that says which values to leave out. */
struct sweep_series {
    const char *name[FIGURE_SERIES_MAX]; /* "strategy=fpdt zero=3"; in the view's arena */
    size_t count;
    size_t empty;   /* combinations without any number */
    size_t *of_row; /* (rows) index of the row's line; `count`: the row is on no line */
};
enum status sweep_series_make(struct sweep_series *series, struct sweep_view *view, size_t x,
                              size_t y, struct diag *diag);
/* Sets the script's variables for the lines' number and names and for the number of empty combinations. */
void sweep_series_set(struct figure *figure, const struct sweep_series *series);
/* Appends the label of a column on an axis, with its unit. Returns the factor that scales values to that unit. */
double sweep_put_label(struct text *out, const char *column);

/* Sets the figure's title, `wanted` or else the options that all rows share, and widens the figure to fit it. */
void sweep_view_set_title(struct figure *figure, const struct sweep_view *view, const char *wanted);

#endif
