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
    DTYPE_E5M2, /* 8 bits, 57344 at most (OCP 8-bit Floating Point Specification) */
    /* a byte with two numbers of 4 bits, the first in the low half; each is 6 at most (OCP Microscaling Formats) */
    DTYPE_E2M1X2,
    /* the scale of a block, a power of two: 2^(byte - 127) (OCP Microscaling Formats) */
    DTYPE_E8M0,
    DTYPE_COUNT
};

extern const char *const dtype_names[DTYPE_COUNT];
const char *dtype_name(enum dtype dtype);
bool dtype_find(const char *name, size_t size, enum dtype *dtype);
size_t dtype_bytes(enum dtype dtype); /* Returns the bytes of one element. */
/* True if a step may compute in the type: bf16, f16, f32 or f64. */
bool dtype_is_compute_type(enum dtype dtype);
/* True for the types of 8- and 4-bit operands (E4M3, E5M2, E2M1X2), false for those of scales and all others. */
bool dtype_is_narrow(enum dtype dtype);

#endif
