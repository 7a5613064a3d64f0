#include "cli/sweep/summary.h"

#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/report/kernels.h"
#include "cli/report/report.h"
#include "predict/result_names.h"
#include "predict/setup/choice_rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column point[] = {
    {"row", NULL, NULL, COLUMN_COUNT, 0, "Its row in the file, from 0."},
    {"varied", NULL, NULL, COLUMN_JSON_OBJECT, 0, "The values of the options that were varied, by their names."},
    {"step_s", NULL, NULL, COLUMN_SECONDS | COLUMN_OPTIONAL, 0, "common.json"},
    {"tokens_per_s_gpu", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "common.json"},
};
/* clang-format on */
const struct row_table sweep_point_table = {"sweep_point", point, ARRAY_LEN(point)};

/* Returns whether an axis changes what is computed for a token: the model, the documents, or a choice of what is
 * computed. Other axes change only how it is computed. */
static bool axis_changes_workload(const char *axis)
{
    static const char *const axes[] = {"model", "set", "documents", "packing"};
    const struct choice_row *row = choice_row_find(axis);
    for (size_t i = 0; i < ARRAY_LEN(axes); i++)
        if (strcmp(axis, axes[i]) == 0)
            return true;
    return row != NULL && row->subject == CHOICE_TOKENS;
}

static bool have_same_workload(const struct table *table, size_t axes, size_t a, size_t b)
{
    for (size_t i = 0; i < axes; i++)
        if (axis_changes_workload(table->column_name[i]) &&
            strcmp(table->cells[a][i], table->cells[b][i]) != 0)
            return false;
    return true;
}

static void update_best_of_workload(struct sweep_summary *s, const struct table *table, size_t row,
                                    size_t rate_column)
{
    double rate, most;
    if (!table_read_number(table, row, rate_column, &rate))
        return;
    if (s->fastest_fitting_row == SIZE_MAX ||
        (table_read_number(table, s->fastest_fitting_row, rate_column, &most) && rate > most))
        s->fastest_fitting_row = row;
    for (size_t w = 0; w < s->workload_count; w++) {
        if (!have_same_workload(table, s->axis_count, s->best_row_of_workload[w], row))
            continue;
        if (table_read_number(table, s->best_row_of_workload[w], rate_column, &most) && rate > most)
            s->best_row_of_workload[w] = row;
        return;
    }
    s->best_row_of_workload[s->workload_count++] = row;
}

void sweep_summary_release(struct sweep_summary *s)
{
    free(s->best_row_of_workload);
    *s = (struct sweep_summary){0};
}

void sweep_put_axis_values_of_row(struct text *out, const struct table *table,
                                  const struct sweep_summary *s, size_t row, bool of_work)
{
    for (size_t a = 0; a < s->axis_count; a++)
        if (axis_changes_workload(table->column_name[a]) == of_work)
            text_printf(out, " %s=%s", table->column_name[a], table->cells[row][a]);
}

void sweep_put_speed(struct text *out, const struct table *table, size_t row)
{
    double step_s = 0, rate = 0;
    table_read_number(table, row, table_find_column(table, "step_s"), &step_s);
    table_read_number(table, row, table_find_column(table, "tokens_per_s_gpu"), &rate);
    const struct report_time_format time = report_time_format_for(step_s);
    text_printf(out, "%.1f tokens/s/GPU, a step of %.*f %s", rate, time.decimals,
                step_s / time.seconds_per_unit, time.name);
}

enum status sweep_summary_make(struct sweep_summary *s, const struct table *table,
                               struct diag *diag)
{
    size_t status_column, rate_column;
    *s = (struct sweep_summary){.fastest_fitting_row = SIZE_MAX};
    enum status status = table_find_required_column(table, "status", &status_column, diag);
    if (status == STATUS_OK)
        status = table_find_required_column(table, "tokens_per_s_gpu", &rate_column, diag);
    if (status != STATUS_OK)
        return status;
    s->axis_count = status_column;
    s->best_row_of_workload = heap_alloc(table->row_count + 1, sizeof *s->best_row_of_workload);
    for (size_t i = 0; i < table->row_count; i++) {
        int outcome = 0;
        while (outcome < SWEEP_STATUS_COUNT &&
               strcmp(table->cells[i][status_column], sweep_status_names[outcome]) != 0)
            outcome++;
        if (outcome == SWEEP_STATUS_COUNT)
            return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                              "row %zu has the unknown status '%s'", i + 1,
                              table->cells[i][status_column]);
        s->count_of_status[outcome]++;
        if (outcome == SWEEP_FITS)
            update_best_of_workload(s, table, i, rate_column);
    }
    return STATUS_OK;
}

/* If the points that fit have different kernels of attention, prints which strategies have which.
 * Prints nothing if the sweep varies these kernels itself. */
static void print_attention_kernels_if_differ(struct text *out, const struct table *table,
                                              const struct sweep_summary *s)
{
    size_t impl_column = table_find_column(table, "chosen_attention"),
           strategy_column = table_find_column(table, "chosen_strategy"),
           profile_column = table_find_column(table, "chosen_profile");
    struct rows_by_attention_kernels kernels = {0};
    enum attention_impl impl, best = ATTENTION_FA2;
    bool varied = table_find_column(table, "attention") < s->axis_count,
         profiles = table_find_column(table, "profile") < s->axis_count;
    if (varied || impl_column == SIZE_MAX || strategy_column == SIZE_MAX ||
        profile_column == SIZE_MAX)
        return;
    for (size_t i = 0; i < table->row_count; i++) {
        const char **row = table->cells[i];
        struct text who = {0};
        if (strcmp(row[s->axis_count], sweep_status_names[SWEEP_FITS]) != 0 ||
            !attention_impl_find(row[impl_column], strlen(row[impl_column]), &impl))
            continue;
        text_puts(&who, row[strategy_column]);
        if (profiles)
            text_printf(&who, "/%s", row[profile_column]);
        kernels_add_row_of_attention_impl(&kernels, impl, who.data);
        best = i == s->fastest_fitting_row ? impl : best;
        text_release(&who);
    }
    struct text line = {0};
    put_attention_kernels_if_differ(&line, &kernels, best);
    if (line.size > 0)
        text_printf(out, "%-11s%s\n", "kernels", line.data);
    text_release(&line);
    kernels_release(&kernels);
}

const char *sweep_summary_words_of_status(int status, size_t count)
{
    static const char *const one[SWEEP_STATUS_COUNT] = {"fits", "may fit", "does not fit",
                                                        "is refused", "failed"};
    static const char *const many[SWEEP_STATUS_COUNT] = {"fit", "may fit", "do not fit",
                                                         "are refused", "failed"};
    return count == 1 ? one[status] : many[status];
}

/* Appends, of each workload, the fastest point that fits. Appends nothing if no point that fits has a time. */
static void print_fastest(struct text *out, const struct table *table,
                          const struct sweep_summary *s)
{
    for (size_t w = 0; w < s->workload_count; w++) {
        struct text work = {0}, other = {0};
        sweep_put_axis_values_of_row(&work, table, s, s->best_row_of_workload[w], true);
        sweep_put_axis_values_of_row(&other, table, s, s->best_row_of_workload[w], false);
        text_puts(out, other.size > 0 || s->workload_count == 1 ? "Fastest" : "Speed");
        if (s->workload_count > 1)
            text_printf(out, " of%s", work.data);
        text_puts(out, ": ");
        sweep_put_speed(out, table, s->best_row_of_workload[w]);
        if (s->workload_count == 1)
            text_printf(out, ", with%s%s", work.size > 0 ? work.data : "",
                        other.size > 0 ? other.data : "");
        else if (other.size > 0)
            text_printf(out, ", with%s", other.data);
        text_putc(out, '\n');
        text_release(&work);
        text_release(&other);
    }
}

static void print_summary(struct text *out, const struct table *table,
                          const struct sweep_summary *s, size_t resumed, bool complete)
{
    print_fastest(out, table, s);
    text_printf(out, "%zu point%s in %s: ", table->row_count, table->row_count == 1 ? "" : "s",
                table->path);
    for (int i = 0; i < SWEEP_STATUS_COUNT; i++)
        if (s->count_of_status[i] > 0 || i == SWEEP_FITS)
            text_printf(out, "%s%zu %s", i == SWEEP_FITS ? "" : ", ", s->count_of_status[i],
                        sweep_summary_words_of_status(i, s->count_of_status[i]));
    if (complete)
        text_puts(out, " (nothing was left to do)");
    else if (resumed > 0)
        text_printf(out, " (%zu from an earlier run)", resumed);
    text_putc(out, '\n');
    if (s->fastest_fitting_row != SIZE_MAX)
        print_attention_kernels_if_differ(out, table, s);
}

/* Puts the number of a column; if the row lacks it, skips the column. */
static void put_figure(struct rows *rows, const struct table *table, size_t row, const char *name)
{
    double value = 0;
    if (table_read_number(table, row, table_find_column(table, name), &value))
        rows_put_number(rows, value);
    else
        rows_skip_column(rows);
}

static void put_point(struct rows *rows, const struct table *table, const struct sweep_summary *s,
                      size_t row)
{
    rows_put_number(rows, (double)row);
    rows_begin_object(rows);
    for (size_t a = 0; a < s->axis_count; a++)
        json_put_text(rows->json, table->column_name[a], table->cells[row][a]);
    rows_end_object(rows);
    put_figure(rows, table, row, "step_s");
    put_figure(rows, table, row, "tokens_per_s_gpu");
}

static void print_summary_json(struct text *out, const struct table *table,
                               const struct sweep_summary *s, size_t resumed)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "sweep");
    json_put_text(&json, "file", table->path);
    json_put_text(&json, "command", table_header_value(table, "command"));
    json_put_count(&json, "points", table->row_count);
    json_put_count(&json, "resumed", resumed);
    json_begin_object(&json, "status");
    for (int i = 0; i < SWEEP_STATUS_COUNT; i++)
        json_put_count(&json, result_name_of_words(sweep_status_names[i]).text,
                       s->count_of_status[i]);
    json_end_object(&json);
    struct rows rows = {.json = &json};
    if (s->workload_count == 1) {
        rows_begin_single_row(&rows, "best", &sweep_point_table);
        put_point(&rows, table, s, s->fastest_fitting_row);
        rows_end(&rows);
    } else if (s->workload_count > 1) {
        rows_begin(&rows, "best_of_each", NULL, &sweep_point_table);
        for (size_t w = 0; w < s->workload_count; w++)
            put_point(&rows, table, s, s->best_row_of_workload[w]);
        rows_end(&rows);
    }
    json_end_object(&json);
    text_putc(out, '\n');
}

enum status sweep_summary_exit_status(const struct sweep_summary *s, const struct table *table,
                                      struct diag *diag)
{
    const struct loc at = {.name = table->path};
    if (s->count_of_status[SWEEP_FAILED] > 0)
        return diag_error(diag, at, STATUS_SYSTEM,
                          "%zu of %zu points could not be predicted; column reason says why, and "
                          "the same command tries them again",
                          s->count_of_status[SWEEP_FAILED], table->row_count);
    if (s->count_of_status[SWEEP_REFUSED] == table->row_count)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "every point is refused; the first because: %s",
                          table->cells[0][s->axis_count + 1]);
    return s->count_of_status[SWEEP_FITS] == 0 ? STATUS_NO : STATUS_OK;
}

enum status sweep_print_summary(const char *path, size_t resumed, bool complete, bool json,
                                struct diag *diag)
{
    struct table table = {0};
    struct sweep_summary summary = {0};
    struct text out = {0};
    enum status status = table_load(&table, path, diag);
    if (status == STATUS_OK)
        status = sweep_summary_make(&summary, &table, diag);
    if (status == STATUS_OK) {
        if (json)
            print_summary_json(&out, &table, &summary, complete ? table.row_count : resumed);
        else
            print_summary(&out, &table, &summary, resumed, complete);
        status = command_print(&out, diag);
    }
    if (status == STATUS_OK)
        status = sweep_summary_exit_status(&summary, &table, diag);
    text_release(&out);
    sweep_summary_release(&summary);
    table_release(&table);
    return status;
}
