/* cli/main.c: finds the command, runs it, prints its messages and chooses the exit code. 0: done; 1: the answer is no;
 * 2: the command failed. */
#include "base/arena.h"
#include "cli/command.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/screen.h"

#include <gsl/gsl_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Handles errors of the library GSL as its default handler does, but reports a failed allocation as longhaul does. */
static void print_gsl_error_and_abort(const char *reason, const char *file, int line, int error)
{
    if (error == GSL_ENOMEM)
        heap_out_of_memory();
    fprintf(stderr, "%s:%d: %s\n", file, line, reason);
    abort();
}

/* Refuses a word after --help or --version. Both are taken only as the last word. */
static enum status check_is_last_word(int argc, char **argv, struct diag *diag)
{
    if (argc <= 2)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = argv[1]}, STATUS_BAD_INPUT,
                      "takes no argument, not '%s'; `longhaul help` lists the commands", argv[2]);
}

static enum status run_command(int argc, char **argv, struct diag *diag)
{
    struct text out = {0};
    enum status status = STATUS_OK;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        status = check_is_last_word(argc, argv, diag);
        command_print_overview(&out);
        if (status == STATUS_OK)
            status = command_print(&out, diag);
    } else if (strcmp(argv[1], "--version") == 0) {
        status = check_is_last_word(argc, argv, diag);
        if (status == STATUS_OK)
            status = command_print_version(&out, diag);
        if (status == STATUS_OK)
            status = command_print(&out, diag);
    } else {
        const struct command *command;
        status = command_find(&command, argv[1], diag);
        if (status == STATUS_OK)
            status = command_run(command, argc - 2, argv + 2, diag);
    }
    text_release(&out);
    return status;
}

int main(int argc, char **argv)
{
    static const int code[STATUS_COUNT] = {
        [STATUS_OK] = 0, [STATUS_NO] = 1, [STATUS_BAD_INPUT] = 2, [STATUS_SYSTEM] = 2};
    /* Without this, a write to a closed pipe, or beyond the limit on file sizes, would end the program by a signal.
     * With the signals ignored, the write fails with an error, which is reported like a full disk. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    /* If the parent ignores SIGCHLD, this process inherits that, and could not read the exit codes of its own
     * children. */
    signal(SIGCHLD, SIG_DFL);
    gsl_set_error_handler(print_gsl_error_and_abort);
    progress_show_on_terminal();
    struct diag diag = {0};
    enum status status = run_command(argc, argv, &diag);
    if (diag.text != NULL)
        screen_print_messages(diag.text);
    diag_release(&diag);
    return code[status];
}
