/* predict/plan/all_batches.h: the best rows of a search over packed documents, compared on many batches.
 *
 * The rows that are within DOCUMENTS_MARGIN of the best one on their typical batch, at most COMPARED_ROWS, are
 * predicted on the first COMPARED_FIRST batches. A row that is no faster than the best of them on any of these is
 * dropped; the others, and the best, are predicted on all batches. For the first COMPARED_ROWS rows of the new ranking,
 * and for the best of each strategy, the causes of the typical step are then found.
 *
 * The folder predict/plan/ searches for the fastest configuration, the longest sequence and the fewest GPUs. */
#ifndef PREDICT_PLAN_ALL_BATCHES_H
#define PREDICT_PLAN_ALL_BATCHES_H

#include "predict/plan/best.h"

enum { COMPARED_FIRST = 4, COMPARED_ROWS = 16 };

/* Compares the rows, which best_rank() has sorted by their typical batches, on all batches and sorts them again. It
 * sets `spread` and won_batches of the rows that were compared, at most COMPARED_ROWS, and rate_bound of all rows. If a
 * step cannot be predicted, or after a signal that base/interrupt.h has noted, the order stays as it was. */
enum status all_batches_rank(struct best *best, struct setup *setup, struct diag *diag);

#endif
