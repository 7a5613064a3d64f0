/* base/decimal.h: the shortest decimal of a double, which C++'s library finds (std::to_chars) and C's cannot. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stddef.h>

enum { DECIMAL_DIGITS = 17 };

#ifdef __cplusplus
extern "C" {
#endif

/* The fewest digits d that read back as the same double, d.ddd x 10^exponent, the nearest to it of those;
 * returns how many. value: finite, at least 0. */
size_t decimal_shortest(double value, char digits[DECIMAL_DIGITS], int *exponent);

#ifdef __cplusplus
}
#endif

#endif
