/* bench/bench_pipeline.c: generation, verification and simulation of a long pipeline: 128 ranks, 80
 * layers, 128 subsequences of 1M tokens, on every rank by itself and folded.
 *
 * Targets: built, and simulated unfolded, in 30 s and 4 GiB; folded in 1 s. */
#include "base/arena.h"
#include "models/cluster.h"
#include "models/cost.h"
#include "schedule/compose.h"
#include "schedule/verify/verify.h"
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const struct transformer model = {.name = "80 layers",
                                         .layers = 80,
                                         .hidden = 8192,
                                         .heads = 64,
                                         .kv_heads = 64,
                                         .head_dim = 128,
                                         .ffn = 22016,
                                         .vocab = 50257,
                                         .activation = ACTIVATION_SWIGLU,
                                         .norm = NORM_RMSNORM,
                                         .positions = POSITIONS_ROPE,
                                         .rope_theta = 1e4,
                                         .norm_eps = 1e-5};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this process and of the simulations that have ended. */
static double processor_s(void)
{
    double sum = 0;
    for (int who = 0; who < 2; who++) {
        struct rusage usage;
        getrusage(who == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage);
        sum += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return sum;
}

struct watch {
    double wall_s, processor_s;
};

static struct watch watch_start(void)
{
    return (struct watch){now_s(), processor_s()};
}

static void watch_print(const char *what, struct watch begin)
{
    printf("%-10s %6.2f s, %6.2f s of a processor", what, now_s() - begin.wall_s,
           processor_s() - begin.processor_s);
}

static double peak_gib(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)usage.ru_maxrss / (1 << 20);
}

static enum status simulate(const struct ir *ir, const struct cluster *cluster,
                            const struct sim_costs *costs, bool exact, struct diag *diag)
{
    struct sim_result result = {0};
    struct sim_options options = {.exact = exact};
    struct watch begin = watch_start();
    enum status status = sim_run(ir, cluster, costs, &options, "pipeline", &result, diag);
    if (status == STATUS_OK) {
        watch_print(exact ? "unfolded" : "folded", begin);
        printf(", %u classes, %.2f M of %.2f M ops, step %.3f s\n", result.class_count,
               1e-6 * (double)result.counts.simulated, 1e-6 * (double)result.counts.op_instances,
               result.step_s);
    }
    sim_result_release(&result);
    return status;
}

static enum status measure(struct arena *arena, struct ir *ir, double **work_s, struct diag *diag)
{
    struct cluster cluster;
    struct device_cost device;
    struct choices choices;
    struct request request = {.model = &model,
                              .strategy = "ulysses",
                              .profile = "ideal",
                              .weights = CHOICE_WEIGHTS_ZERO1,
                              .activations = CHOICE_ACTIVATIONS_KEEP,
                              .optimizer = -1,
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = 128,
                              .pp = 8,
                              .hp = 16,
                              .pipeline = CHOICE_PIPELINE_SEQ1F1B,
                              .subsequences = 128,
                              .seq = 1 << 20,
                              .sm = 80,
                              .gpus_per_node = 8};
    enum status status = cluster_load(&cluster, arena, "loongtrain-a100", diag);
    if (status == STATUS_OK)
        status = cluster_resize(&cluster, arena, 16, 0, diag);
    if (status == STATUS_OK)
        status = cost_load(&device, arena, cluster.device.cost, diag);
    if (status == STATUS_OK)
        status = compose_resolve(&choices, &request, NULL, diag);
    struct watch begin = watch_start();
    if (status == STATUS_OK)
        status = compose_build(ir, &choices, diag);
    if (status != STATUS_OK)
        return status;
    watch_print("generated", begin);
    printf(", %u ops of %u stages\n", ir->op.count, ir->role_count);
    begin = watch_start();
    status = verify(ir, NULL, "pipeline", NULL, diag);
    watch_print("verified", begin);
    putchar('\n');
    *work_s = heap_alloc(ir->shape_count, sizeof **work_s);
    for (uint32_t i = 0; i < ir->shape_count; i++)
        (*work_s)[i] = cost_work_s(&device, choices.attention_impl, &ir->shape[i]);
    struct sim_costs costs = {.work_s = *work_s};
    if (status == STATUS_OK)
        status = simulate(ir, &cluster, &costs, false, diag);
    if (status == STATUS_OK)
        status = simulate(ir, &cluster, &costs, true, diag);
    if (status == STATUS_OK)
        printf("memory     %7.2f GiB here, %.2f GiB in the simulation\n", peak_gib(RUSAGE_SELF),
               peak_gib(RUSAGE_CHILDREN));
    return status;
}

int main(void)
{
    struct arena arena = {0};
    struct ir ir = {0};
    struct diag diag = {0};
    double *work_s = NULL;
    enum status status = measure(&arena, &ir, &work_s, &diag);
    if (status != STATUS_OK)
        fputs(diag.text, stderr);
    free(work_s);
    ir_release(&ir);
    arena_release(&arena);
    diag_release(&diag);
    return status == STATUS_OK ? 0 : 2;
}
