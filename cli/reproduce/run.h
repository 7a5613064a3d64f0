/* cli/reproduce/run.h: runs the jobs of a reproduction in worker processes. */
#ifndef CLI_REPRODUCE_RUN_H
#define CLI_REPRODUCE_RUN_H

#include "base/text.h"
#include "cli/reproduce/answers.h"

/* Runs the jobs that are wanted and not done, in `jobs` processes; 0: one per core. Traces of timelines are written
 * below `folder`. If the process of a job that is no timeline dies, the job's answer says so, but is not stored in the
 * file; a timeline that cannot be made ends the run. An interrupt ends the run with STATUS_SYSTEM; `answers` keeps the
 * jobs that are done. */
enum status reproduce_run_pending_jobs(struct reproduction *r, struct answers *answers,
                                       const char *folder, size_t jobs, struct diag *diag);

/* Appends the name of an entry as a part of a path: "fpdt-fig7" for "fpdt:fig7". */
void reproduce_put_name_as_file_name(struct text *out, const char *name);

/* Appends the path of the folder with the trace of a timeline. */
void reproduce_put_trace_folder(struct text *out, const struct reproduction *r, size_t job,
                                const char *folder);

#endif
