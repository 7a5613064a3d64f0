/* exec/stall.h: who waits for whom when a run stands still. */
#ifndef EXEC_STALL_H
#define EXEC_STALL_H

#include "exec/run.h"

/* Follows the waits from the first op that has not ended to their cause or back to where the
 * circle closes: "rank 0: op 7 (all_reduce, stream comm) waits for rank 1 in group dp; rank 1:
 * ...". Ops may go on meanwhile; then the text tells of a moment. */
void stall_explain(struct exec_run *run, char *text, size_t size);

#endif
