#include "predict/plan/shortened.h"

#include "predict/prediction.h"
#include "schedule/config/resolve_config.h"

/* Returns the number of micro-batches of the longer of two short steps, both of which fill the pipeline. */
static int64_t enough(const struct choices *c)
{
    return 2 + (c->pp + c->subsequences - 1) / c->subsequences;
}

/* Returns the number of micro-batches of the shorter step; 0 if the request is refused, if its step has less than 1.5
 * times the micro-batches of the two shorter steps together, or if micro-batches have different documents. */
static int64_t few_of(struct choices *c, const struct request *request)
{
    if (compose_resolve(c, request, NULL, NULL) != STATUS_OK || c->documents != NULL)
        return 0;
    int64_t few = enough(c);
    return 3 * (2 * few - 1) <= 2 * (int64_t)c->accumulation ? few : 0;
}

static struct request of_micro_batches(const struct request *asked, const struct choices *c,
                                       int64_t micro_batches)
{
    struct request request = *asked;
    request.dp = c->dp;
    request.micro_batch = c->micro_batch;
    request.global_batch = c->dp * c->micro_batch * micro_batches;
    return request;
}

static double step_s(const struct setup *setup, const struct request *asked,
                     const struct choices *c, int64_t micro_batches)
{
    struct request request = of_micro_batches(asked, c, micro_batches);
    struct prediction p = {.skip_arenas = true};
    double seconds =
        prediction_make(&p, setup, &request, false, NULL) == STATUS_OK ? p.sim.step_s : 0;
    prediction_release(&p);
    return seconds;
}

double shortened_step_s(const struct setup *setup, const struct request *request)
{
    struct choices c;
    int64_t few = few_of(&c, request);
    if (few == 0)
        return 0;
    int64_t all = c.accumulation;
    double less_s = step_s(setup, request, &c, few - 1), few_s = step_s(setup, request, &c, few);
    return less_s > 0 && few_s > less_s ? few_s + (double)(all - few) * (few_s - less_s) : 0;
}

bool shortened_lacks(struct verdict *verdict, const struct setup *setup,
                     const struct request *request)
{
    struct choices c;
    int64_t few = few_of(&c, request);
    bool lacks = false;
    if (few == 0)
        return false;
    struct request shorter = of_micro_batches(request, &c, few);
    struct prediction p = {.skip_arenas = true};
    if (prediction_memory(&p, setup, &shorter, NULL, NULL) == STATUS_OK)
        for (int limit = 0; limit < LIMIT_COUNT; limit++)
            lacks |= verdict_margin(&p.verdict, (enum prediction_limit)limit) <
                     -RESERVED_ERROR * (double)p.verdict.available[limit];
    *verdict = p.verdict;
    prediction_release(&p);
    return lacks;
}
