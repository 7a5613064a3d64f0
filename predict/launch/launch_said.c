/* Reads and sets single fields. A field is set if a setting gives or implies it, or if it follows from other fields. */
#include "predict/launch/launch_parts.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <string.h>

bool launch_has_field(const struct launch *launch, enum launch_field field)
{
    return launch->field_value[field].is_given;
}

int64_t launch_count_or(const struct launch *launch, enum launch_field field, int64_t otherwise)
{
    return launch_has_field(launch, field) ? launch->field_value[field].whole_number : otherwise;
}

double launch_number_or(const struct launch *launch, enum launch_field field, double otherwise)
{
    return launch_has_field(launch, field) ? launch->field_value[field].real_number : otherwise;
}

bool launch_is_on(const struct launch *launch, enum launch_field field)
{
    return launch_count_or(launch, field, 0) != 0;
}

const char *launch_field_text(const struct launch *launch, enum launch_field field)
{
    return launch->field_value[field].text;
}

bool launch_field_text_is(const struct launch *launch, enum launch_field field, const char *text)
{
    return launch_has_field(launch, field) &&
           c_equal_ignoring_case(launch->field_value[field].text, text);
}

void launch_set_count(struct launch *launch, enum launch_field field, int64_t count)
{
    launch->field_value[field] = (struct launch_field_value){
        .is_given = true,
        .whole_number = count,
        .real_number = (double)count,
        .text = arena_printf(&launch->arena, "%lld", (long long)count),
    };
}

void launch_set_number(struct launch *launch, enum launch_field field, double number)
{
    launch->field_value[field] =
        (struct launch_field_value){.is_given = true,
                                    .real_number = number,
                                    .text = arena_printf(&launch->arena, "%g", number)};
}

void launch_set_text(struct launch *launch, enum launch_field field, const char *text)
{
    launch->field_value[field] = (struct launch_field_value){
        .is_given = true, .text = arena_text(&launch->arena, text, strlen(text))};
}

void launch_set_count_unless_given(struct launch *launch, enum launch_field field, int64_t count)
{
    if (!launch_has_field(launch, field))
        launch_set_count(launch, field, count);
}

void launch_set_text_unless_given(struct launch *launch, enum launch_field field, const char *text)
{
    if (!launch_has_field(launch, field))
        launch_set_text(launch, field, text);
}
