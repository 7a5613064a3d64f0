/* base/cursor.c: the cursor of base/text.h, and the reading of words as numbers. */
#include "base/text.h"

#include "base/c_locale.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct cursor cursor_make(const char *name, const char *data, size_t size)
{
    if (!data)
        data = ""; /* an empty struct text */
    return (struct cursor){
        .name = name, .at = data, .end = data + size, .line_first_char = data, .line = 1};
}

struct loc cursor_loc(const struct cursor *cursor)
{
    return (struct loc){.name = cursor->name,
                        .line = cursor->line,
                        .column = (uint32_t)(cursor->at - cursor->line_first_char) + 1};
}

/* True if c is a blank. The '\r' at the end of a line that was written on Windows is one. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void cursor_skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at))
        cursor->at++;
}

static bool is_line_end(const char *at, const char *end)
{
    return at == end || *at == '\n' || *at == '#';
}

bool cursor_at_line_end(const struct cursor *cursor)
{
    const char *at = cursor->at;
    while (at < cursor->end && is_blank(*at))
        at++;
    return is_line_end(at, cursor->end);
}

bool cursor_next_line(struct cursor *cursor)
{
    if (cursor->at == cursor->end)
        return false;
    const char *newline = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
    if (!newline) {
        cursor->at = cursor->end;
        return false;
    }
    cursor->at = cursor->line_first_char = newline + 1;
    cursor->line++;
    return cursor->at < cursor->end;
}

const char *cursor_next_word(struct cursor *cursor, size_t *size)
{
    cursor_skip_blanks(cursor);
    const char *word = cursor->at;
    while (!is_line_end(cursor->at, cursor->end) && !is_blank(*cursor->at))
        cursor->at++;
    *size = (size_t)(cursor->at - word);
    return word;
}

bool parse_u64(const char *word, size_t size, uint64_t *value)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        if (!c_is_digit(word[i]))
            return false;
        uint64_t digit = (uint64_t)(word[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return size > 0;
}

bool parse_i64(const char *word, size_t size, int64_t *value)
{
    bool negative = size > 0 && word[0] == '-';
    size_t sign = negative || (size > 0 && word[0] == '+');
    uint64_t absolute_value;
    if (!parse_u64(word + sign, size - sign, &absolute_value))
        return false;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    if (absolute_value > limit)
        return false;
    if (negative && absolute_value == limit)
        *value = INT64_MIN;
    else
        *value = negative ? -(int64_t)absolute_value : (int64_t)absolute_value;
    return true;
}

static size_t count_digits(const char *word, size_t size, size_t from)
{
    size_t i = from;
    while (i < size && c_is_digit(word[i]))
        i++;
    return i - from;
}

/* True if a word is a decimal number: [+-] digits [. digits] [e [+-] digits], with a digit on at least one side of the
 * point. Blanks, hexadecimal numbers, infinities and NaNs, which strtod() accepts, are refused. */
static bool is_decimal_number(const char *word, size_t size)
{
    size_t i = size > 0 && (word[0] == '-' || word[0] == '+');
    size_t whole = count_digits(word, size, i), fraction = 0;
    i += whole;
    if (i < size && word[i] == '.') {
        fraction = count_digits(word, size, i + 1);
        i += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (i < size && (word[i] == 'e' || word[i] == 'E')) {
        i++;
        if (i < size && (word[i] == '-' || word[i] == '+'))
            i++;
        size_t exponent = count_digits(word, size, i);
        if (exponent == 0)
            return false;
        i += exponent;
    }
    return i == size;
}

bool parse_double(const char *word, size_t size, double *value)
{
    char copy[1024]; /* holds the word and a NUL; a longer word is refused */
    if (size >= sizeof copy || !is_decimal_number(word, size))
        return false;
    memcpy(copy, word, size);
    copy[size] = '\0';
    char *end;
    double parsed = c_strtod(copy, &end);
    assert(end == copy + size); /* strtod() has read the whole word */
    if (!isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}
