#include "predict/documents/batches.h"

#include <stdlib.h>

/* If more than LONG_STEP_OPS ops would be simulated for a step, summed over all classes of ranks, its time is estimated
 * from a step with fewer layers: as many as leave about LONG_STEP_OPS ops, but at least LEAST_LAYERS. */
enum { LONG_STEP_OPS = 1000000, LEAST_LAYERS = 3 };

/* Puts the documents of batch i, of an array of struct packed_batch, into the request. */
static void set_documents_of_batch(struct request *request, struct arena *arena, const void *batch,
                                   size_t i)
{
    const struct packed_batch *batches = batch;
    struct documents *documents = arena_alloc(arena, sizeof *documents);
    packed_batch_fill_documents(&batches[i], request->seq, documents, arena);
    request->documents = documents;
}

static void summarise_batches(struct batch_times *times, const struct packed_batch *batch)
{
    double all_s = 0, tokens = 0, padding = 0;
    times->spread = step_spread_of(times->step_s, times->batch_count);
    for (size_t i = times->batch_count; i-- > 0;) {
        all_s += times->step_s[i];
        tokens += (double)batch[i].document_tokens;
        padding += (double)batch[i].padding_tokens;
        if (times->step_s[i] == times->spread.longest_s)
            times->slowest_batch = i;
    }
    times->tokens_per_s = all_s > 0 ? tokens / all_s : 0;
    times->padding_share = padding / (tokens + padding);
}

/* Returns the number of layers that see whole sequences. If no layer of the model has a window, or every layer has one,
 * all layers count. */
static double unwindowed_layers(const struct transformer *model, int64_t layers)
{
    struct transformer part = *model;
    part.layers = layers;
    int64_t windowed = transformer_count_windowed_layers(&part);
    return (double)(windowed < layers ? layers - windowed : layers);
}

/* Returns the number of layers with which the batches after the first are simulated; 0: all layers. It is 0 if the
 * first step had at most LONG_STEP_OPS ops or was simulated by a short list, if only a part of the model is predicted,
 * or if windows begin after the first layer. It is 0 in pipelines, whose stages wait for each other, and with offload
 * ratios, since their times do not grow in proportion to the number of layers. It is also 0 if the number would be more
 * than half of all layers. */
static int64_t simulated_layers_of_batches(const struct prediction *first)
{
    const struct choices *c = &first->choices;
    const struct transformer *model = c->model;
    int64_t all = model->layers,
            period = model->full_attention_every > 1 ? model->full_attention_every : 1;
    if (first->sim.counts.simulated_op_instances <= LONG_STEP_OPS ||
        first->ir.repeats.copies_per_gap > 0 || c->pp > 1 ||
        c->activations == CHOICE_ACTIVATIONS_RATIO || c->scope != SCOPE_WHOLE_STEP ||
        model->window_from_layer > 0)
        return 0;
    int64_t layers = LONG_STEP_OPS / ((int64_t)first->sim.counts.simulated_op_instances / all + 1);
    layers = layers > LEAST_LAYERS ? layers : LEAST_LAYERS;
    layers = (layers + period - 1) / period * period;
    return 2 * layers <= all ? layers : 0;
}

/* Predicts the batches from number `from` on. */
static enum status predict_batches(struct batch_times *times, const struct prediction *first,
                                   const struct packed_batch *batch, size_t from, struct diag *diag)
{
    const size_t count = times->batch_count - from;
    const struct repeated_steps steps = {.first = first,
                                         .layer_count = times->simulated_layers,
                                         .change_request = set_documents_of_batch,
                                         .context = batch + from,
                                         .option = "--batches",
                                         .step_name = "batch",
                                         .number_of_first_step_in_message = from};
    struct repeated_step_answer *answer = heap_zalloc(count + 1, sizeof *answer);
    enum status status = repeated_steps_predict(&steps, count, answer, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        times->step_s[from + i] = answer[i].step_s;
        times->lateness[from + i] = answer[i].lateness;
    }
    free(answer);
    return status;
}

enum status batch_times_make(struct batch_times *times, const struct prediction *first,
                             const struct packed_batch *batch, size_t count, struct diag *diag)
{
    const struct transformer *model = first->choices.model;
    int64_t layers =
        first->question.is_exact || count == 1 ? 0 : simulated_layers_of_batches(first);
    size_t from = layers > 0 ? 0 : 1; /* an estimate also needs the first batch with few layers */
    times->batch_count = count;
    times->simulated_layers = layers;
    times->step_s = heap_zalloc(count, sizeof *times->step_s);
    times->lateness = heap_zalloc(count, sizeof *times->lateness);
    enum status status = predict_batches(times, first, batch, from, diag);
    if (status == STATUS_OK && layers > 0) {
        double few_s = times->step_s[0],
               scale = unwindowed_layers(model, model->layers) / unwindowed_layers(model, layers);
        for (size_t i = 0; i < count; i++)
            times->step_s[i] = first->sim.step_s + scale * (times->step_s[i] - few_s);
    }
    times->step_s[0] = first->sim.step_s;
    times->lateness[0] = first->lateness;
    if (status == STATUS_OK)
        summarise_batches(times, batch);
    return status;
}

void batch_times_release(struct batch_times *times)
{
    free(times->step_s);
    free(times->lateness);
    *times = (struct batch_times){0};
}
