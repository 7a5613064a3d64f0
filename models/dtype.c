#include "models/dtype.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

const char *const dtype_names[DTYPE_COUNT] = {
    [DTYPE_BF16] = "bf16",     [DTYPE_F16] = "f16",   [DTYPE_F32] = "f32",   [DTYPE_F64] = "f64",
    [DTYPE_I32] = "i32",       [DTYPE_U8] = "u8",     [DTYPE_E4M3] = "e4m3", [DTYPE_E5M2] = "e5m2",
    [DTYPE_E2M1X2] = "e2m1x2", [DTYPE_E8M0] = "e8m0",
};

static const uint8_t sizes[DTYPE_COUNT] = {
    [DTYPE_BF16] = 2, [DTYPE_F16] = 2,  [DTYPE_F32] = 4,  [DTYPE_F64] = 8,    [DTYPE_I32] = 4,
    [DTYPE_U8] = 1,   [DTYPE_E4M3] = 1, [DTYPE_E5M2] = 1, [DTYPE_E2M1X2] = 1, [DTYPE_E8M0] = 1,
};

const char *dtype_name(enum dtype dtype)
{
    assert(dtype < DTYPE_COUNT);
    return dtype_names[dtype];
}

bool dtype_find(const char *name, size_t size, enum dtype *dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strlen(dtype_names[i]) == size && memcmp(dtype_names[i], name, size) == 0) {
            *dtype = (enum dtype)i;
            return true;
        }
    return false;
}

size_t dtype_bytes(enum dtype dtype)
{
    assert(dtype < DTYPE_COUNT);
    return sizes[dtype];
}

bool dtype_is_compute_type(enum dtype dtype)
{
    return dtype <= DTYPE_F64;
}

bool dtype_is_narrow(enum dtype dtype)
{
    return dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2 || dtype == DTYPE_E2M1X2;
}
