/* base/saturating.h: products that stay at the largest number instead of overflowing. Sizes in a schedule that is not
 * verified yet may be so large that their products overflow. */
#ifndef BASE_SATURATING_H
#define BASE_SATURATING_H

#include <stdint.h>

/* Returns the product x y, or INT64_MAX if it is larger. x and y are at least 0. */
static inline int64_t saturating_product(int64_t x, int64_t y)
{
    int64_t product;
    return __builtin_mul_overflow(x, y, &product) ? INT64_MAX : product;
}

#endif
