/* exec/number.h: converts element types to and from fp32 and fp64.
 *
 * bf16 and fp16 are stored as 16 bits and rounded to nearest, ties to even; NaN stays NaN. So are the 8-bit types e4m3
 * and e5m2, but what exceeds their largest number becomes that number. A processor without these types computes in fp32
 * and rounds what it stores. */
#ifndef EXEC_NUMBER_H
#define EXEC_NUMBER_H

#include "models/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Convert count elements of dtype (a floating-point type) to or from fp32. from and to may be the same array only if
 * dtype is F32. */
void number_to_f32(float *to, const void *from, enum dtype dtype, size_t count);
void number_from_f32(void *to, enum dtype dtype, const float *from, size_t count);

/* Returns the largest number of an 8- or 4-bit type. */
float number_largest(enum dtype dtype);
/* Returns the exponent, from -127 to 127, of the power of two by which numbers of at most amax are divided before they
 * are stored in a narrow dtype. down false: the least exponent with which none exceeds the type's largest number,
 * ceil(log2(amax / largest)), as in cuBLAS. down true: floor(log2(amax)) less the largest exponent of the type, as in
 * the OCP Microscaling specification; then numbers of up to 1.14 times the largest (in e4m3) become the largest. */
int number_scale_exponent(float amax, enum dtype dtype, bool down);

/* Returns the binary digits of a type's significand; 0: it is no floating-point type. */
int number_significand_bits(enum dtype dtype);
/* Returns the exponent of the smallest normal number: 2^exponent still has all digits. */
int number_min_exponent(enum dtype dtype);

/* Read or write element i of an array, also of DTYPE_I32. */
double number_get(const void *data, enum dtype dtype, uint64_t i);
void number_set(void *data, enum dtype dtype, uint64_t i, double value);

#endif
