/* tests/exec/request_rows.h: tables of requests for a small model in fp32, each checked against the reference
 * (tests/exec/matrix.h). Included by test files only. */
#ifndef TESTS_EXEC_REQUEST_ROWS_H
#define TESTS_EXEC_REQUEST_ROWS_H

#include "tests/exec/matrix.h"

/* Rows are written {request, weights, activations, profile}. */
struct request_row {
    struct request request; /* the members below replace those of the same name in it */
    int weights;            /* enum weights_choice */
    int activations;        /* enum activations_choice; 0: all are kept */
    const char *profile;    /* NULL: "published" */
};

/* Checks a row if it is in the sample of the day, one of `days`. */
static inline void check_request_row(const struct request_row *row, const struct transformer *model,
                                     size_t days)
{
    struct request request = row->request;
    request.weights = row->weights;
    request.activations = row->activations;
    request.profile = row->profile;
    request.model = model;
    request.optimizer = -1;
    request.attention_impl = ATTENTION_CPU;
    request.dtype = DTYPE_F32;
    request.gpus_per_node = 2;
    request.sm = 80;
    check_request_if_sampled_today(&request, days);
}

#endif
