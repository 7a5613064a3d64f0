/* bench/bench_plan.c: what searches cost, as ratios to one prediction, next to their targets.
 *
 *     bench_plan [WORDS]    all questions, or those whose command contains WORDS
 *
 * Processor seconds are divided by those of one prediction (REFERENCE_COMMAND; the median of some runs just before), so
 * that the ratios hold on any machine. Each question is asked twice: until nothing can be faster by more than 1 %, and
 * until something fits at all (a gap that any answer closes), which is when the first answer is known. Both include the
 * report. */
#include "base/arena.h"
#include "bench/command.h"
#include "bench/repeat.h"

#include <stdio.h>
#include <string.h>

#define REFERENCE_COMMAND                                                                          \
    "predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 512K --strategy fpdt"
#define LLAMA3_405B                                                                                \
    "layers=126,hidden=16384,heads=128,kv_heads=8,head_dim=128,ffn=53248,vocab=128256,"            \
    "rope_theta=500000"

/* Targets: the ratios (see above) until the best is known within 1 %, and until the first answer; and the memory of a
 * process in MiB. LIMIT_S: the longest that a command may take. */
enum { PROVED_RATIO = 60, FIRST_RATIO = 5, PEAK_MIB = 1024, LIMIT_S = 600 };

static const char *const questions[] = {
    "plan --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 1M",
    "plan --model llama3-8b --cluster dgx-h100 --nodes 4 --seq 256K --batch 4",
    "plan --model llama3-8b --cluster dgx-h100 --nodes 4 --seq 1M --batch 4",
    "plan --model llama3-70b --cluster dgx-h100 --nodes 16 --seq 128K --batch 16",
    "plan --model " LLAMA3_405B " --cluster dgx-h100 --nodes 64 --seq 128K --batch 64",
    "plan --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K --batch 8 --documents "
    "lognormal:3000,1.7",
    "plan --model gpt-7b --cluster sppo-a100 --nodes 8 --strategy sppo --profile published --seq "
    "512K --batch 2",
    "plan --model llama3-8b --cluster dgx-h100 --nodes 64 --seq 4M",
    "plan --model gpt-30b --cluster dgx-a100 --nodes 8 --seq 64K --batch 16",
    "plan --goal gpus --model llama3-70b --cluster dgx-h100 --nodes 16 --seq 128K",
};

/* Runs a command with the further words `more`. Returns false, with a message, if no process can be started, or if the
 * command ends in time without an answer. Returns true if it takes longer than LIMIT_S; run->ended_in_time is then
 * false. */
static bool run_plan_command(const char *command, const char *more, struct command_run *run)
{
    char line[512];
    snprintf(line, sizeof line, "%s%s", command, more);
    if (!command_run(LONGHAUL_PROGRAM, line, LIMIT_S, run)) {
        perror("bench_plan: error: cannot start a process");
        return false;
    }
    if (run->ended_in_time && run->exit_code != 0)
        fprintf(stderr, "bench_plan: error: exit code %d of longhaul %s\n", run->exit_code, line);
    return !run->ended_in_time || run->exit_code == 0;
}

static bool measure_reference_s(double *reference_s)
{
    struct repeat repeat = {0};
    struct command_run run = {.ended_in_time = true};
    while (repeat_needs_more(&repeat)) {
        if (!run_plan_command(REFERENCE_COMMAND, "", &run) || !run.ended_in_time)
            return false;
        repeat_add(&repeat, run.cpu_s);
    }
    *reference_s = repeat_median_s(&repeat);
    return true;
}

static void print_ratio(const struct command_run *run, double reference_s, double target)
{
    if (run->ended_in_time)
        printf("%8.1f %6.0f %-4s", run->cpu_s / reference_s, target,
               run->cpu_s <= target * reference_s ? "ok" : "over");
    else
        printf("%8s %6.0f %-4s", ">600 s", target, "over");
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    double reference_s = 0;
    int code = 0;
    command_catch_signals();
    if (!measure_reference_s(&reference_s))
        return 2;
    printf("the reference takes %.3f processor seconds: longhaul %s\n", reference_s,
           REFERENCE_COMMAND);
    printf("%8s %6s %-4s %8s %6s %-4s %6s %6s %-4s  longhaul ...\n", "proved", "target", "",
           "first", "target", "", "MiB", "target", "");
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct command_run proved, first;
        if (strstr(questions[i], only) == NULL)
            continue;
        if (!run_plan_command(questions[i], " --gap 1", &proved) ||
            !run_plan_command(questions[i], " --gap 1e9", &first)) {
            code = 2;
            continue;
        }
        print_ratio(&proved, reference_s, PROVED_RATIO);
        printf(" ");
        print_ratio(&first, reference_s, FIRST_RATIO);
        printf(" %6.0f %6d %-4s  %s\n", proved.peak_mib, PEAK_MIB,
               proved.peak_mib <= PEAK_MIB ? "ok" : "over", questions[i]);
        fflush(stdout);
    }
    return code;
}
