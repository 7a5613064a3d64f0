/* tests/exec/test_step.c: whole training steps. The listed configurations compute the reference's loss, gradients and
 * parameters, and write every element before they read it. */
#include "tests/exec/step.h"

enum { OPEN = -1 }; /* the strategy's default */
enum {
    REPLICATED_WEIGHTS = CHOICE_WEIGHTS_REPLICATED,
    ZERO1 = CHOICE_WEIGHTS_ZERO1,
    ZERO2 = CHOICE_WEIGHTS_ZERO2,
    ZERO3 = CHOICE_WEIGHTS_ZERO3,
    HSDP = CHOICE_WEIGHTS_HSDP,
    KEEP = CHOICE_ACTIVATIONS_KEEP,
    FULL = CHOICE_ACTIVATIONS_FULL,
    OFFLOAD_ACTIVATIONS = CHOICE_ACTIVATIONS_OFFLOAD,
    HOST = CHOICE_OPTIMIZER_HOST
};

/* Configurations; 0 leaves a field open, and OPEN leaves weights, activations or optimizer open. */
static const struct step_row {
    const char *label;
    const struct transformer *model;
    const char *strategy, *profile;
    int64_t ranks, seq, dp, batch, micro;
    int weights, activations, optimizer;
    int64_t loss_chunks, ffn_chunks, shard;
} rows[] = {
    /* label, model, strategy, profile; ranks, seq, dp, batch, micro; weights, activations, optimizer; loss_chunks,
     * ffn_chunks, shard */
    {"one rank", &small_llama, NULL, NULL, 1, 24, 0, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"one rank, keep", &small_llama, NULL, "ideal", 1, 24, 0, 2, 0, REPLICATED_WEIGHTS, KEEP, OPEN,
     0, 0, 0},
    {"local 2", &small_llama, "local", NULL, 2, 24, 0, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"ulysses 2", &small_llama, NULL, NULL, 2, 24, 0, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"4 over 2 kv heads", &small_llama, NULL, NULL, 4, 24, 0, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"ideal", &small_llama, NULL, "ideal", 4, 24, 0, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"internevo", &small_llama, NULL, "internevo", 4, 24, 2, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"gpt", &small_gpt, NULL, NULL, 4, 16, 0, 0, 0, OPEN, OPEN, OPEN, 0, 0, 0},
    {"pieces", &small_gpt, NULL, "ideal", 2, 32, 0, 0, 0, OPEN, OPEN, OPEN, 3, 3, 0},
    {"replicated", &small_llama, NULL, NULL, 4, 24, 2, 0, 0, REPLICATED_WEIGHTS, KEEP, OPEN, 0, 0,
     0},
    {"zero1, 3 micro", &small_llama, NULL, NULL, 2, 24, 0, 3, 0, ZERO1, FULL, OPEN, 0, 0, 0},
    {"zero2, 3 micro", &small_llama, NULL, NULL, 2, 24, 0, 3, 0, ZERO2, KEEP, OPEN, 0, 0, 0},
    {"zero3, micro 2", &small_gpt, NULL, NULL, 4, 16, 2, 8, 2, ZERO3, FULL, OPEN, 0, 0, 0},
    {"hsdp 2 of 8", &small_llama, NULL, NULL, 8, 24, 2, 4, 0, HSDP, FULL, OPEN, 0, 0, 2},
    {"hsdp 4 of 8", &small_llama, NULL, "ideal", 8, 24, 4, 4, 0, HSDP, KEEP, OPEN, 0, 0, 4},
    {"on the host", &small_llama, NULL, NULL, 2, 24, 0, 0, 0, OPEN, OFFLOAD_ACTIVATIONS, HOST, 0, 0,
     0},
    {"overlapped", &small_llama, NULL, "ideal", 2, 24, 0, 2, 0, ZERO2, OFFLOAD_ACTIVATIONS, HOST, 0,
     0, 0},
};

static struct request request_of(const struct step_row *row)
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

/* Rings: degrees, windows, placements and orders of tokens. */
static const struct ring_row {
    const char *label;
    const struct transformer *model;
    const char *strategy, *profile;
    int64_t seq, dp, cp, hp, window;
    int placement, layout, weights, activations;
} rings[] = {
    /* label, model, strategy, profile, seq, dp, cp, hp, window, placement, layout, weights, activations */
    {"ring of 4", &small_llama, "ring", NULL, 32, 1, 4, 1, 0, 0, RING_ZIGZAG, OPEN, OPEN},
    {"ring of 2, two", &small_gpt, "ring", "ideal", 16, 2, 2, 1, 0, 0, RING_ZIGZAG, ZERO1, KEEP},
    {"ring of 3", &small_llama, "ring", NULL, 36, 1, 3, 1, 0, 0, RING_ZIGZAG, OPEN, OPEN},
    {"contiguous", &small_llama, "ring", NULL, 24, 1, 4, 1, 0, 0, RING_CONTIGUOUS, OPEN, OPEN},
    {"striped", &small_llama, "ring", "ideal", 24, 1, 4, 1, 0, 0, RING_STRIPED, OPEN, OPEN},
    {"kv to all heads", &small_llama, "ring", "deepspeed", 32, 1, 4, 1, 0, 0, RING_ZIGZAG, OPEN,
     OPEN},
    {"head first", &small_llama, "2d", NULL, 32, 1, 2, 4, 0, PLACEMENT_HEAD_FIRST, RING_ZIGZAG,
     OPEN, OPEN},
    {"context first", &small_llama, "2d", NULL, 32, 1, 4, 2, 0, PLACEMENT_CONTEXT_FIRST,
     RING_ZIGZAG, OPEN, OPEN},
    {"rope after", &small_llama, "2d", "deepspeed", 32, 1, 2, 2, 0, 0, RING_ZIGZAG, OPEN,
     OFFLOAD_ACTIVATIONS},
    {"windows of 2", &small_llama, "ring", NULL, 64, 1, 8, 1, 2, 0, RING_ZIGZAG, OPEN, OPEN},
    {"windows of 4", &small_llama, "ring", "ideal", 64, 1, 8, 1, 4, 0, RING_ZIGZAG, OPEN, KEEP},
    {"one window", &small_llama, "ring", NULL, 32, 1, 4, 1, 4, 0, RING_ZIGZAG, OPEN, OPEN},
    {"windows, two heads", &small_llama, "2d", NULL, 32, 1, 4, 2, 2, PLACEMENT_HEAD_FIRST,
     RING_ZIGZAG, OPEN, OPEN},
    {"even, then odd ranks", &small_llama, "ring", NULL, 64, 1, 8, 1, 2, PLACEMENT_CONTEXT_FIRST,
     RING_ZIGZAG, OPEN, OPEN},
    {"even, odd, sharded", &small_llama, "ring", NULL, 64, 1, 8, 1, 4, PLACEMENT_CONTEXT_FIRST,
     RING_ZIGZAG, HSDP, CHOICE_ACTIVATIONS_SELECTIVE},
    {"windows, context first", &small_gpt, "2d", NULL, 32, 1, 4, 2, 2, PLACEMENT_CONTEXT_FIRST,
     RING_ZIGZAG, OPEN, OPEN},
    {"windows, striped", &small_llama, "2d", NULL, 32, 1, 4, 2, 2, 0, RING_STRIPED, OPEN, OPEN},
    {"windows, contiguous", &small_llama, "2d", "ideal", 32, 1, 4, 2, 2, 0, RING_CONTIGUOUS, OPEN,
     OPEN},
    {"2d with one ring rank", &small_llama, "2d", NULL, 32, 1, 1, 4, 0, 0, RING_ZIGZAG, OPEN, OPEN},
    {"2d with one head rank", &small_llama, "2d", NULL, 32, 1, 4, 1, 0, 0, RING_ZIGZAG, OPEN, OPEN},
};

static void rings_compute_what_the_reference_computes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rings); i++) {
        const struct ring_row *row = &rings[i];
        struct request request = step_request(row->model, row->dp * row->cp * row->hp, row->seq);
        struct executed_step step;
        request.strategy = row->strategy;
        request.profile = row->profile;
        request.dp = row->dp;
        request.cp = row->cp;
        request.hp = row->hp;
        request.ring_window = row->window;
        request.placement = row->placement;
        request.ring_layout = row->layout;
        request.weights = row->weights;
        request.activations = row->activations;
        if (step_make(&step, row->label, &request)) {
            step.options.finds_unwritten_reads = true;
            step_check_against_reference(&step, row->label, 1e-4);
        }
        step_release(&step);
    }
}

static void steps_compute_what_the_reference_computes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = request_of(&rows[i]);
        struct executed_step step;
        if (step_make(&step, rows[i].label, &request)) {
            step.options.finds_unwritten_reads = true;
            step_check_against_reference(&step, rows[i].label, 1e-4);
        }
        step_release(&step);
    }
}

/* bf16 has 8 significant bits: results of a few layers are accurate to some per cent of the largest element. */
static void sixteen_bit_steps_come_close(void)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_F16};
    static const double tolerance[] = {0.1, 0.02};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct request request = step_request(&small_llama, 4, 24);
        struct executed_step step;
        request.dtype = (int)types[i];
        request.dp = 2;
        if (step_make(&step, dtype_name(types[i]), &request)) {
            step.options.finds_unwritten_reads = true;
            step_check_against_reference(&step, dtype_name(types[i]), tolerance[i]);
        }
        step_release(&step);
    }
}

static void hsdp_on_64_ranks_computes_reference(void)
{
    struct request request = step_request(&small_llama, 64, 48);
    struct executed_step step;
    request.hp = 4;
    request.weights = CHOICE_WEIGHTS_HSDP;
    request.shard = 16;
    if (step_make(&step, "64 ranks", &request)) {
        step.options.stall_limit_s = 60;
        step_check_against_reference(&step, "64 ranks", 1e-4);
    }
    step_release(&step);
}

/* The loss is the same, bit for bit, in whatever order threads run. */
static void results_do_not_depend_on_timing(void)
{
    struct request request = step_request(&small_gpt, 4, 16);
    double loss = 0;
    request.dp = 2;
    for (int i = 0; i < 4; i++) {
        struct executed_step step;
        if (step_make(&step, "timing", &request)) {
            step.options.message_link.latency_s = i * 1e-4;
            CHECK_INT("runs", step_run(&step, "timing"), STATUS_OK);
            CHECK("the same loss", i == 0 || step.bindings.loss == loss);
            loss = step.bindings.loss;
        }
        step_release(&step);
    }
}

/* Four steps on the same tokens: the loss of the last one and the parameters after it are the reference's. */
static void losses_follow_the_reference(void)
{
    struct request request = step_request(&small_llama, 2, 24);
    struct executed_step step;
    if (step_make(&step, "training", &request)) {
        struct reference_batch batch = {
            step.tokens, NULL, step.ir.global_batch, step.ir.layout.sequence_tokens, NULL, NULL};
        double loss = 0;
        step.options.warmup_steps = 1;
        step.options.measured_steps = 3;
        CHECK_INT("runs", step_run(&step, "training"), STATUS_OK);
        for (int i = 1; i <= 4; i++) {
            reference_gradients(step.reference, &batch, &loss, NULL);
            training_update_reference(step.reference, &step.ir, &step_adamw, i);
        }
        CHECK_CLOSE("loss of the fourth step", step.bindings.loss, loss, 1e-4);
        step_check_tensors_of_binding_kind(&step, "training", "parameter", BINDING_PARAM, 2e-4);
    }
    step_release(&step);
}

static const struct check_case cases[] = {
    {"rings compute what the reference computes", rings_compute_what_the_reference_computes},
    {"steps compute what the reference computes", steps_compute_what_the_reference_computes},
    {"sixteen bits come close", sixteen_bit_steps_come_close},
    {"64 tiny ranks", hsdp_on_64_ranks_computes_reference},
    {"results do not depend on timing", results_do_not_depend_on_timing},
    {"losses follow the reference", losses_follow_the_reference},
};
CHECK_MAIN("step", cases)
