/* predict/plan/shortened.h: the time and the memory of a step of many micro-batches from steps of a few.
 *
 * When a pipeline has filled, every further micro-batch takes as long as the one before, so with m of them,
 * enough for that, a step of M takes T(m) + (M - m) (T(m) - T(m - 1)). Schedules of few are as many times
 * smaller. */
#ifndef PREDICT_PLAN_SHORTENED_H
#define PREDICT_PLAN_SHORTENED_H

#include "predict/prediction.h"

#include <stdbool.h>

/* The largest error of such a time, as a share of the step (tests/cli/test_space.c). */
#define SHORTENED_ERROR 0.01

/* Returns the seconds of the request's step, extrapolated from a shorter one; 0: the step is not at least half as large
 * again as that, or it is refused. */
double shortened_step_s(const struct setup *setup, const struct request *request);

/* Whether that step does not fit because one of few micro-batches, enough to fill the pipeline, does not:
 * what it has in flight is there in the longer one too. By more than RESERVED_ERROR, since what an
 * allocator caches differs. *verdict: the shorter one's, when true. False as well where a shorter one tells
 * nothing. */
bool shortened_lacks(struct verdict *verdict, const struct setup *setup,
                     const struct request *request);

#endif
