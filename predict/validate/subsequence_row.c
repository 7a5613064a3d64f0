#include "predict/validate/subsequence_row.h"

#include "predict/setup/offload_estimate.h"
#include "predict/validate/measured_row.h"
#include "schedule/activations/classes.h"
#include "schedule/config/resolve_config.h"
#include "schedule/pipeline/partition.h"
#include "schedule/step/build.h"

#include <stdlib.h>
#include <string.h>

bool subsequence_row(const struct measurement *row)
{
    switch (row->metric) {
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

static int64_t number(const struct measurement *row, const char *key, int64_t otherwise)
{
    const char *value = measurement_option(row, key);
    int64_t result;
    if (value == NULL)
        return otherwise;
    return parse_i64(value, strlen(value), &result) ? result : -1;
}

bool subsequence_supported(const struct measurement *row, struct text *why)
{
    static const char *const known[] = {"subsequences", "scope", "tp", "checkpoint"};
    const struct measurement_option *other =
        measurement_unknown_option(row, known, ARRAY_LEN(known));
    bool whole = row->metric == METRIC_ACTIVATION_MEMORY;
    if (other != NULL)
        text_printf(why, "option %s", other->key);
    else if (row->seq_len <= 0)
        text_puts(why, "no seq_len");
    else if (number(row, "tp", 1) != 1)
        text_puts(why, "option tp above 1");
    else if (!whole && number(row, "subsequences", 0) < 2)
        text_puts(why, "no subsequences");
    return why->size == 0;
}

/* Finds the bytes that a layer saves of `tokens` for its backward, from the list of ops. */
static enum status layer_bytes(double *bytes, const struct setup *setup, int64_t tokens,
                               struct diag *diag)
{
    struct transformer two = setup->model;
    struct choices choices;
    struct ir ir = {0};
    two.layers = 2; /* the second one reads what the first one leaves */
    struct request request = {.model = &two,
                              .strategy = "local",
                              .profile = "megatron",
                              .weights = CHOICE_WEIGHTS_REPLICATED,
                              .activations = CHOICE_ACTIVATIONS_KEEP,
                              .optimizer = -1,
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = 1,
                              .seq = tokens,
                              .sm = 80,
                              .gpus_per_node = 1};
    enum status status = compose_resolve(&choices, &request, NULL, diag);
    if (status == STATUS_OK)
        status = compose_build_planned(&ir, &choices, 0, diag);
    uint32_t rows = 0;
    struct activation_row *row = status == STATUS_OK ? activations_table(&ir, 0, &rows) : NULL;
    *bytes = 0;
    for (uint32_t i = 0; i < rows; i++)
        if (row[i].class == ACTIVATION_ONCE || row[i].class == ACTIVATION_CONTINUOUS)
            *bytes += (double)row[i].bytes;
    free(row);
    ir_release(&ir);
    return status;
}

static enum status subsequences(struct subsequence_answer *answer, const struct setup *setup,
                                const struct measurement *row, struct diag *diag)
{
    int64_t pieces = number(row, "subsequences", 0);
    int64_t *length = heap_alloc((size_t)pieces, sizeof *length);
    double rate = offload_bytes_per_s(&setup->cluster);
    enum status status = STATUS_OK;
    for (int halved = 0; halved < 2 && status == STATUS_OK; halved++) {
        const struct partition partition = {.rule = PARTITION_FLOPS,
                                            .tokens = row->seq_len,
                                            .pieces = pieces,
                                            .unit = 1,
                                            .model = &setup->model,
                                            .full_attention = !halved};
        status = partition_make(length, &partition, diag);
        if (status == STATUS_OK)
            status = layer_bytes(&answer->first_bytes[halved], setup, length[0], diag);
        if (status == STATUS_OK)
            status = layer_bytes(&answer->last_bytes[halved], setup, length[pieces - 1], diag);
        answer->first_s[halved] = answer->first_bytes[halved] / rate;
        answer->last_s[halved] = answer->last_bytes[halved] / rate;
    }
    free(length);
    return status;
}

enum status subsequence_predict(struct subsequence_answer *answer, const struct measurement *row,
                                const struct setup_change *change, struct diag *diag)
{
    struct setup setup = {0};
    enum status status = setup_load_model(&setup, row->text[MEASUREMENT_MODEL], NULL, NULL, diag);
    if (status == STATUS_OK && row->metric == METRIC_ACTIVATION_MEMORY) {
        status = layer_bytes(&answer->kept_bytes, &setup, row->seq_len, diag);
        answer->kept_bytes *= (double)setup.model.layers;
    } else if (status == STATUS_OK) {
        status = setup_load_cluster(&setup, row->text[MEASUREMENT_CLUSTER], 0, row->gpus, diag);
        if (status == STATUS_OK)
            setup_apply(&setup, change);
        if (status == STATUS_OK)
            status = subsequences(answer, &setup, row, diag);
    }
    setup_release(&setup);
    return status;
}

double subsequence_value(const struct subsequence_answer *answer, enum measurement_metric metric,
                         bool halved)
{
    switch (metric) {
    case METRIC_FIRST_SUBSEQUENCE_ACTIVATION:
        return answer->first_bytes[halved];
    case METRIC_LAST_SUBSEQUENCE_ACTIVATION:
        return answer->last_bytes[halved];
    case METRIC_FIRST_OFFLOAD_MS:
        return answer->first_s[halved];
    case METRIC_LAST_OFFLOAD_MS:
        return answer->last_s[halved];
    default:
        return answer->kept_bytes;
    }
}
