/* cli/common/options.h: the options of a command, as tables: parsing, defaults and help from the same rows.
 *
 * An option is --name VALUE or --name=VALUE; a name of one letter is -n VALUE; a flag has no value. Each may be given
 * once, except OPTION_REPEATABLE ones. What is not an option is an argument, as is everything after "--". Values are
 * checked against their kind while parsing; the command checks free texts, and which options fit together.
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

/* A set of options that belong together. A command has a few sets, and no two of them have an option of the same
 * name. */
struct option_set {
    const char *title; /* the heading of the set in help: "model" */
    const struct option *option;
    size_t option_count;
};

enum { OPTION_SETS_MAX = 7 };

/* The row of the option of commands that predict in several processes. */
#define OPTIONS_JOBS_INITIALIZER                                                                   \
    {                                                                                              \
        .name = "jobs", .kind = OPTION_INTEGER, .value_name = "N", .low = 1, .high = 1024,         \
        .unset_text = "one per core", .help = "number of processes that predict at the same time"  \
    }

struct option_value {
    bool is_given;    /* the user gave the option, so the value is not the fallback */
    const char *text; /* the value; NULL: a flag, or neither given nor with a fallback */
    /* OPTION_INTEGER, OPTION_TOKENS: the value; OPTION_CHOICE: the index of its name; OPTION_REPEATABLE: the number of
     * its texts */
    int64_t whole_number;
    double real_number; /* OPTION_POSITIVE_NUMBER, OPTION_TRAINING_TOKENS: the value */
    const char **texts; /* OPTION_REPEATABLE: the texts */
};

/* The parsed options. Texts point into argv and the option tables, or into the arena. All-zero is empty. */
struct options {
    const struct option_set *const *sets; /* the array ends in NULL */
    struct option_value *value;           /* [options of all sets, set after set] */
    const char **positional_arguments;
    size_t argument_count;
    struct arena arena; /* holds the texts that were given to options_set_as_if_given() */
};

/* The name of an option as messages show it: "--seq", "-o". */
struct option_name_with_dashes {
    char text[40];
};
struct option_name_with_dashes options_name_with_dashes(const char *name);

/* Parses argv[0..argc), which starts after the command's name. `sets` must outlive *options. */
enum status options_parse(struct options *options, const struct option_set *const *sets, int argc,
                          char **argv, struct diag *diag);
void options_release(struct options *options);

/* The following functions return what is known of an option by its name. Asking for an option that no set has, or
 * for a value of another kind, is a programming error (an assert). */
/* Returns whether the user gave the option; for a flag: whether it is set. */
bool is_option_given(const struct options *options, const char *name);
/* Returns the text of an option; NULL: it has no value. */
const char *options_text(const struct options *options, const char *name);
int64_t options_whole_number(const struct options *options,
                             const char *name);                         /* 0: it has no value */
double options_number(const struct options *options, const char *name); /* 0: it has no value */
int options_index_of_choice(const struct options *options,
                            const char *name); /* -1: it has no value */

/* Returns the texts of a repeatable option in the order in which they were given, and sets *count to their number. */
const char *const *options_list(const struct options *options, const char *name, size_t *count);

/* Sets an option that was not given, as if the user had given it. For a flag, `value` is NULL. The
 * text is copied. */
enum status options_set_as_if_given(struct options *options, const char *name, const char *value,
                                    struct diag *diag);

/* Fails if the option does not accept the value, with the same message as options_parse(). */
enum status options_check_value(const struct option *option, const char *value, struct diag *diag);

/* Replaces the text of an OPTION_TEXT. The new text has to outlive the options. Whether the option counts as given does
 * not change. */
void options_replace_text(struct options *options, const char *name, const char *text);

/* Treats an option as not given and without a fallback from now on. */
void options_unset(struct options *options, const char *name);

/* Returns the row of an option; NULL: no set has an option of that name. */
const struct option *options_find(const struct option_set *const *sets, const char *name);

/* Reports that a list was given to an option that takes one value, and that `sweep` takes lists. */
enum status options_refuse_list(const char *name, const char *list, struct diag *diag);

/* Reports an error if both options are given. */
enum status options_refuse_both(const struct options *options, const char *one, const char *other,
                                struct diag *diag);

/* Appends a blank and a word, quoted if it must be so that a shell reads the same word. A line end in it becomes a
 * blank. */
void options_put_quoted_word(struct text *out, const char *word);

/* Splits a text into words as a shell does; the reverse of options_put_quoted_word(). Blanks and
 * line ends separate words, quotes and backslashes keep what they quote, and nothing is expanded.
 * Sets *word to *count words in the arena. A quote that is not closed, and a backslash at the end
 * of the text, are reported at `at`. */
enum status options_split_words(char ***word, int *count, struct arena *arena, const char *text,
                                struct loc at, struct diag *diag);

/* Appends the arguments, and then the options that were given, in the order of the tables. Options
 * in without[] are left out. */
void options_put_command(struct text *out, const struct options *options,
                         const char *const *without);

/* Finds the value of an option in a command line that options_put_command() wrote, as headers of files have it, and
 * sets *value to it. Returns false, with *value empty, if the command does not have the option, or is NULL. */
bool options_value_in_written_command(const char *command, const char *name, struct text *value);

/* An option that a command refuses although one of its sets has it, since it would have no effect there. Lists of them
 * end in a row without a name; NULL is an empty list. */
struct refused_option {
    const char *name;   /* without its dashes */
    const char *reason; /* a clause for the message: "a run is measured" */
};

/* Appends the help of all sets: the options with their values, descriptions and defaults, in lines of at most 100
 * columns. The refused ones are left out. */
void options_print_help(struct text *out, const struct option_set *const *sets,
                        const struct refused_option *refused);

bool options_is_refused(const struct refused_option *refused, const char *name);

/* Reports the first refused option that was given. */
enum status options_check_refused(const struct options *options,
                                  const struct refused_option *refused, struct diag *diag);

#endif
