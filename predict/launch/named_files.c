/* Finds the files that a command names, to be read after it: `axolotl train x.yaml`, --config_file, --deepspeed
 * ds.json. */
#include "predict/launch/formats.h"
#include "predict/launch/launch_reader.h"

#include <string.h>
#include <unistd.h>

/* True if the end of a path is that of a settings file. */
static bool is_settings_file(const char *path)
{
    static const char *const ends[] = {".yaml", ".yml", ".json", ".toml"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t size = strlen(path), end = strlen(ends[i]);
        if (size > end && strcmp(path + size - end, ends[i]) == 0)
            return true;
    }
    return false;
}

bool launch_remark_missing_file(struct launch *launch, const char *path, struct loc at)
{
    if (!is_settings_file(path))
        return false;
    launch_add_remark_printf(launch, REMARK_KNOWN_IN_RUN_ONLY, path, at,
                             "this file is not here: give it with --from");
    return true;
}

/* Does what launch_queue_named_file() does, for a path that may end in any way. */
static bool queue_file(struct launch *launch, const char *path, struct loc at)
{
    if (launch->script_folder == NULL)
        return false;
    const char *found = arena_text(&launch->arena, path, strlen(path));
    if (access(found, R_OK) != 0)
        found = arena_printf(&launch->arena, "%s/%s", launch->script_folder, path);
    if (access(found, R_OK) != 0)
        return false;
    for (size_t i = 0; i < launch->named_file_count; i++)
        if (strcmp(launch->files_named_by_script[i], found) == 0)
            return true;
    if (launch->named_file_count == ARRAY_LEN(launch->files_named_by_script))
        return false;
    launch->files_named_by_script[launch->named_file_count++] = found;
    launch_add_remark_printf(launch, REMARK_ASSUMED, path, at,
                             "this file is named here, and is read too; what names it counts more");
    return true;
}

bool launch_queue_named_file(struct launch *launch, const char *path, struct loc at)
{
    return path != NULL && is_settings_file(path) && queue_file(launch, path, at);
}

bool launch_queue_named_script(struct launch *launch, const char *path, struct loc at)
{
    return queue_file(launch, path, at);
}

/* True if the value of the argument with this name may be the path of a settings file. */
static bool argument_names_file(const char *name)
{
    static const char *const names[] = {
        "accelerate_config", "config",           "config_file", "config-file",
        "job.config_file",   "deepspeed_config", "deepspeed",   "deepspeed_config_file"};
    name += strspn(name, "-");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

void launch_queue_files_of_arguments(struct launch *launch, struct settings *settings)
{
    size_t kept = 0;
    for (size_t i = 0; i < settings->setting_count; i++) {
        const struct setting *setting = &settings->row[i];
        bool deepspeed = strcmp(setting->name, "--deepspeed") == 0 ||
                         strcmp(setting->name, "--deepspeed_config") == 0;
        bool named = argument_names_file(setting->name) &&
                     launch_queue_named_file(launch, setting->value, setting->place);
        if (!named || deepspeed) /* arguments of DeepSpeed stay: they tell programs apart */
            settings->row[kept++] = *setting;
    }
    settings->setting_count = kept;
}

/* Returns the format of the settings file at a path; NULL if it has no known format or cannot be read. */
static const struct launch_format *format_of_file(const struct launch *launch, const char *path)
{
    struct settings settings = {0};
    struct text text = {0};
    const char *end = strrchr(path, '.');
    enum status status = text_read_with_byte_limit(&text, path, TEXT_CONFIGURATION_BYTES_MAX, NULL);
    if (status == STATUS_OK && text.size > 0 && strcmp(end, ".json") == 0)
        status = settings_read_json(&settings, path, text.data, text.size, NULL);
    else if (status == STATUS_OK && text.size > 0 && strcmp(end, ".toml") == 0)
        status = settings_read_toml(&settings, path, text.data, text.size, NULL);
    else if (status == STATUS_OK && text.size > 0)
        status = settings_read_yaml(&settings, path, text.data, text.size, NULL);
    const struct launch_format *format =
        status == STATUS_OK ? launch_format_of_settings(launch, &settings) : NULL;
    settings_release(&settings);
    text_release(&text);
    return format;
}

const struct launch_format *launch_format_of_named_files(const struct launch *launch)
{
    for (size_t i = 0; i < launch->named_file_count; i++) {
        const struct launch_format *format =
            format_of_file(launch, launch->files_named_by_script[i]);
        if (format != NULL && format->framework != LAUNCH_FRAMEWORK_COUNT &&
            format->framework != LAUNCH_ACCELERATE && format->framework != LAUNCH_DEEPSPEED_JSON)
            return format;
    }
    return NULL;
}
