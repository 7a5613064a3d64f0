/* bench/bench_sweep.c: points of a sweep per second, over the Ulysses grid.
 *
 * A 7B model on 64 A100s: lengths, ZeRO stages, checkpoints, head ranks: 240 points, as many worker
 * processes as cores; best of three. The target is 300 points/s on two cores, 6.67 ms of processor a
 * point. */
#include "cli/setup/setup.h"
#include "cli/sweep/point.h"
#include "cli/sweep/pool.h"
#include "cli/sweep/sweep.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the workers that have ended, and of their simulations: what a point costs however busy the
 * machine is. */
static double processor_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static const struct option_set *const sets[] = {&setup_model_options, &setup_cluster_options,
                                                &setup_choice_options, &sweep_point_options, NULL};

static enum status run(double *wall_s, size_t *points, struct diag *diag)
{
    static char *words[] = {"--model=internlm-7b-mha", "--cluster=loongtrain-a100", "--gpus=64",
                            "--strategy=ulysses"};
    static const char *const vary[] = {"seq=64K..1M:x2", "zero=0..3", "hp=4,8,16,32",
                                       "checkpoint=none,full,offload"};
    struct options options = {0};
    struct sweep_grid grid = {0};
    struct sweep_journal journal = {0};
    struct sweep_options sweep = {0};
    struct launcher alone = {.size = 1};
    enum status status = options_parse(&options, sets, ARRAY_LEN(words), words, diag);
    if (status == STATUS_OK)
        status = sweep_grid_make(&grid, sets, &options, vary, ARRAY_LEN(vary), diag);
    if (status == STATUS_OK)
        status = sweep_journal_open(&journal, &grid, NULL, 0, 0, diag);
    double began_s = now_s();
    if (status == STATUS_OK)
        status = sweep_run(&grid, &sweep, &journal, &alone, diag);
    *wall_s = now_s() - began_s;
    *points = grid.points;
    sweep_journal_release(&journal);
    sweep_grid_release(&grid);
    options_release(&options);
    return status;
}

int main(void)
{
    struct diag diag = {0};
    double best_s = 0;
    size_t points = 0;
    for (int i = 0; i < 3; i++) {
        double wall_s;
        if (run(&wall_s, &points, &diag) != STATUS_OK) {
            fputs(diag.text, stderr);
            return 2;
        }
        best_s = best_s == 0 || wall_s < best_s ? wall_s : best_s;
    }
    printf("%zu points in %.2f s on %zu cores: %.0f points/s; %.2f ms of processor a point\n",
           points, best_s, pool_cores(), (double)points / best_s,
           1e3 * processor_s() / 3 / (double)points);
    return 0;
}
