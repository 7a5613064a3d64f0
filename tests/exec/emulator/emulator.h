/* tests/exec/emulator/emulator.h: a device for tests of the CUDA backend on machines without one. */
#ifndef TESTS_EXEC_EMULATOR_EMULATOR_H
#define TESTS_EXEC_EMULATOR_EMULATOR_H

#include <cublasLt.h> /* before what follows, since it has templates for C++ */

#ifdef __cplusplus
extern "C" {
#endif

#include "exec/cuda/library.h"

/* The backend's products are the emulator's from now on. */
void emulator_use(void);

extern int emulator_devices;   /* how many GPUs there seem to be */
extern size_t emulator_memory; /* of each, in bytes, for one allocation */

#ifdef __cplusplus
}
#endif
#endif
