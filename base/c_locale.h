/* base/c_locale.h: numbers and letters as the C locale has them, whatever locale the calling program has set.
 *
 * A program that links this library may have called setlocale(). printf() and strtod() of the C library then use the
 * decimal point of that locale, and isalpha() and its relatives use its letters. Our files, figures and messages have a
 * point and ASCII names in every locale, so the functions of the C library that depend on the locale are called in
 * c_locale.c only; the test `locale_calls` looks for others. Reasons of the operating system (strerror()) stay in the
 * caller's language. */
#ifndef BASE_C_LOCALE_H
#define BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* c_locale_enter() makes the calling thread use the C locale, and returns the locale that it used before.
 * c_locale_leave() restores that one. */
locale_t c_locale_enter(void);
void c_locale_leave(locale_t before);

/* snprintf(), vsnprintf() and strtod() with a decimal point. */
int c_snprintf(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int c_vsnprintf(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
double c_strtod(const char *text, char **end);

static inline bool c_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool c_is_hex(char c)
{
    return c_is_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

static inline bool c_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool c_is_alpha(char c)
{
    return c_is_upper(c) || (c >= 'a' && c <= 'z');
}

static inline bool c_is_alnum(char c)
{
    return c_is_alpha(c) || c_is_digit(c);
}

/* True if c is a blank, a tab, or a character that ends a line or a page. */
static inline bool c_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline char c_lower(char c)
{
    return (char)(c_is_upper(c) ? c - 'A' + 'a' : c);
}

static inline char c_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* True if two texts, or their first `size` bytes, are equal when upper and lower case of ASCII letters count as
 * equal. */
bool c_equal_ignoring_case(const char *a, const char *b);
bool c_equal_ignoring_case_n(const char *a, const char *b, size_t size);

#endif
