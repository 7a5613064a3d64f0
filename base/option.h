/* base/option.h: an option of a command as a row of a table: its name, the values that it takes,
 * and its help.
 *
 * cli/common/options.h reads and prints options by these rows. */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,            /* a name, a path, a list: any text but the empty one */
    OPTION_INTEGER,         /* a whole number from low to high */
    OPTION_TOKENS,          /* base/units.h: "512K" */
    OPTION_TRAINING_TOKENS, /* tokens of a whole training: "1B" and "15T" are 10^9 and 15 10^12 */
    OPTION_POSITIVE_NUMBER, /* a positive number */
    OPTION_CHOICE,          /* one of names[0] to names[name_count - 1] */
    OPTION_REPEATABLE,      /* texts: may be given many times */
    OPTION_KIND_COUNT
};

struct option {
    const char *name;
    enum option_kind kind;
    const char *value_name;   /* what help calls the value; CHOICE and FLAG: NULL */
    const char *default_text; /* parsed when the option is not given; NULL: none */
    /* only if default_text is NULL: help's words for what happens if the option is not given; NULL: help says nothing
     * about that */
    const char *unset_text;
    const char *help;
    int64_t low, high;        /* for INTEGER: the allowed range */
    const char *const *names; /* for CHOICE: the allowed names */
    size_t name_count;
};

#endif
