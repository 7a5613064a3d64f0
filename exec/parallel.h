/* exec/parallel.h: loops that several threads of the processor share. */
#ifndef EXEC_PARALLEL_H
#define EXEC_PARALLEL_H

#include <stdint.h>

/* Does the part [begin, end) of a loop. */
typedef void parallel_body(void *context, uint64_t begin, uint64_t end);

/* Divides [0, count) into at most `threads` parts, which begin at multiples of `grain` > 0, and calls body for each
 * part on a thread of its own; one of them is the calling thread. Returns when all calls have returned. If the system
 * refuses to start a thread, the calling thread does the parts that are left. */
void parallel_for(uint32_t threads, uint64_t count, uint64_t grain, parallel_body *body,
                  void *context);

/* Returns how many threads each of `ranks` ranks of this process may keep busy, at least 1. It is an equal share of the
 * machine's processors if `processes` processes with as many ranks share the machine. If a launcher has bound this
 * process to some of the processors, it is an equal share of those. */
uint32_t parallel_threads_per_rank(uint32_t ranks, uint32_t processes);

#endif
