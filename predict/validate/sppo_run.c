#include "predict/validate/sppo_run.h"

#include "predict/setup/offload_estimate.h"
#include "schedule/pipeline/partition.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct sppo_layout sppo_layouts[] = {
    {"gpt-7b",   8, 4, 32, 1, false, 32, {512, 640, 768, 896, 1024},  {32, 64, 80, 128, 160}},
    {"gpt-13b",  8, 8,  8, 8, false,  0, {512, 640, 768, 1024, 1280}, {32, 48, 64, 80, 160}},
    {"gpt-65b", 16, 8, 64, 2, true,  64, {512, 600, 640, 768, 1024},  {32, 64, 80, 96, 128}},
};
/* clang-format on */
const size_t sppo_layout_count = ARRAY_LEN(sppo_layouts);

const char *const sppo_system_names[SPPO_SYSTEM_COUNT] = {"none", "full", "adaptive",
                                                          "adaptive, multiplexed"};

const struct sppo_layout *sppo_layout_find(const char *model)
{
    for (size_t i = 0; i < sppo_layout_count; i++)
        if (strcmp(sppo_layouts[i].model, model) == 0)
            return &sppo_layouts[i];
    return NULL;
}

int sppo_length_find(const struct sppo_layout *layout, int64_t tokens)
{
    for (int i = 0; i < SPPO_LENGTHS; i++)
        if (layout->k_tokens[i] * 1024 == tokens)
            return i;
    return -1;
}

struct sppo_cell sppo_cell_make(const struct sppo_layout *layout, int length)
{
    return (struct sppo_cell){layout, layout->k_tokens[length] * 1024, layout->pieces[length],
                              layout->tp, layout->pp};
}

struct sppo_run sppo_run_make(const struct sppo_cell *cell, enum sppo_system system)
{
    return (struct sppo_run){.strategy = "sppo",
                             .weights = CHOICE_WEIGHTS_REPLICATED, /* dp is 1 */
                             .activations = system == SPPO_NONE ? CHOICE_ACTIVATIONS_KEEP
                                                                : CHOICE_ACTIVATIONS_RATIO,
                             .system = system,
                             .tp = cell->tp,
                             .pp = cell->pp,
                             .pieces = cell->pieces,
                             .tokens = cell->tokens};
}

struct sppo_run sppo_run_megatron(const struct sppo_cell *cell, bool tuned)
{
    struct sppo_run run = sppo_run_make(cell, SPPO_NONE);
    run.strategy = "megatron-sp";
    run.activations = CHOICE_ACTIVATIONS_FULL;
    if (tuned) {
        run.tp = cell->layout->tuned_tp;
        run.pp = cell->layout->tuned_pp;
        run.pieces = run.pp == 1 ? 1 : run.pieces;
    }
    return run;
}

struct sppo_run sppo_run_deepspeed(const struct sppo_cell *cell, bool chunks)
{
    return (struct sppo_run){.strategy = chunks ? "fpdt" : "ulysses",
                             .profile = "deepspeed",
                             .weights = CHOICE_WEIGHTS_ZERO3,
                             .activations = CHOICE_ACTIVATIONS_OFFLOAD,
                             .tp = 1,
                             .pp = 1,
                             .hp = cell->layout->ulysses,
                             .pieces = 1,
                             .tokens = cell->tokens};
}

static enum status lengths_of(struct setup *setup, const struct sppo_run *run, struct diag *diag)
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

enum status sppo_run_open(struct setup *setup, const struct sppo_run *run, struct diag *diag)
{
    struct request *r = &setup->request;
    enum status status = STATUS_OK;
    setup_open_request(setup);
    r->strategy = run->strategy;
    if (run->profile != NULL)
        r->profile = run->profile;
    r->tp = run->tp;
    r->pp = run->pp;
    r->hp = run->hp;
    r->seq = run->tokens;
    r->weights = run->weights;
    r->activations = run->activations;
    r->subsequences = run->pieces;
    if (run->system == SPPO_MULTIPLEXED)
        r->pipeline = CHOICE_PIPELINE_MSP;
    r->shared_open = run->system == SPPO_MULTIPLEXED; /* those that pay, and fit */
    if (run->pieces > 1)
        status = lengths_of(setup, run, diag);
    free(setup->hidden);
    setup->hidden = NULL;
    if (status == STATUS_OK && run->system >= SPPO_ADAPTIVE)
        status = offload_hidden_bytes(&setup->hidden, r, setup, diag);
    return status;
}
