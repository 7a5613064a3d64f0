#include "cli/completion.h"

#include "base/arena.h"
#include "cli/command.h"
#include "models/cluster.h"
#include "models/cost.h"
#include "models/transformer.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"

#include <string.h>

static const char *dashes_of_option(const struct option *option)
{
    return option->name[1] == '\0' ? "-" : "--";
}

/* ---- the values of an option ---- */

static void put_strategies(struct text *out)
{
    size_t count;
    const struct strategy *table = strategies_list(&count);
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i == 0 ? "" : " ", table[i].name);
}

static void put_profiles(struct text *out)
{
    size_t count;
    const struct profile *table = profiles_list(&count);
    text_puts(out, "published");
    for (size_t i = 0; i < count; i++)
        text_printf(out, " %s", table[i].name);
}

static void put_presets(struct text *out, enum status (*presets)(const char *const **, size_t *,
                                                                 struct arena *, struct diag *))
{
    struct arena arena = {0};
    const char *const *names;
    size_t count;
    if (presets(&names, &count, &arena, NULL) == STATUS_OK)
        for (size_t i = 0; i < count; i++)
            text_printf(out, "%s%s", i == 0 ? "" : " ", names[i]);
    arena_release(&arena);
}

static void put_models(struct text *out)
{
    put_presets(out, transformer_presets);
}

static void put_clusters(struct text *out)
{
    put_presets(out, cluster_presets);
}

static void put_cost_names(struct text *out)
{
    put_presets(out, cost_presets);
}

/* Appends the names that a value may have in this installation. Appends nothing if the value is
 * neither one of the words of the option nor a strategy, a profile, or a preset of models, clusters or costs. */
static void put_option_values(struct text *out, const struct option *option)
{
    static const struct {
        const char *name;
        void (*put)(struct text *out);
    } known[] = {
        {"strategy", put_strategies}, {"profile", put_profiles}, {"model", put_models},
        {"cluster", put_clusters},    {"costs", put_cost_names},
    };
    for (size_t i = 0; option->kind == OPTION_CHOICE && i < option->name_count; i++)
        text_printf(out, "%s%s", i == 0 ? "" : " ", option->names[i]);
    for (size_t i = 0; option->kind == OPTION_TEXT && i < ARRAY_LEN(known); i++)
        if (strcmp(option->name, known[i].name) == 0)
            known[i].put(out);
}

/* Appends the words that the first argument of `plot`, `list` or `help` may be; nothing for the
 * other commands. */
static void put_first_argument_words(struct text *out, const struct command *command)
{
    static const struct {
        const char *command;
        const char *(*name)(size_t i);
    } known[] = {
        {"plot", plot_figure_kind_name_at}, {"list", list_table_name}, {"help", command_name}};
    for (size_t k = 0; k < ARRAY_LEN(known); k++)
        for (size_t i = 0; strcmp(known[k].command, command->name) == 0 && known[k].name(i); i++)
            text_printf(out, "%s%s", i == 0 ? "" : " ", known[k].name(i));
}

/* ---- bash ---- */

void completion_print_bash(struct text *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    text_puts(out, "# bash completion for longhaul, made by `longhaul help --completion bash`\n"
                   "_longhaul()\n{\n"
                   "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "    local command=${COMP_WORDS[1]} options= values= first=\n"
                   "    COMPREPLY=()\n"
                   "    # \"--dtype=f\" is three words\n"
                   "    [[ $word == = ]] && word=\n"
                   "    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
                   "    if ((COMP_CWORD == 1)); then\n"
                   "        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i == 0 ? "" : " ", commands[i].name);
    text_puts(out, "\" -- \"$word\"))\n        return\n    fi\n    case $command in\n");
    for (size_t i = 0; i < count; i++) {
        text_printf(out, "    %s)\n        options=\"", commands[i].name);
        for (size_t s = 0; commands[i].option_sets[s] != NULL; s++)
            for (size_t k = 0; k < commands[i].option_sets[s]->option_count; k++) {
                const struct option *option = &commands[i].option_sets[s]->option[k];
                if (command_shows_option(&commands[i], option))
                    text_printf(out, "%s%s ", dashes_of_option(option), option->name);
            }
        text_puts(out, "\"\n");
        struct text first = {0};
        put_first_argument_words(&first, &commands[i]);
        if (first.size > 0)
            text_printf(out, "        first=\"%s\"\n", first.data);
        text_release(&first);
        text_puts(out, "        case $before in\n");
        for (size_t s = 0; commands[i].option_sets[s] != NULL; s++)
            for (size_t k = 0; k < commands[i].option_sets[s]->option_count; k++) {
                const struct option *option = &commands[i].option_sets[s]->option[k];
                struct text values = {0};
                put_option_values(&values, option);
                if (values.size > 0 && command_shows_option(&commands[i], option))
                    text_printf(out, "        %s%s) values=\"%s\" ;;\n", dashes_of_option(option),
                                option->name, values.data);
                text_release(&values);
            }
        text_puts(out, "        esac\n        ;;\n");
    }
    text_puts(out, "    esac\n"
                   "    if [[ -n $values ]]; then\n"
                   "        COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
                   "    elif [[ $word == -* ]]; then\n"
                   "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                   "    elif ((COMP_CWORD == 2)) && [[ -n $first ]]; then\n"
                   "        COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))\n"
                   "    fi\n"
                   "}\n"
                   "complete -o default -F _longhaul longhaul\n");
}

/* ---- zsh ---- */

/* Appends a text, escaped so that it can be between the quotes and brackets of an _arguments specification of zsh. */
static void put_zsh_escaped(struct text *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            text_puts(out, "'\\''");
        else if (strchr("[]:\\", *text) != NULL)
            text_printf(out, "\\%c", *text);
        else
            text_putc(out, *text);
}

static void put_zsh_option(struct text *out, const struct option *option)
{
    struct text values = {0};
    put_option_values(&values, option);
    text_printf(out, " \\\n            '%s%s%s%s[", option->kind == OPTION_REPEATABLE ? "*" : "",
                dashes_of_option(option), option->name,
                option->kind == OPTION_FLAG ? ""
                : option->name[1] == '\0'   ? "+"
                                            : "=");
    put_zsh_escaped(out, option->help);
    text_putc(out, ']');
    if (option->kind != OPTION_FLAG) {
        text_putc(out, ':');
        put_zsh_escaped(out, option->value_name != NULL ? option->value_name : option->name);
        if (values.size > 0)
            text_printf(out, ":(%s)", values.data);
        else
            text_puts(out, option->kind == OPTION_TEXT ? ":_files" : ":");
    }
    text_putc(out, '\'');
    text_release(&values);
}

void completion_print_zsh(struct text *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    text_puts(out, "#compdef longhaul\n"
                   "# made by `longhaul help --completion zsh`\n"
                   "_longhaul()\n{\n"
                   "    local -a commands\n"
                   "    commands=(\n");
    for (size_t i = 0; i < count; i++) {
        text_printf(out, "        '%s:", commands[i].name);
        put_zsh_escaped(out, commands[i].summary);
        text_puts(out, "'\n");
    }
    text_puts(out, "    )\n"
                   "    if ((CURRENT == 2)); then\n"
                   "        _describe command commands\n"
                   "        return\n"
                   "    fi\n"
                   "    local command=$words[2]\n"
                   "    shift words\n"
                   "    ((CURRENT--))\n"
                   "    case $command in\n");
    for (size_t i = 0; i < count; i++) {
        text_printf(out, "    %s)\n        _arguments", commands[i].name);
        for (size_t s = 0; commands[i].option_sets[s] != NULL; s++)
            for (size_t k = 0; k < commands[i].option_sets[s]->option_count; k++)
                if (command_shows_option(&commands[i], &commands[i].option_sets[s]->option[k]))
                    put_zsh_option(out, &commands[i].option_sets[s]->option[k]);
        struct text first = {0};
        put_first_argument_words(&first, &commands[i]);
        if (first.size > 0)
            text_printf(out, " \\\n            '1:%s:(%s)'", commands[i].name, first.data);
        text_release(&first);
        text_puts(out, " \\\n            '*:file:_files'\n        ;;\n");
    }
    /* When zsh autoloads this file at the first call of _longhaul, the file must make that call itself. A file that is
     * sourced only registers the function. */
    text_puts(out, "    esac\n}\n"
                   "if [[ $funcstack[1] == _longhaul ]]; then\n"
                   "    _longhaul \"$@\"\n"
                   "else\n"
                   "    compdef _longhaul longhaul\n"
                   "fi\n");
}
