/* predict/sweep/point.h: predicts one point of a sweep and writes it as a row of CSV. docs/sweeping.md has the
 * columns. */
#ifndef PREDICT_SWEEP_POINT_H
#define PREDICT_SWEEP_POINT_H

#include "base/text.h"
#include "predict/setup/setup.h"
#include "predict/sweep/axes.h"

#include <stdbool.h>
#include <stddef.h>

enum sweep_status {
    SWEEP_FITS,
    SWEEP_MAY_FIT,      /* what is predicted does not fit, and the run needs less (--at-most) */
    SWEEP_DOES_NOT_FIT, /* the column `reason` says what is missing */
    SWEEP_REFUSED,      /* the options cannot be predicted; `reason` is the message */
    SWEEP_FAILED,       /* the prediction could not be made: a process died, a file went away */
    SWEEP_STATUS_COUNT
};
extern const char *const sweep_status_names[SWEEP_STATUS_COUNT];

/* Returns the status of a point that could not be predicted: refused, or failed if the system failed. */
enum sweep_status sweep_status_of_failure(enum status status);

struct point_options {
    bool is_exact;        /* simulate every rank */
    bool simulates_unfit; /* also simulate points that do not fit in memory */
    /* the file of a recorded step that is predicted in place of the setup's request; NULL: none */
    const char *recording;
};

/* Predicts the setup's request, appends the point's row, without its line end, and returns the status in that row. */
enum sweep_status sweep_point_predict(struct text *row, const struct grid_axes *axes, size_t point,
                                      const struct setup *setup, struct point_options options);

/* Appends the row of a point that has no setup, with the messages of diag as its reason. */
void sweep_put_refused_row(struct text *row, const struct grid_axes *axes, size_t point,
                           enum sweep_status status, const struct diag *diag);

/* Appends the row of a point whose process died. */
void sweep_put_failed_row(struct text *row, const struct grid_axes *axes, size_t point,
                          const char *reason);

/* Appends the names of the columns, without line end. */
void sweep_put_columns(struct text *out, const struct grid_axes *axes);

#endif
