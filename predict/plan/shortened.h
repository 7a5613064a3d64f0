/* predict/plan/shortened.h: the time and the memory of a step of many micro-batches, extrapolated from steps of a
 * few.
 *
 * Once a pipeline is full, every further micro-batch takes as long as the one before. So if m micro-batches fill it,
 * a step of M takes T(m) + (M - m) (T(m) - T(m - 1)), and only schedules of m and m - 1 micro-batches are built. */
#ifndef PREDICT_PLAN_SHORTENED_H
#define PREDICT_PLAN_SHORTENED_H

#include "predict/prediction.h"

#include <stdbool.h>

/* The largest error of such a time, as a share of the step (tests/cli/test_space.c). */
#define SHORTENED_ERROR 0.01

/* Returns the seconds of the request's step, extrapolated from two shorter steps; 0: the request is refused, has packed
 * documents, or its step has less than 1.5 times the micro-batches of the two shorter steps together; or these could
 * not be predicted. */
double shortened_step_s(const struct setup *setup, const struct request *request);

/* True if the request's step cannot fit because a step of few micro-batches, enough to fill the pipeline, does not
 * fit: the longer step has the same activations in flight. The shorter one must exceed the memory by more than
 * RESERVED_ERROR, since allocator caches differ. *verdict is then that of the shorter step. False also if no shorter
 * step can be judged. */
bool shortened_lacks(struct verdict *verdict, const struct setup *setup,
                     const struct request *request);

#endif
