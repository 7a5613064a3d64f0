/* tests/exec/emulator/order.h: the order in which the emulated device runs what may run in any: the
 * blocks of a kernel, and the threads of a block between two meetings. */
#ifndef TESTS_EXEC_EMULATOR_ORDER_H
#define TESTS_EXEC_EMULATOR_ORDER_H

#ifdef __cplusplus
extern "C" {
#endif

extern int emulator_backwards; /* the last first, and not the first */

#ifdef __cplusplus
}
#endif
#endif
