/* cli/common/json_out.h: JSON written member by member, two blanks a level, numbers with all their digits.
 *
 * Every call between json_begin_...() and its end adds one value to the object or array; key is
 * NULL in an array and at the top. */
#ifndef CLI_COMMON_JSON_OUT_H
#define CLI_COMMON_JSON_OUT_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* The version of what --json prints: raised when a name changes, disappears or gets another meaning. */
enum { JSON_SCHEMA_VERSION = 2 };

struct json_out {
    struct text *out;
    int depth;
    bool filled; /* the open object or array has a value already */
};

/* Begins the object of a whole answer with the name of its schema, docs/schema/NAME.json, and the version. */
void json_begin_answer(struct json_out *json, const char *schema);

void json_begin_object(struct json_out *json, const char *key);
void json_end_object(struct json_out *json);
void json_begin_array(struct json_out *json, const char *key);
void json_end_array(struct json_out *json);
void json_put_number(struct json_out *json, const char *key, double value);  /* infinite: null */
void json_put_count(struct json_out *json, const char *key, uint64_t value); /* UINT64_MAX: null */
void json_put_text(struct json_out *json, const char *key, const char *value); /* NULL: null */
void json_put_bool(struct json_out *json, const char *key, bool value);

#endif
