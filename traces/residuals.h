/* traces/residuals.h: residuals of measured steps against their predictions, one run per row of a CSV file.
 *
 * `longhaul validate --residuals FILE` writes the rows and traces/published/residuals.csv ships them. A residual is
 * log(measured / predicted), of the seconds of a step and of the bytes of device memory: positive where the
 * program predicts too little. models/interval.h makes intervals of them. */
#ifndef TRACES_RESIDUALS_H
#define TRACES_RESIDUALS_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum residual_of { RESIDUAL_TIME, RESIDUAL_MEMORY, RESIDUAL_COUNT };

/* Texts are never NULL. */
struct residual {
    const char *source;           /* the source that measured: "FPDT" */
    const char *run;              /* name that distinguishes the run from others of its source */
    const char *device;           /* kind of device: "a100" */
    const char *framework;        /* the profile with which the run is predicted: "deepspeed" */
    bool several;                 /* the run is on several nodes */
    double value[RESIDUAL_COUNT]; /* NAN: not measured */
};

/* All-zero is empty. */
struct residuals {
    struct arena arena;
    struct residual *row;
    size_t count, capacity;
};

void residuals_release(struct residuals *residuals);

/* Adds a row; its texts are copied. */
void residuals_add(struct residuals *residuals, const struct residual *row);

/* Adds the rows of data[0..size); name stands for the text in messages. */
enum status residuals_parse(struct residuals *residuals, const char *name, const char *data,
                            size_t size, struct diag *diag);

/* Adds the rows that ship with the program; adds none if the data folder lacks the file. */
enum status residuals_load_shipped(struct residuals *residuals, struct diag *diag);

/* Appends all rows as CSV, residuals with four decimals. */
void residuals_print(const struct residuals *residuals, struct text *out);
enum status residuals_save(const struct residuals *residuals, const char *path, struct diag *diag);

#endif
