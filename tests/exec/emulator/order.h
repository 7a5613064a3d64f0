/* tests/exec/emulator/order.h: the order in which the emulated device runs what may run in any: the
 * blocks of a kernel, and the threads of a block between two meetings; and when it has. */
#ifndef TESTS_EXEC_EMULATOR_ORDER_H
#define TESTS_EXEC_EMULATOR_ORDER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern int emulator_backwards; /* the last first, and not the first */
extern int emulator_dry; /* what is launched is looked at, refused or taken, and then forgotten */

/* Until all that was put on any stream is done. */
void emulator_wait(void);

/* What the device says to a launch (0, or a cudaError_t) of a kernel of kernels.def with so many blocks
 * along x, y and z, threads of a block and bytes of dynamic shared memory; and to a kernel that asks for
 * so many of these. */
int emulator_refuses(const char *kernel, const unsigned blocks[3], unsigned threads, size_t shared);
int emulator_allow_shared(const char *kernel, size_t bytes);
/* Copies 16 bytes as kernels do, at once; ends the program if an address is not aligned for it. */
void emulator_copy_16(void *to, const void *from);

#ifdef __cplusplus
}
#endif
#endif
