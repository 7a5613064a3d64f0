/* exec/executor.h: walks a schedule and enqueues it; knows no hardware. */
#ifndef EXEC_EXECUTOR_H
#define EXEC_EXECUTOR_H

#include "exec/run.h"

/* One host thread for each rank; the threads wait until executor_run_step() lets them run a step. */
struct executor;

/* Starts the threads; NULL with a message in diag when the system refuses. */
struct executor *executor_new(struct exec_run *run, struct diag *diag);

/* Runs one step to its end and returns its seconds, a negative number if the run has failed (run->failure_text says
 * why). Watches for stalls and for the time limit. */
double executor_run_step(struct executor *executor);

/* Ends the threads. */
void executor_free(struct executor *executor);

#endif
