/* tests/exec/emulator/numbers.h: converts 16- and 8-bit types for the emulated device, which is C++ and cannot include
 * exec/number.h. */
#ifndef TESTS_EXEC_EMULATOR_NUMBERS_H
#define TESTS_EXEC_EMULATOR_NUMBERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

float from_bf16(uint16_t bits);
uint16_t to_bf16(float x);
float from_f16(uint16_t bits);
uint16_t to_f16(float x);
float float_from_8_bits(uint8_t bits, int e5m2);

#ifdef __cplusplus
}
#endif
#endif
