#include "exec/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_bf16(uint16_t half)
{
    return float_from_bits((uint32_t)half << 16);
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40); /* a quiet NaN */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 0x1f;
    uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f)
        return float_from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) { /* subnormal: mantissa * 2^-24 */
        float value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static uint16_t to_f16(float value)
{
    uint32_t bits = float_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) /* rounds to 65536 or more */
        return sign | 0x7c00u;
    if (magnitude < 0x38800000u) { /* subnormal: adding 0.5 aligns the bits to 2^-24 and rounds */
        uint32_t aligned = float_bits(float_from_bits(magnitude) + 0.5f);
        return (uint16_t)(sign | (aligned - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
}

/* An 8-bit floating-point type. */
struct narrow_float_format {
    int mantissa_bits, bias; /* bits of the mantissa; the exponent bits of the number 1 */
    float largest_finite;
};

static struct narrow_float_format narrow_float_format_of_dtype(enum dtype dtype)
{
    return dtype == DTYPE_E4M3 ? (struct narrow_float_format){3, 7, 448}
                               : (struct narrow_float_format){2, 15, 57344};
}

static float decode_narrow_float(struct narrow_float_format type, uint8_t code)
{
    const int bits = code & 0x7f, exponent = bits >> type.mantissa_bits;
    const int mantissa = bits & ((1 << type.mantissa_bits) - 1);
    float value = exponent == 0 ? ldexpf((float)mantissa, 1 - type.bias - type.mantissa_bits)
                                : ldexpf((float)(mantissa + (1 << type.mantissa_bits)),
                                         exponent - type.bias - type.mantissa_bits);
    if (value >
        type.largest_finite) /* codes above that of the largest number mean infinity or NaN */
        value = type.mantissa_bits == 2 && mantissa == 0 ? INFINITY : NAN;
    return code & 0x80 ? -value : value;
}

static uint8_t encode_narrow_float(struct narrow_float_format type, float value)
{
    const uint8_t sign = float_bits(value) >> 31 ? 0x80 : 0;
    float size = fabsf(value);
    if (isnan(value))
        return sign | 0x7f;
    if (size >= type.largest_finite)
        size = type.largest_finite;
    int exponent;
    frexpf(size, &exponent);
    exponent = size == 0 || exponent < 2 - type.bias ? 1 - type.bias : exponent - 1;
    /* The code counts the representable numbers below the value. The value is `steps` times the distance between the
     * codes around it; if it rounds up to the next power of two, the sum below is the code of that power. */
    float steps = nearbyintf(ldexpf(size, type.mantissa_bits - exponent));
    return (uint8_t)(sign | (((exponent + type.bias - 1) << type.mantissa_bits) + (int)steps));
}

float number_largest_finite(enum dtype dtype)
{
    return dtype == DTYPE_E2M1X2 ? 6 : narrow_float_format_of_dtype(dtype).largest_finite;
}

int number_scale_exponent(float amax, enum dtype dtype, bool down)
{
    const float most = number_largest_finite(dtype);
    int exponent, largest;
    if (!(amax > 0) || isinf(amax))
        return amax > 0 ? 127 : -127;
    if (down) {
        frexpf(amax, &exponent);
        frexpf(most, &largest);
        exponent -= largest;
    } else {
        /* amax / most is (part / of) 2^(exponent - largest), where part / of is between 1/2 and 2; its logarithm is
         * rounded up */
        const float part = frexpf(amax, &exponent), of = frexpf(most, &largest);
        exponent += (part > of) - largest;
    }
    return exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
}

void number_to_f32(float *to, const void *from, enum dtype dtype, size_t count)
{
    const uint16_t *half = from;
    const double *wide = from;
    switch (dtype) {
    case DTYPE_BF16:
        for (size_t i = 0; i < count; i++)
            to[i] = from_bf16(half[i]);
        return;
    case DTYPE_F16:
        for (size_t i = 0; i < count; i++)
            to[i] = from_f16(half[i]);
        return;
    case DTYPE_F32:
        memmove(to, from, count * sizeof *to);
        return;
    case DTYPE_F64:
        for (size_t i = 0; i < count; i++)
            to[i] = (float)wide[i];
        return;
    case DTYPE_E4M3:
    case DTYPE_E5M2:
        for (size_t i = 0; i < count; i++)
            to[i] = decode_narrow_float(narrow_float_format_of_dtype(dtype),
                                        ((const uint8_t *)from)[i]);
        return;
    case DTYPE_E8M0:
        for (size_t i = 0; i < count; i++)
            to[i] = ((const uint8_t *)from)[i] == 255 ? NAN
                                                      : ldexpf(1, ((const uint8_t *)from)[i] - 127);
        return;
    default:
        assert(!"a floating-point type");
    }
}

void number_from_f32(void *to, enum dtype dtype, const float *from, size_t count)
{
    uint16_t *half = to;
    double *wide = to;
    switch (dtype) {
    case DTYPE_BF16:
        for (size_t i = 0; i < count; i++)
            half[i] = to_bf16(from[i]);
        return;
    case DTYPE_F16:
        for (size_t i = 0; i < count; i++)
            half[i] = to_f16(from[i]);
        return;
    case DTYPE_F32:
        memmove(to, from, count * sizeof *from);
        return;
    case DTYPE_F64:
        for (size_t i = 0; i < count; i++)
            wide[i] = from[i];
        return;
    case DTYPE_E4M3:
    case DTYPE_E5M2:
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)to)[i] = encode_narrow_float(narrow_float_format_of_dtype(dtype), from[i]);
        return;
    case DTYPE_E8M0: /* rounded up, so that what is divided by it does not grow */
        for (size_t i = 0; i < count; i++) {
            int exponent;
            float part = frexpf(from[i], &exponent);
            ((uint8_t *)to)[i] = (uint8_t)(exponent + 127 - (part == 0.5f));
        }
        return;
    default:
        assert(!"a floating-point type");
    }
}

double number_read_element(const void *data, enum dtype dtype, uint64_t i)
{
    if (dtype == DTYPE_I32)
        return ((const int32_t *)data)[i];
    if (dtype == DTYPE_F64)
        return ((const double *)data)[i];
    float value;
    number_to_f32(&value, (const char *)data + i * dtype_bytes(dtype), dtype, 1);
    return value;
}

void number_write_element(void *data, enum dtype dtype, uint64_t i, double value)
{
    if (dtype == DTYPE_I32) {
        ((int32_t *)data)[i] = (int32_t)value;
    } else if (dtype == DTYPE_F64) {
        ((double *)data)[i] = value;
    } else {
        float narrow = (float)value;
        number_from_f32((char *)data + i * dtype_bytes(dtype), dtype, &narrow, 1);
    }
}

int number_significand_bits(enum dtype dtype)
{
    static const int significand_digits[DTYPE_COUNT] = {
        [DTYPE_BF16] = 8, [DTYPE_F16] = 11, [DTYPE_F32] = 24,
        [DTYPE_F64] = 53, [DTYPE_E4M3] = 4, [DTYPE_E5M2] = 3};
    return significand_digits[dtype];
}

int number_min_exponent(enum dtype dtype)
{
    return dtype == DTYPE_F16 ? -14 : dtype == DTYPE_F64 ? -1022 : -126;
}
