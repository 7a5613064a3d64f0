/* exec/executor.h: walks the schedule of each rank and passes its ops to the backend; knows no hardware. */
#ifndef EXEC_EXECUTOR_H
#define EXEC_EXECUTOR_H

#include "exec/run.h"

/* One host thread for each rank; the threads wait until executor_run_step() lets them run a step. */
struct executor;

/* Starts the threads. Returns NULL, after a message, if the system refuses. */
struct executor *executor_new(struct exec_run *run, struct diag *diag);

/* Runs one step to its end. Returns its seconds, or a negative number if the run has failed (run->failure_text says
 * why). Watches meanwhile for stalls and for the time limit. */
double executor_run_step(struct executor *executor);

/* Ends the threads. */
void executor_free(struct executor *executor);

#endif
