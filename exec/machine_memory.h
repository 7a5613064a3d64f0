/* exec/machine_memory.h: checks that this machine has enough memory for the ranks that are run on it. */
#ifndef EXEC_MACHINE_MEMORY_H
#define EXEC_MACHINE_MEMORY_H

#include "base/diag.h"

#include <stdint.h>

/* Returns STATUS_BAD_INPUT, after a message that begins with `name`, if the `ranks` ranks on this machine need more
 * bytes than the system has available. Returns STATUS_OK if the system does not say how many it has. */
enum status machine_memory_check(const char *name, uint32_t ranks, double needed_bytes,
                                 struct diag *diag);

#endif
