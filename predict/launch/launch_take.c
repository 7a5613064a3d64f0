/* Turns the settings of a framework into fields, by the rows of its table. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include <stdlib.h>
#include <string.h>

static bool matches_pattern(const char *pattern, const char *name)
{
    size_t size = strlen(pattern);
    if (size > 0 && pattern[size - 1] == '*')
        return strncmp(pattern, name, size - 1) == 0;
    return strcmp(pattern, name) == 0;
}

/* Returns the row for a setting in the table in C whose rows launch->table_file inherits, which is that of its family;
 * NULL: there is none. A table file of a further engine inherits what the framework's main table file does. Megatron's
 * table has arguments, so there the name gets its dashes. */
static const struct launch_row *find_inherited_row(struct launch *launch, const char *name)
{
    const struct launch_table_file *file = launch->table_file;
    if (file->framework_of_engine_file != NULL && launch->tables != NULL)
        file = launch_tables_find(launch->tables, file->framework_of_engine_file);
    if (file == NULL || !file->inherits_rows_of_family)
        return NULL;
    if (file->family != LAUNCH_MEGATRON)
        return launch_row_find_by_setting(file->family, name);
    char *dashed = arena_printf(&launch->arena, "--%s", name);
    for (char *c = dashed; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    return launch_row_find_by_setting(LAUNCH_MEGATRON, dashed);
}

const struct launch_row *launch_row_find_by_setting(enum launch_framework framework,
                                                    const char *name)
{
    for (const struct launch_table *table = launch_table(framework); table != NULL;
         table = table->table_of_shared_rows)
        for (size_t i = 0; i < table->row_count; i++)
            if (matches_pattern(table->row[i].setting_pattern, name))
                return &table->row[i];
    return NULL;
}

static int compare_settings(const void *a, const void *b)
{
    const struct setting *x = *(const struct setting *const *)a;
    const struct setting *y = *(const struct setting *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Adds a remark on each setting that is given twice with different values; as in the programs, the last value
 * counts. */
static void remark_settings_given_twice(struct launch *launch, const struct settings *settings)
{
    const struct setting **sorted =
        heap_alloc(settings->setting_count + 1, sizeof(const struct setting *));
    for (size_t i = 0; i < settings->setting_count; i++)
        sorted[i] = &settings->row[i];
    qsort(sorted, settings->setting_count, sizeof(const struct setting *), compare_settings);
    for (size_t i = 1; i < settings->setting_count; i++) {
        const char *before = sorted[i - 1]->value, *value = sorted[i]->value;
        bool same = before == value || (before != NULL && value != NULL && !strcmp(before, value));
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && !same)
            launch_add_remark_printf(launch, REMARK_ASSUMED, sorted[i]->name, sorted[i]->place,
                                     "it is given twice, and the last one counts");
    }
    free(sorted);
}

/* Adds a remark on a setting that sets no field, or whose value has an open part. row: the setting's row; NULL: none
 * names it. open: the open part; NULL: there is none. name: the setting's name for the remark. */
static void remark_on_unused_setting(struct launch *launch, const struct launch_row *row,
                                     const struct setting *setting, const char *open,
                                     const char *name)
{
    struct launch_remark remark = {.name = arena_text(&launch->arena, name, strlen(name)),
                                   .place = setting->place};
    if (open != NULL && row != NULL && row->meaning != LAUNCH_IGNORED) {
        remark.kind = REMARK_KNOWN_IN_RUN_ONLY;
        remark.text = open;
    } else if (row == NULL) {
        remark.kind = REMARK_UNKNOWN;
    } else if (row->meaning == LAUNCH_UNMODELLED &&
               !launch_is_predicted_value(row->values_without_remark, setting->value)) {
        remark.kind = REMARK_UNMODELLED;
        remark.text = row->note;
        if (setting->value != NULL && strlen(setting->value) < 40)
            remark.name = arena_printf(&launch->arena, "%s %s", setting->name, setting->value);
    } else {
        remark.kind = REMARK_IGNORED;
        remark.name = row->setting_pattern; /* one name for many: "metrics.*" */
    }
    launch_add_remark(launch, remark);
}

/* Sets the field that a setting gives by the rows for it, or adds a remark on the setting. */
static enum status apply_setting_by_rows(struct launch *launch, enum launch_framework framework,
                                         struct setting setting, struct diag *diag)
{
    const bool launcher = setting.kind == SETTING_LAUNCHER,
               of_table = framework == LAUNCH_FRAMEWORK_OF_TABLE_FILE && !launcher;
    enum status status = STATUS_OK;
    bool known = false;
    if (of_table)
        status = launch_table_apply_setting(launch, &setting, &known, diag);
    if (known || status != STATUS_OK)
        return status;
    const struct launch_row *row =
        of_table ? find_inherited_row(launch, setting.name)
                 : launch_row_find_by_setting(launcher ? LAUNCH_LAUNCHER_PROGRAM : framework,
                                              setting.name);
    const char *open = settings_find_open_part(setting.value, &launch->arena), *name = setting.name;
    if (open != NULL && row != NULL && row->field == LAUNCH_MODEL &&
        settings_known_last_path_part(setting.value) != NULL) {
        setting.value = settings_known_last_path_part(setting.value);
        open = NULL;
    }
    const bool sets =
        row != NULL && (row->meaning == LAUNCH_SETS_FIELD || row->meaning == LAUNCH_ALIAS_OF_FIELD);
    if (sets && (open == NULL || row->kind == LAUNCH_SWITCH || row->kind == LAUNCH_ON_IF_GIVEN)) {
        struct setting flag = setting; /* further arguments may follow a flag */
        flag.value = open == NULL ? setting.value : NULL;
        status = launch_set_field(launch, row, &flag, diag);
        if (open == NULL || row->kind == LAUNCH_ON_IF_GIVEN)
            return status;
        name = "further arguments";
    }
    remark_on_unused_setting(launch, row, &setting, open, name);
    return status;
}

enum status launch_set_fields(struct launch *launch, enum launch_framework framework,
                              const struct settings *settings, struct diag *diag)
{
    launch->has_read_framework_file[framework] = true;
    enum status status = launch_refuse_mixed_frameworks(launch, diag);
    remark_settings_given_twice(launch, settings);
    for (size_t i = 0; i < settings->setting_count && status == STATUS_OK; i++)
        status = apply_setting_by_rows(launch, framework, settings->row[i], diag);
    return status;
}
