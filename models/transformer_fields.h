/* models/transformer_fields.h: the fields of struct transformer as a table.
 *
 * The table has a row per field that a file or an override may set: its name in the schema, its
 * offset in the struct and its allowed values. The reader of files, transformer_set_field() and
 * transformer_check() all walk this table, so that they cannot disagree. */
#ifndef MODELS_TRANSFORMER_FIELDS_H
#define MODELS_TRANSFORMER_FIELDS_H

#include "models/transformer.h"

enum field_kind {
    FIELD_INTEGER, /* int64_t in [low, high] */
    FIELD_REAL,    /* double in [low, high] */
    FIELD_CHOICE,  /* enum, as int: one of names[0..count) */
    FIELD_SWITCH,  /* bool; false when left out */
    FIELD_KIND_COUNT
};

struct transformer_field {
    const char *name;
    enum field_kind kind;
    size_t offset;            /* in struct transformer */
    double low, high;         /* for a size or a real number */
    const char *const *names; /* for a choice: the names of its values */
    int name_count;
};

/* The number of fields of a model, which is the number of rows of transformer_fields[]. */
#define TRANSFORMER_FIELD_COUNT 50

extern const struct transformer_field transformer_fields[TRANSFORMER_FIELD_COUNT];

/* Returns the row of a name; NULL: there is none. */
const struct transformer_field *transformer_field_find(const char *name);

/* Fills names[] with the names of all fields, for messages. */
void transformer_field_names(const char *names[TRANSFORMER_FIELD_COUNT]);

/* Return the address of a field's value in *t. The field must be a size, a real number or a switch, as the function's
 * name says. */
int64_t *transformer_field_integer_pointer(struct transformer *t,
                                           const struct transformer_field *field);
double *transformer_field_real_pointer(struct transformer *t,
                                       const struct transformer_field *field);
bool *transformer_field_switch_pointer(struct transformer *t,
                                       const struct transformer_field *field);

/* Sets a field of kind FIELD_CHOICE to the value with that name; returns false if no value has it. */
bool transformer_field_set_choice(struct transformer *t, const struct transformer_field *field,
                                  const char *name);

/* Returns the value that *t has in a field of kind FIELD_CHOICE, as an index of field->names[]. */
int transformer_field_choice_index(const struct transformer *t,
                                   const struct transformer_field *field);

/* Appends the value of a field of *t as a line of fields has it: "4096", "swiglu", "true". */
void transformer_field_append_to_text(struct text *out, const struct transformer *t,
                                      const struct transformer_field *field);

/* Writes the names of a field's choices into out: "swiglu, gelu", for messages; returns out. */
const char *transformer_field_choice_list(const struct transformer_field *field, char *out,
                                          size_t size);

#endif
