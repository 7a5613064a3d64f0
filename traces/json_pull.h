/* traces/json_pull.h: JSON read token by token, for files too large to hold as values.
 *
 * A profiler's file has millions of events of which a few fields are wanted; nothing is built, and
 * texts are slices of the input. The grammar is JSON and the numbers NaN, Infinity and -Infinity,
 * which profilers write; nesting ends at JSON_PULL_DEPTH. The first fault is reported with its
 * line and column. */
#ifndef TRACES_JSON_PULL_H
#define TRACES_JSON_PULL_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_PULL_DEPTH = 64 };

enum json_token {
    JSON_OBJECT, /* '{' */
    JSON_OBJECT_END,
    JSON_ARRAY, /* '[' */
    JSON_ARRAY_END,
    JSON_KEY, /* and the ':' behind it */
    JSON_STRING,
    JSON_NUMBER,
    JSON_WORD, /* true, false, null */
    JSON_END,  /* of the text, after one value */
    JSON_TOKEN_COUNT
};

struct json_pull {
    const char *name; /* for messages; borrowed, like the text */
    const char *at, *end, *line_start;
    uint32_t line;
    unsigned depth;
    bool in_object[JSON_PULL_DEPTH];
    bool first;      /* nothing has been read at this level yet */
    bool need_value; /* behind a key */

    /* Of KEY and STRING what stands between the quotes, of NUMBER and WORD the text itself. */
    const char *text;
    size_t size;
    bool escaped; /* the text holds backslashes */
};

void json_pull_init(struct json_pull *pull, const char *name, const char *data, size_t size);

/* Reads the next token. */
enum status json_pull_next(struct json_pull *pull, enum json_token *token, struct diag *diag);

/* Reads on to the end of the value that `token` began; nothing for scalars. */
enum status json_pull_skip(struct json_pull *pull, enum json_token token, struct diag *diag);

/* Where the reader stands. */
struct loc json_pull_loc(const struct json_pull *pull);

/* Whether the text of the last KEY, STRING or WORD is this, written without escapes. */
bool json_pull_is(const struct json_pull *pull, const char *text);

/* The number of the last NUMBER; false for a NaN and what no double holds. */
bool json_pull_double(const struct json_pull *pull, double *value);

/* The text of the last STRING into out[0..size), NUL-terminated and cut where it does not fit;
 * escapes beyond ASCII become '?'. Returns the length. */
size_t json_pull_text(const struct json_pull *pull, char *out, size_t size);

#endif
