/* cli/sweep/predictor.h: reads the options of a sweep's points and predicts the points. */
#ifndef CLI_SWEEP_PREDICTOR_H
#define CLI_SWEEP_PREDICTOR_H

#include "cli/sweep/grid.h"
#include "predict/sweep/point.h"

/* --exact and --unfit-too, which are options of every point. */
extern const struct option_set sweep_point_options;

/* Predicts points one after the other. Neighbours in a grid mostly share the model and the cluster, which are then
 * not loaded again. */
struct sweep_predictor {
    const struct sweep_grid *grid;
    struct setup setup;
    struct text loaded; /* the options that setup's model and cluster came from */
};
void sweep_predictor_release(struct sweep_predictor *predictor);

/* Predicts a point and appends its row, without the line end. */
enum sweep_status sweep_predict(struct sweep_predictor *predictor, size_t point, struct text *row);

/* Loads the model and the cluster if all points share them, so that a fault in them is reported once and not as a
 * failed row per point. */
enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag);

/* Adds a note for each option that changes nothing in any point (cli/common/idle_options.h). */
void sweep_note_idle(const struct sweep_grid *grid, struct diag *note);

#endif
