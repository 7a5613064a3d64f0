/* Validated rows of both kinds of file as JSON. */
#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/validate/print.h"

static void put_row(struct json_out *json, const struct validation *v, size_t i)
{
    static const struct {
        const char *name;
        enum measurement_column column;
    } texts[] = {
        {"source", MEASUREMENT_SOURCE},   {"table", MEASUREMENT_TABLE},
        {"system", MEASUREMENT_SYSTEM},   {"model", MEASUREMENT_MODEL},
        {"cluster", MEASUREMENT_CLUSTER}, {"options", MEASUREMENT_OPTIONS},
        {"metric", MEASUREMENT_METRIC},   {"value", MEASUREMENT_VALUE},
        {"unit", MEASUREMENT_UNIT},
    };
    const struct measurement *row = &v->rows->row[i];
    const struct validated *judged = &v->row[i];
    json_begin_object(json, NULL);
    for (size_t k = 0; k < ARRAY_LEN(texts); k++)
        json_put_text(json, texts[k].name, row->text[texts[k].column]);
    json_put_count(json, "gpus", (uint64_t)row->gpus);
    json_put_count(json, "seq_len", (uint64_t)row->seq_len);
    if (judged->result.predicted_text != NULL)
        json_put_text(json, "predicted", judged->result.predicted_text);
    else
        json_put_number(json, "predicted", judged->result.predicted);
    json_put_number(json, "relative_error", judged->result.relative_error);
    json_put_text(json, "status", measurement_outcome_name(judged->result.outcome));
    json_put_bool(json, "counted", judged->counted);
    json_put_text(json, "why", judged->result.why != NULL ? judged->result.why : judged->why);
    json_put_text(json, "note", judged->other);
    json_end_object(json);
}

static void put_external(struct json_out *json, const struct external_validation *v, size_t i)
{
    const struct external_run *row = &v->runs->row[i];
    const struct external_result *result = &v->result[i];
    json_begin_object(json, NULL);
    for (size_t k = 0; k < EXTERNAL_COLUMN_COUNT; k++)
        if (k < EXTERNAL_GPUS || (k >= EXTERNAL_SHARDING && k != EXTERNAL_STEP_S))
            json_put_text(json, external_column_name((enum external_column)k), row->text[k]);
    json_put_count(json, "gpus", (uint64_t)row->gpus);
    json_put_count(json, "seq_len", (uint64_t)row->seq_len);
    json_put_count(json, "global_batch", (uint64_t)row->global_batch);
    json_put_number(json, "measured_step_s", row->step_s);
    json_put_number(json, "predicted_step_s", result->step_s);
    json_put_number(json, "relative_error", result->error);
    json_put_number(json, "predicted_peak_bytes", result->peak_bytes);
    json_put_number(json, "predicted_reserved_bytes", result->reserved_bytes);
    json_put_number(json, "memory_error", result->memory_error);
    json_put_text(json, "status", measurement_outcome_name(result->outcome));
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
    json_end_object(&json);
    text_putc(out, '\n');
}
