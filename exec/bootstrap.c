#define _DEFAULT_SOURCE /* struct timeval of sockets, getaddrinfo() */
#include "exec/bootstrap.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 4096, WORDS = 400 };
#define GREETING_S 5.0 /* in which a program that listens or connects must have said who it is */
#define BEAT_S 0.1     /* between two reports of progress */
#define ADVICE "LONGHAUL_PORT chooses another port, the same for all processes"

/* ---- what is sent ---- */

static const char magic[8] = "longhaul";

/* The connections that every process makes to rank 0. */
enum connection_kind { MESSAGES, PROGRESS, CHANNELS };

/* The first message of a process on a connection. */
struct greeting {
    char magic[8];
    char version[24];
    uint32_t rank, size, channel;
    uint64_t schedule;
    uint64_t host; /* equal on processes of one machine */
};

/* Rank 0's answers: one to the greeting, a second one on MESSAGES when all have come. */
struct greeting_answer {
    char magic[8];
    uint32_t refused;
    char words[WORDS]; /* why */
};

/* A process's own progress, and what rank 0 sends of all. */
struct beat {
    uint64_t ended;
    uint32_t busy, failed;
};

struct bootstrap {
    struct bootstrap_place place;
    uint64_t schedule, host;
    uint32_t local_size;
    double timeout_s;
    int *peer[CHANNELS]; /* rank 0: (size) sockets; others: only peer[][0] is one */
    bool broken;

    pthread_t thread; /* exchanges beats */
    bool has_thread;
    atomic_bool quit;
    pthread_mutex_t lock; /* guards the fields below */
    struct beat own, all;
    double moved_s; /* when progress was last heard of */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- sockets ---- */

static void set_timeout(int fd, double timeout_s)
{
    const time_t whole_s = (time_t)timeout_s;
    struct timeval t = {whole_s, (suseconds_t)(1e6 * (timeout_s - (double)whole_s))};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static void set_options(int fd)
{
    const int one = 1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static double last_moved_s(struct bootstrap *b)
{
    pthread_mutex_lock(&b->lock);
    double moved_s = b->moved_s;
    pthread_mutex_unlock(&b->lock);
    return moved_s;
}

/* True if a call that began at since_s may still wait: sockets time out after a second, and time counts from the last
 * progress of any process. */
static bool may_wait(struct bootstrap *b, double since_s)
{
    double moved_s = last_moved_s(b);
    return (errno == EAGAIN || errno == EWOULDBLOCK) &&
           now() < (moved_s > since_s ? moved_s : since_s) + b->timeout_s;
}

static enum status gone(struct bootstrap *b, uint32_t peer, const char *call, struct diag *diag)
{
    b->broken = true;
    const char *why = errno == 0                                  ? "it has ended"
                      : (errno == EAGAIN || errno == EWOULDBLOCK) ? "it does not answer"
                                                                  : strerror(errno);
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                      "rank %" PRIu32 " has lost the connection to rank %" PRIu32 ": %s",
                      b->place.rank, peer, why);
}

static enum status put(struct bootstrap *b, uint32_t peer, const void *data, size_t bytes,
                       struct diag *diag)
{
    double since_s = now();
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        ssize_t n =
            send(b->peer[MESSAGES][peer], (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && (errno == EINTR || may_wait(b, since_s)))
            continue;
        if (n <= 0)
            return gone(b, peer, "send", diag);
        done += (size_t)n;
    }
    return STATUS_OK;
}

static enum status get(struct bootstrap *b, uint32_t peer, void *data, size_t bytes,
                       struct diag *diag)
{
    double since_s = now();
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        ssize_t n = recv(b->peer[MESSAGES][peer], (char *)data + done, bytes - done, 0);
        if (n < 0 && (errno == EINTR || may_wait(b, since_s)))
            continue;
        if (n <= 0)
            return gone(b, peer, "recv", diag);
        done += (size_t)n;
    }
    return STATUS_OK;
}

/* ---- rank 0 and those that come ---- */

static struct greeting_answer answer_of(bool refused, const char *words)
{
    struct greeting_answer answer = {.refused = refused};
    memcpy(answer.magic, magic, sizeof magic);
    snprintf(answer.words, sizeof answer.words, "%s", words);
    return answer;
}

static void reply(int fd, bool refused, const char *words)
{
    const struct greeting_answer answer = answer_of(refused, words);
    (void)!send(fd, &answer, sizeof answer, MSG_NOSIGNAL); /* one that has left is noticed later */
}

/* Says in what a process that has connected differs from rank 0; "" if in nothing. */
static void compare(const struct bootstrap *b, const struct greeting *g, char words[WORDS])
{
    const char *version = LONGHAUL_VERSION;
    words[0] = '\0';
    if (strncmp(g->version, version, sizeof g->version) != 0)
        snprintf(words, WORDS,
                 "rank %" PRIu32 " runs longhaul %.*s and rank 0 runs longhaul %s; all processes "
                 "must run one version",
                 g->rank, (int)sizeof g->version, g->version, version);
    else if (g->size != b->place.size)
        snprintf(words, WORDS,
                 "rank %" PRIu32 " is one of %" PRIu32 " processes and rank 0 one of %" PRIu32
                 "; the launcher must give all the same number",
                 g->rank, g->size, b->place.size);
    else if (g->rank == 0 || g->rank >= b->place.size || g->channel >= CHANNELS)
        snprintf(words, WORDS, "rank %" PRIu32 " has connected to rank 0 of %" PRIu32 " processes",
                 g->rank, b->place.size);
    else if (g->schedule != b->schedule)
        snprintf(words, WORDS,
                 "rank %" PRIu32
                 " has another schedule than rank 0; all processes must be started with the same "
                 "options and files",
                 g->rank);
    else if (b->peer[g->channel][g->rank] >= 0)
        snprintf(words, WORDS,
                 "rank %" PRIu32 " has connected twice: another run may use port %" PRIu16
                 "; " ADVICE,
                 g->rank, b->place.port);
}

/* Takes a connection; one that does not greet as a process of a run does is another program's, and is closed.
 * STATUS_SYSTEM: the process differs from rank 0 in what words says. */
static enum status take(struct bootstrap *b, int fd, uint64_t *host, uint32_t *come,
                        char words[WORDS])
{
    struct greeting greeting;
    set_options(fd);
    set_timeout(fd, GREETING_S);
    if (recv(fd, &greeting, sizeof greeting, MSG_WAITALL) != (ssize_t)sizeof greeting ||
        memcmp(greeting.magic, magic, sizeof magic) != 0) {
        close(fd);
        return STATUS_OK;
    }
    compare(b, &greeting, words);
    reply(fd, words[0] != '\0', words);
    if (words[0] != '\0') {
        close(fd);
        return STATUS_SYSTEM;
    }
    b->peer[greeting.channel][greeting.rank] = fd;
    host[greeting.rank] = greeting.host;
    ++*come;
    return STATUS_OK;
}

static void put_missing(const struct bootstrap *b, char *words, size_t size)
{
    enum { NAMED = 8 };
    uint32_t missing = 0;
    size_t used = 0;
    for (uint32_t r = 1; r < b->place.size; r++)
        if (b->peer[MESSAGES][r] < 0 && missing++ < NAMED && used < size)
            used += (size_t)snprintf(words + used, size - used, "%s%" PRIu32,
                                     missing > 1 ? ", " : "", r);
    if (missing > NAMED && used < size)
        snprintf(words + used, size - used, " and %" PRIu32 " more", missing - NAMED);
}

static enum status await_all(struct bootstrap *b, int fd, uint64_t *host, struct diag *diag)
{
    double until_s = now() + b->timeout_s;
    enum status status = STATUS_OK;
    char words[WORDS] = "", missing[120] = "";
    for (uint32_t come = 0; come < CHANNELS * (b->place.size - 1) && status == STATUS_OK;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        double left_s = until_s - now();
        int ready = left_s > 0 ? poll(&waiting, 1, (int)(1e3 * left_s) + 1) : 0;
        int peer = ready > 0 ? accept(fd, NULL, NULL) : -1;
        if (peer >= 0) {
            status = take(b, peer, host, &come, words);
        } else if (ready == 0) {
            put_missing(b, missing, sizeof missing);
            c_snprintf(words, sizeof words,
                       "of %" PRIu32 " processes not all have connected to port %" PRIu16
                       " within %g s; missing: rank %s",
                       b->place.size, b->place.port, b->timeout_s, missing);
            status = STATUS_SYSTEM;
        }
    }
    for (uint32_t r = 1; r < b->place.size; r++)
        if (b->peer[MESSAGES][r] >= 0)
            reply(b->peer[MESSAGES][r], status != STATUS_OK, status != STATUS_OK ? words : "");
    return status == STATUS_OK
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = "rank 0"}, status, "%s", words);
}

static enum status refused(const struct bootstrap *b, const char *call, struct diag *diag)
{
    if (errno == EADDRINUSE)
        return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                          "rank 0 of %" PRIu32 " cannot listen on port %" PRIu16
                          ": another program has it, or another run on this machine; " ADVICE,
                          b->place.size, b->place.port);
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                      "rank %" PRIu32 " of %" PRIu32 " cannot use the address %s:%" PRIu16 ": %s",
                      b->place.rank, b->place.size, b->place.host, b->place.port, strerror(errno));
}

/* Makes on rank 0 the sockets for every other rank. */
static enum status listen_for_all(struct bootstrap *b, uint64_t *host, struct diag *diag)
{
    const int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(b->place.port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (fd < 0)
        return refused(b, "socket", diag);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    enum status status;
    if (bind(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        status = refused(b, "bind", diag);
    else if (listen(fd, BACKLOG) != 0)
        status = refused(b, "listen", diag);
    else
        status = await_all(b, fd, host, diag);
    close(fd);
    return status;
}

/* ---- the others ---- */

/* True for a connection of a socket to itself, which Linux makes when nobody listens on the port and the kernel chooses
 * just this port for the caller's end. */
static bool is_itself(int fd)
{
    struct sockaddr_in own = {0}, other = {0};
    socklen_t size = sizeof own;
    if (getsockname(fd, (struct sockaddr *)(void *)&own, &size) != 0)
        return false;
    size = sizeof other;
    return getpeername(fd, (struct sockaddr *)(void *)&other, &size) == 0 &&
           own.sin_port == other.sin_port && own.sin_addr.s_addr == other.sin_addr.s_addr;
}

/* Returns a connected socket; -1: nobody has listened for timeout_s. */
static int connect_once(const struct addrinfo *to, double timeout_s)
{
    static const struct timespec nap = {0, 20000000};
    double until_s = now() + timeout_s;
    do {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 && !is_itself(fd))
            return fd;
        if (fd >= 0) {
            int error = errno;
            close(fd);
            errno = error;
        }
        nanosleep(&nap, NULL);
    } while (now() < until_s);
    return -1;
}

/* Reads an answer of rank 0 within wait_s; known: it has answered before. */
static enum status hear(struct bootstrap *b, int fd, bool known, double wait_s, struct diag *diag)
{
    struct greeting_answer answer = {.refused = 0};
    const struct loc at = {.name = "rank 0"};
    set_timeout(fd, wait_s);
    errno = 0;
    ssize_t n = recv(fd, &answer, sizeof answer, MSG_WAITALL);
    bool ours = n >= (ssize_t)sizeof magic && memcmp(answer.magic, magic, sizeof magic) == 0;
    if (n == (ssize_t)sizeof answer && ours) {
        answer.words[WORDS - 1] = '\0';
        return answer.refused ? diag_error(diag, at, STATUS_SYSTEM, "%s", answer.words) : STATUS_OK;
    }
    if (known || ours)
        return diag_error(diag, at, STATUS_SYSTEM,
                          "rank %" PRIu32 " has connected, but rank 0 has ended or does not answer",
                          b->place.rank);
    return diag_error(diag, at, STATUS_SYSTEM,
                      "rank %" PRIu32
                      " does not find rank 0: another program listens on %s:%" PRIu16
                      " and does not answer as longhaul would; " ADVICE,
                      b->place.rank, b->place.host, b->place.port);
}

static enum status greet(struct bootstrap *b, const struct addrinfo *to,
                         enum connection_kind channel, struct diag *diag)
{
    struct greeting greeting = {.version = LONGHAUL_VERSION,
                                .rank = b->place.rank,
                                .size = b->place.size,
                                .channel = channel,
                                .schedule = b->schedule,
                                .host = b->host};
    memcpy(greeting.magic, magic, sizeof magic);
    int fd = connect_once(to, b->timeout_s);
    if (fd < 0)
        return refused(b, "connect", diag);
    set_options(fd);
    b->peer[channel][0] = fd;
    (void)!send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL);
    /* rank 0 may be held up by others that connect and say nothing */
    return hear(b, fd, false, 2 * GREETING_S, diag);
}

static enum status connect_to_first(struct bootstrap *b, struct diag *diag)
{
    char port[8];
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    snprintf(port, sizeof port, "%" PRIu16, b->place.port);
    int error = getaddrinfo(b->place.host, port, &wanted, &found);
    if (error != 0)
        return diag_error(diag, (struct loc){.name = "getaddrinfo"}, STATUS_SYSTEM, "%s: %s",
                          b->place.host, gai_strerror(error));
    enum status status = STATUS_OK;
    for (int c = 0; c < CHANNELS && status == STATUS_OK; c++)
        status = greet(b, found, (enum connection_kind)c, diag);
    freeaddrinfo(found);
    return status == STATUS_OK
               ? hear(b, b->peer[MESSAGES][0], true, b->timeout_s + 2 * GREETING_S, diag)
               : status;
}

/* ---- progress ---- */

/* A beat of a peer of which some bytes have come. */
struct half_beat {
    struct beat beat;
    size_t bytes;
};

/* Reads all beats that have come on a connection; *last is the newest. False: the connection is closed. */
static bool read_beats(int fd, struct half_beat *half, struct beat *last)
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
static bool send_beat(int fd, const struct beat *beat)
{
    ssize_t n = send(fd, beat, sizeof *beat, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == (ssize_t)sizeof *beat ||
           (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static void hang_up(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Exchanges beats once. On rank 0: `last` has what each peer sent last, and the sum goes to all. */
static void exchange_beats(struct bootstrap *b, struct half_beat *half, struct beat *last)
{
    uint32_t peers = b->place.rank == 0 ? b->place.size : 1;
    int *fd = b->peer[PROGRESS];
    pthread_mutex_lock(&b->lock);
    struct beat own = b->own, before = b->all, sum = own;
    pthread_mutex_unlock(&b->lock);
    for (uint32_t r = 0; r < peers; r++)
        if (fd[r] >= 0 && !read_beats(fd[r], &half[r], &last[r])) {
            hang_up(&fd[r]);
            last[r].busy = 0;
            last[r].failed = r + 1; /* a process that has ended in a step has failed */
        }
    if (b->place.rank != 0)
        sum = last[0];
    for (uint32_t r = 1; r < peers; r++) {
        sum.ended += last[r].ended;
        sum.busy += last[r].busy;
        sum.failed = sum.failed != 0 ? sum.failed : last[r].failed;
    }
    for (uint32_t r = 0; r < peers; r++)
        if (fd[r] >= 0 && !send_beat(fd[r], b->place.rank == 0 ? &sum : &own))
            hang_up(&fd[r]);
    pthread_mutex_lock(&b->lock);
    b->all = sum;
    if (sum.ended != before.ended || sum.busy > 0)
        b->moved_s = now();
    pthread_mutex_unlock(&b->lock);
}

static void *exchange_progress(void *argument)
{
    static const struct timespec nap = {0, (long)(1e9 * BEAT_S)};
    struct bootstrap *b = argument;
    struct half_beat *half = heap_zalloc(b->place.size, sizeof *half);
    struct beat *last = heap_zalloc(b->place.size, sizeof *last);
    do {
        exchange_beats(b, half, last);
        nanosleep(&nap, NULL);
    } while (!atomic_load(&b->quit));
    exchange_beats(b, half, last); /* others hear of a failure before the connection is closed */
    free(half);
    free(last);
    return NULL;
}

struct bootstrap_progress bootstrap_report(struct bootstrap *b, uint64_t ended, bool busy,
                                           bool failed)
{
    pthread_mutex_lock(&b->lock);
    b->own = (struct beat){ended, busy, failed ? b->place.rank + 1 : 0};
    const struct bootstrap_progress all = {b->all.ended, b->all.busy, b->all.failed};
    pthread_mutex_unlock(&b->lock);
    return all;
}

/* ---- opening ---- */

/* Returns a number that processes of one machine have in common, and no others: that of its last start. */
static uint64_t host_number(void)
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

/* Finds how many processes run on this machine, and this one's place among them if the launcher has not said it. */
static enum status find_neighbours(struct bootstrap *b, uint64_t *host, struct diag *diag)
{
    enum status status = bootstrap_broadcast(b, 0, host, b->place.size * sizeof *host, diag);
    uint32_t before = 0;
    b->local_size = 0;
    for (uint32_t r = 0; r < b->place.size && status == STATUS_OK; r++) {
        before += r < b->place.rank && host[r] == b->host;
        b->local_size += host[r] == b->host;
    }
    if (b->place.local == BOOTSTRAP_UNKNOWN)
        b->place.local = before;
    return status;
}

static enum status open_all(struct bootstrap *b, struct diag *diag)
{
    uint64_t *host = heap_zalloc(b->place.size, sizeof *host);
    host[0] = b->host;
    enum status status =
        b->place.rank == 0 ? listen_for_all(b, host, diag) : connect_to_first(b, diag);
    for (uint32_t r = 0; r < b->place.size; r++)
        if (b->peer[MESSAGES][r] >= 0)
            set_timeout(b->peer[MESSAGES][r], 1);
    b->moved_s = now();
    if (status == STATUS_OK)
        status = find_neighbours(b, host, diag);
    free(host);
    int error = status == STATUS_OK ? pthread_create(&b->thread, NULL, exchange_progress, b) : 0;
    b->has_thread = status == STATUS_OK && error == 0;
    return error == 0 ? status
                      : diag_error(diag, (struct loc){0}, STATUS_SYSTEM,
                                   "cannot start a thread: %s", strerror(error));
}

struct bootstrap *bootstrap_open(const struct bootstrap_place *place, uint64_t schedule,
                                 double timeout_s, struct diag *diag)
{
    struct bootstrap *b = heap_zalloc(1, sizeof *b);
    b->place = *place;
    b->schedule = schedule;
    b->timeout_s = timeout_s;
    b->host = host_number();
    b->local_size = 1;
    pthread_mutex_init(&b->lock, NULL);
    for (int c = 0; c < CHANNELS; c++) {
        b->peer[c] = heap_alloc(place->size, sizeof *b->peer[c]);
        for (uint32_t i = 0; i < place->size; i++)
            b->peer[c][i] = -1;
    }
    if (place->size == 1 || open_all(b, diag) == STATUS_OK)
        return b;
    bootstrap_close(b);
    return NULL;
}

void bootstrap_close(struct bootstrap *b)
{
    if (b == NULL)
        return;
    atomic_store(&b->quit, true);
    if (b->has_thread)
        pthread_join(b->thread, NULL);
    for (int c = 0; c < CHANNELS; c++) {
        for (uint32_t i = 0; i < b->place.size; i++)
            hang_up(&b->peer[c][i]);
        free(b->peer[c]);
    }
    pthread_mutex_destroy(&b->lock);
    free(b);
}

uint32_t bootstrap_rank(const struct bootstrap *b)
{
    return b->place.rank;
}

uint32_t bootstrap_size(const struct bootstrap *b)
{
    return b->place.size;
}

uint32_t bootstrap_local(const struct bootstrap *b)
{
    return b->place.local;
}

uint32_t bootstrap_local_size(const struct bootstrap *b)
{
    return b->local_size;
}

/* ---- messages ---- */

static enum status is_broken(struct diag *diag)
{
    return diag_error(diag, (struct loc){0}, STATUS_SYSTEM,
                      "an earlier call lost the connection to a process of the run");
}

enum status bootstrap_broadcast(struct bootstrap *b, uint32_t root, void *data, size_t bytes,
                                struct diag *diag)
{
    if (b->broken)
        return is_broken(diag);
    if (b->place.rank != 0) {
        enum status status = b->place.rank == root ? put(b, 0, data, bytes, diag) : STATUS_OK;
        return status == STATUS_OK && b->place.rank != root ? get(b, 0, data, bytes, diag) : status;
    }
    enum status status = root != 0 ? get(b, root, data, bytes, diag) : STATUS_OK;
    for (uint32_t i = 1; i < b->place.size && status == STATUS_OK; i++)
        if (i != root)
            status = put(b, i, data, bytes, diag);
    return status;
}

enum status bootstrap_gather(struct bootstrap *b, const void *mine, void *all, size_t bytes,
                             struct diag *diag)
{
    enum status status = STATUS_OK;
    if (b->broken)
        return is_broken(diag);
    memmove((char *)all + b->place.rank * bytes, mine, bytes);
    if (b->place.rank != 0) {
        status = put(b, 0, mine, bytes, diag);
        return status == STATUS_OK ? get(b, 0, all, b->place.size * bytes, diag) : status;
    }
    for (uint32_t i = 1; i < b->place.size && status == STATUS_OK; i++)
        status = get(b, i, (char *)all + i * bytes, bytes, diag);
    for (uint32_t i = 1; i < b->place.size && status == STATUS_OK; i++)
        status = put(b, i, all, b->place.size * bytes, diag);
    return status;
}

enum status bootstrap_agree(struct bootstrap *b, uint64_t schedule, struct diag *diag)
{
    uint64_t *all = heap_zalloc(b->place.size, sizeof *all);
    enum status status = bootstrap_gather(b, &schedule, all, sizeof *all, diag);
    for (uint32_t r = 1; r < b->place.size && status == STATUS_OK; r++)
        if (all[r] != all[0])
            status = diag_error(diag, (struct loc){.name = "rank 0"}, STATUS_SYSTEM,
                                "rank %" PRIu32
                                " has another schedule than rank 0; all processes must be started "
                                "with the same options and files",
                                r);
    free(all);
    return status;
}

/* ---- of this process ---- */

static struct bootstrap *met;

static void leave(void)
{
    bootstrap_close(met);
    met = NULL;
}

enum status bootstrap_world(struct bootstrap **world, uint64_t schedule, struct diag *diag)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const double connect_s = 120, message_s = 600; /* a process may build plans for minutes */
    struct bootstrap_place place;
    enum status status = bootstrap_place_read(&place, diag);
    *world = NULL;
    if (status != STATUS_OK || place.size == 1)
        return status;
    pthread_mutex_lock(&lock);
    if (met != NULL) {
        status = bootstrap_agree(met, schedule, diag);
    } else {
        met = bootstrap_open(&place, schedule, connect_s, diag);
        status = met != NULL ? STATUS_OK : STATUS_SYSTEM;
        if (met != NULL) {
            met->timeout_s = message_s;
            atexit(leave);
        }
    }
    *world = met;
    pthread_mutex_unlock(&lock);
    return status;
}
