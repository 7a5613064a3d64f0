#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, which POSIX has only since 2024 */

#include "sim/sim.h"

#include "base/process.h"
#include "sim/depth.h"
#include "sim/fold.h"
#include "sim/memory.h"
#include "sim/memory_periods.h"
#include "sim/plan.h"
#include "sim/prune.h"
#include "sim/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
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

enum { WHY_SIZE = 2048, LINK_NAME_SIZE = 96 };

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

static void mapping_release(struct mapping *m)
{
    if (m->shared)
        munmap(m->shared, m->size);
    *m = (struct mapping){0};
}

/* ---- the child ---- */

static void run_child(const struct plan *plan, const struct fold *fold, const uint32_t *stands_for,
                      const struct mapping *m)
{
    struct text why = {0};
    struct schedule_times times = {.start_s = m->start_s,
                                   .end_s = m->end_s,
                                   .transfers_done = m->transfers_done,
                                   .stands_for = stands_for};
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
        return diag_error(diag, at, STATUS_SYSTEM, "the simulation was ended by signal %d (%s)%s",
                          WTERMSIG(state), strsignal(WTERMSIG(state)),
                          WTERMSIG(state) == SIGKILL ? ": memory may have run out" : "");
    if (!shared->finished)
        return diag_error(diag, at, STATUS_SYSTEM, "the simulation ended early with exit code %d",
                          WEXITSTATUS(state));
    if (shared->status != STATUS_OK)
        return diag_error(diag, at, shared->status, "%s", shared->why);
    return STATUS_OK;
}

static enum status run_forked(const struct plan *plan, const struct fold *fold,
                              const uint32_t *stands_for, const struct mapping *m, const char *name,
                              struct diag *diag)
{
    fflush(stdout); /* SimGrid flushes it in the child, with whatever the parent left there */
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM,
                          "cannot start a simulation: fork: %s", strerror(errno));
    if (child == 0) {
        process_ends_with(parent);
        run_child(plan, fold, stands_for, m);
        _exit(0); /* no exit handlers: they are the parent's */
    }
    return wait_child(child, m->shared, name, diag);
}

/* ---- one simulation ---- */

/* A list of ops bound to the cluster, folded, and its times. */
struct run {
    struct plan plan;
    struct pruned pruned;
    struct fold fold;
    struct mapping mapping;
};

static void run_release(struct run *run)
{
    mapping_release(&run->mapping);
    fold_release(&run->fold);
    prune_release(&run->pruned);
    sim_plan_release(&run->plan);
}

/* What is asked for, and how long each part of the answer took. */
struct question {
    const struct cluster *cluster;
    const struct sim_costs *costs;
    const struct sim_options *options;
    const char *name;
    struct sim_counts *counts;
};

static size_t row_count(const struct plan *plan, const struct fold *fold)
{
    size_t *rows = heap_alloc(fold->class_count + 1u, sizeof *rows);
    schedule_rows(plan, fold, rows);
    size_t count = rows[fold->class_count];
    free(rows);
    return count;
}

/* stands_for: as in struct schedule_times. Release *run in either case. */
static enum status run_make(struct run *run, const struct ir *ir, const uint32_t *stands_for,
                            const struct question *q, struct diag *diag)
{
    double began_s = now_s();
    *run = (struct run){0};
    enum status status = plan_make(&run->plan, ir, q->cluster, q->costs, q->name, diag);
    if (status != STATUS_OK)
        return status;
    prune_make(&run->pruned, &run->plan.platform, &run->plan.flows);
    fold_make(&run->fold, &run->plan, &run->pruned, q->options->exact);
    status = mapping_init(&run->mapping, row_count(&run->plan, &run->fold),
                          run->plan.transfer_count, q->name, diag);
    double folded_s = now_s();
    q->counts->fold_s += folded_s - began_s;
    if (status == STATUS_OK)
        status = run_forked(&run->plan, &run->fold, stands_for, &run->mapping, q->name, diag);
    if (status != STATUS_OK)
        return status;
    q->counts->fork_s += now_s() - folded_s - run->mapping.shared->wall_s;
    q->counts->flows += run->mapping.shared->flows;
    q->counts->timers += run->mapping.shared->timers;
    q->counts->run_wall_s += run->mapping.shared->wall_s;
    return STATUS_OK;
}

/* ---- the result ---- */

static void fill_classes(struct sim_result *result, const struct ir *ir, const struct run *run)
{
    const struct plan *plan = &run->plan;
    const struct fold *fold = &run->fold;
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
        struct sim_class *class = &result->classes[c];
        *class = (struct sim_class){
            .rank = rank, .ranks = fold->class_ranks[c], .role = role, .row = result->row_count};
        if (role == IR_NONE)
            continue;
        class->op_begin = ir->role[role].op_begin;
        class->op_count = ir->role[role].op_count;
        result->row_count += class->op_count;
        result->counts.simulated += plan->ir->role[role].op_count;
        result->counts.op_instances += (uint64_t) class->op_count * class->ranks;
    }
}

/* Of equally busy links, those of lower ranks and nodes come first, then names decide. */
static bool is_named_before(const struct platform *platform, uint32_t a, uint32_t b)
{
    const struct platform_link *x = &platform->link[a], *y = &platform->link[b];
    char left[LINK_NAME_SIZE], right[LINK_NAME_SIZE];
    if (x->a != y->a || x->b != y->b)
        return x->a != y->a ? x->a < y->a : x->b < y->b;
    platform_link_name(platform, a, left, sizeof left);
    platform_link_name(platform, b, right, sizeof right);
    return strcmp(left, right) < 0;
}

/* Every channel of a class has done what the one that was simulated did. Caps of single flows
 * are no part of the machine and are left out. */
static void fill_loads(struct sim_result *result, const struct run *run)
{
    const struct plan *plan = &run->plan;
    const struct fold *fold = &run->fold;
    const struct platform *platform = &plan->platform;
    const struct flow_table *flows = &plan->flows;
    double *bytes = heap_zalloc(platform->link_count + 1u, sizeof *bytes);
    for (uint32_t k = 0; k < plan->channel_count; k++) {
        const struct channel *channel = &plan->channel[k];
        const struct channel *lowest =
            &plan->channel[fold->channel_of_class[fold->class_of_channel[k]]];
        for (uint32_t v = 0; v < plan->line[channel->line].variants; v++) {
            const struct transfer *t = &plan->transfer[channel->transfer_begin + v];
            double times = (double)run->mapping.transfers_done[lowest->transfer_begin + v];
            for (uint32_t f = t->flow_begin; f < t->flow_begin + t->flow_count; f++)
                for (uint32_t i = flows->link_begin[f]; i < flows->link_begin[f + 1]; i++)
                    bytes[flows->link[i]] += times * flows->bytes[f];
        }
    }
    result->load = arena_array(&result->arena, platform->link_count, sizeof *result->load);
    uint32_t busiest = UINT32_MAX;
    double most = 0;
    for (uint32_t l = 0; l < platform->link_count; l++) {
        uint8_t kind = platform->link[l].kind; /* processors are no link */
        if (bytes[l] == 0 || kind == LINK_CAP || kind == LINK_KERNELS || kind == LINK_DEVICE)
            continue;
        double busy = bytes[l] / (platform->bytes_per_s[l] * result->step_s);
        if (busy > most ||
            (busy == most && busiest != UINT32_MAX && is_named_before(platform, l, busiest))) {
            most = busy;
            busiest = l;
            result->busiest = result->load_count;
        }
        result->load[result->load_count++] =
            (struct sim_link_load){kind, platform->bytes_per_s[l], bytes[l], busy};
    }
    if (busiest != UINT32_MAX) {
        char text[LINK_NAME_SIZE];
        size_t length = platform_link_name(platform, busiest, text, sizeof text);
        result->busiest_name = arena_text(&result->arena, text, length);
    }
    free(bytes);
}

/* Hands the times over to the result. */
static void take_mapping(struct sim_result *result, struct mapping *mapping)
{
    result->mapping = mapping->shared;
    result->mapping_size = mapping->size;
    result->start_s = mapping->start_s;
    result->end_s = mapping->end_s;
    *mapping = (struct mapping){0};
}

static enum status run_whole(struct sim_result *result, const struct ir *ir,
                             const struct question *q, struct diag *diag)
{
    struct run run;
    enum status status = run_make(&run, ir, NULL, q, diag);
    if (status == STATUS_OK) {
        fill_classes(result, ir, &run);
        result->step_s = run.mapping.shared->step_s;
        fill_loads(result, &run);
        take_mapping(result, &run.mapping);
    }
    run_release(&run);
    return status;
}

/* ---- depth folding ---- */

enum { TRIES_MAX = 4 };

/* Cuts from the outside inwards: of the whole list, then of what is left. */
struct cuts {
    struct depth_cut cut[DEPTH_LEVELS];
    int count;
};

static void cuts_release(struct cuts *cuts)
{
    for (int i = 0; i < cuts->count; i++)
        depth_cut_release(&cuts->cut[i]);
    cuts->count = 0;
}

static void cuts_make(struct cuts *cuts, const struct ir *ir, const struct depth_patience *patience)
{
    cuts->count = 0;
    for (int level = 0; level < DEPTH_LEVELS; level++) {
        const struct ir *whole = cuts->count > 0 ? &cuts->cut[cuts->count - 1].ir : ir;
        if (depth_cut(&cuts->cut[cuts->count], whole, (enum depth_level)level, patience))
            cuts->count++;
    }
}

/* For how many ops of the whole list each of the shortest stands. */
static uint32_t *count_images(const struct cuts *cuts)
{
    uint32_t *times = NULL;
    for (int i = 0; i < cuts->count; i++) {
        uint32_t *next = depth_count_images(&cuts->cut[i], times);
        free(times);
        times = next;
    }
    return times;
}

/* From the times of the shortest list to those of the whole one, cut by cut. */
static bool expand(struct sim_result *result, const struct cuts *cuts, const struct run *run,
                   struct depth_patience *patience)
{
    struct depth_times times = {run->mapping.start_s, run->mapping.end_s, run->plan.op_class};
    bool holds = true;
    for (int i = cuts->count; holds && i-- > 0;) {
        size_t ops = cuts->cut[i].whole->op.count, rows = run->fold.class_count * ops;
        double *longer_s = heap_alloc(2 * rows, sizeof *longer_s);
        struct depth_times longer = {longer_s, longer_s + rows, NULL};
        if (i > 0) /* for the next cut */
            longer.op_class = arena_array(&result->arena, ops, sizeof *longer.op_class);
        holds = depth_expand(&cuts->cut[i], &run->plan, &run->fold, &times, &longer, patience);
        free(result->times);
        result->times = longer_s;
        times = longer;
    }
    if (!holds) {
        free(result->times);
        result->times = NULL;
        return false;
    }
    result->start_s = times.start_s;
    result->end_s = times.end_s;
    return true;
}

/* From the last period in front of a gap to the first behind it, as far as one repeat of the list goes. */
static void note_steady(struct sim_result *result, const struct ir *ir, const struct depth_cut *cut)
{
    result->steady = arena_array(&result->arena, cut->run_count, sizeof *result->steady);
    for (uint32_t r = 0, i = 0; r < cut->run_count; r++) {
        const struct depth_run *run = &cut->run[r];
        struct sim_steady steady = {.op = run->begin + (run->first_kept - 1) * run->ops,
                                    .ops = run->ops,
                                    .periods = run->periods - run->kept + 2,
                                    .period_s = run->period_s};
        while (i < ir->repeat_count &&
               ir->repeat[i].op + ir->repeat[i].ops * ir->repeat[i].periods <= steady.op)
            i++;
        if (i == ir->repeat_count || steady.ops % ir->repeat[i].ops != 0)
            continue;
        const struct ir_repeat *repeat = &ir->repeat[i];
        while (steady.periods > 0 && steady.op < repeat->op) {
            steady.op += steady.ops;
            steady.periods--;
        }
        while (steady.periods > 0 &&
               steady.op + steady.ops * steady.periods > repeat->op + repeat->ops * repeat->periods)
            steady.periods--;
        if (steady.periods > 1)
            result->steady[result->steady_count++] = steady;
    }
}

static void note_depth(struct sim_depth *depth, const struct depth_cut *cut)
{
    struct sim_depth_fold *fold =
        cut->level == DEPTH_LAYER ? &depth->layers : &depth->micro_batches;
    for (uint32_t i = 0; i < cut->run_count; i++) {
        const struct depth_run *run = &cut->run[i];
        if (run->periods * run->blocks > fold->all)
            *fold = (struct sim_depth_fold){run->blocks, run->kept * run->blocks,
                                            run->periods * run->blocks, cut->given_up};
    }
}

/* Returns false when peaks cannot be told from the short list. */
static bool find_peaks(struct sim_result *result, const struct ir *ir, const struct question *q,
                       const struct cuts *cuts, const struct run *run)
{
    double began_s = now_s();
    struct periods periods;
    bool found = false;
    if (periods_make(&periods, cuts->cut, cuts->count))
        found = memory_peaks_of_periods(ir, q->cluster,
                                        &(struct memory_periods){&periods, cuts->cut, cuts->count,
                                                                 run->mapping.start_s,
                                                                 run->mapping.end_s},
                                        result);
    periods_release(&periods);
    q->counts->memory_s += now_s() - began_s;
    return found;
}

/* What a shorter list has to say. */
struct told {
    bool cut_any; /* there was something to cut */
    bool peaks;   /* the result has its peaks */
};

/* The result from a shorter list, when it follows from it. */
static bool run_short(struct sim_result *result, const struct ir *ir, const struct question *q,
                      struct depth_patience *patience, struct told *told)
{
    struct cuts cuts;
    struct run run;
    struct diag unread = {0};
    double began_s = now_s();
    cuts_make(&cuts, ir, patience);
    told->cut_any = cuts.count > 0;
    if (cuts.count == 0)
        return false;
    uint32_t *stands_for = count_images(&cuts);
    q->counts->depth_s += now_s() - began_s;
    bool holds = run_make(&run, &cuts.cut[cuts.count - 1].ir, stands_for, q, &unread) == STATUS_OK;
    result->depth.outcome = SIM_DEPTH_UNSTEADY;
    began_s = now_s();
    if (holds)
        holds = expand(result, &cuts, &run, patience);
    q->counts->depth_s += now_s() - began_s;
    if (holds) {
        fill_classes(result, ir, &run);
        for (size_t i = 0; i < result->row_count; i++)
            if (result->end_s[i] > result->step_s)
                result->step_s = result->end_s[i];
        fill_loads(result, &run);
        note_steady(result, ir, &cuts.cut[0]);
        result->depth.outcome = SIM_DEPTH_FOLDED;
        for (int i = 0; i < cuts.count; i++)
            note_depth(&result->depth, &cuts.cut[i]);
        told->peaks = !q->options->no_memory && find_peaks(result, ir, q, &cuts, &run);
    }
    run_release(&run);
    free(stands_for);
    cuts_release(&cuts);
    diag_release(&unread);
    return holds;
}

enum status sim_run(const struct ir *ir, const struct cluster *cluster,
                    const struct sim_costs *costs, const struct sim_options *options,
                    const char *name, struct sim_result *result, struct diag *diag)
{
    double began_s = now_s();
    struct question q = {cluster, costs, options, name, &result->counts};
    enum status status = STATUS_OK;
    struct depth_patience patience = {0};
    struct told told = {.cut_any = !options->exact};
    bool done = false;
    result->depth.outcome = options->exact ? SIM_DEPTH_OFF : SIM_DEPTH_NO_PERIOD;
    for (int i = 0; i < TRIES_MAX && !done && told.cut_any; i++)
        done = run_short(result, ir, &q, &patience, &told);
    if (!done)
        status = run_whole(result, ir, &q, diag);
    double simulated_s = now_s();
    if (status == STATUS_OK && !options->no_memory && !told.peaks)
        memory_peaks(ir, cluster, result);
    result->counts.memory_s += now_s() - simulated_s;
    result->counts.wall_s = now_s() - began_s;
    return status;
}

void sim_result_release(struct sim_result *result)
{
    if (result->mapping)
        munmap(result->mapping, result->mapping_size);
    free(result->times);
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
