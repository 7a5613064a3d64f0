/* Converts numbers by the functions of exec/number.h. */
#include "tests/exec/emulator/numbers.h"

#include "exec/number.h"

float from_bf16(uint16_t bits)
{
    float x;
    number_to_f32(&x, &bits, DTYPE_BF16, 1);
    return x;
}

uint16_t to_bf16(float x)
{
    uint16_t bits;
    number_from_f32(&bits, DTYPE_BF16, &x, 1);
    return bits;
}

float from_f16(uint16_t bits)
{
    float x;
    number_to_f32(&x, &bits, DTYPE_F16, 1);
    return x;
}

uint16_t to_f16(float x)
{
    uint16_t bits;
    number_from_f32(&bits, DTYPE_F16, &x, 1);
    return bits;
}

float float_from_8_bits(uint8_t bits, int e5m2)
{
    float x;
    number_to_f32(&x, &bits, e5m2 ? DTYPE_E5M2 : DTYPE_E4M3, 1);
    return x;
}
