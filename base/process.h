/* base/process.h: child processes that leave nothing behind when their parent ends. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <sys/types.h>

/* Call in a child after fork(), with the process id of its parent: the child ends when the parent does, for whatever
 * reason. */
void process_ends_with(pid_t parent);

/* A file in memory without a name, which goes with the last process that has it open: its
 * descriptor, from `lowest` on and closed by exec(), or -1 with errno. */
int process_nameless_file(int lowest);

#endif
