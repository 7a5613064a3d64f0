/* traces/pickle.h: reads and writes Python pickles of plain data.
 *
 * The reader takes protocols 2 to 5 with None, booleans, whole numbers (clamped to 64 bits), floats, texts, bytes,
 * lists, tuples and dictionaries, also with values that are shared. It refuses a pickle that names a class or
 * calls a function, so no code of a pickle ever runs. The writer writes protocol 2, which every Python 3
 * reads.
 *
 * Values live in the arena given to pickle_parse(); texts point into it and end in NUL. */
#ifndef TRACES_PICKLE_H
#define TRACES_PICKLE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT, /* a number of more than 64 bits becomes the nearest one of 64 */
    PICKLE_FLOAT,
    PICKLE_TEXT, /* a text, or bytes */
    PICKLE_LIST, /* a list, or a tuple */
    PICKLE_DICT,
};

struct pickle_value {
    enum pickle_kind kind;
    int64_t int_value;         /* for BOOL and INT */
    double float_value;        /* for FLOAT */
    const char *text;          /* for TEXT */
    size_t byte_or_item_count; /* number of bytes of TEXT, of items of LIST and DICT */
    struct pickle_item *first_item, *last_item;
};

struct pickle_item {
    struct pickle_value *key; /* for DICT */
    struct pickle_value *value;
    struct pickle_item *next;
};

/* True if data begins like a pickle of protocol 2 to 5. */
bool pickle_recognise(const char *data, size_t size);

/* Parses a pickle into *root. name stands for the data in messages. */
enum status pickle_parse(struct pickle_value **root, struct arena *arena, const char *name,
                         const char *data, size_t size, struct diag *diag);

/* Returns the value of a text key; NULL: the key is absent, or dict is NULL or no dictionary. */
const struct pickle_value *pickle_find(const struct pickle_value *dict, const char *key);
int64_t pickle_int_or(const struct pickle_value *value, int64_t otherwise);
const char *pickle_text_or(const struct pickle_value *value, const char *otherwise);

/* Write a pickle: call pickle_begin(), add one value, and call pickle_end(). A list or a dictionary is begun, filled
 * with its values (each key before its value), and ended. */
void pickle_begin(struct text *out);
void pickle_end(struct text *out);
void pickle_put_int(struct text *out, int64_t value);
void pickle_put_bool(struct text *out, bool value);
void pickle_put_text(struct text *out, const char *text);
void pickle_begin_list(struct text *out);
void pickle_end_list(struct text *out);
void pickle_begin_dict(struct text *out);
void pickle_end_dict(struct text *out);

#endif
