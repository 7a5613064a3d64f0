/* How long predictions take, program start excluded: single ones, folded, part by part, and unfolded;
 * and points per second of a grid such as `sweep` takes. Wall times are the best of a few rounds, each
 * part's by itself; processor seconds, children included, stand beside them for busy machines.
 *
 *     bench_predict [NAME]    all rows, or those whose names contain NAME; `grid`: the grid alone */
#include "cli/predict/prediction.h"
#include "cli/sweep/pool.h"

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

enum { ROUNDS = 7, UNFOLDED_ROUNDS = 2, MANY_GPUS = 1024 /* unfolded only below that */ };

/* What a prediction spends its time on, in the order of the columns. */
enum part {
    PART_MADE,     /* the schedule: emitted, finished, planned */
    PART_RESERVED, /* its allocators replayed, its memory judged */
    PART_BOUND,    /* bound to the cluster and folded by ranks */
    PART_FORK,     /* the child's start and end */
    PART_RUN,      /* the child's events */
    PART_DEPTH,    /* depth cut and expanded */
    PART_MEMORY,   /* live bytes over time */
    PART_REST,     /* costs, waterfall, what is extrapolated */
    PART_COUNT
};

static const char *const part_names[PART_COUNT] = {"made", "reserved", "bound",  "fork",
                                                   "run",  "depth",    "memory", "rest"};

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

struct figures {
    double part_s[PART_COUNT], folded_s, folded_cpu_s, unfolded_s; /* the least of all rounds */
    double folded_step_s, unfolded_step_s;                         /* what was predicted */
    uint64_t simulated, instances;
    uint32_t ops;
};

static void note_parts(struct figures *f, const struct sim_counts *counts, double memory_s,
                       double reserved_s, double all_s)
{
    const double part_s[PART_COUNT] = {
        [PART_MADE] = memory_s - reserved_s,
        [PART_RESERVED] = reserved_s,
        [PART_BOUND] = counts->fold_s,
        [PART_FORK] = counts->fork_s,
        [PART_RUN] = counts->run_wall_s,
        [PART_DEPTH] = counts->depth_s,
        [PART_MEMORY] = counts->memory_s,
        [PART_REST] = all_s - memory_s - counts->fold_s - counts->fork_s - counts->run_wall_s -
                      counts->depth_s - counts->memory_s,
    };
    for (int part = 0; part < PART_COUNT; part++)
        keep_less(&f->part_s[part], part_s[part]);
}

/* Of reserved memory alone, made once more. */
static double time_reserved(const struct prediction *p)
{
    struct reserved reserved;
    struct reserved_held held = {.buckets = (uint64_t)compose_bucket_bytes(&p->choices)};
    compose_tables(&p->choices, held.table);
    double began_s = wall_s();
    reserved_make(&reserved, &p->ir, &p->setup->cluster, p->setup->request.sm, held);
    return wall_s() - began_s;
}

static enum status run_folded(struct figures *f, const struct setup *setup, struct diag *diag)
{
    struct prediction p = {0};
    double began_s = wall_s(), cpu_s = processor_s();
    enum status status = prediction_memory(&p, setup, &setup->request, NULL, diag);
    double memory_s = wall_s() - began_s;
    if (status == STATUS_OK)
        status = prediction_time(&p, false, diag);
    f->ops = p.ir.op.count;
    f->simulated = p.sim.counts.simulated;
    f->instances = p.sim.counts.op_instances;
    f->folded_step_s = p.sim.step_s;
    double all_s = wall_s() - began_s;
    keep_less(&f->folded_s, all_s);
    keep_less(&f->folded_cpu_s, processor_s() - cpu_s);
    if (status == STATUS_OK)
        note_parts(f, &p.sim.counts, memory_s, time_reserved(&p), all_s);
    prediction_release(&p);
    return status;
}

static enum status run_unfolded(struct figures *f, const struct setup *setup, struct diag *diag)
{
    struct prediction p = {0};
    double began_s = wall_s();
    enum status status = prediction_make(&p, setup, &setup->request, true, diag);
    keep_less(&f->unfolded_s, wall_s() - began_s);
    f->unfolded_step_s = p.sim.step_s;
    prediction_release(&p);
    return status;
}

static void print_heads(void)
{
    printf("%-28s %8s %9s %11s", "", "ops", "simulated", "instances");
    for (int part = 0; part < PART_COUNT; part++)
        printf(" %8s", part_names[part]);
    printf(" %8s %8s %9s %9s\n%-28s %8s %9s %11s", "folded", "core", "unfolded", "step off", "", "",
           "", "");
    for (int column = 0; column < PART_COUNT + 2; column++)
        printf(" %8s", "ms");
    printf(" %9s\n", "ms");
}

static void print_row(size_t row, const struct figures *f)
{
    printf("%-28s %8u %9llu %11llu", rows[row].name, f->ops, (unsigned long long)f->simulated,
           (unsigned long long)f->instances);
    for (int part = 0; part < PART_COUNT; part++)
        printf(" %8.1f", f->part_s[part] * 1e3);
    printf(" %8.1f %8.1f", f->folded_s * 1e3, f->folded_cpu_s * 1e3);
    if (f->unfolded_s > 0)
        printf(" %9.1f %9.1e\n", f->unfolded_s * 1e3, f->folded_step_s / f->unfolded_step_s - 1);
    else
        printf(" %9s %9s\n", "-", "-");
    fflush(stdout); /* children would print it again */
}

static enum status run_row(size_t row, struct diag *diag)
{
    struct setup setup = {0};
    struct figures f = {0};
    enum status status = load(&setup, row, diag);
    for (int round = 0; status == STATUS_OK && round < ROUNDS; round++)
        status = run_folded(&f, &setup, diag);
    for (int round = 0;
         status == STATUS_OK && rows[row].gpus < MANY_GPUS && round < UNFOLDED_ROUNDS; round++)
        status = run_unfolded(&f, &setup, diag);
    if (status == STATUS_OK)
        print_row(row, &f);
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
    uint64_t given = 0, answered = 0, refused = 0;
    while (status == STATUS_OK && answered < POINTS) {
        struct pool_event event;
        if (given < POINTS && pool.busy < pool.count) {
            status = pool_give(&pool, given++, diag);
            continue;
        }
        status = pool_wait(&pool, -1, &event, diag);
        answered += event.kind != POOL_NOTHING;
        refused +=
            event.kind == POOL_DEATH || (event.kind == POOL_ANSWER && event.answer->size == 0);
    }
    double took_s = wall_s() - began_s;
    size_t workers = pool.count;
    pool_release(&pool);
    cpu_s = processor_s() - cpu_s;
    if (status == STATUS_OK)
        printf(
            "\ngrid of %d points (ulysses, %d lengths x 3 weights x %d activations; %llu refused): "
            "%.0f points/s on %zu cores, %.2f ms of a core each (%.0f points/s on two cores)\n",
            POINTS, LENGTHS, CHOICE_ACTIVATIONS_COUNT, (unsigned long long)refused, POINTS / took_s,
            workers, 1e3 * cpu_s / POINTS, 2 * POINTS / cpu_s);
    setup_release(&setup);
    return status;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    bool grid = only[0] == '\0' || strcmp(only, "grid") == 0;
    size_t matching = 0;
    struct diag diag = {0};
    enum status status = STATUS_OK;
    for (size_t row = 0; row < ARRAY_LEN(rows); row++)
        matching += strstr(rows[row].name, only) != NULL;
    if (matching == 0 && !grid)
        status = diag_error(
            &diag, (struct loc){.name = "bench_predict"}, STATUS_BAD_INPUT,
            "no row's name contains '%s'; without a name all run, `grid` runs the grid", only);
    if (matching > 0)
        print_heads();
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
