/* Prints the settings that choices mean, in the order of the rows of a framework's table. */
#include "predict/launch/launch_parts.h"

#include "base/json_write.h"

#include <stdio.h>
#include <string.h>

static bool writes(const struct launch *launch, const struct launch_row *row)
{
    return row->use == LAUNCH_SETS && launch_said(launch, row->field);
}

/* Appends arguments "--name value", one a line. */
static void print_arguments(struct text *out, const struct launch *launch,
                            const struct launch_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!writes(launch, row) || (row->kind == LAUNCH_SWITCH && !launch_on(launch, row->field)))
            continue;
        text_puts(out, row->name);
        if (row->kind != LAUNCH_SWITCH)
            text_printf(out, " %s", launch_text(launch, row->field));
        text_putc(out, '\n');
    }
}

/* Appends a value of TOML, which has JSON's strings; a text that begins with a bracket is an array. */
static void print_value(struct text *out, const struct launch *launch, const struct launch_row *row)
{
    const char *text = launch_text(launch, row->field);
    if (row->kind == LAUNCH_SWITCH)
        text = launch_on(launch, row->field) ? "true" : "false";
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
    for (size_t i = 0; i < table->count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!writes(launch, row))
            continue;
        size_t size = strcspn(row->name, ".") + 1;
        if (open == NULL || strncmp(open, row->name, size) != 0)
            text_printf(out, "%s[%.*s]\n", open == NULL ? "" : "\n", (int)size - 1, row->name);
        open = row->name;
        text_printf(out, "%s = ", row->name + size);
        print_value(out, launch, row);
        text_putc(out, '\n');
    }
}

/* Returns the number of leading parts that two dotted names share, without the last part of either. */
static unsigned shared_parts(const char *a, const char *b)
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
        json_put_bool(json, key, launch_on(launch, row->field));
    else if (row->kind == LAUNCH_COUNT)
        json_put_count(json, key, (uint64_t)launch_count(launch, row->field, 0));
    else
        json_put_text(json, key, launch_text(launch, row->field));
}

static void print_json(struct text *out, const struct launch *launch,
                       const struct launch_table *table)
{
    struct json_out json = {.out = out};
    const char *last = "";
    unsigned depth = 0;
    json_begin_object(&json, NULL);
    for (size_t i = 0; i < table->count; i++) {
        const struct launch_row *row = &table->row[i];
        if (!writes(launch, row))
            continue;
        unsigned shared = shared_parts(last, row->name);
        for (; depth > shared; depth--)
            json_end_object(&json);
        const char *name = row->name;
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
        last = row->name;
    }
    for (; depth > 0; depth--)
        json_end_object(&json);
    json_end_object(&json);
    text_putc(out, '\n');
}

enum status launch_check_model(enum framework framework, const struct transformer *model,
                               struct diag *diag)
{
    return framework == FRAMEWORK_TORCHTITAN ? launch_torchtitan_check_model(model, diag)
                                             : STATUS_OK;
}

void launch_print(struct text *out, enum framework framework, const struct choices *choices)
{
    static void (*const fields[FRAMEWORK_COUNT])(struct launch *, const struct choices *) = {
        launch_torchtitan_fields, launch_megatron_fields, launch_deepspeed_fields};
    struct launch launch = {0};
    fields[framework](&launch, choices);
    if (choices->model->proxy != NULL)
        text_printf(out, "# the model is a dense proxy, without %s\n", choices->model->proxy);
    if (launch.comments.size > 0)
        text_puts(out, launch.comments.data);
    if (framework == FRAMEWORK_TORCHTITAN)
        print_toml(out, &launch, launch_table(LAUNCH_TORCHTITAN));
    if (framework == FRAMEWORK_MEGATRON)
        print_arguments(out, &launch, launch_table(LAUNCH_MEGATRON));
    if (framework == FRAMEWORK_DEEPSPEED) {
        text_puts(out, "# ds_config.json, which says nothing of the model\n");
        print_json(out, &launch, launch_table(LAUNCH_DEEPSPEED_JSON));
        text_puts(out, "# arguments\n");
        print_arguments(out, &launch, launch_table(LAUNCH_MEGATRON_DEEPSPEED));
    }
    launch_release(&launch);
}
