/* predict/reproduce/placement.h: the panel, series and x of a point in its figure, from the patterns of the
 * catalogue.
 *
 * In a pattern "{seq_len}" stands for a column or an option of a row of measurements, and "{seq}" and "{case}" for an
 * axis and the case of a grid. Whole numbers of "{seq_len}" and "{chunk}" are written like "512K". A column or option
 * that a row lacks becomes an empty text. */
#ifndef PREDICT_REPRODUCE_PLACEMENT_H
#define PREDICT_REPRODUCE_PLACEMENT_H

#include "predict/reproduce/catalogue.h"
#include "traces/measurements.h"

struct point_place {
    const char *panel, *series, *x; /* never NULL */
};

/* Texts live in *arena. */
void placement_of_row(struct point_place *at, const struct placement_pattern *pattern,
                      const struct measurement *row, struct arena *arena);
void placement_of_cell(struct point_place *at, const struct catalogue_grid *grid, size_t which,
                       size_t cell, struct arena *arena);

#endif
