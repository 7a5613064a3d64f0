/* base/json_pull.h: reads JSON token by token. It is the only JSON reader of the program: base/json.h builds
 * values from the tokens, and a profiler's file, whose millions of events are too many to be held as values, is
 * read from the tokens themselves.
 *
 * Nothing is allocated; texts are slices of the input. The grammar is JSON with comments, and nesting ends at
 * JSON_DEPTH_LIMIT. The first fault is reported with its line and column. */
#ifndef BASE_JSON_PULL_H
#define BASE_JSON_PULL_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_LIMIT = 64 };

enum json_dialect {
    JSON_UTF8_WITHOUT_NAN, /* strings are UTF-8 and hold no NUL */
    JSON_PROFILER,         /* strings hold any bytes; NaN, Infinity and -Infinity are numbers */
    JSON_DIALECT_COUNT
};

enum json_token {
    JSON_OBJECT, /* '{' */
    JSON_OBJECT_END,
    JSON_ARRAY, /* '[' */
    JSON_ARRAY_END,
    JSON_KEY, /* a key and the ':' after it */
    JSON_STRING,
    JSON_NUMBER,
    JSON_LITERAL, /* true, false, null */
    JSON_END,     /* the end of the text, after one value */
    JSON_TOKEN_COUNT
};

struct json_pull {
    const char *name; /* names the text in messages; borrowed, like the text */
    enum json_dialect dialect;
    const char *position, *end, *line_first_char;
    uint32_t line;
    unsigned depth;
    bool is_object_at_level[JSON_DEPTH_LIMIT];
    bool is_at_level_start;           /* nothing has been read at this level yet */
    bool is_value_expected_after_key; /* a key was read last */

    uint32_t token_line, token_column; /* where the last token begins */
    /* for a KEY or STRING: the text between its quotes; for a NUMBER or LITERAL: its text */
    const char *text;
    size_t size;
    bool has_escapes; /* the text holds backslashes */
};

void json_pull_init(struct json_pull *pull, enum json_dialect dialect, const char *name,
                    const char *data, size_t size);

/* Reads the next token. */
enum status json_pull_next(struct json_pull *pull, enum json_token *token, struct diag *diag);

/* Skips to the end of the value that `token` began; does nothing for scalars. */
enum status json_pull_skip(struct json_pull *pull, enum json_token token, struct diag *diag);

/* Returns the place where the last token begins. */
struct loc json_pull_loc(const struct json_pull *pull);

/* True if the last KEY, STRING, NUMBER or LITERAL is written exactly as `text` is. Its escapes are not decoded. */
bool json_pull_text_equals(const struct json_pull *pull, const char *text);

/* Reads the last NUMBER; false for NaN and for numbers outside the range of double. */
bool json_pull_double(const struct json_pull *pull, double *value);

/* Decodes the escapes of a string, whose text between the quotes is text[0..size), and writes the result to
 * out[0..room) with a NUL at its end. A result that does not fit is cut off; size + 1 bytes are always enough. A NUL,
 * and half of a surrogate pair, become U+FFFD. Returns the length of the result without the NUL. */
size_t json_unescape(const char *text, size_t size, char *out, size_t room);

#endif
