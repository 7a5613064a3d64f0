/* Runs a command: parses its options, applies the launch files that they name, checks the number of
 * arguments, and calls its function. */
#include "cli/command.h"
#include "cli/common/output.h"
#include "cli/setup/from.h"
#include "cli/setup/options.h"

#include <string.h>

/* True for -o and the options that are named like --cluster-out: their files are written. */
static bool is_output_option(const struct option *option)
{
    const size_t size = strlen(option->name);
    return strcmp(option->name, "o") == 0 ||
           (size > 4 && strcmp(option->name + size - 4, "-out") == 0);
}

/* Returns the first option of a command that names a file to be read, for the message about an argument too many.
 * Returns NULL if there is no such option, or if the command takes arguments. */
static const struct option *input_file_option(const struct command *command)
{
    for (size_t s = 0; command->argument_count_max == 0 && command->option_sets[s] != NULL; s++)
        for (size_t i = 0; i < command->option_sets[s]->option_count; i++) {
            const struct option *option = &command->option_sets[s]->option[i];
            if (option->value_name != NULL && strncmp(option->value_name, "FILE", 4) == 0 &&
                !is_output_option(option))
                return option;
        }
    return NULL;
}

static enum status check_argument_count(const struct command *command,
                                        const struct options *options, struct diag *diag)
{
    struct loc at = {.name = command->name};
    const struct option *file = input_file_option(command);
    if (options->argument_count > command->argument_count_max && file != NULL)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "does not know what to do with '%s'; a file to read is given with --%s %s",
            options->positional_arguments[0], file->name, file->value_name);
    if (options->argument_count > command->argument_count_max)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "does not know what to do with '%s'; usage: longhaul %s%s%s [OPTIONS]",
                          options->positional_arguments[command->argument_count_max], command->name,
                          command->arguments[0] == '\0' ? "" : " ", command->arguments);
    if (options->argument_count < command->argument_count_min)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "an argument is missing; usage: longhaul %s %s", command->name,
                          command->arguments);
    return STATUS_OK;
}

/* Applies the launch files of frameworks, if the command is one that reads them. */
static enum status apply_launch_files(const struct command *command, struct options *options,
                                      struct diag *diag)
{
    /* true: the command takes the options of a configuration, so --from names launch files. --from of `plot`, a
     * time, is another option. */
    bool configures = false;
    for (size_t i = 0; command->option_sets[i] != NULL; i++)
        configures = configures || command->option_sets[i] == &setup_model_options;
    if (!configures)
        return STATUS_OK;
    bool search = command->run == cmd_plan && !is_option_given(options, "longest");
    size_t recordings = command->run == cmd_calibrate ? options->argument_count : 0;
    /* the arguments of `calibrate` are files of measurements, among which apply_options_from_launch_files() must not
     * look for launch files */
    options->argument_count -= recordings;
    enum status status =
        apply_options_from_launch_files(options, search, command->refused_options, diag);
    options->argument_count += recordings;
    return status;
}

enum status command_run(const struct command *command, int argc, char **argv, struct diag *diag)
{
    struct options options = {0};
    enum status status = options_parse(&options, command->option_sets, argc, argv, diag);
    if (status == STATUS_OK && is_option_given(&options, "help")) {
        struct text out = {0};
        command_print_help(&out, command);
        status = command_print(&out, diag);
        text_release(&out);
    } else if (status == STATUS_OK) {
        status = options_check_refused(&options, command->refused_options, diag);
        if (status == STATUS_OK)
            status = apply_launch_files(command, &options, diag);
        if (status == STATUS_OK)
            status = check_argument_count(command, &options, diag);
        if (status == STATUS_OK)
            status = command->run != NULL ? command->run(&options, diag) : cmd_help(&options, diag);
    }
    options_release(&options);
    return status;
}
