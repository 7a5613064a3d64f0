/* cli/figure/sweep.c: the figures of a sweep: curves over one axis, a map over two axes, and MFU over the length. */
#include "cli/figure/figure.h"

#include "cli/figure/sweep_view.h"
#include "models/mfu.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The curves of a sweep: a line for each combination of values of the other axes. */
struct curves {
    struct sweep_view view;
    struct sweep_axis axis;
    struct sweep_series series;
    size_t x, y;
};

static void curves_free(struct curves *c)
{
    sweep_view_release(&c->view);
    free(c);
}

/* Makes the curves of a sweep over axis x (NULL: the last axis that varies). *made must be freed even after an
 * error. */
static enum status curves_make(struct curves **made, const struct table *sweep, const char *x,
                               const char *y, struct diag *diag)
{
    struct curves *c = *made = heap_zalloc(1, sizeof *c);
    enum status status = sweep_view_make(&c->view, sweep, diag);
    if (status == STATUS_OK)
        status = sweep_view_choose(&c->view, x, sweep->name[sweep_view_last(&c->view, NULL, 0)],
                                   true, &c->x, diag);
    if (status == STATUS_OK)
        status = sweep_view_choose(&c->view, y, NULL, false, &c->y, diag);
    if (status == STATUS_OK)
        status = sweep_axis_make(&c->axis, &c->view, c->x, diag);
    if (status == STATUS_OK)
        status = sweep_series_make(&c->series, &c->view, c->x, c->y, diag);
    return status;
}

static double x_of(const struct curves *c, size_t row)
{
    return c->axis.position[sweep_axis_place(&c->axis, c->view.table->row[row][c->x])];
}

/* The least width of a plot between its axis and its key, in points. */
enum { PLOT_WIDE = 560 };

static void set_common(struct figure *figure, const struct curves *c, const char *script,
                       const char *title)
{
    figure->script = script;
    figure->width = 960;
    figure->height = 460;
    sweep_view_set_title(figure, &c->view, title);
    sweep_series_set(figure, &c->series);
    size_t shown = c->axis.count < 16 ? c->axis.count : 16;
    sweep_axis_set_ticks(figure, "x", &c->axis, false, PLOT_WIDE / (int)(shown + 1));
}

/* Returns the bytes that a GPU has available, which are drawn as a line. It is 0 if column y is not the needed memory,
 * or if the points differ in it. */
static double limit_of(const struct curves *c)
{
    const struct table *sweep = c->view.table;
    size_t column = table_find(sweep, "device_available_bytes");
    double limit = 0, other;
    if (strcmp(sweep->name[c->y], "device_needed_bytes") != 0 || column == SIZE_MAX)
        return 0;
    for (size_t i = 0; i < sweep->rows; i++) {
        if (!table_number(sweep, i, column, &other))
            continue;
        if (limit > 0 && other != limit)
            return 0;
        limit = other;
    }
    return limit;
}

/* Sets the range of the y axis, and its lower end, at which points without a number are drawn. A logarithmic axis
 * cannot begin at 0. It begins below the lowest point, and does not extend to the next power of ten. */
static void set_range(struct figure *figure, const struct figure_options *wanted, double least,
                      double most)
{
    static const double AROUND = 1.3;
    struct figure_options range = *wanted;
    if (wanted->y_log && least <= most) {
        double low = wanted->y_range.has_low ? wanted->y_range.low : least / AROUND;
        double high = wanted->y_range.has_high ? wanted->y_range.high : most * AROUND;
        range.y_range = (struct figure_range){true, true, low, high};
    }
    figure_set_y(figure, &range);
    figure_set_number(figure, "foot", range.y_range.has_low ? range.y_range.low : wanted->y_log);
}

enum status figure_sweep(struct figure *figure, const struct table *sweep,
                         const struct figure_options *wanted, struct diag *diag)
{
    struct curves *c;
    struct text label = {0}, name = {0};
    size_t unfit = 0, refused = 0, drawn = 0;
    double least = INFINITY, most = 0;
    enum status status =
        curves_make(&c, sweep, wanted->x, wanted->y != NULL ? wanted->y : "tokens_per_s_gpu", diag);
    if (status != STATUS_OK)
        goto out;
    double scale = sweep_put_label(&label, sweep->name[c->y]), value;
    for (size_t s = 0; s <= c->series.count; s++)
        for (size_t i = 0; i < sweep->rows; i++) {
            if (c->series.of_row[i] != s)
                continue;
            bool known = table_number(sweep, i, c->y, &value);
            const char *outcome = known ? "" : sweep->row[i][c->view.status];
            unfit += strcmp(outcome, "does not fit") == 0;
            refused += strcmp(outcome, "refused") == 0;
            drawn += known;
            least = known && value > 0 ? fmin(least, value * scale) : least;
            most = known ? fmax(most, value * scale) : most;
            text_printf(&figure->data, "%zu,%.9g,%.9g,%d\n", s + 1, x_of(c, i),
                        known ? value * scale : 0, known);
        }
    set_common(figure, c, "sweep", wanted->title);
    figure_set_text(figure, "y_label", label.data);
    label.size = 0;
    sweep_put_label(&label, sweep->name[c->x]);
    figure_set_text(figure, "x_label", label.data);
    figure_set_number(figure, "limit", limit_of(c) * scale);
    figure_set_text(figure, "limit_name", "what a GPU has");
    set_range(figure, wanted, least, fmax(most, limit_of(c) * scale));
    figure_set_number(figure, "x_log", c->axis.grows_by_factor ? 2 : 0);
    figure_set_text(figure, "unfit",
                    unfit == 0     ? refused > 0 ? "is refused" : ""
                    : refused == 0 ? "does not fit"
                                   : "does not fit, or is refused");
    name.size = 0;
    text_printf(&name, "none of %zu points %s", sweep->rows,
                unfit > 0 ? "fits" : "has a number here");
    figure_set_text(figure, "nothing", drawn == 0 ? name.data : "");
out:
    curves_free(c);
    text_release(&label);
    text_release(&name);
    return status;
}

/* Appends the number of a cell with three digits. */
static void put_cell(struct text *out, double value)
{
    int decimals = 2 - (int)floor(log10(fabs(value) > 0 ? fabs(value) : 1));
    text_printf(out, "%.*f", decimals > 0 ? decimals : 0, value);
}

/* Chooses the columns of a map: the wanted axis, and the last of the other axes that varies. */
static enum status choose_axes(size_t at[2], const struct sweep_view *view, const char *wanted,
                               struct diag *diag)
{
    const struct table *sweep = view->table;
    size_t other;
    if (view->axes < 2)
        return diag_error(
            diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
            "a heatmap needs two options that vary; `longhaul plot sweep` draws a sweep of one");
    enum status status = sweep_view_choose(
        view, wanted, sweep->name[sweep_view_last(view, NULL, 0)], true, &at[0], diag);
    if (status != STATUS_OK)
        return status;
    at[1] = sweep_view_last(view, at, 1);
    other = sweep_view_last(view, at, 2);
    if (other != SIZE_MAX && view->varies[other])
        return diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                          "a map takes two options that vary, and here are %zu: draw one value of "
                          "the others, such as --only %s=%s",
                          view->varying, sweep->name[other], sweep->row[0][other]);
    return status;
}

static const char *empty_cell(const struct table *sweep, size_t row, size_t status)
{
    static const struct {
        const char *status, *cell;
    } cells[] = {{"refused", "-"}, {"failed", "failed"}};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        if (strcmp(sweep->row[row][status], cells[i].status) == 0)
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
        status = choose_axes(at, &view, wanted->x, diag);
    if (status == STATUS_OK)
        status = sweep_view_choose(&view, wanted->y, "tokens_per_s_gpu", false, &column, diag);
    for (int k = 0; k < 2 && status == STATUS_OK; k++)
        status = sweep_axis_make(&axis[k], &view, at[k], diag);
    if (status != STATUS_OK)
        goto out;
    double scale = sweep_put_label(&label, sweep->name[column]);
    for (size_t i = 0; i < sweep->rows; i++) {
        bool known = table_number(sweep, i, column, &value);
        text_printf(&figure->data, "%zu,%zu,", sweep_axis_place(&axis[0], sweep->row[i][at[0]]),
                    sweep_axis_place(&axis[1], sweep->row[i][at[1]]));
        if (known) {
            value *= scale;
            low = fmin(low, value);
            high = fmax(high, value);
            text_printf(&figure->data, "%.9g,", value);
            put_cell(&figure->data, value);
            text_putc(&figure->data, '\n');
        } else {
            text_printf(&figure->data, ",%s\n", empty_cell(sweep, i, view.status));
        }
    }
    figure->script = "heatmap";
    figure->width = 290 + CELL_WIDE * (int)(axis[0].count < 20 ? axis[0].count : 20);
    figure->height = 160 + 44 * (int)(axis[1].count < 20 ? axis[1].count : 20);
    sweep_view_set_title(figure, &view, wanted->title);
    figure_set_text(figure, "value_label", label.data);
    for (int k = 0; k < 2; k++) {
        label.size = 0;
        sweep_put_label(&label, sweep->name[at[k]]);
        figure_set_text(figure, labels[k], label.data);
        sweep_axis_set_ticks(figure, ticks[k], &axis[k], true, CELL_WIDE);
    }
    figure_set_number(figure, "columns", (double)axis[0].count);
    figure_set_number(figure, "rows", (double)axis[1].count);
    figure_set_y(figure, wanted);
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

/* Appends the points of a line. all: the line has the points of all rows. */
static void put_mfu_line(struct text *out, const struct curves *c, size_t line, bool all,
                         size_t column)
{
    const struct table *sweep = c->view.table;
    double value;
    for (size_t i = 0; i < sweep->rows && column != SIZE_MAX; i++)
        if ((all || c->series.of_row[i] == line) && table_number(sweep, i, column, &value))
            text_printf(out, "%zu,%.9g,%.9g\n", line + 1, x_of(c, i), value);
}

/* Appends a line for each MFU convention and one for HFU. They replace the line of a sweep that has only one. */
static void put_conventions(struct figure *figure, struct curves *c)
{
    c->series.count = 0;
    for (size_t s = 0; s <= MFU_CONVENTION_COUNT; s++) {
        bool hfu = s == MFU_CONVENTION_COUNT;
        const char *column =
            hfu ? "hfu" : arena_printf(&c->view.arena, "mfu_%s", mfu_table[s].name);
        c->series.name[c->series.count++] =
            hfu ? "HFU" : arena_printf(&c->view.arena, "MFU %s", mfu_table[s].name);
        put_mfu_line(&figure->data, c, s, true, table_find(c->view.table, column));
    }
}

enum status figure_mfu(struct figure *figure, const struct table *sweep,
                       const struct figure_options *wanted, struct diag *diag)
{
    struct curves *c;
    struct text label = {0};
    enum status status =
        curves_make(&c, sweep, "seq", wanted->y != NULL ? wanted->y : "mfu_longhaul", diag);
    if (status != STATUS_OK)
        goto out;
    bool all = c->series.count == 1 && wanted->y == NULL;
    if (all)
        put_conventions(figure, c);
    for (size_t s = 0; s < c->series.count && !all; s++)
        put_mfu_line(&figure->data, c, s, false, c->y);
    if (figure->data.size == 0) {
        status = diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                            "no point fits in memory, so none has an MFU");
        goto out;
    }
    if (all)
        text_puts(&label, "MFU by each convention, and HFU");
    else if (strncmp(sweep->name[c->y], "mfu_", 4) == 0)
        text_printf(&label, "MFU by convention %s", sweep->name[c->y] + 4);
    else
        text_puts(&label, "HFU");
    set_common(figure, c, "mfu", wanted->title);
    figure_set_y(figure, wanted);
    figure_set_text(figure, "convention", label.data);
out:
    curves_free(c);
    text_release(&label);
    return status;
}
