#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, which POSIX has only since 2024 */

#include "sim/child.h"

#include "base/arena.h"
#include "base/c_locale.h"
#include "base/process.h"
#include "sim/scheduler/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Maps the memory that both processes share, in both at the same address. */
static enum status share_memory(struct child_run *run, const char *name, struct diag *diag)
{
    size_t head = (sizeof *run->shared_memory + 63) / 64 * 64,
           rows = run->fold.first_op_row_by_class[run->fold.class_count];
    run->shared_bytes =
        head + 2 * rows * sizeof(double) + run->traffic.transfer_count * sizeof(uint64_t);
    void *memory =
        mmap(NULL, run->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM,
                          "cannot share %zu bytes with a simulation: %s", run->shared_bytes,
                          strerror(errno));
    run->shared_memory = memory;
    struct schedule_times *times = &run->shared_memory->times;
    times->start_s = (double *)((char *)memory + head);
    times->end_s = times->start_s + rows;
    times->times_each_transfer_ended = (uint64_t *)(times->end_s + rows);
    return STATUS_OK;
}

/* ---- the child ---- */

static void simulate_in_child(struct scheduler *scheduler, const struct child_run *run)
{
    struct text why = {0};
    clock_t began = clock();
    struct child_shared_results *shared = run->shared_memory;
    pages_make_present(shared, run->shared_bytes);
    shared->status = scheduler_run(scheduler, &shared->times, &why);
    shared->event_loop_cpu_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    snprintf(shared->reason, sizeof shared->reason, "%.*s", (int)why.size,
             why.data ? why.data : "");
    shared->has_finished = 1;
}

/* The exit code of a child that ran out of memory; the child has printed the message (base/arena.h). */
enum { OUT_OF_MEMORY = 2 };

static enum status wait_for_child(pid_t child, const struct child_shared_results *shared,
                                  const char *name, struct diag *diag)
{
    struct loc at = {.name = name};
    int state = 0;
    pid_t got;
    do
        got = waitpid(child, &state, 0);
    while (got < 0 && errno == EINTR);
    /* If SIGCHLD is ignored, or another part of the program waits for every child, the exit code of the child is lost.
     * Then only shared->has_finished tells whether the child had finished. */
    if (got < 0 && errno != ECHILD)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot wait for the simulation: %s",
                          strerror(errno));
    if (got < 0 && !shared->has_finished)
        return diag_error(diag, at, STATUS_SYSTEM,
                          "the simulation ended early: memory may have run out");
    if (WIFSIGNALED(state))
        return diag_error(diag, at, STATUS_SYSTEM, "the simulation was ended by signal %d (%s)%s",
                          WTERMSIG(state), strsignal(WTERMSIG(state)),
                          WTERMSIG(state) == SIGKILL ? ": memory may have run out" : "");
    if (!shared->has_finished && WEXITSTATUS(state) == OUT_OF_MEMORY)
        return diag_error(diag, (struct loc){.name = "longhaul"}, STATUS_SYSTEM,
                          "out of memory: the simulation of %s ended early", name);
    if (!shared->has_finished)
        return diag_error(diag, at, STATUS_SYSTEM, "the simulation ended early with exit code %d",
                          WEXITSTATUS(state));
    if (shared->status != STATUS_OK)
        return diag_error(diag, at, shared->status, "%s", shared->reason);
    return STATUS_OK;
}

static enum status run_in_fork(struct scheduler *scheduler, const struct child_run *run,
                               const char *name, struct diag *diag)
{
    enum status loaded = engine_load(diag);
    if (loaded != STATUS_OK)
        return loaded;
    /* otherwise SimGrid would print the parent's pending output a second time in the child */
    fflush(stdout);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM,
                          "cannot start a simulation: fork: %s", strerror(errno));
    if (child == 0) {
        process_end_with_parent(parent);
        c_locale_enter(); /* SimGrid reads numbers with strtod() */
        simulate_in_child(scheduler, run);
        _exit(0); /* no exit handlers: they are the parent's */
    }
    return wait_for_child(child, run->shared_memory, name, diag);
}

/* ---- a run of the simulator in a child process ---- */

void child_run_release(struct child_run *run)
{
    if (run->shared_memory)
        munmap(run->shared_memory, run->shared_bytes);
    fold_release(&run->fold);
    prune_release(&run->pruned);
    traffic_release(&run->traffic);
}

enum status child_run_make(struct child_run *run, const struct ir *ir,
                           const struct cluster *cluster, const struct sim_costs *costs,
                           const uint32_t *uniform_rank_plus_1_by_guard,
                           const struct sim_options *options, const char *name, struct diag *diag)
{
    *run = (struct child_run){0};
    enum status status = traffic_make(&run->traffic, ir, cluster, costs,
                                      uniform_rank_plus_1_by_guard, options, name, diag);
    if (status != STATUS_OK)
        return status;
    prune_make(&run->pruned, &run->traffic.platform, &run->traffic.flows);
    fold_make(&run->fold, &run->traffic, &run->pruned, options->simulates_every_rank_and_op);
    struct scheduler *scheduler = scheduler_new(&run->traffic, &run->fold);
    status = share_memory(run, name, diag);
    if (status == STATUS_OK)
        status = run_in_fork(scheduler, run, name, diag);
    scheduler_free(scheduler);
    return status;
}
