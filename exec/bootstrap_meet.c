#define _DEFAULT_SOURCE /* struct timeval of sockets, getaddrinfo() */
/* How processes meet: rank 0 listens and checks those that come, the others connect to it. */
#include "exec/bootstrap_state.h"

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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, WORDS = 400 };
#define ADVICE "LONGHAUL_PORT chooses another port, the same for all processes"

static const char magic[8] = "longhaul";

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
    uint32_t refusal;
    char words[WORDS]; /* why */
};

static void set_options(int fd)
{
    const int one = 1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* ---- rank 0 ---- */

static struct greeting_answer answer_of(bool refused, const char *words)
{
    struct greeting_answer answer = {.refusal = refused};
    memcpy(answer.magic, magic, sizeof magic);
    snprintf(answer.words, sizeof answer.words, "%s", words);
    return answer;
}

static void send_reply(int fd, bool refused, const char *words)
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
static enum status take_greeting(struct bootstrap *b, int fd, uint64_t *host, uint32_t *come,
                                 char words[WORDS])
{
    struct greeting greeting;
    set_options(fd);
    bootstrap_set_timeout(fd, BOOTSTRAP_GREETING_S);
    if (recv(fd, &greeting, sizeof greeting, MSG_WAITALL) != (ssize_t)sizeof greeting ||
        memcmp(greeting.magic, magic, sizeof magic) != 0) {
        close(fd);
        return STATUS_OK;
    }
    compare(b, &greeting, words);
    send_reply(fd, words[0] != '\0', words);
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
    double until_s = bootstrap_now_s() + b->timeout_s;
    enum status status = STATUS_OK;
    char words[WORDS] = "", missing[120] = "";
    for (uint32_t come = 0; come < CHANNELS * (b->place.size - 1) && status == STATUS_OK;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        double left_s = until_s - bootstrap_now_s();
        int ready = left_s > 0 ? poll(&waiting, 1, (int)(1e3 * left_s) + 1) : 0;
        int peer = ready > 0 ? accept(fd, NULL, NULL) : -1;
        if (peer >= 0) {
            status = take_greeting(b, peer, host, &come, words);
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
            send_reply(b->peer[MESSAGES][r], status != STATUS_OK, status != STATUS_OK ? words : "");
    return status == STATUS_OK
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = "rank 0"}, status, "%s", words);
}

static enum status call_refused(const struct bootstrap *b, const char *call, struct diag *diag)
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
        return call_refused(b, "socket", diag);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    enum status status;
    if (bind(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        status = call_refused(b, "bind", diag);
    else if (listen(fd, BACKLOG) != 0)
        status = call_refused(b, "listen", diag);
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
    double until_s = bootstrap_now_s() + timeout_s;
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
    } while (bootstrap_now_s() < until_s);
    return -1;
}

/* Reads an answer of rank 0 within wait_s; known: it has answered before. */
static enum status hear_greeting(struct bootstrap *b, int fd, bool known, double wait_s,
                                 struct diag *diag)
{
    struct greeting_answer answer = {.refusal = 0};
    const struct loc at = {.name = "rank 0"};
    bootstrap_set_timeout(fd, wait_s);
    errno = 0;
    ssize_t n = recv(fd, &answer, sizeof answer, MSG_WAITALL);
    bool ours = n >= (ssize_t)sizeof magic && memcmp(answer.magic, magic, sizeof magic) == 0;
    if (n == (ssize_t)sizeof answer && ours) {
        answer.words[WORDS - 1] = '\0';
        return answer.refusal ? diag_error(diag, at, STATUS_SYSTEM, "%s", answer.words) : STATUS_OK;
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

static enum status send_greeting(struct bootstrap *b, const struct addrinfo *to,
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
        return call_refused(b, "connect", diag);
    set_options(fd);
    b->peer[channel][0] = fd;
    (void)!send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL);
    /* rank 0 may be held up by others that connect and say nothing */
    return hear_greeting(b, fd, false, 2 * BOOTSTRAP_GREETING_S, diag);
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
        status = send_greeting(b, found, (enum connection_kind)c, diag);
    freeaddrinfo(found);
    return status == STATUS_OK ? hear_greeting(b, b->peer[MESSAGES][0], true,
                                               b->timeout_s + 2 * BOOTSTRAP_GREETING_S, diag)
                               : status;
}

enum status bootstrap_meet(struct bootstrap *b, uint64_t *host, struct diag *diag)
{
    return b->place.rank == 0 ? listen_for_all(b, host, diag) : connect_to_first(b, diag);
}
