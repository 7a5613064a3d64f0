#define _DEFAULT_SOURCE /* MSG_DONTWAIT */
/* Progress of processes, exchanged several times a second while a step runs. */
#include "exec/bootstrap_state.h"

#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BEAT_S 0.1 /* between two reports of progress */

/* A beat of a peer of which some bytes have come. */
struct partial_heartbeat {
    struct heartbeat beat;
    size_t bytes;
};

/* Reads all beats that have come on a connection; *last is the newest. False: the connection is closed. */
static bool read_beats(int fd, struct partial_heartbeat *half, struct heartbeat *last)
{
    for (;;) {
        ssize_t n = recv(fd, (char *)&half->beat + half->bytes, sizeof half->beat - half->bytes,
                         MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
        half->bytes += (size_t)n;
        if (half->bytes == sizeof half->beat) {
            *last = half->beat;
            half->bytes = 0;
        }
    }
}

/* Sends a beat if there is room; false: the connection is closed, or has had no room for so long that half a beat was
 * sent. */
static bool send_beat(int fd, const struct heartbeat *beat)
{
    ssize_t n = send(fd, beat, sizeof *beat, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == (ssize_t)sizeof *beat ||
           (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

void bootstrap_hang_up(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Exchanges beats once. On rank 0: `last` has what each peer sent last, and the sum goes to all. */
static void exchange_beats(struct bootstrap *b, struct partial_heartbeat *half,
                           struct heartbeat *last)
{
    uint32_t peers = b->place.rank == 0 ? b->place.size : 1;
    int *fd = b->peer[PROGRESS];
    pthread_mutex_lock(&b->lock);
    struct heartbeat own = b->own_beat, before = b->all_beats, sum = own;
    pthread_mutex_unlock(&b->lock);
    for (uint32_t r = 0; r < peers; r++)
        if (fd[r] >= 0 && !read_beats(fd[r], &half[r], &last[r])) {
            bootstrap_hang_up(&fd[r]);
            last[r].busy_processes = 0;
            last[r].failed_rank = r + 1; /* a process that has ended in a step has failed */
        }
    if (b->place.rank != 0)
        sum = last[0];
    for (uint32_t r = 1; r < peers; r++) {
        sum.ended_ops += last[r].ended_ops;
        sum.busy_processes += last[r].busy_processes;
        sum.failed_rank = sum.failed_rank != 0 ? sum.failed_rank : last[r].failed_rank;
    }
    for (uint32_t r = 0; r < peers; r++)
        if (fd[r] >= 0 && !send_beat(fd[r], b->place.rank == 0 ? &sum : &own))
            bootstrap_hang_up(&fd[r]);
    pthread_mutex_lock(&b->lock);
    b->all_beats = sum;
    if (sum.ended_ops != before.ended_ops || sum.busy_processes > 0)
        b->moved_s = bootstrap_now_s();
    pthread_mutex_unlock(&b->lock);
}

void *bootstrap_exchange(void *argument)
{
    static const struct timespec nap = {0, (long)(1e9 * BEAT_S)};
    struct bootstrap *b = argument;
    struct partial_heartbeat *half = heap_zalloc(b->place.size, sizeof *half);
    struct heartbeat *last = heap_zalloc(b->place.size, sizeof *last);
    do {
        exchange_beats(b, half, last);
        nanosleep(&nap, NULL);
    } while (!atomic_load(&b->must_quit));
    exchange_beats(b, half, last); /* others hear of a failure before the connection is closed */
    free(half);
    free(last);
    return NULL;
}

struct bootstrap_progress bootstrap_report(struct bootstrap *b, uint64_t ended, bool busy,
                                           bool failed)
{
    pthread_mutex_lock(&b->lock);
    b->own_beat = (struct heartbeat){ended, busy, failed ? b->place.rank + 1 : 0};
    const struct bootstrap_progress all = {b->all_beats.ended_ops, b->all_beats.busy_processes,
                                           b->all_beats.failed_rank};
    pthread_mutex_unlock(&b->lock);
    return all;
}
