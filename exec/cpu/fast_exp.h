/* exec/cpu/fast_exp.h: exp() in fp32 that compilers can vectorise.
 *
 * With x = n ln 2 + r and |r| <= ln 2 / 2, exp(x) = 2^n exp(r). exp(r) is computed by its Taylor polynomial of degree
 * 7, whose error there is below 2^-27. The relative error of the result is below 2e-7. For x below -87 the result is
 * about 1e-38; x above 88 counts as 88. x must be neither NaN nor infinite. */
#ifndef EXEC_CPU_FAST_EXP_H
#define EXEC_CPU_FAST_EXP_H

#include <stdint.h>

/* Turns off GCC's jump threading. It would make a second copy of the code after a clamped exponential, for the constant
 * of the clamp. Vectorised code computes both copies for every element, and the products near 1e-38 of the second one
 * are denormal and ten times slower. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif

static inline float fast_exp(float x)
{
    /* 1.5 * 2^23: a sum with it is rounded to a whole number, which stands in the low bits of the sum */
    const float round = 12582912.0f;
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    union {
        float value;
        uint32_t bits;
    } n = {x * 1.44269504f + round}, power;
    float whole = n.value - round;
    float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f; /* ln 2 in two parts */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    power.bits = (n.bits << 23) + 0x3f800000u;
    return p * power.value;
}

#endif
