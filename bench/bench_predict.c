/* How long predictions take, program start excluded: single ones, folded and unfolded, part by part;
 * and points per second of a grid such as `sweep` takes. Wall times are the best of a few rounds;
 * processor seconds, children included, stand beside them for busy machines. */
#include "cli/pool.h"
#include "cli/prediction.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const struct {
    const char *name, *model, *cluster, *strategy;
    int64_t gpus, dp, cp, hp, seq, batch, chunk;
    int64_t tp, pp, subsequences; /* 0: left open */
} rows[] = {
    /* clang-format off */
    {"ulysses sp 32 x dp 2, 512K",    "gpt-7b",    "dgx-a100", "ulysses",        64,   2,  0, 32,  524288,   2,     0, 0, 0,  0},
    {"ulysses, 32 micro-batches",     "gpt-7b",    "dgx-a100", "ulysses",         8,   1,  0,  8,   65536,  32,     0, 0, 0,  0},
    {"fpdt, 16 chunks of 64K",        "llama3-8b", "dgx-h100", "fpdt",            8,   1,  0,  8, 1048576,   1, 65536, 0, 0,  0},
    {"2d cp 8 x hp 8, 512K",          "gpt-7b",    "dgx-a100", "2d",             64,   1,  8,  8,  524288,   1,     0, 0, 0,  0},
    {"ring cp 64, 512K",              "gpt-7b",    "dgx-a100", "ring",           64,   1, 64,  0,  524288,   1,     0, 0, 0,  0},
    {"sppo tp 8 x pp 4, 32 pieces",   "gpt-7b",    "dgx-a100", "sppo",           32,   1,  0,  0,  524288,   1,     0, 8, 4, 32},
    {"ulysses on 1024 GPUs",          "gpt-7b",    "dgx-a100", "ulysses",      1024,  32,  0, 32,  524288,  32,     0, 0, 0,  0},
    {"2d on 1024 GPUs",               "gpt-7b",    "dgx-a100", "2d",           1024,  16,  8,  8,  524288,  16,     0, 0, 0,  0},
    {"ring on 1024 GPUs",             "gpt-7b",    "dgx-a100", "ring",         1024, 128,  8,  0,   65536, 128,     0, 0, 0,  0},
    {"fpdt on 1024 GPUs, 8 chunks",   "llama3-8b", "dgx-h100", "fpdt",         1024, 128,  0,  8,  524288, 128, 65536, 0, 0,  0},
    {"megatron-sp on 1024 GPUs",      "llama3-8b", "dgx-h100", "megatron-sp",  1024, 128,  0,  0,   65536, 128,     0, 8, 0,  0},
    {"megatron-sp pp 8, 1024 GPUs",   "llama3-8b", "dgx-h100", "megatron-sp",  1024,  16,  0,  0,   65536, 512,     0, 8, 8,  0},
    {"sppo on 1024 GPUs, 16 pieces",  "gpt-7b",    "dgx-a100", "sppo",         1024,  32,  0,  0,  524288,  32,     0, 8, 4, 16},
    /* clang-format on */
};

enum { ROUNDS = 5, MANY_GPUS = 1024 /* unfolded only below that */ };

static double wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Of this process and of children that have ended. */
static double processor_s(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds(own.ru_utime) + seconds(own.ru_stime) + seconds(children.ru_utime) +
           seconds(children.ru_stime);
}

static void keep_less(double *best, double value)
{
    if (*best == 0 || value < *best)
        *best = value;
}

static enum status load(struct setup *setup, size_t row, struct diag *diag)
{
    enum status status = setup_load_model(setup, rows[row].model, NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(setup, rows[row].cluster, 0, rows[row].gpus, diag);
    setup_open_request(setup);
    setup->request.strategy = rows[row].strategy;
    setup->request.dp = rows[row].dp;
    setup->request.cp = rows[row].cp;
    setup->request.hp = rows[row].hp;
    setup->request.seq = rows[row].seq;
    setup->request.global_batch = rows[row].batch;
    setup->request.chunk = rows[row].chunk;
    setup->request.tp = rows[row].tp;
    setup->request.pp = rows[row].pp;
    setup->request.subsequences = rows[row].subsequences;
    return status;
}

static enum status run_row(size_t row, struct diag *diag)
{
    struct setup setup = {0};
    double build_s = 0, folded_s = 0, folded_cpu_s = 0, exact_s = 0, folded_step_s = 0, step_s = 0;
    uint64_t simulated = 0, instances = 0;
    uint32_t ops = 0;
    bool exact = rows[row].gpus < MANY_GPUS;
    enum status status = load(&setup, row, diag);
    for (int round = 0; status == STATUS_OK && round < ROUNDS; round++) {
        struct prediction p = {0};
        double began_s = wall_s(), cpu_s = processor_s();
        status = prediction_memory(&p, &setup, &setup.request, NULL, diag);
        keep_less(&build_s, wall_s() - began_s);
        if (status == STATUS_OK)
            status = prediction_time(&p, false, diag);
        keep_less(&folded_s, wall_s() - began_s);
        keep_less(&folded_cpu_s, processor_s() - cpu_s);
        ops = p.ir.op.count;
        simulated = p.sim.counts.simulated;
        instances = p.sim.counts.op_instances;
        folded_step_s = p.sim.step_s;
        prediction_release(&p);
    }
    for (int round = 0; status == STATUS_OK && exact && round < 2; round++) {
        struct prediction p = {0};
        double began_s = wall_s();
        status = prediction_make(&p, &setup, &setup.request, true, diag);
        keep_less(&exact_s, wall_s() - began_s);
        step_s = p.sim.step_s;
        prediction_release(&p);
    }
    if (status == STATUS_OK)
        printf("%-28s %8u %9llu %11llu %8.1f %8.1f %8.1f %9.1f %9.1e\n", rows[row].name, ops,
               (unsigned long long)simulated, (unsigned long long)instances, build_s * 1e3,
               folded_s * 1e3, folded_cpu_s * 1e3, exact_s * 1e3,
               exact ? folded_step_s / step_s - 1 : 0.0);
    fflush(stdout); /* children would print it again */
    setup_release(&setup);
    return status;
}

/* ---- the grid: lengths x weights x activations of the first row ---- */

enum { LENGTHS = 5, POINTS = LENGTHS * 3 * CHOICE_ACTIVATIONS_COUNT };

static void predict_point(void *context, uint64_t job, struct text *answer)
{
    struct setup *setup = context;
    struct request request = setup->request;
    struct prediction p = {0};
    request.seq = (int64_t)32768 << job % LENGTHS;
    request.weights = CHOICE_WEIGHTS_ZERO1 + (int)(job / LENGTHS % 3);
    request.activations = (int)(job / LENGTHS / 3);
    if (prediction_make(&p, setup, &request, false, NULL) == STATUS_OK)
        text_printf(answer, "%.9g", p.sim.step_s);
    prediction_release(&p);
}

static enum status run_grid(struct diag *diag)
{
    struct setup setup = {0};
    struct pool pool = {0};
    enum status status = load(&setup, 0, diag);
    double began_s = wall_s(), cpu_s = processor_s();
    if (status == STATUS_OK)
        status = pool_start(&pool, pool_cores(), predict_point, &setup, diag);
    uint64_t given = 0, answered = 0;
    while (status == STATUS_OK && answered < POINTS) {
        struct pool_event event;
        if (given < POINTS && pool.busy < pool.count) {
            status = pool_give(&pool, given++, diag);
            continue;
        }
        status = pool_wait(&pool, -1, &event, diag);
        answered += event.kind != POOL_NOTHING;
    }
    double took_s = wall_s() - began_s;
    size_t workers = pool.count;
    pool_release(&pool);
    cpu_s = processor_s() - cpu_s;
    if (status == STATUS_OK)
        printf("\ngrid of %d points (ulysses, %d lengths x 3 weights x 4 activations): %.0f "
               "points/s on "
               "%zu cores, %.2f ms of a core each (%.0f points/s on two cores)\n",
               POINTS, LENGTHS, POINTS / took_s, workers, 1e3 * cpu_s / POINTS, 2 * POINTS / cpu_s);
    setup_release(&setup);
    return status;
}

/* Of all rows, or of those whose names contain the argument; `grid`: of the grid alone. */
int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    bool grid = only[0] == '\0' || strcmp(only, "grid") == 0;
    struct diag diag = {0};
    enum status status = STATUS_OK;
    printf("%-28s %8s %9s %11s %8s %8s %8s %9s %9s\n", "", "ops", "simulated", "instances", "built",
           "folded", "core", "unfolded", "step off");
    printf("%-28s %8s %9s %11s %8s %8s %8s %9s %9s\n", "", "", "", "", "ms", "ms", "ms", "ms", "");
    for (size_t row = 0; status == STATUS_OK && row < ARRAY_LEN(rows); row++)
        if (strstr(rows[row].name, only) != NULL)
            status = run_row(row, &diag);
    if (status == STATUS_OK && grid)
        status = run_grid(&diag);
    if (status != STATUS_OK)
        fputs(diag.text, stderr);
    diag_release(&diag);
    return status == STATUS_OK ? 0 : 2;
}
