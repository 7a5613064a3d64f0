/* cli/validate/json.c: prints validated rows of both kinds of file as JSON. */
#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/validate/print.h"

#include <math.h>
#include <string.h>

/* Appends the columns of a row. Texts are texts; a count that is not given is null. */
static void put_columns(struct json_out *json, const struct external_run *row)
{
    static const enum external_column counts[] = {
        EXTERNAL_GPUS, EXTERNAL_SEQ_LEN, EXTERNAL_MICRO_BATCH, EXTERNAL_GLOBAL_BATCH,
        EXTERNAL_TP,   EXTERNAL_CP,      EXTERNAL_PP,          EXTERNAL_VPP,
        EXTERNAL_DP,   EXTERNAL_STEP_S};
    for (size_t k = 0; k < EXTERNAL_COLUMN_COUNT; k++) {
        const char *name = external_column_name((enum external_column)k);
        double number = NAN;
        bool is_count = false;
        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
            is_count |= k == counts[i];
        if (!is_count)
            json_put_text(json, name, row->text[k]);
        else if (parse_double(row->text[k], strlen(row->text[k]), &number))
            json_put_number(json, name, number);
        else
            json_put_number(json, name, NAN);
    }
}

static void put_row(struct json_out *json, const struct validation *v, size_t i)
{
    const struct validated *judged = &v->row[i];
    json_begin_object(json, NULL);
    put_columns(json, &v->rows->row[i]);
    if (judged->result.predicted_text != NULL)
        json_put_text(json, "predicted", judged->result.predicted_text);
    else
        json_put_number(json, "predicted", judged->result.predicted);
    json_put_number(json, "relative_error", judged->result.error);
    json_put_text(json, "status", measurement_outcome_name(judged->result.outcome));
    json_put_bool(json, "counted", judged->counted);
    json_put_text(json, "why", judged->result.why != NULL ? judged->result.why : judged->other);
    json_end_object(json);
}

static void put_external(struct json_out *json, const struct external_validation *v, size_t i)
{
    const struct external_result *result = &v->result[i];
    json_begin_object(json, NULL);
    put_columns(json, &v->runs->row[i]);
    json_put_number(json, "predicted_step_s", result->step_s);
    json_put_number(json, "relative_error", result->error);
    json_put_number(json, "predicted_peak_bytes", result->peak_bytes);
    json_put_number(json, "predicted_reserved_bytes", result->reserved_bytes);
    json_put_number(json, "memory_error", result->memory_error);
    json_put_text(json, "status", measurement_outcome_name(result->outcome));
    json_put_bool(json, "counted", v->runs->row[i].counts);
    json_put_text(json, "why", result->why);
    json_end_object(json);
}

void validation_print_json(struct text *out, const struct validation *v,
                           const struct external_validation *external)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "validate");
    json_begin_array(&json, "figures");
    for (size_t i = 0; i < v->rows->count; i++)
        put_row(&json, v, i);
    json_end_array(&json);
    json_begin_array(&json, "training_steps");
    for (size_t i = 0; i < external->runs->count; i++)
        put_external(&json, external, i);
    json_end_array(&json);
    validation_put_means(&json, v);
    external_validation_put_means(&json, external);
    json_end_object(&json);
    text_putc(out, '\n');
}
