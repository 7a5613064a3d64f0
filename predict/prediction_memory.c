/* predict/prediction_memory.c: builds the schedule of a prediction, and judges whether its memory suffices. */
#include "predict/prediction_build.h"
#include "predict/recorded_operators.h"
#include "predict/similarity.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/schedule_file.h"
#include "schedule/step/build.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns whole bytes, rounded down: 0 for a number below 0, UINT64_MAX for infinite memory. */
static uint64_t whole_bytes_saturated(double bytes)
{
    return isfinite(bytes) ? (bytes > 0 ? (uint64_t)bytes : 0) : UINT64_MAX;
}

double prediction_fits_probability(const struct setup *setup, const struct choices *choices,
                                   double needed, double available)
{
    const struct similarity like = similarity_of(setup, choices, choices->profile);
    const struct residual run = similarity_make_residual(&like);
    struct interval interval = {.low = NAN};
    if (like.device[0] != '\0')
        interval = interval_of_run(&setup->evidence, RESIDUAL_MEMORY, &run, NULL);
    return interval_fit_probability(&interval, needed, available);
}

/* Returns prediction_fits_probability() of a recorded step. */
static double recorded_fits_probability(const struct prediction *p, double needed, double available)
{
    const struct similarity like = similarity_of_recorded(
        p->setup, attention_impl_name((enum attention_impl)p->choices.attention_impl));
    const struct residual run = similarity_make_residual(&like);
    struct interval interval = {.low = NAN};
    if (like.device[0] != '\0')
        interval = interval_of_run(&p->setup->evidence, RESIDUAL_MEMORY, &run, NULL);
    return interval_fit_probability(&interval, needed, available);
}

/* Returns the probability that the memory suffices. If planned arenas are judged, it is 0 or 1. For reserved memory it
 * is the lower of the probabilities of device and host. If the device's memory suffices with the allocator's cache, the
 * cache does not count, since the allocator gives it back before an allocation fails. */
static double fits_probability_of(const struct prediction *p)
{
    const struct verdict *v = &p->verdict;
    double probability = 1;
    if (!v->is_by_reserved_memory)
        return v->fits;
    for (int l = 0; l < LIMIT_COUNT; l++) {
        double available =
            v->available_bytes[l] == UINT64_MAX ? INFINITY : (double)v->available_bytes[l];
        double needed = (double)v->needed_bytes[l];
        if (l == LIMIT_DEVICE && v->needed_bytes[l] <= v->available_bytes[l])
            needed -= (double)v->cache_bytes;
        probability =
            fmin(probability, p->has_choices ? prediction_fits_probability(p->setup, &p->choices,
                                                                           needed, available)
                                             : recorded_fits_probability(p, needed, available));
    }
    return probability;
}

static void judge_memory(struct prediction *p)
{
    const struct cluster *cluster = &p->setup->cluster;
    struct verdict *v = &p->verdict;
    v->is_by_reserved_memory = prediction_is_judged_by_reserved(p);
    v->needed_bytes[LIMIT_DEVICE] =
        v->is_by_reserved_memory
            ? p->reserved.total_bytes
            : p->ir.planned_bytes[MEMORY_HBM] + p->reserved.bytes[RESERVED_CONTEXT];
    v->available_bytes[LIMIT_DEVICE] = p->reserved.available_bytes;
    v->is_tight = p->reserved.is_tight;
    v->cache_bytes = v->is_by_reserved_memory ? p->reserved.bytes[RESERVED_CACHE] : 0;
    v->nccl_bytes = v->is_by_reserved_memory ? p->reserved.bytes[RESERVED_NCCL] : 0;

    uint64_t ranks = mesh_rank_count(&p->ir.mesh), on_node = (uint64_t)cluster->gpus_per_node;
    if (ranks < on_node)
        on_node = ranks;
    v->needed_bytes[LIMIT_HOST] =
        on_node * ((v->is_by_reserved_memory ? p->reserved.pinned_bytes
                                             : p->ir.planned_bytes[MEMORY_PINNED]) +
                   p->ir.planned_bytes[MEMORY_PAGEABLE]);
    v->available_bytes[LIMIT_HOST] =
        whole_bytes_saturated(cluster->host.memory_bytes - cluster->host.os_reserved_bytes);
    v->limiting_memory = verdict_needed_share(v, LIMIT_HOST) > verdict_needed_share(v, LIMIT_DEVICE)
                             ? LIMIT_HOST
                             : LIMIT_DEVICE;
    v->fits = v->needed_bytes[LIMIT_DEVICE] <= v->available_bytes[LIMIT_DEVICE] &&
              v->needed_bytes[LIMIT_HOST] <= v->available_bytes[LIMIT_HOST];
    v->fits_probability = fits_probability_of(p);
}

static enum status check_rank_count(const struct prediction *p, const char *name, struct diag *diag)
{
    uint32_t ranks = mesh_rank_count(&p->ir.mesh);
    if ((int64_t)ranks <= p->setup->cluster.gpus)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                      "the schedule is for %u ranks, and %s has %lld GPUs; --nodes or --gpus gives "
                      "it more",
                      ranks, p->setup->cluster.name, (long long)p->setup->cluster.gpus);
}

/* Fails unless a recorded step has as many ranks as the cluster has GPUs: what each rank computes and holds depends on
 * that number. */
static enum status check_world_size(const struct prediction *p, const char *name, struct diag *diag)
{
    const struct cluster *cluster = &p->setup->cluster;
    const uint32_t ranks = mesh_rank_count(&p->ir.mesh);
    if ((int64_t)ranks == cluster->gpus)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                      "was recorded with %u rank%s, and %s has %lld GPUs here: give --gpus %u, or "
                      "record the step for them: python -m longhaul.record --world-size %lld -o "
                      "FILE SCRIPT",
                      ranks, ranks == 1 ? "" : "s", cluster->name, (long long)cluster->gpus, ranks,
                      (long long)cluster->gpus);
}

static void replay_allocator(struct prediction *p)
{
    struct reserved_options held = {.replay.moments_allocated_in_step = prediction_is_recorded(p)};
    if (p->has_choices) {
        held.replay.moments_allocated_in_step = p->choices.profile->moments_allocated_in_step;
        /* DeepSpeed's ZeRO-1 and ZeRO-2, which Trainer runs too, have flat tensors */
        held.replay.allocates_each_tensor_alone = p->choices.profile->allocates_each_tensor_alone &&
                                                  p->choices.weights != CHOICE_WEIGHTS_ZERO1 &&
                                                  p->choices.weights != CHOICE_WEIGHTS_ZERO2;
        held.has_expandable_segments = p->choices.profile->expandable_segments;
        held.allocates_gathers_in_own_pool = p->choices.profile->allocates_gathers_in_own_pool;
        held.bucket_bytes = (uint64_t)step_bucket_bytes(&p->choices);
        if (p->choices.loading == LOADING_WHOLE)
            held.bytes_per_whole_parameter = (uint32_t)dtype_bytes(
                p->choices.profile->sharded_params_f32 ? DTYPE_F32 : (enum dtype)p->choices.dtype);
        step_set_rotary_table_bytes(&p->choices, held.table_bytes);
    }
    reserved_compute(&p->reserved, &p->ir, &p->setup->cluster, p->setup->request.sm, held);
}

/* The longest sequence, in tokens, of the published steps with experts that predictions were compared with. For a
 * longer sequence the note on experts says so. */
enum { LONGEST_WITH_EXPERTS = 8192 };

/* Returns the share of copies of tokens that experts drop, as the mean over layers with experts; 0 if experts have no
 * capacity. */
static double dropped_copy_share(const struct ir *ir, const struct choices *c)
{
    struct routing routing = ir->routing;
    const int64_t rows = c->seq / c->cp / c->hp / c->sequence_parallel_ranks * c->micro_batch;
    double kept = 0, copies = 0;
    routing.capacity.pads = 0;
    for (uint32_t l = 0;
         l < routing.layer_count && c->expert_capacity.capacity_factor_millionths > 0; l++)
        if (transformer_layer_has_experts(c->model, l)) {
            kept += (double)routing_kept_rows(&routing, routing.share_list_by_layer[l], rows);
            copies += (double)(rows * routing.copies_per_token);
        }
    return copies > 0 ? 1 - kept / copies : 0;
}

/* Adds a note that says what is assumed about a mixture of experts. */
static void note_expert_assumptions(struct diag *note, const struct ir *ir, const struct choices *c)
{
    const double dropped = dropped_copy_share(ir, c);
    char drops[96] = "", where[64] = "every rank has all experts of its layers";
    if (c->ep > 1)
        snprintf(where, sizeof where, "those of a layer are spread over %u ranks", c->ep);
    if (dropped > 0)
        snprintf(drops, sizeof drops,
                 "; experts drop %.2g %% of the copies of tokens, which MFU counts as computed",
                 100 * dropped);
    else if (c->expert_capacity.capacity_factor_millionths > 0)
        snprintf(drops, sizeof drops,
                 "; no expert has more copies than its capacity, so none is dropped");
    diag_note(
        note, (struct loc){0}, "experts: %s, and tokens are dealt to them %s%s; %s", where,
        c->routing == NULL ? "evenly" : "by --routing, every rank like the one with the most",
        drops,
        c->seq > LONGEST_WITH_EXPERTS
            ? "nothing that predictions with experts were compared with has sequences of more "
              "than 8K tokens"
            : "docs/accuracy/experts.md compares such predictions with measured steps");
}

/* Builds the schedule of the resolved request. judged: the memory of the schedule is judged too, unless the step is too
 * slow. */
static enum status build_schedule(struct prediction *p, bool judged, struct diag *diag)
{
    ir_release(&p->ir);
    p->choices = p->resolved.choices;
    if (p->question.layer_count > 0) {
        p->model_of_few_layers_of_step = *p->choices.model;
        p->model_of_few_layers_of_step.layers = p->question.layer_count;
        p->choices.model = &p->model_of_few_layers_of_step;
    }
    enum status status = prediction_build(p, diag);
    if (status == STATUS_OK && p->question.rate_to_exceed > 0) {
        p->tokens_per_s_gpu =
            prediction_tokens(p) / prediction_step_lower_bound_s(p) / prediction_gpus(p);
        p->is_slower_than_rate_to_exceed = p->tokens_per_s_gpu <= p->question.rate_to_exceed;
    }
    if (status == STATUS_OK && !p->is_slower_than_rate_to_exceed && judged) {
        replay_allocator(p);
        judge_memory(p);
    }
    return status;
}

static void begin_prediction(struct prediction *p, const struct prediction_question *question)
{
    p->question = *question;
    p->setup = question->setup;
    p->short_list_length_index = question->short_list_length_index;
    if (question->request == NULL)
        p->question.request = &question->setup->request;
}

/* If the request leaves open how many subsequences stages share, the numbers are tried from the fastest step to the
 * slowest (struct shared_units_worth_trying) until the step fits. */
enum status prediction_memory(struct prediction *p, const struct prediction_question *question,
                              struct diag *note, struct diag *diag)
{
    const struct setup *setup = question->setup;
    const struct shared_units_worth_trying *shared = &p->resolved.shared_units_worth_trying;
    begin_prediction(p, question);
    p->has_choices = true;
    enum status status = resolved_make(&p->resolved, setup, p->question.request, note, diag);
    p->choices = p->resolved.choices;
    p->profile = p->choices.profile;
    if (status == STATUS_OK)
        status = cost_check_attention(&setup->cost, (enum attention_impl)p->choices.attention_impl,
                                      transformer_wider_head_dim(&setup->model),
                                      (struct loc){.name = "--attention"}, diag);
    if (status == STATUS_OK && p->choices.attention_products != ATTENTION_PRODUCTS_BF16)
        status = cost_check_attention(&setup->cost, products_core_impl(&p->choices),
                                      transformer_wider_head_dim(&setup->model),
                                      (struct loc){.name = "--attention-products"}, diag);
    if (status == STATUS_OK)
        status = cost_check_scaling(
            &setup->cost, (enum scaling)products_recipe(&p->choices)->weight_scaling,
            products_names[p->choices.products], (struct loc){.name = "--products"}, diag);
    if (status == STATUS_OK)
        status = build_schedule(p, !question->wants_step_time_only || shared->count > 1, diag);
    for (uint32_t i = 1; status == STATUS_OK && i < shared->count &&
                         !p->is_slower_than_rate_to_exceed && !p->verdict.fits;
         i++) {
        status = resolved_use_ranked_shared_units(&p->resolved, i, diag);
        if (status == STATUS_OK)
            status = build_schedule(p, true, diag);
    }
    if (status == STATUS_OK && note != NULL && shared->count > 0 &&
        !pipeline_of_choices(&p->choices)->is_multiplexed)
        diag_note(note, (struct loc){0},
                  shared->count > 1
                      ? "pipeline stages share no subsequence: the faster splits do not fit in "
                        "memory; --share-units 1 shares the first one"
                      : "pipeline stages share no subsequence: no split is predicted to be faster; "
                        "--share-units 1 shares the first one");
    if (status == STATUS_OK && note != NULL && setup->model.experts > 0)
        note_expert_assumptions(note, &p->ir, &p->choices);
    return status;
}

/* Sets the profile for a schedule from a file to the one that the user names. If `name` is NULL, it stays unset. The
 * file does not say with which profile it was made. For such a schedule, a profile changes only times. */
static enum status find_profile_by_name(const struct profile **profile, const char *name,
                                        struct diag *diag)
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

/* Sets the kernels of each attention op of a recorded step. With --attention they are those that it names. Without it
 * they are the recorded ones; where the device has no costs of these, those that the request would use. Sets
 * p->choices.attention_impl to the kernels that the largest number of shapes has, and
 * p->recorded_attention_without_costs. */
static void choose_recorded_attention_kernels(struct prediction *p)
{
    const struct setup *setup = p->setup;
    uint32_t ops[ATTENTION_IMPL_COUNT] = {0};
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        struct work *work = &p->ir.shape[i];
        const struct work as = work_cost_equivalent(work);
        if (work->kind != WORK_OPAQUE ||
            (as.kind != WORK_ATTENTION && as.kind != WORK_ATTENTION_BACKWARD))
            continue;
        const bool has =
            cost_check_attention(&setup->cost, work_attention_impl(work, ATTENTION_FA2),
                                 as.attention.dim, (struct loc){0}, NULL) == STATUS_OK;
        if (setup->request.attention_impl < 0 && !has)
            p->recorded_attention_without_costs = work_attention_impl(work, ATTENTION_FA2);
        if (setup->request.attention_impl >= 0 || !has)
            work->opaque.kernels =
                choices_attention_impl_of_request(&setup->request, ATTENTION_FA2);
        ops[work->opaque.kernels]++;
    }
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        if (ops[i] > ops[p->choices.attention_impl])
            p->choices.attention_impl = (uint8_t)i;
}

enum status prediction_memory_of_file(struct prediction *p,
                                      const struct prediction_question *question,
                                      const char *const *files, size_t count, struct diag *diag)
{
    const struct setup *setup = question->setup;
    const char *path = files[0];
    begin_prediction(p, question);
    p->recorded_attention_without_costs = -1;
    p->choices.attention_impl =
        (uint8_t)choices_attention_impl_of_request(&setup->request, ATTENTION_FA2);
    enum status status = find_profile_by_name(&p->profile, setup->request.profile, diag);
    if (status == STATUS_OK)
        status = schedule_load(&p->ir, files, count, &p->recorded, diag);
    if (status == STATUS_OK && p->ir.op.count == 0)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "the schedule has no ops: there is nothing to predict");
    if (status == STATUS_OK)
        status = prediction_is_recorded(p) ? check_world_size(p, path, diag)
                                           : check_rank_count(p, path, diag);
    if (status == STATUS_OK && prediction_is_recorded(p) && setup->request.profile != NULL)
        status = diag_error(diag, (struct loc){.name = "--profile"}, STATUS_BAD_INPUT,
                            "is an implementation of a schedule, and the recorded step '%s' is one "
                            "of its own; leave it out",
                            path);
    if (status == STATUS_OK && question->kernel_times_path != NULL && !prediction_is_recorded(p))
        status = diag_error(diag, (struct loc){.name = "--kernel-times"}, STATUS_BAD_INPUT,
                            "gives the kernels of a recorded step their times, and '%s' is a "
                            "schedule",
                            path);
    if (status == STATUS_OK && prediction_is_recorded(p))
        choose_recorded_attention_kernels(p);
    if (status == STATUS_OK && question->kernel_times_path != NULL)
        status = recorded_operators_use_measured(p, question->kernel_times_path, diag);
    for (uint32_t i = 0; status == STATUS_OK && i < p->ir.shape_count; i++) {
        const struct work as = work_cost_equivalent(&p->ir.shape[i]), *work = &as;
        if (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD)
            status = cost_check_attention(
                &setup->cost,
                work_attention_impl(&p->ir.shape[i],
                                    (enum attention_impl)p->choices.attention_impl),
                work_attention_vdim(work) > work->attention.dim ? work_attention_vdim(work)
                                                                : work->attention.dim,
                (struct loc){.name = path}, diag);
        if (status == STATUS_OK && work->kind == WORK_MATMUL)
            status = cost_check_scaling(&setup->cost, (enum scaling)work->matmul.scaling,
                                        scaling_names[work->matmul.scaling],
                                        (struct loc){.name = path}, diag);
    }
    if (status == STATUS_OK) {
        replay_allocator(p);
        judge_memory(p);
    }
    return status;
}
