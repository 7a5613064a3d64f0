#include "predict/launch/table_file.h"

#include "base/c_locale.h"
#include "base/data_path.h"
#include "predict/launch/launch_parts.h"
#include "traces/records.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *const use_names[TABLE_USES] = {"is",      "sets",    "implies",   "unset",
                                                  "written", "ignored", "unmodelled"};

static const struct {
    const char *name;
    enum launch_kind kind;
} fields[LAUNCH_FIELDS] = {
#define LAUNCH_FIELD(id, name, kind) {name, kind},
#include "predict/launch/launch_fields.def"
#undef LAUNCH_FIELD
};

enum launch_kind launch_field_kind(enum launch_field field)
{
    return fields[field].kind;
}

static const struct {
    const char *name;
    enum launch_framework framework;
} families[] = {{"trainer", LAUNCH_TRAINER}, {"megatron", LAUNCH_MEGATRON}};

enum table_file_column { SETTING, USE, TO, WORDS, NOTE, SINCE, UNTIL, COLUMNS };
static const char *const column_names[COLUMNS] = {"setting", "use",   "to",   "words",
                                                  "note",    "since", "until"};

void launch_tables_release(struct launch_tables *tables)
{
    if (tables == NULL)
        return;
    for (size_t i = 0; i < tables->count; i++)
        free(tables->file[i]->row);
    free(tables->file);
    arena_release(&tables->arena);
    *tables = (struct launch_tables){0};
}

/* ---- reading a table file ---- */

struct table_reader {
    struct arena *arena;
    struct launch_table_file *file;
    bool has_columns, has_family;
};

static const char *family_name(enum launch_framework family)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (families[i].framework == family)
            return families[i].name;
    return "";
}

static const char *kept(struct table_reader *r, const struct record *record,
                        enum table_file_column column)
{
    return arena_text(r->arena, record->field[column], record->size[column]);
}

/* Reads a row that describes the framework. */
static enum status read_description(struct table_reader *r, const struct record *record,
                                    struct diag *diag)
{
    const char *name = record->field[SETTING];
    const char *words = kept(r, record, WORDS);
    struct launch_format *format = &r->file->format;
    if (words[0] == '\0')
        return records_field_error(record, column_names[WORDS], diag, "%s needs a value", name);
    if (strcmp(name, "name") == 0)
        format->name = words;
    else if (strcmp(name, "keys") == 0)
        format->keys = words;
    else if (strcmp(name, "arguments") == 0)
        format->arguments = words;
    else if (strcmp(name, "programs") == 0)
        format->programs = words;
    else if (strcmp(name, "family") == 0) {
        for (size_t i = 0; i < ARRAY_LEN(families); i++)
            if (strcmp(words, families[i].name) == 0) {
                r->file->family = families[i].framework;
                r->has_family = true;
            }
        if (!r->has_family)
            return records_field_error(record, column_names[WORDS], diag,
                                       "a family is trainer or megatron, not '%s'", words);
    } else if (strcmp(name, "inherits") == 0) {
        r->file->inherits = true;
        if (!r->has_family || strcmp(words, family_name(r->file->family)) != 0)
            return records_field_error(record, column_names[WORDS], diag,
                                       "a framework inherits from its family, which a row before "
                                       "names");
    } else {
        return records_field_error(record, column_names[SETTING], diag,
                                   "a framework has name, family, inherits, keys, arguments and "
                                   "programs, not '%s'",
                                   name);
    }
    return STATUS_OK;
}

/* Reads the column `to`: a field, or an option with its dashes. */
static enum status read_target(const struct record *record, struct table_row *row,
                               struct diag *diag)
{
    const char *to = record->field[TO];
    bool needs = row->use != TABLE_IGNORED && row->use != TABLE_UNMODELLED;
    if (!needs)
        return to[0] == '\0'
                   ? STATUS_OK
                   : records_field_error(record, column_names[TO], diag,
                                         "a row of use %s sets nothing", use_names[row->use]);
    if (strncmp(to, "--", 2) == 0 && to[2] != '\0' && row->use != TABLE_UNSET)
        return STATUS_OK;
    const char *names[LAUNCH_FIELDS];
    for (int i = 0; i < LAUNCH_FIELDS; i++) {
        names[i] = fields[i].name;
        if (strcmp(to, fields[i].name) == 0)
            row->field = (enum launch_field)i;
    }
    if (row->field != LAUNCH_FIELDS)
        return STATUS_OK;
    const char *near = diag_nearest(to, names, LAUNCH_FIELDS);
    return records_field_error(
        record, column_names[TO], diag, "'%s' is neither a field nor an option (--NAME)%s%s%s", to,
        near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    struct table_reader *r = context;
    if (!r->has_columns) {
        r->has_columns = true;
        return records_check_columns(record, column_names, COLUMNS, 0, diag);
    }
    if (record->count != COLUMNS)
        return diag_error(diag, record->at, STATUS_BAD_INPUT, "a row has %d fields, and not %zu",
                          COLUMNS, record->count);
    struct table_row row = {.use = TABLE_USES, .field = LAUNCH_FIELDS, .line = record->at.line};
    for (int i = 0; i < TABLE_USES; i++)
        if (strcmp(record->field[USE], use_names[i]) == 0)
            row.use = (enum table_use)i;
    if (row.use == TABLE_USES)
        return records_field_error(
            record, column_names[USE], diag,
            "'%s' is no use: is, sets, implies, unset, written, ignored and unmodelled are",
            record->field[USE]);
    if (row.use == TABLE_IS)
        return read_description(r, record, diag);
    if ((record->field[SETTING][0] == '\0') != (row.use == TABLE_UNSET))
        return records_field_error(record, column_names[SETTING], diag,
                                   "all rows but those of use unset name a setting");
    if (row.use == TABLE_UNMODELLED && record->field[NOTE][0] == '\0')
        return records_field_error(record, column_names[NOTE], diag,
                                   "what is not modelled has a note that says what it does");
    enum status status = read_target(record, &row, diag);
    if (status != STATUS_OK)
        return status;
    row.setting = kept(r, record, SETTING);
    if (row.field == LAUNCH_FIELDS && record->size[TO] > 2)
        row.option = kept(r, record, TO) + 2;
    row.words = kept(r, record, WORDS);
    row.note = kept(r, record, NOTE);
    row.since = kept(r, record, SINCE);
    row.until = kept(r, record, UNTIL);
    struct launch_table_file *file = r->file;
    file->row = heap_grow(file->row, &file->capacity, file->rows + 1, sizeof *file->row);
    file->row[file->rows++] = row;
    return STATUS_OK;
}

static enum status skip_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    (void)context, (void)at, (void)text, (void)size, (void)diag;
    return STATUS_OK;
}

enum status launch_tables_add(struct launch_tables *tables, const char *path, struct diag *diag)
{
    struct text text = {0};
    path = arena_text(&tables->arena, path, strlen(path));
    enum status status = text_read_within(&text, path, TEXT_CONFIGURATION_MAX, diag);
    if (status != STATUS_OK) {
        text_release(&text);
        return status;
    }
    tables->file = heap_grow(tables->file, &tables->capacity, tables->count + 1,
                             sizeof(struct launch_table_file *));
    struct launch_table_file *file = arena_array(&tables->arena, 1, sizeof *file);
    tables->file[tables->count++] = file;
    file->path = path;
    file->format.framework = LAUNCH_TABLE;
    struct table_reader reader = {.arena = &tables->arena, .file = file};
    struct record_handler handler = {.context = &reader, .row = read_row, .comment = skip_comment};
    status = records_parse(path, text.data != NULL ? text.data : "", text.size, &handler, diag);
    const struct launch_format *f = &file->format;
    if (status == STATUS_OK && (f->name == NULL || !reader.has_family ||
                                (f->keys == NULL && f->arguments == NULL && f->programs == NULL)))
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "a table needs rows of use `is` for name, family, and keys, arguments "
                            "or programs by which the framework is recognised");
    text_release(&text);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status launch_tables_load(struct launch_tables *tables, struct diag *diag)
{
    struct text folder = {0};
    const char *name[256];
    size_t names = 0;
    enum status status = data_path(&folder, "launch", diag);
    DIR *dir = status == STATUS_OK ? opendir(folder.data) : NULL;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        size_t size = strlen(entry->d_name);
        if (size > 4 && entry->d_name[0] != '.' && names < ARRAY_LEN(name) &&
            strcmp(entry->d_name + size - 4, ".csv") == 0)
            name[names++] = arena_printf(&tables->arena, "%s/%s", folder.data, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    qsort(name, names, sizeof *name, by_name);
    for (size_t i = names; i-- > 0 && status == STATUS_OK;) /* the last one is tried first */
        status = launch_tables_add(tables, name[i], diag);
    text_release(&folder);
    return status;
}

const struct launch_table_file *launch_tables_find(const struct launch_tables *tables,
                                                   const char *name)
{
    for (size_t i = tables->count; i-- > 0;)
        if (strcmp(tables->file[i]->format.name, name) == 0)
            return tables->file[i];
    return NULL;
}

/* ---- settings by a table ---- */

static bool is_pattern_of(const char *pattern, size_t size, const char *text)
{
    size_t length = strlen(text);
    bool front = size > 0 && pattern[0] == '*', back = size > 1 && pattern[size - 1] == '*';
    pattern += front;
    size -= front + back;
    if (length < size || (!front && !back && length != size))
        return false;
    for (size_t at = 0; at + size <= length; at++) {
        bool here = c_same_letters_n(text + at, pattern, size);
        if (here && (front || at == 0) && (back || at + size == length))
            return true;
    }
    return false;
}

const struct table_row *launch_table_row(const struct launch_table_file *file, const char *setting,
                                         const struct table_row *after)
{
    const struct table_row *star = NULL;
    const char *name = after == NULL ? setting : after->setting;
    for (size_t i = after == NULL ? 0 : (size_t)(after - file->row) + 1; i < file->rows; i++) {
        const struct table_row *row = &file->row[i];
        size_t size = strlen(row->setting);
        if (row->use == TABLE_UNSET || row->use == TABLE_WRITTEN)
            continue;
        if (strcmp(row->setting, name) == 0)
            return row;
        bool is_star = size > 0 && row->setting[size - 1] == '*';
        if (after == NULL && star == NULL && is_star &&
            strncmp(row->setting, setting, size - 1) == 0)
            star = row;
    }
    return star;
}

/* Returns the value that words make of one: a copy in the arena, or the value itself if no pattern matches. */
static const char *translate(struct arena *arena, const char *words, const char *value,
                             bool *matched)
{
    *matched = false;
    for (const char *word = words; *word != '\0';) {
        size_t size = strcspn(word, " "), equals = strcspn(word, "=");
        if (equals < size && is_pattern_of(word, equals, value)) {
            *matched = true;
            return arena_text(arena, word + equals + 1, size - equals - 1);
        }
        word += size + (word[size] == ' ');
    }
    return value;
}

const char *launch_table_value(const struct table_row *row, const char *means, struct arena *arena)
{
    bool matched;
    if (row->use == TABLE_WRITTEN) {
        const char *value = translate(arena, row->words, means, &matched);
        return matched ? value : NULL;
    }
    for (const char *word = row->words; *word != '\0';) {
        size_t size = strcspn(word, " "), equals = strcspn(word, "=");
        bool exact = equals < size && memchr(word, '*', equals) == NULL;
        if (exact && strlen(means) == size - equals - 1 &&
            strncmp(word + equals + 1, means, size - equals - 1) == 0)
            return arena_text(arena, word, equals);
        word += size + (word[size] == ' ');
    }
    bool free = row->option == NULL || row->words[0] == '\0'; /* other values stay as they are */
    return free && strcmp(translate(arena, row->words, means, &matched), means) == 0 ? means : NULL;
}

static void remark_row(struct launch *launch, enum launch_remark_kind kind,
                       const struct setting *setting, const char *note)
{
    if (setting->value != NULL && strlen(setting->value) < 60) {
        struct text name = {0};
        text_printf(&name, "%s %s", setting->name, setting->value);
        launch_remark(launch, kind, name.data, setting->at, "%s", note);
        text_release(&name);
    } else {
        launch_remark(launch, kind, setting->name, setting->at, "%s", note);
    }
}

/* Adds an option that a row names itself. A setting that says it stands above one that implies it, and of two that
 * imply it the first one counts. */
static enum status take_option(struct launch *launch, const struct table_row *row,
                               const struct setting *setting, const char *value, bool matched,
                               struct diag *diag)
{
    if (row->words[0] != '\0' && !matched)
        return diag_error(diag, setting->at, STATUS_BAD_INPUT, "%s: '%.80s' is none of: %s",
                          setting->name, setting->value == NULL ? "" : setting->value, row->words);
    /* The settings are released before the options are used. */
    value = arena_text(&launch->arena, value, strlen(value));
    for (size_t i = 0; i < launch->directs; i++) {
        struct launch_option *option = &launch->direct[i];
        if (strcmp(option->name, row->option) != 0)
            continue;
        if (row->use == TABLE_IMPLIES || strcmp(option->value, value) == 0)
            return STATUS_OK;
        if (option->implied) {
            option->value = value;
            option->at = setting->at;
            option->implied = false;
            return STATUS_OK;
        }
        return diag_error(diag, setting->at, STATUS_BAD_INPUT,
                          "%s means --%s %s, and line %u means --%s %s; leave one of them out",
                          setting->name, row->option, value, option->at.line, option->name,
                          option->value);
    }
    if (launch->directs < LAUNCH_OPTIONS_MAX)
        launch->direct[launch->directs++] =
            (struct launch_option){.name = row->option,
                                   .value = value,
                                   .at = setting->at,
                                   .implied = row->use == TABLE_IMPLIES};
    return STATUS_OK;
}

/* Does what one row says of a setting. *effect: it says something. */
static enum status take_row(struct launch *launch, const struct table_row *row,
                            const struct setting *setting, bool *effect, struct diag *diag)
{
    bool matched = false;
    const char *value = setting->value == NULL ? "true" : setting->value;
    const char *means = translate(&launch->arena, row->words, value, &matched);
    bool implies = row->use == TABLE_IMPLIES;
    if ((matched && strcmp(means, "-") == 0) || (implies && row->words[0] != '\0' && !matched))
        return STATUS_OK;
    *effect = true;
    if (matched && strcmp(means, "?") == 0) {
        remark_row(launch, REMARK_UNMODELLED, setting, row->note);
        return STATUS_OK;
    }
    if (row->option != NULL)
        return take_option(launch, row, setting, means, matched, diag);
    struct launch_value *said = &launch->value[row->field];
    if (implies && said->said)
        return STATUS_OK;
    struct launch_row target = {
        setting->name, LAUNCH_ALSO_SETS, fields[row->field].kind, row->field, NULL, NULL};
    struct setting changed = *setting;
    if (matched || setting->value == NULL) {
        changed.value = means;
        changed.list = false;
    }
    enum status status = launch_set_field(launch, &target, &changed, diag);
    said->implied = implies && said->said;
    if (status == STATUS_OK && implies && row->note[0] != '\0')
        remark_row(launch, REMARK_ASSUMED, setting, row->note);
    return status;
}

/* Returns less than, equal to or greater than 0 as version a is before, equal to or after b: "0.9" is before "0.10". */
static int compare_versions(const char *a, const char *b)
{
    while (*a != '\0' || *b != '\0') {
        long x = strtol(a, NULL, 10), y = strtol(b, NULL, 10);
        if (x != y)
            return x < y ? -1 : 1;
        a += strcspn(a, ".");
        b += strcspn(b, ".");
        a += *a == '.';
        b += *b == '.';
    }
    return 0;
}

/* Notes the versions that know a setting. */
static void take_versions(struct launch *launch, const struct table_row *row)
{
    if (row->since[0] != '\0' &&
        (launch->newest == NULL || compare_versions(row->since, launch->newest->since) > 0))
        launch->newest = row;
    if (row->until[0] != '\0' &&
        (launch->oldest == NULL || compare_versions(row->until, launch->oldest->until) < 0))
        launch->oldest = row;
}

enum status launch_table_take(struct launch *launch, const struct setting *setting, bool *known,
                              struct diag *diag)
{
    const struct launch_table_file *file = launch->table;
    const struct table_row *row = launch_table_row(file, setting->name, NULL);
    enum status status = STATUS_OK;
    *known = row != NULL;
    if (row == NULL)
        return STATUS_OK;
    const char *open = settings_open_part(setting->value, &launch->arena);
    struct setting named = *setting;
    if (open != NULL && row->field == LAUNCH_MODEL && settings_known_name(setting->value) != NULL) {
        named.value = settings_known_name(setting->value);
        setting = &named;
        open = NULL;
    }
    if (open != NULL && row->use != TABLE_IGNORED) {
        launch_remark(launch, REMARK_OPEN, setting->name, setting->at, "%s", open);
        return STATUS_OK;
    }
    bool effect = false;
    const char *name = row->setting;
    take_versions(launch, row);
    for (; row != NULL && status == STATUS_OK; row = launch_table_row(file, setting->name, row))
        if (row->use == TABLE_UNMODELLED) {
            if (launch_is_usual(row->words[0] == '\0' ? NULL : row->words, setting->value))
                continue;
            remark_row(launch, REMARK_UNMODELLED, setting, row->note);
            effect = true;
        } else if (row->use != TABLE_IGNORED) {
            status = take_row(launch, row, setting, &effect, diag);
        }
    if (status == STATUS_OK && !effect)
        launch_remark(launch, REMARK_IGNORED, name, setting->at, "%s", "");
    return status;
}

enum status launch_table_finish(struct launch *launch, struct diag *diag)
{
    const struct launch_table_file *file = launch->table;
    const struct table_row *newest = launch->newest, *oldest = launch->oldest;
    enum status status = STATUS_OK;
    if (newest != NULL && oldest != NULL && compare_versions(newest->since, oldest->until) > 0)
        launch_remark(launch, REMARK_ASSUMED, newest->setting, (struct loc){0},
                      "known since %s %s, and %s is known until %s: no version has both, and one "
                      "of them does nothing",
                      file->format.name, newest->since, oldest->setting, oldest->until);
    for (size_t i = 0; file != NULL && i < file->rows && status == STATUS_OK; i++) {
        const struct table_row *row = &file->row[i];
        if (row->use != TABLE_UNSET || launch->value[row->field].said)
            continue;
        struct launch_row target = {fields[row->field].name,
                                    LAUNCH_ALSO_SETS,
                                    fields[row->field].kind,
                                    row->field,
                                    NULL,
                                    NULL};
        struct setting setting = {.name = fields[row->field].name,
                                  .value = row->words,
                                  .at = {.name = file->path, .line = row->line}};
        status = launch_set_field(launch, &target, &setting, diag);
        launch->value[row->field].implied = true;
        launch->value[row->field].at = (struct loc){0};
        if (status == STATUS_OK && row->note[0] != '\0') {
            struct text name = {0};
            text_printf(&name, "%s %s", fields[row->field].name, row->words);
            launch_remark(launch, REMARK_ASSUMED, name.data, (struct loc){0}, "%s", row->note);
            text_release(&name);
        }
    }
    return status;
}
