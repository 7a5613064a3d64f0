/* Reads transformers: presets, files in our schema, and Hugging Face files (by models/hf_config.h). */
#include "base/json.h"
#include "base/text.h"
#include "models/hf_config.h"
#include "models/hf_proxy.h"
#include "models/hub_models.h"
#include "models/presets.h"
#include "models/transformer.h"
#include "models/transformer_fields.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA_KEY "longhaul_transformer"
#define SCHEMA_VERSION 1

static const char *copy_text(struct arena *arena, const char *text)
{
    return arena_text(arena, text, strlen(text));
}

static enum status read_field(struct transformer *t, struct json_node root,
                              const struct transformer_field *field, struct diag *diag)
{
    const bool absent = json_find_member(root, field->name).value == NULL;
    switch (field->kind) {
    case FIELD_INTEGER: {
        /* A size that may be 0 may be absent, and is then 0. If it must be above 0 in this model, transformer_check()
         * says so. */
        int64_t *size = transformer_field_integer_pointer(t, field);
        if (absent && field->low <= 0)
            return STATUS_OK;
        return json_get_i64(root, field->name, (int64_t)field->low, (int64_t)field->high, size,
                            diag);
    }
    case FIELD_REAL:
        if (absent && (strcmp(field->name, "attention_dropout") == 0 ||
                       strcmp(field->name, "router_scale") == 0 ||
                       (strcmp(field->name, "rope_theta") == 0 && t->positions != POSITIONS_ROPE)))
            return STATUS_OK;
        return json_get_double(root, field->name, field->low, field->high,
                               transformer_field_real_pointer(t, field), diag);
    case FIELD_CHOICE: {
        const char *word;
        char choices[64];
        if (absent &&
            (strcmp(field->name, "norm_place") == 0 || strcmp(field->name, "router") == 0))
            return STATUS_OK;
        enum status status = json_get_string(root, field->name, &word, diag);
        if (status == STATUS_OK && !transformer_field_set_choice(t, field, word))
            return json_error(json_find_member(root, field->name), diag,
                              "unknown value '%s': it is one of %s", word,
                              transformer_field_choice_list(field, choices, sizeof choices));
        return status;
    }
    case FIELD_SWITCH:
        if (absent)
            return STATUS_OK;
        return json_get_bool(root, field->name, transformer_field_switch_pointer(t, field), diag);
    case FIELD_KIND_COUNT:
        break;
    }
    assert(false && "a field of a kind that is not in the table");
    return STATUS_BAD_INPUT;
}

/* Reads "sources" into t->source. Each field that the file has must have a source: its own, or that of "*". */
static enum status read_sources_of_fields(struct transformer *t, struct arena *arena,
                                          struct json_node root, struct diag *diag)
{
    struct json_node sources;
    enum status status = json_get_object(root, "sources", &sources, diag);
    if (status != STATUS_OK)
        return status;
    const char *known[TRANSFORMER_FIELD_COUNT + 1];
    transformer_field_names(known);
    known[TRANSFORMER_FIELD_COUNT] = "*";
    status = json_reject_unknown_keys(sources, known, ARRAY_LEN(known), diag);
    if (status != STATUS_OK)
        return status;

    struct text all = {0}; /* the source of "*" first, then those that differ from it */
    if (json_find_member(sources, "*").value != NULL) {
        const char *rest;
        status = json_get_string(sources, "*", &rest, diag);
        if (status != STATUS_OK)
            goto out;
        text_puts(&all, rest);
    }
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++) {
        const char *name = transformer_fields[i].name, *source;
        const bool has_source = json_find_member(sources, name).value != NULL;
        if (has_source) {
            status = json_get_string(sources, name, &source, diag);
            if (status != STATUS_OK)
                goto out;
            text_printf(&all, "%s%s: %s", all.size > 0 ? "; " : "", name, source);
        } else if (json_find_member(root, name).value != NULL &&
                   json_find_member(sources, "*").value == NULL) {
            status =
                json_error(sources, diag,
                           "no source for %s: give \"%s\", or \"*\" for all the rest", name, name);
            goto out;
        }
    }
    t->source = arena_text(arena, all.data != NULL ? all.data : "", all.size);
out:
    text_release(&all);
    return status;
}

static enum status read_model_in_own_schema(struct transformer *t, struct arena *arena,
                                            struct json_node root, struct diag *diag)
{
    const char *known[TRANSFORMER_FIELD_COUNT + 4];
    transformer_field_names(known);
    known[TRANSFORMER_FIELD_COUNT] = SCHEMA_KEY;
    known[TRANSFORMER_FIELD_COUNT + 1] = "name";
    known[TRANSFORMER_FIELD_COUNT + 2] = "note";
    known[TRANSFORMER_FIELD_COUNT + 3] = "sources";
    enum status status = json_reject_unknown_keys(root, known, ARRAY_LEN(known), diag);
    if (status != STATUS_OK)
        return status;

    int64_t version;
    const char *name, *note;
    status = json_get_i64(root, SCHEMA_KEY, SCHEMA_VERSION, SCHEMA_VERSION, &version, diag);
    if (status != STATUS_OK)
        return status;
    status = json_get_string(root, "name", &name, diag);
    if (status != STATUS_OK)
        return status;
    t->name = copy_text(arena, name);
    if (json_find_member(root, "note").value != NULL) {
        status = json_get_string(root, "note", &note, diag);
        if (status != STATUS_OK)
            return status;
        t->note = copy_text(arena, note);
    }
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++) {
        status = read_field(t, root, &transformer_fields[i], diag);
        if (status != STATUS_OK)
            return status;
    }
    return read_sources_of_fields(t, arena, root, diag);
}

/* Reads a text in our schema or, if hugging_face is true, also a Hugging Face config.json. dense: the result is the
 * nearest dense model (transformer_load_dense()). */
static enum status parse_config_or_own_schema(struct transformer *t, struct arena *arena,
                                              const char *name, const char *data, size_t size,
                                              bool hugging_face, bool dense, const char *ignore,
                                              struct diag *diag)
{
    *t = (struct transformer){0};
    struct json json = {0};
    enum status status = json_parse(&json, name, data, size, diag);
    if (status != STATUS_OK)
        goto out;
    struct json_node root = json_root(&json);
    if (!json_is_object(root)) {
        status = json_error(root, diag,
                            "expected an object: a Hugging Face config.json, or a "
                            "model with \"" SCHEMA_KEY "\": 1");
        goto out;
    }
    if (json_find_member(root, SCHEMA_KEY).value != NULL) {
        if (hugging_face && ignore != NULL && ignore[0] != '\0') {
            status = json_error(root, diag,
                                "'%s' cannot be ignored: that is for keys of a Hugging Face "
                                "config.json, and this is our own schema",
                                ignore);
            goto out;
        }
        status = read_model_in_own_schema(t, arena, root, diag);
        if (status == STATUS_OK && dense &&
            (t->experts > 0 || t->kv_latent > 0 || t->attention_sinks))
            hf_proxy_make_dense(t, arena);
    } else if (hugging_face && json_find_member(root, "model_type").value != NULL) {
        status = hf_config_read(t, arena, name, root, ignore, dense, diag);
    } else {
        status = json_error(root, diag,
                            "neither \"model_type\" (a Hugging Face config.json) nor "
                            "\"" SCHEMA_KEY "\": 1 (our own schema) is there");
    }
    if (status == STATUS_OK)
        status = transformer_check(t, (struct loc){name, 0, 0}, diag);
out:
    json_release(&json);
    return status;
}

enum status transformer_parse(struct transformer *t, struct arena *arena, const char *name,
                              const char *data, size_t size, struct diag *diag)
{
    return parse_config_or_own_schema(t, arena, name, data, size, false, false, NULL, diag);
}

static bool is_path(const char *name)
{
    const size_t size = strlen(name);
    return strchr(name, '/') != NULL || (size > 5 && strcmp(name + size - 5, ".json") == 0);
}

bool transformer_is_line(const char *name)
{
    return strchr(name, '=') != NULL && !is_path(name);
}

/* Refuses a name that may be that of a model on the Hugging Face hub: no file of that name exists, and it is known or
 * looks like "OWNER/MODEL". The message proposes a preset that has its sizes, if one is known. Returns STATUS_OK for
 * any other name. */
static enum status refuse_name_of_hub_model(const char *name, struct diag *diag)
{
    const char *known = hub_model_find_preset(name), *slash = strchr(name, '/');
    bool path = slash == name || strchr("./~", name[0]) != NULL || strstr(name, ".json") != NULL ||
                (slash != NULL && strchr(slash + 1, '/') != NULL);
    if (path || access(name, F_OK) == 0 || (known == NULL && slash == NULL))
        return STATUS_OK;
    if (known != NULL)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "no model '%s'; did you mean '%s'?", name, known);
    return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                      "no model and no file '%s'; a model of the Hugging Face hub is given by its "
                      "config.json, as a file",
                      name);
}

static enum status load_line_file_or_preset(struct transformer *t, struct arena *arena,
                                            const char *name_or_path, const char *ignore,
                                            bool dense, struct diag *diag)
{
    *t = (struct transformer){0};
    if (transformer_is_line(name_or_path))
        return transformer_read_line(t, arena, name_or_path, diag);
    const char *path = name_or_path;
    bool preset = !is_path(name_or_path) &&
                  presets_find_path("transformers", "model", name_or_path, (struct loc){0}, &path,
                                    arena, NULL) == STATUS_OK;
    enum status hub = preset ? STATUS_OK : refuse_name_of_hub_model(name_or_path, diag);
    if (hub != STATUS_OK)
        return hub;
    if (!is_path(name_or_path)) {
        enum status found = presets_find_path("transformers", "model", name_or_path,
                                              (struct loc){0}, &path, arena, diag);
        if (found != STATUS_OK)
            return found;
    }
    path = copy_text(arena, path);
    struct text text = {0};
    enum status status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status == STATUS_OK)
        status = parse_config_or_own_schema(t, arena, path, text.data, text.size, true, dense,
                                            ignore, diag);
    text_release(&text);
    return status;
}

enum status transformer_load(struct transformer *t, struct arena *arena, const char *name_or_path,
                             const char *ignore, struct diag *diag)
{
    return load_line_file_or_preset(t, arena, name_or_path, ignore, false, diag);
}

enum status transformer_load_dense(struct transformer *t, struct arena *arena,
                                   const char *name_or_path, const char *ignore, struct diag *diag)
{
    return load_line_file_or_preset(t, arena, name_or_path, ignore, true, diag);
}

enum status transformer_presets(const char *const **names, size_t *count, struct arena *arena,
                                struct diag *diag)
{
    return presets_list_names("transformers", names, count, arena, diag);
}
