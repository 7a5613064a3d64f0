#define _DEFAULT_SOURCE /* struct timeval of sockets, getaddrinfo() */
/* Messages between processes, and the connections that this process keeps. */
#include "exec/bootstrap_state.h"

#include "base/arena.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Called after a socket call failed. True if the call, which began at since_s, may be repeated: the socket has only
 * timed out, which it does every second, and no process is silent. The time limit counts from since_s or from the last
 * progress of any process, whichever is later. A process that is leaving waits only 2 s from since_s. */
static bool may_wait_longer(struct bootstrap *b, double since_s)
{
    const double leave_s = 2;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;
    pthread_mutex_lock(&b->lock);
    double moved_s = b->last_progress_s;
    bool silent = b->total_progress.silent_rank_plus_1 > 0;
    pthread_mutex_unlock(&b->lock);
    if (atomic_load(&b->is_leaving))
        return bootstrap_now_s() < since_s + leave_s;
    return !silent && bootstrap_now_s() < (moved_s > since_s ? moved_s : since_s) + b->timeout_s;
}

void bootstrap_announce_end(struct bootstrap *b)
{
    atomic_store(&b->is_leaving, true);
}

/* Returns 1 + the rank of a process that has sent no heartbeat for longer than the limit; 0 if there is none. Sets
 * *silence_until_failure_s to the limit in seconds. The silent process need not be the one for whose message the caller
 * waits. */
static uint32_t silent_rank_plus_1(struct bootstrap *b, double *silence_until_failure_s)
{
    pthread_mutex_lock(&b->lock);
    uint32_t rank = b->total_progress.silent_rank_plus_1;
    *silence_until_failure_s = b->limits.silence_until_failure_s;
    pthread_mutex_unlock(&b->lock);
    return rank;
}

static enum status report_lost_peer(struct bootstrap *b, uint32_t peer, const char *call,
                                    struct diag *diag)
{
    double silence_until_failure_s;
    const uint32_t silent = silent_rank_plus_1(b, &silence_until_failure_s);
    b->is_broken = true;
    if (errno != 0 && silent > 0)
        return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                          "rank %" PRIu32 " has not heard of rank %" PRIu32
                          " for %g s: it, or its machine, is stopped or cut off",
                          b->place.rank, silent - 1, silence_until_failure_s);
    const char *why = errno == 0                                  ? "it has ended"
                      : (errno == EAGAIN || errno == EWOULDBLOCK) ? "it does not answer"
                                                                  : strerror(errno);
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                      "rank %" PRIu32 " has lost the connection to rank %" PRIu32 ": %s",
                      b->place.rank, peer, why);
}

static enum status send_bytes(struct bootstrap *b, uint32_t peer, const void *data, size_t bytes,
                              struct diag *diag)
{
    double since_s = bootstrap_now_s();
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        ssize_t n =
            send(b->sockets[MESSAGES][peer], (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && (errno == EINTR || may_wait_longer(b, since_s)))
            continue;
        if (n <= 0)
            return report_lost_peer(b, peer, "send", diag);
        done += (size_t)n;
    }
    return STATUS_OK;
}

static enum status receive_bytes(struct bootstrap *b, uint32_t peer, void *data, size_t bytes,
                                 struct diag *diag)
{
    double since_s = bootstrap_now_s();
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        ssize_t n = recv(b->sockets[MESSAGES][peer], (char *)data + done, bytes - done, 0);
        if (n < 0 && (errno == EINTR || may_wait_longer(b, since_s)))
            continue;
        if (n <= 0)
            return report_lost_peer(b, peer, "recv", diag);
        done += (size_t)n;
    }
    return STATUS_OK;
}

/* ---- opening and closing connections ---- */

/* Returns a digest of the machine's boot id or, if that cannot be read, of its host name: a number that is equal on all
 * processes of a machine and differs between machines. */
static uint64_t machine_id(void)
{
    char text[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        gethostname(text, sizeof text - 1);
    if (file != NULL)
        fclose(file);
    uint64_t number = 0;
    for (const char *c = text; *c != '\0'; c++)
        number = number * 1099511628211u + (unsigned char)*c;
    return number;
}

/* Sends rank 0's list of machine ids, host[rank], to all processes. Counts from it the processes on this machine and,
 * if the launcher has not given it, sets this process's index among them. */
static enum status count_local_processes(struct bootstrap *b, uint64_t *host, struct diag *diag)
{
    enum status status =
        bootstrap_broadcast(b, 0, host, b->place.process_count * sizeof *host, diag);
    uint32_t before = 0;
    b->local_process_count = 0;
    for (uint32_t r = 0; r < b->place.process_count && status == STATUS_OK; r++) {
        before += r < b->place.rank && host[r] == b->machine_id;
        b->local_process_count += host[r] == b->machine_id;
    }
    if (b->place.local_rank == BOOTSTRAP_UNKNOWN)
        b->place.local_rank = before;
    return status;
}

static enum status open_connections(struct bootstrap *b, struct diag *diag)
{
    uint64_t *host = heap_zalloc(b->place.process_count, sizeof *host);
    host[0] = b->machine_id;
    enum status status = bootstrap_connect_processes(b, host, diag);
    for (uint32_t r = 0; r < b->place.process_count; r++)
        if (b->sockets[MESSAGES][r] >= 0)
            bootstrap_set_timeout(b->sockets[MESSAGES][r], 1);
    b->last_progress_s = bootstrap_now_s();
    if (status == STATUS_OK)
        status = count_local_processes(b, host, diag);
    free(host);
    int error = status == STATUS_OK
                    ? pthread_create(&b->progress_thread, NULL, bootstrap_progress_thread_main, b)
                    : 0;
    b->has_progress_thread = status == STATUS_OK && error == 0;
    return error == 0 ? status
                      : diag_error(diag, (struct loc){0}, STATUS_SYSTEM,
                                   "cannot start a thread: %s", strerror(error));
}

struct bootstrap *bootstrap_open(const struct bootstrap_place *place, uint64_t request,
                                 double timeout_s, struct diag *diag)
{
    struct bootstrap *b = heap_zalloc(1, sizeof *b);
    b->place = *place;
    b->request_digest = request;
    b->limits =
        (struct silence_limits){.silence_until_counted_idle_s = 10, .silence_until_failure_s = 60};
    b->timeout_s = timeout_s;
    b->machine_id = machine_id();
    b->local_process_count = 1;
    pthread_mutex_init(&b->lock, NULL);
    for (int c = 0; c < CHANNELS; c++) {
        b->sockets[c] = heap_alloc(place->process_count, sizeof *b->sockets[c]);
        for (uint32_t i = 0; i < place->process_count; i++)
            b->sockets[c][i] = -1;
    }
    if (place->process_count == 1 || open_connections(b, diag) == STATUS_OK)
        return b;
    bootstrap_close(b);
    return NULL;
}

void bootstrap_close(struct bootstrap *b)
{
    if (b == NULL)
        return;
    atomic_store(&b->must_quit, true);
    if (b->has_progress_thread)
        pthread_join(b->progress_thread, NULL);
    for (int c = 0; c < CHANNELS; c++) {
        for (uint32_t i = 0; i < b->place.process_count; i++)
            bootstrap_close_socket(&b->sockets[c][i]);
        free(b->sockets[c]);
    }
    pthread_mutex_destroy(&b->lock);
    free(b);
}

uint32_t bootstrap_rank(const struct bootstrap *b)
{
    return b->place.rank;
}

uint32_t bootstrap_process_count(const struct bootstrap *b)
{
    return b->place.process_count;
}

uint32_t bootstrap_local_rank(const struct bootstrap *b)
{
    return b->place.local_rank;
}

uint32_t bootstrap_local_process_count(const struct bootstrap *b)
{
    return b->local_process_count;
}

/* ---- messages ---- */

static enum status report_broken_connection(struct diag *diag)
{
    return diag_error(diag, (struct loc){0}, STATUS_SYSTEM,
                      "an earlier call lost the connection to a process of the run");
}

enum status bootstrap_broadcast(struct bootstrap *b, uint32_t root, void *data, size_t bytes,
                                struct diag *diag)
{
    if (b->is_broken)
        return report_broken_connection(diag);
    if (b->place.rank != 0) {
        enum status status =
            b->place.rank == root ? send_bytes(b, 0, data, bytes, diag) : STATUS_OK;
        return status == STATUS_OK && b->place.rank != root ? receive_bytes(b, 0, data, bytes, diag)
                                                            : status;
    }
    enum status status = root != 0 ? receive_bytes(b, root, data, bytes, diag) : STATUS_OK;
    for (uint32_t i = 1; i < b->place.process_count && status == STATUS_OK; i++)
        if (i != root)
            status = send_bytes(b, i, data, bytes, diag);
    return status;
}

enum status bootstrap_all_gather(struct bootstrap *b, const void *mine, void *all, size_t bytes,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;
    if (b->is_broken)
        return report_broken_connection(diag);
    memmove((char *)all + b->place.rank * bytes, mine, bytes);
    if (b->place.rank != 0) {
        status = send_bytes(b, 0, mine, bytes, diag);
        return status == STATUS_OK ? receive_bytes(b, 0, all, b->place.process_count * bytes, diag)
                                   : status;
    }
    for (uint32_t i = 1; i < b->place.process_count && status == STATUS_OK; i++)
        status = receive_bytes(b, i, (char *)all + i * bytes, bytes, diag);
    for (uint32_t i = 1; i < b->place.process_count && status == STATUS_OK; i++)
        status = send_bytes(b, i, all, b->place.process_count * bytes, diag);
    return status;
}

enum status bootstrap_check_same_request(struct bootstrap *b, uint64_t request, struct diag *diag)
{
    uint64_t *all = heap_zalloc(b->place.process_count, sizeof *all);
    enum status status = bootstrap_all_gather(b, &request, all, sizeof *all, diag);
    for (uint32_t r = 1; r < b->place.process_count && status == STATUS_OK; r++)
        if (all[r] != all[0])
            status = diag_error(diag, (struct loc){.name = "rank 0"}, STATUS_SYSTEM,
                                "rank %" PRIu32
                                " has another schedule, or other options, than rank 0; all "
                                "processes must be started with the same options and files",
                                r);
    free(all);
    return status;
}

/* ---- the one connection of this process to the others ---- */

static struct bootstrap *met; /* NULL: the connection is not open */

static void close_world(void)
{
    bootstrap_close(met);
    met = NULL;
}

enum status bootstrap_connect_at_first_call(struct bootstrap **world, uint64_t request,
                                            uint32_t ranks, double connect_s, struct diag *diag)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const double usual_s = 120, message_s = 600; /* a process may build plans for minutes */
    struct bootstrap_place place;
    enum status status = bootstrap_place_read(&place, diag);
    *world = NULL;
    if (status != STATUS_OK || place.process_count == 1)
        return status;
    if (place.process_count != ranks) /* each process reports this before it waits for the others */
        return diag_error(diag, (struct loc){.name = "schedule"}, STATUS_BAD_INPUT,
                          "has %" PRIu32 " ranks, and %" PRIu32
                          " processes were started for it; the two numbers must be equal",
                          ranks, place.process_count);
    pthread_mutex_lock(&lock);
    if (met != NULL) {
        status = bootstrap_check_same_request(met, request, diag);
    } else {
        met = bootstrap_open(&place, request, connect_s > 0 ? connect_s : usual_s, diag);
        status = met != NULL ? STATUS_OK : STATUS_SYSTEM;
        if (met != NULL) {
            met->timeout_s = message_s;
            atexit(close_world);
        }
    }
    *world = met;
    pthread_mutex_unlock(&lock);
    return status;
}
