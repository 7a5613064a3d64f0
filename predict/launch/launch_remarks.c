/* Remarks on settings, faults of settings, and the options that fields become. */
#include "predict/launch/launch_parts.h"

#include "base/c_locale.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void launch_add_remark(struct launch *launch, struct launch_remark remark)
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
    launch_add_remark(launch,
                      (struct launch_remark){kind, arena_text(&launch->arena, name, strlen(name)),
                                             format_text(launch, format, args), at});
    va_end(args);
}

void launch_remark_on(struct launch *launch, enum launch_remark_kind kind, enum launch_field field,
                      const char *format, ...)
{
    const struct launch_value *value = &launch->value[field];
    va_list args;
    va_start(args, format);
    launch_add_remark(launch,
                      (struct launch_remark){
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
