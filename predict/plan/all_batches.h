/* predict/plan/all_batches.h: the best rows of a search over packed documents, compared on many batches.
 *
 * The rows that are within OTHER_BATCHES_RATE_MARGIN_SHARE of the best one on their typical batch, at most
 * COMPARED_ROWS, are predicted on the first COMPARED_FIRST batches. The fastest of them on these batches, and every row
 * that is faster than it on at least one of them, are then predicted on all batches. For the first COMPARED_ROWS rows
 * of the new ranking, and for the best of each strategy, the causes of the typical step are found.
 *
 * The folder predict/plan/ searches for the fastest configuration, the longest sequence and the fewest GPUs. */
#ifndef PREDICT_PLAN_ALL_BATCHES_H
#define PREDICT_PLAN_ALL_BATCHES_H

#include "predict/plan/best.h"

enum { COMPARED_FIRST = 4, COMPARED_ROWS = 16 };

/* Compares the rows, which best_sort_rows() has sorted by their typical batches, on all batches and sorts them again.
 * Sets `spread` and won_batch_count of the compared rows, rate_bound of all rows, and the causes of the rows that the
 * top of this file names. If a step cannot be predicted, or after a signal that base/interrupt.h has noted, order,
 * spreads and rates stay as they were. */
enum status all_batches_compare_and_rank(struct best *best, struct setup *setup, struct diag *diag);

#endif
