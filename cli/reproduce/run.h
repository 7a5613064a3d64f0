/* cli/reproduce/run.h: runs the jobs of a reproduction in worker processes. */
#ifndef CLI_REPRODUCE_RUN_H
#define CLI_REPRODUCE_RUN_H

#include "base/text.h"
#include "cli/reproduce/answers.h"

/* Runs the wanted jobs that are not done. Timelines are written below folder. A job whose process dies gets an
 * answer that says so, which is not stored. jobs: number of processes; 0: one per core. An interrupt ends the run
 * with STATUS_SYSTEM; answers keeps the jobs that are done. */
enum status reproduce_run(struct reproduction *r, struct answers *answers, const char *folder,
                          size_t jobs, struct diag *diag);

/* Appends the folder of a timeline's trace. */
void reproduce_put_trace_folder(struct text *out, const struct reproduction *r, size_t job,
                                const char *folder);

#endif
