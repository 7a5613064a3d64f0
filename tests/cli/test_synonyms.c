/* tests/cli/test_synonyms.c: each word that base/synonyms.def suggests is a name of ours. */
#include "base/diag.h"

#include "cli/command.h"
#include "schedule/choices/strategies.h"
#include "tests/check.h"

#include <string.h>

/* Columns of rows of a sweep; tests/cli/all/suggestions.cmd draws one of them. */
static const char *const columns[] = {"mfu_longhaul", "tokens_per_s_gpu", "step_s",
                                      "device_needed_bytes"};

static bool word_is_among(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], word) == 0)
            return true;
    return false;
}

/* True if a command has an option of this name and, unless `value` is NULL or the option takes other values than a list
 * of names, `value` is one of its names. */
static bool is_option(const char *name, size_t size, const char *value)
{
    size_t commands;
    const struct command *command = command_table(&commands);
    for (size_t c = 0; c < commands; c++)
        for (size_t s = 0; command[c].option_sets[s] != NULL; s++)
            for (size_t i = 0; i < command[c].option_sets[s]->option_count; i++) {
                const struct option *option = &command[c].option_sets[s]->option[i];
                bool named = strlen(option->name) == size && memcmp(option->name, name, size) == 0;
                bool choice = option->kind == OPTION_CHOICE;
                if (named && (value == NULL || !choice ||
                              word_is_among(value, option->names, option->name_count)))
                    return true;
            }
    return false;
}

static bool is_command_or_option_value(const char *word)
{
    size_t commands, count;
    const struct command *command = command_table(&commands);
    for (size_t c = 0; c < commands; c++) {
        if (strcmp(command[c].name, word) == 0)
            return true;
        for (size_t s = 0; command[c].option_sets[s] != NULL; s++)
            for (size_t i = 0; i < command[c].option_sets[s]->option_count; i++)
                if (word_is_among(word, command[c].option_sets[s]->option[i].names,
                                  command[c].option_sets[s]->option[i].name_count))
                    return true;
    }
    const struct strategy *strategy = strategies_list(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(strategy[i].name, word) == 0)
            return true;
    const struct profile *profile = profiles_list(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(profile[i].name, word) == 0)
            return true;
    for (size_t i = 0; list_table_name(i) != NULL; i++)
        if (strcmp(list_table_name(i), word) == 0)
            return true;
    return word_is_among(word, columns, ARRAY_LEN(columns));
}

static void suggested_synonyms_are_known_names(void)
{
    CHECK("there are synonyms", diag_synonym_count() > 100);
    for (size_t i = 0; i < diag_synonym_count(); i++) {
        const char *meant;
        const char *word = diag_synonym_at(i, &meant);
        const char *blank = strchr(meant, ' ');
        bool instead = strncmp(meant, "--", 2) == 0;
        CHECK(meant,
              instead
                  ? blank != NULL && is_option(meant + 2, (size_t)(blank - meant) - 2, blank + 1)
                  : is_option(meant, strlen(meant), NULL) || is_command_or_option_value(meant));
        CHECK(word, word[strcspn(word, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0');
    }
}

static void a_synonym_comes_before_a_misspelling(void)
{
    static const char *const names[] = {"subsequences", "seq", "hfu", "mfu_longhaul", "tp"};
    static const struct {
        const char *word, *want;
    } rows[] = {
        {"sequence", "seq"},         {"SEQUENCE_LENGTH", "seq"}, {"mfu", "mfu_longhaul"},
        {"tensor-parallel", "tp"},   {"tensor_parallel", "tp"},  {"subsequence", "subsequences"},
        {"tensor-parallel-x", NULL}, {"batch-size", NULL}, /* names[] lacks `batch` */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_TEXT(rows[i].word, diag_nearest(rows[i].word, names, ARRAY_LEN(names)), rows[i].want);
    CHECK_TEXT("flash", diag_option_suggested_for_word("flash"), "--attention fa2");
    CHECK("no other option", diag_option_suggested_for_word("ulises") == NULL);
}

static const struct check_case cases[] = {
    {"what is suggested is a name of ours", suggested_synonyms_are_known_names},
    {"a synonym comes before a misspelling", a_synonym_comes_before_a_misspelling},
};
CHECK_MAIN("synonyms", cases)
