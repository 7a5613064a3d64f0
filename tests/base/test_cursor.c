/* tests/base/test_cursor.c: words and numbers of a text are read with the place at which they stand. */
#include "base/text.h"
#include "tests/check.h"

#include <string.h>

/* Writes every word as line:column:word, and a '|' at the end of each line of the text. */
static void write_words_with_positions(struct text *out, const char *data)
{
    struct cursor cursor = cursor_make("t", data, strlen(data));
    do {
        size_t size;
        while (!cursor_at_line_end(&cursor)) {
            cursor_skip_blanks(&cursor);
            struct loc at = cursor_loc(&cursor);
            const char *word = cursor_next_word(&cursor, &size);
            text_printf(out, "%u:%u:%.*s ", (unsigned)at.line, (unsigned)at.column, (int)size,
                        word);
        }
        cursor_next_word(&cursor, &size);
        CHECK_INT("no word at the end of a line", (int64_t)size, 0);
        text_putc(out, '|');
    } while (cursor_next_line(&cursor));
}

static void cursor_words_have_line_and_column(void)
{
    static const struct {
        const char *label, *data, *want;
    } rows[] = {
        {"empty", "", "|"},
        {"one word", "a", "1:1:a |"},
        {"line end", "a\n", "1:1:a |"},
        {"empty lines", "\n\na", "||3:1:a |"},
        {"blanks, tabs", "  ab\tc ", "1:3:ab 1:6:c |"},
        {"comment", "a # b\nc#d\n# e", "1:1:a |2:1:c ||"},
        {"windows", "a b\r\nc\r\n", "1:1:a 1:3:b |2:1:c |"},
        {"punctuation", "x=[1,2] y", "1:1:x=[1,2] 1:9:y |"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text out = {0};
        write_words_with_positions(&out, rows[i].data);
        CHECK_TEXT(rows[i].label, out.data, rows[i].want);
        text_release(&out);
    }
    struct cursor none = cursor_make("t", NULL, 0);
    CHECK("no text at all", cursor_at_line_end(&none) && !cursor_next_line(&none));
}

static void integers_are_whole_words_in_range(void)
{
    static const struct {
        const char *word;
        bool is_i64;
        int64_t i64;
        bool is_u64;
        uint64_t u64;
    } rows[] = {
        /* word, is_i64, i64, is_u64, u64 */
        {"0", true, 0, true, 0},
        {"00012", true, 12, true, 12},
        {"-12", true, -12, false, 0},
        {"+12", true, 12, false, 0},
        {"9223372036854775807", true, INT64_MAX, true, INT64_MAX},
        {"9223372036854775808", false, 0, true, UINT64_C(1) << 63},
        {"-9223372036854775808", true, INT64_MIN, false, 0},
        {"-9223372036854775809", false, 0, false, 0},
        {"18446744073709551615", false, 0, true, UINT64_MAX},
        {"18446744073709551616", false, 0, false, 0},
        {"", false, 0, false, 0},
        {"-", false, 0, false, 0},
        {"1 ", false, 0, false, 0},
        {"1x", false, 0, false, 0},
        {"0x10", false, 0, false, 0},
        {"--1", false, 0, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t i64 = 0;
        uint64_t u64 = 0;
        const char *word = rows[i].word;
        CHECK(word, parse_i64(word, strlen(word), &i64) == rows[i].is_i64);
        CHECK_INT(word, i64, rows[i].i64);
        CHECK(word, parse_u64(word, strlen(word), &u64) == rows[i].is_u64);
        CHECK(word, u64 == rows[i].u64);
    }
}

static void doubles_are_plain_decimals(void)
{
    static const struct {
        const char *word;
        bool holds;
        double value;
    } rows[] = {
        {"1.5", true, 1.5},    {"-2e3", true, -2000}, {"+.5", true, 0.5},  {"5.", true, 5},
        {"1E-3", true, 0.001}, {"1e-999", true, 0},   {"1e999", false, 0}, {"", false, 0},
        {".", false, 0},       {"e5", false, 0},      {"1e", false, 0},    {"1e+", false, 0},
        {"0x10", false, 0},    {"inf", false, 0},     {"nan", false, 0},   {" 1", false, 0},
        {"1 ", false, 0},      {"1.2.3", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double value = 0;
        const char *word = rows[i].word;
        CHECK(word, parse_double(word, strlen(word), &value) == rows[i].holds);
        CHECK_CLOSE(word, value, rows[i].value, 0);
    }
    double value;
    char digits[2000];
    memset(digits, '1', sizeof digits);
    CHECK("2000 digits", !parse_double(digits, sizeof digits, &value));
    CHECK("a part of a text", parse_double("12345", 2, &value) && value == 12);
}

static const struct check_case cases[] = {
    {"words know their place", cursor_words_have_line_and_column},
    {"integers fill their word and fit", integers_are_whole_words_in_range},
    {"doubles are plain decimals", doubles_are_plain_decimals},
};
CHECK_MAIN("cursor", cases)
