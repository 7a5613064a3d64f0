#define _GNU_SOURCE /* sched_getaffinity: a launcher may have bound us to a few of the cores */

#include "base/pool.h"

#include "base/arena.h"
#include "base/open_file.h"
#include "base/process.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct pool_worker {
    pid_t pid;
    int to_fd, from_fd; /* the parent's ends of the pipes to and from the worker */
    bool is_busy;
    uint64_t job;
    struct text answer;
};

static const struct loc nowhere = {.name = "longhaul"};

size_t pool_count_usable_cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return count > 0 ? (size_t)count : 1;
}

static bool read_all(int fd, void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        ssize_t got = read(fd, at, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

/* Does jobs in a worker process until the parent ends it. A worker leads a process group of its own, so an interrupt
 * from the terminal reaches only the parent. The parent ends the whole group, which has the worker's children, too. */
static _Noreturn void run_worker(struct pool *pool, int from, int to, pid_t parent)
{
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    process_end_with_parent(parent);
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].pid > 0) {
            close(pool->workers[i].to_fd);
            close(pool->workers[i].from_fd);
        }
    struct text answer = {0};
    uint64_t job;
    while (read_all(from, &job, sizeof job)) {
        answer.size = 0;
        pool->function(pool->context, job, &answer);
        uint64_t size = answer.size;
        if (!open_file_write_all_to_fd(to, &size, sizeof size) ||
            !open_file_write_all_to_fd(to, answer.data, answer.size))
            _exit(2);
    }
    _exit(0);
}

static enum status start_worker(struct pool *pool, struct pool_worker *worker, struct diag *diag)
{
    int to_worker_fds[2], from_worker_fds[2];
    worker->pid = 0;
    if (pipe(to_worker_fds) != 0)
        return diag_error(diag, nowhere, STATUS_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    if (pipe(from_worker_fds) != 0) {
        close(to_worker_fds[0]);
        close(to_worker_fds[1]);
        return diag_error(diag, nowhere, STATUS_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(to_worker_fds[1]);
        close(from_worker_fds[0]);
        run_worker(pool, to_worker_fds[0], from_worker_fds[1], parent);
    }
    int error = errno;
    close(to_worker_fds[0]);
    close(from_worker_fds[1]);
    if (pid < 0) {
        close(to_worker_fds[1]);
        close(from_worker_fds[0]);
        return diag_error(diag, nowhere, STATUS_SYSTEM, "cannot fork: %s", strerror(error));
    }
    setpgid(pid, pid); /* the child does so too: the group must exist before either goes on */
    worker->pid = pid;
    worker->to_fd = to_worker_fds[1];
    worker->from_fd = from_worker_fds[0];
    worker->is_busy = false;
    return STATUS_OK;
}

/* Waits for the process of a worker that ends by itself or was killed, closes its pipes and sets its `pid` to 0.
 * Appends to *how in which way it ended, unless how is NULL. */
static void collect_exit_of_worker(struct pool_worker *worker, struct text *how)
{
    int state = 0;
    pid_t got;
    close(worker->to_fd);
    close(worker->from_fd);
    do
        got = waitpid(worker->pid, &state, 0);
    while (got < 0 && errno == EINTR);
    worker->pid = 0;
    if (how == NULL)
        return;
    if (got < 0) /* SIGCHLD is ignored, or another part of the program waits for every child */
        text_puts(how, "its process ended early");
    else if (WIFSIGNALED(state))
        text_printf(how, "its process was ended by a signal: %s%s", strsignal(WTERMSIG(state)),
                    WTERMSIG(state) == SIGKILL ? "; memory may have run out" : "");
    else
        text_printf(how, "its process ended with code %d",
                    WIFEXITED(state) ? WEXITSTATUS(state) : -1);
}

enum status pool_start(struct pool *pool, size_t workers, pool_function *function, void *context,
                       struct diag *diag)
{
    *pool = (struct pool){.workers = heap_zalloc(workers + 1, sizeof *pool->workers),
                          .worker_count = workers,
                          .function = function,
                          .context = context};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < workers; i++)
        status = start_worker(pool, &pool->workers[i], diag);
    return status;
}

void pool_release(struct pool *pool)
{
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].pid > 0) {
            kill(-pool->workers[i].pid, SIGKILL);
            collect_exit_of_worker(&pool->workers[i], NULL);
        }
    for (size_t i = 0; i < pool->worker_count; i++)
        text_release(&pool->workers[i].answer);
    free(pool->workers);
    *pool = (struct pool){0};
}

enum status pool_submit_job(struct pool *pool, uint64_t job, struct diag *diag)
{
    assert(pool->busy_workers < pool->worker_count);
    struct pool_worker *worker = pool->workers;
    while (worker->is_busy)
        worker++;
    /* a worker that died while it was idle had no job, so it is replaced without a report */
    if (!open_file_write_all_to_fd(worker->to_fd, &job, sizeof job)) {
        collect_exit_of_worker(worker, NULL);
        enum status status = start_worker(pool, worker, diag);
        if (status != STATUS_OK)
            return status;
        if (!open_file_write_all_to_fd(worker->to_fd, &job, sizeof job))
            return diag_error(diag, nowhere, STATUS_SYSTEM,
                              "cannot send a job to a worker process: %s", strerror(errno));
    }
    worker->is_busy = true;
    worker->job = job;
    pool->busy_workers++;
    return STATUS_OK;
}

/* Reads the answer that a busy worker has begun to write, into *event. If the worker has died, the event says so, and a
 * new worker takes its place. */
static enum status receive_answer(struct pool *pool, struct pool_worker *worker,
                                  struct pool_event *event, struct diag *diag)
{
    uint64_t size = 0;
    struct text *answer = &worker->answer;
    *event = (struct pool_event){.kind = POOL_ANSWER, .job = worker->job, .answer = answer};
    answer->size = 0;
    pool->busy_workers--;
    worker->is_busy = false;
    bool whole = read_all(worker->from_fd, &size, sizeof size);
    char piece[4096];
    while (whole && answer->size < size) {
        size_t left = (size_t)size - answer->size;
        left = left < sizeof piece ? left : sizeof piece;
        whole = read_all(worker->from_fd, piece, left);
        if (whole)
            text_append(answer, piece, left);
    }
    if (whole)
        return STATUS_OK;
    event->kind = POOL_DEATH;
    kill(-worker->pid, SIGKILL); /* ends the processes that the worker left running */
    answer->size = 0;
    collect_exit_of_worker(worker, answer);
    return start_worker(pool, worker, diag);
}

enum status pool_wait(struct pool *pool, int timeout_ms, struct pool_event *event,
                      struct diag *diag)
{
    struct pollfd *fds = heap_zalloc(pool->worker_count + 1, sizeof *fds);
    enum status status = STATUS_OK;
    *event = (struct pool_event){.kind = POOL_NO_EVENT};
    for (size_t i = 0; i < pool->worker_count; i++) /* poll() skips negative descriptors */
        fds[i] = (struct pollfd){.fd = pool->workers[i].is_busy ? pool->workers[i].from_fd : -1,
                                 .events = POLLIN};
    int ready = poll(fds, (nfds_t)pool->worker_count, timeout_ms);
    if (ready < 0 && errno != EINTR)
        status = diag_error(diag, nowhere, STATUS_SYSTEM, "cannot poll: %s", strerror(errno));
    for (size_t i = 0; ready > 0 && i < pool->worker_count; i++)
        if (fds[i].revents != 0) {
            status = receive_answer(pool, &pool->workers[i], event, diag);
            break;
        }
    free(fds);
    return status;
}
