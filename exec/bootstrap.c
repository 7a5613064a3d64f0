#define _DEFAULT_SOURCE /* struct timeval of sockets, getaddrinfo() */
#include "exec/bootstrap.h"

#include "base/arena.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 29555, BACKLOG = 1024 };

struct bootstrap {
    struct bootstrap_place place;
    int *peer; /* rank 0: (size) sockets; others: only peer[0] is one */
    bool broken;
};

/* ---- rank and size of this process ---- */

static const char *either(const char *name, const char *other, const char **used)
{
    const char *value = getenv(name);
    *used = value != NULL ? name : other;
    return value != NULL ? value : getenv(other);
}

static enum status read_number(const char *name, const char *other, uint32_t fallback,
                               uint32_t *number, struct diag *diag)
{
    const char *used, *text = either(name, other, &used);
    char *end;
    *number = fallback;
    if (text == NULL)
        return STATUS_OK;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value > 65535)
        return diag_error(
            diag, (struct loc){.name = used}, STATUS_BAD_INPUT,
            "'%s' is not a whole number from 0 to 65535; a launcher (torchrun, srun) sets this "
            "variable",
            text);
    *number = (uint32_t)value;
    return STATUS_OK;
}

enum status bootstrap_place_read(struct bootstrap_place *place, struct diag *diag)
{
    const char *used, *host = either("MASTER_ADDR", "SLURM_LAUNCH_NODE_IPADDR", &used);
    uint32_t port = PORT;
    *place = (struct bootstrap_place){.size = 1};
    enum status status = read_number("WORLD_SIZE", "SLURM_NTASKS", 1, &place->size, diag);
    if (status == STATUS_OK)
        status = read_number("RANK", "SLURM_PROCID", 0, &place->rank, diag);
    if (status == STATUS_OK)
        status = read_number("LOCAL_RANK", "SLURM_LOCALID", place->rank, &place->local, diag);
    if (status == STATUS_OK)
        status = read_number("MASTER_PORT", "MASTER_PORT", PORT, &port, diag);
    if (status == STATUS_OK && (place->size == 0 || place->rank >= place->size))
        status = diag_error(diag, (struct loc){.name = "WORLD_SIZE"}, STATUS_BAD_INPUT,
                            "rank %" PRIu32 " of %" PRIu32 " processes; ranks count from 0",
                            place->rank, place->size);
    place->port = (uint16_t)port;
    snprintf(place->host, sizeof place->host, "%s", host != NULL ? host : "127.0.0.1");
    return status;
}

/* ---- sockets ---- */

static enum status gone(struct bootstrap *b, uint32_t peer, const char *call, struct diag *diag)
{
    b->broken = true;
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                      "rank %" PRIu32 " has lost the connection to rank %" PRIu32 ": %s",
                      b->place.rank, peer, errno != 0 ? strerror(errno) : "it has ended");
}

static void set_options(int fd, double timeout_s)
{
    const int one = 1;
    struct timeval t = {(time_t)timeout_s, 0};
    if (t.tv_sec < 1)
        t.tv_sec = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static enum status put(struct bootstrap *b, uint32_t peer, const void *data, size_t bytes,
                       struct diag *diag)
{
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        ssize_t n = send(b->peer[peer], (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
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
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        ssize_t n = recv(b->peer[peer], (char *)data + done, bytes - done, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return gone(b, peer, "recv", diag);
        done += (size_t)n;
    }
    return STATUS_OK;
}

static enum status refused(const struct bootstrap *b, const char *call, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM,
                      "rank %" PRIu32 " of %" PRIu32 " cannot use the address %s:%" PRIu16 ": %s",
                      b->place.rank, b->place.size, b->place.host, b->place.port, strerror(errno));
}

/* Makes on rank 0 a socket for every other rank. A connection that does not name a rank that is still missing is
 * closed. */
static enum status listen_for_all(struct bootstrap *b, double timeout_s, struct diag *diag)
{
    const int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(b->place.port)};
    enum status status = STATUS_OK;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (fd < 0)
        return refused(b, "socket", diag);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    set_options(fd, timeout_s);
    if (bind(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        status = refused(b, "bind", diag);
    else if (listen(fd, BACKLOG) != 0)
        status = refused(b, "listen", diag);
    for (uint32_t come = 1; come < b->place.size && status == STATUS_OK;) {
        uint32_t rank = 0;
        int peer = accept(fd, NULL, NULL);
        if (peer < 0 && errno == EINTR)
            continue;
        if (peer < 0) {
            status = diag_error(diag, (struct loc){.name = "accept"}, STATUS_SYSTEM,
                                "only %" PRIu32 " of %" PRIu32 " processes have connected: %s",
                                come, b->place.size, strerror(errno));
            break;
        }
        set_options(peer, timeout_s);
        if (recv(peer, &rank, sizeof rank, MSG_WAITALL) != (ssize_t)sizeof rank || rank == 0 ||
            rank >= b->place.size || b->peer[rank] >= 0) {
            close(peer);
            continue;
        }
        b->peer[rank] = peer;
        come++;
    }
    close(fd);
    return status;
}

static enum status connect_to_first(struct bootstrap *b, double timeout_s, struct diag *diag)
{
    static const struct timespec nap = {0, 20000000};
    char port[8];
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    snprintf(port, sizeof port, "%" PRIu16, b->place.port);
    int error = getaddrinfo(b->place.host, port, &wanted, &found);
    if (error != 0)
        return diag_error(diag, (struct loc){.name = "getaddrinfo"}, STATUS_SYSTEM, "%s: %s",
                          b->place.host, gai_strerror(error));
    for (long tries = (long)(timeout_s / 0.02); tries > 0; tries--) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
            set_options(fd, timeout_s);
            b->peer[0] = fd;
            break;
        }
        if (fd >= 0)
            close(fd);
        nanosleep(&nap, NULL);
    }
    freeaddrinfo(found);
    return b->peer[0] >= 0 ? put(b, 0, &b->place.rank, sizeof b->place.rank, diag)
                           : refused(b, "connect", diag);
}

struct bootstrap *bootstrap_open(const struct bootstrap_place *place, double timeout_s,
                                 struct diag *diag)
{
    struct bootstrap *b = heap_zalloc(1, sizeof *b);
    b->place = *place;
    b->peer = heap_alloc(place->size, sizeof *b->peer);
    for (uint32_t i = 0; i < place->size; i++)
        b->peer[i] = -1;
    enum status status = place->size == 1   ? STATUS_OK
                         : place->rank == 0 ? listen_for_all(b, timeout_s, diag)
                                            : connect_to_first(b, timeout_s, diag);
    if (status == STATUS_OK)
        return b;
    bootstrap_close(b);
    return NULL;
}

void bootstrap_close(struct bootstrap *b)
{
    if (b == NULL)
        return;
    for (uint32_t i = 0; i < b->place.size; i++)
        if (b->peer[i] >= 0)
            close(b->peer[i]);
    free(b->peer);
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

/* ---- of this process ---- */

bool bootstrap_speaks(void)
{
    struct bootstrap_place place;
    struct diag nobody = {0};
    bool speaks = bootstrap_place_read(&place, &nobody) != STATUS_OK || place.rank == 0;
    diag_release(&nobody);
    return speaks;
}

static struct bootstrap *met;

static void leave(void)
{
    bootstrap_close(met);
    met = NULL;
}

enum status bootstrap_world(struct bootstrap **world, struct diag *diag)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const double timeout_s = 120;
    struct bootstrap_place place;
    enum status status = bootstrap_place_read(&place, diag);
    *world = NULL;
    if (status != STATUS_OK || place.size == 1)
        return status;
    pthread_mutex_lock(&lock);
    if (met == NULL) {
        met = bootstrap_open(&place, timeout_s, diag);
        if (met != NULL)
            atexit(leave);
    }
    *world = met;
    pthread_mutex_unlock(&lock);
    return met != NULL ? STATUS_OK : STATUS_SYSTEM;
}
