/* models/number_origin.h: how a number of a device or cluster was obtained, which its member "how" says. */
#ifndef MODELS_NUMBER_ORIGIN_H
#define MODELS_NUMBER_ORIGIN_H

#include "base/diag.h"
#include "base/json.h"

#include <stdbool.h>

enum number_origin {
    NUMBER_STATED,    /* the source states it, or what it follows from; the default */
    NUMBER_MEASURED,  /* measured on such a machine */
    NUMBER_INFERRED,  /* inferred from other figures of the source, or from another machine */
    NUMBER_ASSUMED,   /* no source states it */
    NUMBER_ESTIMATED, /* a rough number that no source states */
    NUMBER_ORIGIN_COUNT
};
extern const char *const number_origin_names[NUMBER_ORIGIN_COUNT];

/* Reads the member "how" of a number's object; without it the number is stated. */
enum status number_origin_read_json(struct json_node object, enum number_origin *how,
                                    struct diag *diag);

/* True if no source states the number and it was not measured. */
bool number_origin_is_guessed(enum number_origin how);

#endif
