/* predict/plan/shortened.h: the time and the memory of a long step, extrapolated from steps of few layers and few
 * micro-batches, so that only short schedules are built.
 *
 * Once a pipeline is full, every further micro-batch takes as long as the one before; and every further period of
 * layers in each stage takes as long as the one before. So from steps T(l, m) of l layers and m micro-batches
 *
 *     T(l) = T(l, m) + (M - m) (T(l, m) - T(l, m - 1)),    T = T(l) + (L - l) / p (T(l) - T(l - p))
 *
 * for M micro-batches and L layers, without jitter, where p is the number of layers in one period of all stages. Memory
 * grows with layers likewise, and does not depend on the micro-batches once the pipeline is full.
 *
 * A short list (predict/prediction.h) represents a whole step exactly, and that is proved, but it needs at least 7
 * micro-batches or layers. The steps here are shorter and only approximate, which is enough for a bound. So a search
 * first drops candidates by them, and predicts the others by short lists. */
#ifndef PREDICT_PLAN_SHORTENED_H
#define PREDICT_PLAN_SHORTENED_H

#include "predict/prediction.h"

#include <stdbool.h>

/* Limits of the error of an extrapolated time, as shares of the time of the whole step. SHORTENED_ERROR_SHARE: how much
 * longer it may be. SHORTENED_DIFFERENCE_SHARE: how much longer or shorter it may be than the time of the whole step
 * without jitter. tests/cli/test_space.c checks both. */
#define SHORTENED_ERROR_SHARE 0.02
#define SHORTENED_DIFFERENCE_SHARE 0.05

/* Returns the seconds of the request's step without jitter, extrapolated from shorter steps. Returns 0 if the request
 * is refused or is not of a whole step, if the shorter steps together have more than 2/3 of the step's layers times
 * micro-batches, or if they cannot be predicted. Micro-batches with documents are not made fewer, since they differ. */
double shortened_step_s(const struct setup *setup, const struct request *request);

/* True if shorter steps show that the request's step fits with a probability below `odds`, which is at least 0.5. Then
 * *verdict is that of the step: extrapolated from steps of few layers, without an allocator's cache, or that of a step
 * of all layers and few micro-batches. The latter must exceed the memory by more than RESERVED_VERDICT_MARGIN_SHARE,
 * since caches differ. Returns false if no shorter step can be judged. */
bool shortened_lacks_memory(struct verdict *verdict, const struct setup *setup,
                            const struct request *request, double odds);

#endif
