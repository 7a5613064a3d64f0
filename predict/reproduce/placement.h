/* predict/reproduce/placement.h: the panel, series and x of a point in its figure, from the patterns of the catalogue.
 *
 * A pattern is text with keys in braces, which are replaced by values. For a row of measurements, the value of
 * "{seq_len}" is the row's column of that name; if the row has no such column, or nothing in it, it is the option of
 * that name in the row's args. The value of "{against:strategy}" is an option in the row's column `against`. For a
 * grid, "{seq}" is the value of an axis, and "{case}" is the name of the case. Whole numbers of "{seq_len}" and
 * "{chunk}" are written like "512K". A key without a value becomes an empty text, or the text after its '=':
 * "{sparsity=0.0}". */
#ifndef PREDICT_REPRODUCE_PLACEMENT_H
#define PREDICT_REPRODUCE_PLACEMENT_H

#include "predict/reproduce/catalogue.h"
#include "traces/external.h"

struct place_in_figure {
    const char *panel, *series, *x; /* never NULL */
};

/* placement_in_figure_of_row() fills *at for a row of measurements, placement_in_figure_of_cell() for a cell of case
 * number `which` of a grid. The texts are in *arena. */
void placement_in_figure_of_row(struct place_in_figure *at,
                                const struct pattern_of_place_in_figure *pattern,
                                const struct external_run *row, struct arena *arena);
void placement_in_figure_of_cell(struct place_in_figure *at, const struct catalogue_grid *grid,
                                 size_t which, size_t cell, struct arena *arena);

#endif
