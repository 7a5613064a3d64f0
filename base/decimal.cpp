#include "base/decimal.h"

#include <charconv>

size_t decimal_shortest(double value, char digits[DECIMAL_DIGITS], int *exponent)
{
    char text[DECIMAL_DIGITS + 8]; // "d.dddde-308"
    const char *end =
        std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
    size_t count = 0;
    const char *at = text;
    for (; *at != 'e'; at++)
        if (*at != '.')
            digits[count++] = *at;
    at++;
    std::from_chars(at + (*at == '+'), end, *exponent);
    return count;
}
