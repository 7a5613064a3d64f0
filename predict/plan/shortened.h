/* predict/plan/shortened.h: the time and the memory of a step of many micro-batches from steps of a few.
 *
 * When a pipeline has filled, every further micro-batch takes as long as the one before, so with m of them,
 * enough for that, a step of M takes T(m) + (M - m) (T(m) - T(m - 1)). Schedules of few are as many times
 * smaller. */
#ifndef PREDICT_PLAN_SHORTENED_H
#define PREDICT_PLAN_SHORTENED_H

#include "predict/prediction.h"

#include <stdbool.h>

/* What such a time is off by at most (tests/cli/test_space.c): a share of the step. */
#define SHORTENED_ERROR 0.01

/* Seconds of the request's step; 0: it is not half as large again as what it would be told from, or is
 * refused. */
double shortened_step_s(const struct setup *setup, const struct request *request);

/* Whether that step does not fit because one of few micro-batches, enough to fill the pipeline, does not:
 * what it has in flight is there in the longer one too. By more than RESERVED_ERROR, since what an
 * allocator caches differs. *verdict: the shorter one's, when true. False as well where a shorter one tells
 * nothing. */
bool shortened_lacks(struct verdict *verdict, const struct setup *setup,
                     const struct request *request);

#endif
