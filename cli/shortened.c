#include "cli/shortened.h"

#include "cli/prediction.h"

/* Micro-batches that fill a pipeline, and one more. */
static int64_t enough(const struct choices *c)
{
    return 1 + (c->pp + c->subsequences - 1) / c->subsequences;
}

static double step_s(const struct setup *setup, const struct request *asked,
                     const struct choices *c, int64_t micro_batches)
{
    struct request request = *asked;
    struct prediction p = {0};
    request.dp = c->dp;
    request.micro_batch = c->micro_batch;
    request.global_batch = c->dp * c->micro_batch * micro_batches;
    double seconds =
        prediction_make(&p, setup, &request, false, NULL) == STATUS_OK ? p.sim.step_s : 0;
    prediction_release(&p);
    return seconds;
}

double shortened_step_s(const struct setup *setup, const struct request *request)
{
    struct choices c;
    if (compose_resolve(&c, request, NULL, NULL) != STATUS_OK)
        return 0;
    int64_t few = enough(&c), all = c.accumulation;
    if (3 * (2 * few - 1) > 2 * all)
        return 0;
    double less_s = step_s(setup, request, &c, few - 1), few_s = step_s(setup, request, &c, few);
    return less_s > 0 && few_s > less_s ? few_s + (double)(all - few) * (few_s - less_s) : 0;
}
