/* base/process.h: child processes that end when their parent ends, and files in memory, without a name. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <sys/types.h>

/* Makes the kernel kill this process when its parent ends, for whatever reason. Call it in a child after fork(), with
 * the process id of the parent; if that has ended already, the child ends at once. */
void process_end_with_parent(pid_t parent);

/* Creates a nameless file in memory, which disappears when no process has it open any more. Returns its descriptor,
 * which is at least `lowest` and is closed by exec(), or -1 with errno set. */
int process_create_memory_file(int lowest);

#endif
