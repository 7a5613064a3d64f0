#include "cli/common/options.h"

#include "base/arena.h"
#include "base/c_locale.h"
#include "base/units.h"
#include "cli/common/screen.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELP_COLUMN = 26 };

static const struct option *find_option(const struct option_set *const *sets, const char *name,
                                        size_t size, size_t *row)
{
    *row = 0;
    for (size_t s = 0; sets[s] != NULL; s++)
        for (size_t i = 0; i < sets[s]->option_count; i++, ++*row)
            if (strlen(sets[s]->option[i].name) == size &&
                memcmp(sets[s]->option[i].name, name, size) == 0)
                return &sets[s]->option[i];
    return NULL;
}

static size_t count_options_of_sets(const struct option_set *const *sets)
{
    size_t count = 0;
    for (size_t s = 0; sets[s] != NULL; s++)
        count += sets[s]->option_count;
    return count;
}

struct option_name_with_dashes options_name_with_dashes(const char *name)
{
    struct option_name_with_dashes dashed_name;
    snprintf(dashed_name.text, sizeof dashed_name.text, "%s%.30s", name[1] == '\0' ? "-" : "--",
             name);
    return dashed_name;
}

/* Parses the number of tokens of a whole training: "1B", "15T" or digits. B and T are decimal, as usual for such
 * numbers. */
static enum status parse_total_tokens(const char *text, double *value, struct loc at,
                                      struct diag *diag)
{
    size_t size = strlen(text);
    double unit = 1;
    char last = size > 1 ? c_upper(text[size - 1]) : '\0';
    if (last == 'B' || last == 'T') {
        unit = last == 'B' ? 1e9 : 1e12;
        size--;
    }
    if (!parse_double(text, size, value) || !(*value > 0) || *value * unit > 1e18)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "'%s' is no number of tokens: write digits, or 1B for 10^9, 1T for 10^12",
                          text);
    *value *= unit;
    return STATUS_OK;
}

static enum status parse_choice(const struct option *option, const char *text, int64_t *value,
                                struct loc at, struct diag *diag)
{
    for (size_t i = 0; i < option->name_count; i++)
        if (strcmp(option->names[i], text) == 0) {
            *value = (int64_t)i;
            return STATUS_OK;
        }
    struct text all = {0};
    for (size_t i = 0; i < option->name_count; i++)
        text_printf(&all, "%s%s", i == 0 ? "" : ", ", option->names[i]);
    const char *near = diag_find_candidate_by_synonym(text, option->names, option->name_count);
    if (near == NULL)
        near = diag_option_suggested_for_word(text);
    enum status status =
        diag_error(diag, at, STATUS_BAD_INPUT, "'%s' is not one of %s%s%s%s", text,
                   all.data == NULL ? "" : all.data, near != NULL ? "; did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'?" : "");
    text_release(&all);
    return status;
}

static enum status parse_value(const struct option *option, const char *text,
                               struct option_value *value, struct diag *diag)
{
    struct option_name_with_dashes dashed_name = options_name_with_dashes(option->name);
    struct loc at = {.name = dashed_name.text};
    value->text = text;
    if (text[0] == '\0')
        return diag_error(diag, at, STATUS_BAD_INPUT, "the value is empty");
    switch (option->kind) {
    case OPTION_FLAG:
    case OPTION_TEXT:
        return STATUS_OK;
    case OPTION_INTEGER:
        if (!parse_i64(text, strlen(text), &value->whole_number) ||
            value->whole_number < option->low || value->whole_number > option->high)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "'%s' is not a whole number from %lld to %lld", text,
                              (long long)option->low, (long long)option->high);
        return STATUS_OK;
    case OPTION_TOKENS:
        return units_parse_tokens(text, strlen(text), &value->whole_number, at, diag);
    case OPTION_TRAINING_TOKENS:
        return parse_total_tokens(text, &value->real_number, at, diag);
    case OPTION_POSITIVE_NUMBER:
        if (!parse_double(text, strlen(text), &value->real_number) || !(value->real_number > 0) ||
            !isfinite(value->real_number))
            return diag_error(diag, at, STATUS_BAD_INPUT, "'%s' is not a number above 0", text);
        return STATUS_OK;
    case OPTION_CHOICE:
        return parse_choice(option, text, &value->whole_number, at, diag);
    case OPTION_REPEATABLE:
        value->texts = heap_realloc((void *)value->texts, (size_t)value->whole_number + 1,
                                    sizeof *value->texts);
        value->texts[value->whole_number++] = text;
        return STATUS_OK;
    case OPTION_KIND_COUNT:
        break;
    }
    assert(!"an option of no kind");
    return STATUS_BAD_INPUT;
}

static enum status report_unknown_option(const struct option_set *const *sets, const char *word,
                                         size_t size, struct diag *diag)
{
    const char **names = heap_alloc(count_options_of_sets(sets) + 1, sizeof *names);
    size_t count = 0;
    for (size_t s = 0; sets[s] != NULL; s++)
        for (size_t i = 0; i < sets[s]->option_count; i++)
            names[count++] = sets[s]->option[i].name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(size < 63 ? size : 63), word);
    const char *bare = name + strspn(name, "-");
    const char *nearest = diag_nearest(bare, names, count);
    free(names);
    struct loc at = {.name = name};
    if (nearest == NULL)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "there is no such option; --help lists them all");
    return diag_error(diag, at, STATUS_BAD_INPUT, "there is no such option; did you mean '%s'?",
                      options_name_with_dashes(nearest).text);
}

enum status options_refuse_list(const char *name, const char *list, struct diag *diag)
{
    struct option_name_with_dashes dashed_name = options_name_with_dashes(name);
    return diag_error(diag, (struct loc){.name = dashed_name.text}, STATUS_BAD_INPUT,
                      "'%s' is a list: what a sweep varies is given as --vary %s=%s", list, name,
                      list);
}

/* True if an option that takes one value is given a list or a range. A free text may contain commas
 * and dots, so it never counts as a list. */
static bool has_several_values(const struct option *option, const char *text)
{
    bool one = option->kind != OPTION_TEXT && option->kind != OPTION_REPEATABLE;
    return one && (strchr(text, ',') != NULL || strstr(text, "..") != NULL);
}

static enum status parse_given_value(const struct option_set *const *sets,
                                     const struct option *option, const char *text,
                                     struct option_value *value, struct diag *diag)
{
    return has_several_values(option, text) && options_find(sets, "vary") != NULL
               ? options_refuse_list(option->name, text, diag)
               : parse_value(option, text, value, diag);
}

/* Parses the option at argv[*i], and moves *i to the last word of it. */
static enum status parse_option(struct options *options, int argc, char **argv, int *i,
                                struct diag *diag)
{
    const char *word = argv[*i];
    size_t dashes = word[1] == '-' ? 2 : 1;
    const char *name = word + dashes, *equals = strchr(name, '=');
    size_t size = equals == NULL ? strlen(name) : (size_t)(equals - name), row;
    const struct option *option = find_option(options->sets, name, size, &row);
    if (option == NULL || (size == 1) != (dashes == 1))
        return report_unknown_option(options->sets, word, dashes + size, diag);

    struct option_value *value = &options->value[row];
    struct option_name_with_dashes dashed_name = options_name_with_dashes(option->name);
    struct loc at = {.name = dashed_name.text};
    if (value->is_given && option->kind != OPTION_REPEATABLE)
        return diag_error(diag, at, STATUS_BAD_INPUT, "given twice");
    value->is_given = true;
    if (option->kind == OPTION_FLAG) {
        if (equals != NULL)
            return diag_error(diag, at, STATUS_BAD_INPUT, "takes no value, not '%s'", equals + 1);
        return STATUS_OK;
    }
    if (equals != NULL)
        return parse_given_value(options->sets, option, equals + 1, value, diag);
    if (*i + 1 >= argc)
        return diag_error(diag, at, STATUS_BAD_INPUT, "its value is missing");
    return parse_given_value(options->sets, option, argv[++*i], value, diag);
}

static enum status parse_fallback_values(struct options *options, struct diag *diag)
{
    size_t row = 0;
    for (size_t s = 0; options->sets[s] != NULL; s++)
        for (size_t i = 0; i < options->sets[s]->option_count; i++, row++) {
            const struct option *option = &options->sets[s]->option[i];
            if (options->value[row].is_given || option->default_text == NULL)
                continue;
            enum status status =
                parse_value(option, option->default_text, &options->value[row], diag);
            if (status != STATUS_OK)
                return status;
        }
    return STATUS_OK;
}

enum status options_parse(struct options *options, const struct option_set *const *sets, int argc,
                          char **argv, struct diag *diag)
{
    *options = (struct options){
        .sets = sets,
        .value = heap_zalloc(count_options_of_sets(sets) + 1, sizeof *options->value),
        .positional_arguments =
            heap_zalloc((size_t)argc + 1, sizeof *options->positional_arguments),
    };
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0) {
            only_arguments = true;
        } else if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
            options->positional_arguments[options->argument_count++] = argv[i];
        } else {
            enum status status = parse_option(options, argc, argv, &i, diag);
            if (status != STATUS_OK)
                return status;
        }
    }
    return parse_fallback_values(options, diag);
}

void options_release(struct options *options)
{
    size_t count = options->sets == NULL ? 0 : count_options_of_sets(options->sets);
    for (size_t i = 0; i < count; i++)
        free((void *)options->value[i].texts);
    free(options->value);
    free((void *)options->positional_arguments);
    arena_release(&options->arena);
    *options = (struct options){0};
}

static const struct option_value *find_value(const struct options *options, const char *name,
                                             unsigned kinds)
{
    size_t row;
    const struct option *option = find_option(options->sets, name, strlen(name), &row);
    assert(option != NULL && (kinds >> option->kind & 1u) != 0);
    (void)option;
    (void)kinds;
    return &options->value[row];
}

bool is_option_given(const struct options *options, const char *name)
{
    return find_value(options, name, ~0u)->is_given;
}

const char *options_text(const struct options *options, const char *name)
{
    return find_value(options, name, ~(1u << OPTION_FLAG))->text;
}

int64_t options_whole_number(const struct options *options, const char *name)
{
    return find_value(options, name, 1u << OPTION_INTEGER | 1u << OPTION_TOKENS)->whole_number;
}

double options_number(const struct options *options, const char *name)
{
    return find_value(options, name, 1u << OPTION_POSITIVE_NUMBER | 1u << OPTION_TRAINING_TOKENS)
        ->real_number;
}

int options_index_of_choice(const struct options *options, const char *name)
{
    const struct option_value *value = find_value(options, name, 1u << OPTION_CHOICE);
    return value->text == NULL ? -1 : (int)value->whole_number;
}

const char *const *options_list(const struct options *options, const char *name, size_t *count)
{
    const struct option_value *value = find_value(options, name, 1u << OPTION_REPEATABLE);
    *count = (size_t)value->whole_number;
    return value->texts;
}

enum status options_set_as_if_given(struct options *options, const char *name, const char *value,
                                    struct diag *diag)
{
    size_t row;
    const struct option *option = find_option(options->sets, name, strlen(name), &row);
    assert(option != NULL && !options->value[row].is_given);
    options->value[row] = (struct option_value){.is_given = true};
    if (option->kind == OPTION_FLAG)
        return STATUS_OK;
    return parse_value(option, arena_text(&options->arena, value, strlen(value)),
                       &options->value[row], diag);
}

enum status options_check_value(const struct option *option, const char *value, struct diag *diag)
{
    struct option_value parsed = {0};
    enum status status = parse_value(option, value, &parsed, diag);
    free((void *)parsed.texts);
    return status;
}

void options_replace_text(struct options *options, const char *name, const char *text)
{
    size_t row;
    const struct option *option = find_option(options->sets, name, strlen(name), &row);
    assert(option != NULL && option->kind == OPTION_TEXT);
    (void)option;
    options->value[row].text = text;
}

void options_unset(struct options *options, const char *name)
{
    size_t row;
    const struct option *option = find_option(options->sets, name, strlen(name), &row);
    assert(option != NULL);
    (void)option;
    free((void *)options->value[row].texts);
    options->value[row] = (struct option_value){0};
}

const struct option *options_find(const struct option_set *const *sets, const char *name)
{
    size_t row;
    return find_option(sets, name, strlen(name), &row);
}

enum status options_refuse_both(const struct options *options, const char *one, const char *other,
                                struct diag *diag)
{
    if (!is_option_given(options, one) || !is_option_given(options, other))
        return STATUS_OK;
    struct option_name_with_dashes dashed_name = options_name_with_dashes(one);
    return diag_error(diag, (struct loc){.name = dashed_name.text}, STATUS_BAD_INPUT,
                      "cannot be given together with %s: leave one of the two out",
                      options_name_with_dashes(other).text);
}

void options_put_quoted_word(struct text *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_-+=./:,@%^";
    text_putc(out, ' ');
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        text_puts(out, word);
        return;
    }
    text_putc(out, '\'');
    for (; *word != '\0'; word++)
        if (*word == '\'')
            text_puts(out, "'\\''");
        else
            text_putc(out, *word == '\n' ? ' ' : *word);
    text_putc(out, '\'');
}

/* Appends the quoted part of a word. text: the character after the opening quote. Returns the place after the closing
 * quote; NULL if there is none. */
static const char *read_quoted(struct text *word, const char *text, char quote)
{
    for (; *text != quote; text++) {
        if (quote == '"' && *text == '\\' && text[1] != '\0' && strchr("$`\"\\", text[1]) != NULL)
            text++;
        if (*text == '\0')
            return NULL;
        text_putc(word, *text);
    }
    return text + 1;
}

/* Appends one word. text: its first character. Returns the place after the word; NULL if a quote is not closed, or if a
 * backslash is the last character. */
static const char *read_shell_word(struct text *word, const char *text)
{
    while (text != NULL && *text != '\0' && strchr(" \t\r\n", *text) == NULL) {
        if (*text == '\'' || *text == '"') {
            text = read_quoted(word, text + 1, *text);
            continue;
        }
        if (*text == '\\' && *++text == '\0')
            return NULL;
        text_putc(word, *text++);
    }
    return text;
}

enum status options_split_words(char ***word, int *count, struct arena *arena, const char *text,
                                struct loc at, struct diag *diag)
{
    struct text one = {0};
    enum status status = STATUS_OK;
    *count = 0;
    *word = arena_array(arena, strlen(text) / 2 + 1, sizeof **word);
    for (text += strspn(text, " \t\r\n"); *text != '\0'; text += strspn(text, " \t\r\n")) {
        const char *begin = text;
        one.size = 0;
        text_puts(&one, "");
        text = read_shell_word(&one, text);
        if (text == NULL) {
            status = diag_error(
                diag, at, STATUS_BAD_INPUT,
                "a quote is not closed, or nothing follows the last backslash: %.100s", begin);
            break;
        }
        (*word)[(*count)++] = arena_text(arena, one.data, one.size);
    }
    text_release(&one);
    return status;
}

static bool list_has_name(const char *const *without, const char *name)
{
    for (size_t i = 0; without[i] != NULL; i++)
        if (strcmp(without[i], name) == 0)
            return true;
    return false;
}

void options_put_command(struct text *out, const struct options *options,
                         const char *const *without)
{
    size_t row = 0;
    for (size_t i = 0; i < options->argument_count; i++)
        options_put_quoted_word(out, options->positional_arguments[i]);
    for (size_t s = 0; options->sets[s] != NULL; s++)
        for (size_t i = 0; i < options->sets[s]->option_count; i++, row++) {
            const struct option *option = &options->sets[s]->option[i];
            const struct option_value *value = &options->value[row];
            bool left_out = !value->is_given || list_has_name(without, option->name);
            size_t times = left_out                            ? 0
                           : option->kind == OPTION_REPEATABLE ? (size_t)value->whole_number
                                                               : 1;
            for (size_t k = 0; k < times; k++) {
                text_printf(out, " %s", options_name_with_dashes(option->name).text);
                if (option->kind != OPTION_FLAG)
                    options_put_quoted_word(out, option->kind == OPTION_REPEATABLE ? value->texts[k]
                                                                                   : value->text);
            }
        }
}

bool options_value_in_written_command(const char *command, const char *name, struct text *value)
{
    struct arena arena = {0};
    char **word = NULL;
    int count = 0;
    size_t size = strlen(name);
    bool found = false;
    value->size = 0;
    if (command != NULL &&
        options_split_words(&word, &count, &arena, command, (struct loc){0}, NULL) != STATUS_OK)
        count = 0;
    for (int i = 0; i < count && !found; i++) {
        if (strncmp(word[i], "--", 2) != 0 || strncmp(word[i] + 2, name, size) != 0)
            continue;
        const char *after = word[i] + 2 + size;
        const char *given = *after == '='                     ? after + 1
                            : *after == '\0' && i + 1 < count ? word[i + 1]
                                                              : NULL;
        found = given != NULL && *given != '\0';
        if (found)
            text_puts(value, given);
    }
    arena_release(&arena);
    return found;
}

/* Appends `head`, an option and its value: "--name one|two". If the names of a choice pass the width, they go on in
 * further lines, each broken after a '|'. */
static void put_option_head(struct text *out, const char *head, size_t width)
{
    enum { INDENT_CHOICES = 6 };
    size_t column = 0;
    while (*head != '\0') {
        size_t size = strcspn(head, "|");
        size += head[size] == '|';
        if (column > 0 && column + size > width) {
            text_printf(out, "\n%*s", INDENT_CHOICES, "");
            column = INDENT_CHOICES;
        }
        text_append(out, head, size);
        column += size;
        head += size;
    }
}

static void print_option(struct text *out, const struct option *option)
{
    size_t width = screen_help_width();
    struct text head = {0}, body = {0};
    text_printf(&head, "  %s", options_name_with_dashes(option->name).text);
    if (option->kind == OPTION_CHOICE && option->value_name == NULL) {
        text_putc(&head, ' ');
        for (size_t i = 0; i < option->name_count; i++)
            text_printf(&head, "%s%s", i == 0 ? "" : "|", option->names[i]);
    } else if (option->value_name != NULL) {
        text_printf(&head, " %s", option->value_name);
    }
    text_puts(&body, option->help);
    if (option->default_text != NULL)
        text_printf(&body, " [%s]", option->default_text);
    else if (option->unset_text != NULL)
        text_printf(&body, " [%s]", option->unset_text);
    put_option_head(out, head.data, width);
    if (head.size + 2 > HELP_COLUMN)
        text_printf(out, "\n%*s", HELP_COLUMN, "");
    else
        text_printf(out, "%*s", (int)(HELP_COLUMN - head.size), "");
    screen_wrap(out, body.data, HELP_COLUMN, HELP_COLUMN, width);
    text_release(&head);
    text_release(&body);
}

bool options_is_refused(const struct refused_option *refused, const char *name)
{
    for (; refused != NULL && refused->name != NULL; refused++)
        if (strcmp(refused->name, name) == 0)
            return true;
    return false;
}

enum status options_check_refused(const struct options *options,
                                  const struct refused_option *refused, struct diag *diag)
{
    for (; refused != NULL && refused->name != NULL; refused++)
        if (is_option_given(options, refused->name))
            return diag_error(diag,
                              (struct loc){.name = options_name_with_dashes(refused->name).text},
                              STATUS_BAD_INPUT, "%s; leave it out", refused->reason);
    return STATUS_OK;
}

void options_print_help(struct text *out, const struct option_set *const *sets,
                        const struct refused_option *refused)
{
    for (size_t s = 0; sets[s] != NULL; s++) {
        text_printf(out, "\n%s:\n", sets[s]->title);
        for (size_t i = 0; i < sets[s]->option_count; i++)
            if (!options_is_refused(refused, sets[s]->option[i].name))
                print_option(out, &sets[s]->option[i]);
    }
}
