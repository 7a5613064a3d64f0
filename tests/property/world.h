/* tests/property/world.h: random schedules on random clusters, with their costs. Included by test files only. */
#ifndef TESTS_PROPERTY_WORLD_H
#define TESTS_PROPERTY_WORLD_H

#include "models/cluster.h"
#include "models/cost.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "sim/sim.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const clusters[] = {"2x4xa100-80g", "loongtrain-a100", "fpdt-a100-80g",
                                       "4x2xa100-80g", "ideal"};
/* Clusters for tests of replicas: some have oversubscribed leaf switches or a fabric over two nodes. */
static const char *const wide_clusters[] = {
    "2x4xa100-80g",
    "loongtrain-a100",
    "4x2xa100-80g",
    "8x2xa100-80g:network.leaf_nodes=2,network.oversubscription=2",
    "4x4xa100-80g:network.leaf_nodes=2,network.oversubscription=3,network.rails=true",
    "gb200:domain_nodes=2"};

struct property_world {
    struct arena arena;
    struct diag diag;
    struct cluster cluster;
    struct device_cost device;
    struct transformer model; /* request.model, where the layers are changed */
    struct choices choices;
    struct ir ir;
    struct sim_costs costs;
    double *work_s, *issue_s;
    char label[320];
};

static inline void world_release(struct property_world *w)
{
    free(w->work_s);
    free(w->issue_s);
    ir_release(&w->ir);
    arena_release(&w->arena);
    diag_release(&w->diag);
    *w = (struct property_world){0};
}

/* Builds the schedule of `request` on a cluster of 8 GPUs, or of as many as its ranks if these are more, with the
 * costs of an A100. as: the profile to use instead of the request's; NULL: the request's. Returns false, with a failed
 * check, when it cannot be built. */
static inline bool world_build(struct property_world *w, const char *cluster,
                               const struct request *request, const struct profile *as)
{
    char label[256];
    snprintf(w->label, sizeof w->label, "%s: %s", cluster,
             shapes_request_label(request, label, sizeof label));
    bool ok = cluster_load(&w->cluster, &w->arena, cluster, &w->diag) == STATUS_OK &&
              cluster_resize(&w->cluster, &w->arena, 0, request->ranks < 8 ? 8 : request->ranks,
                             &w->diag) == STATUS_OK &&
              cost_load(&w->device, &w->arena, "a100-80g", &w->diag) == STATUS_OK &&
              resolve_choices(&w->choices, request, NULL, &w->diag) == STATUS_OK;
    if (ok && as)
        w->choices.profile = as;
    ok = ok && step_build(&w->ir, &w->choices, &w->diag) == STATUS_OK;
    CHECK_TEXT(w->label, w->diag.text ? w->diag.text : "", "");
    if (!ok)
        return false;
    w->work_s = heap_alloc(w->ir.shape_count, sizeof *w->work_s);
    w->issue_s = heap_alloc(w->ir.shape_count, sizeof *w->issue_s);
    for (uint32_t i = 0; i < w->ir.shape_count; i++) {
        w->work_s[i] = cost_work_s(&w->device, ATTENTION_FA2, &w->ir.shape[i]);
        w->issue_s[i] = cost_host_issue_s(&w->device, &w->ir.shape[i]);
    }
    w->costs = (struct sim_costs){.work_s = w->work_s, .issue_s = w->issue_s};
    return true;
}

static inline const char *random_cluster_name(struct check_random *random)
{
    return clusters[check_random_i64(random, 0, ARRAY_LEN(clusters) - 1)];
}

/* Builds a schedule of `request` on a random cluster and by a random profile, with `layers` layers; 0: as many as the
 * model has. If `layers` is not 0, a quarter of the batches are made eight times as large. */
static inline bool world_build_on_random_cluster(struct property_world *w,
                                                 struct check_random *random,
                                                 struct request request, int64_t layers)
{
    *w = (struct property_world){0};
    const char *cluster = random_cluster_name(random);
    if (layers > 0) {
        w->model = *request.model;
        w->model.layers = layers;
        request.model = &w->model;
        request.global_batch *= check_random_i64(random, 0, 3) == 0 ? 8 : 1;
    }
    request.profile = check_random_i64(random, 0, 1) ? "deepspeed" : "internevo"; /* both run FA2 */
    return world_build(w, cluster, &request, NULL);
}

/* Gives the request two or four pipeline stages, each with as many ranks as the request had, a random placement and
 * pipeline, and a batch of one to three times as many micro-batches as stages. Weights are replicated or ZeRO-1, and
 * the optimizer is on the device. */
static inline void add_random_stages(struct request *request, struct check_random *random)
{
    request->pp = (int64_t)2 << check_random_i64(random, 0, 1);
    request->stage_placement = (int)check_random_i64(random, 0, STAGE_PLACEMENT_COUNT - 1);
    request->ranks *= request->pp;
    request->pipeline = (int)check_random_i64(random, CHOICE_PIPELINE_GPIPE, CHOICE_PIPELINE_ZB_V);
    request->global_batch =
        request->dp * request->micro_batch * request->pp * check_random_i64(random, 1, 3);
    request->weights = (int)check_random_i64(random, 0, CHOICE_WEIGHTS_ZERO1);
    request->optimizer = CHOICE_OPTIMIZER_DEVICE;
    request->shard = 0;
}

/* Makes a world with two or four stages of two layers or more, each of one or two ranks. */
static inline bool world_make_with_stages(struct property_world *w, struct check_random *random)
{
    struct request request = shapes_random_request(random, 2, false);
    while (request.chunk_tokens > 0) /* fpdt cuts sequences itself */
        request = shapes_random_request(random, 2, false);
    add_random_stages(&request, random);
    return world_build_on_random_cluster(w, random, request,
                                         2 * request.pp * check_random_i64(random, 1, 2));
}

/* Makes a world of 8 to 128 ranks, whose data-parallel degree is at least four times that of a small request; up to a
 * third of the worlds have pipeline stages. Shards of HSDP may span several copies of the small request's
 * ranks. */
static inline bool world_make_with_replicas(struct property_world *w, struct check_random *random)
{
    *w = (struct property_world){0};
    struct request request = shapes_random_request(random, 4, false);
    int64_t copies = (int64_t)4 << check_random_i64(random, 0, 1);
    copies = copies * request.ranks < 8 ? 8 : copies;
    request.dp *= copies;
    request.ranks *= copies;
    request.global_batch *= copies;
    request.profile = check_random_i64(random, 0, 1) ? "deepspeed" : "internevo";
    if (request.weights == CHOICE_WEIGHTS_REPLICATED)
        request.optimizer = CHOICE_OPTIMIZER_DEVICE;
    while (request.shard > 0 && 2 * request.shard <= request.ranks / request.tp &&
           check_random_i64(random, 0, 1) > 0)
        request.shard *= 2;
    if (request.chunk_tokens == 0 && request.model->layers > 1 &&
        check_random_i64(random, 0, 2) == 0) {
        add_random_stages(&request, random);
        w->model = *request.model;
        w->model.layers = 2 * request.pp;
        request.model = &w->model;
    }
    const int64_t cluster = check_random_i64(random, 0, ARRAY_LEN(wide_clusters) - 1);
    return world_build(w, wide_clusters[cluster], &request, NULL);
}

static inline bool world_make(struct property_world *w, struct check_random *random)
{
    return world_build_on_random_cluster(w, random, shapes_random_request(random, 8, false), 0);
}

/* Simulates a step. exact: of every rank, without folding. Returns false, with a failed check, if it cannot be. */
static inline bool simulate(struct property_world *w, bool exact, struct sim_result *result)
{
    *result = (struct sim_result){0};
    struct sim_options options = {.simulates_every_rank_and_op = exact};
    enum status status =
        sim_run(&w->ir, &w->cluster, &w->costs, &options, "schedule", result, &w->diag);
    CHECK_TEXT(w->label, w->diag.text ? w->diag.text : "", "");
    return status == STATUS_OK;
}

#endif
