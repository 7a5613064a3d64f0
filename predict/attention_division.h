/* predict/attention_division.h: how far the division of attention among context ranks is from what is possible. */
#ifndef PREDICT_ATTENTION_DIVISION_H
#define PREDICT_ATTENTION_DIVISION_H

#include "predict/prediction.h"

/* Rows are of keys and values, in a forward of one layer, in units of the rows that a rank owns. */
struct attention_division {
    double pairs_over_mean; /* the most visible pairs of a rank, over the mean of all ranks */
    /* rows that ranks receive: the mean, and the number of the rank that receives the most. A query that is sent counts
     * as many rows as its bytes and those of its result are worth */
    double mean_rows_received, most_rows_received;
    /* a lower bound of mean_rows_received in any division that leaves queries where they are (coverage_fewest_keys())
     */
    double mean_rows_lower_bound;
    /* a lower bound of most_rows_received in any division (coverage_fewest_bytes()) */
    double most_rows_lower_bound;
    /* The step over the same one in which all ranks see the mean of pairs and none waits for keys and values; 0:
     * unknown, since all ranks were taken as the fullest. */
    double step_over_even_step;
};

/* Returns false if no context ranks divide packed or dealt sequences. Layers without a window count, or all if each has
 * one. */
bool attention_division(struct attention_division *division, const struct prediction *p);

#endif
