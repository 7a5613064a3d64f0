/* cli/help_json.c: prints the tables of commands and options as JSON, for programs that call longhaul. */
#include "base/json_write.h"
#include "cli/command.h"

static const char *const kinds[OPTION_KIND_COUNT] = {
    [OPTION_FLAG] = "flag",
    [OPTION_TEXT] = "text",
    [OPTION_INTEGER] = "count",
    [OPTION_TOKENS] = "tokens",
    [OPTION_TRAINING_TOKENS] = "total",
    [OPTION_POSITIVE_NUMBER] = "number",
    [OPTION_CHOICE] = "choice",
    [OPTION_REPEATABLE] = "list",
};

static void put_option(struct json_out *json, const struct option *option)
{
    json_begin_object(json, NULL);
    json_put_text(json, "name", option->name);
    json_put_text(json, "kind", kinds[option->kind]);
    json_put_text(json, "value", option->value_name);
    json_put_text(json, "default",
                  option->default_text != NULL ? option->default_text : option->unset_text);
    json_put_text(json, "help", option->help);
    if (option->kind == OPTION_INTEGER) {
        json_put_number(json, "least", (double)option->low);
        json_put_number(json, "most", (double)option->high);
    }
    if (option->kind == OPTION_CHOICE) {
        json_begin_array(json, "choices");
        for (size_t i = 0; i < option->name_count; i++)
            json_put_text(json, NULL, option->names[i]);
        json_end_array(json);
    }
    json_end_object(json);
}

static void put_command(struct json_out *json, const struct command *command)
{
    json_begin_object(json, NULL);
    json_put_text(json, "name", command->name);
    json_put_text(json, "arguments", command->arguments);
    json_put_text(json, "summary", command->summary);
    json_put_text(json, "about", command->description);
    json_begin_array(json, "options");
    for (size_t s = 0; command->option_sets[s] != NULL; s++)
        for (size_t i = 0; i < command->option_sets[s]->option_count; i++)
            if (command_shows_option(command, &command->option_sets[s]->option[i]))
                put_option(json, &command->option_sets[s]->option[i]);
    json_end_array(json);
    json_end_object(json);
}

void help_print_json(struct text *out, const struct command *only)
{
    struct json_out json = {.out = out};
    size_t count;
    const struct command *commands = command_table(&count);
    json_begin_object(&json, NULL);
    json_begin_array(&json, "commands");
    for (size_t i = 0; i < count; i++)
        if (only == NULL || only == &commands[i])
            put_command(&json, &commands[i]);
    json_end_array(&json);
    json_end_object(&json);
    text_putc(out, '\n');
}
