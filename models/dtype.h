/* models/dtype.h: the types of elements, with their names and sizes. */
#ifndef MODELS_DTYPE_H
#define MODELS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum dtype {
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_I32,
    DTYPE_U8,
    DTYPE_E4M3, /* 8 bits, 448 at most, without infinities (OCP 8-bit Floating Point Specification) */
    DTYPE_E5M2, /* 8 bits, 57344 at most (the same) */
    DTYPE_E2M1X2, /* two numbers of 4 bits, 6 at most, the first in the low half (OCP Microscaling Formats) */
    DTYPE_E8M0, /* a power of two, 2^(byte - 127): the scale of a block (the same) */
    DTYPE_COUNT
};

const char *dtype_name(enum dtype dtype);
bool dtype_find(const char *name, size_t size, enum dtype *dtype);
size_t dtype_bytes(enum dtype dtype); /* Returns the bytes of one element. */
/* True of the types in which a step may compute: bf16, f16, f32, f64. */
bool dtype_computes(enum dtype dtype);
/* True of the types of 8- and 4-bit operands, not of scales. */
bool dtype_is_narrow(enum dtype dtype);

#endif
