/* cli/command.h: the subcommands, one row each.
 *
 * A command is a name, a function, a summary and its option sets; `longhaul help` and
 * docs/longhaul.1 are printed from the rows. A command prints its result with
 * command_print() and reports faults through diag; cli/main.c prints those and picks the exit
 * code.
 *
 * The folder cli/ is the program `longhaul`: its commands read options, call the library, and print. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/rows.h"

#include <stdbool.h>
#include <stddef.h>

struct command {
    const char *name;
    const char *arguments; /* the arguments as help shows them: "[FILE.ir]"; "": it has none */
    size_t argument_count_min, argument_count_max;
    /* NULL for `help`: its function, cmd_help(), reads the table of commands, so the table cannot refer to it */
    enum status (*run)(const struct options *options, struct diag *diag);
    const char *summary;
    const char *description; /* a description in a few sentences */
    const struct option_set *option_sets[OPTION_SETS_MAX + 1]; /* the array ends in NULL */
    const struct refused_option *refused_options;
};

/* Returns false for an option of the command's sets that the command refuses. Its help leaves such options out. */
bool command_shows_option(const struct command *command, const struct option *option);

const struct command *command_table(size_t *count);

/* Finds a command by its name. For an unknown name, the error proposes the most similar one. */
enum status command_find(const struct command **command, const char *name, struct diag *diag);

/* Parses argv, which starts after the command's name, and runs the command. With --help it prints the command's
 * help. */
enum status command_run(const struct command *command, int argc, char **argv, struct diag *diag);

/* Append what `longhaul help` and `longhaul help COMMAND` print. */
void command_print_overview(struct text *out);
void command_print_help(struct text *out, const struct command *command);

/* Appends a command with its options as JSON. If `only` is NULL, appends all commands. */
void help_print_json(struct text *out, const struct command *only);

/* The functions of the commands. */
enum status cmd_plan(const struct options *options, struct diag *diag);
enum status cmd_predict(const struct options *options, struct diag *diag);
enum status cmd_schedule(const struct options *options, struct diag *diag);
enum status cmd_check(const struct options *options, struct diag *diag);
enum status cmd_validate(const struct options *options, struct diag *diag);
enum status cmd_reproduce(const struct options *options, struct diag *diag);
enum status cmd_compare(const struct options *options, struct diag *diag);
enum status cmd_run(const struct options *options, struct diag *diag);
enum status cmd_list(const struct options *options, struct diag *diag);
enum status cmd_bench(const struct options *options, struct diag *diag);
enum status cmd_calibrate(const struct options *options, struct diag *diag);
enum status cmd_sweep(const struct options *options, struct diag *diag);
enum status cmd_plot(const struct options *options, struct diag *diag);
enum status cmd_report(const struct options *options, struct diag *diag);
enum status cmd_why(const struct options *options, struct diag *diag);
enum status cmd_help(const struct options *options, struct diag *diag);

/* Return word number i, from 0, of those that `plot`, `list` and `help` accept as their first argument, for completion;
 * NULL if there are no more. */
const char *plot_figure_kind_name_at(size_t i);
const char *list_table_name(size_t i);
const char *command_name(size_t i);

extern const struct option_set plan_options;
extern const struct option_set bench_options, calibrate_options;
extern const struct option_set predict_options, schedule_options, check_options, validate_options;
extern const struct option_set reproduce_options;
extern const struct option_set compare_options, sweep_options, plot_options, report_options,
    why_options, list_options;

/* The tables of the output of `why`. */
enum { WHY_SITES, WHY_SUGGESTIONS, WHY_TABLE_COUNT };
extern const struct row_table why_tables[WHY_TABLE_COUNT];

/* The tables that `list` prints. LIST_TABLE_SUMMARIES has a name and a summary in each row, and serves several lists;
 * the others have more columns. */
enum {
    LIST_TABLE_SUMMARIES,
    LIST_TABLE_STRATEGIES,
    LIST_TABLE_KINDS,
    LIST_TABLE_CONVENTIONS,
    LIST_TABLE_RESERVED,
    LIST_TABLE_CONSTANTS,
    LIST_TABLE_NUMBERS,
    LIST_TABLE_COUNT
};
extern const struct row_table list_tables[LIST_TABLE_COUNT];

#endif
