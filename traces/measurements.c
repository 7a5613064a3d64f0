#include "traces/measurements.h"

#include "base/arena.h"
#include "traces/records.h"

#include <assert.h>
#include <string.h>

#define METRIC_INFO_ROW(symbol, name, quantity, score)                                             \
    [METRIC_##symbol] = {name, QUANTITY_##quantity, SCORE_##score},
const struct measurement_metric_info measurement_metrics[METRIC_COUNT] = {
    MEASUREMENT_METRICS(METRIC_INFO_ROW)};
#undef METRIC_INFO_ROW

/* The units that values of each quantity may have. scale: the factor to the SI unit. */
static const struct {
    const char *name;
    enum measurement_quantity quantity;
    double scale;
} units[] = {
    {"", QUANTITY_NONE, 1},
    {"fraction", QUANTITY_FRACTION, 1},
    {"ratio", QUANTITY_RATIO, 1},
    {"tokens", QUANTITY_TOKENS, 1},
    {"tokens/s/gpu", QUANTITY_TOKENS_PER_GPU, 1},
    {"tokens/s", QUANTITY_TOKENS_PER_S, 1},
    {"sequences/s", QUANTITY_SEQUENCES_PER_S, 1},
    {"Tflop/s", QUANTITY_FLOP_PER_S, 1e12},
    {"s", QUANTITY_SECONDS, 1},
    {"ms", QUANTITY_SECONDS, 1e-3},
    {"us", QUANTITY_SECONDS, 1e-6},
    {"B", QUANTITY_BYTES, 1},
    {"MB", QUANTITY_BYTES, 1e6},
    {"GB", QUANTITY_BYTES, 1e9},
    {"TB", QUANTITY_BYTES, 1e12},
    {"MiB", QUANTITY_BYTES, 1048576},
    {"GiB", QUANTITY_BYTES, 1073741824},
    {"TiB", QUANTITY_BYTES, 1099511627776},
};

/* The word that may stand in place of a value, by the score of its metric; NULL: none may. */
static const char *const words[SCORE_COUNT] = {
    [SCORE_LENGTH] = "model does not fit",
    [SCORE_VERDICT] = "OOM",
};

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_RIGHT] = "right",
    [OUTCOME_WRONG] = "wrong",
    [OUTCOME_PUBLISHED_ZERO] = "zero",
    [OUTCOME_NOT_COMPARABLE] = "none",
    [OUTCOME_PREDICTION_FAILED] = "error",
};

const char *measurement_outcome_name(enum measurement_outcome outcome)
{
    assert(outcome < OUTCOME_COUNT);
    return outcome_names[outcome];
}

bool measurement_find_metric(const char *name, enum measurement_metric *metric)
{
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (strcmp(measurement_metrics[i].name, name) == 0) {
            *metric = (enum measurement_metric)i;
            return true;
        }
    return false;
}

bool measurement_find_scale_of_unit(enum measurement_metric metric, const char *unit, double *scale,
                                    struct text *right)
{
    size_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (units[i].quantity != measurement_metrics[metric].quantity)
            continue;
        if (strcmp(units[i].name, unit) == 0) {
            *scale = units[i].scale;
            return true;
        }
        text_printf(right, "%s'%s'", found++ > 0 ? ", " : "", units[i].name);
    }
    return false;
}

const char *measurement_word_instead_of_number(enum measurement_metric metric)
{
    return words[measurement_metrics[metric].score];
}

/* Appends `why`, which may have several messages on lines of their own, as one line. */
static void append_reason(struct text *out, const char *why)
{
    size_t size = strlen(why);
    while (size > 0 && why[size - 1] == '\n')
        size--;
    for (size_t i = 0; i < size; i++) {
        if (why[i] == '\n')
            text_puts(out, "; ");
        else
            text_putc(out, why[i]);
    }
}

void measurement_append_status(struct text *out, enum measurement_outcome outcome, const char *why)
{
    struct text status = {0};
    text_puts(&status, measurement_outcome_name(outcome));
    if (why) {
        text_puts(&status, ": ");
        append_reason(&status, why);
    }
    records_append_field(out, status.data);
    text_release(&status);
}
