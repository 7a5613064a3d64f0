/* Adds remarks on settings, reports errors in settings, and adds the options that fields become. */
#include "predict/launch/launch_parts.h"

#include "base/c_locale.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void launch_add_remark(struct launch *launch, struct launch_remark remark)
{
    launch->remark = heap_grow(launch->remark, &launch->remark_capacity, launch->remark_count + 1,
                               sizeof *launch->remark);
    launch->remark[launch->remark_count++] = remark;
}

static const char *format_text(struct launch *launch, const char *format, va_list args)
{
    char text[512];
    c_vsnprintf(text, sizeof text, format, args);
    return arena_text(&launch->arena, text, strlen(text));
}

void launch_add_remark_printf(struct launch *launch, enum launch_remark_kind kind, const char *name,
                              struct loc at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    launch_add_remark(launch,
                      (struct launch_remark){kind, arena_text(&launch->arena, name, strlen(name)),
                                             format_text(launch, format, args), at});
    va_end(args);
}

void launch_remark_on_field(struct launch *launch, enum launch_remark_kind kind,
                            enum launch_field field, const char *format, ...)
{
    const struct launch_field_value *value = &launch->field_value[field];
    va_list args;
    va_start(args, format);
    launch_add_remark(
        launch, (struct launch_remark){
                    kind, arena_printf(&launch->arena, "%s %s", value->setting_name, value->text),
                    format_text(launch, format, args), value->place});
    va_end(args);
}

enum status launch_field_error(const struct launch *launch, enum launch_field field,
                               struct diag *diag, const char *format, ...)
{
    const struct launch_field_value *value = &launch->field_value[field];
    char text[512];
    va_list args;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (value->setting_name == NULL)
        return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT, "%s", text);
    return diag_error(diag, value->place, STATUS_BAD_INPUT, "%s: %s", value->setting_name, text);
}

enum status launch_check_text_is_one_of(const struct launch *launch, enum launch_field field,
                                        const char *words, struct diag *diag)
{
    if (!launch_has_field(launch, field) ||
        launch_is_predicted_value(words, launch_field_text(launch, field)))
        return STATUS_OK;
    return launch_field_error(launch, field, diag, "'%.60s' is none of: %s",
                              launch_field_text(launch, field), words);
}

bool launch_has_option(const struct launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->option_count; i++)
        if (strcmp(launch->option[i].name, name) == 0)
            return true;
    return false;
}

void launch_add_option(struct launch *launch, enum launch_field field, const char *name,
                       const char *value)
{
    assert(launch->option_count < LAUNCH_OPTIONS_MAX && !launch_has_option(launch, name));
    launch->option[launch->option_count++] = (struct launch_option){
        .name = name,
        .value = value == NULL ? NULL : arena_text(&launch->arena, value, strlen(value)),
        .place = field < LAUNCH_FIELD_COUNT ? launch->field_value[field].place : (struct loc){0},
    };
}

void launch_add_count_option(struct launch *launch, enum launch_field field, const char *name,
                             int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    launch_add_option(launch, field, name, text);
}
