/* Reads and sets single fields. A field is said if a file gives it; a field that is implied is said, too. */
#include "predict/launch/launch_parts.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <string.h>

bool launch_said(const struct launch *launch, enum launch_field field)
{
    return launch->value[field].is_given;
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
    return launch_said(launch, field) && c_equal_ignoring_case(launch->value[field].text, text);
}

void launch_say_count(struct launch *launch, enum launch_field field, int64_t count)
{
    launch->value[field] = (struct launch_value){
        .is_given = true,
        .count = count,
        .number = (double)count,
        .text = arena_printf(&launch->arena, "%lld", (long long)count),
    };
}

void launch_say_number(struct launch *launch, enum launch_field field, double number)
{
    launch->value[field] = (struct launch_value){
        .is_given = true, .number = number, .text = arena_printf(&launch->arena, "%g", number)};
}

void launch_say_text(struct launch *launch, enum launch_field field, const char *text)
{
    launch->value[field] = (struct launch_value){
        .is_given = true, .text = arena_text(&launch->arena, text, strlen(text))};
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
