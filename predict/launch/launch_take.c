/* Settings of a framework become fields, by the rows of its table. */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include "base/c_locale.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool matches_pattern(const char *pattern, const char *name)
{
    size_t size = strlen(pattern);
    if (size > 0 && pattern[size - 1] == '*')
        return strncmp(pattern, name, size - 1) == 0;
    return strcmp(pattern, name) == 0;
}

/* Returns the row of the framework from which a table file, or that of which it is another engine, inherits; Megatron's
 * names have dashes there. */
static const struct launch_row *inherited_row(struct launch *launch, const char *name)
{
    const struct launch_table_file *file = launch->table_file;
    if (file->engine_of != NULL && launch->tables != NULL)
        file = launch_tables_find(launch->tables, file->engine_of);
    if (file == NULL || !file->inherits_rows)
        return NULL;
    if (file->family != LAUNCH_MEGATRON)
        return launch_row_find(file->family, name);
    char *dashed = arena_printf(&launch->arena, "--%s", name);
    for (char *c = dashed; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    return launch_row_find(LAUNCH_MEGATRON, dashed);
}

const struct launch_row *launch_row_find(enum launch_framework framework, const char *name)
{
    for (const struct launch_table *table = launch_table(framework); table != NULL;
         table = table->shared_rows)
        for (size_t i = 0; i < table->row_count; i++)
            if (matches_pattern(table->row[i].setting_pattern, name))
                return &table->row[i];
    return NULL;
}

/* True if a value switches its setting off. */
static bool switches_off(const char *value)
{
    static const char *const offs[] = {"false", "no", "none", "null", "0", "0.0", "", "off"};
    for (size_t i = 0; value != NULL && i < ARRAY_LEN(offs); i++)
        if (c_equal_ignoring_case(value, offs[i]))
            return true;
    return false;
}

bool launch_is_predicted_value(const char *usual, const char *value)
{
    size_t size = value == NULL ? 0 : strlen(value);
    if (usual == NULL)
        return value != NULL && switches_off(value);
    for (const char *word = usual; word != NULL && size > 0; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (c_equal_ignoring_case_n(word, value, size) && (word[size] == '\0' || word[size] == ' '))
            return true;
    }
    return false;
}

static bool parse_switch(const char *value, int64_t *on)
{
    static const char *const ons[] = {"true", "yes", "1", "on"};
    *on = 1;
    if (value == NULL)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(ons); i++)
        if (c_equal_ignoring_case(value, ons[i]))
            return true;
    *on = 0;
    return switches_off(value);
}

/* Fills *value from the text of a setting; false: the text is of another kind. */
static bool parse_value(enum launch_kind kind, const char *text, struct launch_value *value)
{
    switch (kind) {
    case LAUNCH_WHOLE_NUMBER:
        if (text == NULL)
            return false;
        if (parse_i64(text, strlen(text), &value->whole_number)) {
            value->real_number = (double)value->whole_number;
            return value->whole_number >= -INT32_MAX && value->whole_number <= INT32_MAX;
        }
        if (!parse_double(text, strlen(text), &value->real_number) ||
            value->real_number > INT32_MAX || value->real_number < -INT32_MAX ||
            value->real_number != (double)(int64_t)value->real_number)
            return false;
        value->whole_number = (int64_t)value->real_number; /* 1e6 */
        return true;
    case LAUNCH_SWITCH:
        return parse_switch(text, &value->whole_number);
    case LAUNCH_ON_IF_GIVEN:
        value->whole_number = 1;
        return true;
    case LAUNCH_REAL_NUMBER:
        return text != NULL && parse_double(text, strlen(text), &value->real_number);
    case LAUNCH_TEXT:
        return text != NULL;
    }
    return false;
}

static const char *const kind_names[] = {"a whole number", "true or false", "any value", "a number",
                                         "a text"};

/* True for fields with a number of things of which there is at least one. Other fields have values below 1 that mean
 * "all" or "none". */
static bool is_positive_count(enum launch_field field)
{
    static const enum launch_field amounts[] = {
        LAUNCH_LAYERS,   LAUNCH_HIDDEN,      LAUNCH_FFN,          LAUNCH_HEADS,
        LAUNCH_KV_HEADS, LAUNCH_HEAD_DIM,    LAUNCH_VOCAB,        LAUNCH_SEQ,
        LAUNCH_PROMPT,   LAUNCH_ANSWER,      LAUNCH_MICRO_BATCH,  LAUNCH_ACCUMULATION,
        LAUNCH_ANSWERS,  LAUNCH_LOCAL_BATCH, LAUNCH_GLOBAL_BATCH, LAUNCH_POSITIONS_MAX,
        LAUNCH_CHUNK,    LAUNCH_ROPE_THETA,  LAUNCH_PROCESSES,    LAUNCH_GPUS_A_NODE,
        LAUNCH_NODES,    LAUNCH_TASKS,       LAUNCH_DP_REPLICATE, LAUNCH_DP_SHARD,
        LAUNCH_EP};
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
        if (amounts[i] == field)
            return true;
    return false;
}

enum status launch_set_field(struct launch *launch, const struct launch_row *row,
                             const struct setting *setting, struct diag *diag)
{
    struct launch_value *value = &launch->field_value[row->field], before = *value;
    struct launch_value read = {.is_given = true, .place = setting->place};
    bool counts_all = setting->value != NULL && row->field == LAUNCH_GPUS_A_NODE &&
                      /* "gpu" of torchrun means as many ranks as a node has GPUs */
                      strcmp(setting->value, "gpu") == 0;
    if (counts_all || (setting->value != NULL && strcmp(setting->value, "auto") == 0)) {
        launch_add_remark(launch,
                          (struct launch_remark){
                              REMARK_IGNORED,
                              arena_printf(&launch->arena, "%s %s", setting->name, setting->value),
                              NULL, setting->place});
        return STATUS_OK;
    }
    if (setting->value == NULL && row->kind != LAUNCH_SWITCH && row->kind != LAUNCH_ON_IF_GIVEN)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: its value, %s, is missing",
                          setting->name, kind_names[row->kind]);
    if (setting->is_list && row->kind != LAUNCH_TEXT && row->kind != LAUNCH_ON_IF_GIVEN)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT,
                          "%s: [%.80s] is a list, and %s is expected", setting->name,
                          setting->value, kind_names[row->kind]);
    if (!parse_value(row->kind, setting->value, &read))
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: '%.80s' is not %s",
                          setting->name, setting->value == NULL ? "" : setting->value,
                          kind_names[row->kind]);
    bool follows = (row->field == LAUNCH_GLOBAL_BATCH || row->field == LAUNCH_DP_SHARD) &&
                   read.whole_number == -1; /* torchtitan's: as follows from the rest */
    if (row->kind == LAUNCH_WHOLE_NUMBER && is_positive_count(row->field) &&
        read.whole_number < 1 && !follows)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: %lld is below 1",
                          setting->name, (long long)read.whole_number);
    const bool says_none = row->field == LAUNCH_CAPACITY; /* A negative capacity means none. */
    if (row->kind == LAUNCH_REAL_NUMBER && read.real_number < 0 && !says_none)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: %g is below 0",
                          setting->name, read.real_number);
    read.text = setting->value == NULL
                    ? ""
                    : arena_text(&launch->arena, setting->value, strlen(setting->value));
    read.setting_name = arena_text(&launch->arena, setting->name, strlen(setting->name));
    /* If one file gives an argument twice, the last value counts; launch_set_fields() reports it. */
    bool again = before.is_given && strcmp(before.place.name, read.place.name) == 0 &&
                 strcmp(before.setting_name, read.setting_name) == 0;
    if (launch->is_reading_named_file && before.is_given && !before.is_implied && !again)
        return STATUS_OK;
    if (before.is_given && !before.is_implied && !again &&
        (before.whole_number != read.whole_number || before.real_number != read.real_number ||
         (row->kind == LAUNCH_TEXT && strcmp(before.text, read.text) != 0)))
        return diag_error(diag, setting->place, STATUS_BAD_INPUT,
                          "%s is '%.60s', and %s:%u says '%.60s'; leave one of them out",
                          setting->name, read.text, before.place.name, before.place.line,
                          before.text);
    *value = read;
    return STATUS_OK;
}

static int compare_settings(const void *a, const void *b)
{
    const struct setting *x = *(const struct setting *const *)a;
    const struct setting *y = *(const struct setting *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Adds a remark on each argument that is given twice with different values: programs take the last one. */
static void remark_repeated(struct launch *launch, const struct settings *settings)
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

/* Adds a remark on a setting that sets no field, or whose value ends in an open part, which only the shell knows. */
static void remark_setting(struct launch *launch, const struct launch_row *row,
                           const struct setting *setting, const char *open, const char *name)
{
    struct launch_remark remark = {.name = arena_text(&launch->arena, name, strlen(name)),
                                   .place = setting->place};
    if (open != NULL && row != NULL && row->meaning != LAUNCH_IGNORED) {
        remark.kind = REMARK_KNOWN_IN_RUN_ONLY;
        remark.text = open;
    } else if (row == NULL) {
        remark.kind = REMARK_UNKNOWN;
    } else if (row->meaning == LAUNCH_UNMODELLED &&
               !launch_is_predicted_value(row->predicted_values, setting->value)) {
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

/* Sets the field that a setting names, or adds a remark on the setting. */
static enum status apply_setting(struct launch *launch, enum launch_framework framework,
                                 struct setting setting, struct diag *diag)
{
    const bool launcher = setting.kind == SETTING_LAUNCHER,
               of_table = framework == LAUNCH_TABLE_FILE && !launcher;
    enum status status = STATUS_OK;
    bool known = false;
    if (of_table)
        status = launch_table_apply_setting(launch, &setting, &known, diag);
    if (known || status != STATUS_OK)
        return status;
    const struct launch_row *row =
        of_table ? inherited_row(launch, setting.name)
                 : launch_row_find(launcher ? LAUNCH_LAUNCHER : framework, setting.name);
    const char *open = settings_open_part(setting.value, &launch->arena), *name = setting.name;
    if (open != NULL && row != NULL && row->field == LAUNCH_MODEL &&
        settings_known_path_end(setting.value) != NULL) {
        setting.value = settings_known_path_end(setting.value);
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
    remark_setting(launch, row, &setting, open, name);
    return status;
}

enum status launch_set_fields(struct launch *launch, enum launch_framework framework,
                              const struct settings *settings, struct diag *diag)
{
    launch->has_framework[framework] = true;
    enum status status = launch_check_frameworks(launch, diag);
    remark_repeated(launch, settings);
    for (size_t i = 0; i < settings->setting_count && status == STATUS_OK; i++)
        status = apply_setting(launch, framework, settings->row[i], diag);
    return status;
}
