/* cli/figure/error.c: the figure of a validation: predictions beside measurements of one metric. */
#include "cli/figure/figure.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { METRICS_MAX = 32 };

struct error_columns {
    size_t source, place, metric, value, unit, predicted, status;
};

static enum status find_columns(struct error_columns *c, const struct table *table,
                                struct diag *diag)
{
    const struct {
        const char *name;
        size_t *column;
    } wanted[] = {
        {"source", &c->source}, {"place", &c->place}, {"metric", &c->metric},
        {"value", &c->value},   {"unit", &c->unit},   {"predicted", &c->predicted},
        {"status", &c->status},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(wanted) && status == STATUS_OK; i++)
        status = table_find_required_column(table, wanted[i].name, wanted[i].column, diag);
    return status;
}

/* Reads the measured and the predicted number of a row. Returns false unless the row has both, and both are above 0. */
static bool read_measured_and_predicted(const struct table *table, const struct error_columns *c,
                                        size_t row, double *measured, double *predicted)
{
    return table_read_number(table, row, c->value, measured) &&
           table_read_number(table, row, c->predicted, predicted) && *measured > 0 &&
           *predicted > 0;
}

/* Returns the metric of the most rows that have both numbers; NULL: no row has both. Only the first METRICS_MAX
 * metrics are counted. */
static const char *most_frequent_metric(const struct table *table, const struct error_columns *c)
{
    const char *metric_names[METRICS_MAX];
    size_t rows[METRICS_MAX], count = 0, most = 0;
    double measured, predicted;
    for (size_t i = 0; i < table->row_count; i++) {
        size_t k = 0;
        if (!read_measured_and_predicted(table, c, i, &measured, &predicted))
            continue;
        while (k < count && strcmp(metric_names[k], table->cells[i][c->metric]) != 0)
            k++;
        if (k == METRICS_MAX)
            continue;
        if (k == count) {
            metric_names[count] = table->cells[i][c->metric];
            rows[count++] = 0;
        }
        if (++rows[k] > rows[most])
            most = k;
    }
    return count > 0 ? metric_names[most] : NULL;
}

/* Appends a title such as "mfu: 30 rows, mean error 3.0 % of the 28 that count". sum: the sum of
 * |predicted / measured - 1| over the `counted` rows. */
static void put_title(struct text *out, const char *metric, size_t rows, size_t counted, double sum)
{
    text_printf(out, "%s: %zu row%s", metric, rows, rows == 1 ? "" : "s");
    if (counted == 0)
        text_puts(out, ", none of which counts");
    else
        text_printf(out, ", mean error %.1f %%", 100 * sum / (double)counted);
    if (counted > 0 && counted < rows)
        text_printf(out, " of the %zu that count%s", counted, counted == 1 ? "s" : "");
}

/* Appends the label of an axis, "mfu by the convention of its source (fraction)". Sources count the flops of MFU
 * differently. */
static void put_metric_label(struct text *out, const char *metric, const char *unit)
{
    text_printf(out, "%s%s (%s)", metric,
                strcmp(metric, "mfu") == 0 ? " by the convention of its source" : "",
                unit[0] != '\0' ? unit : "no unit");
}

enum status figure_error(struct figure *figure, const struct table *table,
                         const struct figure_options *wanted, struct diag *diag)
{
    struct error_columns c;
    enum status status = find_columns(&c, table, diag);
    if (status != STATUS_OK)
        return status;
    const char *metric =
                   wanted->y_column != NULL ? wanted->y_column : most_frequent_metric(table, &c),
               *unit = "";
    struct text names[FIGURE_SERIES_MAX] = {{0}}, name = {0}, label = {0};
    size_t count = 0, rows = 0, counted = 0;
    double low = INFINITY, high = 0, measured, predicted, sum = 0;
    for (size_t i = 0; i < table->row_count && metric != NULL; i++) {
        if (strcmp(table->cells[i][c.metric], metric) != 0 ||
            !read_measured_and_predicted(table, &c, i, &measured, &predicted))
            continue;
        size_t k = 0;
        name.size = 0;
        text_printf(&name, "%s %s", table->cells[i][c.source], table->cells[i][c.place]);
        while (k < count && strcmp(names[k].data, name.data) != 0)
            k++;
        if (k == FIGURE_SERIES_MAX) /* all further series share the last mark */
            k = FIGURE_SERIES_MAX - 1;
        if (k == count)
            text_puts(&names[count++], name.data);
        else if (k == FIGURE_SERIES_MAX - 1 && strcmp(names[k].data, name.data) != 0) {
            names[k].size = 0;
            text_puts(&names[k], "others");
        }
        unit = table->cells[i][c.unit];
        text_printf(&figure->csv, "%zu,%.9g,%.9g\n", k + 1, measured, predicted);
        low = fmin(low, fmin(measured, predicted));
        high = fmax(high, fmax(measured, predicted));
        rows++;
        /* if the error does not count, the status is "ok: " and the reason */
        if (strcmp(table->cells[i][c.status], "ok") == 0) {
            sum += fabs(predicted / measured - 1);
            counted++;
        }
    }
    if (rows == 0) {
        status = diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                            "no row has both a measured and a predicted number%s%s",
                            metric != NULL ? " of metric " : "", metric != NULL ? metric : "");
    } else {
        put_title(&label, metric, rows, counted, sum);
        figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : label.data);
        label.size = 0;
        put_metric_label(&label, metric, unit);
        figure_set_text(figure, "metric", label.data);
    }
    figure->script_name = "error";
    figure->width = 820;
    figure->height = 560;
    figure_set_number(figure, "low", wanted->y_range.has_low ? wanted->y_range.low : low / 1.25);
    figure_set_number(figure, "high_value",
                      wanted->y_range.has_high ? wanted->y_range.high : high * 1.25);
    const char *shown[FIGURE_SERIES_MAX];
    for (size_t k = 0; k < count; k++)
        shown[k] = names[k].data;
    figure_set_series_names(figure, shown, count);
    for (size_t k = 0; k < count; k++)
        text_release(&names[k]);
    text_release(&name);
    text_release(&label);
    return status;
}
