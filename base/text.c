#include "base/text.h"

#include "base/arena.h"
#include "base/c_locale.h"
#include "base/decimal.h"
#include "base/gunzip.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t PASSED_ON = 1 << 18;
static const uint64_t FILE_LIMIT = UINT64_C(1) << 32;

void text_release(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

/* Makes room for size more bytes and the NUL. */
static void reserve(struct text *text, size_t size)
{
    size_t needed = text->size + size + 1;
    if (needed > text->capacity) {
        text->capacity = heap_next_capacity(text->capacity, needed);
        text->data = heap_realloc(text->data, text->capacity, 1);
    }
}

static const char *reason(void)
{
    return strerror(errno);
}

static enum status refuse_size(uint64_t limit, struct loc at, struct diag *diag)
{
    bool gibi = limit >> 30 > 0;
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "the file is larger than %llu %s, the most that is read",
                      (unsigned long long)(limit >> (gibi ? 30 : 20)), gibi ? "GiB" : "MiB");
}

static enum status read_all(struct text *text, int file, uint64_t limit, struct loc at,
                            struct diag *diag)
{
    for (;;) {
        reserve(text, 1 << 16);
        size_t room = text->capacity - text->size - 1;
        ssize_t got = read(file, text->data + text->size, room < SSIZE_MAX ? room : SSIZE_MAX);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_error(diag, at, STATUS_SYSTEM, "cannot read: %s", reason());
        if (got == 0)
            break;
        text->size += (size_t)got;
        if (text->size > limit)
            return refuse_size(limit, at, diag);
    }
    text->data[text->size] = '\0';
    return STATUS_OK;
}

/* Drops the mark that some editors write before UTF-8. */
static void drop_byte_order_mark(struct text *text)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t size = sizeof mark - 1;
    if (text->size < size || memcmp(text->data, mark, size) != 0)
        return;
    text->size -= size;
    memmove(text->data, text->data + size, text->size + 1);
}

enum status text_read_within(struct text *text, const char *path, uint64_t limit, struct diag *diag)
{
    bool standard = strcmp(path, "-") == 0;
    struct loc at = {.name = standard ? "standard input" : path};
    text_release(text);
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot open: %s", reason());
    enum status status = STATUS_OK;
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uint64_t)info.st_size > limit) {
            status = refuse_size(limit, at, diag);
            goto out;
        }
        reserve(text, (size_t)info.st_size + (1 << 16)); /* one growth, then the end is seen */
    }
    status = read_all(text, file, limit, at, diag);
    if (status == STATUS_OK && gunzip_recognise(text))
        status = gunzip(text, (size_t)limit, at, diag);
    if (status == STATUS_OK)
        drop_byte_order_mark(text);
out:
    if (!standard)
        close(file);
    if (status != STATUS_OK)
        text_release(text);
    return status;
}

enum status text_read(struct text *text, const char *path, struct diag *diag)
{
    return text_read_within(text, path, FILE_LIMIT, diag);
}

void text_pass_on(struct text *text)
{
    if (text->pass_on && text->size >= PASSED_ON)
        text->pass_on(text);
}

void text_append(struct text *text, const char *data, size_t size)
{
    reserve(text, size);
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
    reserve(text, (size_t)size);
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

/* Appends digits with a point after the first `whole`, if any are left then; if there are fewer, pads with zeros. */
static void put_digits(struct text *text, const char *digit, size_t count, size_t whole)
{
    text_append(text, digit, count < whole ? count : whole);
    for (size_t i = count; i < whole; i++)
        text_putc(text, '0');
    if (count > whole) {
        text_putc(text, '.');
        text_append(text, digit + whole, count - whole);
    }
}

/* Appends the number as %.15g does, or with as many digits as reading it back needs. */
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
        put_digits(text, digit, count, 1);
        text_printf(text, "e%+03d", exponent);
    } else if (exponent < 0) {
        text_append(text, "0.0000", (size_t)(1 - exponent));
        text_append(text, digit, count);
    } else {
        put_digits(text, digit, count, whole);
    }
}
