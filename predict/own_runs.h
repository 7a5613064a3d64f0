/* predict/own_runs.h: the user's own measured runs, by which intervals shift and narrow (models/interval.h).
 *
 * A file is either what `longhaul predict --record` wrote and the user has filled in (a JSON object a line; lines
 * without a measured time and without measured memory are passed over), or a table of residuals as `longhaul validate
 * --residuals` writes it. */
#ifndef PREDICT_OWN_RUNS_H
#define PREDICT_OWN_RUNS_H

#include "base/diag.h"
#include "traces/residuals.h"

/* Adds the runs of a file. A file without a measured run is an error, as is a measured record without the features of
 * its run: one of an older version, of a recorded step or of a schedule file. */
enum status own_runs_load(struct residuals *own, const char *path, struct diag *diag);

#endif
