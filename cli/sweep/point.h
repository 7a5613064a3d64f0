/* cli/sweep/point.h: one point of a sweep, predicted, as a row of CSV. docs/sweeping.md has the
 * columns. */
#ifndef CLI_SWEEP_POINT_H
#define CLI_SWEEP_POINT_H

#include "base/text.h"
#include "cli/sweep/grid.h"
#include "predict/setup/setup.h"

#include <stddef.h>

enum sweep_status {
    SWEEP_FITS,
    SWEEP_DOES_NOT_FIT, /* reason: what is missing */
    SWEEP_REFUSED,      /* the options contradict each other; reason: the message */
    SWEEP_FAILED,       /* the prediction could not be made: a process died, a file went away */
    SWEEP_STATUS_COUNT
};
extern const char *const sweep_status_names[SWEEP_STATUS_COUNT];

/* --exact and --unfit-too, which are options of every point. */
extern const struct option_set sweep_point_options;

/* What points are predicted with, one after the other. Neighbours in a grid mostly share the model
 * and the cluster, which are then kept. */
struct sweep_predictor {
    const struct sweep_grid *grid;
    struct setup setup;
    struct text loaded; /* the options that setup's model and cluster came from */
};
void sweep_predictor_release(struct sweep_predictor *predictor);

/* Appends the row, without its line end. */
enum sweep_status sweep_predict(struct sweep_predictor *predictor, size_t point, struct text *row);

/* Appends the row of a point whose process died. */
void sweep_put_failed(struct text *row, const struct sweep_grid *grid, size_t point,
                      const char *reason);

/* Appends the names of the columns, without line end. */
void sweep_put_columns(struct text *out, const struct sweep_grid *grid);

/* Loads the model and the cluster when all points share them, to find a fault of theirs before it
 * makes a row of every point. */
enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag);

/* Adds a note for each option that changes nothing in any point (cli/idle_options.h). */
void sweep_note_idle(const struct sweep_grid *grid, struct diag *note);

#endif
