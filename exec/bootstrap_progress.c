#define _DEFAULT_SOURCE /* MSG_DONTWAIT */
/* Progress of processes, exchanged several times a second while they are connected. */
#include "exec/bootstrap_state.h"

#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define HEARTBEAT_INTERVAL_S 0.1 /* seconds between two heartbeats */

/* The next heartbeat of a peer, as far as its bytes have been received. */
struct partial_heartbeat {
    struct heartbeat heartbeat;
    size_t received_bytes;
    double last_received_s; /* when bytes last arrived */
};

/* Reads all heartbeats that have arrived on a connection, and sets *last to the newest one; *last stays if none has
 * arrived whole. Returns false if the connection is closed. */
static bool receive_heartbeats(int fd, struct partial_heartbeat *half, struct heartbeat *last)
{
    for (;;) {
        ssize_t n = recv(fd, (char *)&half->heartbeat + half->received_bytes,
                         sizeof half->heartbeat - half->received_bytes, MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
        half->received_bytes += (size_t)n;
        half->last_received_s = bootstrap_now_s();
        if (half->received_bytes == sizeof half->heartbeat) {
            *last = half->heartbeat;
            half->received_bytes = 0;
        }
    }
}

/* Sends a heartbeat if the socket has room, else drops it. Returns false if the connection is closed, or if only a part
 * of the heartbeat could be sent. */
static bool send_heartbeat(int fd, const struct heartbeat *beat)
{
    ssize_t n = send(fd, beat, sizeof *beat, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == (ssize_t)sizeof *beat ||
           (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

/* Exchanges heartbeats once and updates the total progress. On rank 0, last[r] is the last heartbeat of rank r, and the
 * total, the sum of all, is sent to every rank. On another rank, last[0] is the last total that rank 0 has sent. */
static void exchange_heartbeats(struct bootstrap *b, struct partial_heartbeat *half,
                                struct heartbeat *last)
{
    uint32_t peers = b->place.rank == 0 ? b->place.process_count : 1;
    int *fd = b->sockets[PROGRESS];
    pthread_mutex_lock(&b->lock);
    struct heartbeat own = b->own_progress, before = b->total_progress, sum = own;
    const struct silence_limits limits = b->limits;
    pthread_mutex_unlock(&b->lock);
    for (uint32_t r = 0; r < peers; r++) {
        if (fd[r] < 0)
            continue;
        if (!receive_heartbeats(fd[r], &half[r], &last[r])) {
            bootstrap_close_socket(&fd[r]);
            last[r].busy_processes = 0;
            last[r].failed_rank_plus_1 = r + 1; /* a process that has ended in a step has failed */
        }
        const double silence_s = bootstrap_now_s() - half[r].last_received_s;
        if (silence_s > limits.silence_until_counted_idle_s)
            last[r].busy_processes = 0;
        if (silence_s > limits.silence_until_failure_s)
            last[r].silent_rank_plus_1 = r + 1;
    }
    if (b->place.rank != 0)
        sum = last[0];
    for (uint32_t r = 1; r < peers; r++) {
        sum.ended_ops += last[r].ended_ops;
        sum.busy_processes += last[r].busy_processes;
        sum.failed_rank_plus_1 =
            sum.failed_rank_plus_1 != 0 ? sum.failed_rank_plus_1 : last[r].failed_rank_plus_1;
        sum.silent_rank_plus_1 =
            sum.silent_rank_plus_1 != 0 ? sum.silent_rank_plus_1 : last[r].silent_rank_plus_1;
    }
    for (uint32_t r = 0; r < peers; r++)
        if (fd[r] >= 0 && !send_heartbeat(fd[r], b->place.rank == 0 ? &sum : &own))
            bootstrap_close_socket(&fd[r]);
    pthread_mutex_lock(&b->lock);
    b->total_progress = sum;
    if (sum.ended_ops != before.ended_ops || sum.busy_processes > 0)
        b->last_progress_s = bootstrap_now_s();
    pthread_mutex_unlock(&b->lock);
}

void *bootstrap_progress_thread_main(void *argument)
{
    static const struct timespec nap = {0, (long)(1e9 * HEARTBEAT_INTERVAL_S)};
    struct bootstrap *b = argument;
    struct partial_heartbeat *half = heap_zalloc(b->place.process_count, sizeof *half);
    struct heartbeat *last = heap_zalloc(b->place.process_count, sizeof *last);
    for (uint32_t r = 0; r < b->place.process_count; r++)
        half[r].last_received_s = bootstrap_now_s();
    do {
        exchange_heartbeats(b, half, last);
        nanosleep(&nap, NULL);
    } while (!atomic_load(&b->must_quit));
    /* tells the others of a failure before the connection is closed */
    exchange_heartbeats(b, half, last);
    free(half);
    free(last);
    return NULL;
}

struct bootstrap_progress bootstrap_report_progress(struct bootstrap *b, uint64_t ended, bool busy,
                                                    bool failed)
{
    pthread_mutex_lock(&b->lock);
    b->own_progress = (struct heartbeat){.ended_ops = ended,
                                         .busy_processes = busy,
                                         .failed_rank_plus_1 = failed ? b->place.rank + 1 : 0};
    const struct bootstrap_progress all = {b->total_progress.ended_ops,
                                           b->total_progress.busy_processes,
                                           b->total_progress.failed_rank_plus_1};
    pthread_mutex_unlock(&b->lock);
    return all;
}
