/* predict/plan/fastest.h: the fastest of a space of configurations: estimate, bound, then simulate.
 *
 * Every candidate has an upper bound of its rate, which is lowered step by step; each step takes longer to compute than
 * the one before:
 *
 *     1. closed forms (predict/bounds.h), which the space has computed;
 *     2. the simulated time of one layer, shared by all candidates of a layout (predict/plan/layer_time.h);
 *     3. short steps, from which the whole one is extrapolated (predict/plan/shortened.h);
 *     4. the whole step: its memory, and if it fits, its simulation.
 *
 * The candidates with the highest bounds take their next step, in rounds of a fixed size, so that the same question
 * gives the same answer on any number of cores. The search ends when no bound exceeds the best simulated rate by more
 * than the gap that the user allows. Then, unless documents are packed or that gap is 100 % or more, the best of each
 * other strategy is searched for likewise, for a limited number of rounds. */
#ifndef PREDICT_PLAN_FASTEST_H
#define PREDICT_PLAN_FASTEST_H

#include "predict/plan/best.h"

/* Fills best->row[i] for candidate i of best->space, and best->less_probable_best; best->outcome_count_of_kind stays as
 * it was. A candidate that a limit kept from being decided is OUTCOME_NOT_SEARCHED. */
enum status fastest_find(struct best *best, struct setup *setup, const struct space_open *open,
                         struct diag *diag);

#endif
