/* predict/attention_division.h: how far the division of attention among context ranks is from what is possible. */
#ifndef PREDICT_ATTENTION_DIVISION_H
#define PREDICT_ATTENTION_DIVISION_H

#include "predict/prediction.h"

/* A row is the keys and values of one token. Numbers of rows are those of one layer's forward, divided by the rows that
 * a rank owns. */
struct attention_division {
    /* the most visible pairs of a rank, divided by the mean over all ranks */
    double pairs_over_mean;
    /* rows that a rank receives: the mean over all ranks, and the most. A query that is sent counts as the number of
     * rows that have as many bytes as the query and its result */
    double mean_rows_received, most_rows_received;
    /* a lower bound of mean_rows_received for all divisions that leave queries on their ranks
     * (coverage_bound_of_received_keys()) */
    double mean_rows_received_lower_bound;
    /* a lower bound of most_rows_received for all divisions (coverage_bound_of_busiest_rank_bytes()) */
    double most_rows_received_lower_bound;
    /* The seconds of the step without jitter, divided by those that it would take if every rank had the mean number of
     * visible pairs and waited for no keys and values. 0: not known, since the latter step was not simulated
     * (prediction.even_step_s). */
    double step_to_even_step_ratio;
};

/* Fills *division. Returns false, and leaves *division all-zero, if no context ranks divide packed or dealt sequences,
 * or if the schedule came from a file. The numbers of rows are those of layers without a window or, if all layers have
 * a window, of any layer. */
bool attention_division(struct attention_division *division, const struct prediction *p);

#endif
