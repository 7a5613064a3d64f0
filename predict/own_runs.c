#include "predict/own_runs.h"

#include "base/json.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Sets *value to log(measured / predicted) of a figure, or to NAN if one of the two objects lacks it. */
static enum status read_log_ratio(struct json_node predicted, struct json_node measured,
                                  const char *key, double *value, struct diag *diag)
{
    const struct json_node nodes[] = {json_find_member(predicted, key),
                                      json_find_member(measured, key)};
    double number[ARRAY_LEN(nodes)];
    *value = NAN;
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        if (nodes[i].value == NULL)
            return STATUS_OK;
        enum status status = json_as_double(nodes[i], DBL_MIN, DBL_MAX, &number[i], diag);
        if (status != STATUS_OK)
            return status;
    }
    *value = log(number[1] / number[0]);
    return STATUS_OK;
}

static enum status add_record(struct json_node record, void *residuals, struct diag *diag)
{
    struct residuals *own = residuals;
    struct json_node predicted, measured, run;
    struct residual residual = {.source = "own", .laboratory = "own", .run = "", .set = ""};
    residual.log_ratio_at_first_prediction = NAN;
    enum status status = json_get_object(record, "predicted", &predicted, diag);
    if (status == STATUS_OK)
        status = json_get_object(record, "measured", &measured, diag);
    if (status == STATUS_OK)
        status =
            read_log_ratio(predicted, measured, "step_s", &residual.log_ratio[RESIDUAL_TIME], diag);
    if (status == STATUS_OK)
        status = read_log_ratio(predicted, measured, "reserved_gib",
                                &residual.log_ratio[RESIDUAL_MEMORY], diag);
    if (status != STATUS_OK ||
        (isnan(residual.log_ratio[RESIDUAL_TIME]) && isnan(residual.log_ratio[RESIDUAL_MEMORY])))
        return status;
    if (json_find_member(record, "run").value == NULL)
        return json_error(record, diag,
                          "has no member 'run', which says what the run consists of: it is of a "
                          "recorded step or a schedule file, or an older version wrote it; only "
                          "steps of a model with a framework's profile shift intervals");
    status = json_get_object(record, "run", &run, diag);
    if (status == STATUS_OK)
        status = residual_read_json(&residual, run, diag);
    if (status == STATUS_OK)
        residuals_add(own, &residual);
    return status;
}

enum status own_runs_load(struct residuals *own, const char *path, struct diag *diag)
{
    struct text file = {0};
    const size_t before = own->row_count;
    enum status status = text_read(&file, path, diag);
    if (status == STATUS_OK && file.size > 0 && file.data[strspn(file.data, " \t\r\n")] == '{')
        status = json_read_lines(path, file.data, file.size, add_record, own, diag);
    else if (status == STATUS_OK)
        status = residuals_parse(own, path, file.data != NULL ? file.data : "", file.size, diag);
    if (status == STATUS_OK && own->row_count == before)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "holds no measured run: fill in the members of 'measured' in lines "
                            "that `longhaul predict --record FILE` wrote");
    text_release(&file);
    return status;
}
