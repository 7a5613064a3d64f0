#include "predict/plan/shortened.h"

#include "predict/plan/room.h"
#include "predict/prediction.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"

#include <math.h>

enum { FEW_PERIODS = 3 }; /* periods of layers of each stage in the shorter of two steps */

/* The numbers of layers and of micro-batches in the two shorter steps, those of the shorter one first. If layers, or
 * micro-batches, are not shortened, both numbers are those of the step itself. */
struct short_step_sizes {
    int64_t layers[2], micro_batches[2];
};

static bool is_count_shortened(const int64_t of[2])
{
    return of[0] < of[1];
}

/* Shortens the layers to `few` periods, and to one more, each plus the layers that do not divide into whole periods.
 * Does nothing if that would not be fewer than all, or if the layers have no period. */
static void shorten_layers(struct short_step_sizes *shape, const struct choices *c, int64_t few)
{
    int64_t all = c->model->layers;
    int64_t period = step_layers_per_period(c) * c->pp * c->virtual_stages;
    if (period == 0 || all % period + (few + 1) * period >= all)
        return;
    shape->layers[0] = all % period + few * period;
    shape->layers[1] = shape->layers[0] + period;
}

/* Shortens the micro-batches, to numbers with which both steps fill the pipeline. Without stages and subsequences they
 * are 3 and 4: with fewer, the reductions of gradients at the end of the step would overlap the first micro-batches.
 * Does nothing if the step has no more, or if micro-batches have documents and so differ. */
static void shorten_micro_batches(struct short_step_sizes *shape, const struct choices *c)
{
    int64_t few = c->pp == 1 && c->subsequences == 1
                      ? 4
                      : 2 + (c->pp + c->subsequences - 1) / c->subsequences;
    if (c->documents != NULL || few >= (int64_t)c->accumulation)
        return;
    shape->micro_batches[0] = few - 1;
    shape->micro_batches[1] = few;
}

/* Returns the sum of layers x micro-batches over the shorter steps of a shape, of which there are 1, 2 or 4. */
static double layer_passes_of_short_steps(const struct short_step_sizes *s)
{
    double layers =
        (double)(is_count_shortened(s->layers) ? s->layers[0] + s->layers[1] : s->layers[0]);
    return layers * (double)(is_count_shortened(s->micro_batches)
                                 ? s->micro_batches[0] + s->micro_batches[1]
                                 : s->micro_batches[0]);
}

/* Shortens layers, micro-batches or both, whichever is least work. Returns false if the request is refused or is not of
 * a whole step, or if the shorter steps would be more than 2/3 of the work of the step. */
static bool choose_short_step_sizes(struct short_step_sizes *shape, struct choices *c,
                                    const struct request *request)
{
    if (resolve_choices(c, request, NULL, NULL) != STATUS_OK || c->scope != SCOPE_WHOLE_STEP)
        return false;
    const struct short_step_sizes whole = {{c->model->layers, c->model->layers},
                                           {c->accumulation, c->accumulation}};
    struct short_step_sizes tries[3] = {whole, whole, whole};
    shorten_micro_batches(&tries[1], c);
    shorten_micro_batches(&tries[2], c);
    /* with offload ratios and subsequences, layers are not shortened: the share of a unit's activations whose copies
     * its computation hides does not grow evenly with layers */
    if (c->activations != CHOICE_ACTIVATIONS_RATIO || c->subsequences == 1) {
        shorten_layers(&tries[0], c, FEW_PERIODS);
        shorten_layers(&tries[2], c, FEW_PERIODS);
    }
    *shape = whole;
    for (int i = 0; i < 3; i++)
        if (layer_passes_of_short_steps(&tries[i]) < layer_passes_of_short_steps(shape))
            *shape = tries[i];
    return 3 * layer_passes_of_short_steps(shape) <= 2 * layer_passes_of_short_steps(&whole);
}

static struct request request_of_micro_batches(const struct request *asked, const struct choices *c,
                                               int64_t micro_batches)
{
    struct request request = *asked;
    request.dp = c->dp;
    request.micro_batch = c->micro_batch;
    request.global_batch = c->dp * c->micro_batch * micro_batches;
    return request;
}

/* Returns the seconds of a step of `layers` layers and `micro_batches` micro-batches, without its jitter, which grows
 * less than the step does. Returns 0 if the step cannot be predicted. */
static double step_without_jitter_s(const struct setup *setup, const struct request *asked,
                                    const struct choices *c, int64_t layers, int64_t micro_batches)
{
    struct request request = request_of_micro_batches(asked, c, micro_batches);
    const struct prediction_question question = {
        .setup = setup, .request = &request, .wants_step_time_only = true, .layer_count = layers};
    struct prediction p = {0};
    double seconds =
        prediction_make(&p, &question, NULL) == STATUS_OK ? p.sim.step_s - p.jitter_s : 0;
    prediction_release(&p);
    return seconds;
}

/* Returns the seconds of a step of `layers` layers with all micro-batches, extrapolated if micro-batches are shortened;
 * 0: not known. */
static double step_s_of_layer_count(const struct setup *setup, const struct request *asked,
                                    const struct choices *c, const struct short_step_sizes *shape,
                                    int64_t layers)
{
    double few_s = step_without_jitter_s(setup, asked, c, layers, shape->micro_batches[1]);
    if (!is_count_shortened(shape->micro_batches) || few_s <= 0)
        return few_s;
    double less_s = step_without_jitter_s(setup, asked, c, layers, shape->micro_batches[0]);
    double more = (double)((int64_t)c->accumulation - shape->micro_batches[1]);
    return less_s > 0 && few_s > less_s ? few_s + more * (few_s - less_s) : 0;
}

/* Returns the seconds or bytes of a step of all layers, extrapolated from those of two shorter steps. fewest: with
 * shape->layers[0] layers; few: with shape->layers[1] layers. */
static double extrapolate_to_all_layers(const struct short_step_sizes *shape,
                                        const struct choices *c, double fewest, double few)
{
    double more = (double)(c->model->layers - shape->layers[1]);
    return few + more * (few - fewest) / (double)(shape->layers[1] - shape->layers[0]);
}

double shortened_step_s(const struct setup *setup, const struct request *request)
{
    struct choices c;
    struct short_step_sizes shape;
    if (!choose_short_step_sizes(&shape, &c, request))
        return 0;
    double few_s = step_s_of_layer_count(setup, request, &c, &shape, shape.layers[1]);
    if (!is_count_shortened(shape.layers) || few_s <= 0)
        return few_s;
    double less_s = step_s_of_layer_count(setup, request, &c, &shape, shape.layers[0]);
    return less_s > 0 && few_s > less_s ? extrapolate_to_all_layers(&shape, &c, less_s, few_s) : 0;
}

/* ---- memory ---- */

static bool predict_verdict_of_short_step(struct verdict *verdict, const struct setup *setup,
                                          const struct request *asked, const struct choices *c,
                                          int64_t layers, int64_t micro_batches)
{
    struct request request = request_of_micro_batches(asked, c, micro_batches);
    const struct prediction_question question = {
        .setup = setup, .request = &request, .skips_offsets = true, .layer_count = layers};
    struct prediction p = {0};
    bool made = prediction_memory(&p, &question, NULL, NULL) == STATUS_OK;
    *verdict = p.verdict;
    prediction_release(&p);
    return made;
}

/* Does what shortened_lacks_memory() does, by a step of `micro` micro-batches and all layers. As many activations are
 * in flight as in the whole step, but caches differ, so memories count as larger by RESERVED_VERDICT_MARGIN_SHARE. */
static bool few_micro_batches_lack_memory(struct verdict *verdict, const struct setup *setup,
                                          const struct request *request, const struct choices *c,
                                          int64_t micro, double odds)
{
    return predict_verdict_of_short_step(verdict, setup, request, c, 0, micro) &&
           room_surely_lacks_memory(setup, c, verdict, RESERVED_VERDICT_MARGIN_SHARE, odds);
}

/* Does what shortened_lacks_memory() does, by two steps of few layers, from whose bytes those of the step are
 * extrapolated. The bytes of the device are without the allocator's cache, which does not grow evenly with layers.
 * Memories count as larger by the error of the extrapolation. */
static bool few_layers_lack_memory(struct verdict *verdict, const struct setup *setup,
                                   const struct request *request, const struct choices *c,
                                   const struct short_step_sizes *shape, double odds)
{
    double share = c->subsequences > 1 ? RESERVED_VERDICT_MARGIN_SHARE : SHORTENED_ERROR_SHARE;
    struct verdict of[2];
    for (int i = 0; i < 2; i++)
        if (!predict_verdict_of_short_step(&of[i], setup, request, c, shape->layers[i],
                                           shape->micro_batches[1]))
            return false;
    *verdict = of[1];
    verdict->cache_bytes = 0;
    for (int limit = 0; limit < LIMIT_COUNT; limit++) {
        uint64_t cache[2] = {limit == LIMIT_DEVICE ? of[0].cache_bytes : 0,
                             limit == LIMIT_DEVICE ? of[1].cache_bytes : 0};
        double bytes =
            extrapolate_to_all_layers(shape, c, (double)(of[0].needed_bytes[limit] - cache[0]),
                                      (double)(of[1].needed_bytes[limit] - cache[1]));
        verdict->needed_bytes[limit] = (uint64_t)fmax(0, bytes);
    }
    verdict->fits = !room_surely_lacks_memory(setup, c, verdict, share, 0.5);
    verdict->limiting_memory =
        verdict_needed_share(verdict, LIMIT_HOST) > verdict_needed_share(verdict, LIMIT_DEVICE)
            ? LIMIT_HOST
            : LIMIT_DEVICE;
    verdict->fits_probability = room_fits_probability(setup, c, verdict);
    return room_surely_lacks_memory(setup, c, verdict, share, odds);
}

/* The layers of a step with stages but without subsequences are not shortened: with few layers, another stage could
 * need the most memory. */
bool shortened_lacks_memory(struct verdict *verdict, const struct setup *setup,
                            const struct request *request, double odds)
{
    struct choices c;
    struct short_step_sizes shape;
    if (!choose_short_step_sizes(&shape, &c, request))
        return false;
    struct short_step_sizes of_layers = shape;
    /* schedules of subsequences are long, and bytes grow evenly from the first layer on */
    if (c.subsequences > 1) {
        of_layers = (struct short_step_sizes){{c.model->layers, c.model->layers},
                                              {c.accumulation, c.accumulation}};
        shorten_layers(&of_layers, &c, 1);
        shorten_micro_batches(&of_layers, &c);
        of_layers.micro_batches[1] =
            of_layers.micro_batches[is_count_shortened(of_layers.micro_batches) ? 0 : 1];
    }
    if ((c.pp == 1 || c.subsequences > 1) && is_count_shortened(of_layers.layers))
        return few_layers_lack_memory(verdict, setup, request, &c, &of_layers, odds);
    shape.micro_batches[1] = c.accumulation;
    shorten_micro_batches(&shape, &c);
    return 2 * shape.micro_batches[1] <= (int64_t)c.accumulation &&
           few_micro_batches_lack_memory(verdict, setup, request, &c, shape.micro_batches[1], odds);
}
