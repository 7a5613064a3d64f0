/* Finds the format of a launch file by its settings or by its command. */
#include "predict/launch/table_file.h"

#include <string.h>

/* True if the entry of `size` bytes equals the name, or if it ends in '.' or '*' and the name begins with it (without
 * the '*'). */
static bool list_entry_matches_setting_name(const char *entry, size_t size, const char *name)
{
    if (size == 0)
        return false; /* the list has two blanks in a row, or an entry "=value" */
    bool star = entry[size - 1] == '*', open = star || entry[size - 1] == '.';
    size_t same = size - star;
    return strncmp(entry, name, same) == 0 && (open || name[same] == '\0');
}

/* True if an entry of the list matches a setting's name and, if the entry is "name=value", also the setting's value. A
 * setting without a value (NULL) matches no such entry. */
static bool list_has_setting(const char *list, const char *name, const char *value)
{
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, " "), equals = strcspn(list, "=");
        if (equals >= size
                ? list_entry_matches_setting_name(list, size, name)
                : value != NULL && list_entry_matches_setting_name(list, equals, name) &&
                      launch_pattern_matches(list + equals + 1, size - equals - 1, value))
            return true;
        list += size + (list[size] == ' ');
    }
    return false;
}

static bool has_key_of_format(const struct launch_format *format, const struct settings *settings)
{
    for (size_t i = 0; i < settings->setting_count; i++) {
        const struct setting *setting = &settings->row[i];
        if (setting->kind == SETTING_PROGRAM &&
            list_has_setting(setting->name[0] == '-' ? format->arguments : format->keys,
                             setting->name, setting->value))
            return true;
    }
    return false;
}

/* If the format is that of a further engine of a framework, returns the framework's name, which is that of its main
 * format; else returns NULL. */
static const char *framework_of_engine(const struct launch_format *format)
{
    return format->framework == LAUNCH_FRAMEWORK_OF_TABLE_FILE
               ? ((const struct launch_table_file *)(const void *)format)->framework_of_engine_file
               : NULL;
}

/* Returns the i-th format in the order in which they are tried; NULL: there are fewer. */
static const struct launch_format *format_at_index(const struct launch *launch, size_t i)
{
    size_t tables = launch->tables == NULL ? 0 : launch->tables->file_count;
    if (i < tables)
        return &launch->tables->file[tables - 1 - i]->format;
    size_t count;
    const struct launch_format *formats = launch_formats(&count);
    return i - tables < count ? &formats[i - tables] : NULL;
}

const struct launch_format *launch_format_of_settings(const struct launch *launch,
                                                      const struct settings *settings)
{
    const struct launch_format *format = format_at_index(launch, 0);
    for (size_t f = 1; format != NULL && !has_key_of_format(format, settings); f++)
        format = format_at_index(launch, f);
    return launch_format_of_matching_engine(launch, format, settings);
}

const struct launch_format *launch_format_of_matching_engine(const struct launch *launch,
                                                             const struct launch_format *format,
                                                             const struct settings *settings)
{
    const struct launch_format *engine;
    for (size_t f = 0; format != NULL && (engine = format_at_index(launch, f)) != NULL; f++) {
        const char *of = framework_of_engine(engine);
        if (of != NULL && strcmp(of, format->name) == 0 && has_key_of_format(engine, settings))
            return engine;
    }
    return format;
}

/* True if the list has the program that a word names: the word itself, the last part of a path, or the first part of a
 * module's name ("trl" of "trl.scripts.sft"). */
static bool lists_program(const char *list, const char *word)
{
    char module[64];
    const char *slash = strrchr(word, '/');
    if (list_has_setting(list, slash == NULL ? word : slash + 1, NULL))
        return true;
    size_t size = strcspn(word, ".");
    if (slash != NULL || size >= sizeof module)
        return false;
    memcpy(module, word, size);
    module[size] = '\0';
    return list_has_setting(list, module, NULL);
}

const struct launch_format *launch_format_of_command(const struct launch *launch,
                                                     const struct shell_command *command,
                                                     size_t first_argument)
{
    for (size_t i = 0; i < command->word_count && (i < first_argument || i == 0); i++) {
        const char *before = i > 0 ? command->word[i - 1].text : "";
        bool module = strcmp(before, "-m") == 0 || strcmp(before, "--module") == 0;
        if (i > 0 && i + 1 != first_argument && !module)
            continue;
        const struct launch_format *format = format_at_index(launch, 0);
        for (size_t f = 0; format != NULL; format = format_at_index(launch, ++f))
            if (format->programs != NULL && lists_program(format->programs, command->word[i].text))
                return format;
    }
    return NULL;
}
