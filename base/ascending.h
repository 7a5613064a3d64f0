/* base/ascending.h: comparisons for qsort() and bsearch() by which numbers ascend. */
#ifndef BASE_ASCENDING_H
#define BASE_ASCENDING_H

#include <stdint.h>

static inline int ascending_double(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline int ascending_i64(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static inline int ascending_u64(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

#endif
