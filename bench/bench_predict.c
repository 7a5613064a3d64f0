/* bench/bench_predict.c: processor seconds and peak memory of whole commands, next to their targets.
 *
 *     bench_predict [WORDS]    all commands, or those that contain WORDS
 *
 * A command is run until its median is stable (bench/repeat.h). Processor seconds are those of the program and of its
 * children, user and system; memory is that of the largest process. Wall-clock time means little where other programs
 * run, so it only limits how long a command may take. */
#include "base/arena.h"
#include "bench/command.h"
#include "bench/repeat.h"

#include <stdio.h>
#include <string.h>

enum { LIMIT_S = 60 };

#define DEFAULT_TARGET_S 0.15 /* the target of predictions that have no target of their own */
#define QUICK_8B_COMMAND "predict --quick --model llama3-8b --cluster dgx-h100 "
#define QUICK_PIPELINE_COMMAND                                                                     \
    "predict --quick --model gpt-65b --cluster loongtrain-a100 --gpus 128 --strategy ulysses "     \
    "--hp 16 --pp 8 --pipeline seq1f1b --subsequences 128 --seq 1M --zero 1"
#define QUICK_7B_COMMAND "predict --quick --model gpt-7b --cluster dgx-a100 "

static const struct chain_row {
    const char *command; /* what follows "longhaul" */
    double target_s;
    double target_mib; /* 0: none */
} rows[] = {
    /* clang-format off */
    {QUICK_8B_COMMAND "--nodes 8 --strategy ring --seq 1M",                                      0.4,     0},
    {QUICK_8B_COMMAND "--nodes 64 --strategy ring --seq 4M",                                     0.5,     0},
    {QUICK_8B_COMMAND "--nodes 128 --strategy 2d --seq 1M",                                      0.15,    0},
    {QUICK_8B_COMMAND "--nodes 1 --strategy fpdt --seq 16M --chunk 64K",                         5,       0},
    {QUICK_8B_COMMAND "--nodes 1 --strategy fpdt --seq 1M --chunk 8K",                           0.7,     0},
    {QUICK_8B_COMMAND "--nodes 2048 --strategy sppo --tp 8 --pp 4 --seq 1M",                     0.4,   512},
    {QUICK_8B_COMMAND "--nodes 16384 --strategy ulysses --hp 8 --seq 1M",                        0.3,     0},
    {QUICK_8B_COMMAND "--nodes 4 --strategy megatron-sp --tp 8 --pp 4 --seq 8K --batch 1024",    0.2,     0},
    {"plan --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 1M",                             2.5,     0},
    {QUICK_8B_COMMAND "--gpus 8 --strategy fpdt --seq 1M --chunk 64K",                           DEFAULT_TARGET_S, 0},
    {QUICK_8B_COMMAND "--gpus 1024 --strategy fpdt --hp 8 --seq 512K --chunk 64K",               DEFAULT_TARGET_S, 0},
    {QUICK_8B_COMMAND "--gpus 1024 --strategy megatron-sp --tp 8 --seq 64K",                     DEFAULT_TARGET_S, 0},
    {QUICK_8B_COMMAND "--gpus 1024 --strategy megatron-sp --tp 8 --pp 8 --seq 64K --batch 512",  DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 64 --strategy ulysses --hp 32 --seq 512K",                         DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 8 --strategy ulysses --seq 64K --batch 32",                        DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 64 --strategy 2d --cp 8 --hp 8 --seq 512K",                        DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 32 --strategy sppo --tp 8 --pp 4 --seq 512K --subsequences 32",    DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 1024 --strategy ulysses --hp 32 --seq 512K",                       DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 1024 --strategy 2d --cp 8 --hp 8 --seq 512K",                      DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 1024 --strategy ring --cp 8 --seq 64K",                            DEFAULT_TARGET_S, 0},
    {QUICK_7B_COMMAND "--gpus 1024 --strategy sppo --tp 8 --pp 4 --seq 512K --subsequences 16",  DEFAULT_TARGET_S, 0},
    {QUICK_PIPELINE_COMMAND,                                                                     1,       0},
    {QUICK_PIPELINE_COMMAND " --exact",                                                          4,     512},
    /* 240 points, of which two cores are to predict 200 a second */
    {"sweep --model internlm-7b-mha --cluster loongtrain-a100 --gpus 64 --strategy ulysses --vary seq=64K..1M:x2 "
     "--vary zero=0..3 --vary hp=4,8,16,32 --vary checkpoint=none,full,offload",                 2.4,     0},
    /* 20 points with even rings, of which two cores are to predict 25 a second */
    {"sweep --model gpt-7b --cluster dgx-a100 --gpus 64 --strategy ring --cp 64 --even-above 63 --vary seq=64K..1M:x2 "
     "--vary zero=0..3",                                                                         1.6,     0},
    /* 9 batches of 64 micro-batches: 256 such batches may take a minute on two cores */
    {QUICK_8B_COMMAND "--nodes 8 --strategy ulysses --hp 8 --seq 1M --batch 512 --documents lognormal:3000,1.7 "
     "--batches 9",                                                                              4.2,     0},
    {QUICK_8B_COMMAND "--nodes 8 --strategy 2d --hp 8 --cp 8 --seq 1M --batch 64 --documents lognormal:3000,1.7 "
     "--batches 9",                                                                              4.2,     0},
    /* clang-format on */
};

/* ---- the table ---- */

static const char *compare_with_target_text(double got, double target)
{
    return target == 0 ? "" : got <= target ? "ok" : "over";
}

static void print_row(const struct chain_row *row, const struct repeat *repeat,
                      const struct command_run *last, double peak_mib)
{
    if (!last->ended_in_time)
        printf("%8s %7.2f %-4s %6s %4s", ">60 wall", row->target_s, "over", "", "");
    else
        printf("%8.3f %7.2f %-4s %5.1f%% %4zu", repeat_median_s(repeat), row->target_s,
               compare_with_target_text(repeat_median_s(repeat), row->target_s),
               100 * repeat_spread(repeat), repeat->round_count);
    printf(" %8.0f", peak_mib);
    if (row->target_mib > 0)
        printf(" %6.0f %-4s", row->target_mib, compare_with_target_text(peak_mib, row->target_mib));
    else
        printf(" %6s %-4s", "-", "");
    printf("  %s%s\n", row->command, last->ended_in_time ? "" : "   (does not end in 60 s)");
}

/* Measures a row and prints the result. Returns 0, or 2 after a message if the command cannot be run or fails. */
static int measure_and_print(const struct chain_row *row)
{
    struct repeat repeat = {0};
    struct command_run last = {.ended_in_time = true};
    double peak_mib = 0;
    while (last.ended_in_time && repeat_needs_more(&repeat)) {
        if (!command_run(LONGHAUL_PROGRAM, row->command, LIMIT_S, &last)) {
            perror("bench_predict: error: cannot start a process");
            return 2;
        }
        /* exit code 1: the plan does not fit */
        if (last.ended_in_time && last.exit_code != 0 && last.exit_code != 1) {
            fprintf(stderr, "bench_predict: error: exit code %d of longhaul %s\n", last.exit_code,
                    row->command);
            return 2;
        }
        peak_mib = last.peak_mib > peak_mib ? last.peak_mib : peak_mib;
        if (last.ended_in_time)
            repeat_add(&repeat, last.cpu_s);
    }
    print_row(row, &repeat, &last, peak_mib);
    return 0;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    size_t matching = 0;
    int code = 0;
    command_catch_signals();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strstr(rows[i].command, only) == NULL)
            continue;
        if (matching++ == 0)
            printf("%8s %7s %-4s %6s %4s %8s %6s %-4s  longhaul ...\n", "cpu s", "target", "", "+-",
                   "runs", "MiB", "target", "");
        if (measure_and_print(&rows[i]) != 0)
            code = 2;
    }
    if (matching == 0) {
        fprintf(stderr, "bench_predict: error: no command contains '%s'\n", only);
        code = 2;
    }
    return code;
}
