/* Whole training steps: every product of choices computes the reference's loss, gradients and
 * parameters, with every element written before it is read. */
#include "tests/exec/step.h"

static const struct row {
    const char *label;
    const struct transformer *model;
    int64_t ranks, seq, dp, batch, micro;
    int weights, activations, optimizer;
    const char *strategy, *profile;
    int64_t loss_chunks, ffn_chunks, shard;
} rows[] = {
    {.label = "one rank", .model = &small_llama, .ranks = 1, .seq = 24},
    {.label = "local, 2 ranks", .model = &small_llama, .ranks = 2, .seq = 24, .strategy = "local"},
    {.label = "ulysses 2", .model = &small_llama, .ranks = 2, .seq = 24},
    {.label = "ulysses 4 over 2 key heads", .model = &small_llama, .ranks = 4, .seq = 24},
    {.label = "ulysses 4, ideal", .model = &small_llama, .ranks = 4, .seq = 24, .profile = "ideal"},
    {.label = "internevo, dp 2", .model = &small_llama, .ranks = 4, .seq = 24, .dp = 2,
     .profile = "internevo"},
    {.label = "gpt, ulysses 4", .model = &small_gpt, .ranks = 4, .seq = 16},
    {.label = "gpt, ideal, pieces", .model = &small_gpt, .ranks = 2, .seq = 32, .profile = "ideal",
     .loss_chunks = 3, .ffn_chunks = 3},
    {.label = "replicated, keep", .model = &small_llama, .ranks = 4, .seq = 24, .dp = 2,
     .weights = 1 + CHOICE_WEIGHTS_REPLICATED, .activations = 1 + CHOICE_ACTIVATIONS_KEEP},
    {.label = "zero1, accumulation", .model = &small_llama, .ranks = 2, .seq = 24, .batch = 3,
     .weights = 1 + CHOICE_WEIGHTS_ZERO1},
    {.label = "zero2, accumulation", .model = &small_llama, .ranks = 2, .seq = 24, .batch = 3,
     .weights = 1 + CHOICE_WEIGHTS_ZERO2, .activations = 1 + CHOICE_ACTIVATIONS_KEEP},
    {.label = "zero3, micro-batch 2", .model = &small_gpt, .ranks = 4, .seq = 16, .dp = 2,
     .batch = 8, .micro = 2, .weights = 1 + CHOICE_WEIGHTS_ZERO3},
    {.label = "hsdp 2 of 8", .model = &small_llama, .ranks = 8, .seq = 24, .dp = 2, .batch = 4,
     .weights = 1 + CHOICE_WEIGHTS_HSDP, .shard = 2},
    {.label = "checkpoints on the host", .model = &small_llama, .ranks = 2, .seq = 24,
     .activations = 1 + CHOICE_ACTIVATIONS_OFFLOAD, .optimizer = 1 + CHOICE_OPTIMIZER_HOST},
    {.label = "the same, overlapped", .model = &small_llama, .ranks = 2, .seq = 24,
     .profile = "ideal", .activations = 1 + CHOICE_ACTIVATIONS_OFFLOAD, .batch = 2,
     .weights = 1 + CHOICE_WEIGHTS_ZERO2, .optimizer = 1 + CHOICE_OPTIMIZER_HOST},
};

static struct request request_of(const struct row *row)
{
    struct request request = step_request(row->model, row->ranks, row->seq);
    request.strategy = row->strategy;
    request.profile = row->profile;
    request.dp = row->dp;
    request.global_batch = row->batch;
    request.micro_batch = row->micro;
    request.weights = row->weights - 1;
    request.activations = row->activations - 1;
    request.optimizer = row->optimizer - 1;
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
