/* Reads the values of settings: words that mean off, switches, numbers. */
#include "base/c_locale.h"
#include "predict/launch/launch_parts.h"

#include <string.h>

/* True if a value switches its setting off. */
static bool is_off_value(const char *value)
{
    static const char *const offs[] = {"false", "no", "none", "null", "0", "0.0", "", "off"};
    for (size_t i = 0; value != NULL && i < ARRAY_LEN(offs); i++)
        if (c_equal_ignoring_case(value, offs[i]))
            return true;
    return false;
}

bool launch_is_predicted_value(const char *usual, const char *value)
{
    size_t size = value == NULL ? 0 : strlen(value);
    if (usual == NULL)
        return value != NULL && is_off_value(value);
    for (const char *word = usual; word != NULL && size > 0; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (c_equal_ignoring_case_n(word, value, size) && (word[size] == '\0' || word[size] == ' '))
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
        if (c_equal_ignoring_case(value, ons[i]))
            return true;
    *on = 0;
    return is_off_value(value);
}

bool launch_parse_value(enum launch_kind kind, const char *text, struct launch_field_value *value)
{
    switch (kind) {
    case LAUNCH_WHOLE_NUMBER:
        if (text == NULL)
            return false;
        if (parse_i64(text, strlen(text), &value->whole_number)) {
            value->real_number = (double)value->whole_number;
            return value->whole_number >= -INT32_MAX && value->whole_number <= INT32_MAX;
        }
        if (!parse_double(text, strlen(text), &value->real_number) ||
            value->real_number > INT32_MAX || value->real_number < -INT32_MAX ||
            value->real_number != (double)(int64_t)value->real_number)
            return false;
        value->whole_number = (int64_t)value->real_number; /* 1e6 */
        return true;
    case LAUNCH_SWITCH:
        return parse_switch(text, &value->whole_number);
    case LAUNCH_ON_IF_GIVEN:
        value->whole_number = 1;
        return true;
    case LAUNCH_REAL_NUMBER:
        return text != NULL && parse_double(text, strlen(text), &value->real_number);
    case LAUNCH_TEXT:
        return text != NULL;
    }
    return false;
}
