#include "predict/prediction.h"

#include "base/units.h"
#include "predict/shape_costs.h"
#include "predict/similarity.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/visible.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/schedule_file.h"
#include "schedule/step/build.h"
#include "sim/jitter.h"
#include "sim/uniform/uniform.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_SHOWN = 1 };

void prediction_release(struct prediction *p)
{
    ir_release(&p->ir);
    sim_result_release(&p->sim);
    stages_release(&p->stages);
    text_release(&p->extrapolated);
    resolved_release(&p->resolved);
    *p = (struct prediction){0};
}

/* ---- memory ---- */

static uint64_t bytes_of(double bytes)
{
    return isfinite(bytes) ? (bytes > 0 ? (uint64_t)bytes : 0) : UINT64_MAX;
}

/* True if the verdict compares what the framework reserves with the memory that there is; false if it compares the
 * planned arenas. Pageable memory is always judged by its arena. */
static bool is_judged_by_reserved(const struct prediction *p)
{
    return p->has_choices && strcmp(p->choices.profile->name, "ideal") != 0;
}

double prediction_fits(const struct setup *setup, const struct choices *choices, double needed,
                       double available)
{
    const struct similarity like = similarity_of(setup, choices, choices->profile);
    const struct residual run = similarity_residual(&like);
    struct interval interval = {.low = NAN};
    if (like.device[0] != '\0')
        interval = interval_make(&setup->evidence, RESIDUAL_MEMORY, &run, NULL);
    return interval_fits(&interval, needed, available);
}

/* Returns the probability that what is needed is available. Planned arenas need what they need. Of a device the
 * allocator's cache is not needed: it is given back before an allocation fails. */
static double probability_of(const struct prediction *p)
{
    const struct verdict *v = &p->verdict;
    double probability = 1;
    if (!v->by_reserved)
        return v->fits;
    for (int l = 0; l < LIMIT_COUNT; l++) {
        double available = v->available[l] == UINT64_MAX ? INFINITY : (double)v->available[l];
        double needed = (double)v->needed[l];
        if (l == LIMIT_DEVICE && v->needed[l] <= v->available[l])
            needed -= (double)v->cache;
        probability = fmin(probability, prediction_fits(p->setup, &p->choices, needed, available));
    }
    return probability;
}

static void judge(struct prediction *p)
{
    const struct cluster *cluster = &p->setup->cluster;
    struct verdict *v = &p->verdict;
    v->by_reserved = is_judged_by_reserved(p);
    v->needed[LIMIT_DEVICE] =
        v->by_reserved ? p->reserved.total
                       : p->ir.arena_bytes[MEMORY_HBM] + p->reserved.bytes[RESERVED_CONTEXT];
    v->available[LIMIT_DEVICE] = p->reserved.available;
    v->tight = p->reserved.tight;
    v->cache = v->by_reserved ? p->reserved.bytes[RESERVED_CACHE] : 0;

    uint64_t ranks = mesh_ranks(&p->ir.mesh), on_node = (uint64_t)cluster->gpus_per_node;
    if (ranks < on_node)
        on_node = ranks;
    v->needed[LIMIT_HOST] =
        on_node * ((v->by_reserved ? p->reserved.pinned : p->ir.arena_bytes[MEMORY_PINNED]) +
                   p->ir.arena_bytes[MEMORY_PAGEABLE]);
    v->available[LIMIT_HOST] = bytes_of(cluster->host.memory_bytes - cluster->host.reserved_bytes);
    v->limit =
        verdict_share(v, LIMIT_HOST) > verdict_share(v, LIMIT_DEVICE) ? LIMIT_HOST : LIMIT_DEVICE;
    v->fits = v->needed[LIMIT_DEVICE] <= v->available[LIMIT_DEVICE] &&
              v->needed[LIMIT_HOST] <= v->available[LIMIT_HOST];
    v->fits_probability = probability_of(p);
}

static enum status check_size(const struct prediction *p, const char *name, struct diag *diag)
{
    uint32_t ranks = mesh_ranks(&p->ir.mesh);
    if ((int64_t)ranks <= p->setup->cluster.gpus)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                      "the schedule is for %u ranks, and %s has %lld GPUs; --nodes or --gpus gives "
                      "it more",
                      ranks, p->setup->cluster.name, (long long)p->setup->cluster.gpus);
}

static void replay(struct prediction *p)
{
    struct reserved_held held = {0};
    if (p->has_choices) {
        held.expandable = p->choices.profile->expandable_segments;
        held.gathers_apart = p->choices.profile->gathers_apart;
        held.buckets = (uint64_t)step_bucket_bytes(&p->choices);
        step_rotary_tables(&p->choices, held.table);
    }
    reserved_make(&p->reserved, &p->ir, &p->setup->cluster, p->setup->request.sm, held);
}

/* Returns a bit mask of the memories whose arenas are planned. */
static unsigned memories_of(const struct prediction *p)
{
    if (p->question.step_only)
        return 0;
    return p->question.skip_arenas && is_judged_by_reserved(p) ? 1u << MEMORY_PAGEABLE
                                                               : OFFSETS_ALL_MEMORIES;
}

/* The lengths of short lists, in layers or units, which are tried from the shortest to the longest. A step is sampled
 * if its list is long: LONG_LIST ops or more for its memory, and LONG_TO_SIMULATE or more for its time, since shorter
 * lists are simulated fast. */
static const uint32_t short_list_lengths[] = {7, 9, 10, 13, 16};
enum { LONG_LIST = 10000, LONG_TO_SIMULATE = 200000 };

/* Builds a short list that represents the whole list, of the length with index `length` in short_list_lengths or a
 * longer one. Returns false if the list is short, if the caller wants the whole list, or if it has no such short list.
 * */
static bool make_short_list(struct prediction *p, size_t length)
{
    if (p->question.whole || step_ops_at_most(&p->choices) < LONG_LIST)
        return false;
    for (p->short_list_length = length; p->short_list_length < ARRAY_LEN(short_list_lengths);
         p->short_list_length++)
        if (step_build_short(&p->ir, &p->choices, short_list_lengths[p->short_list_length],
                             memories_of(p)))
            return true;
    return false;
}

enum { LONGEST_WITH_EXPERTS = 8192 }; /* tokens of the longest public training step with experts */

/* Says what is assumed of a mixture of experts. */
static void note_experts(struct diag *note, int64_t seq)
{
    diag_note(note, (struct loc){0},
              "experts: every rank has all experts of its layers, and tokens are dealt to them "
              "evenly; no measured step with experts was compared with a prediction%s",
              seq > LONGEST_WITH_EXPERTS
                  ? ", and none that is public has sequences of more than 8K tokens"
                  : "");
}

/* Builds the schedule of the resolved request. judged: whether memory is judged. */
static enum status build(struct prediction *p, bool judged, struct diag *diag)
{
    enum status status = STATUS_OK;
    ir_release(&p->ir);
    p->choices = p->resolved.choices;
    if (p->question.layers > 0) {
        p->fewer = *p->choices.model;
        p->fewer.layers = p->question.layers;
        p->choices.model = &p->fewer;
    }
    if (!make_short_list(p, p->short_list_length))
        status = step_build_planned(&p->ir, &p->choices, memories_of(p), diag);
    if (status == STATUS_OK && p->question.to_exceed > 0) {
        p->tokens_per_s_gpu = prediction_tokens(p) / prediction_bound_s(p) / prediction_gpus(p);
        p->slower = p->tokens_per_s_gpu <= p->question.to_exceed;
    }
    if (status == STATUS_OK && !p->slower && judged) {
        replay(p);
        judge(p);
    }
    return status;
}

static void begin(struct prediction *p, const struct prediction_question *question)
{
    p->question = *question;
    p->setup = question->setup;
    p->short_list_length = question->short_list_length;
    if (question->request == NULL)
        p->question.request = &question->setup->request;
}

/* If stages may share subsequences, they share as many as are predicted to be fastest and to fit. */
enum status prediction_memory(struct prediction *p, const struct prediction_question *question,
                              struct diag *note, struct diag *diag)
{
    const struct setup *setup = question->setup;
    const struct shared_ranking *shared = &p->resolved.shared;
    begin(p, question);
    p->has_choices = true;
    enum status status = resolved_make(&p->resolved, setup, p->question.request, note, diag);
    p->choices = p->resolved.choices;
    p->profile = p->choices.profile;
    if (status == STATUS_OK)
        status =
            cost_check_attention(&setup->cost, (enum attention_impl)p->choices.attention_impl,
                                 setup->model.head_dim, (struct loc){.name = "--attention"}, diag);
    if (status == STATUS_OK)
        status = build(p, !question->step_only || shared->count > 1, diag);
    for (uint32_t i = 1; status == STATUS_OK && i < shared->count && !p->slower && !p->verdict.fits;
         i++) {
        status = resolved_share(&p->resolved, i, diag);
        if (status == STATUS_OK)
            status = build(p, true, diag);
    }
    if (status == STATUS_OK && note != NULL && shared->count > 0 &&
        !pipeline_of(&p->choices)->multiplexed)
        diag_note(note, (struct loc){0},
                  shared->count > 1
                      ? "pipeline stages share no subsequence: the faster splits do not fit in "
                        "memory; --share-units 1 shares the first one"
                      : "pipeline stages share no subsequence: no split is predicted to be faster; "
                        "--share-units 1 shares the first one");
    if (status == STATUS_OK && note != NULL && setup->model.experts > 0)
        note_experts(note, p->choices.seq);
    return status;
}

/* Finds the profile for a schedule from a file, which has none of its own: a profile changes only times, and only if
 * the user names one. */
static enum status find_profile(const struct profile **profile, const char *name, struct diag *diag)
{
    size_t count;
    const struct profile *table = profiles_list(&count);
    const char *names[16];
    if (name == NULL)
        return STATUS_OK;
    assert(count <= ARRAY_LEN(names));
    for (size_t i = 0; i < count; i++) {
        names[i] = table[i].name;
        if (strcmp(name, table[i].name) == 0) {
            *profile = &table[i];
            return STATUS_OK;
        }
    }
    if (strcmp(name, "published") == 0)
        return diag_error(diag, (struct loc){.name = "--profile"}, STATUS_BAD_INPUT,
                          "'published' is the profile of a strategy, and a schedule file has no "
                          "strategy; `longhaul list profiles` has names");
    const char *nearest = diag_nearest(name, names, count);
    return diag_error(diag, (struct loc){.name = "--profile"}, STATUS_BAD_INPUT,
                      "there is no profile '%s'%s%s%s", name,
                      nearest != NULL ? "; did you mean '" : "; `longhaul list profiles` has names",
                      nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

enum status prediction_memory_of_file(struct prediction *p,
                                      const struct prediction_question *question, const char *path,
                                      struct diag *diag)
{
    const struct setup *setup = question->setup;
    begin(p, question);
    p->choices.attention_impl = (uint8_t)request_attention(&setup->request, ATTENTION_FA2);
    enum status status = find_profile(&p->profile, setup->request.profile, diag);
    if (status == STATUS_OK)
        status = schedule_load(&p->ir, path, diag);
    if (status == STATUS_OK && p->ir.op.count == 0)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "the schedule has no ops: there is nothing to predict");
    if (status == STATUS_OK)
        status = check_size(p, path, diag);
    for (uint32_t i = 0; status == STATUS_OK && i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        if (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD)
            status =
                cost_check_attention(&setup->cost, (enum attention_impl)p->choices.attention_impl,
                                     work->attention.dim, (struct loc){.name = path}, diag);
    }
    if (status == STATUS_OK) {
        replay(p);
        judge(p);
    }
    return status;
}

/* ---- time ---- */

/* Finds the shapes on which rank 0 spends time and which lie outside the range on which costs were calibrated. */
static void find_extrapolated(struct prediction *p, const struct shape_costs *costs)
{
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[0]];
    double *spent = heap_zalloc((size_t)p->ir.shape_count + 1, sizeof *spent), all = 0, outside = 0;
    for (uint32_t op = class->op_begin; op < class->op_begin + class->op_count; op++) {
        if (p->ir.stream_count == 0 ||
            p->ir.stream[p->ir.op.stream[op]].stream_class != STREAM_COMPUTE)
            continue;
        double seconds = costs->work_s[p->ir.op.shape[op]] * repeats_times(&p->ir.repeats, op);
        spent[p->ir.op.shape[op]] += seconds;
        all += seconds;
    }
    bool *outside_range = heap_zalloc((size_t)p->ir.shape_count + 1, sizeof *outside_range);
    struct text reason = {0};
    for (uint32_t i = 0; i < p->ir.shape_count; i++)
        if (spent[i] > 0 &&
            cost_extrapolated(&p->setup->cost, (enum attention_impl)p->choices.attention_impl,
                              &p->ir.shape[i], NULL)) {
            p->extrapolated_shapes++;
            outside += spent[i];
            outside_range[i] = true;
        }
    p->extrapolated_share = all > 0 ? outside / all : 0;
    for (int shown = 0; shown < REASONS_SHOWN; shown++) {
        uint32_t most = UINT32_MAX;
        for (uint32_t i = 0; i < p->ir.shape_count; i++)
            if (outside_range[i] && (most == UINT32_MAX || spent[i] > spent[most]))
                most = i;
        if (most == UINT32_MAX)
            break;
        outside_range[most] = false;
        reason.size = 0;
        cost_extrapolated(&p->setup->cost, (enum attention_impl)p->choices.attention_impl,
                          &p->ir.shape[most], &reason);
        if (reason.size > 0)
            text_printf(&p->extrapolated, "%s%s", p->extrapolated.size > 0 ? "; " : "",
                        reason.data);
    }
    text_release(&reason);
    free(spent);
    free(outside_range);
}

uint32_t prediction_fullest_rank(const struct prediction *p)
{
    uint32_t fullest = 0;
    for (uint32_t rank = 1; rank < p->sim.rank_count; rank++)
        if (p->sim.peak[p->sim.class_of_rank[rank]][MEMORY_HBM].bytes >
            p->sim.peak[p->sim.class_of_rank[fullest]][MEMORY_HBM].bytes)
            fullest = rank;
    return fullest;
}

const struct sim_peak *prediction_peak(const struct prediction *p)
{
    return &p->sim.peak[p->sim.class_of_rank[prediction_fullest_rank(p)]][MEMORY_HBM];
}

struct prediction_short_list prediction_short_list(const struct prediction *p)
{
    const struct repeats *r = &p->ir.repeats;
    if (r->copies == 0)
        return (struct prediction_short_list){0};
    int64_t all = r->of_units ? p->choices.accumulation : p->choices.model->layers;
    return (struct prediction_short_list){.loop = r->of_units ? "micro-batches" : "layers",
                                          .simulated = all - (int64_t)r->copies * r->layers,
                                          .all = all};
}

struct prediction_op prediction_op(const struct prediction *p, uint32_t op)
{
    const struct repeats *r = &p->ir.repeats;
    uint16_t layer = p->ir.op.layer[op];
    bool later =
        r->copies > 0 && !r->of_units && layer != IR_NONE16 && layer / r->layers >= r->first_copied;
    return (struct prediction_op){
        .id = repeats_whole_id(r, op),
        .layer = later ? (uint16_t)(layer + r->copies * (uint32_t)r->layers) : layer};
}

int64_t prediction_sequences(const struct prediction *p)
{
    return p->ir.global_batch;
}

double prediction_gpus(const struct prediction *p)
{
    return p->setup->cluster.fabric.kind == FABRIC_LOOPBACK ? 1 : (double)mesh_ranks(&p->ir.mesh);
}

double prediction_tokens(const struct prediction *p)
{
    return (double)p->ir.global_batch * (double)p->ir.layout.tokens - (double)p->setup->padding;
}

bool prediction_recomputes(const struct prediction *p)
{
    return p->choices.activations != CHOICE_ACTIVATIONS_KEEP &&
           p->choices.activations != CHOICE_ACTIVATIONS_RATIO;
}

double prediction_mfu(const struct prediction *p, enum mfu_convention convention)
{
    const struct transformer *model = p->choices.model;
    double seen = document_seen_flops(&p->ir.documents, model, p->choices.seq) /
                  transformer_attention_flops(model, p->choices.seq, true);
    double flops = mfu_seen_flops(convention, model, p->choices.seq, prediction_sequences(p),
                                  prediction_recomputes(p), seen);
    return flops / (p->sim.step_s * prediction_gpus(p) * p->setup->cluster.device.peak_flop_per_s);
}

double prediction_hfu(const struct prediction *p)
{
    double able = p->setup->cluster.device.peak_flop_per_s * p->sim.step_s * prediction_gpus(p);
    return able > 0 ? sim_flops(&p->ir, &p->sim) / able : 0;
}

/* Adds the delay of jitter. If more ranks synchronise than in any measured step of the strategy, the slowest of them
 * is later than in those steps. Up to that many ranks, the calibrated numbers already contain the effect of jitter,
 * so nothing is added. */
static void add_jitter(struct prediction *p)
{
    size_t count;
    if (!p->has_choices || p->choices.scope != SCOPE_STEP || p->setup->cost.ideal)
        return;
    int64_t compared = strategies_list(&count)[p->choices.strategy].compared_ranks;
    if (p->sim.rank_count <= compared || p->sim.rank_count == 1)
        return;
    p->beyond_compared = true;
    p->compared_ranks = compared;
    p->jitter_s = jitter_s(&p->ir, &p->sim, 0, p->setup->cost.device_jitter);
    p->sim.step_s += p->jitter_s;
    p->waterfall.step_s += p->jitter_s;
    p->waterfall.cause_s[CAUSE_OTHER] += p->jitter_s;
}

/* Gives the waits that different documents cause a cause of their own: the waits that exceed those of the same list
 * in which every rank takes the mean time. Without documents, ranks of a ring whose windows differ wait for the ring.
 * *stands: as in simulate(). */
static enum status take_documents(struct prediction *p, const struct shape_costs *costs,
                                  const struct sim_options *options, struct waterfall_peak peak,
                                  bool *stands, struct diag *diag)
{
    struct sim_costs sim_costs = costs->sim;
    struct sim_result even = {0};
    struct waterfall waterfall;
    struct stages stages = {0};
    double **seconds = document_costs_even(&p->ir, costs->sim.place_work_s);
    if (seconds == NULL)
        return STATUS_OK;
    sim_costs.place_work_s = (const double *const *)seconds;
    enum status status =
        sim_run(&p->ir, &p->setup->cluster, &sim_costs, options, "schedule", &even, diag);
    *stands = status == STATUS_OK && !even.unsteady;
    if (*stands) {
        waterfall_make(&waterfall, &p->ir, &even, peak, 0);
        *stands = p->ir.repeats.copies == 0 || waterfall_adds_up(&waterfall);
        waterfall_take_documents(&p->waterfall, &waterfall);
    }
    if (*stands && p->ir.role_count > 1) {
        stages_make(&stages, &p->ir, &even, peak);
        *stands = p->ir.repeats.copies == 0 || stages_add_up(&stages);
        stages_take_documents(&p->stages, &stages, &p->sim);
    }
    stages_release(&stages);
    sim_result_release(&even);
    document_costs_free(seconds, p->ir.shape_count);
    return status;
}

static struct sim_options sim_options_of(const struct prediction *p)
{
    const struct prediction_question *question = &p->question;
    assert(question->exact || question->slow_factor == 0);
    return (struct sim_options){.exact = question->exact,
                                .even_above = p->setup->even_above,
                                .slow_factor = question->slow_factor,
                                .slow_rank = question->slow_rank};
}

/* Simulates the present list. *stands: its times are those of the whole list, or these follow from them. */
static enum status simulate(struct prediction *p, struct shape_costs *costs, bool *stands,
                            struct diag *diag)
{
    struct sim_options options = sim_options_of(p);
    options.no_memory = p->question.step_only;
    shape_costs_make(costs, p);
    enum status status =
        sim_run(&p->ir, &p->setup->cluster, &costs->sim, &options, "schedule", &p->sim, diag);
    *stands = status == STATUS_OK && !p->sim.unsteady;
    if (!*stands)
        return status;
    p->simulated = true;
    if (costs->place_work_s != NULL)
        p->lateness = document_lateness(&p->ir, costs->sim.place_work_s);
    if (p->question.step_only)
        return status;
    p->checkpoints_cost_host = costs->checkpoints;
    struct waterfall_peak peak = {.flop_per_s = p->setup->cluster.device.peak_flop_per_s};
    if (p->has_choices) /* as MFU and HFU */
        step_repeated_products(&p->choices, &peak.layers_again, &peak.head_again);
    waterfall_make(&p->waterfall, &p->ir, &p->sim, peak, 0);
    if (p->ir.role_count > 1)
        stages_make(&p->stages, &p->ir, &p->sim, peak);
    if (p->ir.repeats.copies > 0)
        *stands = waterfall_adds_up(&p->waterfall) && stages_add_up(&p->stages);
    if (*stands && !p->question.skip_causes && costs->place_work_s != NULL &&
        p->ir.documents.sequences > 0)
        status = take_documents(p, costs, &options, peak, stands, diag);
    return status;
}

/* Builds a longer short list, or the whole list, after a short list that does not represent it. Arenas stay the same.
 * */
static enum status build_longer(struct prediction *p, bool whole, struct diag *diag)
{
    sim_result_release(&p->sim);
    stages_release(&p->stages);
    ir_release(&p->ir);
    if (!whole && make_short_list(p, p->short_list_length + 1))
        return STATUS_OK;
    return step_build_planned(&p->ir, &p->choices, memories_of(p), diag);
}

enum status prediction_time(struct prediction *p, struct diag *diag)
{
    struct shape_costs costs = {0};
    bool stands = p->ir.repeats.copies == 0 ||
                  (!p->question.exact && step_ops_at_most(&p->choices) >= LONG_TO_SIMULATE);
    enum status status = stands ? STATUS_OK : build_longer(p, true, diag);
    for (stands = false; status == STATUS_OK && !stands;) {
        shape_costs_release(&costs);
        costs = (struct shape_costs){0};
        status = simulate(p, &costs, &stands, diag);
        if (status == STATUS_OK && !stands)
            status = build_longer(p, false, diag);
    }
    if (status == STATUS_OK) {
        add_jitter(p);
        if (p->sim.step_s > 0)
            p->tokens_per_s_gpu = prediction_tokens(p) / p->sim.step_s / prediction_gpus(p);
        if (!p->setup->cost.ideal && !p->question.step_only)
            find_extrapolated(p, &costs);
    }
    shape_costs_release(&costs);
    return status;
}

enum status prediction_without_kernels(struct sim_result *sim, const struct prediction *p,
                                       struct diag *diag)
{
    struct shape_costs costs = {0};
    struct sim_options options = sim_options_of(p);
    shape_costs_make(&costs, p);
    for (uint32_t i = 0; i < p->ir.shape_count; i++)
        if (work_kind_info((enum work_kind)p->ir.shape[i].kind)->stream == STREAM_COMPUTE)
            costs.work_s[i] = 0;
    costs.sim.place_work_s = NULL;
    enum status status =
        sim_run(&p->ir, &p->setup->cluster, &costs.sim, &options, "schedule", sim, diag);
    shape_costs_release(&costs);
    if (status != STATUS_OK || !sim->unsteady)
        return status;
    struct prediction whole = *p;
    whole.ir = (struct ir){0};
    sim_result_release(sim);
    status = step_build_planned(&whole.ir, &p->choices, 0, diag);
    if (status == STATUS_OK)
        status = prediction_without_kernels(sim, &whole, diag);
    ir_release(&whole.ir);
    return status;
}

/* Returns the lowest rank of a role. */
static uint32_t first_rank(const struct ir *ir, uint32_t role)
{
    uint32_t rank = 0;
    while (!role_has(&ir->mesh, &ir->role[role], rank))
        rank++;
    return rank;
}

/* Seconds of one rank: of all kernels; of the kernels of layers that belong to a unit; of these, in the forward of the
 * first unit; of these, in the backward of the unit that runs backward last; and of issuing all ops on its host. */
struct bound {
    double kernels_s, units_s, first_s, last_s, issue_s;
};

static struct bound bound_of_role(const struct prediction *p, const struct shape_costs *costs,
                                  const uint8_t *even, uint32_t r)
{
    const struct ir *ir = &p->ir;
    struct bound bound = {0};
    uint32_t rank = first_rank(ir, r);
    uint32_t place = costs->place_work_s != NULL ? ir_place_of(ir, rank) : 0;
    uint32_t last =
        p->choices.subsequences > 0 ? pipeline_units(&p->choices) - p->choices.subsequences : 0;
    last -= ir->repeats.of_units ? ir->repeats.copies : 0;
    for (uint32_t op = ir->role[r].op_begin; op < ir->role[r].op_begin + ir->role[r].op_count;
         op++) {
        uint32_t shape = ir->op.shape[op];
        uint16_t guard = ir->op.guard[op], unit = ir->op.micro[op];
        uint8_t phase = ir->op.phase[op];
        uint32_t times = repeats_times(&ir->repeats, op);
        double work_s = times * (costs->place_work_s != NULL && costs->place_work_s[shape] != NULL
                                     ? costs->place_work_s[shape][place]
                                     : costs->work_s[shape]);
        if (guard != IR_NONE16 && !uniform_passes(ir, even, guard, rank))
            continue;
        bound.issue_s += times * costs->issue_s[shape];
        if (ir->stream[ir->op.stream[op]].stream_class != STREAM_COMPUTE ||
            work_kind_info((enum work_kind)ir->op.kind[op])->stream == STREAM_SYNC)
            continue;
        bound.kernels_s += work_s;
        if (unit == IR_NONE16 || phase == PHASE_OPTIMIZER || ir->op.layer[op] == IR_NONE16)
            continue;
        bound.units_s += work_s;
        if (phase == PHASE_FORWARD && unit == 0)
            bound.first_s += work_s;
        if (phase != PHASE_FORWARD && unit == last)
            bound.last_s += work_s;
    }
    return bound;
}

double prediction_bound_s(const struct prediction *p)
{
    struct shape_costs costs = {0};
    double most_s = 0, before_s = 0, after_s = 0;
    bool waits =
        p->has_choices && pipeline_is_plain(&p->choices) && p->ir.role_count == p->choices.pp;
    /* exact steps are bounded by it too: even ranks work as the last of a ring does */
    uint8_t *even = uniform_guards(&p->ir, p->setup->even_above);
    shape_costs_make(&costs, p);
    for (uint32_t r = 0; r < p->ir.role_count; r++) {
        struct bound bound = bound_of_role(p, &costs, even, r);
        most_s = fmax(most_s, fmax(bound.kernels_s, bound.issue_s));
        if (waits)
            most_s = fmax(most_s, before_s + bound.units_s + after_s);
        before_s += bound.first_s;
        after_s += bound.last_s;
    }
    shape_costs_release(&costs);
    free(even);
    return most_s;
}

struct prediction_sums prediction_sums(const struct prediction *p)
{
    struct shape_costs costs = {0};
    uint8_t *even = uniform_guards(&p->ir, p->setup->even_above);
    shape_costs_make(&costs, p);
    struct bound bound = bound_of_role(p, &costs, even, 0);
    shape_costs_release(&costs);
    free(even);
    return (struct prediction_sums){bound.kernels_s, bound.issue_s};
}

enum status prediction_make(struct prediction *p, const struct prediction_question *question,
                            struct diag *diag)
{
    enum status status = prediction_memory(p, question, NULL, diag);
    if (status == STATUS_OK)
        status = prediction_time(p, diag);
    return status;
}
