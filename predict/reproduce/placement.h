/* predict/reproduce/placement.h: the panel, series and x of a point in its figure, from the patterns of the
 * catalogue.
 *
 * In a pattern "{seq_len}" stands for a column of a row of measurements, or, where there is no such column or the row
 * has nothing in it, for an option of its args; "{against:strategy}" for an option of its column `against`; and "{seq}"
 * and "{case}" for an axis and the case of a grid. Whole numbers of "{seq_len}" and "{chunk}" are written like "512K".
 * What a row lacks becomes an empty text, or what follows '=': "{sparsity=0.0}". */
#ifndef PREDICT_REPRODUCE_PLACEMENT_H
#define PREDICT_REPRODUCE_PLACEMENT_H

#include "predict/reproduce/catalogue.h"
#include "traces/external.h"

struct point_place {
    const char *panel, *series, *x; /* never NULL */
};

/* placement_of_row() fills *at for a row of measurements, placement_of_cell() for a cell of case number `which` of a
 * grid. The texts are in *arena. */
void placement_of_row(struct point_place *at, const struct placement_pattern *pattern,
                      const struct external_run *row, struct arena *arena);
void placement_of_cell(struct point_place *at, const struct catalogue_grid *grid, size_t which,
                       size_t cell, struct arena *arena);

#endif
