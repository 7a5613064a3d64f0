#define _DEFAULT_SOURCE /* struct timeval of sockets */
/* The clock, the time limits and the closing of sockets, for all sources of the bootstrap. */
#include "exec/bootstrap_state.h"

#include <sys/socket.h>
#include <unistd.h>

double bootstrap_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bootstrap_set_timeout(int fd, double timeout_s)
{
    const time_t whole_s = (time_t)timeout_s;
    struct timeval t = {whole_s, (suseconds_t)(1e6 * (timeout_s - (double)whole_s))};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

void bootstrap_close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
