#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "predict/workers.h"

#include "base/arena.h"
#include "base/interrupt.h"
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MAX = 256 };

/* A page that the children and the parent share. */
struct shared_page {
    _Atomic size_t next;                 /* the first job that no child has taken */
    _Atomic size_t job_of[CHILDREN_MAX]; /* what the child in each place works on */
};

struct child {
    pid_t pid;
    int fd;
    size_t place;    /* in shared->job_of */
    size_t received; /* bytes of the message under way */
    char *message;   /* the number of a job, then its result */
};

struct workers {
    struct child child[CHILDREN_MAX];
    size_t children, count, ended;
    size_t result_size;
    workers_function *function;
    void *context;
    char *results;
    struct shared_page *shared;
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

static size_t message_size(const struct workers *w)
{
    return sizeof(size_t) + w->result_size;
}

/* Takes one job after the other, as long as there are any, and sends each result. */
static _Noreturn void be_child(struct workers *w, size_t place, int fd)
{
    /* the pipes of children that were started before belong to the parent */
    for (size_t i = 0; i < w->children; i++)
        close(w->child[i].fd);
    char *message = heap_alloc(1, message_size(w));
    for (;;) {
        size_t job = atomic_fetch_add(&w->shared->next, 1);
        if (job >= w->count)
            _exit(0);
        atomic_store(&w->shared->job_of[place], job);
        memset(message, 0, message_size(w));
        memcpy(message, &job, sizeof job);
        w->function(w->context, job, message + sizeof job);
        if (!write_all(fd, message, message_size(w)))
            _exit(2);
        atomic_store(&w->shared->job_of[place], SIZE_MAX);
    }
}

static enum status start(struct workers *w, size_t place, struct diag *diag)
{
    int ends[2];
    if (pipe(ends) != 0)
        return diag_error(diag, nowhere, STATUS_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    atomic_store(&w->shared->job_of[place], SIZE_MAX);
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
        be_child(w, place, ends[1]);
    }
    close(ends[1]);
    w->child[w->children++] = (struct child){
        .pid = pid, .fd = ends[0], .place = place, .message = heap_alloc(1, message_size(w))};
    return STATUS_OK;
}

/* Lets a child go that has closed its pipe, and says so if it was at work on a job. */
static enum status release(struct workers *w, size_t i, struct diag *diag)
{
    struct child ended = w->child[i];
    int code = 0;
    close(ended.fd);
    pid_t got;
    do
        got = waitpid(ended.pid, &code, 0);
    while (got < 0 && errno == EINTR);
    bool lost =
        got < 0; /* SIGCHLD is ignored, or another part of the program waits for every child */
    free(ended.message);
    w->child[i] = w->child[--w->children];
    size_t job = atomic_load(&w->shared->job_of[ended.place]);
    if (w->ended_early || (lost ? job == SIZE_MAX : WIFEXITED(code) && WEXITSTATUS(code) == 0))
        return STATUS_OK;
    enum status status = start(w, ended.place, diag); /* the new child continues with the other
                                                         jobs */
    if (status != STATUS_OK || job == SIZE_MAX) /* workers_run() reports a job that is missing */
        return status;
    w->ended++;
    if (lost)
        return diag_error(diag, nowhere, STATUS_SYSTEM, "the process of job %zu ended early",
                          job + 1);
    if (WIFSIGNALED(code))
        return diag_error(diag, nowhere, STATUS_SYSTEM,
                          "the process of job %zu was ended by a signal: %s%s", job + 1,
                          strsignal(WTERMSIG(code)),
                          WTERMSIG(code) == SIGKILL ? "; memory may have run out" : "");
    return diag_error(diag, nowhere, STATUS_SYSTEM, "the process of job %zu ended with code %d",
                      job + 1, WIFEXITED(code) ? WEXITSTATUS(code) : -1);
}

/* Takes what a child has written; at its end, lets it go. */
static enum status receive(struct workers *w, size_t i, struct diag *diag)
{
    struct child *child = &w->child[i];
    ssize_t got =
        read(child->fd, child->message + child->received, message_size(w) - child->received);
    if (got < 0 && errno == EINTR)
        return STATUS_OK;
    if (got <= 0)
        return release(w, i, diag);
    child->received += (size_t)got;
    if (child->received < message_size(w))
        return STATUS_OK;
    size_t job;
    memcpy(&job, child->message, sizeof job);
    memcpy(w->results + job * w->result_size, child->message + sizeof job, w->result_size);
    child->received = 0;
    w->ended++;
    return STATUS_OK;
}

static enum status wait_some(struct workers *w, struct diag *diag)
{
    struct pollfd fds[CHILDREN_MAX];
    size_t count = w->children;
    for (size_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = w->child[i].fd, .events = POLLIN};
    if (poll(fds, (nfds_t)count, -1) < 0)
        return errno == EINTR ? STATUS_OK
                              : diag_error(diag, nowhere, STATUS_SYSTEM,
                                           "cannot wait for child processes: %s", strerror(errno));
    enum status status = STATUS_OK;
    for (size_t i = count; i-- > 0;) { /* backwards: a child that goes is replaced by the last */
        if (fds[i].revents == 0)
            continue;
        enum status one = receive(w, i, diag);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

static void *share(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

enum status workers_run(size_t count, size_t result_size, workers_function *function, void *context,
                        void *results, struct progress *progress, struct diag *diag)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = cores < 1 ? 1 : cores > CHILDREN_MAX ? CHILDREN_MAX : (size_t)cores;
    enum status status = STATUS_OK;
    if (count == 0)
        return STATUS_OK;
    memset(results, 0, count * result_size);
    struct workers *w = heap_zalloc(1, sizeof *w);
    *w = (struct workers){.count = count,
                          .result_size = result_size,
                          .function = function,
                          .context = context,
                          .results = results,
                          .shared = share(sizeof *w->shared)};
    if (w->shared == NULL)
        status = diag_error(diag, nowhere, STATUS_SYSTEM, "cannot share a page with children: %s",
                            strerror(errno));
    for (size_t i = 0; status == STATUS_OK && i < most && i < count; i++)
        status = start(w, i, diag);
    while (w->children > 0) {
        if (interrupted() != 0 && !w->ended_early) {
            w->ended_early = true;
            for (size_t i = 0; i < w->children; i++)
                kill(w->child[i].pid, SIGKILL);
            continue;
        }
        if (progress != NULL)
            progress_update(progress, progress->base + w->ended,
                            progress->note != NULL ? progress->note : "");
        enum status one = wait_some(w, diag);
        status = one != STATUS_OK ? one : status;
    }
    if (status == STATUS_OK && !w->ended_early && w->ended < count)
        status = diag_error(diag, nowhere, STATUS_SYSTEM,
                            "%zu of %zu jobs were not done: their processes ended early",
                            count - w->ended, count);
    if (w->shared != NULL)
        munmap(w->shared, sizeof *w->shared);
    free(w);
    return status;
}
