#include "cli/manual.h"

#include "cli/command.h"

#include <string.h>

/* Appends a text in a form that man(7) prints as it is: backslashes and hyphens are escaped, and so is a '.' or "'"
 * with which the text begins, since at the start of a line it would begin a request. */
static void put_escaped(struct text *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        text_puts(out, "\\&");
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            text_puts(out, "\\e");
        else if (*text == '-')
            text_puts(out, "\\-");
        else
            text_putc(out, *text);
    }
}

static void put_option(struct text *out, const struct option *option)
{
    text_puts(out, ".TP\n.B ");
    put_escaped(out, option->name[1] == '\0' ? "-" : "--");
    put_escaped(out, option->name);
    if (option->kind == OPTION_CHOICE) {
        text_puts(out, " \\fR");
        for (size_t i = 0; i < option->name_count; i++) {
            put_escaped(out, i == 0 ? "" : "|");
            put_escaped(out, option->names[i]);
        }
    } else if (option->value_name != NULL) {
        text_puts(out, " \\fI");
        put_escaped(out, option->value_name);
    }
    text_puts(out, "\n");
    put_escaped(out, option->help);
    if (option->default_text != NULL || option->unset_text != NULL) {
        text_puts(out, " [");
        put_escaped(out, option->default_text != NULL ? option->default_text : option->unset_text);
        text_putc(out, ']');
    }
    text_putc(out, '\n');
}

/* Returns the first command that has a set of options. A set that several commands share is printed only with that
 * command. */
static const struct command *first_command_with_set(const struct option_set *set)
{
    size_t count;
    const struct command *commands = command_table(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t s = 0; commands[i].option_sets[s] != NULL; s++)
            if (commands[i].option_sets[s] == set)
                return &commands[i];
    return NULL;
}

/* Appends the options of a set that a command refuses, as ", but for --costs, --framework and --at-most"; nothing if it
 * refuses none. They follow the name of another command, with which the set's options are printed. */
static void put_refused_options(struct text *out, const struct command *command,
                                const struct option_set *set)
{
    size_t count = 0, put = 0;
    for (size_t i = 0; i < set->option_count; i++)
        count += !command_shows_option(command, &set->option[i]);
    for (size_t i = 0; i < set->option_count; i++) {
        if (command_shows_option(command, &set->option[i]))
            continue;
        text_puts(out, put == 0 ? ", but for " : put + 1 < count ? ", " : " and ");
        put_escaped(out, "--");
        put_escaped(out, set->option[i].name);
        put++;
    }
}

static void put_command(struct text *out, const struct command *command)
{
    text_puts(out, ".SS ");
    put_escaped(out, command->name);
    if (command->arguments[0] != '\0') {
        text_putc(out, ' ');
        put_escaped(out, command->arguments);
    }
    text_putc(out, '\n');
    put_escaped(out, command->description);
    text_putc(out, '\n');
    for (size_t s = 0; command->option_sets[s] != NULL; s++) {
        const struct command *first = first_command_with_set(command->option_sets[s]);
        if (first != command) {
            text_puts(out, ".PP\nOptions on ");
            put_escaped(out, command->option_sets[s]->title);
            text_puts(out, ": as of ");
            put_escaped(out, first->name);
            put_refused_options(out, command, command->option_sets[s]);
            text_puts(out, ".\n");
            continue;
        }
        text_puts(out, ".PP\nOptions on ");
        put_escaped(out, command->option_sets[s]->title);
        text_puts(out, ":\n");
        for (size_t i = 0; i < command->option_sets[s]->option_count; i++)
            if (command_shows_option(command, &command->option_sets[s]->option[i]))
                put_option(out, &command->option_sets[s]->option[i]);
    }
}

void manual_print(struct text *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    text_puts(out,
              ".\\\" Made by `longhaul help --man`.\n"
              ".TH LONGHAUL 1 \"\" \"longhaul " LONGHAUL_VERSION "\" \"User Commands\"\n"
              ".SH NAME\n"
              "longhaul \\- predict training steps of language models over very long sequences\n"
              ".SH SYNOPSIS\n"
              ".B longhaul\n"
              ".I COMMAND\n"
              "[\\fIOPTIONS\\fR]\n"
              ".SH COMMANDS\n");
    for (size_t i = 0; i < count; i++)
        put_command(out, &commands[i]);
    text_puts(out, ".SH EXIT STATUS\n"
                   "0: done. 1: the answer is no. 2: it could not be done; one message says why.\n"
                   ".SH ENVIRONMENT\n"
                   ".TP\n"
                   ".B LONGHAUL_DATA\n"
                   "The folder of presets and published figures, instead of the one shipped.\n");
}
