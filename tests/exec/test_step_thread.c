/* tests/exec/test_step_thread.c: whole steps on at most 4 ranks, for the thread sanitizer. */
#include "tests/exec/step.h"

static const struct step_row {
    const char *label;
    const struct transformer *model;
    const char *profile;
    int64_t ranks, seq, dp, batch;
    int weights, activations, optimizer;
} rows[] = {
    /* label, model, profile, ranks, seq, dp, batch, weights, activations, optimizer */
    {"zero3", &small_llama, NULL, 2, 8, 1, 2, CHOICE_WEIGHTS_ZERO3, -1, -1},
    {"keep", &small_llama, NULL, 4, 8, 2, 2, CHOICE_WEIGHTS_REPLICATED, CHOICE_ACTIVATIONS_KEEP,
     -1},
    {"on the host", &small_gpt, "ideal", 4, 8, 2, 4, CHOICE_WEIGHTS_ZERO2,
     CHOICE_ACTIVATIONS_OFFLOAD, CHOICE_OPTIMIZER_HOST},
};

static void steps_have_no_races(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = step_request(rows[i].model, rows[i].ranks, rows[i].seq);
        struct executed_step step;
        request.profile = rows[i].profile;
        request.dp = rows[i].dp;
        request.global_batch = rows[i].batch;
        request.weights = rows[i].weights;
        request.activations = rows[i].activations;
        request.optimizer = rows[i].optimizer;
        if (step_make(&step, rows[i].label, &request)) {
            step.options.stall_limit_s = 60;
            step_check_against_reference(&step, rows[i].label, 1e-4);
        }
        step_release(&step);
    }
}

static const struct check_case cases[] = {
    {"steps have no races", steps_have_no_races},
};
CHECK_MAIN("step, threads", cases)
