#include "predict/validate/subsequence_row.h"

#include "predict/setup/offload_estimate.h"
#include "predict/setup/partition_option.h"
#include "predict/two_layers.h"
#include "schedule/pipeline/partition.h"

#include <stdlib.h>

bool subsequence_predicts_metric(enum measurement_metric metric)
{
    switch (metric) {
    case METRIC_ACTIVATION_MEMORY:
    case METRIC_FIRST_SUBSEQUENCE_ACTIVATION:
    case METRIC_LAST_SUBSEQUENCE_ACTIVATION:
    case METRIC_FIRST_OFFLOAD_MS:
    case METRIC_LAST_OFFLOAD_MS:
        return true;
    default:
        return false;
    }
}

/* Sets *bytes to the bytes that one rank saves for the backward of one layer for `tokens` tokens. Profile and compute
 * capability are those of the published figures (SPPO): Megatron-LM on A100s, without recomputation. */
static enum status saved_layer_bytes(double *bytes, const struct setup *setup, int64_t tokens,
                                     struct diag *diag)
{
    struct request request = {.model = &setup->model,
                              .strategy = "local",
                              .profile = "megatron",
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = 1,
                              .seq = tokens,
                              .sm = 80,
                              .gpus_per_node = 1};
    struct activation_row *row;
    uint32_t rows;
    enum status status = two_layers_make_activation_table(&row, &rows, &request, diag);
    *bytes = 0;
    for (uint32_t i = 0; i < rows; i++)
        if (row[i].class == ACTIVATION_FOR_OWN_BACKWARD ||
            row[i].class == ACTIVATION_SHARED_BY_UNITS)
            *bytes += (double)row[i].bytes;
    free(row);
    return status;
}

/* Finds the tokens of the first subsequence, or of the last. Fails unless the request cuts the sequence by flops. */
static enum status subsequence_length_of(int64_t *tokens, const struct setup *setup, bool last,
                                         struct diag *diag)
{
    const struct request *r = &setup->request;
    int64_t pieces = r->subsequences;
    const bool full = r->length_rule == SUBSEQUENCES_OF_EQUAL_FULL_FLOPS;
    if (pieces < 2 || (!full && r->length_rule != SUBSEQUENCES_OF_EQUAL_FLOPS))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "a figure about a subsequence needs --subsequences of at least 2 and "
                          "--partition flops or flops-full in column args");
    int64_t *length = heap_alloc((size_t)pieces, sizeof *length);
    const struct partition partition = {.rule = PARTITION_FLOPS,
                                        .tokens = r->seq,
                                        .piece_count = pieces,
                                        .token_unit = 1,
                                        .model = &setup->model,
                                        .assumes_full_attention = full};
    enum status status = partition_find_lengths(length, &partition, diag);
    if (status == STATUS_OK)
        *tokens = length[last ? pieces - 1 : 0];
    free(length);
    return status;
}

enum status subsequence_predict_row_figure(double *value, const struct setup *setup,
                                           enum measurement_metric metric, struct diag *diag)
{
    const bool last =
        metric == METRIC_LAST_SUBSEQUENCE_ACTIVATION || metric == METRIC_LAST_OFFLOAD_MS;
    const bool copied = metric == METRIC_FIRST_OFFLOAD_MS || metric == METRIC_LAST_OFFLOAD_MS;
    const bool whole = metric == METRIC_ACTIVATION_MEMORY;
    int64_t tokens = setup->request.seq;
    enum status status = whole ? STATUS_OK : subsequence_length_of(&tokens, setup, last, diag);
    if (status == STATUS_OK)
        status = saved_layer_bytes(value, setup, tokens, diag);
    if (status != STATUS_OK)
        return status;
    if (whole)
        *value *= (double)setup->model.layers;
    if (copied)
        *value /= offload_copy_bytes_per_s(&setup->cluster);
    return STATUS_OK;
}
