/* exec/runner.h: walks a schedule and enqueues it; knows no hardware. */
#ifndef EXEC_RUNNER_H
#define EXEC_RUNNER_H

#include "exec/run.h"

/* One host thread per rank, waiting for steps to be released. */
struct runner;

/* Starts the threads; NULL with a message in diag when the system refuses. */
struct runner *runner_new(struct run *run, struct diag *diag);

/* Runs one step to its end and returns its seconds; negative when the run has failed
 * (run->failure says why). Watches for stalls and the time limit. */
double runner_step(struct runner *runner);

/* Ends the threads. */
void runner_free(struct runner *runner);

#endif
