/* base/decimal.h: the shortest decimal of a double. C++'s library has a function for it (std::to_chars), C's does
 * not. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stddef.h>

enum { DECIMAL_DIGITS = 17 };

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the shortest decimal d.ddd x 10^*exponent that reads back as `value`: its digits without the point to
 * `digits`, without a NUL, and its exponent to *exponent. If several decimals are equally short, it is the one nearest
 * to `value`. `value` must be finite and at least 0. Returns the number of digits. */
size_t decimal_shortest(double value, char digits[DECIMAL_DIGITS], int *exponent);

#ifdef __cplusplus
}
#endif

#endif
