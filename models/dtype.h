/* models/dtype.h: the types of elements, with their names and sizes. */
#ifndef MODELS_DTYPE_H
#define MODELS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum dtype { DTYPE_BF16, DTYPE_F16, DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_U8, DTYPE_COUNT };

const char *dtype_name(enum dtype dtype);
bool dtype_find(const char *name, size_t size, enum dtype *dtype);
size_t dtype_bytes(enum dtype dtype); /* Returns the bytes of one element. */

#endif
