/* tests/sim/test_stages.c: pipelines on the ideal cluster, where work takes its flops and messages take no time unless
 * a test sets one: their bubbles follow the published formulae. */
#include "sim/stages.h"

#include "models/cluster.h"
#include "models/cost.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct transformer deep = {.name = "deep",
                                        .layers = 16,
                                        .hidden = 256,
                                        .heads = 4,
                                        .kv_heads = 4,
                                        .head_dim = 64,
                                        .ffn = 512,
                                        .vocab = 512,
                                        .activation = ACTIVATION_SWIGLU,
                                        .norm = NORM_RMSNORM,
                                        .positions = POSITIONS_ROPE,
                                        .rope_theta = 1e4,
                                        .norm_eps = 1e-5};

struct world {
    struct arena arena;
    struct diag diag;
    struct cluster cluster;
    struct device_cost device;
    struct choices choices;
    struct ir ir;
    struct sim_result sim;
    struct stages stages;
    double *work_s;
};

static void world_release(struct world *w)
{
    stages_release(&w->stages);
    sim_result_release(&w->sim);
    ir_release(&w->ir);
    free(w->work_s);
    arena_release(&w->arena);
    diag_release(&w->diag);
}

static struct request request_of_deep_model(int pipeline, int64_t pp, int64_t units)
{
    return (struct request){
        .model = &deep,
        .strategy = "local",
        .profile = "ideal",
        .weights = CHOICE_WEIGHTS_REPLICATED,
        .activations = CHOICE_ACTIVATIONS_KEEP,
        .optimizer = -1,
        .attention_impl = -1,
        .dtype = -1,
        .scope = SCOPE_ALL_LAYERS,
        .ranks = pp,
        .pp = pp,
        .pipeline = pipeline,
        .seq = 256,
        .global_batch = units,
        .sm = 80,
        .gpus_per_node = 8,
    };
}

/* Returns the seconds of each shape, [ir.shape_count + 1], on the heap. free_attention: only matrix products take time;
 * the forward product of a linear layer and its two backward products are equally long. */
static double *work_s_by_shape(const struct world *w, const struct ir *ir, bool free_attention)
{
    double *work_s = heap_zalloc((size_t)ir->shape_count + 1, sizeof *work_s);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        if (!free_attention || ir->shape[i].kind == WORK_MATMUL)
            work_s[i] = cost_work_s(&w->device, w->choices.attention_impl, &ir->shape[i]);
    return work_s;
}

static bool world_make(struct world *w, const char *label, const struct request *request,
                       bool free_attention)
{
    *w = (struct world){0};
    bool ok =
        cluster_load(&w->cluster, &w->arena, "ideal", &w->diag) == STATUS_OK &&
        cluster_resize(&w->cluster, &w->arena, 0, request->ranks, &w->diag) == STATUS_OK &&
        cost_load(&w->device, &w->arena, w->cluster.device.cost_name, &w->diag) == STATUS_OK &&
        resolve_choices(&w->choices, request, NULL, &w->diag) == STATUS_OK &&
        step_build(&w->ir, &w->choices, &w->diag) == STATUS_OK &&
        verify(&w->ir, NULL, label, NULL, &w->diag) == STATUS_OK;
    if (ok) {
        w->work_s = work_s_by_shape(w, &w->ir, free_attention);
        struct sim_costs costs = {.work_s = w->work_s};
        struct sim_options options = {0};
        ok = sim_run(&w->ir, &w->cluster, &costs, &options, label, &w->sim, &w->diag) == STATUS_OK;
    }
    CHECK_TEXT(label, w->diag.text ? w->diag.text : "", "");
    if (ok)
        stages_make(&w->stages, &w->ir, &w->sim,
                    (struct waterfall_peak){.flop_per_s = w->cluster.device.peak_bf16_flop_per_s});
    return ok;
}

/* The replicas of a stage are simulated once, with the same result as when each is simulated. */
static void folded_pipelines_equal_unfolded(void)
{
    for (int p = CHOICE_PIPELINE_GPIPE; p < CHOICE_PIPELINE_COUNT; p++) {
        struct request request = request_of_deep_model(p, 2, p == CHOICE_PIPELINE_MSP ? 4 : 8);
        bool shared = p == CHOICE_PIPELINE_MSP;
        bool pieces = pipeline_of_choice((enum pipeline_choice)p)->has_subsequences;
        struct world w;
        request.scope = SCOPE_WHOLE_STEP;
        request.strategy = "ulysses";
        request.weights = CHOICE_WEIGHTS_ZERO1;
        request.activations = CHOICE_ACTIVATIONS_FULL;
        request.dp = shared ? 4 : 2;
        request.hp = shared ? 1 : 2;
        request.ranks = 8;
        request.subsequences = pieces ? 4 : 1;
        if (!world_make(&w, pipeline_names[p], &request, false)) {
            world_release(&w);
            continue;
        }
        struct sim_result plain = {0};
        struct sim_costs costs = {.work_s = w.work_s};
        struct sim_options options = {.simulates_every_rank_and_op = true};
        CHECK_INT(pipeline_names[p],
                  sim_run(&w.ir, &w.cluster, &costs, &options, "plain", &plain, &w.diag),
                  STATUS_OK);
        CHECK_CLOSE(pipeline_names[p], w.sim.step_s, plain.step_s, 1e-9);
        CHECK(pipeline_names[p], w.sim.class_count < plain.class_count);
        sim_result_release(&plain);
        world_release(&w);
    }
}

/* Seconds of one unit on one stage, without recomputation. */
struct phase_seconds_per_unit {
    double forward, inputs, weights; /* the backward's products, by the gradients they make */
};

static struct phase_seconds_per_unit phase_seconds_per_unit(const struct world *w)
{
    struct phase_seconds_per_unit t = {0};
    const struct ir *ir = &w->ir;
    double units = w->choices.accumulation * (double)w->choices.pp;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work_kind_info(work->kind)->stream != STREAM_COMPUTE)
            continue;
        double seconds = w->work_s[ir->op.shape[op]] / units;
        bool weight = work->kind == WORK_MATMUL && work->matmul.form == MATMUL_TN;
        *(ir->op.phase[op] == PHASE_FORWARD ? &t.forward
          : weight                          ? &t.weights
                                            : &t.inputs) += seconds;
    }
    return t;
}

static void equal_units_leave_the_bubble_of_the_formulae(void)
{
    static const struct {
        int pipeline;
        int64_t pp, units, chunks;
    } rows[] = {
        {CHOICE_PIPELINE_GPIPE, 2, 4, 1},       {CHOICE_PIPELINE_GPIPE, 4, 16, 1},
        {CHOICE_PIPELINE_1F1B, 2, 1, 1},        {CHOICE_PIPELINE_1F1B, 4, 2, 1},
        {CHOICE_PIPELINE_1F1B, 4, 16, 1},       {CHOICE_PIPELINE_1F1B, 8, 8, 1},
        {CHOICE_PIPELINE_INTERLEAVED, 2, 4, 2}, {CHOICE_PIPELINE_INTERLEAVED, 4, 8, 4},
        {CHOICE_PIPELINE_INTERLEAVED, 4, 4, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char label[96];
        struct world w;
        struct request request = request_of_deep_model(rows[i].pipeline, rows[i].pp, rows[i].units);
        request.virtual_stages = rows[i].chunks;
        double n = (double)(rows[i].units * rows[i].chunks), p = (double)rows[i].pp;
        snprintf(label, sizeof label, "%s pp %g units %g", pipeline_names[rows[i].pipeline], p, n);
        if (world_make(&w, label, &request, false)) {
            /* GPipe's paper and Narayanan et al., section 2.2 */
            CHECK_CLOSE(label, w.stages.bubble_to_busy, (p - 1) / n, 1e-9);
            CHECK_CLOSE(label, w.stages.bubble_to_step, (p - 1) / (n + p - 1), 1e-9);
            double parts = w.stages.fill_s + w.stages.drain_s + w.stages.pipeline_imbalance_s;
            CHECK_CLOSE(label, w.stages.mean_busy_s + parts, w.sim.step_s, 1e-9);
        }
        world_release(&w);
    }
}

/* The bubble of zb-1p is (P - 1)(t_F + t_B - t_W) for any three times (Qi et al., arXiv 2401.10241, table 1). */
static void deferred_weight_grads_fill_the_drain(void)
{
    static const int64_t rows[][2] = {{2, 4}, {4, 4}, {4, 8}, {8, 16}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char label[96];
        struct world w;
        struct request request =
            request_of_deep_model(CHOICE_PIPELINE_ZB_1P, rows[i][0], rows[i][1]);
        snprintf(label, sizeof label, "zb-1p pp %d units %d", (int)rows[i][0], (int)rows[i][1]);
        if (world_make(&w, label, &request, false)) {
            struct phase_seconds_per_unit t = phase_seconds_per_unit(&w);
            double bubble = (double)(rows[i][0] - 1) * (t.forward + t.inputs - t.weights);
            double work = (double)rows[i][1] * (t.forward + t.inputs + t.weights);
            CHECK_CLOSE(label, w.sim.step_s, work + bubble, 1e-9);
        }
        world_release(&w);
    }
}

/* With t_F = t_B = t_W and 2 P - 1 or more micro-batches, a stage of ZB-V works without a pause from its start to its
 * end; stage p starts, and ends, later than stage 0 by the time of p forwards of a chunk. */
static void zb_v_has_no_bubble(void)
{
    static const int64_t rows[][2] = {{2, 4}, {4, 7}, {4, 8}, {8, 16}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char label[96];
        struct world w;
        struct request request =
            request_of_deep_model(CHOICE_PIPELINE_ZB_V, rows[i][0], rows[i][1]);
        snprintf(label, sizeof label, "zb-v pp %d units %d", (int)rows[i][0], (int)rows[i][1]);
        if (world_make(&w, label, &request, true)) {
            struct phase_seconds_per_unit t = phase_seconds_per_unit(&w);
            double late = (double)(rows[i][0] - 1) * t.forward / 2;
            CHECK_CLOSE(label, t.inputs, t.forward, 1e-9);
            CHECK_CLOSE(label, w.sim.step_s, (double)rows[i][1] * 3 * t.forward + late, 1e-9);
            CHECK_CLOSE(label, w.stages.pipeline_imbalance_s / w.sim.step_s + 1, 1, 1e-9);
        }
        world_release(&w);
    }
}

/* If attention, which differs among subsequences, takes no time, pipelines over k subsequences of a
 * micro-batch have the bubble of a pipeline over as many units: k - 1 more forwards come first and
 * as many backwards last, so no idle time is added. */
static void subsequences_leave_the_bubble_of_as_many_units(void)
{
    static const struct {
        int64_t pp, chunks, pieces, batches;
    } rows[] = {
        {2, 1, 4, 2}, {2, 2, 2, 1}, {2, 2, 4, 2}, {2, 4, 3, 2}, {4, 2, 4, 1},
        {4, 2, 2, 2}, {4, 4, 8, 1}, {4, 2, 3, 4}, {4, 2, 8, 2}, {8, 2, 16, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char label[96];
        struct world w;
        struct request request = request_of_deep_model(
            rows[i].chunks > 1 ? CHOICE_PIPELINE_INTERLEAVED : CHOICE_PIPELINE_SEQ1F1B, rows[i].pp,
            rows[i].batches);
        request.virtual_stages = rows[i].chunks;
        request.subsequences = rows[i].pieces;
        request.seq = 64 * rows[i].pieces;
        double p = (double)rows[i].pp;
        double n = (double)(rows[i].pieces * rows[i].batches * rows[i].chunks);
        snprintf(label, sizeof label, "%s pp %g x %d, %d x %d units",
                 pipeline_names[request.pipeline], p, (int)rows[i].chunks, (int)rows[i].batches,
                 (int)rows[i].pieces);
        if (world_make(&w, label, &request, true)) {
            CHECK_CLOSE(label, w.stages.bubble_to_busy, (p - 1) / n, 1e-9);
            CHECK_CLOSE(label, w.stages.bubble_to_step, (p - 1) / (n + p - 1), 1e-9);
        }
        world_release(&w);
    }
}

/* ZB-V over k subsequences of a micro-batch has no pauses either, from 2 P - 2 + k units on. */
static void zb_v_over_subsequences_has_no_bubble(void)
{
    static const struct {
        int64_t pp, pieces, batches;
    } rows[] = {{2, 2, 2}, {2, 4, 2}, {4, 2, 4}, {4, 4, 3}, {4, 8, 2}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char label[96];
        struct world w;
        struct request request =
            request_of_deep_model(CHOICE_PIPELINE_ZB_V, rows[i].pp, rows[i].batches);
        request.subsequences = rows[i].pieces;
        request.seq = 64 * rows[i].pieces;
        snprintf(label, sizeof label, "zb-v pp %d, %d x %d units", (int)rows[i].pp,
                 (int)rows[i].batches, (int)rows[i].pieces);
        if (world_make(&w, label, &request, true)) {
            struct phase_seconds_per_unit t = phase_seconds_per_unit(&w);
            double unit = t.forward / (double)rows[i].pieces;
            double late = (double)(rows[i].pp - 1) * unit / 2;
            double work = (double)rows[i].batches * 3 * t.forward;
            CHECK_CLOSE(label, w.sim.step_s, work + late, 1e-9);
            CHECK_CLOSE(label, w.stages.pipeline_imbalance_s / w.sim.step_s + 1, 1, 1e-9);
        }
        world_release(&w);
    }
}

/* Two stages, forward only, units of t and messages of m seconds. If the host continues at once, a message is sent
 * while the next unit runs, and the step takes t + m + N t, or t + N m + t if messages take longer than units. If the
 * host waits for the message, the next unit starts when the message has arrived: N (t + m) + t. */
static void a_host_that_awaits_messages_exposes_them(void)
{
    static const double parts[] = {0, 0.25, 1.5}; /* m / t */
    for (size_t i = 0; i < 2 * ARRAY_LEN(parts); i++) {
        char label[96];
        bool awaits = i % 2 == 1;
        double part = parts[i / 2], n = 5;
        struct world w;
        struct profile profile;
        struct request request = request_of_deep_model(CHOICE_PIPELINE_GPIPE, 2, (int64_t)n);
        request.scope = SCOPE_ALL_LAYERS_FORWARD;
        snprintf(label, sizeof label, "%s, messages of %g units", awaits ? "awaits" : "goes on",
                 part);
        double unit = 0;
        if (world_make(&w, label, &request, false)) /* messages take no time */
            unit = w.sim.step_s / (n + 1);
        profile = *w.choices.profile;
        profile.pipeline_messages_sync = awaits;
        struct choices choices = w.choices;
        choices.profile = &profile;
        struct sim_options options = {0};
        struct sim_result sim = {0};
        struct ir ir = {0};
        w.cluster.fabric.latency_s = part * unit;
        bool ok = step_build(&ir, &choices, &w.diag) == STATUS_OK &&
                  verify(&ir, NULL, label, NULL, &w.diag) == STATUS_OK;
        double *work_s = work_s_by_shape(&w, &ir, false);
        struct sim_costs costs = {.work_s = work_s};
        ok = ok && sim_run(&ir, &w.cluster, &costs, &options, label, &sim, &w.diag) == STATUS_OK;
        if (CHECK(label, ok)) {
            /* whether or not the host waits, units wait for a message that is longer than they
             * are */
            double going = part > 1 ? 1 + n * part + 1 : 1 + part + n;
            CHECK_CLOSE(label, sim.step_s / unit, awaits ? n * (1 + part) + 1 : going, 1e-9);
        }
        free(work_s);
        sim_result_release(&sim);
        ir_release(&ir);
        world_release(&w);
    }
}

/* LoongTrain, figure 4: batches of 4M tokens on dp 4, sp 64, pp 4 leave 8, 4, 2 and 1 micro-batches
 * of 128K to 1M tokens, and a bubble of 3/8, 3/4, 3/2 and 3 of the useful time. */
static void few_micro_batches_leave_the_bubble_of_loongtrain(void)
{
    struct transformer layers = deep;
    layers.layers = 4;
    layers.heads = layers.kv_heads = 32;
    layers.head_dim = 8;
    for (int64_t micro = 8; micro >= 1; micro /= 2) {
        char label[96];
        struct world w;
        struct request request = request_of_deep_model(CHOICE_PIPELINE_1F1B, 4, 4 * micro);
        request.model = &layers;
        request.strategy = "2d";
        request.ranks = 1024;
        request.dp = 4;
        request.hp = 32;
        request.cp = 2;
        request.seq = ((int64_t)1 << 20) / micro;
        snprintf(label, sizeof label, "%d micro-batches of %d tokens", (int)micro,
                 (int)request.seq);
        if (world_make(&w, label, &request, false)) {
            CHECK_CLOSE(label, w.stages.bubble_to_busy, 3.0 / (double)micro, 1e-9);
            CHECK_CLOSE(label, w.stages.bubble_to_step, 3.0 / (double)(micro + 3), 1e-9);
        }
        world_release(&w);
    }
}

/* SPPO, section 6, forward only, if each of k stages that share a subsequence takes 1 / k of the time of a whole
 * one: 5 units of time become 4 (P 2, N 4), 11 become 8 1/3 (P 4, N 8), 39 become 32.48 (P 8, N 32). If only the
 * first is shared, the second leaves the first stage at 1 / P + 1 and passes P - 2 others, and the last stage then
 * has N - 1 subsequences to do. */
static void shared_subsequences_fill_the_pipeline(void)
{
    static const struct {
        int64_t pp, n;
        double units[3]; /* with nothing shared, all shared, only the first shared */
    } rows[] = {{2, 4, {5, 4, 4.5}},
                {4, 8, {11, 8 + 1.0 / 3, 10.25}},
                {8, 32, {39, 32.48095238095238, 38.125}}};
    static const struct shared_units shared[] = {
        {0, 0}, {SHARED_UNITS_UP_TO_IDLE_STAGES, SHARED_UNITS_UP_TO_IDLE_STAGES}, {1, 0}};
    struct transformer layers = deep;
    layers.layers = 8;
    layers.max_positions = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t k = 0; k < ARRAY_LEN(shared); k++) {
            char label[96];
            struct world w;
            struct request request = request_of_deep_model(CHOICE_PIPELINE_MSP, rows[i].pp, 1);
            request.model = &layers;
            request.scope = SCOPE_ALL_LAYERS_FORWARD;
            request.subsequences = rows[i].n;
            request.seq = 840 * rows[i].n;
            request.shared_units = &shared[k];
            snprintf(label, sizeof label, "pp %d, %d subsequences, %u and %u shared",
                     (int)rows[i].pp, (int)rows[i].n, shared[k].first, shared[k].last);
            if (world_make(&w, label, &request, true)) {
                double unit = w.stages.mean_busy_s / (double)rows[i].n;
                CHECK_CLOSE(label, w.sim.step_s / unit, rows[i].units[k], 1e-9);
            }
            world_release(&w);
        }
}

static const struct check_case cases[] = {
    {"equal units leave the bubble of the formulae", equal_units_leave_the_bubble_of_the_formulae},
    {"weights put off fill the drain", deferred_weight_grads_fill_the_drain},
    {"zb-v pauses nowhere", zb_v_has_no_bubble},
    {"subsequences leave the bubble of as many units",
     subsequences_leave_the_bubble_of_as_many_units},
    {"zb-v over subsequences pauses nowhere", zb_v_over_subsequences_has_no_bubble},
    {"a host that awaits messages exposes them", a_host_that_awaits_messages_exposes_them},
    {"shared subsequences fill the pipeline", shared_subsequences_fill_the_pipeline},
    {"folded pipelines equal unfolded", folded_pipelines_equal_unfolded},
    {"few micro-batches leave the bubble of LoongTrain",
     few_micro_batches_leave_the_bubble_of_loongtrain},
};
CHECK_MAIN("stages", cases)
