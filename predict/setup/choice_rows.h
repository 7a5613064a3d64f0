/* predict/setup/choice_rows.h: the choices of a training step as a table (predict/setup/choices.def). Everything that
 * lists choices walks it: options, their reading and printing, notes, JSON, rows of sweeps, the identity of a plan's
 * configurations. */
#ifndef PREDICT_SETUP_CHOICE_ROWS_H
#define PREDICT_SETUP_CHOICE_ROWS_H

#include "base/option.h"
#include "base/text.h"
#include "predict/setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum choice_option_id {
#define CHOICE(name, ...) CHOICE_OPTION_##name,
#define FOLLOWS(name, ...)
#include "predict/setup/choices.def"
#undef CHOICE
#undef FOLLOWS
    CHOICE_OPTION_COUNT
};

enum choice_name_id {
#define CHOICE(name, ...) CHOICE_NAME_##name,
#define FOLLOWS(name, ...) CHOICE_NAME_##name,
#include "predict/setup/choices.def"
#undef CHOICE
#undef FOLLOWS
    CHOICE_NAME_COUNT
};

enum { CHOICE_VALUES_MAX = 2, CHOICE_NOTES_MAX = 2 };

enum choice_value_form { CHOICE_COUNTED, CHOICE_NAMED, CHOICE_TRUTH, CHOICE_NUMBER };

/* A value of a choice in a resolved configuration. */
struct choice_value {
    const char *key; /* the name in JSON; the column of a sweep has the name chosen_KEY */
    const char *description;
    enum choice_value_form form;
    bool has_value; /* false: there is no configuration, or the choice does not matter for it */
    int64_t whole_number; /* for CHOICE_COUNTED and CHOICE_TRUTH */
    double real_number;   /* for CHOICE_NUMBER */
    const char *name;     /* for CHOICE_NAMED; NULL: the name is in `text` */
    char text[80];
};

/* The subject of a choice. The search that `predict` proposes varies choices of the layout and keeps all others;
 * `sweep` takes points that differ in choices about tokens as different workloads. */
enum choice_subject {
    CHOICE_LAYOUT,  /* how the work and the memory are divided, over ranks and in time */
    CHOICE_TOKENS,  /* what is computed for a token */
    CHOICE_BATCH,   /* how many sequences a step computes */
    CHOICE_NUMBERS, /* in which number formats the step computes and keeps its state */
    CHOICE_CODE     /* whose code and which kernels compute it */
};

struct choice_row {
    const char *key;
    const char *description;     /* description of the value; NULL: it is the option's help */
    const struct option *option; /* NULL: the value follows from other choices */
    struct choice_member {
        uint16_t offset, size;
    } request, chosen_member; /* size 0: the choice has no member */
    bool is_alias;
    enum choice_subject subject;
    int64_t printed_if_value_above; /* the option is printed only if the value is larger */
    /* Reads the text of the option into setup->request. text NULL: the option was not given. */
    enum status (*read)(struct setup *setup, const char *text, struct diag *diag);
    /* Appends the value of the option. Returns false if the request does not need the option. */
    bool (*show)(struct text *out, const struct request *r);
    const char *const *value_names;
    enum choice_value_form value_form;
    /* Fills in one or two values, and returns their number. c NULL: only keys, descriptions and forms are filled in. */
    size_t (*values)(struct choice_value *value, const struct choices *c);
    bool only_names_other_choices; /* the values only name other choices, as a strategy does */
    bool (*matters)(const struct choices *c); /* NULL: the choice always matters */
    /* JSON and sweeps have the value even if the choice does not matter */
    bool is_always_in_json_and_sweeps;
    struct {
        /* Returns true if the value has an effect. The note, which says that it has none, is then left out. NULL:
         * `matters` decides this. */
        bool (*applies_to)(const struct request *r, const struct choices *c);
        const char *text;
    } note[CHOICE_NOTES_MAX];
};

/* Returns the word for a value of form CHOICE_NAMED or CHOICE_TRUTH: a name, "true" or "false". */
const char *choice_value_name(const struct choice_value *value);

extern const struct option choice_options[CHOICE_OPTION_COUNT];
extern const struct choice_row choice_rows[CHOICE_NAME_COUNT];

/* Returns the row of the option with a name (without "--"); NULL: that is no option of a choice. */
const struct choice_row *choice_row_find(const char *option);

/* Returns whether request_put_options() can print the option of a row. It leaves out aliases, and options that a whole
 * search or sweep shares. */
bool choice_row_is_printed(const struct choice_row *row);

/* Stores the value of an option in the request: if the option is a text, `text`, whose pointer the request keeps; else
 * `value`. */
void choice_row_store(const struct choice_row *row, struct request *r, int64_t value,
                      const char *text);

/* Stores the values of a row, at most CHOICE_VALUES_MAX, and returns their number. c NULL: no value is known. */
size_t choice_row_fill_values(const struct choice_row *row, struct choice_value *value,
                              const struct choices *c);

/* Returns whether the note with this number applies to an option that was given: it has no effect on the choices, or
 * less than it says. Returns false if the row has no such note. */
bool choice_row_note_applies(const struct choice_row *row, size_t note, const struct request *r,
                             const struct choices *c);

/* Stores a number for each choice that matters, else 0: the value of its member of struct choices or, if it has none, a
 * digest of its values. A choice whose values only name others, the strategy, gets 0, so that two strategies with the
 * same choices have the same numbers. */
void choices_fill_identity(int64_t identity[CHOICE_NAME_COUNT], const struct choices *c);

/* Appends all choices that are known: "dp 8, hp 1, ...". */
void choices_put_all_as_text(struct text *out, const struct choices *c);

/* Appends "--strategy 2d --cp 8 --hp 8 ...": the options that reproduce the request, without those of the model, the
 * cluster, the length, the batch and the scope. Most options with their default value are left out; --strategy never
 * is, nor is --partition with subsequences. */
void request_put_options(struct text *out, const struct request *request);

/* Appends the share of saved activations that is offloaded: "adaptive", "full" or a number. It says
 * something only of configurations that offload activations by ratio. */
void choices_put_offload_ratio(struct text *out, bool adaptive, double ratio);

#endif
