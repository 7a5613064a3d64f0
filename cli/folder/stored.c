#include "cli/folder/stored.h"

#include "base/json_write.h"
#include "base/path.h"
#include "cli/common/output.h"
#include "predict/result_names.h"
#include "traces/csv.h"
#include "traces/kineto.h"

#include <float.h>
#include <stdint.h>

static void put_path_of_file_in_folder(struct text *out, const char *path, const char *name)
{
    text_puts(out, path);
    if (path_is_folder(path))
        text_printf(out, "/%s", name);
}

/* Fails unless the file has this program's schema version. The names of members differ between
 * versions, so a file of another version has to be made again. */
static enum status check_schema_version(struct stored_prediction *stored, struct diag *diag)
{
    struct json_node root = json_root(&stored->json);
    const char *command = NULL;
    int64_t version = 0;
    if (json_is_number(json_find_member(root, "schema_version")) &&
        json_get_i64(root, "schema_version", 0, INT64_MAX, &version, NULL) == STATUS_OK &&
        version == JSON_SCHEMA_VERSION)
        return STATUS_OK;
    struct json_node made_by = json_find_member(root, "made_by");
    if (json_is_object(made_by) && json_is_string(json_find_member(made_by, "command")))
        json_get_string(made_by, "command", &command, NULL);
    struct text has = {0};
    if (version > 0)
        text_printf(&has, "has schema version %lld, and this program reads %d", (long long)version,
                    (int)JSON_SCHEMA_VERSION);
    else
        text_printf(&has, "was written before schema version %d", (int)JSON_SCHEMA_VERSION);
    enum status status = diag_error(diag, (struct loc){.name = stored->path.data}, STATUS_BAD_INPUT,
                                    "%s; write the folder anew: %s -o DIR", has.data,
                                    command != NULL ? command : "longhaul predict ...");
    text_release(&has);
    return status;
}

enum status stored_prediction_load(struct stored_prediction *stored, const char *path,
                                   struct diag *diag)
{
    put_path_of_file_in_folder(&stored->path, path, "prediction.json");
    enum status status = text_read(&stored->text, stored->path.data, diag);
    if (status == STATUS_OK)
        status =
            json_parse(&stored->json, stored->path.data,
                       stored->text.data == NULL ? "" : stored->text.data, stored->text.size, diag);
    if (status == STATUS_OK)
        status = check_schema_version(stored, diag);
    return status;
}

void stored_prediction_release(struct stored_prediction *stored)
{
    json_release(&stored->json);
    text_release(&stored->text);
    text_release(&stored->path);
    *stored = (struct stored_prediction){0};
}

enum status stored_read_waterfall(struct stored_prediction *stored, struct waterfall *w,
                                  struct diag *diag)
{
    struct json_node root = json_root(&stored->json), causes;
    *w = (struct waterfall){0};
    if (json_is_object(json_find_member(root, "part")) &&
        !json_is_number(json_find_member(root, "step_s")))
        return diag_error(diag, (struct loc){.name = stored->path.data}, STATUS_BAD_INPUT,
                          "predicts a part of the model (--scope) and not a step, so it has no "
                          "waterfall and no page");
    enum status status = json_get_double(root, "step_s", 0, DBL_MAX, &w->step_s, diag);
    if (status == STATUS_OK)
        status = json_get_object(root, "waterfall", &causes, diag);
    for (int i = 0; i < CAUSE_COUNT && status == STATUS_OK; i++)
        if (i != CAUSE_DOCUMENT_IMBALANCE ||
            json_is_number(json_find_member(causes, result_name_of_cause(i).text)))
            status = json_get_double(causes, result_name_of_cause((enum cause)i).text, 0, DBL_MAX,
                                     &w->cause_s[i], diag);
    return status;
}

enum status stored_load_trace(struct trace *trace, const char *path, bool memory, struct diag *diag)
{
    struct text whole = {0}, text = {0};
    put_path_of_file_in_folder(&whole, path, memory ? "memory.csv" : "ops.csv");
    enum status status = text_read(&text, whole.data, diag);
    const char *data = text.data == NULL ? "" : text.data;
    if (status == STATUS_OK && memory)
        status = trace_parse_memory(trace, whole.data, data, text.size, diag);
    else if (status == STATUS_OK && kineto_recognise(data, text.size))
        status = kineto_parse(trace, whole.data, data, text.size, diag);
    else if (status == STATUS_OK)
        status = trace_parse_ops(trace, whole.data, data, text.size, diag);
    text_release(&whole);
    text_release(&text);
    return status;
}
