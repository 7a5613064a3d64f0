/* cli/sweep/predictor.h: the options of a sweep's points read, and the points predicted. */
#ifndef CLI_SWEEP_PREDICTOR_H
#define CLI_SWEEP_PREDICTOR_H

#include "cli/sweep/grid.h"
#include "predict/sweep/point.h"

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

/* Loads the model and the cluster when all points share them, to find a fault of theirs before it
 * makes a row of every point. */
enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag);

/* Adds a note for each option that changes nothing in any point (cli/common/idle_options.h). */
void sweep_note_idle(const struct sweep_grid *grid, struct diag *note);

#endif
