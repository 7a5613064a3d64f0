/* cli/figure/sweep.c: the figures of a sweep: curves over one axis, a map over two axes, and MFU over the length. */
#include "cli/figure/figure.h"

#include "cli/figure/sweep_view.h"
#include "models/mfu.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The curves of a sweep over axis x: a line for each combination of values of the other axes. */
struct curves {
    struct sweep_view view;
    struct sweep_axis axis;
    struct sweep_lines series;
    size_t x_column, y_column;
};

static void curves_free(struct curves *c)
{
    sweep_view_release(&c->view);
    free(c);
}

/* Makes the curves of column y of a sweep over axis x (NULL: the last axis that varies). *made must be freed even after
 * an error. */
static enum status curves_make(struct curves **made, const struct table *sweep, const char *x,
                               const char *y, struct diag *diag)
{
    struct curves *c = *made = heap_zalloc(1, sizeof *c);
    enum status status = sweep_view_make(&c->view, sweep, diag);
    if (status == STATUS_OK)
        status = sweep_view_choose_column(
            &c->view, x, sweep->column_name[sweep_view_last_varying_axis(&c->view, NULL, 0)], true,
            &c->x_column, diag);
    if (status == STATUS_OK)
        status = sweep_view_choose_column(&c->view, y, NULL, false, &c->y_column, diag);
    if (status == STATUS_OK)
        status = sweep_axis_make(&c->axis, &c->view, c->x_column, diag);
    if (status == STATUS_OK)
        status = sweep_lines_make(&c->series, &c->view, c->x_column, c->y_column, diag);
    return status;
}

static double x_value(const struct curves *c, size_t row)
{
    return c->axis
        .position[sweep_axis_index_of_text(&c->axis, c->view.table->cells[row][c->x_column])];
}

/* The least width, in points, between the axis of a plot and its key. */
enum { PLOT_WIDE = 560 };

static void set_common_variables(struct figure *figure, const struct curves *c, const char *script,
                                 const char *title)
{
    figure->script_name = script;
    figure->width = 960;
    figure->height = 460;
    sweep_view_set_title(figure, &c->view, title);
    sweep_lines_set_variables(figure, &c->series);
    size_t shown = c->axis.count < 16 ? c->axis.count : 16;
    sweep_axis_set_ticks(figure, "x", &c->axis, false, PLOT_WIDE / (int)(shown + 1));
}

/* Returns the bytes that a GPU has available, which are drawn as a line. It is 0 if column y is not the needed memory,
 * or if the points differ in it. */
static double memory_limit_bytes(const struct curves *c)
{
    const struct table *sweep = c->view.table;
    size_t column = table_find_column(sweep, "device_available_bytes");
    double gpu_limit_bytes = 0, other;
    if (strcmp(sweep->column_name[c->y_column], "device_needed_bytes") != 0 || column == SIZE_MAX)
        return 0;
    for (size_t i = 0; i < sweep->row_count; i++) {
        if (!table_read_number(sweep, i, column, &other))
            continue;
        if (gpu_limit_bytes > 0 && other != gpu_limit_bytes)
            return 0;
        gpu_limit_bytes = other;
    }
    return gpu_limit_bytes;
}

/* Sets the range of the y axis; points without a number are drawn at its lower end. A logarithmic
 * axis cannot begin at 0: unless the user gave its lower end, it begins a little below the lowest
 * point, not at the next power of ten. */
static void set_y_range(struct figure *figure, const struct figure_options *wanted, double least,
                        double most)
{
    static const double AROUND = 1.3;
    struct figure_options range = *wanted;
    if (wanted->is_y_log && least <= most) {
        double low = wanted->y_range.has_low ? wanted->y_range.low : least / AROUND;
        double high = wanted->y_range.has_high ? wanted->y_range.high : most * AROUND;
        range.y_range = (struct figure_axis_range){true, true, low, high};
    }
    figure_set_y_axis(figure, &range);
    figure_set_number(figure, "foot", range.y_range.has_low ? range.y_range.low : wanted->is_y_log);
}

enum status figure_sweep(struct figure *figure, const struct table *sweep,
                         const struct figure_options *wanted, struct diag *diag)
{
    struct curves *c;
    struct text label = {0}, name = {0};
    size_t unfit = 0, refused = 0, drawn = 0;
    double least = INFINITY, most = 0;
    enum status status =
        curves_make(&c, sweep, wanted->x_column,
                    wanted->y_column != NULL ? wanted->y_column : "tokens_per_s_gpu", diag);
    if (status != STATUS_OK)
        goto out;
    double scale = sweep_put_column_label_get_scale(&label, sweep->column_name[c->y_column]), value;
    for (size_t s = 0; s <= c->series.count; s++)
        for (size_t i = 0; i < sweep->row_count; i++) {
            if (c->series.line_index_of_each_row[i] != s)
                continue;
            bool known = table_read_number(sweep, i, c->y_column, &value);
            const char *outcome = known ? "" : sweep->cells[i][c->view.status_column];
            unfit += strcmp(outcome, "does not fit") == 0 || strcmp(outcome, "may fit") == 0;
            refused += strcmp(outcome, "refused") == 0;
            drawn += known;
            least = known && value > 0 ? fmin(least, value * scale) : least;
            most = known ? fmax(most, value * scale) : most;
            text_printf(&figure->csv, "%zu,%.9g,%.9g,%d\n", s + 1, x_value(c, i),
                        known ? value * scale : 0, known);
        }
    set_common_variables(figure, c, "sweep", wanted->title);
    figure_set_text(figure, "y_label", label.data);
    label.size = 0;
    sweep_put_column_label_get_scale(&label, sweep->column_name[c->x_column]);
    figure_set_text(figure, "x_label", label.data);
    figure_set_number(figure, "limit", memory_limit_bytes(c) * scale);
    figure_set_text(figure, "limit_name", "what a GPU has");
    set_y_range(figure, wanted, least, fmax(most, memory_limit_bytes(c) * scale));
    figure_set_number(figure, "x_log", c->axis.values_grow_by_factor ? 2 : 0);
    figure_set_text(figure, "unfit",
                    unfit == 0     ? refused > 0 ? "is refused" : ""
                    : refused == 0 ? "does not fit"
                                   : "does not fit, or is refused");
    name.size = 0;
    text_printf(&name, "none of %zu points %s", sweep->row_count,
                unfit > 0 ? "fits" : "has a number here");
    figure_set_text(figure, "nothing", drawn == 0 ? name.data : "");
out:
    curves_free(c);
    text_release(&label);
    text_release(&name);
    return status;
}

/* Appends the number of a cell with three significant digits; from 1000 on, rounded to a whole number. */
static void put_cell_number(struct text *out, double value)
{
    int decimals = 2 - (int)floor(log10(fabs(value) > 0 ? fabs(value) : 1));
    text_printf(out, "%.*f", decimals > 0 ? decimals : 0, value);
}

/* Sets at[] to the columns of a map: the wanted axis (NULL: the last that varies), and the last of
 * the other axes that varies. It is an error if the sweep has only one axis, or if a third axis
 * varies. */
static enum status choose_heatmap_axes(size_t at[2], const struct sweep_view *view,
                                       const char *wanted, struct diag *diag)
{
    const struct table *sweep = view->table;
    size_t third_axis;
    if (view->axis_count < 2)
        return diag_error(
            diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
            "a heatmap needs two options that vary; `longhaul plot sweep` draws a sweep of one");
    enum status status = sweep_view_choose_column(
        view, wanted, sweep->column_name[sweep_view_last_varying_axis(view, NULL, 0)], true, &at[0],
        diag);
    if (status != STATUS_OK)
        return status;
    at[1] = sweep_view_last_varying_axis(view, at, 1);
    third_axis = sweep_view_last_varying_axis(view, at, 2);
    if (third_axis != SIZE_MAX && view->varies[third_axis])
        return diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                          "a map takes two options that vary, and here are %zu: draw one value of "
                          "the others, such as --only %s=%s",
                          view->varying_axis_count, sweep->column_name[third_axis],
                          sweep->cells[0][third_axis]);
    return status;
}

static const char *text_of_cell_without_number(const struct table *sweep, size_t row, size_t status)
{
    static const struct {
        const char *status, *cell;
    } cells[] = {{"refused", "-"}, {"failed", "failed"}};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        if (strcmp(sweep->cells[row][status], cells[i].status) == 0)
            return cells[i].cell;
    return "no fit";
}

enum status figure_heatmap(struct figure *figure, const struct table *sweep,
                           const struct figure_options *wanted, struct diag *diag)
{
    enum { CELL_WIDE = 78 };
    static const char *const ticks[] = {"x", "y"}, *const labels[] = {"x_label", "y_label"};
    struct sweep_view view = {0};
    struct sweep_axis *axis = heap_zalloc(2, sizeof *axis);
    struct text label = {0};
    size_t at[2] = {0, 0}, column = 0;
    double low = INFINITY, high = -INFINITY, value;
    enum status status = sweep_view_make(&view, sweep, diag);
    if (status == STATUS_OK)
        status = choose_heatmap_axes(at, &view, wanted->x_column, diag);
    if (status == STATUS_OK)
        status = sweep_view_choose_column(&view, wanted->y_column, "tokens_per_s_gpu", false,
                                          &column, diag);
    for (int k = 0; k < 2 && status == STATUS_OK; k++)
        status = sweep_axis_make(&axis[k], &view, at[k], diag);
    if (status != STATUS_OK)
        goto out;
    double scale = sweep_put_column_label_get_scale(&label, sweep->column_name[column]);
    for (size_t i = 0; i < sweep->row_count; i++) {
        bool known = table_read_number(sweep, i, column, &value);
        text_printf(&figure->csv, "%zu,%zu,",
                    sweep_axis_index_of_text(&axis[0], sweep->cells[i][at[0]]),
                    sweep_axis_index_of_text(&axis[1], sweep->cells[i][at[1]]));
        if (known) {
            value *= scale;
            low = fmin(low, value);
            high = fmax(high, value);
            text_printf(&figure->csv, "%.9g,", value);
            put_cell_number(&figure->csv, value);
            text_putc(&figure->csv, '\n');
        } else {
            text_printf(&figure->csv, ",%s\n",
                        text_of_cell_without_number(sweep, i, view.status_column));
        }
    }
    figure->script_name = "heatmap";
    figure->width = 290 + CELL_WIDE * (int)(axis[0].count < 20 ? axis[0].count : 20);
    figure->height = 160 + 44 * (int)(axis[1].count < 20 ? axis[1].count : 20);
    sweep_view_set_title(figure, &view, wanted->title);
    figure_set_text(figure, "value_label", label.data);
    for (int k = 0; k < 2; k++) {
        label.size = 0;
        sweep_put_column_label_get_scale(&label, sweep->column_name[at[k]]);
        figure_set_text(figure, labels[k], label.data);
        sweep_axis_set_ticks(figure, ticks[k], &axis[k], true, CELL_WIDE);
    }
    figure_set_number(figure, "columns", (double)axis[0].count);
    figure_set_number(figure, "rows", (double)axis[1].count);
    figure_set_y_axis(figure, wanted);
    figure_set_number(figure, "low",
                      wanted->y_range.has_low ? wanted->y_range.low
                      : low < high            ? low
                                              : 0);
    figure_set_number(figure, "high_value",
                      wanted->y_range.has_high   ? wanted->y_range.high
                      : low < high               ? high
                      : low > 0 && isfinite(low) ? low
                                                 : 1);
out:
    free(axis);
    sweep_view_release(&view);
    text_release(&label);
    return status;
}

/* Appends the points of line number `line`, each with the number in `column` as its y. Rows without a number are left
 * out. If `all`, the line has all rows of the sweep, otherwise only those that belong to it. column SIZE_MAX: appends
 * nothing. */
static void put_points_of_mfu_line(struct text *out, const struct curves *c, size_t line, bool all,
                                   size_t column)
{
    const struct table *sweep = c->view.table;
    double value;
    for (size_t i = 0; i < sweep->row_count && column != SIZE_MAX; i++)
        if ((all || c->series.line_index_of_each_row[i] == line) &&
            table_read_number(sweep, i, column, &value))
            text_printf(out, "%zu,%.9g,%.9g\n", line + 1, x_value(c, i), value);
}

/* Appends a line for each MFU convention and one for HFU, in place of the only line of a sweep. */
static void put_convention_lines(struct figure *figure, struct curves *c)
{
    c->series.count = 0;
    for (size_t s = 0; s <= MFU_CONVENTION_COUNT; s++) {
        bool hfu = s == MFU_CONVENTION_COUNT;
        const char *column = hfu ? "hfu" : arena_printf(&c->view.arena, "mfu_%s", mfu_names[s]);
        c->series.name[c->series.count++] =
            hfu ? "HFU" : arena_printf(&c->view.arena, "MFU %s", mfu_names[s]);
        put_points_of_mfu_line(&figure->csv, c, s, true, table_find_column(c->view.table, column));
    }
}

enum status figure_mfu(struct figure *figure, const struct table *sweep,
                       const struct figure_options *wanted, struct diag *diag)
{
    struct curves *c;
    struct text label = {0};
    enum status status = curves_make(
        &c, sweep, "seq", wanted->y_column != NULL ? wanted->y_column : "mfu_longhaul", diag);
    if (status != STATUS_OK)
        goto out;
    bool all = c->series.count == 1 && wanted->y_column == NULL;
    if (all)
        put_convention_lines(figure, c);
    for (size_t s = 0; s < c->series.count && !all; s++)
        put_points_of_mfu_line(&figure->csv, c, s, false, c->y_column);
    if (figure->csv.size == 0) {
        status = diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                            "no point fits in memory, so none has an MFU");
        goto out;
    }
    if (all)
        text_puts(&label, "MFU by each convention, and HFU");
    else if (strncmp(sweep->column_name[c->y_column], "mfu_", 4) == 0)
        text_printf(&label, "MFU by convention %s", sweep->column_name[c->y_column] + 4);
    else
        text_puts(&label, "HFU");
    set_common_variables(figure, c, "mfu", wanted->title);
    figure_set_y_axis(figure, wanted);
    figure_set_text(figure, "convention", label.data);
out:
    curves_free(c);
    text_release(&label);
    return status;
}
