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
    const struct table *table;        /* it belongs to the caller */
    size_t axis_count, status_column; /* the columns before column `status` are the axes */
    size_t varying_axis_count;        /* how many axes vary */
    bool *varies;                     /* [axes] the axis has more than one value */
    struct arena arena;
};

/* Fills an all-zero view, which must be released even after an error. It fails if the table is not that of a sweep, or
 * has no rows. */
enum status sweep_view_make(struct sweep_view *view, const struct table *table, struct diag *diag);
void sweep_view_release(struct sweep_view *view);

/* Returns the last axis that varies and is not in except[]; if none varies, the last axis that is not in except[].
 * Returns SIZE_MAX if except[] has all axes. */
size_t sweep_view_last_varying_axis(const struct sweep_view *view, const size_t *except,
                                    size_t excepted);

/* Finds the column `wanted`, or `fallback` if `wanted` is NULL. If `of_axes`, the column must be an axis. */
enum status sweep_view_choose_column(const struct sweep_view *view, const char *wanted,
                                     const char *fallback, bool of_axes, size_t *column,
                                     struct diag *diag);

/* The distinct values of an axis in the order of the file. */
struct sweep_axis {
    size_t column, count;
    const char *text[SWEEP_VALUES_MAX];
    /* the position of each value on the axis: its number if all are numbers, else its index */
    double position[SWEEP_VALUES_MAX];
    bool all_values_are_numbers;
    /* there are at least three values, and each is the one before times the same factor */
    bool values_grow_by_factor;
};
enum status sweep_axis_make(struct sweep_axis *axis, const struct sweep_view *view, size_t column,
                            struct diag *diag);
/* Returns the index of a value on the axis, which must have that value. */
size_t sweep_axis_index_of_text(const struct sweep_axis *axis, const char *text);
/* Sets the ticks of the axis `which`, "x" or "y", at its values or, if `index`, at their indices (cells of a heatmap).
 * If there are too many to be read, some are omitted. If the longest text of the x axis is wider than `room` points,
 * all its texts are written vertically. The figure grows by what the longest vertical text of the x axis, or the
 * longest text of the y axis, has beyond 6 letters. */
void sweep_axis_set_ticks(struct figure *figure, const char *which, const struct sweep_axis *axis,
                          bool index, int room);

/* The lines over axis x: one for each combination of values of the other varying axes. A combination has a line only if
 * one of its rows has a number in column y. More than FIGURE_SERIES_MAX lines are an error, which says how to draw
 * fewer. */
struct sweep_lines {
    /* such as "strategy=fpdt zero=3"; the text is in the view's arena */
    const char *name[FIGURE_SERIES_MAX];
    size_t count;
    size_t combinations_without_number; /* how many combinations have no number */
    /* [rows] the index of the line to which the row belongs; `count` if it belongs to none */
    size_t *line_index_of_each_row;
};
enum status sweep_lines_make(struct sweep_lines *series, struct sweep_view *view, size_t x,
                             size_t y, struct diag *diag);
/* Sets the script's variables: the number of lines, their names, and the number of combinations without a number. */
void sweep_lines_set_variables(struct figure *figure, const struct sweep_lines *series);
/* Appends the label of a column on an axis, with its unit. Returns the factor that scales values to that unit. */
double sweep_put_column_label_get_scale(struct text *out, const char *column);

/* Sets the title of the figure, and widens the figure so that the title fits. wanted NULL: the title has the main
 * options of the command that made the sweep, and the axes that do not vary. */
void sweep_view_set_title(struct figure *figure, const struct sweep_view *view, const char *wanted);

#endif
