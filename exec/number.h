/* exec/number.h: element types to and from fp32 and fp64.
 *
 * bf16 and fp16 are stored as 16 bits and rounded to nearest, ties to even; NaN stays NaN. A
 * processor without these types computes in fp32 and rounds what it stores. */
#ifndef EXEC_NUMBER_H
#define EXEC_NUMBER_H

#include "models/work.h"

#include <stddef.h>
#include <stdint.h>

/* count elements of dtype (a floating-point type) to or from fp32. In place is not allowed unless dtype is
 * F32. */
void number_to_f32(float *to, const void *from, enum dtype dtype, size_t count);
void number_from_f32(void *to, enum dtype dtype, const float *from, size_t count);

/* Binary digits of a significand; 0: the type is no floating-point one. */
int number_digits(enum dtype dtype);
/* The least exponent of numbers with all these digits: 2^exponent is the least of them. */
int number_lowest(enum dtype dtype);

/* One element, also of DTYPE_I32. */
double number_get(const void *data, enum dtype dtype, uint64_t i);
void number_set(void *data, enum dtype dtype, uint64_t i, double value);

#endif
