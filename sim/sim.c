#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, which POSIX has only since 2024 */

#include "sim/sim.h"
#include "sim/fold.h"
#include "sim/memory.h"
#include "sim/plan.h"
#include "sim/prune.h"
#include "sim/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what parent and child share ---- */

enum { WHY_SIZE = 2048 };

/* The head of the mapping; the arrays follow it. The child writes, the parent reads. */
struct shared {
    int finished; /* set last: a child that dies leaves 0 */
    enum status status;
    double step_s, wall_s;
    uint64_t flows, timers;
    char why[WHY_SIZE];
};

struct mapping {
    struct shared *shared;
    double *start_s, *end_s;
    uint64_t *transfers_done;
    size_t size;
};

static enum status mapping_init(struct mapping *m, size_t rows, uint32_t transfers,
                                const char *name, struct diag *diag)
{
    size_t head = (sizeof *m->shared + 63) / 64 * 64;
    m->size = head + 2 * rows * sizeof(double) + transfers * sizeof(uint64_t);
    void *memory = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM,
                          "cannot share %zu bytes with a simulation: %s", m->size, strerror(errno));
    m->shared = memory;
    m->start_s = (double *)((char *)memory + head);
    m->end_s = m->start_s + rows;
    m->transfers_done = (uint64_t *)(m->end_s + rows);
    return STATUS_OK;
}

/* ---- the child ---- */

static void run_child(const struct plan *plan, const struct fold *fold, const struct mapping *m)
{
    struct text why = {0};
    struct schedule_times times = {
        .start_s = m->start_s, .end_s = m->end_s, .transfers_done = m->transfers_done};
    double began_s = now_s();
    struct shared *shared = m->shared;
    shared->status = schedule_run(plan, fold, &times, &why);
    shared->wall_s = now_s() - began_s;
    shared->step_s = times.step_s;
    shared->flows = times.flows;
    shared->timers = times.timers;
    size_t size = why.size < WHY_SIZE - 1 ? why.size : WHY_SIZE - 1;
    if (size > 0)
        memcpy(shared->why, why.data, size);
    shared->finished = 1;
}

static enum status wait_child(pid_t child, const struct shared *shared, const char *name,
                              struct diag *diag)
{
    struct loc at = {.name = name};
    int state = 0;
    pid_t got;
    do
        got = waitpid(child, &state, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot wait for the simulation: %s",
                          strerror(errno));
    if (WIFSIGNALED(state))
        return diag_error(diag, at, STATUS_SYSTEM, "the simulation was ended by signal %d (%s)",
                          WTERMSIG(state), strsignal(WTERMSIG(state)));
    if (!shared->finished)
        return diag_error(diag, at, STATUS_SYSTEM, "the simulation ended early with exit code %d",
                          WEXITSTATUS(state));
    if (shared->status != STATUS_OK)
        return diag_error(diag, at, shared->status, "%s", shared->why);
    return STATUS_OK;
}

static enum status run_forked(const struct plan *plan, const struct fold *fold,
                              const struct mapping *m, const char *name, struct diag *diag)
{
    fflush(stdout); /* SimGrid flushes it in the child, with whatever the parent left there */
    pid_t child = fork();
    if (child < 0)
        return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM,
                          "cannot start a simulation: fork: %s", strerror(errno));
    if (child == 0) {
        run_child(plan, fold, m);
        _exit(0); /* no exit handlers: they are the parent's */
    }
    return wait_child(child, m->shared, name, diag);
}

/* ---- the result ---- */

static void fill_classes(struct sim_result *result, const struct plan *plan,
                         const struct fold *fold, const size_t *rows)
{
    const struct ir *ir = plan->ir;
    int64_t per_node = plan->cluster->gpus_per_node;
    result->rank_count = plan->rank_count;
    result->class_count = fold->class_count;
    result->node_count = (uint32_t)((plan->rank_count + per_node - 1) / per_node);
    result->class_of_rank =
        arena_array(&result->arena, plan->rank_count, sizeof *result->class_of_rank);
    memcpy(result->class_of_rank, fold->class_of_rank,
           plan->rank_count * sizeof *result->class_of_rank);
    result->classes = arena_array(&result->arena, fold->class_count, sizeof *result->classes);
    result->peak = arena_array(&result->arena, fold->class_count, sizeof *result->peak);
    for (uint32_t c = 0; c < fold->class_count; c++) {
        uint32_t rank = fold->rank_of_class[c], role = plan->role_of_rank[rank];
        result->classes[c] = (struct sim_class){
            .rank = rank, .ranks = fold->class_ranks[c], .role = role, .row = rows[c]};
        if (role != IR_NONE) {
            result->classes[c].op_begin = ir->role[role].op_begin;
            result->classes[c].op_count = ir->role[role].op_count;
        }
        result->counts.simulated += result->classes[c].op_count;
        result->counts.op_instances +=
            (uint64_t)result->classes[c].op_count * result->classes[c].ranks;
    }
}

static int compare_loads(const void *left, const void *right)
{
    const struct sim_link_load *a = left, *b = right;
    if (a->busy != b->busy)
        return a->busy > b->busy ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Every channel of a class has done what the one that was simulated did. Caps of single flows
 * are no part of the machine and are left out. */
static void fill_loads(struct sim_result *result, const struct plan *plan, const struct fold *fold,
                       const uint64_t *transfers_done)
{
    const struct platform *platform = &plan->platform;
    const struct flow_table *flows = &plan->flows;
    double *bytes = heap_zalloc(platform->link_count + 1u, sizeof *bytes);
    for (uint32_t k = 0; k < plan->channel_count; k++) {
        const struct channel *channel = &plan->channel[k];
        const struct channel *lowest =
            &plan->channel[fold->channel_of_class[fold->class_of_channel[k]]];
        for (uint32_t v = 0; v < plan->line[channel->line].variants; v++) {
            const struct transfer *t = &plan->transfer[channel->transfer_begin + v];
            double times = (double)transfers_done[lowest->transfer_begin + v];
            for (uint32_t f = t->flow_begin; f < t->flow_begin + t->flow_count; f++)
                for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
                    bytes[flows->link[i]] += times * flows->bytes[f];
        }
    }
    result->load = arena_array(&result->arena, platform->link_count, sizeof *result->load);
    for (uint32_t l = 0; l < platform->link_count; l++) {
        if (bytes[l] == 0 || platform->link[l].kind == LINK_CAP)
            continue;
        char text[96];
        size_t length = platform_link_name(platform, l, text, sizeof text);
        result->load[result->load_count++] = (struct sim_link_load){
            .name = arena_text(&result->arena, text, length),
            .bytes_per_s = platform->bytes_per_s[l],
            .bytes = bytes[l],
            .busy = bytes[l] / (platform->bytes_per_s[l] * result->step_s),
        };
    }
    if (result->load_count > 0)
        qsort(result->load, result->load_count, sizeof *result->load, compare_loads);
    free(bytes);
}

enum status sim_run(const struct ir *ir, const struct cluster *cluster,
                    const struct sim_costs *costs, const struct sim_options *options,
                    const char *name, struct sim_result *result, struct diag *diag)
{
    double began_s = now_s();
    struct plan plan;
    struct pruned pruned = {0};
    struct fold fold = {0};
    struct mapping mapping = {0};
    size_t *rows = NULL;
    enum status status = plan_make(&plan, ir, cluster, costs, name, diag);
    if (status != STATUS_OK)
        goto out;
    prune_make(&pruned, &plan.platform, &plan.flows);
    fold_make(&fold, &plan, &pruned, options->exact);
    rows = heap_alloc(fold.class_count + 1u, sizeof *rows);
    schedule_rows(&plan, &fold, rows);
    status = mapping_init(&mapping, rows[fold.class_count], plan.transfer_count, name, diag);
    if (status != STATUS_OK)
        goto out;
    result->mapping = mapping.shared;
    result->mapping_size = mapping.size;
    result->start_s = mapping.start_s;
    result->end_s = mapping.end_s;
    result->row_count = rows[fold.class_count];
    fill_classes(result, &plan, &fold, rows);
    result->counts.fold_s = now_s() - began_s;
    status = run_forked(&plan, &fold, &mapping, name, diag);
    if (status != STATUS_OK)
        goto out;
    result->step_s = mapping.shared->step_s;
    result->counts.flows = mapping.shared->flows;
    result->counts.timers = mapping.shared->timers;
    result->counts.run_wall_s = mapping.shared->wall_s;
    fill_loads(result, &plan, &fold, mapping.transfers_done);
    if (!options->no_memory)
        memory_peaks(ir, cluster, result);
    result->counts.wall_s = now_s() - began_s;
out:
    free(rows);
    fold_release(&fold);
    prune_release(&pruned);
    sim_plan_release(&plan);
    return status;
}

void sim_result_release(struct sim_result *result)
{
    if (result->mapping)
        munmap(result->mapping, result->mapping_size);
    arena_release(&result->arena);
    *result = (struct sim_result){0};
}

const double *sim_start_s(const struct sim_result *result, uint32_t rank)
{
    assert(rank < result->rank_count);
    return result->start_s + result->classes[result->class_of_rank[rank]].row;
}

const double *sim_end_s(const struct sim_result *result, uint32_t rank)
{
    assert(rank < result->rank_count);
    return result->end_s + result->classes[result->class_of_rank[rank]].row;
}
