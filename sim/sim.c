#include "sim/sim.h"

#include "sim/child.h"
#include "sim/memory/memory.h"
#include "sim/memory/memory_periods.h"
#include "sim/plan/depth.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- the result ---- */

enum { LINK_NAME_SIZE = 96 };

/* simulated: the list of the ops that happened. */
static void fill_classes(struct sim_result *result, const struct ir *ir,
                         const struct child_run *run, const struct ir *simulated)
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
        result->counts.simulated += simulated->role[role].op_count;
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
static void fill_loads(struct sim_result *result, const struct child_run *run)
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
static void take_mapping(struct sim_result *result, struct child_mapping *mapping)
{
    result->mapping = mapping->shared;
    result->mapping_size = mapping->size;
    result->start_s = mapping->start_s;
    result->end_s = mapping->end_s;
    *mapping = (struct child_mapping){0};
}

static void take_whole(struct sim_result *result, const struct ir *ir, struct child_run *run)
{
    fill_classes(result, ir, run, ir);
    result->step_s = run->mapping.shared->step_s;
    fill_loads(result, run);
    take_mapping(result, &run->mapping);
}

static enum status run_whole(struct sim_result *result, const struct ir *ir,
                             const struct question *q, struct diag *diag)
{
    struct child_run run;
    enum status status = child_run_make(&run, ir, &(struct child_stand_in){0}, q, diag);
    if (status == STATUS_OK)
        take_whole(result, ir, &run);
    child_run_release(&run);
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

/* Of the levels before `end`. */
static void cuts_make(struct cuts *cuts, const struct ir *ir, const struct depth_patience *patience,
                      enum depth_level end)
{
    cuts->count = 0;
    for (int level = 0; level < (int)end; level++) {
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
static bool expand(struct sim_result *result, const struct cuts *cuts, const struct child_run *run,
                   struct depth_times times, struct depth_patience *patience)
{
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

static void note_steady(struct sim_result *result, const struct depth_cut *cut)
{
    result->steady = arena_array(&result->arena, cut->run_count, sizeof *result->steady);
    for (uint32_t r = 0; r < cut->run_count; r++)
        result->steady_count +=
            depth_steady(cut, &cut->run[r], &result->steady[result->steady_count]);
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
                       const struct cuts *cuts, const struct depth_times *times)
{
    double began_s = child_now_s();
    struct periods periods;
    bool found = false;
    if (periods_make(&periods, cuts->cut, cuts->count))
        found = memory_peaks_of_periods(ir, q->cluster,
                                        &(struct memory_periods){&periods, cuts->cut, cuts->count,
                                                                 times->start_s, times->end_s},
                                        result);
    periods_release(&periods);
    q->counts->memory_s += child_now_s() - began_s;
    return found;
}

/* What a shorter list has to say. */
struct told {
    bool cut_any; /* there was something to cut */
    bool peaks;   /* the result has its peaks */
    bool late;    /* hosts were held up: they have to be further ahead */
};

/* The result from the times of the shortest list, when it follows from them. */
static bool conclude(struct sim_result *result, const struct ir *ir, const struct question *q,
                     const struct cuts *cuts, const struct child_run *run,
                     const struct depth_times *times, struct depth_patience *patience,
                     struct told *told)
{
    double began_s = child_now_s();
    bool holds = expand(result, cuts, run, *times, patience);
    q->counts->depth_s += child_now_s() - began_s;
    if (!holds)
        return false;
    fill_classes(result, ir, run, &cuts->cut[cuts->count - 1].ir);
    for (size_t i = 0; i < result->row_count; i++)
        if (result->end_s[i] > result->step_s)
            result->step_s = result->end_s[i];
    fill_loads(result, run);
    note_steady(result, &cuts->cut[0]);
    result->depth.outcome = SIM_DEPTH_FOLDED;
    for (int i = 0; i < cuts->count; i++)
        note_depth(&result->depth, &cuts->cut[i]);
    told->peaks = !q->options->no_memory && find_peaks(result, ir, q, cuts, times);
    return true;
}

/* The result from a shorter list, when it follows from it. */
static bool run_short(struct sim_result *result, const struct ir *ir, const struct question *q,
                      struct depth_patience *patience, struct told *told)
{
    struct cuts cuts;
    struct child_run run;
    struct diag unread = {0};
    double began_s = child_now_s();
    cuts_make(&cuts, ir, patience, DEPTH_LEVELS);
    told->cut_any = cuts.count > 0;
    if (cuts.count == 0)
        return false;
    uint32_t *stands_for = count_images(&cuts);
    q->counts->depth_s += child_now_s() - began_s;
    result->depth.outcome = SIM_DEPTH_UNSTEADY;
    bool holds =
        child_run_make(&run, &cuts.cut[cuts.count - 1].ir,
                       &(struct child_stand_in){.stands_for = stands_for}, q, &unread) == STATUS_OK;
    struct depth_times times = {run.mapping.start_s, run.mapping.end_s, run.plan.op_class};
    if (holds)
        holds = conclude(result, ir, q, &cuts, &run, &times, patience, told);
    child_run_release(&run);
    free(stands_for);
    cuts_release(&cuts);
    diag_release(&unread);
    return holds;
}

/* ---- periods left out while events run ---- */

static bool any_left_out(const struct child_mapping *m, uint32_t runs)
{
    for (uint32_t r = 0; r < runs; r++)
        if (m->run[r].kept < m->run[r].periods)
            return true;
    return false;
}

/* The result of a run that left periods out: of the list that it made shorter as it went. */
static bool conclude_leaps(struct sim_result *result, const struct ir *ir, const struct question *q,
                           struct cuts *cuts, const struct child_run *run, uint32_t runs,
                           struct depth_patience *patience, struct told *told)
{
    double began_s = child_now_s();
    const struct ir *whole = run->plan.ir;
    const struct child_mapping *m = &run->mapping;
    struct depth_times times = {m->start_s, m->end_s, run->plan.op_class};
    struct depth_cut *cut = &cuts->cut[cuts->count];
    bool leapt = depth_cut_runs(cut, whole, DEPTH_LAYER, m->run, runs);
    if (leapt) {
        cuts->count++;
        times.start_s = depth_keep_rows(cut, times.start_s, run->fold.class_count);
        times.end_s = depth_keep_rows(cut, times.end_s, run->fold.class_count);
        times.op_class = depth_keep_classes(cut, times.op_class);
    }
    q->counts->depth_s += child_now_s() - began_s;
    bool holds = conclude(result, ir, q, cuts, run, &times, patience, told);
    if (leapt) {
        free(times.start_s);
        free(times.end_s);
        free(times.op_class);
    }
    return holds;
}

/* The result from one run of all layers (and of few micro-batches), periods of which are left out as
 * soon as they repeat the times of those before. */
static bool run_leaping(struct sim_result *result, const struct ir *ir, const struct question *q,
                        uint32_t ahead, struct depth_patience *patience, struct told *told)
{
    struct cuts cuts;
    struct child_run run;
    struct diag unread = {0};
    double began_s = child_now_s();
    cuts_make(&cuts, ir, patience, DEPTH_LAYER);
    const struct ir *whole = cuts.count > 0 ? &cuts.cut[0].ir : ir;
    struct child_stand_in in = {.stands_for = count_images(&cuts), .ahead = ahead};
    struct depth_run *runs = depth_find_runs(whole, DEPTH_LAYER, &in.run_count);
    in.run = runs;
    told->cut_any = cuts.count > 0 || in.run_count > 0;
    q->counts->depth_s += child_now_s() - began_s;
    bool holds = told->cut_any;
    run = (struct child_run){0};
    if (holds) {
        result->depth.outcome = SIM_DEPTH_UNSTEADY;
        holds = child_run_make(&run, whole, &in, q, &unread) == STATUS_OK;
        told->late = run.mapping.shared && run.mapping.shared->late;
    }
    if (holds && cuts.count == 0 && !any_left_out(&run.mapping, in.run_count))
        take_whole(result, ir, &run); /* nothing repeated: this was the whole list */
    else if (holds)
        holds = conclude_leaps(result, ir, q, &cuts, &run, in.run_count, patience, told);
    child_run_release(&run);
    free(runs);
    free((void *)in.stands_for);
    cuts_release(&cuts);
    diag_release(&unread);
    return holds;
}

/* Periods that hosts are ahead of the one that all ranks have ended. Computing may be two ahead of copies to
 * the host, and is not held up by two; by what is slower still it is, and the second try has more. */
enum { AHEAD = 2, FAR_AHEAD = 4 };

/* Ranks that send each other messages may drift against each other for many layers. */
static bool may_drift(const struct ir *ir)
{
    for (uint32_t i = 0; i < ir->shape_count; i++)
        if (ir->shape[i].kind == WORK_SHIFT || ir->shape[i].kind == WORK_SEND ||
            ir->shape[i].kind == WORK_RECV)
            return true;
    return false;
}

enum status sim_run(const struct ir *ir, const struct cluster *cluster,
                    const struct sim_costs *costs, const struct sim_options *options,
                    const char *name, struct sim_result *result, struct diag *diag)
{
    double began_s = child_now_s();
    struct question q = {cluster, costs, options, name, &result->counts};
    enum status status = STATUS_OK;
    struct depth_patience patience = {0};
    struct told told = {.cut_any = !options->exact};
    bool done = false;
    result->depth.outcome = options->exact ? SIM_DEPTH_OFF : SIM_DEPTH_NO_PERIOD;
    if (told.cut_any && may_drift(ir)) {
        done = run_leaping(result, ir, &q, AHEAD, &patience, &told);
        if (told.late)
            done = run_leaping(result, ir, &q, FAR_AHEAD, &patience, &told);
    }
    for (int i = 0; i < TRIES_MAX && !done && told.cut_any; i++)
        done = run_short(result, ir, &q, &patience, &told);
    if (!done)
        status = run_whole(result, ir, &q, diag);
    double simulated_s = child_now_s();
    if (status == STATUS_OK && !options->no_memory && !told.peaks)
        memory_peaks(ir, cluster, result);
    result->counts.memory_s += child_now_s() - simulated_s;
    result->counts.wall_s = child_now_s() - began_s;
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
