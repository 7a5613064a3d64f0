#include "predict/documents/samples.h"

#include <stdlib.h>
#include <string.h>

enum status packing_sizes(struct packing_options *sizes, const struct request *request,
                          const struct choices *c, struct diag *diag)
{
    bool cut = request->ring_layout == RING_ZIGZAG_DOCUMENTS && c->cp > 1;
    sizes->seq = c->seq;
    sizes->multiple = cut ? 2 * (int64_t)c->cp : 1;
    sizes->sequences = (uint32_t)c->global_batch;
    sizes->ranks = c->dp;
    sizes->micro_batch = (uint32_t)c->micro_batch;
    return c->seq % sizes->multiple == 0
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = "--layout"}, STATUS_BAD_INPUT,
                            "zigzag-documents pads documents to multiples of %lld tokens, and a "
                            "sequence has %lld",
                            (long long)sizes->multiple, (long long)c->seq);
}

static bool same_sizes(const struct packing_options *a, const struct packing_options *b)
{
    return a->seq == b->seq && a->multiple == b->multiple && a->sequences == b->sequences &&
           a->ranks == b->ranks && a->micro_batch == b->micro_batch;
}

static double largest_pairs(const struct packed_batch *batch)
{
    return batch->pairs * batch->latest_over_mean;
}

/* Returns the batch whose largest rank has the median of pairs: as many batches have less, or one fewer. */
static size_t typical_of(const struct sample *sample)
{
    for (size_t i = 0; i < sample->count; i++) {
        double own = largest_pairs(&sample->batch[i]);
        size_t below = 0;
        for (size_t k = 0; k < sample->count; k++) {
            double other = largest_pairs(&sample->batch[k]);
            below += other < own || (other == own && k < i);
        }
        if (below == (sample->count - 1) / 2)
            return i;
    }
    return 0;
}

static void sample_free(struct sample *sample)
{
    for (size_t i = 0; i < sample->count; i++)
        packed_batch_release(&sample->batch[i]);
    free(sample->batch);
    free(sample);
}

static enum status pack(struct sample *sample, struct samples *samples, struct diag *diag)
{
    const struct samples_request *asked = &samples->asked;
    struct lengths lengths = {0};
    enum status status = lengths_open(&lengths, asked->lengths, asked->seed, diag);
    sample->batch = heap_zalloc(asked->batches, sizeof *sample->batch);
    while (status == STATUS_OK && sample->count < asked->batches &&
           (sample->count == 0 || !lengths_are_used_up(&lengths)))
        status = packing_next(&sample->batch[sample->count++], &lengths, &sample->sizes, diag);
    lengths_release(&lengths);
    if (status != STATUS_OK)
        return status;
    sample->typical = typical_of(sample);
    packed_batch_documents(&sample->batch[sample->typical], sample->sizes.seq, &sample->documents,
                           &samples->arena);
    return STATUS_OK;
}

enum status samples_find(const struct sample **found, struct samples *samples,
                         const struct request *request, const struct choices *choices,
                         struct diag *diag)
{
    struct packing_options sizes = {.policy = samples->asked.policy,
                                    .balance = samples->asked.balance};
    enum status status = packing_sizes(&sizes, request, choices, diag);
    for (size_t i = 0; status == STATUS_OK && i < samples->count; i++)
        if (same_sizes(&samples->sample[i]->sizes, &sizes)) {
            *found = samples->sample[i];
            return STATUS_OK;
        }
    if (status != STATUS_OK)
        return status;
    struct sample *sample = heap_zalloc(1, sizeof *sample);
    sample->sizes = sizes;
    status = pack(sample, samples, diag);
    if (status != STATUS_OK) {
        sample_free(sample);
        return status;
    }
    samples->sample = heap_realloc(samples->sample, samples->count + 1,
                                   sizeof(struct sample *)); /* there are few */
    samples->sample[samples->count++] = sample;
    *found = sample;
    return STATUS_OK;
}

void samples_release(struct samples *samples)
{
    for (size_t i = 0; i < samples->count; i++)
        sample_free(samples->sample[i]);
    free((void *)samples->sample);
    arena_release(&samples->arena);
    *samples = (struct samples){0};
}

double sample_tokens(const struct sample *sample, size_t batch)
{
    return (double)sample->batch[batch].tokens;
}

double sample_mean_tokens(const struct sample *sample, size_t count)
{
    double tokens = 0;
    for (size_t i = 0; i < count; i++)
        tokens += sample_tokens(sample, i);
    return tokens / (double)count;
}
