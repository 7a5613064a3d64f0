#include "cli/sppo_row.h"

#include "cli/measured_row.h"
#include "cli/offload_estimate.h"
#include "schedule/pipeline/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTHS_MAX = 5 };

/* Table 4: K tokens and subsequences, by rising length. */
static const struct layout {
    const char *model;
    int64_t tp, pp;
    int64_t k_tokens[LENGTHS_MAX], pieces[LENGTHS_MAX];
} layouts[] = {
    {"gpt-7b", 8, 4, {512, 640, 768, 896, 1024}, {32, 64, 80, 128, 160}},
    {"gpt-13b", 8, 8, {512, 640, 768, 1024, 1280}, {32, 48, 64, 80, 160}},
    {"gpt-65b", 16, 8, {512, 600, 640, 768, 1024}, {32, 64, 80, 96, 128}},
};

const char *const sppo_system_names[SPPO_SYSTEM_COUNT] = {"none", "full", "adaptive",
                                                          "adaptive, multiplexed"};
enum { OFFLOADS = SPPO_ADAPTIVE + 1 }; /* those that rows name by option offload */

static const struct layout *layout_of(const struct measurement *row)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
        if (strcmp(layouts[i].model, row->text[MEASUREMENT_MODEL]) == 0)
            return &layouts[i];
    return NULL;
}

static int length_of(const struct layout *layout, int64_t tokens)
{
    for (int i = 0; i < LENGTHS_MAX; i++)
        if (layout->k_tokens[i] * 1024 == tokens)
            return i;
    return -1;
}

static bool is_sppo(const struct measurement *row)
{
    return strcmp(row->text[MEASUREMENT_SYSTEM], "sppo") == 0;
}

static int offload_of(const char *name)
{
    for (int i = 0; name != NULL && i < OFFLOADS; i++)
        if (strcmp(name, sppo_system_names[i]) == 0)
            return i;
    return -1;
}

/* The system that a speed-up is of; -1: none that is known. Stages share subsequences with adaptive
 * offload alone. */
static int system_of(const struct measurement *row)
{
    const char *multiplex = measurement_option(row, "multiplex");
    int offload = offload_of(measurement_option(row, "offload"));
    if (multiplex == NULL || strcmp(multiplex, "0") == 0)
        return offload;
    return strcmp(multiplex, "1") == 0 && offload == SPPO_ADAPTIVE ? SPPO_MULTIPLEXED : -1;
}

bool sppo_row(const struct measurement *row)
{
    return strcmp(row->text[MEASUREMENT_SOURCE], "SPPO") == 0 &&
           (row->metric == METRIC_SPEEDUP || row->metric == METRIC_MAX_SEQ_LEN);
}

bool sppo_supported(const struct measurement *row, struct text *why)
{
    static const char *const known[] = {"offload", "multiplex", "baseline"};
    const struct measurement_option *other =
        measurement_unknown_option(row, known, ARRAY_LEN(known));
    const struct layout *layout = layout_of(row);
    const char *baseline = measurement_option(row, "baseline");
    if (other != NULL)
        text_printf(why, "option %s", other->key);
    else if (layout == NULL || row->gpus != layout->tp * layout->pp)
        text_puts(why, "a model and GPUs that SPPO's Table 4 does not have");
    else if (row->metric == METRIC_MAX_SEQ_LEN)
        return true;
    else if (length_of(layout, row->seq_len) < 0)
        text_puts(why, "a length that SPPO's Table 4 does not have");
    else if (system_of(row) < 0)
        text_puts(why, "no offload, or multiplex beside another than adaptive");
    else if (baseline == NULL ||
             (strcmp(baseline, "megatron-sp") != 0 && strcmp(baseline, "offload:none") != 0))
        text_puts(why, "no baseline that is known");
    return why->size == 0;
}

/* ---- one run ---- */

struct run {
    const char *strategy;
    int activations;
    enum sppo_system system;
    int64_t tp, pp, pieces, tokens;
};

static enum status lengths_of(struct setup *setup, const struct run *run, struct diag *diag)
{
    int64_t *length = arena_array(&setup->arena, (size_t)run->pieces, sizeof *length);
    const struct partition partition = {.rule = PARTITION_FLOPS,
                                        .tokens = run->tokens,
                                        .pieces = run->pieces,
                                        .unit = run->tp,
                                        .model = &setup->model,
                                        .full_attention = true};
    setup->request.lengths = length;
    return partition_make(length, &partition, diag);
}

static enum status predict(struct setup *setup, const struct run *run, bool timed,
                           struct sppo_time *time, struct diag *diag)
{
    struct prediction p = {0};
    struct request *r = &setup->request;
    double *hidden = NULL;
    enum status status = STATUS_OK;
    setup_open_request(setup);
    r->strategy = run->strategy;
    r->tp = run->tp;
    r->pp = run->pp;
    r->seq = run->tokens;
    r->weights = CHOICE_WEIGHTS_REPLICATED; /* dp is 1 */
    r->activations = run->activations;
    r->subsequences = run->pieces;
    if (run->system == SPPO_MULTIPLEXED)
        r->pipeline = CHOICE_PIPELINE_MSP;
    r->shared_open = run->system == SPPO_MULTIPLEXED; /* those that pay, and fit */
    if (run->pieces > 1)
        status = lengths_of(setup, run, diag);
    if (status == STATUS_OK && run->system >= SPPO_ADAPTIVE)
        status = offload_hidden_bytes(&hidden, r, setup, diag);
    if (status == STATUS_OK)
        status = prediction_memory(&p, setup, r, NULL, diag);
    if (status == STATUS_OK && timed)
        status = prediction_time(&p, false, diag);
    *time = (struct sppo_time){p.sim.step_s, p.verdict, p.choices.shared};
    prediction_release(&p);
    r->offload_hidden_of = NULL;
    free(hidden);
    return status;
}

static struct run sppo_run(const struct layout *layout, int i, enum sppo_system system)
{
    return (struct run){.strategy = "sppo",
                        .activations = system == SPPO_NONE ? CHOICE_ACTIVATIONS_KEEP
                                                           : CHOICE_ACTIVATIONS_RATIO,
                        .system = system,
                        .tp = layout->tp,
                        .pp = layout->pp,
                        .pieces = layout->pieces[i],
                        .tokens = layout->k_tokens[i] * 1024};
}

static struct run megatron_run(const struct layout *layout, int i)
{
    struct run run = sppo_run(layout, i, SPPO_NONE);
    run.strategy = "megatron-sp";
    run.activations = CHOICE_ACTIVATIONS_FULL;
    return run;
}

static enum status speedup(struct sppo_answer *answer, struct setup *setup,
                           const struct measurement *row, struct diag *diag)
{
    const struct layout *layout = layout_of(row);
    int i = length_of(layout, row->seq_len);
    bool megatron = strcmp(measurement_option(row, "baseline"), "megatron-sp") == 0;
    struct run own = sppo_run(layout, i, (enum sppo_system)system_of(row));
    struct run other = megatron ? megatron_run(layout, i) : sppo_run(layout, i, SPPO_NONE);
    struct run shared = sppo_run(layout, i, SPPO_MULTIPLEXED);
    struct sppo_time of_own, of_other, of_whole, of_shared;
    enum status status = predict(setup, &own, true, &of_own, diag);
    if (status == STATUS_OK)
        status = predict(setup, &other, true, &of_other, diag);
    if (status != STATUS_OK)
        return status;
    answer->verdict = of_own.verdict;
    answer->beyond = of_other.verdict;
    answer->speedup = of_other.step_s / of_own.step_s;
    answer->speedup_whole = answer->speedup_shared = NAN;
    if (own.system == SPPO_ADAPTIVE) {
        status = predict(setup, &shared, true, &of_shared, diag);
        if (status != STATUS_OK)
            return status;
        answer->speedup_shared = of_other.step_s / of_shared.step_s;
    }
    if (!megatron)
        return STATUS_OK;
    other.pieces = 1;
    status = predict(setup, &other, true, &of_whole, diag);
    answer->beyond = of_whole.verdict;
    answer->speedup_whole = of_whole.step_s / of_own.step_s;
    return status;
}

/* The longest of the table's lengths up to which all fit. */
enum reading { READING_SCORED, READING_TUNED, READING_SHARED };
static enum status longest(struct sppo_answer *answer, int64_t *tokens, struct setup *setup,
                           const struct measurement *row, enum reading reading, struct diag *diag)
{
    const struct layout *layout = layout_of(row);
    *tokens = 0;
    for (int i = 0; i < LENGTHS_MAX; i++) {
        struct run run =
            !is_sppo(row)
                ? megatron_run(layout, i)
                : sppo_run(layout, i, reading == READING_SHARED ? SPPO_MULTIPLEXED : SPPO_ADAPTIVE);
        struct sppo_time time;
        if (reading == READING_TUNED) {
            run.tp = layout->tp * layout->pp;
            run.pp = run.pieces = 1;
        }
        enum status status = predict(setup, &run, false, &time, diag);
        if (status != STATUS_OK)
            return status;
        if (reading == READING_SCORED)
            *(time.verdict.fits ? &answer->verdict : &answer->beyond) = time.verdict;
        if (!time.verdict.fits)
            return STATUS_OK;
        *tokens = run.tokens;
    }
    return STATUS_OK;
}

enum status sppo_predict(struct sppo_answer *answer, const struct measurement *row,
                         const struct setup_change *change, struct diag *diag)
{
    struct setup setup = {0};
    enum status status = setup_load_model(&setup, row->text[MEASUREMENT_MODEL], NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, row->text[MEASUREMENT_CLUSTER], 0, row->gpus, diag);
    if (status == STATUS_OK)
        setup_apply(&setup, change);
    if (status == STATUS_OK && row->metric == METRIC_SPEEDUP)
        status = speedup(answer, &setup, row, diag);
    else if (status == STATUS_OK)
        status = longest(answer, &answer->longest, &setup, row, READING_SCORED, diag);
    answer->longest_shared = -1;
    if (status == STATUS_OK && row->metric == METRIC_MAX_SEQ_LEN && is_sppo(row))
        status = longest(answer, &answer->longest_shared, &setup, row, READING_SHARED, diag);
    else if (status == STATUS_OK && row->metric == METRIC_MAX_SEQ_LEN)
        status = longest(answer, &answer->longest_tuned, &setup, row, READING_TUNED, diag);
    setup_release(&setup);
    return status;
}

bool sppo_cell(struct sppo_cell *cell, size_t i)
{
    if (i >= ARRAY_LEN(layouts) * LENGTHS_MAX)
        return false;
    const struct layout *layout = &layouts[i / LENGTHS_MAX];
    *cell = (struct sppo_cell){layout->model, layout->k_tokens[i % LENGTHS_MAX] * 1024,
                               layout->pieces[i % LENGTHS_MAX], layout->tp, layout->pp};
    return true;
}

enum status sppo_time(struct sppo_time *time, size_t cell, enum sppo_system system,
                      struct diag *diag)
{
    const struct layout *layout = &layouts[cell / LENGTHS_MAX];
    struct run run = sppo_run(layout, (int)(cell % LENGTHS_MAX), system);
    struct setup setup = {0};
    enum status status = setup_load_model(&setup, layout->model, NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, "sppo-a100", 0, layout->tp * layout->pp, diag);
    if (status == STATUS_OK)
        status = predict(&setup, &run, true, time, diag);
    setup_release(&setup);
    return status;
}
