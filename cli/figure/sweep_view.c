#include "cli/figure/sweep_view.h"

#include "base/units.h"
#include "cli/common/options.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- axes ---- */

enum status sweep_view_make(struct sweep_view *view, const struct table *table, struct diag *diag)
{
    view->table = table;
    enum status status = table_find_required_column(table, "status", &view->status_column, diag);
    if (status != STATUS_OK)
        return status;
    view->axis_count = view->status_column;
    if (view->axis_count == 0)
        return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                          "is no sweep: no column comes before 'status'");
    if (table->row_count == 0)
        return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT, "has no rows");
    view->varies = arena_array(&view->arena, view->axis_count, sizeof *view->varies);
    for (size_t a = 0; a < view->axis_count; a++) {
        for (size_t i = 1; i < table->row_count && !view->varies[a]; i++)
            view->varies[a] = strcmp(table->cells[i][a], table->cells[0][a]) != 0;
        view->varying_axis_count += view->varies[a];
    }
    return STATUS_OK;
}

void sweep_view_release(struct sweep_view *view)
{
    arena_release(&view->arena);
    *view = (struct sweep_view){0};
}

static bool list_contains(const size_t *list, size_t count, size_t value)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

size_t sweep_view_last_varying_axis(const struct sweep_view *view, const size_t *except,
                                    size_t excepted)
{
    size_t last_varying_axis = SIZE_MAX;
    for (size_t a = 0; a < view->axis_count; a++)
        if (!list_contains(except, excepted, a) &&
            (last_varying_axis == SIZE_MAX || view->varies[a] || !view->varies[last_varying_axis]))
            last_varying_axis = a;
    return last_varying_axis;
}

enum status sweep_view_choose_column(const struct sweep_view *view, const char *wanted,
                                     const char *fallback, bool of_axes, size_t *column,
                                     struct diag *diag)
{
    enum status status =
        table_find_required_column(view->table, wanted != NULL ? wanted : fallback, column, diag);
    if (status == STATUS_OK && of_axes && *column >= view->axis_count)
        return diag_error(diag, (struct loc){.name = view->table->path}, STATUS_BAD_INPUT,
                          "'%s' was not varied", view->table->column_name[*column]);
    return status;
}

/* Reads a plain number, tokens or a quantity: "128K", "12", "0.5", "200Gb/s". */
static bool parse_number(const char *text, double *value)
{
    int64_t tokens;
    if (parse_double(text, strlen(text), value))
        return true;
    if (units_parse_tokens(text, strlen(text), &tokens, (struct loc){0}, NULL) == STATUS_OK) {
        *value = (double)tokens;
        return true;
    }
    for (int kind = 0; kind < UNIT_KIND_COUNT; kind++)
        if (units_parse(text, strlen(text), (enum unit_kind)kind, value, (struct loc){0}, NULL) ==
            STATUS_OK)
            return true;
    return false;
}

enum status sweep_axis_make(struct sweep_axis *axis, const struct sweep_view *view, size_t column,
                            struct diag *diag)
{
    *axis = (struct sweep_axis){.column = column, .all_values_are_numbers = true};
    for (size_t i = 0; i < view->table->row_count; i++) {
        const char *text = view->table->cells[i][column];
        size_t k = 0;
        while (k < axis->count && strcmp(axis->text[k], text) != 0)
            k++;
        if (k < axis->count)
            continue;
        if (k == SWEEP_VALUES_MAX)
            return diag_error(diag, (struct loc){.name = view->table->path}, STATUS_BAD_INPUT,
                              "'%s' has more than %d values, too many for a figure",
                              view->table->column_name[column], SWEEP_VALUES_MAX);
        axis->text[axis->count] = text;
        axis->all_values_are_numbers =
            axis->all_values_are_numbers && parse_number(text, &axis->position[axis->count]);
        axis->count++;
    }
    axis->values_grow_by_factor = axis->all_values_are_numbers && axis->count > 2;
    for (size_t k = 0; k < axis->count; k++) {
        if (!axis->all_values_are_numbers)
            axis->position[k] = (double)k;
        if (axis->all_values_are_numbers && k > 1 && axis->position[0] > 0 &&
            fabs(axis->position[k] / axis->position[k - 1] /
                     (axis->position[1] / axis->position[0]) -
                 1) > 1e-6)
            axis->values_grow_by_factor = false;
    }
    if (axis->count > 0 && !(axis->position[0] > 0))
        axis->values_grow_by_factor = false;
    return STATUS_OK;
}

size_t sweep_axis_index_of_text(const struct sweep_axis *axis, const char *text)
{
    size_t k = 0;
    while (strcmp(axis->text[k], text) != 0)
        k++;
    return k;
}

/* TICK_LETTER: the width of a letter of a tick's text, in units of figure->width. TICK_LETTERS: the number of letters
 * for which every figure has room. TICKS, UPRIGHT_TICKS: an axis of horizontal or of vertical texts with this many
 * values, or more, has a tick only at every second, third or further one. */
enum { TICK_LETTER = 7, TICK_LETTERS = 6, TICKS = 16, UPRIGHT_TICKS = 40 };

void sweep_axis_set_ticks(struct figure *figure, const char *which, const struct sweep_axis *axis,
                          bool index, int room)
{
    size_t longest = 0;
    for (size_t k = 0; k < axis->count; k++)
        longest = strlen(axis->text[k]) > longest ? strlen(axis->text[k]) : longest;
    bool is_x_axis = strcmp(which, "x") == 0;
    bool is_text_upright = is_x_axis && (int)(longest + 1) * TICK_LETTER > room;
    size_t every = 1 + axis->count / (is_text_upright ? UPRIGHT_TICKS : TICKS);
    int more = longest > TICK_LETTERS ? (int)(longest - TICK_LETTERS) * TICK_LETTER : 0;
    figure->height += is_text_upright ? more : 0;
    figure->width += is_x_axis ? 0 : more;
    text_printf(&figure->gnuplot_settings, "set %stics %s(", which,
                is_text_upright ? "rotate by 90 right " : "");
    for (size_t k = 0; k < axis->count; k += every) {
        text_puts(&figure->gnuplot_settings, k == 0 ? "" : ", ");
        figure_put_quoted(&figure->gnuplot_settings, axis->text[k]);
        text_printf(&figure->gnuplot_settings, " %.17g", index ? (double)k : axis->position[k]);
    }
    text_puts(&figure->gnuplot_settings, ")\n");
}

/* ---- lines ---- */

/* Sets *out to the name of the line to which a row belongs, "strategy=fpdt zero=3": the row's
 * values of the axes that vary, without axis x. If no other axis varies, the name is "sweep". */
static void put_line_name(struct text *out, const struct sweep_view *view, size_t row, size_t x)
{
    out->size = 0;
    for (size_t a = 0; a < view->axis_count; a++)
        if (view->varies[a] && a != x)
            text_printf(out, "%s%s=%s", out->size > 0 ? " " : "", view->table->column_name[a],
                        view->table->cells[row][a]);
    if (out->size == 0)
        text_puts(out, "sweep");
}

/* A set of names of lines. */
struct line_names {
    const char **name;
    size_t count, capacity;
};

/* Returns the index of a name. A new name is added. */
static size_t find_or_add_name(struct line_names *names, struct sweep_view *view,
                               const struct text *name)
{
    for (size_t k = 0; k < names->count; k++)
        if (strcmp(names->name[k], name->data) == 0)
            return k;
    if (names->count == names->capacity) {
        names->capacity = heap_next_capacity(names->capacity, names->count + 1);
        names->name = heap_realloc((void *)names->name, names->capacity, sizeof *names->name);
    }
    names->name[names->count] = arena_text(&view->arena, name->data, name->size);
    return names->count++;
}

static size_t count_distinct_values_of_column(const struct table *table, size_t column)
{
    size_t distinct_value_count = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        size_t before = 0;
        while (strcmp(table->cells[before][column], table->cells[i][column]) != 0)
            before++;
        distinct_value_count += before == i;
    }
    return distinct_value_count;
}

/* Reports that there are too many lines. The message names the options whose values make them, and suggests keeping one
 * value of the option that has the most. */
static enum status report_too_many_lines(const struct sweep_view *view, size_t lines, size_t x,
                                         struct diag *diag)
{
    const struct table *table = view->table;
    struct text axes = {0}, only = {0};
    size_t most = 0;
    for (size_t a = 0; a < view->axis_count; a++) {
        if (!view->varies[a] || a == x)
            continue;
        size_t values = count_distinct_values_of_column(table, a);
        text_printf(&axes, "%s%s (%zu values)", axes.size > 0 ? ", " : "", table->column_name[a],
                    values);
        if (values > most) {
            most = values;
            only.size = 0;
            text_printf(&only, "--only %s=%s", table->column_name[a], table->cells[0][a]);
        }
    }
    enum status status = diag_error(
        diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
        "the figure would have %zu lines, one for each combination of %s, and can show %d: add "
        "`%s` to draw some of them, or `-x KEY` to put another option along the axis",
        lines, axes.data, FIGURE_SERIES_MAX, only.data);
    text_release(&axes);
    text_release(&only);
    return status;
}

enum status sweep_lines_make(struct sweep_lines *series, struct sweep_view *view, size_t x,
                             size_t y, struct diag *diag)
{
    const struct table *table = view->table;
    struct text name = {0};
    struct line_names names = {0};
    double number;
    series->line_index_of_each_row =
        arena_array(&view->arena, table->row_count, sizeof *series->line_index_of_each_row);
    /* The first pass adds the lines that have numbers, so that they get the first indices. The second adds the
     * others. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < table->row_count; i++) {
            if (table_read_number(table, i, y, &number) != (pass == 0))
                continue;
            put_line_name(&name, view, i, x);
            size_t place = find_or_add_name(&names, view, &name);
            series->line_index_of_each_row[i] =
                pass == 0 || place < series->count ? place : series->count;
        }
        if (pass == 0)
            series->count = names.count;
    }
    series->combinations_without_number = names.count - series->count;
    enum status status = STATUS_OK;
    if (series->count > FIGURE_SERIES_MAX)
        status = report_too_many_lines(view, series->count, x, diag);
    for (size_t k = 0; k < series->count && status == STATUS_OK; k++)
        series->name[k] = names.name[k];
    free((void *)names.name);
    text_release(&name);
    return status;
}

void sweep_lines_set_variables(struct figure *figure, const struct sweep_lines *series)
{
    struct text empty = {0};
    figure_set_series_names(figure, series->name, series->count);
    if (series->combinations_without_number > 0)
        text_printf(&empty, "%zu line%s without a point", series->combinations_without_number,
                    series->combinations_without_number == 1 ? "" : "s");
    figure_set_text(figure, "empty", empty.size > 0 ? empty.data : "");
    text_release(&empty);
}

/* ---- labels and titles ---- */

double sweep_put_column_label_get_scale(struct text *out, const char *column)
{
    static const struct {
        const char *column, *label;
        double scale;
    } known[] = {
        {"step_s", "step (s)", 1},
        {"tokens_per_s_gpu", "tokens/s/GPU", 1},
        {"hfu", "HFU (% of dense peak)", 100},
        {"extrapolated_share", "compute time outside of calibration (%)", 100},
        {"seq", "tokens of a sequence (K = 1024)", 1},
        {"chunk", "tokens of a chunk, over all ranks (K = 1024)", 1},
        {"gpus", "GPUs", 1},
    };
    size_t size = strlen(column);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(column, known[i].column) == 0) {
            text_puts(out, known[i].label);
            return known[i].scale;
        }
    if (strncmp(column, "mfu_", 4) == 0) {
        text_printf(out, "MFU by convention %s (%% of dense peak)", column + 4);
        return 100;
    }
    for (size_t i = 0; i < size; i++)
        text_putc(out, column[i] == '_' ? ' ' : column[i]);
    if (size > 6 && strcmp(column + size - 6, "_bytes") == 0) {
        out->size -= 6;
        text_puts(out, " (GiB of a GPU)");
        if (strncmp(column, "host", 4) == 0) {
            out->size -= 7;
            text_puts(out, "a node)");
        }
        return 1.0 / (1024.0 * 1024 * 1024);
    }
    if (size > 2 && strcmp(column + size - 2, "_s") == 0) {
        out->size -= 2;
        text_puts(out, " (s of the step of rank 0)");
    }
    return 1;
}

/* TITLE_LETTER: points for each letter of a title. TITLE_AROUND: points of the space on both sides of the title. */
enum { TITLE_LETTER = 9, TITLE_AROUND = 60 };

void sweep_view_set_title(struct figure *figure, const struct sweep_view *view, const char *wanted)
{
    static const struct {
        const char *option, *one, *many;
    } shown[] = {
        {"model", "", ""},         {"cluster", "", ""},          {"nodes", " node", " nodes"},
        {"gpus", " GPU", " GPUs"}, {"seq", " token", " tokens"}, {"strategy", "", ""},
    };
    const char *command = table_header_value(view->table, "command");
    struct text title = {0}, value = {0};
    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        if (options_value_in_written_command(command, shown[i].option, &value))
            text_printf(&title, "%s%s%s", title.size > 0 ? ", " : "", value.data,
                        strcmp(value.data, "1") == 0 ? shown[i].one : shown[i].many);
    for (size_t a = 0; a < view->axis_count; a++)
        if (!view->varies[a])
            text_printf(&title, "%s%s=%s", title.size > 0 ? ", " : "", view->table->column_name[a],
                        view->table->cells[0][a]);
    const char *line = wanted != NULL ? wanted : title.size > 0 ? title.data : "Sweep";
    int wide = TITLE_AROUND + TITLE_LETTER * (int)strlen(line);
    figure_set_text(figure, "title", line);
    figure->width = figure->width > wide ? figure->width : wide;
    text_release(&title);
    text_release(&value);
}
