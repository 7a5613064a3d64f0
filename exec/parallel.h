/* exec/parallel.h: loops that several threads of the processor share. */
#ifndef EXEC_PARALLEL_H
#define EXEC_PARALLEL_H

#include <stdint.h>

/* Does the part [begin, end) of a loop. */
typedef void parallel_body(void *context, uint64_t begin, uint64_t end);

/* Divides [0, count) into at most `threads` parts, which begin at multiples of `grain` > 0, and calls body for each on
 * a thread of its own, one of them the calling thread. Returns when all calls have returned. If the system refuses to
 * start a thread, fewer threads do all parts. */
void parallel_for(uint32_t threads, uint64_t count, uint64_t grain, parallel_body *body,
                  void *context);

/* Returns how many threads each of `ranks` ranks of this process may keep busy if `processes` processes share the
 * machine: an equal share of its processors, or of the processors to which a launcher has bound this process. At least
 * 1. */
uint32_t parallel_threads_per_rank(uint32_t ranks, uint32_t processes);

#endif
