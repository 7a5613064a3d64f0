#include "predict/workers.h"

#include "base/arena.h"
#include "base/interrupt.h"
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MAX = 256 };

struct child {
    pid_t pid;
    int fd;
    size_t job, received;
};

struct workers {
    struct child child[CHILDREN_MAX];
    size_t children, most, ended;
    size_t result_size;
    workers_function *function;
    void *context;
    char *results;
    bool ended_early; /* by an interrupt: children are killed */
};

static const struct loc nowhere = {.name = "longhaul"};

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

static _Noreturn void be_child(struct workers *w, size_t job, int fd)
{
    /* the pipes of children that were started before belong to the parent */
    for (size_t i = 0; i < w->children; i++)
        close(w->child[i].fd);
    char *result = heap_zalloc(1, w->result_size);
    w->function(w->context, job, result);
    _exit(write_all(fd, result, w->result_size) ? 0 : 2);
}

static enum status start(struct workers *w, size_t job, struct diag *diag)
{
    int ends[2];
    if (pipe(ends) != 0)
        return diag_error(diag, nowhere, STATUS_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        enum status status =
            diag_error(diag, nowhere, STATUS_SYSTEM, "cannot fork: %s", strerror(errno));
        close(ends[0]);
        close(ends[1]);
        return status;
    }
    if (pid == 0) {
        process_ends_with(parent);
        close(ends[0]);
        be_child(w, job, ends[1]);
    }
    close(ends[1]);
    w->child[w->children++] = (struct child){.pid = pid, .fd = ends[0], .job = job};
    return STATUS_OK;
}

/* Takes what a child has written; at its end, lets it go. */
static enum status receive(struct workers *w, size_t i, struct diag *diag)
{
    struct child *child = &w->child[i];
    char *to = w->results + child->job * w->result_size + child->received, spare;
    size_t left = w->result_size - child->received;
    ssize_t got = read(child->fd, left > 0 ? to : &spare, left > 0 ? left : 1);
    if (got < 0 && errno == EINTR)
        return STATUS_OK;
    if (got > 0) {
        child->received += (size_t)got;
        return STATUS_OK;
    }
    int code = 0;
    close(child->fd);
    while (waitpid(child->pid, &code, 0) < 0 && errno == EINTR)
        ;
    struct child ended = *child;
    *child = w->child[--w->children];
    w->ended++;
    if (ended.received == w->result_size)
        return STATUS_OK;
    memset(w->results + ended.job * w->result_size, 0, w->result_size);
    if (w->ended_early)
        return STATUS_OK;
    if (WIFSIGNALED(code))
        return diag_error(diag, nowhere, STATUS_SYSTEM, "the process of job %zu died: %s%s",
                          ended.job + 1, strsignal(WTERMSIG(code)),
                          WTERMSIG(code) == SIGKILL ? "; memory may have run out" : "");
    return diag_error(diag, nowhere, STATUS_SYSTEM, "the process of job %zu ended with code %d",
                      ended.job + 1, WIFEXITED(code) ? WEXITSTATUS(code) : -1);
}

static enum status wait_some(struct workers *w, struct diag *diag)
{
    struct pollfd fds[CHILDREN_MAX];
    size_t count = w->children;
    for (size_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = w->child[i].fd, .events = POLLIN};
    if (poll(fds, (nfds_t)count, -1) < 0)
        return errno == EINTR
                   ? STATUS_OK
                   : diag_error(diag, nowhere, STATUS_SYSTEM, "cannot poll: %s", strerror(errno));
    enum status status = STATUS_OK;
    for (size_t i = count; i-- > 0;) { /* backwards: a child that goes is replaced by the last */
        if (fds[i].revents == 0)
            continue;
        enum status one = receive(w, i, diag);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

enum status workers_run(size_t count, size_t result_size, workers_function *function, void *context,
                        void *results, struct progress *progress, struct diag *diag)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct workers *w = heap_zalloc(1, sizeof *w);
    w->most = cores < 1 ? 1 : cores > CHILDREN_MAX ? CHILDREN_MAX : (size_t)cores;
    w->result_size = result_size;
    w->function = function;
    w->context = context;
    w->results = results;
    if (count > 0)
        memset(results, 0, count * result_size);
    enum status status = STATUS_OK;
    size_t next = 0;
    while (next < count || w->children > 0) {
        enum status one;
        if (interrupted() != 0 && !w->ended_early) {
            w->ended_early = true;
            next = count;
            for (size_t i = 0; i < w->children; i++)
                kill(w->child[i].pid, SIGKILL);
            continue;
        }
        if (progress != NULL)
            progress_update(progress, progress->base + w->ended, "");
        if (next < count && w->children < w->most) {
            one = start(w, next++, diag);
            if (one != STATUS_OK)
                next = count;
        } else {
            one = wait_some(w, diag);
        }
        status = one != STATUS_OK ? one : status;
    }
    free(w);
    return status;
}
