/* cli/common/options.h: the options of a command, as tables: parsing, defaults and help from the same rows.
 *
 * An option is --name VALUE or --name=VALUE; a name of one letter is -n VALUE; a flag has no
 * value. Each may be given once, except lists. What is not an option is an argument, as is everything after
 * "--". Values are checked while parsing, so that a command only sees valid ones; the command checks which
 * options fit together.
 *
 * Messages begin with the option: "--seq: error: ...". */
#ifndef CLI_COMMON_OPTIONS_H
#define CLI_COMMON_OPTIONS_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/option.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Options that belong together. A command has a few sets, and no name is in two of them. */
struct option_set {
    const char *title; /* "model and cluster" */
    const struct option *option;
    size_t count;
};

enum { OPTION_SETS_MAX = 7 };

struct option_value {
    bool given;        /* the user gave it: the value is not the fallback */
    const char *text;  /* NULL: neither given nor a fallback */
    int64_t count;     /* COUNT, TOKENS; CHOICE: index in names */
    double number;     /* NUMBER, TOTAL */
    const char **list; /* LIST: count texts */
};

/* All-zero is empty. Texts point into argv and the option tables, or live in the arena. */
struct options {
    const struct option_set *const *sets; /* ends in NULL */
    struct option_value *value;           /* one per option, sets end to end */
    const char **argument;
    size_t argument_count;
    struct arena arena; /* of texts that options_supply() was given */
};

/* Parses argv[0..argc), which starts after the command's name. sets must outlive *options. */
enum status options_parse(struct options *options, const struct option_set *const *sets, int argc,
                          char **argv, struct diag *diag);
void options_release(struct options *options);

/* Return an option's value by name. Asking for an option that no set has, or for a value of another kind, is a
 * programming error (an assert). */
bool options_given(const struct options *options, const char *name); /* FLAG: whether it is set */
const char *options_text(const struct options *options, const char *name); /* NULL: none */
int64_t options_count(const struct options *options, const char *name);    /* 0: none */
double options_number(const struct options *options, const char *name);    /* 0: none */
int options_choice(const struct options *options, const char *name);       /* -1: none */

/* Returns the *count texts of a list, in the order in which they were given. */
const char *const *options_list(const struct options *options, const char *name, size_t *count);

/* Sets an option that was not given, as if the user had written it; value NULL sets a flag. The text is copied. */
enum status options_supply(struct options *options, const char *name, const char *value,
                           struct diag *diag);

/* Fails if the option does not take the value, with the message that options_parse() has. */
enum status options_check(const struct option *option, const char *value, struct diag *diag);

/* Replaces an option's text, which has to outlive the options. The option counts as given if it did before. */
void options_replace_text(struct options *options, const char *name, const char *text);

/* Treats an option as not given and without a fallback from now on. */
void options_withdraw(struct options *options, const char *name);

/* Returns the row of an option; NULL: no set has it. */
const struct option *options_find(const struct option_set *const *sets, const char *name);

/* Reports that an option of a sweep was given a list of values, and what would be right. */
enum status options_refuse_list(const char *name, const char *list, struct diag *diag);

/* Reports an error when more than one of two options is given. */
enum status options_exclude(const struct options *options, const char *one, const char *other,
                            struct diag *diag);

/* Appends a blank and a word, quoted so that a shell reads it back, on one line. */
void options_put_word(struct text *out, const char *word);

/* Splits text into words as a shell does, and undoes options_put_word(): blanks and line ends separate words, quotes
 * and backslashes keep what they quote. Nothing is expanded. *word gets *count words, which live in arena. A
 * quote that is not closed is an error at `at`. */
enum status options_split_words(char ***word, int *count, struct arena *arena, const char *text,
                                struct loc at, struct diag *diag);

/* True if a name is in without[], which ends in NULL. */
bool options_are_without(const char *const *without, const char *name);

/* Appends the options that were given, in the order of the tables, and the arguments; options named in
 * without[] are left out. */
void options_put_command(struct text *out, const struct options *options,
                         const char *const *without);

/* Finds an option's value in a command line that options_put_command() wrote, as the header of a file keeps it.
 * False: the command lacks the option, or is NULL. */
bool options_in_command(const char *command, const char *name, struct text *value);

/* Appends the help of all sets: names, values, what they do, defaults; lines of at most 100
 * columns. Options named in without[] are left out. */
void options_print_help(struct text *out, const struct option_set *const *sets,
                        const char *const *without);

#endif
