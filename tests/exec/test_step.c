/* Whole training steps: every product of choices computes the reference's loss, gradients and
 * parameters, with every element written before it is read. */
#include "tests/exec/step.h"

enum { OPEN = -1 }; /* the strategy's default */
enum {
    WHOLE = CHOICE_WEIGHTS_REPLICATED,
    ZERO1 = CHOICE_WEIGHTS_ZERO1,
    ZERO2 = CHOICE_WEIGHTS_ZERO2,
    ZERO3 = CHOICE_WEIGHTS_ZERO3,
    HSDP = CHOICE_WEIGHTS_HSDP,
    KEEP = CHOICE_ACTIVATIONS_KEEP,
    FULL = CHOICE_ACTIVATIONS_FULL,
    OFFLOAD = CHOICE_ACTIVATIONS_OFFLOAD,
    HOST = CHOICE_OPTIMIZER_HOST
};

/* 0: open, but for the three choices. */
static const struct row {
    const char *label;
    const struct transformer *model;
    const char *strategy, *profile;
    int64_t ranks, seq, dp, batch, micro;
    int weights, activations, optimizer;
    int64_t loss_chunks, ffn_chunks, shard;
} rows[] = {
    {"one rank",          &small_llama, NULL,    NULL,        1, 24, 0, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"one rank, keep",    &small_llama, NULL,    "ideal",     1, 24, 0, 2, 0, WHOLE, KEEP,    OPEN, 0, 0, 0},
    {"local 2",           &small_llama, "local", NULL,        2, 24, 0, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"ulysses 2",         &small_llama, NULL,    NULL,        2, 24, 0, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"4 over 2 kv heads", &small_llama, NULL,    NULL,        4, 24, 0, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"ideal",             &small_llama, NULL,    "ideal",     4, 24, 0, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"internevo",         &small_llama, NULL,    "internevo", 4, 24, 2, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"gpt",               &small_gpt,   NULL,    NULL,        4, 16, 0, 0, 0, OPEN,  OPEN,    OPEN, 0, 0, 0},
    {"pieces",            &small_gpt,   NULL,    "ideal",     2, 32, 0, 0, 0, OPEN,  OPEN,    OPEN, 3, 3, 0},
    {"replicated",        &small_llama, NULL,    NULL,        4, 24, 2, 0, 0, WHOLE, KEEP,    OPEN, 0, 0, 0},
    {"zero1, 3 micro",    &small_llama, NULL,    NULL,        2, 24, 0, 3, 0, ZERO1, FULL,    OPEN, 0, 0, 0},
    {"zero2, 3 micro",    &small_llama, NULL,    NULL,        2, 24, 0, 3, 0, ZERO2, KEEP,    OPEN, 0, 0, 0},
    {"zero3, micro 2",    &small_gpt,   NULL,    NULL,        4, 16, 2, 8, 2, ZERO3, FULL,    OPEN, 0, 0, 0},
    {"hsdp 2 of 8",       &small_llama, NULL,    NULL,        8, 24, 2, 4, 0, HSDP,  FULL,    OPEN, 0, 0, 2},
    {"hsdp 4 of 8",       &small_llama, NULL,    "ideal",     8, 24, 4, 4, 0, HSDP,  KEEP,    OPEN, 0, 0, 4},
    {"on the host",       &small_llama, NULL,    NULL,        2, 24, 0, 0, 0, OPEN,  OFFLOAD, HOST, 0, 0, 0},
    {"overlapped",        &small_llama, NULL,    "ideal",     2, 24, 0, 2, 0, ZERO2, OFFLOAD, HOST, 0, 0, 0},
};

static struct request request_of(const struct row *row)
{
    struct request request = step_request(row->model, row->ranks, row->seq);
    request.strategy = row->strategy;
    request.profile = row->profile;
    request.dp = row->dp;
    request.global_batch = row->batch;
    request.micro_batch = row->micro;
    request.weights = row->weights;
    request.activations = row->activations;
    request.optimizer = row->optimizer;
    request.loss_chunks = row->loss_chunks;
    request.ffn_chunks = row->ffn_chunks;
    request.shard = row->shard;
    return request;
}

static void steps_compute_what_the_reference_computes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = request_of(&rows[i]);
        struct step step;
        if (step_build(&step, rows[i].label, &request)) {
            step.options.poison = true;
            step_check(&step, rows[i].label, 1e-4);
        }
        step_release(&step);
    }
}

static const struct check_case cases[] = {
    {"steps compute what the reference computes", steps_compute_what_the_reference_computes},
};
CHECK_MAIN("step", cases)
