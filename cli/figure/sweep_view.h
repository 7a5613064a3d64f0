/* cli/figure/sweep_view.h: rows of a sweep as figures see them: axes that vary, lines that they make.
 *
 * The columns before "status" are the options that were varied. One with the same value in every row
 * tells nothing apart: it stands in the title. */
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
    size_t axes, status;       /* columns before `status` are axes */
    size_t varying;            /* how many of them vary */
    bool *varies;              /* of each axis */
    struct arena arena;
};

/* Fills an all-zero view. Errors: not rows of a sweep, or none. Release it in either case. */
enum status sweep_view_make(struct sweep_view *view, const struct table *table, struct diag *diag);
void sweep_view_release(struct sweep_view *view);

/* The last axis that varies, those in except[] left out; else the last; SIZE_MAX: there is none. */
size_t sweep_view_last(const struct sweep_view *view, const size_t *except, size_t excepted);

/* The column `wanted`, or the one that is taken without one. of_axes: it must be an axis. */
enum status sweep_view_choose(const struct sweep_view *view, const char *wanted,
                              const char *fallback, bool of_axes, size_t *column,
                              struct diag *diag);

/* The values of an axis in the order of the file, and where each stands. */
struct sweep_axis {
    size_t column, count;
    const char *text[SWEEP_VALUES_MAX];
    double at[SWEEP_VALUES_MAX];
    bool numbers, grows_by_factor;
};
enum status sweep_axis_make(struct sweep_axis *axis, const struct sweep_view *view, size_t column,
                            struct diag *diag);
/* The place of a text on the axis, which must have it. */
size_t sweep_axis_place(const struct sweep_axis *axis, const char *text);
/* Ticks of "x" or "y" where the values are, thinned to what can be read. index: cells of a map. Texts that are
 * wider than `room` points stand upright below the x axis; the figure grows by what its ticks take. */
void sweep_axis_set_ticks(struct figure *figure, const char *which, const struct sweep_axis *axis,
                          bool index, int room);

/* The lines over axis x: one for each combination of the other axes that vary of which a row has a
 * number in column y. More than can be told apart are an error, which says what to leave out. */
struct sweep_series {
    const char *name[FIGURE_SERIES_MAX]; /* "strategy=fpdt zero=3"; in the view's arena */
    size_t count;
    size_t empty;   /* combinations of which no row has a number */
    size_t *of_row; /* the line of each row; count: one without numbers */
};
enum status sweep_series_make(struct sweep_series *series, struct sweep_view *view, size_t x,
                              size_t y, struct diag *diag);
/* Sets series and their names, and how many are empty. */
void sweep_series_set(struct figure *figure, const struct sweep_series *series);
/* What a column is called on an axis: with its unit, and the factor that scales it to it. */
double sweep_put_label(struct text *out, const char *column);

/* The title of a figure, which is made as wide as it: the wanted one, or what all its rows share. */
void sweep_view_set_title(struct figure *figure, const struct sweep_view *view, const char *wanted);

#endif
