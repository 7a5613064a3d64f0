/* Makes the pages of tables: of the rows of sweep, and of those of validate -o. */
#include "cli/page/pages.h"

#include "cli/common/options.h"
#include "cli/page/sources.h"
#include "cli/report/report.h"
#include "cli/sweep/summary.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- sweep ---- */

/* Returns the number of distinct values of a column, counted only up to 2. */
static size_t count_distinct_values_up_to_2(const struct table *table, size_t column)
{
    size_t count = 0;
    for (size_t i = 0; i < table->row_count && count < 2; i++) {
        size_t k = 0;
        while (k < i && strcmp(table->cells[k][column], table->cells[i][column]) != 0)
            k++;
        count += k == i;
    }
    return count;
}

static void put_verdict_of_whole_sweep(struct page *page, const struct table *sweep,
                                       const struct sweep_summary *s)
{
    enum { SHOWN = 4 };
    struct text text = {0};
    if (s->workload_count == 0) {
        text_printf(&text, "No point of %zu fits.", sweep->row_count);
        page_put_verdict(page, PAGE_BAD, text.data);
    } else {
        text_puts(&text, "Fastest of those that fit:");
        for (size_t w = 0; w < s->workload_count && w < SHOWN; w++) {
            text_puts(&text, w > 0 ? ";" : "");
            sweep_put_axis_values_of_row(&text, sweep, s, s->best_row_of_workload[w], true);
            sweep_put_axis_values_of_row(&text, sweep, s, s->best_row_of_workload[w], false);
            text_puts(&text, ", ");
            sweep_put_speed(&text, sweep, s->best_row_of_workload[w]);
        }
        if (s->workload_count > SHOWN)
            text_printf(&text, "; the table has %zu more", s->workload_count - SHOWN);
        text_putc(&text, '.');
        page_put_verdict(page, PAGE_GOOD, text.data);
    }
    text_release(&text);
}

static void put_status_counts(struct page *page, const struct table *sweep,
                              const struct sweep_summary *s)
{
    struct text text = {0};
    page_begin_number_boxes(page);
    text_printf(&text, "%zu", sweep->row_count);
    page_put_number_box(page, text.data, "points");
    for (int i = 0; i < SWEEP_STATUS_COUNT; i++)
        if (s->count_of_status[i] > 0) {
            text.size = 0;
            text_printf(&text, "%zu", s->count_of_status[i]);
            page_put_number_box(page, text.data,
                                sweep_summary_words_of_status(i, s->count_of_status[i]));
        }
    page_end_number_boxes(page);
    text_release(&text);
}

static enum status put_sweep_figures(struct page *page, const struct table *sweep,
                                     const struct sweep_summary *s, struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t varied_axis_count = 0, seq = table_find_column(sweep, "seq");
    for (size_t a = 0; a < s->axis_count; a++)
        varied_axis_count += count_distinct_values_up_to_2(sweep, a) > 1;
    const struct {
        const char *y, *caption;
    } curves[] = {
        {"tokens_per_s_gpu", s->count_of_status[SWEEP_FITS] < sweep->row_count
                                 ? "Throughput; crosses at the foot have none."
                                 : "Throughput."},
        {"device_needed_bytes", "What a GPU needs, also where it is more than it has."},
    };
    for (size_t i = 0; i < ARRAY_LEN(curves) && status == STATUS_OK && varied_axis_count > 0; i++) {
        struct figure figure = {0};
        struct figure_options wanted = {.y_column = curves[i].y, .title = ""};
        struct diag note = {0};
        enum status made = figure_sweep(&figure, sweep, &wanted, &note);
        if (made == STATUS_OK)
            status = page_draw(page, &figure, made, curves[i].caption, diag);
        else
            page_put_warning(page, note.text); /* such as: too many lines; the table has them */
        figure_release(&figure);
        diag_release(&note);
    }
    if (status == STATUS_OK && s->axis_count == 2 && varied_axis_count == 2) {
        struct figure figure = {0};
        struct figure_options wanted = {.title = ""};
        status = page_draw(page, &figure, figure_heatmap(&figure, sweep, &wanted, diag),
                           "Throughput by both options.", diag);
        figure_release(&figure);
    }
    if (status == STATUS_OK && seq < s->axis_count &&
        count_distinct_values_up_to_2(sweep, seq) > 1 && s->count_of_status[SWEEP_FITS] > 0) {
        struct figure figure = {0};
        struct figure_options wanted = {.title = ""};
        enum status made = figure_mfu(&figure, sweep, &wanted, NULL);
        if (made == STATUS_OK)
            status = page_draw(page, &figure, made, "Utilisation by length.", diag);
        figure_release(&figure);
    }
    return status;
}

/* Appends a cell "fastest" if the row is the fastest point of its workload. If there are several workloads, the cell
 * also names the workload. Appends an empty cell otherwise. */
static void put_cell_if_fastest_of_workload(struct page *page, const struct table *sweep,
                                            const struct sweep_summary *s, size_t row)
{
    struct text text = {0};
    for (size_t w = 0; w < s->workload_count; w++)
        if (s->best_row_of_workload[w] == row) {
            text_puts(&text, "fastest");
            if (s->workload_count > 1) {
                text_puts(&text, " of");
                sweep_put_axis_values_of_row(&text, sweep, s, row, true);
            }
        }
    page_put_cell(page, text.size > 0 ? text.data : "");
    text_release(&text);
}

/* Appends a cell with the reason for a point's status. If at least REPORT_EXTRAPOLATED_SHARE of its
 * compute time has extrapolated costs, the cell also says how much, and why. */
static void put_reason_cell(struct page *page, const struct table *sweep,
                            const struct sweep_summary *s, size_t row)
{
    size_t share = table_find_column(sweep, "extrapolated_share"),
           why = table_find_column(sweep, "extrapolated_why");
    double outside = 0;
    struct text text = {0};
    text_puts(&text, sweep->cells[row][s->axis_count + 1]);
    if (share != SIZE_MAX && why != SIZE_MAX && table_read_number(sweep, row, share, &outside) &&
        outside >= REPORT_EXTRAPOLATED_SHARE)
        text_printf(&text, "%s%.0f %% of the compute time is extrapolated: %s",
                    text.size > 0 ? "; " : "", 100 * outside, sweep->cells[row][why]);
    page_put_cell(page, text.data);
    text_release(&text);
}

static void put_table_of_sweep_points(struct page *page, const struct table *sweep,
                                      const struct sweep_summary *s)
{
    static const struct {
        const char *column, *head;
        double scale;
        int decimals;
    } shown[] = {
        {"step_s", "step s", 1, 3},
        {"tokens_per_s_gpu", "tokens/s/GPU", 1, 1},
        {"mfu_longhaul", "MFU %", 100, 1},
        {"device_needed_bytes", "GiB a GPU", 1 / (1024.0 * 1024 * 1024), 1},
    };
    const char **heads = heap_zalloc(s->axis_count + ARRAY_LEN(shown) + 4, sizeof *heads);
    for (size_t a = 0; a < s->axis_count; a++)
        heads[a] = sweep->column_name[a];
    heads[s->axis_count] = "status";
    for (size_t k = 0; k < ARRAY_LEN(shown); k++)
        heads[s->axis_count + 1 + k] = shown[k].head;
    heads[s->axis_count + 1 + ARRAY_LEN(shown)] = "fastest";
    heads[s->axis_count + 2 + ARRAY_LEN(shown)] = "reason";
    page_begin_table(page, sweep->row_count > 40 ? "Every point" : NULL, heads);
    for (size_t i = 0; i < sweep->row_count; i++) {
        double value;
        for (size_t a = 0; a <= s->axis_count; a++)
            page_put_cell(page, sweep->cells[i][a]);
        for (size_t k = 0; k < ARRAY_LEN(shown); k++) {
            size_t column = table_find_column(sweep, shown[k].column);
            if (column != SIZE_MAX && table_read_number(sweep, i, column, &value))
                page_put_formatted_cell(page, "%.*f", shown[k].decimals, value * shown[k].scale);
            else
                page_put_cell(page, "");
        }
        put_cell_if_fastest_of_workload(page, sweep, s, i);
        put_reason_cell(page, sweep, s, i);
        page_end_row(page);
    }
    page_end_table(page);
    free((void *)heads);
}

/* If costs are extrapolated at some points, appends a warning with the number of these points and the largest share
 * of compute time at one of them. */
static void put_warning_of_extrapolated_points(struct page *page, const struct table *sweep)
{
    size_t column = table_find_column(sweep, "extrapolated_share"), points = 0;
    double most = 0, value;
    for (size_t i = 0; i < sweep->row_count && column != SIZE_MAX; i++)
        if (table_read_number(sweep, i, column, &value) && value >= REPORT_EXTRAPOLATED_SHARE) {
            points++;
            most = fmax(most, value);
        }
    if (points == 0)
        return;
    struct text text = {0};
    text_printf(&text,
                "At %zu point%s costs are extrapolated beyond the sizes on which the device was "
                "calibrated, for up to %.0f %% of the compute time.",
                points, points == 1 ? "" : "s", 100 * most);
    page_put_warning(page, text.data);
    text_release(&text);
}

enum status page_of_sweep(struct page *page, const struct table *sweep, const char *title,
                          struct diag *diag)
{
    struct sweep_summary summary;
    struct text text = {0}, model = {0}, cluster = {0}, costs = {0};
    const char *command = table_header_value(sweep, "command"),
               *made_by = table_header_value(sweep, "made_by");
    enum status status = sweep_summary_make(&summary, sweep, diag);
    if (status != STATUS_OK) {
        sweep_summary_release(&summary);
        return status;
    }
    for (size_t a = 0; a < summary.axis_count; a++)
        text_printf(&text, "%s%s", a == 0 ? "over " : ", ", sweep->column_name[a]);
    bool has_model = options_value_in_written_command(command, "model", &model);
    bool has_cluster = options_value_in_written_command(command, "cluster", &cluster);
    bool has_costs = options_value_in_written_command(command, "costs", &costs);
    if (has_model)
        text_printf(&text, "; %s", model.data);
    if (has_cluster)
        text_printf(&text, " on %s", cluster.data);
    page_begin(page, title != NULL ? title : "A sweep of training steps, predicted", text.data);
    put_verdict_of_whole_sweep(page, sweep, &summary);
    put_warning_of_extrapolated_points(page, sweep);
    put_status_counts(page, sweep, &summary);
    status = put_sweep_figures(page, sweep, &summary, diag);
    page_put_heading(page, "Points");
    put_table_of_sweep_points(page, sweep, &summary);
    page_put_sources(page, has_model ? model.data : NULL, has_cluster ? cluster.data : NULL,
                     has_costs ? costs.data : NULL, NULL);
    page_put_heading(page, "Made by");
    page_put_code_block(page, command != NULL ? command : "");
    page_put_text(page, made_by != NULL ? made_by : "");
    page_end(page);
    sweep_summary_release(&summary);
    text_release(&text);
    text_release(&model);
    text_release(&cluster);
    text_release(&costs);
    return status;
}

/* ---- validation ---- */

enum { METRICS_MAX = 32 };

struct metric_errors {
    const char *name;
    size_t row_count;
    double error_sum, worst_error;
    size_t worst_row;
};

struct validated_column_indices {
    size_t source, place, framework, model, seq, args, metric, value, unit, predicted, error,
        status;
};

static enum status find_columns(struct validated_column_indices *c, const struct table *t,
                                struct diag *diag)
{
    const struct {
        const char *name;
        size_t *column;
    } wanted[] = {
        {"source", &c->source}, {"place", &c->place},         {"framework", &c->framework},
        {"model", &c->model},   {"seq_len", &c->seq},         {"args", &c->args},
        {"metric", &c->metric}, {"value", &c->value},         {"unit", &c->unit},
        {"status", &c->status}, {"predicted", &c->predicted}, {"relative_error", &c->error},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(wanted) && status == STATUS_OK; i++)
        status = table_find_required_column(t, wanted[i].name, wanted[i].column, diag);
    return status;
}

static size_t sum_errors_by_metric(const struct table *t, const struct validated_column_indices *c,
                                   struct metric_errors *metric)
{
    size_t count = 0;
    double error;
    for (size_t i = 0; i < t->row_count; i++) {
        size_t k = 0;
        if (!table_read_number(t, i, c->error, &error) || strcmp(t->cells[i][c->status], "ok") != 0)
            continue;
        while (k < count && strcmp(metric[k].name, t->cells[i][c->metric]) != 0)
            k++;
        if (k == METRICS_MAX)
            continue;
        if (k == count)
            metric[count++] = (struct metric_errors){.name = t->cells[i][c->metric]};
        metric[k].row_count++;
        metric[k].error_sum += fabs(error);
        if (fabs(error) >= metric[k].worst_error) {
            metric[k].worst_error = fabs(error);
            metric[k].worst_row = i;
        }
    }
    return count;
}

/* Returns whether a row is shown and not counted. The status of such a row is "ok: " and the
 * reason. */
static bool is_shown_but_not_counted(const struct table *t,
                                     const struct validated_column_indices *c, size_t row)
{
    return strncmp(t->cells[row][c->status], "ok:", 3) == 0;
}

static void put_rows(struct page *page, const struct table *t,
                     const struct validated_column_indices *c)
{
    static const char *const heads[] = {"source",  "place",  "system",   "model",
                                        "tokens",  "metric", "measured", "predicted",
                                        "error %", "status", "options",  NULL};
    page_begin_table(page, t->row_count > 60 ? "Every row" : NULL, heads);
    for (size_t i = 0; i < t->row_count; i++) {
        const size_t plain[] = {c->source, c->place,  c->framework, c->model,
                                c->seq,    c->metric, c->value,     c->predicted};
        double error;
        for (size_t k = 0; k < ARRAY_LEN(plain); k++)
            page_put_cell(page, t->cells[i][plain[k]]);
        if (table_read_number(t, i, c->error, &error))
            page_put_formatted_cell(page, "%+.1f", 100 * error);
        else
            page_put_cell(page, "");
        page_put_cell(page, t->cells[i][c->status]);
        page_put_cell(page, t->cells[i][c->args]);
        page_end_row(page);
    }
    page_end_table(page);
}

enum status page_of_validation(struct page *page, const struct table *t, const char *title,
                               struct diag *diag)
{
    static const char *const heads[] = {"metric", "rows", "mean error %", "worst %", "at", NULL};
    struct validated_column_indices c;
    struct metric_errors metric[METRICS_MAX];
    struct text text = {0};
    enum status status = find_columns(&c, t, diag);
    if (status != STATUS_OK)
        return status;
    size_t count = sum_errors_by_metric(t, &c, metric), most = 0, wrong = 0, right = 0,
           left_out = 0;
    for (size_t k = 1; k < count; k++)
        most = metric[k].row_count > metric[most].row_count ? k : most;
    for (size_t i = 0; i < t->row_count; i++) {
        right += strcmp(t->cells[i][c.status], "right") == 0;
        wrong += strcmp(t->cells[i][c.status], "wrong") == 0;
        left_out += is_shown_but_not_counted(t, &c, i);
    }
    text_printf(&text, "%zu rows of %s", t->row_count, t->path);
    page_begin(page, title != NULL ? title : "Predictions beside measurements", text.data);
    text.size = 0;
    if (count > 0)
        text_printf(&text, "%s: mean error %.1f %%, worst %.1f %%, over %zu rows.",
                    metric[most].name,
                    100 * metric[most].error_sum / (double)metric[most].row_count,
                    100 * metric[most].worst_error, metric[most].row_count);
    else
        text_puts(&text, "No row has a number to compare.");
    if (right + wrong > 0)
        text_printf(&text, " Verdicts: %zu right, %zu wrong.", right, wrong);
    /* the aim of docs/accuracy.md: 5 % in the mean, 15 % at worst */
    bool met = count > 0 && wrong == 0 &&
               metric[most].error_sum <= 0.05 * (double)metric[most].row_count &&
               metric[most].worst_error <= 0.15;
    page_put_verdict(page, met ? PAGE_GOOD : PAGE_BORDERLINE, text.data);
    if (left_out > 0) {
        text.size = 0;
        text_printf(&text, "%zu rows are shown, and not counted: their status says why.", left_out);
        page_put_warning(page, text.data);
    }
    page_begin_table(page, NULL, heads);
    for (size_t k = 0; k < count; k++) {
        const struct metric_errors *m = &metric[k];
        page_put_cell(page, m->name);
        page_put_formatted_cell(page, "%zu", m->row_count);
        page_put_formatted_cell(page, "%.1f", 100 * m->error_sum / (double)m->row_count);
        page_put_formatted_cell(page, "%.1f", 100 * m->worst_error);
        page_put_formatted_cell(page, "%s %s, %s, %s tokens", t->cells[m->worst_row][c.source],
                                t->cells[m->worst_row][c.place],
                                t->cells[m->worst_row][c.framework], t->cells[m->worst_row][c.seq]);
        page_end_row(page);
    }
    page_end_table(page);
    for (size_t k = 0; k < count && status == STATUS_OK; k++) {
        struct figure figure = {0};
        struct figure_options wanted = {.y_column = metric[k].name};
        if (metric[k].row_count >= 2 && figure_error(&figure, t, &wanted, NULL) == STATUS_OK)
            status = page_draw(page, &figure, STATUS_OK, "Each mark is a row.", diag);
        figure_release(&figure);
    }
    page_put_heading(page, "Rows");
    put_rows(page, t, &c);
    page_put_sources(page, NULL, NULL, NULL, NULL);
    page_put_heading(page, "Made by");
    page_put_text(page, "longhaul " LONGHAUL_VERSION " validate");
    page_end(page);
    text_release(&text);
    return status;
}
