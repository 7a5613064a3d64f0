/* cli/progress.h: a line on the terminal that says how far a long command is. Where standard error
 * is no terminal, nothing is printed. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    bool shown; /* standard error is a terminal */
    size_t total, first;
    size_t base; /* done before the jobs of workers_run() */
    double began_s, printed_s;
};

/* done: what an earlier run has done already, which says nothing about the speed. */
void progress_begin(struct progress *progress, size_t total, size_t done);
void progress_update(struct progress *progress, size_t done, const char *note);
void progress_end(struct progress *progress); /* takes the line away */

/* Says which part of a command is at work, where nobody can say how long it takes, and since when the command
 * is: from two seconds on, every second. what stays where it is; NULL: the command is done, and the line goes.
 * Meanwhile SIGALRM is taken. */
void progress_part(const char *what);

#endif
