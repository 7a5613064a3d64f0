/* cli/sweep/predictor.h: reads the options of a sweep's points and predicts the points. */
#ifndef CLI_SWEEP_PREDICTOR_H
#define CLI_SWEEP_PREDICTOR_H

#include "cli/sweep/grid.h"
#include "predict/sweep/point.h"

/* The options of a point besides those of its model, cluster, choices and documents, such as --exact and
 * --unfit-too. */
extern const struct option_set sweep_point_options;

/* Predicts points one after the other. Neighbouring points of a grid mostly have the same model and cluster, which are
 * then not loaded again. */
struct sweep_predictor {
    const struct sweep_grid *grid;
    struct setup setup;
    /* the options from which the model and the cluster of `setup` were loaded */
    struct text options_of_loaded_setup;
    /* the last command of --record-cmd and its digest, since the files that it names may be large */
    struct text command;
    uint64_t command_digest;
};
void sweep_predictor_release(struct sweep_predictor *predictor);

/* Predicts a point and appends its row, without the line end. */
enum sweep_status sweep_predict_point(struct sweep_predictor *predictor, size_t point,
                                      struct text *row);

/* Checks what all points have in common: options, and the model and the cluster if no axis changes them. So a fault in
 * them is reported once, and not as a failed row for each point. */
enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag);

/* Adds a note for each option that has no effect at any point (cli/common/idle_options.h). */
void sweep_note_idle_options(const struct sweep_grid *grid, struct diag *note);

#endif
