/* base/json_write.h: writes JSON value by value: two blanks a level, always valid UTF-8.
 *
 * Each call that begins an object or an array, or that puts a value, adds it to the innermost
 * object or array that is open. key is the value's name; it is NULL in an array and at the top. */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* A writer that starts as {.out = text} puts each value on its own line; with .on_one_line = true it puts everything on
 * one line. */
struct json_out {
    struct text *out;
    int depth;        /* objects and arrays that are open */
    bool has_value;   /* the innermost open object or array has a value already */
    bool on_one_line; /* values follow each other on the line */
};

void json_begin_object(struct json_out *json, const char *key);
void json_end_object(struct json_out *json);
void json_begin_array(struct json_out *json, const char *key);
void json_end_array(struct json_out *json);

/* Begin and end an object that is written on one line, with everything in it. */
void json_begin_inline_object(struct json_out *json, const char *key);
void json_end_inline_object(struct json_out *json);

/* Appends a number with so many digits that it reads back as the same double. Infinity and NaN, which JSON lacks,
 * become null. */
void json_put_number(struct json_out *json, const char *key, double value);
/* Does the same with the number rounded to `digits` significant digits. */
void json_put_rounded(struct json_out *json, const char *key, double value, int digits);
void json_put_count(struct json_out *json, const char *key, uint64_t value); /* UINT64_MAX: null */
void json_put_text(struct json_out *json, const char *key, const char *value); /* NULL: null */
void json_put_bool(struct json_out *json, const char *key, bool value);

/* Appends a text as the inside of a JSON string. Quotes, backslashes and control characters are escaped; each byte that
 * is not part of a UTF-8 character (names of files may have some) becomes U+FFFD. */
void json_put_escaped(struct text *out, const char *text);

#endif
