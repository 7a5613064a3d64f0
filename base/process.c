#define _GNU_SOURCE /* memfd_create() */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

void process_end_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent ended before prctl() took effect */
        _exit(0);
}

int process_create_memory_file(int lowest)
{
    int made = memfd_create("longhaul", MFD_CLOEXEC);
    int memory_file_fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, lowest), error = errno;
    if (made >= 0)
        close(made);
    errno = error;
    return memory_file_fd;
}
