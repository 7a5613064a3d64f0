/* longhaul validate: predictions beside published figures. */
#include "cli/command.h"

#include "base/data_path.h"
#include "cli/validate/validation.h"

#include <stdlib.h>
#include <string.h>

static const struct option rows[] = {
    {.name = "data",
     .kind = OPTION_TEXT,
     .value = "FILE.csv",
     .unset = "the published figures that ship with the program",
     .help = "measurements, one figure a row"},
    {.name = "source", .kind = OPTION_TEXT, .value = "NAME", .help = "only rows of this source"},
    {.name = "table", .kind = OPTION_TEXT, .value = "NAME", .help = "only rows of this table"},
    {.name = "system", .kind = OPTION_TEXT, .value = "NAME", .help = "only rows of this system"},
    {.name = "baseline",
     .kind = OPTION_FLAG,
     .help = "also the errors of LoongTrain's closed form on the same rows"},
    {.name = "sensitivity",
     .kind = OPTION_FLAG,
     .help =
         "also how each table's error moves when a number of the machine does by 10 %: predicts "
         "the rows some hundred times"},
    {.name = "leave-one-out",
     .kind = OPTION_FLAG,
     .help = "also each LoongTrain table's error when the numbers fitted to LoongTrain are fitted "
             "to its other tables: predicts the rows some twenty times"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value = "FILE.csv",
     .help = "write the rows with columns predicted, relative_error and status"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print every row as JSON, and no means"},
};
const struct option_set validate_options = {"measurements", rows, ARRAY_LEN(rows)};

static const struct {
    const char *option;
    enum measurement_column column;
} filters[] = {
    {"source", MEASUREMENT_SOURCE},
    {"table", MEASUREMENT_TABLE},
    {"system", MEASUREMENT_SYSTEM},
};

static enum status load(struct measurements *all, struct text *path, const struct options *options,
                        struct diag *diag)
{
    const char *data = options_text(options, "data");
    enum status status = STATUS_OK;
    if (data != NULL)
        text_puts(path, data);
    else
        status = data_path(path, "traces/published/measurements.csv", diag);
    return status == STATUS_OK ? measurements_load(all, path->data, diag) : status;
}

/* Leaves the rows that pass every filter. A filter that leaves none is an error which lists the
 * values there were. */
static enum status filter(struct measurements *all, const struct options *options,
                          struct diag *diag)
{
    for (size_t f = 0; f < ARRAY_LEN(filters); f++) {
        const char *want = options_text(options, filters[f].option);
        struct text values = {0};
        size_t kept = 0, count = all->count;
        if (want == NULL)
            continue;
        for (size_t i = 0; i < count; i++) {
            const char *value = all->row[i].text[filters[f].column];
            bool seen = strcmp(value, want) == 0;
            if (seen)
                all->row[kept++] = all->row[i];
            for (size_t k = 0; k < i && !seen; k++)
                seen = strcmp(all->row[k].text[filters[f].column], value) == 0;
            if (!seen)
                text_printf(&values, "%s%s", values.size > 0 ? ", " : "", value);
        }
        all->count = kept;
        if (kept == 0) {
            char shown[16] = "--";
            strncat(shown, filters[f].option, sizeof shown - 3);
            enum status status = diag_error(diag, (struct loc){.name = shown}, STATUS_BAD_INPUT,
                                            "no row has '%s'; there are %s", want,
                                            values.size > 0 ? values.data : "no rows");
            text_release(&values);
            return status;
        }
        text_release(&values);
    }
    return STATUS_OK;
}

/* What could not be predicted is told, row by row; here, how many there were. */
static enum status check_errors(const struct validation *v, struct diag *diag)
{
    size_t errors = 0;
    for (size_t i = 0; i < v->rows->count; i++)
        errors += v->row[i].result.outcome == OUTCOME_ERROR;
    if (errors == 0)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "validate"}, STATUS_BAD_INPUT,
                      "%zu of %zu rows could not be predicted; their lines say why", errors,
                      v->rows->count);
}

static enum status save(const struct validation *v, const char *path, struct diag *diag)
{
    struct measurement_result *result = heap_zalloc(v->rows->count + 1, sizeof *result);
    for (size_t i = 0; i < v->rows->count; i++) {
        result[i] = v->row[i].result;
        if (result[i].outcome == OUTCOME_OK && !v->row[i].counted)
            result[i].why = v->row[i].other; /* why it does not count */
    }
    enum status status = measurements_save(v->rows, result, path, diag);
    free(result);
    return status;
}

enum status cmd_validate(const struct options *options, struct diag *diag)
{
    struct measurements all = {0};
    struct validation validation = {0};
    struct text path = {0}, out = {0};
    if (options_given(options, "json") &&
        (options_given(options, "baseline") || options_given(options, "sensitivity") ||
         options_given(options, "leave-one-out")))
        return diag_error(diag, (struct loc){.name = "--json"}, STATUS_BAD_INPUT,
                          "goes with none of --baseline, --sensitivity and --leave-one-out");
    enum status status = load(&all, &path, options, diag);
    if (status == STATUS_OK)
        status = filter(&all, options, diag);
    if (status == STATUS_OK)
        status = validation_run(&validation, &all, diag);
    if (status == STATUS_OK) {
        bool json = options_given(options, "json");
        if (json)
            validation_print_json(&out, &validation);
        else
            validation_print(&out, &validation);
        if (!json && options_given(options, "baseline"))
            validation_print_baseline(&out, &validation);
        if (!json && options_given(options, "sensitivity"))
            status = validation_print_sensitivity(&out, &validation, diag);
        if (status == STATUS_OK && !json && options_given(options, "leave-one-out"))
            status = validation_print_leave_one_out(&out, &validation, diag);
    }
    if (status == STATUS_OK) {
        status = command_print(&out, diag);
        if (options_given(options, "o")) { /* also when nobody reads the report */
            enum status saved = save(&validation, options_text(options, "o"), diag);
            status = status == STATUS_OK ? saved : status;
        }
        if (status == STATUS_OK)
            status = check_errors(&validation, diag);
    }
    text_release(&out);
    validation_release(&validation);
    measurements_release(&all);
    text_release(&path);
    return status;
}
