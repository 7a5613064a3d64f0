/* bench/command.h: runs `longhaul` with a command line, and measures processor seconds and memory.
 *
 * Processor seconds are those of the program and of its children, user and system; memory is that of the largest
 * process. Wall-clock time only limits how long a command may take. */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include <stdbool.h>

struct command_run {
    double cpu_s, peak_mib;
    bool ended_in_time; /* false: the time limit ended the command */
    int exit_code;      /* if it ended in time; -1: a signal ended it */
};

/* From now on a signal that ends this program also ends the command that it runs. Call it once, before
 * command_run(). */
void command_catch_signals(void);

/* Runs a command ("predict --model ...", words without quotes) for at most limit_s seconds, with an empty standard
 * input and its output discarded. Returns false if no process can be made. */
bool command_run(const char *program, const char *command, unsigned limit_s,
                 struct command_run *run);

#endif
