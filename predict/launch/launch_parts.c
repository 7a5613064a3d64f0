/* Readers of single settings, and what is said of them (predict/launch/launch_parts.h). */
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include "base/c_locale.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const program_names[LAUNCH_FRAMEWORKS] = {
    "a torchtitan configuration",
    "arguments of Megatron-LM",
    "a DeepSpeed configuration",
    "arguments of Megatron-DeepSpeed",
    "an Accelerate configuration",
    "arguments of TRL or Hugging Face's Trainer",
    "an llm-foundry configuration",
    "a configuration of a table file",
    "arguments of a program under DeepSpeed"};

const char *launch_framework_name(struct launch *launch, enum launch_framework framework)
{
    if (framework == LAUNCH_TABLE && launch->table != NULL)
        return arena_printf(&launch->arena, "settings of %s", launch->table->format.name);
    return program_names[framework];
}

bool launch_of_family(const struct launch *launch, enum launch_framework framework)
{
    return launch->has[framework] ||
           (launch->has[LAUNCH_TABLE] && launch->table->family == framework);
}

void launch_release(struct launch *launch)
{
    free(launch->remark);
    launch_tables_release(launch->own);
    text_release(&launch->comments);
    arena_release(&launch->arena);
    *launch = (struct launch){0};
}

/* ---- fields ---- */

bool launch_said(const struct launch *launch, enum launch_field field)
{
    return launch->value[field].said;
}

int64_t launch_count(const struct launch *launch, enum launch_field field, int64_t otherwise)
{
    return launch_said(launch, field) ? launch->value[field].count : otherwise;
}

double launch_number(const struct launch *launch, enum launch_field field, double otherwise)
{
    return launch_said(launch, field) ? launch->value[field].number : otherwise;
}

bool launch_on(const struct launch *launch, enum launch_field field)
{
    return launch_count(launch, field, 0) != 0;
}

const char *launch_text(const struct launch *launch, enum launch_field field)
{
    return launch->value[field].text;
}

bool launch_is(const struct launch *launch, enum launch_field field, const char *text)
{
    return launch_said(launch, field) && c_same_letters(launch->value[field].text, text);
}

void launch_say_count(struct launch *launch, enum launch_field field, int64_t count)
{
    launch->value[field] = (struct launch_value){
        .said = true,
        .count = count,
        .number = (double)count,
        .text = arena_printf(&launch->arena, "%lld", (long long)count),
    };
}

void launch_say_number(struct launch *launch, enum launch_field field, double number)
{
    launch->value[field] = (struct launch_value){
        .said = true, .number = number, .text = arena_printf(&launch->arena, "%g", number)};
}

void launch_say_text(struct launch *launch, enum launch_field field, const char *text)
{
    launch->value[field] =
        (struct launch_value){.said = true, .text = arena_text(&launch->arena, text, strlen(text))};
}

void launch_imply_count(struct launch *launch, enum launch_field field, int64_t count)
{
    if (!launch_said(launch, field))
        launch_say_count(launch, field, count);
}

void launch_imply_text(struct launch *launch, enum launch_field field, const char *text)
{
    if (!launch_said(launch, field))
        launch_say_text(launch, field, text);
}

/* ---- remarks and options ---- */

static void add_remark(struct launch *launch, struct launch_remark remark)
{
    launch->remark = heap_grow(launch->remark, &launch->remark_capacity, launch->remarks + 1,
                               sizeof *launch->remark);
    launch->remark[launch->remarks++] = remark;
}

static const char *format_text(struct launch *launch, const char *format, va_list args)
{
    char text[512];
    c_vsnprintf(text, sizeof text, format, args);
    return arena_text(&launch->arena, text, strlen(text));
}

void launch_remark(struct launch *launch, enum launch_remark_kind kind, const char *name,
                   struct loc at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_remark(launch, (struct launch_remark){kind, arena_text(&launch->arena, name, strlen(name)),
                                              format_text(launch, format, args), at});
    va_end(args);
}

void launch_remark_on(struct launch *launch, enum launch_remark_kind kind, enum launch_field field,
                      const char *format, ...)
{
    const struct launch_value *value = &launch->value[field];
    va_list args;
    va_start(args, format);
    add_remark(launch, (struct launch_remark){
                           kind, arena_printf(&launch->arena, "%s %s", value->name, value->text),
                           format_text(launch, format, args), value->at});
    va_end(args);
}

enum status launch_bad(const struct launch *launch, enum launch_field field, struct diag *diag,
                       const char *format, ...)
{
    const struct launch_value *value = &launch->value[field];
    char text[512];
    va_list args;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (value->name == NULL)
        return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT, "%s", text);
    return diag_error(diag, value->at, STATUS_BAD_INPUT, "%s: %s", value->name, text);
}

enum status launch_one_of(const struct launch *launch, enum launch_field field, const char *words,
                          struct diag *diag)
{
    if (!launch_said(launch, field) || launch_is_usual(words, launch_text(launch, field)))
        return STATUS_OK;
    return launch_bad(launch, field, diag, "'%.60s' is none of: %s", launch_text(launch, field),
                      words);
}

bool launch_has_option(const struct launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->options; i++)
        if (strcmp(launch->option[i].name, name) == 0)
            return true;
    return false;
}

void launch_option(struct launch *launch, enum launch_field field, const char *name,
                   const char *value)
{
    assert(launch->options < LAUNCH_OPTIONS_MAX && !launch_has_option(launch, name));
    launch->option[launch->options++] = (struct launch_option){
        .name = name,
        .value = value == NULL ? NULL : arena_text(&launch->arena, value, strlen(value)),
        .at = field < LAUNCH_FIELDS ? launch->value[field].at : (struct loc){0},
    };
}

void launch_option_count(struct launch *launch, enum launch_field field, const char *name,
                         int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    launch_option(launch, field, name, text);
}

/* ---- settings into fields ---- */

static bool matches(const char *pattern, const char *name)
{
    size_t size = strlen(pattern);
    if (size > 0 && pattern[size - 1] == '*')
        return strncmp(pattern, name, size - 1) == 0;
    return strcmp(pattern, name) == 0;
}

/* Returns the row of the framework from which a table file inherits; Megatron's names have dashes there. */
static const struct launch_row *inherited_row(struct launch *launch, const char *name)
{
    if (!launch->table->inherits)
        return NULL;
    if (launch->table->family != LAUNCH_MEGATRON)
        return launch_row_find(launch->table->family, name);
    char *dashed = arena_printf(&launch->arena, "--%s", name);
    for (char *c = dashed; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    return launch_row_find(LAUNCH_MEGATRON, dashed);
}

const struct launch_row *launch_row_find(enum launch_framework framework, const char *name)
{
    for (const struct launch_table *table = launch_table(framework); table != NULL;
         table = table->shared)
        for (size_t i = 0; i < table->count; i++)
            if (matches(table->row[i].name, name))
                return &table->row[i];
    return NULL;
}

/* True if a value switches its setting off. */
static bool is_off(const char *value)
{
    static const char *const offs[] = {"false", "no", "none", "null", "0", "0.0", "", "off"};
    for (size_t i = 0; value != NULL && i < ARRAY_LEN(offs); i++)
        if (c_same_letters(value, offs[i]))
            return true;
    return false;
}

bool launch_is_usual(const char *usual, const char *value)
{
    size_t size = value == NULL ? 0 : strlen(value);
    if (usual == NULL)
        return value != NULL && is_off(value);
    for (const char *word = usual; word != NULL && size > 0; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (c_same_letters_n(word, value, size) && (word[size] == '\0' || word[size] == ' '))
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
        if (c_same_letters(value, ons[i]))
            return true;
    *on = 0;
    return is_off(value);
}

/* Fills *value from the text of a setting; false: the text is of another kind. */
static bool parse_value(enum launch_kind kind, const char *text, struct launch_value *value)
{
    switch (kind) {
    case LAUNCH_COUNT:
        if (text == NULL)
            return false;
        if (parse_i64(text, strlen(text), &value->count)) {
            value->number = (double)value->count;
            return value->count >= -INT32_MAX && value->count <= INT32_MAX;
        }
        if (!parse_double(text, strlen(text), &value->number) || value->number > INT32_MAX ||
            value->number < -INT32_MAX || value->number != (double)(int64_t)value->number)
            return false;
        value->count = (int64_t)value->number; /* 1e6 */
        return true;
    case LAUNCH_SWITCH:
        return parse_switch(text, &value->count);
    case LAUNCH_PRESENCE:
        value->count = 1;
        return true;
    case LAUNCH_NUMBER:
        return text != NULL && parse_double(text, strlen(text), &value->number);
    case LAUNCH_TEXT:
        return text != NULL;
    }
    return false;
}

static const char *const kind_names[] = {"a whole number", "true or false", "any value", "a number",
                                         "a text"};

/* True for fields that count what there is at least one of. Others have values below 1 that say "all" or "none". */
static bool is_amount(enum launch_field field)
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
    struct launch_value *value = &launch->value[row->field], before = *value;
    struct launch_value read = {.said = true, .at = setting->at};
    bool counts_all = setting->value != NULL && row->field == LAUNCH_GPUS_A_NODE &&
                      strcmp(setting->value, "gpu") == 0; /* of torchrun: as many as a node has */
    if (counts_all || (setting->value != NULL && strcmp(setting->value, "auto") == 0)) {
        add_remark(launch, (struct launch_remark){
                               REMARK_IGNORED,
                               arena_printf(&launch->arena, "%s %s", setting->name, setting->value),
                               NULL, setting->at});
        return STATUS_OK;
    }
    if (setting->value == NULL && row->kind != LAUNCH_SWITCH && row->kind != LAUNCH_PRESENCE)
        return diag_error(diag, setting->at, STATUS_BAD_INPUT, "%s: its value, %s, is missing",
                          setting->name, kind_names[row->kind]);
    if (setting->list && row->kind != LAUNCH_TEXT && row->kind != LAUNCH_PRESENCE)
        return diag_error(diag, setting->at, STATUS_BAD_INPUT,
                          "%s: [%.80s] is a list, and %s is expected", setting->name,
                          setting->value, kind_names[row->kind]);
    if (!parse_value(row->kind, setting->value, &read))
        return diag_error(diag, setting->at, STATUS_BAD_INPUT, "%s: '%.80s' is not %s",
                          setting->name, setting->value == NULL ? "" : setting->value,
                          kind_names[row->kind]);
    bool follows = (row->field == LAUNCH_GLOBAL_BATCH || row->field == LAUNCH_DP_SHARD) &&
                   read.count == -1; /* torchtitan's: as follows from the rest */
    if (row->kind == LAUNCH_COUNT && is_amount(row->field) && read.count < 1 && !follows)
        return diag_error(diag, setting->at, STATUS_BAD_INPUT, "%s: %lld is below 1", setting->name,
                          (long long)read.count);
    if (row->kind == LAUNCH_NUMBER && read.number < 0)
        return diag_error(diag, setting->at, STATUS_BAD_INPUT, "%s: %g is below 0", setting->name,
                          read.number);
    read.text = setting->value == NULL
                    ? ""
                    : arena_text(&launch->arena, setting->value, strlen(setting->value));
    read.name = arena_text(&launch->arena, setting->name, strlen(setting->name));
    /* of an argument that is given twice in one file the last value counts; launch_take() says so */
    bool again = before.said && strcmp(before.at.name, read.at.name) == 0 &&
                 strcmp(before.name, read.name) == 0;
    if (launch->beneath && before.said && !before.implied && !again)
        return STATUS_OK;
    if (before.said && !before.implied && !again &&
        (before.count != read.count || before.number != read.number ||
         (row->kind == LAUNCH_TEXT && strcmp(before.text, read.text) != 0)))
        return diag_error(diag, setting->at, STATUS_BAD_INPUT,
                          "%s is '%.60s', and %s:%u says '%.60s'; leave one of them out",
                          setting->name, read.text, before.at.name, before.at.line, before.text);
    *value = read;
    return STATUS_OK;
}

/* Fails if files were read that do not go together. */
static enum status check_kinds(struct launch *launch, struct diag *diag)
{
    static const enum launch_framework exclusive[] = {LAUNCH_TORCHTITAN, LAUNCH_MEGATRON,
                                                      LAUNCH_MEGATRON_DEEPSPEED, LAUNCH_FOUNDRY,
                                                      LAUNCH_TABLE};
    for (size_t i = 0; i < ARRAY_LEN(exclusive); i++)
        for (int other = 0; other < LAUNCH_FRAMEWORKS; other++) {
            bool pair = exclusive[i] == LAUNCH_MEGATRON_DEEPSPEED && other == LAUNCH_DEEPSPEED_JSON;
            pair = pair || (exclusive[i] == LAUNCH_TABLE && launch->has[exclusive[i]] &&
                            launch->table->family == LAUNCH_TRAINER &&
                            (other == LAUNCH_DEEPSPEED_JSON || other == LAUNCH_ACCELERATE));
            if (launch->has[exclusive[i]] && launch->has[other] && other != (int)exclusive[i] &&
                !pair)
                return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT,
                                  "%s and %s cannot be combined, as they start "
                                  "different programs; leave one of them out",
                                  launch_framework_name(launch, exclusive[i]),
                                  launch_framework_name(launch, (enum launch_framework)other));
        }
    return STATUS_OK;
}

static int by_setting(const void *a, const void *b)
{
    const struct setting *x = *(const struct setting *const *)a;
    const struct setting *y = *(const struct setting *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Adds a remark on each argument that is given twice with different values: programs take the last one. */
static void remark_repeated(struct launch *launch, const struct settings *settings)
{
    const struct setting **sorted = heap_alloc(settings->count + 1, sizeof(const struct setting *));
    for (size_t i = 0; i < settings->count; i++)
        sorted[i] = &settings->row[i];
    qsort(sorted, settings->count, sizeof(const struct setting *), by_setting);
    for (size_t i = 1; i < settings->count; i++) {
        const char *before = sorted[i - 1]->value, *value = sorted[i]->value;
        bool same = before == value || (before != NULL && value != NULL && !strcmp(before, value));
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && !same)
            launch_remark(launch, REMARK_ASSUMED, sorted[i]->name, sorted[i]->at,
                          "it is given twice, and the last one counts");
    }
    free(sorted);
}

enum status launch_use_table(struct launch *launch, const struct launch_format *format,
                             struct loc at, struct diag *diag)
{
    if (format->framework != LAUNCH_TABLE)
        return STATUS_OK;
    const struct launch_table_file *table = (const struct launch_table_file *)(const void *)format;
    if (launch->table != NULL && launch->table != table)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "this is of %s, and another file is of %s; leave one of them out",
                          format->name, launch->table->format.name);
    launch->table = table;
    return STATUS_OK;
}

enum status launch_take(struct launch *launch, enum launch_framework framework,
                        const struct settings *settings, struct diag *diag)
{
    launch->has[framework] = true;
    enum status status = check_kinds(launch, diag);
    remark_repeated(launch, settings);
    for (size_t i = 0; i < settings->count && status == STATUS_OK; i++) {
        const struct setting *setting = &settings->row[i];
        bool launcher = setting->kind == SETTING_LAUNCHER;
        bool known = false;
        if (framework == LAUNCH_TABLE && !launcher)
            status = launch_table_take(launch, setting, &known, diag);
        if (known)
            continue;
        const struct launch_row *row =
            framework == LAUNCH_TABLE && !launcher
                ? inherited_row(launch, setting->name)
                : launch_row_find(launcher ? LAUNCH_LAUNCHER : framework, setting->name);
        const char *open = settings_open_part(setting->value, &launch->arena);
        struct setting named = *setting;
        if (open != NULL && row != NULL && row->field == LAUNCH_MODEL &&
            settings_known_path_end(setting->value) != NULL) {
            named.value = settings_known_path_end(setting->value);
            setting = &named;
            open = NULL;
        }
        struct launch_remark remark = {
            .name = arena_text(&launch->arena, setting->name, strlen(setting->name)),
            .at = setting->at};
        bool sets = row != NULL && (row->use == LAUNCH_SETS || row->use == LAUNCH_ALSO_SETS);
        if (sets && (open == NULL || row->kind == LAUNCH_SWITCH || row->kind == LAUNCH_PRESENCE)) {
            struct setting flag = *setting; /* further arguments may follow a flag */
            flag.value = open == NULL ? setting->value : NULL;
            status = launch_set_field(launch, row, &flag, diag);
            if (open == NULL || row->kind == LAUNCH_PRESENCE)
                continue;
            remark.name = "further arguments";
        }
        if (open != NULL && row != NULL && row->use != LAUNCH_IGNORED) {
            remark.kind = REMARK_OPEN;
            remark.text = open;
        } else if (row == NULL) {
            remark.kind = REMARK_UNKNOWN;
        } else if (row->use == LAUNCH_UNMODELLED && !launch_is_usual(row->usual, setting->value)) {
            remark.kind = REMARK_UNMODELLED;
            remark.text = row->note;
            if (setting->value != NULL && strlen(setting->value) < 40)
                remark.name = arena_printf(&launch->arena, "%s %s", setting->name, setting->value);
        } else {
            remark.kind = REMARK_IGNORED;
            remark.name = row->name; /* one name for many: "metrics.*" */
        }
        add_remark(launch, remark);
    }
    return status;
}

/* Returns how many GPUs a list of this size names: "0,2,3". 0: it names none by number. */
static int64_t count_devices(const char *list, size_t size)
{
    const char *end = list + size;
    int64_t count = 0;
    while (list < end) {
        size_t digits = strspn(list, "0123456789");
        if (digits == 0)
            return 0;
        count++;
        list += digits;
        if (list < end && *list++ != ',')
            return 0;
    }
    return count;
}

/* Returns how many GPUs deepspeed's --include names: "worker-0:0,1@worker-1:0". 0: all of a node's are among them. */
static int64_t count_included(const char *nodes)
{
    int64_t count = 0;
    for (size_t size; *nodes != '\0'; nodes += size + (nodes[size] == '@')) {
        size = strcspn(nodes, "@");
        size_t host = strcspn(nodes, ":@");
        int64_t devices = host < size ? count_devices(nodes + host + 1, size - host - 1) : 0;
        if (devices == 0)
            return 0;
        count += devices;
    }
    return count;
}

int64_t launch_gpus(const struct launch *launch)
{
    const int64_t most = 1 << 20; /* more than any cluster has here */
    const char *visible = launch_text(launch, LAUNCH_VISIBLE);
    int64_t nodes = launch_count(launch, LAUNCH_NODES, 1), gpus = 0;
    if (launch_said(launch, LAUNCH_PROCESSES))
        gpus = launch_count(launch, LAUNCH_PROCESSES, 0);
    else if (launch_said(launch, LAUNCH_DEVICES))
        gpus = count_included(launch_text(launch, LAUNCH_DEVICES));
    else if (launch_said(launch, LAUNCH_GPUS_A_NODE))
        gpus = nodes * launch_count(launch, LAUNCH_GPUS_A_NODE, 0);
    else if (launch_said(launch, LAUNCH_TASKS))
        gpus = launch_count(launch, LAUNCH_TASKS, 0);
    else if (launch_said(launch, LAUNCH_VISIBLE))
        gpus = nodes * count_devices(visible, strlen(visible));
    return gpus < 0 ? 0 : gpus < most ? gpus : most;
}
