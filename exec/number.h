/* exec/number.h: converts element types to and from fp32 and fp64.
 *
 * bf16, fp16 and the 8-bit types e4m3 and e5m2 are rounded to nearest, ties to even. NaN stays NaN. A number beyond the
 * largest one becomes infinite in bf16 and fp16, and the largest number in e4m3 and e5m2. e8m0, a power of two, is
 * rounded up. The CPU computes in fp32 and rounds what it stores in these types. */
#ifndef EXEC_NUMBER_H
#define EXEC_NUMBER_H

#include "models/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* number_to_f32() converts `count` elements of dtype, a floating-point type other than e2m1x2, to fp32, and
 * number_from_f32() converts back. from and to may be the same array only if dtype is F32. */
void number_to_f32(float *to, const void *from, enum dtype dtype, size_t count);
void number_from_f32(void *to, enum dtype dtype, const float *from, size_t count);

/* Returns the largest number of an 8- or 4-bit type. */
float number_largest_finite(enum dtype dtype);
/* Returns an exponent e from -127 to 127: numbers of at most amax in size are divided by 2^e before they are stored in
 * a narrow dtype. If down is false, e is ceil(log2(amax / largest number of the dtype)), as in cuBLAS: the least
 * exponent with which no number exceeds the largest. If down is true, e is floor(log2(amax)) less the largest exponent
 * of the dtype, as in the OCP Microscaling specification; numbers may then exceed the largest by up to a factor of 1.14
 * (in e4m3), and become the largest. For amax 0 or NaN it is -127, for an infinite amax 127. */
int number_scale_exponent(float amax, enum dtype dtype, bool down);

/* Returns the binary digits of a type's significand; 0 for integers, e8m0 and e2m1x2. */
int number_significand_bits(enum dtype dtype);
/* Returns the exponent of the smallest normal number of a 16-, 32- or 64-bit type, below which numbers have fewer
 * digits. */
int number_min_exponent(enum dtype dtype);

/* number_read_element() reads element i of an array, and number_write_element() writes it; dtype may also be
 * DTYPE_I32. */
double number_read_element(const void *data, enum dtype dtype, uint64_t i);
void number_write_element(void *data, enum dtype dtype, uint64_t i, double value);

#endif
