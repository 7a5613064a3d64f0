/* tests/predict/test_settings.c: the readers of TOML, YAML and JSON: which value a setting gets, and what is
 * refused. */
#include "predict/launch/settings.h"

#include "tests/check.h"

#include <string.h>

typedef enum status reader(struct settings *settings, const char *name, const char *text,
                           size_t size, struct diag *diag);

static const struct {
    const char *label;
    reader *read;
    const char *text, *value; /* of the setting "a" */
} values[] = {
    {"TOML", settings_read_toml, "a = 8192\n", "8192"},
    {"a '_' between digits", settings_read_toml, "a = 8_192\n", "8192"},
    {"zero", settings_read_toml, "a = 0\n", "0"},
    {"a sign", settings_read_toml, "a = +12\n", "12"},
    {"a fraction that begins with zero", settings_read_toml, "a = -0.5e-0_3\n", "-0.5e-03"},
    {"hexadecimal", settings_read_toml, "a = 0x2000\n", "8192"},
    {"octal of TOML", settings_read_toml, "a = 0o20_000\n", "8192"},
    {"binary", settings_read_toml, "a = 0b11\n", "3"},
    {"TOML in text", settings_read_toml, "a = \"08192\"\n", "08192"},
    {"YAML", settings_read_yaml, "a: 8192\n", "8192"},
    {"octal of YAML 1.1", settings_read_yaml, "a: 020000\n", "8192"},
    {"which is negative", settings_read_yaml, "a: -020\n", "-16"},
    {"no octal digit", settings_read_yaml, "a: 08192\n", "08192"},
    {"hexadecimal of YAML", settings_read_yaml, "a: 0x2000\n", "8192"},
    {"a '_' in YAML", settings_read_yaml, "a: 8_192\n", "8192"},
    {"YAML in quotes", settings_read_yaml, "a: '020000'\n", "020000"},
    {"octal in a sequence", settings_read_yaml, "a: [010, 9]\n", "8 9"},
    {"a name that begins with a sign", settings_read_yaml, "a: -x\n", "-x"},
    {"JSON", settings_read_json, "{\"a\": 8192}", "8192"},
};

static void a_number_is_read_as_its_format_says(void)
{
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct settings settings = {0};
        struct diag diag = {0};
        values[i].read(&settings, "f", values[i].text, strlen(values[i].text), &diag);
        const struct setting *a = settings_find(&settings, "a");
        CHECK_TEXT(values[i].label, diag.text, NULL);
        CHECK_TEXT(values[i].label, a == NULL ? NULL : a->value, values[i].value);
        settings_release(&settings);
        diag_release(&diag);
    }
}

#define MESSAGE_NO_TOML_NUMBER                                                                     \
    "f:1:5: error: this is no number of TOML: no 0 stands before other digits, and a '_' stands "  \
    "between two digits, as in 8_192\n"

static const struct {
    const char *label;
    reader *read;
    const char *text, *message;
} faults[] = {
    {"two '_'", settings_read_toml, "a = 8__192\n", MESSAGE_NO_TOML_NUMBER},
    {"a '_' at the end", settings_read_toml, "a = 8192_\n", MESSAGE_NO_TOML_NUMBER},
    {"a zero before", settings_read_toml, "a = 08192\n", MESSAGE_NO_TOML_NUMBER},
    {"a zero after a sign", settings_read_toml, "a = -08192\n", MESSAGE_NO_TOML_NUMBER},
    {"two '_' in octal", settings_read_toml, "a = 0o8__1\n", MESSAGE_NO_TOML_NUMBER},
    {"no octal digit", settings_read_toml, "a = 0o8\n", MESSAGE_NO_TOML_NUMBER},
    {"no digit after a point", settings_read_toml, "a = 1.\n", MESSAGE_NO_TOML_NUMBER},
    {"above all numbers", settings_read_toml, "a = 0x8000000000000000\n", MESSAGE_NO_TOML_NUMBER},
};

static void a_number_that_is_none_is_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct settings settings = {0};
        struct diag diag = {0};
        faults[i].read(&settings, "f", faults[i].text, strlen(faults[i].text), &diag);
        CHECK_TEXT(faults[i].label, diag.text, faults[i].message);
        settings_release(&settings);
        diag_release(&diag);
    }
}

/* Each text is 2 MB of opening brackets, for which libyaml would take minutes if it read them
 * all. */
static void deep_bracket_nesting_is_refused_fast(void)
{
    static const struct {
        const char *label, *begin, *level, *message;
        reader *read;
    } rows[] = {
        /* label, begin, level, message, read */
        {"sequences of YAML", "a: ", "[",
         "f:1: error: mappings and sequences are nested deeper than 32 levels, the most that are "
         "read\n",
         settings_read_yaml},
        {"mappings of YAML", "a: ", "{b: ",
         "f:1: error: mappings and sequences are nested deeper than 32 levels, the most that are "
         "read\n",
         settings_read_yaml},
        {"mappings in sequences", "a: [", "{b: [",
         "f:1: error: mappings and sequences are nested deeper than 32 levels, the most that are "
         "read\n",
         settings_read_yaml},
        {"arrays of TOML", "a = ", "[", "f:1:37: error: nested too deep\n", settings_read_toml},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct settings settings = {0};
        struct diag diag = {0};
        struct text text = {0};
        text_puts(&text, rows[i].begin);
        while (text.size < 2000000)
            text_puts(&text, rows[i].level);
        CHECK_INT(rows[i].label, rows[i].read(&settings, "f", text.data, text.size, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text, rows[i].message);
        text_release(&text);
        settings_release(&settings);
        diag_release(&diag);
    }
}

static void a_file_has_a_limited_number_of_settings(void)
{
    static const struct {
        const char *label, *begin, *each, *end;
        reader *read;
    } rows[] = {
        /* label, begin, each, end, read */
        {"TOML", "", "a%d = 1\n", "", settings_read_toml},
        {"YAML", "", "a%d: 1\n", "", settings_read_yaml},
        {"JSON", "{\"a\": 1", ", \"a%d\": 1", "}", settings_read_json},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct settings settings = {0};
        struct diag diag = {0};
        struct text text = {0};
        text_puts(&text, rows[i].begin);
        for (int k = 0; k <= SETTINGS_MAX; k++) {
            const char *number = strchr(rows[i].each, '%');
            text_append(&text, rows[i].each, (size_t)(number - rows[i].each));
            text_put_i64(&text, k);
            text_puts(&text, number + 2);
        }
        text_puts(&text, rows[i].end);
        CHECK_INT(rows[i].label, rows[i].read(&settings, "f", text.data, text.size, &diag),
                  STATUS_BAD_INPUT);
        CHECK(rows[i].label,
              diag.text != NULL && strstr(diag.text, "a launch file has at most 16384 settings\n"));
        text_release(&text);
        settings_release(&settings);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"a number is read as its format says", a_number_is_read_as_its_format_says},
    {"a number that is none is refused", a_number_that_is_none_is_refused},
    {"brackets nest a few levels", deep_bracket_nesting_is_refused_fast},
    {"a file has a limited number of settings", a_file_has_a_limited_number_of_settings},
};
CHECK_MAIN("settings", cases)
