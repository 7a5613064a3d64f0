#define _DEFAULT_SOURCE /* struct timeval of sockets, getaddrinfo() */
/* Connects the processes: rank 0 listens and checks every process that connects to it. */
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

/* BACKLOG: connections that may wait until rank 0 accepts them. WORDS: bytes of a reason for a refusal. */
enum { BACKLOG = 4096, WORDS = 400 };
#define OTHER_PORT_ADVICE "LONGHAUL_PORT chooses another port, the same for all processes"

static const char magic[8] = "longhaul";

/* The first message of a process on a connection. */
struct greeting {
    char magic[8];
    char program_version[24];
    uint32_t rank, process_count, connection;
    uint64_t request_digest;
    uint64_t machine_id; /* equal on processes of one machine */
};

/* An answer of rank 0. It answers every greeting; when all processes have connected, or it has given up, it sends each
 * connected process a second answer on its connection MESSAGES. */
struct greeting_answer {
    char magic[8];
    uint32_t is_refused;
    char reason[WORDS]; /* why the process is refused; "": it is accepted */
};

static void set_socket_options(int fd)
{
    const int one = 1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* ---- rank 0: its wait for the other ranks ---- */

static struct greeting_answer make_answer(bool refused, const char *words)
{
    struct greeting_answer answer = {.is_refused = refused};
    memcpy(answer.magic, magic, sizeof magic);
    snprintf(answer.reason, sizeof answer.reason, "%s", words);
    return answer;
}

static void send_reply(int fd, bool refused, const char *words)
{
    const struct greeting_answer answer = make_answer(refused, words);
    /* a process that has left is noticed later */
    (void)!send(fd, &answer, sizeof answer, MSG_NOSIGNAL);
}

/* Writes to `words` why a process that has connected must be refused: how it differs from rank 0, or that its rank is
 * impossible or already connected; "" if it is accepted. */
static void describe_greeting_mismatch(const struct bootstrap *b, const struct greeting *g,
                                       char words[WORDS])
{
    const char *version = LONGHAUL_VERSION;
    words[0] = '\0';
    if (strncmp(g->program_version, version, sizeof g->program_version) != 0)
        snprintf(words, WORDS,
                 "rank %" PRIu32 " runs longhaul %.*s and rank 0 runs longhaul %s; all processes "
                 "must run one version",
                 g->rank, (int)sizeof g->program_version, g->program_version, version);
    else if (g->process_count != b->place.process_count)
        snprintf(words, WORDS,
                 "rank %" PRIu32 " is one of %" PRIu32 " processes and rank 0 one of %" PRIu32
                 "; the launcher must give all the same number",
                 g->rank, g->process_count, b->place.process_count);
    else if (g->rank == 0 || g->rank >= b->place.process_count || g->connection >= CHANNELS)
        snprintf(words, WORDS, "rank %" PRIu32 " has connected to rank 0 of %" PRIu32 " processes",
                 g->rank, b->place.process_count);
    else if (g->request_digest != b->request_digest)
        snprintf(words, WORDS,
                 "rank %" PRIu32
                 " has another schedule, or other options, than rank 0; all processes must be "
                 "started with the same options and files",
                 g->rank);
    else if (b->sockets[g->connection][g->rank] >= 0)
        snprintf(words, WORDS,
                 "rank %" PRIu32 " has connected twice: another run may use port %" PRIu16
                 "; " OTHER_PORT_ADVICE,
                 g->rank, b->place.rank0_port);
}

/* Reads the greeting on a new connection and answers it. An accepted connection is stored, with the machine id of its
 * process in host[], and counted in *come. A connection without a valid greeting belongs to another program and is
 * closed; it is no error. Returns STATUS_SYSTEM if the process is refused, and `words` says why. */
static enum status accept_greeting(struct bootstrap *b, int fd, uint64_t *host, uint32_t *come,
                                   char words[WORDS])
{
    struct greeting greeting;
    set_socket_options(fd);
    bootstrap_set_timeout(fd, BOOTSTRAP_GREETING_TIMEOUT_S);
    if (recv(fd, &greeting, sizeof greeting, MSG_WAITALL) != (ssize_t)sizeof greeting ||
        memcmp(greeting.magic, magic, sizeof magic) != 0) {
        close(fd);
        return STATUS_OK;
    }
    describe_greeting_mismatch(b, &greeting, words);
    send_reply(fd, words[0] != '\0', words);
    if (words[0] != '\0') {
        close(fd);
        return STATUS_SYSTEM;
    }
    b->sockets[greeting.connection][greeting.rank] = fd;
    host[greeting.rank] = greeting.machine_id;
    ++*come;
    return STATUS_OK;
}

static void append_missing_ranks(const struct bootstrap *b, char *words, size_t size)
{
    enum { NAMED = 8 };
    uint32_t missing = 0;
    size_t used = 0;
    for (uint32_t r = 1; r < b->place.process_count; r++)
        if (b->sockets[MESSAGES][r] < 0 && missing++ < NAMED && used < size)
            used += (size_t)snprintf(words + used, size - used, "%s%" PRIu32,
                                     missing > 1 ? ", " : "", r);
    if (missing > NAMED && used < size)
        snprintf(words + used, size - used, " and %" PRIu32 " more", missing - NAMED);
}

static enum status await_all_processes(struct bootstrap *b, int fd, uint64_t *host,
                                       struct diag *diag)
{
    double until_s = bootstrap_now_s() + b->timeout_s;
    enum status status = STATUS_OK;
    char words[WORDS] = "", missing[120] = "";
    for (uint32_t come = 0;
         come < CHANNELS * (b->place.process_count - 1) && status == STATUS_OK;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        double left_s = until_s - bootstrap_now_s();
        int ready = left_s > 0 ? poll(&waiting, 1, (int)(1e3 * left_s) + 1) : 0;
        int peer = ready > 0 ? accept(fd, NULL, NULL) : -1;
        if (peer >= 0) {
            status = accept_greeting(b, peer, host, &come, words);
        } else if (ready == 0) {
            append_missing_ranks(b, missing, sizeof missing);
            c_snprintf(words, sizeof words,
                       "of %" PRIu32 " processes not all have connected to port %" PRIu16
                       " within %g s; missing: rank %s",
                       b->place.process_count, b->place.rank0_port, b->timeout_s, missing);
            status = STATUS_SYSTEM;
        }
    }
    for (uint32_t r = 1; r < b->place.process_count; r++)
        if (b->sockets[MESSAGES][r] >= 0)
            send_reply(b->sockets[MESSAGES][r], status != STATUS_OK,
                       status != STATUS_OK ? words : "");
    return status == STATUS_OK
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = "rank 0"}, status, "%s", words);
}

static enum status report_failed_call(const struct bootstrap *b, const char *call,
                                      struct diag *diag)
{
    if (errno == EADDRINUSE)
        return diag_error(
            diag, (struct loc){.name = call}, STATUS_SYSTEM,
            "rank 0 of %" PRIu32 " cannot listen on port %" PRIu16
            ": another program has it, or another run on this machine; " OTHER_PORT_ADVICE,
            b->place.process_count, b->place.rank0_port);
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                      "rank %" PRIu32 " of %" PRIu32 " cannot use the address %s:%" PRIu16 ": %s",
                      b->place.rank, b->place.process_count, b->place.rank0_host,
                      b->place.rank0_port, strerror(errno));
}

/* Listens on rank 0 until every other rank has made all its connections; fails if one is refused or time is up. host[r]
 * receives the machine id of rank r. */
static enum status listen_for_all(struct bootstrap *b, uint64_t *host, struct diag *diag)
{
    const int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(b->place.rank0_port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (fd < 0)
        return report_failed_call(b, "socket", diag);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    enum status status;
    if (bind(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        status = report_failed_call(b, "bind", diag);
    else if (listen(fd, BACKLOG) != 0)
        status = report_failed_call(b, "listen", diag);
    else
        status = await_all_processes(b, fd, host, diag);
    close(fd);
    return status;
}

/* ---- the other ranks: their connections to rank 0 ---- */

/* True if a socket is connected to itself. Linux does this when no process listens on the port and the kernel
 * chooses the same port for the caller's end. */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_in own = {0}, other = {0};
    socklen_t size = sizeof own;
    if (getsockname(fd, (struct sockaddr *)(void *)&own, &size) != 0)
        return false;
    size = sizeof other;
    return getpeername(fd, (struct sockaddr *)(void *)&other, &size) == 0 &&
           own.sin_port == other.sin_port && own.sin_addr.s_addr == other.sin_addr.s_addr;
}

/* Tries for timeout_s seconds to connect. Returns the socket, or -1 if no attempt succeeds; errno is then that of the
 * last attempt. */
static int connect_with_retries(const struct addrinfo *to, double timeout_s)
{
    static const struct timespec nap = {0, 20000000};
    double until_s = bootstrap_now_s() + timeout_s;
    do {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0) /* Linux waits two minutes for an address that does not answer */
            bootstrap_set_timeout(fd, timeout_s);
        if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 && !is_connected_to_itself(fd))
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

/* Reads an answer of rank 0 within wait_s. known: rank 0 has answered before, so a closed connection means that it
 * has ended. */
static enum status read_answer(struct bootstrap *b, int fd, bool known, double wait_s,
                               struct diag *diag)
{
    struct greeting_answer answer = {.is_refused = 0};
    const struct loc at = {.name = "rank 0"};
    bootstrap_set_timeout(fd, wait_s);
    errno = 0;
    ssize_t n = recv(fd, &answer, sizeof answer, MSG_WAITALL);
    bool ours = n >= (ssize_t)sizeof magic && memcmp(answer.magic, magic, sizeof magic) == 0;
    if (n == (ssize_t)sizeof answer && ours) {
        answer.reason[WORDS - 1] = '\0';
        return answer.is_refused ? diag_error(diag, at, STATUS_SYSTEM, "%s", answer.reason)
                                 : STATUS_OK;
    }
    if (known || ours)
        return diag_error(diag, at, STATUS_SYSTEM,
                          "rank %" PRIu32 " has connected, but rank 0 has ended or does not answer",
                          b->place.rank);
    return diag_error(diag, at, STATUS_SYSTEM,
                      "rank %" PRIu32
                      " does not find rank 0: another program listens on %s:%" PRIu16
                      " and does not answer as longhaul would; " OTHER_PORT_ADVICE,
                      b->place.rank, b->place.rank0_host, b->place.rank0_port);
}

/* Reports that rank 0 was not found on its address; errno is that of the last attempt to connect. */
static enum status report_absent_rank0(const struct bootstrap *b, struct diag *diag)
{
    const char *why = errno == EINPROGRESS ? "no answer" : strerror(errno);
    return diag_error(diag, (struct loc){.name = "rank 0"}, STATUS_SYSTEM,
                      "rank %" PRIu32 " of %" PRIu32 " has not found it on %s:%" PRIu16
                      " within %g s (%s): either it has not started, or it has ended, or "
                      "MASTER_ADDR names another machine",
                      b->place.rank, b->place.process_count, b->place.rank0_host,
                      b->place.rank0_port, b->timeout_s, why);
}

static enum status send_greeting(struct bootstrap *b, const struct addrinfo *to,
                                 enum connection_kind channel, struct diag *diag)
{
    struct greeting greeting = {.program_version = LONGHAUL_VERSION,
                                .rank = b->place.rank,
                                .process_count = b->place.process_count,
                                .connection = channel,
                                .request_digest = b->request_digest,
                                .machine_id = b->machine_id};
    memcpy(greeting.magic, magic, sizeof magic);
    int fd = connect_with_retries(to, b->timeout_s);
    if (fd < 0)
        return report_absent_rank0(b, diag);
    set_socket_options(fd);
    b->sockets[channel][0] = fd;
    (void)!send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL);
    /* the limit is long, since other programs that connect and send nothing may delay rank 0 */
    return read_answer(b, fd, false, 2 * BOOTSTRAP_GREETING_TIMEOUT_S, diag);
}

static enum status connect_to_rank0(struct bootstrap *b, struct diag *diag)
{
    char port[8];
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    snprintf(port, sizeof port, "%" PRIu16, b->place.rank0_port);
    int error = getaddrinfo(b->place.rank0_host, port, &wanted, &found);
    if (error != 0)
        return diag_error(diag, (struct loc){.name = "MASTER_ADDR"}, STATUS_SYSTEM,
                          "rank %" PRIu32 " of %" PRIu32 " knows no machine '%s' (%s)",
                          b->place.rank, b->place.process_count, b->place.rank0_host,
                          gai_strerror(error));
    enum status status = STATUS_OK;
    for (int c = 0; c < CHANNELS && status == STATUS_OK; c++)
        status = send_greeting(b, found, (enum connection_kind)c, diag);
    freeaddrinfo(found);
    return status == STATUS_OK ? read_answer(b, b->sockets[MESSAGES][0], true,
                                             b->timeout_s + 2 * BOOTSTRAP_GREETING_TIMEOUT_S, diag)
                               : status;
}

enum status bootstrap_connect_processes(struct bootstrap *b, uint64_t *host, struct diag *diag)
{
    return b->place.rank == 0 ? listen_for_all(b, host, diag) : connect_to_rank0(b, diag);
}
