/* cli/sweep/grid.h: the points of a sweep: every combination of the values that options take.
 *
 * A grid is the options that all points share and the axes (predict/sweep/axes.h), `--vary KEY=VALUES` each. KEY
 * may also be a number of the cluster (docs/clusters.md). */
#ifndef CLI_SWEEP_GRID_H
#define CLI_SWEEP_GRID_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "predict/sweep/axes.h"

#include <stddef.h>

struct sweep_grid {
    struct arena arena; /* holds texts and arrays */
    /* the sets of options that a point may have; ends in NULL */
    const struct option_set *const *option_sets;
    struct grid_axes axes;
    char **shared_options; /* the options that all points share, such as "--seq=128K" */
    size_t shared_option_count;
    size_t point_count;
};

/* Makes the grid. Its points share the given options that `sets` have, and vary[count] are its axes, texts of
 * --vary. *grid must be all-zero; release it even after an error. */
enum status sweep_grid_make(struct sweep_grid *grid, const struct option_set *const *sets,
                            const struct options *options, const char *const *vary, size_t count,
                            struct diag *diag);
void sweep_grid_release(struct sweep_grid *grid);

/* Fills *options for a point. The texts of the options are in the grid and in *arena. */
enum status sweep_grid_fill_options(const struct sweep_grid *grid, size_t point,
                                    struct arena *arena, struct options *options,
                                    struct diag *diag);

/* Appends the command that makes the grid: the shared options in the order of the tables, and then
 * --vary for each axis. */
void sweep_grid_put_sweep_command(struct text *out, const struct sweep_grid *grid);

/* Returns a digest that identifies the grid. It depends on the program's version, the columns of the rows, the options,
 * the values of the axes, and the bytes of the files that options name. */
uint64_t sweep_grid_identity(const struct sweep_grid *grid);

#endif
