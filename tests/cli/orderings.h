/* tests/cli/orderings.h: checks, in the configurations of Table 4 of SPPO's paper, the order of SPPO's variants by
 * predicted speed, which of them fit into memory (full offload is not checked), and how many subsequences stages share.
 * docs/accuracy/sppo.md has the figures. Only tests include this file. */
#ifndef TESTS_CLI_ORDERINGS_H
#define TESTS_CLI_ORDERINGS_H

#include "cli/validate/external_setup.h"
#include "predict/prediction.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* SPPO's variants: what is sent to the host. */
enum { NONE, FULL, ADAPTIVE, MULTIPLEXED, VARIANT_COUNT };
static const struct {
    const char *name, *options;
} variants[VARIANT_COUNT] = {
    {"none", "--activations keep"},
    {"full", "--offload-ratio full"},
    {"adaptive", "--offload-ratio adaptive"},
    {"adaptive, multiplexed", "--offload-ratio adaptive --pipeline msp --share-units auto"},
};

/* The expected numbers of first and last subsequences that stages share, by configuration: the fastest of
 * shared_units_rank_by_step_time() with which the step fits. */
static const struct shared_units shares[15] = {
    {1, 2}, {1, 3}, {1, 0}, {1, 0}, {1, 0}, /* 7B: 512, 640, 768, 896, 1024K */
    {5, 7}, {2, 0}, {2, 0}, {2, 0}, {2, 0}, /* 13B: 512, 640, 768, 1024, 1280K */
    {2, 0}, {2, 0}, {2, 0}, {2, 0}, {0, 0}, /* 65B: 512, 600, 640, 768, 1024K */
};
/* By configuration, true if the step fits into device memory when no activations are offloaded. */
static const bool none_fits[15] = {[5] = true};

struct variant_prediction {
    double step_s;
    struct verdict verdict;
    struct shared_units shared;
};

/* Predicts a layout, whose args offload adaptively, in another variant. */
static enum status predict_variant(struct variant_prediction *step,
                                   const struct external_run *layout, int variant,
                                   struct diag *diag)
{
    const char *args = layout->cells[EXTERNAL_ARGS], *adaptive = variants[ADAPTIVE].options;
    const char *at = strstr(args, adaptive);
    struct setup setup = {0};
    struct prediction p = {0};
    struct text text = {0};
    enum mfu_convention unused;
    if (!CHECK("a layout with adaptive offload", at != NULL))
        return STATUS_BAD_INPUT;
    text_printf(&text, "%.*s%s%s", (int)(at - args), args, variants[variant].options,
                at + strlen(adaptive));
    enum status status = external_setup_read_args(&setup, &unused, text.data, "", diag);
    if (status == STATUS_OK)
        status = prediction_make(&p, &(struct prediction_question){.setup = &setup}, diag);
    *step = (struct variant_prediction){p.sim.step_s, p.verdict, p.choices.shared_units};
    prediction_release(&p);
    setup_release(&setup);
    text_release(&text);
    return status;
}

/* Finds layout i of Table 4 among the rows; NULL: there is none. */
static const struct external_run *find_layout_of_table_4(const struct external_runs *rows, size_t i)
{
    size_t found = 0;
    for (size_t k = 0; k < rows->row_count; k++)
        if (rows->rows[k].metric == METRIC_LAYOUT &&
            strcmp(rows->rows[k].cells[EXTERNAL_FRAMEWORK], "sppo") == 0 && found++ == i)
            return &rows->rows[k];
    return NULL;
}

static inline void check_orderings(size_t i)
{
    struct external_runs rows = {0};
    struct variant_prediction t[VARIANT_COUNT] = {0};
    char label[96];
    CHECK_INT("rows",
              external_load(&rows, check_path("../traces/published/measurements.csv"), NULL),
              STATUS_OK);
    const struct external_run *layout = find_layout_of_table_4(&rows, i);
    if (!CHECK("a layout of Table 4", layout != NULL))
        return;
    snprintf(label, sizeof label, "%s %lldK", layout->cells[EXTERNAL_MODEL],
             (long long)layout->seq_len / 1024);
    for (int variant = 0; variant < VARIANT_COUNT; variant++) {
        struct diag diag = {0};
        CHECK_INT(label, predict_variant(&t[variant], layout, variant, &diag), STATUS_OK);
        diag_release(&diag);
    }
    const struct shared_units *shared = &t[MULTIPLEXED].shared;
    printf("%s:", label);
    for (int variant = 0; variant < VARIANT_COUNT; variant++)
        printf(" %s %.3f s %.1f GiB,", variants[variant].name, t[variant].step_s,
               (double)t[variant].verdict.needed_bytes[LIMIT_DEVICE] / (1 << 30));
    printf(" shared %u first, %u last\n", shared->first, shared->last);
    CHECK(label, t[NONE].step_s < t[FULL].step_s);
    CHECK(label, t[ADAPTIVE].step_s <= t[FULL].step_s);
    CHECK(label, t[MULTIPLEXED].step_s <= t[ADAPTIVE].step_s);
    CHECK_INT(label, t[NONE].verdict.fits, none_fits[i]);
    CHECK_INT(label, t[ADAPTIVE].verdict.fits, true);
    CHECK_INT(label, t[MULTIPLEXED].verdict.fits, true);
    CHECK_INT(label, shared->first, shares[i].first);
    CHECK_INT(label, shared->last, shares[i].last);
    external_release(&rows);
}

#endif
