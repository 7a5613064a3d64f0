/* cli/validate/json.c: prints validated rows of both kinds of file as JSON. */
#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/validate/print.h"

#include <math.h>
#include <string.h>

/* The kinds of columns that EXTERNAL_COLUMNS names. Those that begin with IN_CSV_ are for the CSV file (-o), in which a
 * value that is not given is an empty field; the others are for JSON, which has null for a number that is not given,
 * and an empty text for a text. */
enum {
    NEEDED = COLUMN_PLAIN_TEXT,
    TEXT = COLUMN_PLAIN_TEXT,
    COUNT = COLUMN_COUNT | COLUMN_NULLABLE,
    NUMBER = COLUMN_NUMBER | COLUMN_NULLABLE,
    IN_CSV_NEEDED = COLUMN_PLAIN_TEXT,
    IN_CSV_TEXT = COLUMN_PLAIN_TEXT | COLUMN_OPTIONAL,
    IN_CSV_COUNT = COLUMN_COUNT | COLUMN_OPTIONAL,
    IN_CSV_NUMBER = COLUMN_NUMBER | COLUMN_OPTIONAL
};
static const char error_is[] =
    "predicted / measured - 1; of a step's seconds measured / predicted - 1, so that + is "
    "faster than measured.";
static const char memory_kind_is[] =
    "What the source calls its figure of memory: allocated (tensors), reserved (the allocator), or "
    "unnamed, which is in no mean; empty: it has none.";
static const char memory_error_is[] =
    "predicted / measured - 1 of allocated memory, or of reserved memory.";

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
#define COLUMN(symbol, name, kind, about) {name, NULL, NULL, kind, 0, about},
#define STATUS_COLUMNS {"status", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "ok, right, wrong, zero, error or none."}, \
    {"counted", NULL, NULL, COLUMN_FLAG, 0, "Whether the error is part of means."}, \
    {"why", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_NULLABLE, 0, "Why it could not be predicted, is wrong or does not count."}
static const struct column figures[] = {
    EXTERNAL_COLUMNS(COLUMN)
    {"predicted", NULL, NULL, COLUMN_NUMBER_OR_TEXT, 0, "The predicted value."},
    {"relative_error", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, error_is},
    STATUS_COLUMNS,
};

static const struct column steps[] = {
    EXTERNAL_COLUMNS(COLUMN)
    {"predicted_step_s", NULL, NULL, NUMBER, 0, NULL},
    {"relative_error", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, error_is},
    {"predicted_peak_bytes", NULL, NULL, NUMBER, 0, NULL},
    {"predicted_reserved_bytes", NULL, NULL, NUMBER, 0, NULL},
    {"memory_kind", NULL, NULL, COLUMN_PLAIN_TEXT, 0, memory_kind_is},
    {"memory_error", NULL, NULL, COLUMN_SIGNED_PERCENT, 0, memory_error_is},
    STATUS_COLUMNS,
};
#undef COLUMN
#undef STATUS_COLUMNS

#define COLUMN(symbol, name, kind, about) {name, NULL, NULL, IN_CSV_##kind, 0, about},
static const struct column csv[] = {
    EXTERNAL_COLUMNS(COLUMN)
    {"predicted", NULL, NULL, COLUMN_NUMBER_OR_TEXT | COLUMN_OPTIONAL, 0, "Of a figure: the predicted value."},
    {"predicted_step_s", NULL, NULL, IN_CSV_NUMBER, 0, NULL},
    {"relative_error", NULL, NULL, COLUMN_SIGNED_PERCENT | COLUMN_OPTIONAL, 0, error_is},
    {"predicted_peak_bytes", NULL, NULL, IN_CSV_NUMBER, 0, NULL},
    {"predicted_reserved_bytes", NULL, NULL, IN_CSV_NUMBER, 0, NULL},
    {"memory_kind", NULL, NULL, IN_CSV_TEXT, 0, memory_kind_is},
    {"memory_error", NULL, NULL, COLUMN_SIGNED_PERCENT | COLUMN_OPTIONAL, 0, memory_error_is},
    {"status", NULL, NULL, IN_CSV_TEXT, 0, "ok, right, wrong, zero, none or error, and after a colon why."},
};
#undef COLUMN
/* clang-format on */

const struct row_table validate_rows[VALIDATE_ROW_COUNT] = {
    [VALIDATE_FIGURE] = {"validate_figure", figures, ARRAY_LEN(figures)},
    [VALIDATE_STEP] = {"validate_step", steps, ARRAY_LEN(steps)},
    [VALIDATE_CSV] = {"validate_csv", csv, ARRAY_LEN(csv)},
};

/* Fills the columns that the file of measurements has. A number that is not given becomes null. */
static void put_measurement_file_columns(struct rows *rows, const struct external_run *run)
{
    for (size_t i = 0; i < EXTERNAL_COLUMN_COUNT; i++) {
        double number = NAN;
        if (rows->column[i].kind == TEXT)
            rows_put_text(rows, run->cells[i]);
        else if (parse_double(run->cells[i], strlen(run->cells[i]), &number))
            rows_put_number(rows, number);
        else
            rows_put_number(rows, NAN);
    }
}

static void put_verdict(struct rows *rows, enum measurement_outcome outcome, bool counted,
                        const char *why)
{
    rows_put_text(rows, measurement_outcome_name(outcome));
    rows_put_number(rows, counted);
    rows_put_text(rows, why);
}

static void put_figure(struct rows *rows, const struct validation *v, size_t i)
{
    const struct validated_row *judged = &v->row[i];
    put_measurement_file_columns(rows, &v->rows->rows[i]);
    if (judged->result.predicted_text != NULL)
        rows_put_text(rows, judged->result.predicted_text);
    else
        rows_put_number(rows, judged->result.predicted);
    rows_put_number(rows, judged->result.relative_error);
    put_verdict(rows, judged->result.outcome, judged->counts_in_means,
                judged->result.status_reason != NULL ? judged->result.status_reason
                                                     : judged->remark);
}

static void put_step(struct rows *rows, const struct external_validation *v, size_t i)
{
    const struct external_prediction *result = &v->result[i];
    put_measurement_file_columns(rows, &v->runs->rows[i]);
    rows_put_number(rows, result->step_s);
    rows_put_number(rows, result->relative_error);
    rows_put_number(rows, result->peak_bytes);
    rows_put_number(rows, result->reserved_bytes);
    rows_put_text(rows, external_memory_kind_name(
                            external_metric_memory_kind(v->runs->rows[i].second_metric)));
    rows_put_number(rows, result->memory_error);
    put_verdict(rows, result->outcome, v->runs->rows[i].is_counted, result->status_reason);
}

void validation_print_json(struct text *out, const struct validation *v,
                           const struct external_validation *external)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "validate");
    struct rows rows = {.json = &json};
    rows_begin(&rows, "figures", NULL, &validate_rows[VALIDATE_FIGURE]);
    for (size_t i = 0; i < v->rows->row_count; i++)
        put_figure(&rows, v, i);
    rows_end(&rows);
    rows_begin(&rows, "training_steps", NULL, &validate_rows[VALIDATE_STEP]);
    for (size_t i = 0; i < external->runs->row_count; i++)
        put_step(&rows, external, i);
    rows_end(&rows);
    validation_put_means(&json, v);
    external_validation_put_means(&json, external);
    json_end_object(&json);
    text_putc(out, '\n');
}
