/* tests/exec/test_number.c: numbers are rounded to the types of 16 and 32 bits as their formats say, and numbers of 16
 * bits come back from fp32. */
#include "exec/number.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *label;
    enum dtype dtype;
    double from, to;
} roundings[] = {
    {"bf16: exact", DTYPE_BF16, 1.5, 1.5},
    {"bf16: 8 bits of mantissa", DTYPE_BF16, 1.00390625, 1},
    {"bf16: a tie goes to even", DTYPE_BF16, 1.01171875, 1.015625},
    {"bf16: above a tie goes up", DTYPE_BF16, 1.0039064, 1.0078125},
    {"bf16: large", DTYPE_BF16, 3e38, 3.0040553e38},
    {"bf16: rounds to infinity", DTYPE_BF16, 3.4e38, INFINITY},
    {"bf16: minus infinity", DTYPE_BF16, -INFINITY, -INFINITY},
    {"f16: exact", DTYPE_F16, -0.333251953, -0.333251953},
    {"f16: a tie goes to even", DTYPE_F16, 2049, 2048},
    {"f16: a tie goes to even, up", DTYPE_F16, 2051, 2052},
    {"f16: largest", DTYPE_F16, 65504, 65504},
    {"f16: beyond", DTYPE_F16, 65520, INFINITY},
    {"f16: smallest", DTYPE_F16, 5.9604645e-8, 5.9604645e-8},
    {"f16: half of that goes to 0", DTYPE_F16, 2.9802322e-8, 0},
    {"f16: subnormal", DTYPE_F16, -3.0517578e-5, -3.0517578e-5},
    {"f16: subnormal becomes normal", DTYPE_F16, 6.1035156e-5, 6.1035156e-5},
    {"f32", DTYPE_F32, 0.1, 0.1f},
    {"f64", DTYPE_F64, 0.1, 0.1},
    {"i32", DTYPE_I32, -7, -7},
};

static void numbers_round_to_nearest_even(void)
{
    for (size_t i = 0; i < ARRAY_LEN(roundings); i++) {
        double memory[2] = {0};
        number_write_element(memory, roundings[i].dtype, 1, roundings[i].from);
        double got = number_read_element(memory, roundings[i].dtype, 1);
        if (isinf(roundings[i].to))
            CHECK(roundings[i].label, got == roundings[i].to);
        else
            CHECK_CLOSE(roundings[i].label, got, roundings[i].to, 1e-5);
    }
}

/* Every 16-bit pattern that is a number is unchanged by a conversion to f32 and back. */
static void all_16_bit_numbers_convert_back(void)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_F16};
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        uint32_t changed = 0;
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t half = (uint16_t)bits, back;
            float value;
            number_to_f32(&value, &half, types[t], 1);
            number_from_f32(&back, types[t], &value, 1);
            float again;
            number_to_f32(&again, &back, types[t], 1);
            changed += isnan(value) ? !isnan(again) : back != half;
        }
        CHECK_INT(dtype_name(types[t]), changed, 0);
    }
}

/* Checks number_significand_bits() and number_min_exponent(): 1 and a bit more or less than half the distance to the
 * next number round up or down, and numbers below the least normal one lose digits. */
static void significand_bits_match_rounding(void)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        double place[1], half = ldexp(1, -number_significand_bits(types[t]));
        double low = ldexp(1, number_min_exponent(types[t]));
        number_write_element(place, types[t], 0, 1 + 1.01 * half);
        CHECK(dtype_name(types[t]), number_read_element(place, types[t], 0) == 1 + 2 * half);
        number_write_element(place, types[t], 0, 1 + 0.99 * half);
        CHECK(dtype_name(types[t]), number_read_element(place, types[t], 0) == 1);
        number_write_element(place, types[t], 0, low * (1 + 2 * half));
        CHECK(dtype_name(types[t]),
              number_read_element(place, types[t], 0) == low * (1 + 2 * half));
        number_write_element(place, types[t], 0, low * (0.5 + half));
        CHECK(dtype_name(types[t]), number_read_element(place, types[t], 0) != low * (0.5 + half));
    }
    CHECK_INT("i32", number_significand_bits(DTYPE_I32), 0);
}

static const struct check_case cases[] = {
    {"numbers round to nearest even", numbers_round_to_nearest_even},
    {"all halves come back", all_16_bit_numbers_convert_back},
    {"digits are those of rounding", significand_bits_match_rounding},
};
CHECK_MAIN("number", cases)
