#include "base/text.h"

#include "base/arena.h"
#include "base/c_locale.h"
#include "base/decimal.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* text_flush_to_file_if_long() writes a text of at least this many bytes to its file. */
static const size_t LONG_TEXT_BYTES = 1 << 18;

void text_release(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

void text_reserve(struct text *text, size_t size)
{
    size_t needed = text->size + size + 1;
    if (needed > text->capacity) {
        text->capacity = heap_next_capacity(text->capacity, needed);
        text->data = heap_realloc(text->data, text->capacity, 1);
    }
}

void text_flush_to_file_if_long(struct text *text)
{
    if (text->flush && text->size >= LONG_TEXT_BYTES)
        text->flush(text);
}

void text_append(struct text *text, const char *data, size_t size)
{
    text_reserve(text, size);
    if (size != 0)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_puts(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_putc(struct text *text, char c)
{
    text_append(text, &c, 1);
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = c_vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    text_reserve(text, (size_t)size);
    c_vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
    text->size += (size_t)size;
    va_end(again);
    va_end(args);
}

void text_put_i64(struct text *text, int64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        digits[--at] = '-';
    text_append(text, digits + at, sizeof digits - at);
}

/* Appends digit[0..count), with a point after the first `whole` digits if there are more. If there are fewer, adds
 * zeros until there are `whole`. */
static void append_digits(struct text *text, const char *digit, size_t count, size_t whole)
{
    text_append(text, digit, count < whole ? count : whole);
    for (size_t i = count; i < whole; i++)
        text_putc(text, '0');
    if (count > whole) {
        text_putc(text, '.');
        text_append(text, digit + whole, count - whole);
    }
}

/* Appends the number in the form of %.15g, but with the fewest digits that read back as the same
 * double, which may be 16 or 17. */
void text_put_double(struct text *text, double value)
{
    /* Whole numbers of up to 15 digits are common and print faster as integers. */
    if (fabs(value) < 1e15 && value == (double)(int64_t)value && !(value == 0 && signbit(value))) {
        text_put_i64(text, (int64_t)value);
        return;
    }
    if (!isfinite(value)) {
        text_printf(text, "%g", value);
        return;
    }
    char digit[DECIMAL_DIGITS];
    int exponent;
    size_t count = decimal_shortest(fabs(value), digit, &exponent);
    if (signbit(value))
        text_putc(text, '-');
    size_t whole = exponent < 0 ? 0 : (size_t)exponent + 1; /* digits before the point */
    if (exponent < -4 || whole > (count < 15 ? 15 : count)) {
        append_digits(text, digit, count, 1);
        text_printf(text, "e%+03d", exponent);
    } else if (exponent < 0) {
        text_append(text, "0.0000", (size_t)(1 - exponent));
        text_append(text, digit, count);
    } else {
        append_digits(text, digit, count, whole);
    }
}
