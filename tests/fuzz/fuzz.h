/* tests/fuzz/fuzz.h: the entry point of a fuzz target, as libFuzzer names it. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Hands data[0..size) to the parser. Returns 0; a fault ends the program. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
