/* Prints the settings that choices mean, in the order of the rows of a framework's table. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include "base/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool is_row_to_be_written(const struct launch *launch, const struct launch_row *row)
{
    return row->meaning == LAUNCH_SETS_FIELD && launch_has_field(launch, row->field);
}

/* Appends a line for each field that is set and that a row of the table writes: the argument "--name value". A switch
 * is the flag "--name"; one that is off is left out. */
static void print_arguments(struct text *out, const struct launch *launch,
                            const struct launch_table *table)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!is_row_to_be_written(launch, row) ||
            (row->kind == LAUNCH_SWITCH && !launch_is_on(launch, row->field)))
            continue;
        text_puts(out, row->setting_pattern);
        if (row->kind != LAUNCH_SWITCH)
            text_printf(out, " %s", launch_field_text(launch, row->field));
        text_putc(out, '\n');
    }
}

/* Appends the value of a row's field in TOML, whose strings are JSON's. A text that begins with a bracket is an array,
 * and is not quoted. */
static void print_toml_value(struct text *out, const struct launch *launch,
                             const struct launch_row *row)
{
    const char *text = launch_field_text(launch, row->field);
    if (row->kind == LAUNCH_SWITCH)
        text = launch_is_on(launch, row->field) ? "true" : "false";
    if (row->kind != LAUNCH_TEXT || text[0] == '[') {
        text_puts(out, text);
        return;
    }
    text_putc(out, '"');
    json_put_escaped(out, text);
    text_putc(out, '"');
}

static void print_toml(struct text *out, const struct launch *launch,
                       const struct launch_table *table)
{
    const char *open = NULL; /* the name whose table is written */
    for (size_t i = 0; i < table->row_count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!is_row_to_be_written(launch, row))
            continue;
        size_t size = strcspn(row->setting_pattern, ".") + 1;
        if (open == NULL || strncmp(open, row->setting_pattern, size) != 0)
            text_printf(out, "%s[%.*s]\n", open == NULL ? "" : "\n", (int)size - 1,
                        row->setting_pattern);
        open = row->setting_pattern;
        text_printf(out, "%s = ", row->setting_pattern + size);
        print_toml_value(out, launch, row);
        text_putc(out, '\n');
    }
}

/* Returns how many leading parts two dotted names have in common: 1 for "a.b" and "a.c". The last part of either name
 * does not count. */
static unsigned count_shared_name_parts(const char *a, const char *b)
{
    unsigned parts = 0;
    for (;; parts++) {
        size_t size = strcspn(a, ".");
        if (a[size] == '\0' || strcspn(b, ".") != size || b[size] == '\0' ||
            strncmp(a, b, size) != 0)
            return parts;
        a += size + 1;
        b += size + 1;
    }
}

static void put_json_value(struct json_out *json, const char *key, const struct launch *launch,
                           const struct launch_row *row)
{
    if (row->kind == LAUNCH_SWITCH)
        json_put_bool(json, key, launch_is_on(launch, row->field));
    else if (row->kind == LAUNCH_WHOLE_NUMBER)
        json_put_count(json, key, (uint64_t)launch_count_or(launch, row->field, 0));
    else
        json_put_text(json, key, launch_field_text(launch, row->field));
}

static void print_json(struct text *out, const struct launch *launch,
                       const struct launch_table *table)
{
    struct json_out json = {.out = out};
    const char *last = "";
    unsigned depth = 0;
    json_begin_object(&json, NULL);
    for (size_t i = 0; i < table->row_count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!is_row_to_be_written(launch, row))
            continue;
        unsigned shared = count_shared_name_parts(last, row->setting_pattern);
        for (; depth > shared; depth--)
            json_end_object(&json);
        const char *name = row->setting_pattern;
        for (unsigned part = 0; part < shared; part++)
            name += strcspn(name, ".") + 1;
        for (size_t size = strcspn(name, "."); name[size] != '\0'; size = strcspn(name, ".")) {
            char key[64];
            snprintf(key, sizeof key, "%.*s", (int)size, name);
            json_begin_object(&json, key);
            depth++;
            name += size + 1;
        }
        put_json_value(&json, name, launch, row);
        last = row->setting_pattern;
    }
    for (; depth > 0; depth--)
        json_end_object(&json);
    json_end_object(&json);
    text_putc(out, '\n');
}

/* ---- Axolotl, LLaMA-Factory, TRL ---- */

enum { ITEMS_MAX = 128 };

/* Settings in the order in which they are written. Each setting is written once; several settings may express one
 * field. */
struct printed_settings {
    struct {
        const char *name, *value; /* value NULL: a flag */
    } item[ITEMS_MAX];
    size_t count;
    bool is_field_written[LAUNCH_FIELD_COUNT]; /* a setting of `item` expresses the field */
};

static void add_printed_setting(struct printed_settings *items, const char *name, const char *value)
{
    for (size_t i = 0; i < items->count; i++)
        if (strcmp(items->item[i].name, name) == 0)
            return;
    assert(items->count < ITEMS_MAX);
    items->item[items->count].name = name;
    items->item[items->count++].value = value;
}

/* Returns the field's value as frameworks of Trainer's family write it. */
static const char *field_value_text(const struct launch *l, enum launch_kind kind,
                                    enum launch_field field)
{
    if (kind == LAUNCH_SWITCH)
        return launch_is_on(l, field) ? "true" : "false";
    return launch_field_text(l, field);
}

/* Adds the settings by which the rows of a table file express the fields, and the options of l->table_option. */
static void add_settings_of_table_file(struct printed_settings *items, struct launch *l,
                                       const struct launch_table_file *file)
{
    bool done[LAUNCH_OPTIONS_MAX] = {false}; /* done[k]: option k was written */
    for (size_t i = 0; i < file->row_count; i++) {
        const struct table_row *row = &file->row[i];
        const char *means = NULL;
        bool *once = NULL;
        if (row->use != TABLE_USE_SETS && row->use != TABLE_USE_WRITTEN)
            continue;
        if (row->option == NULL && launch_has_field(l, row->field)) {
            means = field_value_text(l, launch_field_kind(row->field), row->field);
            once = &items->is_field_written[row->field];
        }
        for (size_t k = 0; k < l->table_option_count && row->option != NULL; k++)
            if (strcmp(row->option, l->table_option[k].name) == 0) {
                means = l->table_option[k].value;
                once = &done[k];
            }
        if (means == NULL || (row->use == TABLE_USE_SETS && *once))
            continue;
        const char *value = launch_table_value_to_write(row, means, &l->arena);
        if (value == NULL)
            continue;
        if (row->use == TABLE_USE_SETS)
            *once = true;
        add_printed_setting(items, row->setting, value);
    }
}

/* Adds settings for those fields that no setting expresses yet, by the rows of a table in C. */
static void add_settings_of_table(struct printed_settings *items, const struct launch *l,
                                  enum launch_framework framework)
{
    const struct launch_table *table = launch_table(framework);
    for (size_t i = 0; i < table->row_count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!is_row_to_be_written(l, row) || items->is_field_written[row->field])
            continue;
        items->is_field_written[row->field] = true;
        bool flag = row->setting_pattern[0] == '-' && row->kind == LAUNCH_SWITCH;
        add_printed_setting(items, row->setting_pattern,
                            flag ? NULL : field_value_text(l, row->kind, row->field));
    }
}

/* Appends settings as YAML. Settings whose names share the part before a dot become members of one mapping. */
static void print_yaml(struct text *out, const struct printed_settings *items)
{
    bool done[ITEMS_MAX] = {false};
    for (size_t i = 0; i < items->count; i++) {
        const char *name = items->item[i].name;
        size_t size = strcspn(name, ".");
        if (done[i])
            continue;
        if (name[size] == '\0') {
            text_printf(out, "%s: %s\n", name, items->item[i].value);
            continue;
        }
        text_printf(out, "%.*s:\n", (int)size, name);
        for (size_t k = i; k < items->count; k++) {
            const char *member = items->item[k].name;
            if (strncmp(member, name, size + 1) != 0)
                continue;
            text_printf(out, "  %s: %s\n", member + size + 1, items->item[k].value);
            done[k] = true;
        }
    }
}

/* Appends the command `accelerate launch` with the launcher's arguments, and then `-m trl.scripts.sft` with the
 * script's. The launcher's are those whose names have dashes; they come first in `items`. */
static void print_accelerate_command(struct text *out, const struct printed_settings *items)
{
    bool script = false;
    text_puts(out, "accelerate launch");
    for (size_t i = 0; i < items->count; i++) {
        const char *name = items->item[i].name;
        if (!script && name[0] != '-')
            text_puts(out, " \\\n  -m trl.scripts.sft");
        script = script || name[0] != '-';
        text_printf(out, " \\\n  %s%s", name[0] == '-' ? "" : "--", name);
        if (items->item[i].value != NULL)
            text_printf(out, " %s", items->item[i].value);
    }
    text_putc(out, '\n');
}

static void print_trl(struct text *out, const struct launch *l)
{
    struct printed_settings items = {.count = 0};
    add_settings_of_table(&items, l, LAUNCH_LAUNCHER_PROGRAM);
    if (launch_has_field(l, LAUNCH_FSDP))
        add_printed_setting(&items, "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    add_settings_of_table(&items, l, LAUNCH_TRAINER);
    add_printed_setting(&items, "packing_strategy", "wrapped");
    /* without this setting TRL computes the loss in pieces of 256 tokens, unless it uses Liger-Kernel's loss */
    add_printed_setting(&items, "loss_type", "nll");
    print_accelerate_command(out, &items);
}

/* Appends the settings of a framework, as YAML, by its table file; name: the framework's name in that file. */
static enum status print_settings_by_table_file(struct text *out, struct launch *l,
                                                const char *name, struct diag *diag)
{
    struct launch_tables tables = {0};
    struct printed_settings items = {.count = 0};
    enum status status = launch_tables_load(&tables, diag);
    const struct launch_table_file *file = launch_tables_find(&tables, name);
    if (status == STATUS_OK && file == NULL)
        status =
            diag_error(diag, (struct loc){.name = "--emit"}, STATUS_BAD_INPUT,
                       "the table file of %s is not among the data, in the folder launch", name);
    if (status == STATUS_OK) {
        add_settings_of_table_file(&items, l, file);
        if (file->inherits_rows_of_family)
            add_settings_of_table(&items, l, file->family);
        print_yaml(out, &items);
    }
    launch_tables_release(&tables);
    return status;
}

/* ---- all frameworks ---- */

enum status launch_check_model(enum framework framework, const struct transformer *model,
                               struct diag *diag)
{
    if (framework == FRAMEWORK_TORCHTITAN)
        return launch_check_torchtitan_has_flavor(model, diag);
    bool named = framework == FRAMEWORK_AXOLOTL || framework == FRAMEWORK_LLAMA_FACTORY ||
                 framework == FRAMEWORK_TRL;
    if (!named || launch_hub_path(model) != NULL)
        return STATUS_OK;
    return diag_error(
        diag, (struct loc){.name = "--emit"}, STATUS_BAD_INPUT,
        "%s takes a model by its name on the Hugging Face hub, and no name of a model "
        "of these sizes is known here: --model with one of `longhaul list models` "
        "that is on the hub would do",
        framework_names[framework]);
}

enum status launch_print(struct text *out, enum framework framework, const struct choices *choices,
                         struct diag *diag)
{
    static void (*const fields[FRAMEWORK_COUNT])(struct launch *, const struct choices *) = {
        launch_set_torchtitan_fields, launch_set_megatron_fields,      launch_set_deepspeed_fields,
        launch_set_axolotl_fields,    launch_set_llama_factory_fields, launch_set_trl_fields};
    struct launch launch = {0};
    enum status status = STATUS_OK;
    fields[framework](&launch, choices);
    if (choices->model->proxy_lacks != NULL)
        text_printf(out, "# the model is a dense proxy, without %s\n", choices->model->proxy_lacks);
    if (launch.comments_to_print.size > 0)
        text_puts(out, launch.comments_to_print.data);
    switch (framework) {
    case FRAMEWORK_TORCHTITAN:
        print_toml(out, &launch, launch_table(LAUNCH_TORCHTITAN));
        break;
    case FRAMEWORK_MEGATRON:
        print_arguments(out, &launch, launch_table(LAUNCH_MEGATRON));
        break;
    case FRAMEWORK_DEEPSPEED:
        text_puts(out, "# ds_config.json, which says nothing of the model\n");
        print_json(out, &launch, launch_table(LAUNCH_DEEPSPEED_JSON));
        text_puts(out, "# arguments\n");
        print_arguments(out, &launch, launch_table(LAUNCH_MEGATRON_DEEPSPEED));
        break;
    case FRAMEWORK_AXOLOTL:
        status = print_settings_by_table_file(out, &launch, "Axolotl", diag);
        break;
    case FRAMEWORK_LLAMA_FACTORY:
        status = print_settings_by_table_file(out, &launch, "LLaMA-Factory", diag);
        break;
    case FRAMEWORK_TRL:
        print_trl(out, &launch);
        break;
    case FRAMEWORK_COUNT:
        break;
    }
    launch_release(&launch);
    return status;
}
