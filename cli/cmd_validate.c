/* longhaul validate: predictions beside published figures and measured training steps. */
#include "cli/command.h"

#include "base/file_set.h"
#include "cli/common/output.h"
#include "cli/folder/trace_folder.h"
#include "cli/validate/check_rows.h"
#include "cli/validate/coverage.h"
#include "cli/validate/external_setup.h"
#include "cli/validate/open_table.h"
#include "cli/validate/pages.h"
#include "cli/validate/print.h"
#include "cli/validate/records.h"
#include "cli/validate/run_residuals.h"

#include <stdlib.h>
#include <string.h>

static const struct option rows[] = {
    {.name = "data",
     .kind = OPTION_TEXT,
     .value_name = "FILE.csv",
     .unset_text =
         "traces/published/measurements.csv, external.csv and external-2026-11.csv; steps with "
         "experts are in external-moe.csv, steps with products in 8 bits in external-fp8.csv",
     .help =
         "a CSV file of measurements: one published figure or one measured training step a row, "
         "with the options of predict that describe it"},
    {.name = "source",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .help = "predict only rows of this source (the paper, blog or repository that published the "
             "measurement)"},
    {.name = "table",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .help = "predict only published figures of this table of their source (column place)"},
    {.name = "system",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .help = "predict only published figures of this method: ulysses, ring, 2d, fpdt, sppo, "
             "megatron-sp or any"},
    {.name = "device",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .help = "predict only training steps on this device: a100_80gb, or a100 for all A100s"},
    {.name = "baseline",
     .kind = OPTION_FLAG,
     .help = "print also the errors of LoongTrain's closed formula on the same rows"},
    {.name = "sensitivity",
     .kind = OPTION_FLAG,
     .help = "print also how each table's error moves when one number of the machine changes by 10 "
             "% (predicts the rows about a hundred times)"},
    {.name = "leave-one-out",
     .kind = OPTION_FLAG,
     .help = "print also each LoongTrain table's error when the numbers fitted to LoongTrain are "
             "fitted to its other tables only (predicts the rows about twenty times)"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE.csv",
     .help = "the CSV file to which each row is written with its prediction, error and status"},
    {.name = "residuals",
     .kind = OPTION_TEXT,
     .value_name = "FILE.csv",
     .help = "write log(measured / predicted) of every whole step, from which the program makes "
             "the intervals of predictions (traces/published/residuals.csv)"},
    {.name = "pages",
     .kind = OPTION_TEXT,
     .value_name = "DIR",
     .help = "renew the generated tables of DIR/accuracy.md and of the pages in DIR/accuracy/, "
             "one per source"},
    {.name = "check-rows",
     .kind = OPTION_TEXT,
     .value_name = "FILE.csv",
     .help = "check rows of measurements before they are added: what is missing, and what "
             "contradicts itself; predicts nothing; exit code 1 if there is a fault"},
    {.name = "records",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help = "compare predictions that predict --record wrote with the measured values that were "
             "added to the file later; predicts nothing"},
    {.name = "all",
     .kind = OPTION_FLAG,
     .help = "print the prediction and measurement of every row; without it, only those of rows "
             "that are predicted not to fit in memory, or could not be predicted"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print every row as JSON, without the means"},
};
const struct option_set validate_options = {"measurements", rows, ARRAY_LEN(rows)};

/* The rows of the files. figures: published figures; steps: measured steps. Either may be empty. Their texts are in the
 * arena of `all_rows`. */
struct measurement_sets {
    struct external_runs all_rows, figures, steps;
};

static void measurement_sets_release(struct measurement_sets *data)
{
    external_release(&data->all_rows);
    external_release(&data->figures);
    external_release(&data->steps);
}

/* Copies each row that was read to the steps if it gives the seconds of a step, else to the
 * figures. */
static void split_figures_and_steps(struct measurement_sets *data)
{
    for (size_t i = 0; i < data->all_rows.row_count; i++) {
        const struct external_run *row = &data->all_rows.rows[i];
        struct external_runs *to = row->step_s > 0 ? &data->steps : &data->figures;
        to->rows = heap_grow(to->rows, &to->capacity, to->row_count + 1, sizeof *to->rows);
        to->rows[to->row_count++] = *row;
    }
}

static enum status load_measurements(struct measurement_sets *data, const struct options *options,
                                     struct diag *diag)
{
    enum status status = is_option_given(options, "data")
                             ? external_load(&data->all_rows, options_text(options, "data"), diag)
                             : external_load_shipped(&data->all_rows, diag);
    split_figures_and_steps(data);
    return status;
}

/* An option that selects rows, with the number of the column that it compares, in rows of figures and in rows of steps.
 * -1: these rows have no such column, and the option selects none of them. */
struct row_filter {
    const char *option;
    int figure_column, step_column;
};

static bool step_passes_filter(const struct external_run *row, const struct row_filter *filter,
                               const char *want)
{
    return filter->step_column == EXTERNAL_GPU ? external_row_is_of_gpu(row, want)
                                               : strcmp(row->cells[filter->step_column], want) == 0;
}

/* Adds a value to a list unless the list has it. */
static void add_distinct_value(const char **value, size_t *count, const char *other)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(value[i], other) == 0)
            return;
    value[(*count)++] = other;
}

static enum status report_no_rows_left(const struct row_filter *filter, const char *want,
                                       const char *const *value, size_t count, struct diag *diag)
{
    const struct option_name_with_dashes dashed_name = options_name_with_dashes(filter->option);
    struct text values = {0};
    struct loc at = {.name = dashed_name.text};
    for (size_t i = 0; i < count; i++)
        text_printf(&values, "%s%s", i > 0 ? ", " : "", value[i]);
    enum status status =
        count > 0 ? diag_error(diag, at, STATUS_BAD_INPUT, "no row has '%s'; there are %s", want,
                               values.data)
                  : diag_error(diag, at, STATUS_BAD_INPUT, "is for %s, and there are no such rows",
                               filter->step_column < 0     ? "published figures"
                               : filter->figure_column < 0 ? "measured training steps"
                                                           : "rows of measurements");
    text_release(&values);
    return status;
}

static enum status drop_rows_that_fail_filter(struct measurement_sets *data,
                                              const struct row_filter *filter, const char *want,
                                              struct diag *diag)
{
    size_t figures = data->figures.row_count, steps = data->steps.row_count, values = 0;
    const char **value = heap_zalloc(figures + steps + 1, sizeof *value);
    data->figures.row_count = data->steps.row_count = 0;
    size_t layouts = 0;
    for (size_t i = 0; i < figures && filter->figure_column >= 0; i++) {
        struct external_run *row = &data->figures.rows[i];
        const bool is_layout = row->metric == METRIC_LAYOUT;
        if (is_layout || strcmp(row->cells[filter->figure_column], want) == 0)
            data->figures.rows[data->figures.row_count++] = *row;
        else
            add_distinct_value(value, &values, row->cells[filter->figure_column]);
        layouts += is_layout;
    }
    for (size_t i = 0; i < steps && filter->step_column >= 0; i++) {
        struct external_run *row = &data->steps.rows[i];
        if (step_passes_filter(row, filter, want))
            data->steps.rows[data->steps.row_count++] = *row;
        else
            add_distinct_value(value, &values, row->cells[filter->step_column]);
    }
    enum status status = data->figures.row_count + data->steps.row_count > layouts
                             ? STATUS_OK
                             : report_no_rows_left(filter, want, value, values, diag);
    free((void *)value);
    return status;
}

/* Drops the rows of METRIC_LAYOUT in whose group no row of `figures` is a longest length. Such a row only gives a
 * layout that the search for the longest lengths of its group tries. */
static void drop_layouts_without_longest(struct external_runs *figures)
{
    size_t kept = 0;
    for (size_t i = 0; i < figures->row_count; i++) {
        bool wanted = figures->rows[i].metric != METRIC_LAYOUT;
        for (size_t k = 0; k < figures->row_count && !wanted; k++)
            wanted = figures->rows[k].metric == METRIC_MAX_SEQ_LEN &&
                     external_are_in_same_group(&figures->rows[i], &figures->rows[k],
                                                VALIDATION_LENGTHS_KEY);
        if (wanted)
            figures->rows[kept++] = figures->rows[i];
    }
    figures->row_count = kept;
}

/* Keeps the rows that pass every filter, and the layouts that these rows need. If a filter leaves
 * no row, the error lists the values that the rows before it had, or says that there were no rows
 * to which the filter applies. */
static enum status keep_rows_that_pass_all_filters(struct measurement_sets *data,
                                                   const struct options *options, struct diag *diag)
{
    static const struct row_filter filters[] = {
        {"source", EXTERNAL_SOURCE, EXTERNAL_SOURCE},
        {"table", EXTERNAL_PLACE, -1},
        {"system", EXTERNAL_FRAMEWORK, -1},
        {"device", -1, EXTERNAL_GPU},
    };
    enum status status = STATUS_OK;
    for (size_t f = 0; status == STATUS_OK && f < ARRAY_LEN(filters); f++)
        if (is_option_given(options, filters[f].option))
            status = drop_rows_that_fail_filter(data, &filters[f],
                                                options_text(options, filters[f].option), diag);
    for (size_t f = 0; f < ARRAY_LEN(filters); f++)
        if (is_option_given(options, filters[f].option))
            drop_layouts_without_longest(&data->figures);
    return status;
}

/* If rows could not be predicted, fails with their number. The reason for each has been reported
 * already. */
static enum status report_unpredicted_rows(const struct validation *v,
                                           const struct external_validation *steps,
                                           struct diag *diag)
{
    size_t errors = 0, all = v->rows->row_count + steps->runs->row_count;
    for (size_t i = 0; i < v->rows->row_count; i++)
        errors += v->row[i].result.outcome == OUTCOME_PREDICTION_FAILED;
    for (size_t i = 0; i < steps->runs->row_count; i++)
        errors += steps->result[i].outcome == OUTCOME_PREDICTION_FAILED;
    if (errors == 0)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "validate"}, STATUS_BAD_INPUT,
                      "%zu of %zu rows could not be predicted; their lines say why", errors, all);
}

/* Writes the rows of both kinds, first the figures. */
static enum status write_validated_rows_as_csv(const struct validation *v,
                                               const struct external_validation *steps,
                                               const char *path, struct diag *diag)
{
    struct text out = {0};
    struct external_prediction *result = heap_zalloc(v->rows->row_count + 1, sizeof *result);
    for (size_t i = 0; i < v->rows->row_count; i++) {
        result[i] = v->row[i].result;
        if (result[i].outcome == OUTCOME_OK && !v->row[i].counts_in_means)
            result[i].status_reason = v->row[i].remark; /* why the error does not count */
    }
    external_print_columns(&out);
    external_print(v->rows, result, &out);
    external_print(steps->runs, steps->result, &out);
    enum status status = file_set_write_single_file(path, out.data, out.size, diag);
    text_release(&out);
    free(result);
    return status;
}

/* Appends the errors of whole steps: published figures and measured steps. Appends also how many of them lie inside
 * the intervals that the program gives, and which share of steps fits, by the probability with which they were
 * predicted to fit. */
static enum status print_step_errors(struct text *out, const struct validation *v,
                                     const struct external_validation *steps,
                                     const struct residuals *runs, struct diag *diag)
{
    struct evidence shipped = {0};
    enum status status = evidence_load_shipped(&shipped, diag);
    if (status == STATUS_OK)
        run_residuals_print(out, runs, &shipped);
    if (status == STATUS_OK)
        open_table_print_accuracy(out, runs, &shipped, false);
    if (status == STATUS_OK)
        coverage_print(out, runs, &shipped);
    if (status == STATUS_OK)
        coverage_print_verdict_reliability(out, v, steps);
    evidence_release(&shipped);
    return status;
}

static enum status write_accuracy_pages(const struct validation *v,
                                        const struct external_validation *steps,
                                        const struct residuals *runs, const char *folder,
                                        struct diag *diag)
{
    struct evidence shipped = {0};
    enum status status = evidence_load_shipped(&shipped, diag);
    if (status == STATUS_OK)
        status = validation_write_pages(folder, v, steps, runs, &shipped, diag);
    evidence_release(&shipped);
    return status;
}

static enum status print_validation_reports(const struct validation *v,
                                            const struct external_validation *steps,
                                            const struct residuals *runs,
                                            const struct options *options, struct text *out,
                                            struct diag *diag)
{
    enum status status = STATUS_OK;
    if (is_option_given(options, "json")) {
        validation_print_json(out, v, steps);
        return STATUS_OK;
    }
    if (v->rows->row_count > 0 || steps->runs->row_count == 0)
        validation_print(out, v, is_option_given(options, "all"));
    if (is_option_given(options, "baseline"))
        validation_print_baseline_errors(out, v);
    if (is_option_given(options, "sensitivity"))
        status = validation_print_sensitivity(out, v, diag);
    if (status == STATUS_OK && is_option_given(options, "leave-one-out"))
        status = validation_print_leave_one_out(out, v, diag);
    if (status == STATUS_OK && steps->runs->row_count > 0) {
        text_puts(out, v->rows->row_count > 0 ? "\n" : "");
        external_validation_print(out, steps, is_option_given(options, "all"));
    }
    if (status == STATUS_OK)
        status = print_step_errors(out, v, steps, runs, diag);
    return status;
}

/* Refuses --baseline, --sensitivity and --leave-one-out together with --json, or if there are only rows of training
 * steps. */
static enum status check_options_suit_rows(const struct options *options,
                                           const struct measurement_sets *data, struct diag *diag)
{
    static const char *const of_figures[] = {"baseline", "sensitivity", "leave-one-out"};
    for (size_t i = 0; i < ARRAY_LEN(of_figures); i++) {
        if (!is_option_given(options, of_figures[i]))
            continue;
        if (is_option_given(options, "json"))
            return diag_error(diag, (struct loc){.name = "--json"}, STATUS_BAD_INPUT,
                              "cannot be combined with --baseline, --sensitivity or "
                              "--leave-one-out");
        if (data->figures.row_count == 0 && data->steps.row_count > 0)
            return diag_error(
                diag, (struct loc){.name = options_name_with_dashes(of_figures[i]).text},
                STATUS_BAD_INPUT, "is for published figures, and there are no such rows");
    }
    return STATUS_OK;
}

/* The options with which a file is read and nothing is predicted. */
static const char *const file_options[] = {"check-rows", "records"};

static enum status print_report_needing_no_prediction(const struct options *options, size_t which,
                                                      struct diag *diag)
{
    struct text out = {0};
    const char *path = options_text(options, file_options[which]);
    size_t given = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        given += is_option_given(options, rows[i].name);
    if (given > 1)
        return diag_error(
            diag, (struct loc){.name = options_name_with_dashes(file_options[which]).text},
            STATUS_BAD_INPUT, "cannot be combined with other options, since it predicts nothing");
    enum status status = which == 0 ? validation_check_rows(&out, path, diag)
                                    : validation_print_record_file(&out, path, diag);
    if (status == STATUS_OK || status == STATUS_NO) {
        enum status printed = command_print(&out, diag);
        status = printed == STATUS_OK ? status : printed;
    }
    text_release(&out);
    return status;
}

/* Refuses a folder into which no pages can be written, before anything is predicted. */
static enum status check_pages_folder(const char *folder, struct diag *diag)
{
    size_t before = diag->size;
    enum status status = trace_folder_check_can_write(folder, diag);
    diag_add_place_to_errors(diag, before, "--pages");
    return status;
}

enum status cmd_validate(const struct options *options, struct diag *diag)
{
    for (size_t i = 0; i < ARRAY_LEN(file_options); i++)
        if (is_option_given(options, file_options[i]))
            return print_report_needing_no_prediction(options, i, diag);
    struct measurement_sets data = {0};
    struct validation figures = {.setup_loader = external_setup_read_args};
    struct external_validation steps = {0};
    struct residuals runs = {0};
    struct text out = {0};
    enum status status = load_measurements(&data, options, diag);
    if (status == STATUS_OK)
        status = keep_rows_that_pass_all_filters(&data, options, diag);
    if (status == STATUS_OK)
        status = check_options_suit_rows(options, &data, diag);
    if (status == STATUS_OK && is_option_given(options, "pages"))
        status = check_pages_folder(options_text(options, "pages"), diag);
    if (status == STATUS_OK && is_option_given(options, "o"))
        status = file_set_check_path(options_text(options, "o"), diag);
    if (status == STATUS_OK && is_option_given(options, "residuals"))
        status = file_set_check_path(options_text(options, "residuals"), diag);
    if (status == STATUS_OK)
        status = validation_run(&figures, &data.figures, diag);
    if (status == STATUS_OK)
        status = external_validation_run(&steps, &data.steps, external_setup_read_args, diag);
    if (status == STATUS_OK)
        status = run_residuals_add_runs(&runs, &figures, &steps, diag);
    if (status == STATUS_OK)
        status = print_validation_reports(&figures, &steps, &runs, options, &out, diag);
    if (status == STATUS_OK) {
        status = command_print(&out, diag);
        /* the files are written even if the report could not be printed, for example into a closed
         * pipe */
        if (is_option_given(options, "o")) {
            enum status saved =
                write_validated_rows_as_csv(&figures, &steps, options_text(options, "o"), diag);
            status = status == STATUS_OK ? saved : status;
        }
        if (is_option_given(options, "pages")) {
            enum status saved =
                write_accuracy_pages(&figures, &steps, &runs, options_text(options, "pages"), diag);
            status = status == STATUS_OK ? saved : status;
        }
        if (is_option_given(options, "residuals")) {
            enum status saved = residuals_save(&runs, options_text(options, "residuals"), diag);
            status = status == STATUS_OK ? saved : status;
        }
        if (status == STATUS_OK)
            status = report_unpredicted_rows(&figures, &steps, diag);
    }
    text_release(&out);
    residuals_release(&runs);
    external_validation_release(&steps);
    validation_release(&figures);
    measurement_sets_release(&data);
    return status;
}
