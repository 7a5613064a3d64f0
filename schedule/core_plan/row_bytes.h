/* schedule/core_plan/row_bytes.h: bytes of the rows that travel between the context ranks of a core plan. */
#ifndef SCHEDULE_CORE_PLAN_ROW_BYTES_H
#define SCHEDULE_CORE_PLAN_ROW_BYTES_H

#include "models/transformer.h"

/* The bytes of a row that is sent. key: a key with its value. query: a query, to the rank that computes it. result: the
 * result of a query, back to its owner. */
struct row_bytes {
    double key, query, result;
};

/* Returns the bytes of the rows of a layer in a forward. element: the bytes of each number. A result includes its
 * log-sum-exps, in fp32. */
static inline struct row_bytes row_bytes_of_layer(const struct transformer *model, double element)
{
    const double key = (double)model->head_dim, value = (double)transformer_v_head_dim(model),
                 heads = (double)model->heads;
    return (struct row_bytes){element * (double)model->kv_heads * (key + value),
                              element * heads * key, heads * (element * value + 4)};
}

#endif
