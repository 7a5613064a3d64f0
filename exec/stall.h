/* exec/stall.h: finds which op waits for which when a run has stalled. */
#ifndef EXEC_STALL_H
#define EXEC_STALL_H

#include "exec/run.h"

/* Follows the waits from the first op that has not ended to their cause or back to where the
 * circle closes: "rank 0: op 7 (all_reduce, stream comm) waits for rank 1 in group dp; rank 1:
 * ...". Ops may go on meanwhile; then the text tells of a moment. */
void stall_explain(struct exec_run *run, char *text, size_t size);

#endif
