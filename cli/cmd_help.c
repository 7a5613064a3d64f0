/* longhaul help: prints the commands and their options in several forms. All come from the tables of commands and
 * options. */
#include "base/arena.h"
#include "cli/command.h"
#include "cli/common/output.h"
#include "cli/completion.h"
#include "cli/manual.h"

/* Refuses forms of help that exclude each other, and a command's name beside a form that has all commands. */
static enum status check_exclusive_help_formats(const struct options *options, struct diag *diag)
{
    static const char *const whole[] = {"man", "completion"};
    enum status status = options_refuse_both(options, "man", "completion", diag);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(whole); i++) {
        status = options_refuse_both(options, whole[i], "json", diag);
        if (status == STATUS_OK && is_option_given(options, whole[i]) &&
            options->argument_count > 0)
            status = diag_error(
                diag, (struct loc){.name = options_name_with_dashes(whole[i]).text},
                STATUS_BAD_INPUT, "is of all commands together; leave out '%s', or %s",
                options->positional_arguments[0], options_name_with_dashes(whole[i]).text);
    }
    return status;
}

enum status cmd_help(const struct options *options, struct diag *diag)
{
    struct text out = {0};
    const struct command *command = NULL;
    enum status status = STATUS_OK;
    if (options->argument_count > 0)
        status = command_find(&command, options->positional_arguments[0], diag);
    if (status == STATUS_OK)
        status = check_exclusive_help_formats(options, diag);
    if (status != STATUS_OK)
        return status;
    if (is_option_given(options, "man"))
        manual_print(&out);
    else if (is_option_given(options, "completion") &&
             options_index_of_choice(options, "completion") == 0)
        completion_print_bash(&out);
    else if (is_option_given(options, "completion"))
        completion_print_zsh(&out);
    else if (is_option_given(options, "json"))
        help_print_json(&out, command);
    else if (command == NULL)
        command_print_overview(&out);
    else
        command_print_help(&out, command);
    status = command_print(&out, diag);
    text_release(&out);
    return status;
}
