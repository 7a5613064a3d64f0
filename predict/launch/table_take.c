/* Applies settings by the rows of a table file, as predict/launch/table_file.h describes them. */
#include "base/c_locale.h"
#include "predict/launch/launch_parts.h"
#include "predict/launch/table_file.h"

#include <stdlib.h>
#include <string.h>

bool launch_pattern_matches(const char *pattern, size_t size, const char *text)
{
    size_t length = strlen(text);
    bool front = size > 0 && pattern[0] == '*', back = size > 1 && pattern[size - 1] == '*';
    pattern += front;
    size -= front + back;
    if (length < size || (!front && !back && length != size))
        return false;
    for (size_t at = 0; at + size <= length; at++) {
        bool here = c_equal_ignoring_case_n(text + at, pattern, size);
        if (here && (front || at == 0) && (back || at + size == length))
            return true;
    }
    return false;
}

/* True if the name is among those that a list such as "lora_{r|alpha}" stands for, or is a member of one of them, as
 * "lora_alpha.x" is. */
static bool list_names_setting(const char *list, const char *name)
{
    size_t size = strcspn(list, "{");
    if (list[size] == '\0' || strncmp(list, name, size) != 0)
        return false;
    name += size;
    for (list += size + 1; *list != '\0';) {
        size = strcspn(list, "|}");
        if (strncmp(list, name, size) == 0 && (name[size] == '\0' || name[size] == '.'))
            return true;
        list += size + 1;
    }
    return false;
}

const struct table_row *launch_table_find_row(const struct launch_table_file *file,
                                              const char *setting, const struct table_row *after)
{
    const struct table_row *star = NULL, *list = NULL;
    const char *name = after == NULL ? setting : after->setting;
    for (size_t i = after == NULL ? 0 : (size_t)(after - file->row) + 1; i < file->row_count; i++) {
        const struct table_row *row = &file->row[i];
        size_t size = strlen(row->setting);
        if (row->use == TABLE_USE_UNSET || row->use == TABLE_USE_WRITTEN)
            continue;
        if (strcmp(row->setting, name) == 0)
            return row;
        if (after == NULL && list == NULL && list_names_setting(row->setting, setting))
            list = row;
        bool is_star = size > 0 && row->setting[size - 1] == '*';
        if (after == NULL && star == NULL && is_star &&
            strncmp(row->setting, setting, size - 1) == 0)
            star = row;
    }
    return list != NULL ? list : star;
}

/* Returns the value that the column `words` gives in place of a value: a copy in the arena, or `value` itself if no
 * pattern matches. Sets *has_matched to whether one does. */
static const char *translate_value(struct arena *arena, const char *words, const char *value,
                                   bool *has_matched)
{
    *has_matched = false;
    for (const char *word = words; *word != '\0';) {
        size_t size = strcspn(word, " "), equals = strcspn(word, "=");
        if (equals < size && launch_pattern_matches(word, equals, value)) {
            *has_matched = true;
            return arena_text(arena, word + equals + 1, size - equals - 1);
        }
        word += size + (word[size] == ' ');
    }
    return value;
}

const char *launch_table_value_to_write(const struct table_row *row, const char *means,
                                        struct arena *arena)
{
    bool has_matched;
    if (row->use == TABLE_USE_WRITTEN) {
        const char *value = translate_value(arena, row->words, means, &has_matched);
        return has_matched ? value : NULL;
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
    return free && strcmp(translate_value(arena, row->words, means, &has_matched), means) == 0
               ? means
               : NULL;
}

static void add_remark_of_table_row(struct launch *launch, enum launch_remark_kind kind,
                                    const struct setting *setting, const char *note)
{
    if (setting->value != NULL && strlen(setting->value) < 60) {
        struct text name = {0};
        text_printf(&name, "%s %s", setting->name, setting->value);
        launch_add_remark_printf(launch, kind, name.data, setting->place, "%s", note);
        text_release(&name);
    } else {
        launch_add_remark_printf(launch, kind, setting->name, setting->place, "%s", note);
    }
}

/* Adds the option that a row sets directly, without a field. A setting that sets the option replaces one that only
 * implies it; of two settings that imply it, the first counts. It is an error if the row has patterns and none matches
 * (`has_matched`), or if two settings set the option differently; but a file that the script names changes no option
 * that a setting sets. */
static enum status set_table_option(struct launch *launch, const struct table_row *row,
                                    const struct setting *setting, const char *value,
                                    bool has_matched, struct diag *diag)
{
    if (row->words[0] != '\0' && !has_matched)
        return diag_error(diag, setting->place, STATUS_BAD_INPUT, "%s: '%.80s' is none of: %s",
                          setting->name, setting->value == NULL ? "" : setting->value, row->words);
    /* the option needs a copy, since settings are released before options are used */
    value = arena_text(&launch->arena, value, strlen(value));
    for (size_t i = 0; i < launch->table_option_count; i++) {
        struct launch_option *option = &launch->table_option[i];
        if (strcmp(option->name, row->option) != 0)
            continue;
        if (row->use == TABLE_USE_IMPLIES || strcmp(option->value, value) == 0 ||
            (launch->is_reading_named_file && !option->is_implied))
            return STATUS_OK;
        if (option->is_implied) {
            option->value = value;
            option->place = setting->place;
            option->is_implied = false;
            return STATUS_OK;
        }
        return diag_error(diag, setting->place, STATUS_BAD_INPUT,
                          "%s means --%s %s, and line %u means --%s %s; leave one of them out",
                          setting->name, row->option, value, option->place.line, option->name,
                          option->value);
    }
    if (launch->table_option_count < LAUNCH_OPTIONS_MAX)
        launch->table_option[launch->table_option_count++] =
            (struct launch_option){.name = row->option,
                                   .value = value,
                                   .place = setting->place,
                                   .is_implied = row->use == TABLE_USE_IMPLIES};
    return STATUS_OK;
}

/* Applies one row to a setting: sets its field or option, or adds a remark. Sets *effect unless the row says nothing
 * for this value. */
static enum status apply_table_row_to_setting(struct launch *launch, const struct table_row *row,
                                              const struct setting *setting, bool *effect,
                                              struct diag *diag)
{
    bool has_matched = false;
    const char *value = setting->value == NULL ? "true" : setting->value;
    const char *means = translate_value(&launch->arena, row->words, value, &has_matched);
    bool implies = row->use == TABLE_USE_IMPLIES;
    if ((has_matched && strcmp(means, "-") == 0) ||
        (implies && row->words[0] != '\0' && !has_matched))
        return STATUS_OK;
    *effect = true;
    if (has_matched && strcmp(means, "?") == 0) {
        add_remark_of_table_row(launch, REMARK_UNMODELLED, setting, row->note);
        return STATUS_OK;
    }
    if (row->option != NULL)
        return set_table_option(launch, row, setting, means, has_matched, diag);
    struct launch_field_value *said = &launch->field_value[row->field];
    if (implies && said->is_given)
        return STATUS_OK;
    struct launch_row target = {
        setting->name, LAUNCH_ALIAS_OF_FIELD, launch_field_kind(row->field), row->field, NULL,
        NULL};
    struct setting changed = *setting;
    if (has_matched || setting->value == NULL) {
        changed.value = means;
        changed.is_list = false;
    }
    enum status status = launch_set_field(launch, &target, &changed, diag);
    said->is_implied = implies && said->is_given;
    if (status == STATUS_OK && implies && row->note[0] != '\0')
        add_remark_of_table_row(launch, REMARK_ASSUMED, setting, row->note);
    return status;
}

/* Returns a number below, equal to or above 0 if version a is before, equal to or after version b: "0.9" is before
 * "0.10". */
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

/* Notes a row that was applied in launch->newest_row if its `since` is the latest so far, and in launch->oldest_row if
 * its `until` is the earliest. */
static void update_version_limits(struct launch *launch, const struct table_row *row)
{
    if (row->since_version[0] != '\0' &&
        (launch->newest_row == NULL ||
         compare_versions(row->since_version, launch->newest_row->since_version) > 0))
        launch->newest_row = row;
    if (row->until_version[0] != '\0' &&
        (launch->oldest_row == NULL ||
         compare_versions(row->until_version, launch->oldest_row->until_version) < 0))
        launch->oldest_row = row;
}

enum status launch_table_apply_setting(struct launch *launch, const struct setting *setting,
                                       bool *known, struct diag *diag)
{
    const struct launch_table_file *file = launch->table_file;
    const struct table_row *row = launch_table_find_row(file, setting->name, NULL);
    enum status status = STATUS_OK;
    if (row == NULL && file->framework_of_engine_file != NULL && launch->tables != NULL) {
        file = launch_tables_find(launch->tables, file->framework_of_engine_file);
        row = file == NULL ? NULL : launch_table_find_row(file, setting->name, NULL);
    }
    *known = row != NULL;
    if (row == NULL)
        return STATUS_OK;
    const char *open = settings_find_open_part(setting->value, &launch->arena);
    struct setting named = *setting;
    if (open != NULL && row->field == LAUNCH_MODEL &&
        settings_known_last_path_part(setting->value) != NULL) {
        named.value = settings_known_last_path_part(setting->value);
        setting = &named;
        open = NULL;
    }
    if (open != NULL && row->use != TABLE_USE_IGNORED) {
        launch_add_remark_printf(launch, REMARK_KNOWN_IN_RUN_ONLY, setting->name, setting->place,
                                 "%s", open);
        return STATUS_OK;
    }
    bool effect = false;
    const char *name = row->setting;
    update_version_limits(launch, row);
    for (; row != NULL && status == STATUS_OK;
         row = launch_table_find_row(file, setting->name, row))
        if (row->use == TABLE_USE_UNMODELLED) {
            if (launch_is_predicted_value(row->words[0] == '\0' ? NULL : row->words,
                                          setting->value))
                continue;
            add_remark_of_table_row(launch, REMARK_UNMODELLED, setting, row->note);
            effect = true;
        } else if (row->use != TABLE_USE_IGNORED) {
            status = apply_table_row_to_setting(launch, row, setting, &effect, diag);
        }
    if (status == STATUS_OK && !effect)
        launch_add_remark_printf(launch, REMARK_IGNORED,
                                 strchr(name, '{') != NULL ? setting->name : name, setting->place,
                                 "%s", "");
    return status;
}

enum status launch_table_apply_unset_rows(struct launch *launch, struct diag *diag)
{
    const struct launch_table_file *file = launch->table_file;
    const struct table_row *newest = launch->newest_row, *oldest = launch->oldest_row;
    enum status status = STATUS_OK;
    if (newest != NULL && oldest != NULL &&
        compare_versions(newest->since_version, oldest->until_version) > 0)
        launch_add_remark_printf(
            launch, REMARK_ASSUMED, newest->setting, (struct loc){0},
            "known since %s %s, and %s is known until %s: no version has both, and one "
            "of them does nothing",
            file->format.name, newest->since_version, oldest->setting, oldest->until_version);
    for (size_t i = 0; file != NULL && i < file->row_count && status == STATUS_OK; i++) {
        const struct table_row *row = &file->row[i];
        if (row->use != TABLE_USE_UNSET || launch->field_value[row->field].is_given)
            continue;
        struct launch_row target = {launch_field_name(row->field),
                                    LAUNCH_ALIAS_OF_FIELD,
                                    launch_field_kind(row->field),
                                    row->field,
                                    NULL,
                                    NULL};
        struct setting setting = {.name = launch_field_name(row->field),
                                  .value = row->words,
                                  .place = {.name = file->path, .line = row->line}};
        status = launch_set_field(launch, &target, &setting, diag);
        launch->field_value[row->field].is_implied = true;
        launch->field_value[row->field].place = (struct loc){0};
        if (status == STATUS_OK && row->note[0] != '\0') {
            struct text name = {0};
            text_printf(&name, "%s %s", launch_field_name(row->field), row->words);
            launch_add_remark_printf(launch, REMARK_ASSUMED, name.data, (struct loc){0}, "%s",
                                     row->note);
            text_release(&name);
        }
    }
    return status;
}
