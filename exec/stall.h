/* exec/stall.h: finds which op waits for which when a run has stalled. */
#ifndef EXEC_STALL_H
#define EXEC_STALL_H

#include "exec/run.h"

/* Writes a chain of waits to text: from the first op that has not ended, of the first rank of this process that has
 * such an op, to the cause. The chain ends early if it closes a cycle or has 8 ops. Example: "rank 0: op 7
 * (all_reduce, stream comm) waits for rank 1 in group dp; rank 1: ...". Ops may continue meanwhile; the text
 * describes one moment. */
void stall_explain(struct exec_run *run, char *text, size_t size);

#endif
