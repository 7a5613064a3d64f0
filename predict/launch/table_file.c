#include "predict/launch/table_file.h"

#include "base/c_locale.h"
#include "base/data_path.h"
#include "traces/records.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *const use_names[TABLE_USE_COUNT] = {"is",      "sets",    "implies",   "unset",
                                                       "written", "ignored", "unmodelled"};

static const struct {
    const char *name;
    enum launch_kind kind;
} fields[LAUNCH_FIELD_COUNT] = {
#define LAUNCH_FIELD(id, name, kind) {name, kind},
#include "predict/launch/launch_fields.def"
#undef LAUNCH_FIELD
};

const char *launch_field_name(enum launch_field field)
{
    return fields[field].name;
}

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
    for (size_t i = 0; i < tables->file_count; i++)
        free(tables->file[i]->row);
    free(tables->file);
    arena_release(&tables->arena);
    *tables = (struct launch_tables){0};
}

/* ---- reading and finding table files ---- */

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

static const char *copy_column_text(struct table_reader *r, const struct record *record,
                                    enum table_file_column column)
{
    return arena_text(r->arena, record->fields[column], record->field_sizes[column]);
}

/* Reads a row that describes the framework. */
static enum status read_framework_description_row(struct table_reader *r,
                                                  const struct record *record, struct diag *diag)
{
    const char *name = record->fields[SETTING];
    const char *words = copy_column_text(r, record, WORDS);
    struct launch_format *format = &r->file->format;
    if (words[0] == '\0')
        return records_report_field(record, column_names[WORDS], diag, "%s needs a value", name);
    if (strcmp(name, "name") == 0)
        format->name = words;
    else if (strcmp(name, "keys") == 0)
        format->keys = words;
    else if (strcmp(name, "arguments") == 0)
        format->arguments = words;
    else if (strcmp(name, "programs") == 0)
        format->programs = words;
    else if (strcmp(name, "of") == 0)
        r->file->framework_of_engine_file = words;
    else if (strcmp(name, "family") == 0) {
        for (size_t i = 0; i < ARRAY_LEN(families); i++)
            if (strcmp(words, families[i].name) == 0) {
                r->file->family = families[i].framework;
                r->has_family = true;
            }
        if (!r->has_family)
            return records_report_field(record, column_names[WORDS], diag,
                                        "a family is trainer or megatron, not '%s'", words);
    } else if (strcmp(name, "implementation") == 0) {
        r->file->has_own_code = strcmp(words, "own") == 0;
        if (!r->file->has_own_code && strcmp(words, "family") != 0)
            return records_report_field(record, column_names[WORDS], diag,
                                        "an implementation is own or family, not '%s'", words);
    } else if (strcmp(name, "inherits") == 0) {
        r->file->inherits_rows_of_family = true;
        if (!r->has_family || strcmp(words, family_name(r->file->family)) != 0)
            return records_report_field(record, column_names[WORDS], diag,
                                        "a framework inherits from its family, which a row before "
                                        "names");
    } else {
        return records_report_field(record, column_names[SETTING], diag,
                                    "a framework has name, of, family, implementation, inherits, "
                                    "keys, arguments and programs, not '%s'",
                                    name);
    }
    return STATUS_OK;
}

/* Checks the column `to`, and sets row->field if it names a field; an option ("--NAME") leaves row->field as it is. */
static enum status read_target_column(const struct record *record, struct table_row *row,
                                      struct diag *diag)
{
    const char *to = record->fields[TO];
    bool needs = row->use != TABLE_USE_IGNORED && row->use != TABLE_USE_UNMODELLED;
    if (!needs)
        return to[0] == '\0'
                   ? STATUS_OK
                   : records_report_field(record, column_names[TO], diag,
                                          "a row of use %s sets nothing", use_names[row->use]);
    if (strncmp(to, "--", 2) == 0 && to[2] != '\0' && row->use != TABLE_USE_UNSET)
        return STATUS_OK;
    const char *names[LAUNCH_FIELD_COUNT];
    for (int i = 0; i < LAUNCH_FIELD_COUNT; i++) {
        names[i] = fields[i].name;
        if (strcmp(to, fields[i].name) == 0)
            row->field = (enum launch_field)i;
    }
    if (row->field != LAUNCH_FIELD_COUNT)
        return STATUS_OK;
    const char *near = diag_nearest(to, names, LAUNCH_FIELD_COUNT);
    return records_report_field(
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
    if (record->field_count != COLUMNS)
        return diag_error(diag, record->place, STATUS_BAD_INPUT, "a row has %d fields, and not %zu",
                          COLUMNS, record->field_count);
    struct table_row row = {
        .use = TABLE_USE_COUNT, .field = LAUNCH_FIELD_COUNT, .line = record->place.line};
    for (int i = 0; i < TABLE_USE_COUNT; i++)
        if (strcmp(record->fields[USE], use_names[i]) == 0)
            row.use = (enum table_row_use)i;
    if (row.use == TABLE_USE_COUNT)
        return records_report_field(
            record, column_names[USE], diag,
            "'%s' is no use: is, sets, implies, unset, written, ignored and unmodelled are",
            record->fields[USE]);
    if (row.use == TABLE_USE_DESCRIBES_FRAMEWORK)
        return read_framework_description_row(r, record, diag);
    if ((record->fields[SETTING][0] == '\0') != (row.use == TABLE_USE_UNSET))
        return records_report_field(record, column_names[SETTING], diag,
                                    "all rows but those of use unset name a setting");
    if (row.use == TABLE_USE_UNMODELLED && record->fields[NOTE][0] == '\0')
        return records_report_field(record, column_names[NOTE], diag,
                                    "what is not modelled has a note that says what it does");
    enum status status = read_target_column(record, &row, diag);
    if (status != STATUS_OK)
        return status;
    row.setting = copy_column_text(r, record, SETTING);
    const char *brace = strchr(row.setting, '{');
    if (brace != NULL && (strchr(brace, '}') != row.setting + record->field_sizes[SETTING] - 1 ||
                          strchr(brace + 1, '{') != NULL || strchr(row.setting, '*') != NULL))
        return records_report_field(record, column_names[SETTING], diag,
                                    "a list of names is written lora_{r|alpha}, and ends in '}'");
    if (row.field == LAUNCH_FIELD_COUNT && record->field_sizes[TO] > 2)
        row.option = copy_column_text(r, record, TO) + 2;
    row.words = copy_column_text(r, record, WORDS);
    row.note = copy_column_text(r, record, NOTE);
    row.since_version = copy_column_text(r, record, SINCE);
    row.until_version = copy_column_text(r, record, UNTIL);
    struct launch_table_file *file = r->file;
    file->row = heap_grow(file->row, &file->capacity, file->row_count + 1, sizeof *file->row);
    file->row[file->row_count++] = row;
    return STATUS_OK;
}

static enum status skip_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    (void)context, (void)at, (void)text, (void)size, (void)diag;
    return STATUS_OK;
}

enum status launch_tables_add_file(struct launch_tables *tables, const char *path,
                                   struct diag *diag)
{
    struct text text = {0};
    path = arena_text(&tables->arena, path, strlen(path));
    enum status status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, diag);
    if (status != STATUS_OK) {
        text_release(&text);
        return status;
    }
    tables->file = heap_grow(tables->file, &tables->capacity, tables->file_count + 1,
                             sizeof(struct launch_table_file *));
    struct launch_table_file *file = arena_array(&tables->arena, 1, sizeof *file);
    tables->file[tables->file_count++] = file;
    file->path = path;
    file->format.framework = LAUNCH_FRAMEWORK_OF_TABLE_FILE;
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

static int compare_names(const void *a, const void *b)
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
    qsort(name, names, sizeof *name, compare_names);
    for (size_t i = names; i-- > 0 && status == STATUS_OK;) /* the last one is tried first */
        status = launch_tables_add_file(tables, name[i], diag);
    text_release(&folder);
    return status;
}

const struct launch_table_file *launch_tables_find(const struct launch_tables *tables,
                                                   const char *name)
{
    for (size_t i = tables->file_count; i-- > 0;)
        if (strcmp(tables->file[i]->format.name, name) == 0)
            return tables->file[i];
    return NULL;
}
