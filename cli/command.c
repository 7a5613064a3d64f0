#include "cli/command.h"

#include "base/arena.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/measure/run_options.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/from.h"
#include "cli/setup/options.h"
#include "cli/sweep/predictor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option general_rows[] = {
    {.name = "help", .kind = OPTION_FLAG, .help = "print this help and exit"},
};
static const struct option_set general_options = {"general", general_rows, ARRAY_LEN(general_rows)};

static const char *const shell_choices[] = {"bash", "zsh"};
static const struct option help_rows[] = {
    {.name = "man", .kind = OPTION_FLAG, .help = "print the manual page"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print commands and options as JSON"},
    {.name = "completion",
     .kind = OPTION_CHOICE,
     .names = shell_choices,
     .name_count = ARRAY_LEN(shell_choices),
     .help = "print the script with which a shell completes commands and options"},
};
static const struct option_set help_options = {"help", help_rows, ARRAY_LEN(help_rows)};

#define PREDICT_DESCRIPTION                                                                        \
    "Predicts one training step of a model on a cluster, of a schedule file, or of a step that "   \
    "longhaul.record recorded of your own PyTorch program (several FILEs: one of each stage of a " \
    "pipeline): whether it fits, how long it takes, what it waits for and what would be better. "  \
    "Exit code 1 when it does not fit."
#define SCHEDULE_DESCRIPTION                                                                       \
    "Prints the schedule of a configuration, or of a schedule file, in the text form of "          \
    "docs/ir.md: layers, chunks and steps as loops, or with --flat every operation on a line. "    \
    "predict, check and run read both."
#define SWEEP_DESCRIPTION                                                                          \
    "Predicts every combination of the values that options take, on all cores, and writes one "    \
    "row "                                                                                         \
    "of CSV per point in the order of the grid; points that do not fit or contradict themselves "  \
    "are rows with their reason. An interrupted sweep goes on with the same command "              \
    "(docs/sweeping.md). Exit code 1 when no point fits."
#define PLAN_DESCRIPTION                                                                           \
    "Searches for the best configuration on a cluster: the fastest at a length, the fewest GPUs "  \
    "that hold it, or the longest sequence; options that are given stay. --longest looks at one "  \
    "configuration alone (docs/planning.md). Exit code 1 when nothing fits."
#define CHECK_DESCRIPTION                                                                          \
    "Verifies a schedule file, or the schedule of a configuration, against every rule, and "       \
    "reports each fault with a counterexample; or a core plan (docs/core-plans.md), whose "        \
    "balance "                                                                                     \
    "and rows that travel are printed. Exit code 1 when a fault is found."
#define VALIDATE_DESCRIPTION                                                                       \
    "Predicts every row of measurements beside its value: published figures, and training steps "  \
    "with the options of predict that describe them (traces/published/README.md has the columns "  \
    "of both files). Rows that cannot be predicted are counted with the reason."
#define REPRODUCE_DESCRIPTION                                                                      \
    "Makes figures and tables of papers anew, by name: predicts their configurations on all "      \
    "cores, puts published values beside, draws them in the layout of the paper, and says what "   \
    "agrees, what does not and which of the paper's claims hold (docs/reproducing.md)."
#define COMPARE_DESCRIPTION                                                                        \
    "Compares a prediction (the folder of predict -o, or its ops.csv) with a measured trace: the " \
    "same, or a recording of the PyTorch profiler, which is aligned. Prints errors by kind, "      \
    "stream, "                                                                                     \
    "phase and rank, and the ops that carry them; --explain names the causes instead. "            \
    "docs/comparing.md explains the tables."
#define BENCH_DESCRIPTION                                                                          \
    "Times single pieces of work on a backend and writes one row per point, which calibrate "      \
    "reads "                                                                                       \
    "(docs/measuring.md). Nothing else should run meanwhile."
#define CALIBRATE_DESCRIPTION                                                                      \
    "Fits the numbers of a device file to measured points or to recorded steps (of the PyTorch "   \
    "profiler, a file for each rank, or folders of run -o; --model and the other options of a "    \
    "prediction describe what ran), and latency and bandwidth of links to copies, messages and "   \
    "the output of nccl-tests (docs/measuring.md). Prints residuals, "                             \
    "leave-one-out and standard errors. Exit code 1 when a fit is refused: too few points, "       \
    "points that cannot tell numbers apart, or a residual above --limit."
#define RUN_DESCRIPTION                                                                            \
    "Executes training steps of a configuration, or of a schedule file, on this machine and says " \
    "what a step took. --check holds it to the unsharded model by the rule of docs/running.md. "   \
    "Exit code 1 when a check fails or the run goes wrong."
#define PLOT_DESCRIPTION                                                                           \
    "Draws what other commands wrote, with gnuplot: timeline, pipeline, memory and waterfall of "  \
    "a "                                                                                           \
    "folder of predict -o (all but waterfall also of run -o; memory of several on one another); "  \
    "sweep, heatmap and mfu of the rows of sweep; error of the rows of validate -o. "              \
    "docs/plotting.md shows them."
#define REPORT_DESCRIPTION                                                                         \
    "Makes one HTML page that needs nothing else, of a folder of predict -o, rows of sweep or of " \
    "validate -o, or a prediction and a measurement: the answer, figures, tables, assumptions "    \
    "with "                                                                                        \
    "their sources, and the command that made it."
#define WHY_DESCRIPTION                                                                            \
    "Says what filled the memory of a PyTorch process, from a snapshot of its allocator "          \
    "(torch.cuda.memory._dump_snapshot). With the configuration that ran, ranks the options that " \
    "would have fitted by the time that they cost (docs/why.md). Exit code 1 when none is known."
#define LIST_DESCRIPTION                                                                           \
    "Prints what there is: strategies, profiles, models, clusters, devices, kinds, rules, "        \
    "conventions and constants of reserved memory. models, clusters and devices take a NAME: "     \
    "every number of that one, and its source."
#define HELP_DESCRIPTION "Prints all commands, or one with its options and their defaults."

static const struct refused_option refused_by_plan[] = {
    {"loopback",
     "plan gives each rank a GPU of its own; `longhaul predict` takes ranks that share one"},
    {"scope", "plan searches for the step of the whole model"},
    {NULL, NULL},
};

static const struct refused_option refused_by_run[] = {
    {"costs", "a run measures times and uses no costs"},
    {"framework", "a run is measured and has no interval"},
    {"at-most", "a run is measured"},
    {"measured", "a run is measured and has no interval"},
    {NULL, NULL},
};

static const struct refused_option refused_by_schedule[] = {
    {"framework", "a schedule has no times, and so no interval"},
    {"at-most", "a schedule has no times"},
    {"measured", "a schedule has no times, and so no interval"},
    {NULL, NULL},
};

static const struct refused_option refused_by_calibrate[] = {
    {"framework", "a fit has no interval"},
    {"at-most", "a fit is to measured times"},
    {"measured", "a fit has no interval; files of measurements are arguments"},
    {NULL, NULL},
};

static const struct refused_option refused_by_why[] = {
    {"at-most", "the bytes of a snapshot are measured"},
    {NULL, NULL},
};

/* The most files of a command that reads one recording for each stage of a pipeline. */
enum { STAGES_MAX = 256 };

/* A row has the name, the arguments, the least and the largest number of arguments, the function, the summary, the
 * description, the sets of options and the refused options. */
static const struct command commands[] = {
    {"predict",
     "[FILE...]",
     0,
     STAGES_MAX,
     cmd_predict,
     "what a training step would take",
     PREDICT_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &setup_documents_options,
      &predict_options, &general_options},
     NULL},
    {"sweep",
     "",
     0,
     0,
     cmd_sweep,
     "a grid of options, one row a point",
     SWEEP_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &setup_documents_options,
      &sweep_options, &sweep_point_options, &general_options},
     NULL},
    {"plan",
     "",
     0,
     0,
     cmd_plan,
     "the longest sequence, or the best options",
     PLAN_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &setup_documents_options,
      &plan_options, &general_options},
     refused_by_plan},
    {"schedule",
     "[FILE...]",
     0,
     STAGES_MAX,
     cmd_schedule,
     "print the schedule of a configuration",
     SCHEDULE_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &schedule_options,
      &general_options},
     refused_by_schedule},
    {"check",
     "[FILE...]",
     0,
     STAGES_MAX,
     cmd_check,
     "verify a schedule or a core plan",
     CHECK_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &check_options,
      &general_options},
     refused_by_schedule},
    {"validate",
     "",
     0,
     0,
     cmd_validate,
     "predictions beside published figures",
     VALIDATE_DESCRIPTION,
     {&validate_options, &general_options},
     NULL},
    {"reproduce",
     "[NAME...|all]",
     0,
     64,
     cmd_reproduce,
     "figures and tables of papers, by name",
     REPRODUCE_DESCRIPTION,
     {&reproduce_options, &general_options},
     NULL},
    {"compare",
     "PREDICTED MEASURED...",
     2,
     65,
     cmd_compare,
     "a prediction beside a measured trace",
     COMPARE_DESCRIPTION,
     {&compare_options, &general_options},
     NULL},
    {"bench",
     "",
     0,
     0,
     cmd_bench,
     "time single pieces of work",
     BENCH_DESCRIPTION,
     {&bench_options, &general_options},
     NULL},
    {"calibrate",
     "FILE...",
     1,
     64,
     cmd_calibrate,
     "fit a device file to measured points or steps",
     CALIBRATE_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &calibrate_options,
      &general_options},
     refused_by_calibrate},
    {"run",
     "[FILE.ir]",
     0,
     1,
     cmd_run,
     "execute a step and measure it",
     RUN_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &run_options,
      &general_options},
     refused_by_run},
    {"plot",
     "FIGURE FILE...",
     2,
     65,
     cmd_plot,
     "a figure of what other commands wrote",
     PLOT_DESCRIPTION,
     {&plot_options, &general_options},
     NULL},
    {"report",
     "FILE [MEASURED]",
     1,
     2,
     cmd_report,
     "a page of what other commands wrote",
     REPORT_DESCRIPTION,
     {&report_options, &general_options},
     NULL},
    {"why",
     "SNAPSHOT",
     1,
     1,
     cmd_why,
     "what filled memory, and what would have fitted",
     WHY_DESCRIPTION,
     {&setup_model_options, &setup_cluster_options, &setup_choice_options, &why_options,
      &general_options},
     refused_by_why},
    {"list",
     "[WHAT [NAME]]",
     0,
     2,
     cmd_list,
     "strategies, models, clusters, ...",
     LIST_DESCRIPTION,
     {&list_options, &general_options},
     NULL},
    {"help",
     "[COMMAND]",
     0,
     1,
     NULL,
     "all commands, or one with its options",
     HELP_DESCRIPTION,
     {&help_options, &general_options},
     NULL},
};

const struct command *command_table(size_t *count)
{
    *count = ARRAY_LEN(commands);
    return commands;
}

bool command_shows_option(const struct command *command, const struct option *option)
{
    return !options_is_refused(command->refused_options, option->name);
}

const char *command_name(size_t i)
{
    return i < ARRAY_LEN(commands) ? commands[i].name : NULL;
}

enum status command_find(const struct command **command, const char *name, struct diag *diag)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        names[i] = commands[i].name;
        if (strcmp(names[i], name) == 0) {
            *command = &commands[i];
            return STATUS_OK;
        }
    }
    const char *nearest = diag_nearest(name, names, ARRAY_LEN(names));
    struct loc at = {.name = "longhaul"};
    for (size_t i = 0; i < help_options.option_count; i++) {
        const struct option *option = &help_options.option[i];
        if (strcmp(option->name, name) == 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "'%s' is no command; `longhaul help --%s%s%s` prints it", name, name,
                              option->name_count > 0 ? " " : "",
                              option->name_count > 0 ? option->names[0] : "");
    }
    if (nearest == NULL)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "unknown command '%s'; `longhaul help` lists them", name);
    return diag_error(diag, at, STATUS_BAD_INPUT, "unknown command '%s'; did you mean '%s'?", name,
                      nearest);
}

void command_print_overview(struct text *out)
{
    text_puts(out, "usage: longhaul COMMAND [OPTIONS]\n\n"
                   "Predicts training steps of language models over very long sequences.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        text_printf(out, "  %-12s%s\n", commands[i].name, commands[i].summary);
    text_puts(out, "\n`longhaul help COMMAND` lists its options and their defaults.\n"
                   "`longhaul help --completion bash` (or zsh) prints completion for the shell.\n"
                   "Exit codes: 0 done, 1 the answer is no, 2 could not do it.\n");
}

void command_print_help(struct text *out, const struct command *command)
{
    text_printf(out, "usage: longhaul %s%s%s [OPTIONS]\n\n", command->name,
                command->arguments[0] == '\0' ? "" : " ", command->arguments);
    screen_wrap(out, command->description, 0, 0, screen_help_width());
    options_print_help(out, command->option_sets, command->refused_options);
}
