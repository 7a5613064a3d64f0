/* The figures of a sweep: a curve over one axis, a map over two, MFU over the length. */
#include "cli/figure.h"

#include "base/units.h"
#include "models/mfu.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 24, VALUES_MAX = 400 };

/* The values of an axis in the order of the file, and where each stands. */
struct axis {
    size_t column, count;
    const char *text[VALUES_MAX];
    double at[VALUES_MAX];
    bool numbers, grows_by_factor;
};

struct sweep_view {
    const struct table *table;
    size_t axes, status; /* columns before `status` are axes */
};

static enum status view_make(struct sweep_view *view, const struct table *table, struct diag *diag)
{
    *view = (struct sweep_view){.table = table};
    enum status status = table_get(table, "status", &view->status, diag);
    view->axes = view->status;
    if (status == STATUS_OK && view->axes == 0)
        return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                          "is no sweep: no column comes before 'status'");
    if (status == STATUS_OK && table->rows == 0)
        return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT, "has no rows");
    return status;
}

static bool fits(const struct sweep_view *view, size_t row)
{
    return strcmp(view->table->row[row][view->status], "fits") == 0;
}

/* "128K", "12", "0.5" */
static bool number_of(const char *text, double *value)
{
    int64_t tokens;
    if (parse_double(text, strlen(text), value))
        return true;
    if (units_parse_tokens(text, strlen(text), &tokens, (struct loc){0}, NULL) != STATUS_OK)
        return false;
    *value = (double)tokens;
    return true;
}

static enum status axis_make(struct axis *axis, const struct sweep_view *view, size_t column,
                             struct diag *diag)
{
    *axis = (struct axis){.column = column, .numbers = true};
    for (size_t i = 0; i < view->table->rows; i++) {
        const char *text = view->table->row[i][column];
        size_t k = 0;
        while (k < axis->count && strcmp(axis->text[k], text) != 0)
            k++;
        if (k < axis->count)
            continue;
        if (k == VALUES_MAX)
            return diag_error(diag, (struct loc){.name = view->table->path}, STATUS_BAD_INPUT,
                              "'%s' has more than %d values, too many for a figure",
                              view->table->name[column], VALUES_MAX);
        axis->text[axis->count] = text;
        axis->numbers = axis->numbers && number_of(text, &axis->at[axis->count]);
        axis->count++;
    }
    axis->grows_by_factor = axis->numbers && axis->count > 2;
    for (size_t k = 0; k < axis->count; k++) {
        if (!axis->numbers)
            axis->at[k] = (double)k;
        if (axis->numbers && k > 1 && axis->at[0] > 0 &&
            fabs(axis->at[k] / axis->at[k - 1] / (axis->at[1] / axis->at[0]) - 1) > 1e-6)
            axis->grows_by_factor = false;
    }
    if (axis->count > 0 && !(axis->at[0] > 0))
        axis->grows_by_factor = false;
    return STATUS_OK;
}

static size_t place(const struct axis *axis, const char *text)
{
    size_t k = 0;
    while (strcmp(axis->text[k], text) != 0)
        k++;
    return k;
}

/* Ticks where the values are, thinned to what can be read. index: cells of a map. */
static void set_ticks(struct figure *figure, const char *which, const struct axis *axis, bool index)
{
    size_t every = 1 + axis->count / 16;
    text_printf(&figure->set, "set %stics (", which);
    for (size_t k = 0; k < axis->count; k += every) {
        text_printf(&figure->set, "%s'", k == 0 ? "" : ", ");
        for (const char *c = axis->text[k]; *c != '\0'; c++)
            text_puts(&figure->set, *c == '\'' ? "''" : (char[]){*c, '\0'});
        text_printf(&figure->set, "' %.17g", index ? (double)k : axis->at[k]);
    }
    text_puts(&figure->set, ")\n");
}

/* What a column is called on an axis: with its unit, and scaled to it. */
static double label_of(struct text *out, const char *column)
{
    static const struct {
        const char *column, *label;
        double scale;
    } known[] = {
        {"step_s", "step (s)", 1},
        {"tokens_per_s_gpu", "tokens/s/GPU", 1},
        {"hfu", "HFU (% of dense peak)", 100},
        {"extrapolated", "compute time outside of calibration (%)", 100},
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

/* What the other axes say, which tells the lines apart: "strategy=fpdt zero=3". */
static void put_series(struct text *out, const struct sweep_view *view, size_t row,
                       const size_t *except, size_t excepted)
{
    out->size = 0;
    for (size_t a = 0; a < view->axes; a++) {
        bool left_out = false;
        for (size_t k = 0; k < excepted; k++)
            left_out |= except[k] == a;
        if (!left_out)
            text_printf(out, "%s%s=%s", out->size > 0 ? " " : "", view->table->name[a],
                        view->table->row[row][a]);
    }
    if (out->size == 0)
        text_puts(out, "sweep");
}

struct series {
    struct arena arena;
    const char *name[SERIES_MAX];
    size_t count;
};

static enum status find_series(struct series *series, const struct sweep_view *view,
                               const size_t *except, size_t excepted, struct diag *diag)
{
    struct text name = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < view->table->rows && status == STATUS_OK; i++) {
        size_t k = 0;
        put_series(&name, view, i, except, excepted);
        while (k < series->count && strcmp(series->name[k], name.data) != 0)
            k++;
        if (k < series->count)
            continue;
        if (k == SERIES_MAX)
            status = diag_error(diag, (struct loc){.name = view->table->path}, STATUS_BAD_INPUT,
                                "a figure of more than %d lines cannot be read: sweep fewer "
                                "options, or take another --x",
                                SERIES_MAX);
        else
            series->name[series->count++] = arena_text(&series->arena, name.data, name.size);
    }
    text_release(&name);
    return status;
}

static void set_series(struct figure *figure, const struct series *series)
{
    figure_set_number(figure, "series", (double)series->count);
    for (size_t i = 0; i < series->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "name%zu", i + 1);
        figure_set_text(figure, name, series->name[i]);
    }
}

/* A column that the reader named, or the one that fits. */
static enum status choose(const struct sweep_view *view, const char *wish, const char *fallback,
                          bool of_axes, size_t *column, struct diag *diag)
{
    enum status status = table_get(view->table, wish != NULL ? wish : fallback, column, diag);
    if (status == STATUS_OK && of_axes && *column >= view->axes)
        return diag_error(diag, (struct loc){.name = view->table->path}, STATUS_BAD_INPUT,
                          "'%s' was not varied", wish);
    return status;
}

static void set_titles(struct figure *figure, const char *title, const char *x, const char *y)
{
    figure_set_text(figure, "title", title);
    figure_set_text(figure, "x_label", x);
    figure_set_text(figure, "y_label", y);
}

static void put_model(struct text *out, const struct table *table)
{
    const char *command = table_head(table, "command");
    static const char *const keys[] = {
        " --model=", " --cluster=", " --nodes=", " --gpus=", " --seq="};
    for (size_t i = 0; command != NULL && i < ARRAY_LEN(keys); i++) {
        const char *at = strstr(command, keys[i]);
        if (at == NULL)
            continue;
        at += strlen(keys[i]);
        text_printf(out, "%s%.*s%s", out->size > 0 ? ", " : "", (int)strcspn(at, " "), at,
                    i == 2   ? " nodes"
                    : i == 3 ? " GPUs"
                    : i == 4 ? " tokens"
                             : "");
    }
}

enum status figure_sweep(struct figure *figure, const struct table *sweep,
                         const struct figure_wish *wish, struct diag *diag)
{
    struct sweep_view view;
    struct axis *axis = heap_zalloc(1, sizeof *axis);
    struct series series = {0};
    struct text title = {0}, x_label = {0}, y_label = {0}, name = {0};
    size_t x = 0, y = 0, unfit = 0;
    enum status status = view_make(&view, sweep, diag);
    if (status == STATUS_OK)
        status = choose(&view, wish->x, sweep->name[view.axes - 1], true, &x, diag);
    if (status == STATUS_OK)
        status = choose(&view, wish->y, "tokens_per_s_gpu", false, &y, diag);
    if (status == STATUS_OK)
        status = axis_make(axis, &view, x, diag);
    if (status == STATUS_OK)
        status = find_series(&series, &view, &x, 1, diag);
    if (status != STATUS_OK)
        goto out;
    double scale = label_of(&y_label, sweep->name[y]), value;
    label_of(&x_label, sweep->name[x]);
    for (size_t s = 0; s < series.count; s++)
        for (size_t i = 0; i < sweep->rows; i++) {
            put_series(&name, &view, i, &x, 1);
            if (strcmp(name.data, series.name[s]) != 0)
                continue;
            bool known = table_number(sweep, i, y, &value);
            unfit += !fits(&view, i) && !known;
            text_printf(&figure->data, "%zu,%.9g,%.9g,%d\n", s + 1,
                        axis->at[place(axis, sweep->row[i][x])], known ? value * scale : 0, known);
        }
    put_model(&title, sweep);
    figure->script = "sweep";
    figure->wide = 960;
    figure->high = 460;
    set_titles(figure,
               wish->title != NULL ? wish->title
               : title.size > 0    ? title.data
                                   : "Sweep",
               x_label.data, y_label.data);
    double limit = 0;
    if (strcmp(sweep->name[y], "device_needed_bytes") == 0 && sweep->rows > 0 &&
        table_find(sweep, "device_available_bytes") != SIZE_MAX)
        table_number(sweep, 0, table_find(sweep, "device_available_bytes"), &limit);
    figure_set_number(figure, "limit", limit * scale);
    figure_set_text(figure, "limit_name", "what a GPU has");
    figure_set_number(figure, "x_log", axis->grows_by_factor ? 2 : 0);
    figure_set_number(figure, "unfit", (double)unfit);
    set_series(figure, &series);
    set_ticks(figure, "x", axis, false);
out:
    free(axis);
    arena_release(&series.arena);
    text_release(&title);
    text_release(&x_label);
    text_release(&y_label);
    text_release(&name);
    return status;
}

/* A cell's number with three digits. */
static void put_cell(struct text *out, double value)
{
    int decimals = 2 - (int)floor(log10(fabs(value) > 0 ? fabs(value) : 1));
    text_printf(out, "%.*f", decimals > 0 ? decimals : 0, value);
}

enum status figure_heatmap(struct figure *figure, const struct table *sweep,
                           const struct figure_wish *wish, struct diag *diag)
{
    struct sweep_view view;
    struct axis *axis = heap_zalloc(2, sizeof *axis);
    struct series series = {0};
    struct text title = {0}, label[2] = {{0}, {0}}, value_label = {0};
    size_t at[2] = {0, 0}, value_column = 0;
    double low = INFINITY, high = -INFINITY, value;
    enum status status = view_make(&view, sweep, diag);
    if (status == STATUS_OK && view.axes < 2)
        status = diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                            "a map needs two options that vary; `longhaul plot sweep` draws one");
    if (status == STATUS_OK)
        status = choose(&view, wish->x, sweep->name[view.axes - 1], true, &at[0], diag);
    if (status == STATUS_OK)
        at[1] = at[0] == view.axes - 1 ? view.axes - 2 : view.axes - 1;
    if (status == STATUS_OK)
        status = choose(&view, wish->y, "tokens_per_s_gpu", false, &value_column, diag);
    for (int k = 0; k < 2 && status == STATUS_OK; k++)
        status = axis_make(&axis[k], &view, at[k], diag);
    if (status == STATUS_OK)
        status = find_series(&series, &view, at, 2, diag);
    if (status == STATUS_OK && series.count > 1)
        status = diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                            "a map takes two options that vary, and here are %zu (%s, ...)",
                            view.axes, series.name[0]);
    if (status != STATUS_OK)
        goto out;
    double scale = label_of(&value_label, sweep->name[value_column]);
    for (int k = 0; k < 2; k++)
        label_of(&label[k], sweep->name[at[k]]);
    for (size_t i = 0; i < sweep->rows; i++) {
        bool known = table_number(sweep, i, value_column, &value);
        text_printf(&figure->data, "%zu,%zu,", place(&axis[0], sweep->row[i][at[0]]),
                    place(&axis[1], sweep->row[i][at[1]]));
        if (known) {
            value *= scale;
            low = fmin(low, value);
            high = fmax(high, value);
            text_printf(&figure->data, "%.9g,", value);
            put_cell(&figure->data, value);
            text_putc(&figure->data, '\n');
        } else {
            text_printf(&figure->data, ",%s\n",
                        strcmp(sweep->row[i][view.status], "refused") == 0 ? "-" : "no fit");
        }
    }
    put_model(&title, sweep);
    figure->script = "heatmap";
    figure->wide = 260 + 78 * (int)(axis[0].count < 20 ? axis[0].count : 20);
    figure->high = 160 + 44 * (int)(axis[1].count < 20 ? axis[1].count : 20);
    set_titles(figure,
               wish->title != NULL ? wish->title
               : title.size > 0    ? title.data
                                   : "Sweep",
               label[0].data, label[1].data);
    figure_set_text(figure, "value_label", value_label.data);
    figure_set_number(figure, "columns", (double)axis[0].count);
    figure_set_number(figure, "rows", (double)axis[1].count);
    figure_set_number(figure, "low", low < high ? low : 0);
    figure_set_number(figure, "high_value", low < high ? high : low > 0 && isfinite(low) ? low : 1);
    set_ticks(figure, "x", &axis[0], true);
    set_ticks(figure, "y", &axis[1], true);
out:
    free(axis);
    arena_release(&series.arena);
    text_release(&title);
    text_release(&label[0]);
    text_release(&label[1]);
    text_release(&value_label);
    return status;
}

enum status figure_mfu(struct figure *figure, const struct table *sweep,
                       const struct figure_wish *wish, struct diag *diag)
{
    struct sweep_view view;
    struct axis *axis = heap_zalloc(1, sizeof *axis);
    struct series series = {0};
    struct text title = {0}, name = {0}, label = {0};
    size_t x = 0, y = 0;
    double value;
    enum status status = view_make(&view, sweep, diag);
    if (status == STATUS_OK)
        status = choose(&view, "seq", "seq", true, &x, diag);
    if (status == STATUS_OK)
        status = choose(&view, wish->y, "mfu_longhaul", false, &y, diag);
    if (status == STATUS_OK)
        status = axis_make(axis, &view, x, diag);
    if (status == STATUS_OK)
        status = find_series(&series, &view, &x, 1, diag);
    if (status != STATUS_OK)
        goto out;
    /* one line alone leaves room for every convention */
    bool all = series.count == 1 && wish->y == NULL;
    if (all)
        series.count = 0;
    size_t lines = all ? MFU_CONVENTION_COUNT + 1 : series.count;
    for (size_t s = 0; s < lines; s++) {
        if (all) {
            bool hfu = s == MFU_CONVENTION_COUNT;
            name.size = 0;
            text_printf(&name, "%s%s", hfu ? "hfu" : "mfu_", hfu ? "" : mfu_table[s].name);
            y = table_find(sweep, name.data);
            series.name[series.count++] =
                hfu ? "HFU" : arena_printf(&series.arena, "MFU %s", mfu_table[s].name);
        }
        for (size_t i = 0; i < sweep->rows && y != SIZE_MAX; i++) {
            if (!all) {
                put_series(&name, &view, i, &x, 1);
                if (strcmp(name.data, series.name[s]) != 0)
                    continue;
            }
            if (table_number(sweep, i, y, &value))
                text_printf(&figure->data, "%zu,%.9g,%.9g\n", s + 1,
                            axis->at[place(axis, sweep->row[i][x])], value);
        }
    }
    if (figure->data.size == 0) {
        status = diag_error(diag, (struct loc){.name = sweep->path}, STATUS_BAD_INPUT,
                            "no point has an MFU: none fits");
        goto out;
    }
    put_model(&title, sweep);
    if (all)
        text_puts(&label, "MFU by each convention, and HFU");
    else if (strncmp(sweep->name[y], "mfu_", 4) == 0)
        text_printf(&label, "MFU by convention %s", sweep->name[y] + 4);
    else
        text_puts(&label, "HFU");
    figure->script = "mfu";
    figure->wide = 960;
    figure->high = 460;
    figure_set_text(figure, "title",
                    wish->title != NULL ? wish->title
                    : title.size > 0    ? title.data
                                        : "Sweep");
    figure_set_text(figure, "convention", label.data);
    set_series(figure, &series);
    set_ticks(figure, "x", axis, false);
out:
    free(axis);
    arena_release(&series.arena);
    text_release(&title);
    text_release(&name);
    text_release(&label);
    return status;
}
