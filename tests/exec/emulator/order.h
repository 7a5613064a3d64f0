/* tests/exec/emulator/order.h: controls the order in which the emulated device runs what CUDA leaves unordered (the
 * blocks of a kernel, and the threads of a block between two barriers), waits for the device, and checks launches. */
#ifndef TESTS_EXEC_EMULATOR_ORDER_H
#define TESTS_EXEC_EMULATOR_ORDER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern int emulator_backwards; /* nonzero: from the last block or thread to the first */
/* nonzero, as at first: the first launch of each kernel waits until its GPU is idle, as lazy loading may */
extern int emulator_lazy;
extern int emulator_dry; /* nonzero: launches are checked, and refused or accepted, but not run */

/* Waits until all work submitted to streams of the current device, and to the legacy stream, is done. */
void emulator_device_synchronize(void);

/* emulator_launch_error() returns what the device answers (0 or a cudaError_t) to a launch of a kernel of
 * kernels.def: blocks along x, y and z, threads of a block, bytes of dynamic shared memory.
 * emulator_allow_shared() returns the answer to a kernel's request for that many bytes of dynamic shared
 * memory. */
int emulator_launch_error(const char *kernel, const unsigned blocks[3], unsigned threads,
                          size_t shared);
int emulator_allow_shared(const char *kernel, size_t bytes);
/* Copies 16 bytes with one access, as kernels do; ends the program if an address is not aligned to 16 bytes. */
void emulator_copy_16_bytes(void *to, const void *from);

#ifdef __cplusplus
}
#endif
#endif
