/* exec/machine_memory.h: checks that this machine has enough memory for the ranks that are run on it. */
#ifndef EXEC_MACHINE_MEMORY_H
#define EXEC_MACHINE_MEMORY_H

#include "base/diag.h"

#include <stdint.h>

/* Returns STATUS_BAD_INPUT, with a message that begins with `name`, if `ranks` ranks on this machine need more bytes
 * than the system has available. A system that does not say what it has available is not asked. */
enum status machine_memory_check(const char *name, uint32_t ranks, double needed_bytes,
                                 struct diag *diag);

#endif
