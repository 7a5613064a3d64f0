#include "base/c_locale.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The object that newlocale() returns is not freed: for the C locale it is the same one in every call. */
locale_t c_locale_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void c_locale_leave(locale_t before)
{
    uselocale(before);
}

int c_vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    locale_t before = c_locale_enter();
    int written = vsnprintf(text, size, format, args);
    c_locale_leave(before);
    return written;
}

int c_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = c_vsnprintf(text, size, format, args);
    va_end(args);
    return written;
}

double c_strtod(const char *text, char **end)
{
    locale_t before = c_locale_enter();
    double value = strtod(text, end);
    c_locale_leave(before);
    return value;
}

bool c_equal_ignoring_case_n(const char *a, const char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (c_lower(a[i]) != c_lower(b[i]))
            return false;
        if (a[i] == '\0')
            break;
    }
    return true;
}

bool c_equal_ignoring_case(const char *a, const char *b)
{
    return c_equal_ignoring_case_n(a, b, SIZE_MAX);
}
