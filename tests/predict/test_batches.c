/* tests/predict/test_batches.c: the step times of many packed batches equal those of simulations of every rank, layer
 * and op, or are near them where they are estimated from few layers. */
#include "predict/documents/batches.h"
#include "predict/documents/lengths.h"
#include "predict/documents/packed_sets.h"
#include "predict/longhaul.h"
#include "schedule/config/resolve_config.h"
#include "tests/check.h"

#include <stdio.h>

enum { BATCHES = 4 };

/* A configuration on 16 GPUs of two nodes. */
struct configuration {
    const char *label, *strategy, *lengths;
    uint32_t cp, dp;
    int64_t seq, batch;
    int layout;
    enum packing_balance_policy balance;
};

struct run {
    struct setup setup;
    struct packed_batch batch[BATCHES];
    struct arena arena;
    struct documents documents; /* of the first batch */
};

static enum status pack(struct run *r, const struct configuration *c, uint64_t seed,
                        struct diag *diag)
{
    struct choices choices;
    struct packing_options sizes = {.policy = PACKING_FIRST_FIT, .balance = c->balance};
    struct lengths lengths = {0};
    enum status status = resolve_choices(&choices, &r->setup.request, NULL, diag);
    if (status == STATUS_OK)
        status = packing_fill_sizes(&sizes, &r->setup.request, &choices, diag);
    if (status == STATUS_OK)
        status = lengths_open(&lengths, c->lengths, seed, diag);
    for (size_t i = 0; i < BATCHES && status == STATUS_OK; i++)
        status = packing_pack_next_step(&r->batch[i], &lengths, &sizes, diag);
    lengths_release(&lengths);
    if (status == STATUS_OK) {
        packed_batch_fill_documents(&r->batch[0], c->seq, &r->documents, &r->arena);
        r->setup.request.documents = &r->documents;
    }
    return status;
}

static enum status pack_batches_of_configuration(struct run *r, const struct configuration *c,
                                                 uint64_t seed, struct diag *diag)
{
    enum status status = setup_load_model(&r->setup, "llama3-8b", NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&r->setup, "dgx-h100", 2, 16, diag);
    if (status != STATUS_OK)
        return status;
    setup_leave_request_open(&r->setup);
    r->setup.request.strategy = c->strategy;
    r->setup.request.profile = "neutral";
    r->setup.request.ring_layout = c->layout;
    r->setup.request.cp = c->cp;
    r->setup.request.dp = c->dp;
    r->setup.request.seq = c->seq;
    r->setup.request.global_batch = c->batch;
    return pack(r, c, seed, diag);
}

static void release_packed_batches(struct run *r)
{
    for (size_t i = 0; i < BATCHES; i++)
        packed_batch_release(&r->batch[i]);
    arena_release(&r->arena);
    setup_release(&r->setup);
}

static enum status predict(struct batch_times *times, const struct run *r, bool exact,
                           struct diag *diag)
{
    const struct prediction_question question = {
        .setup = &r->setup, .is_exact = exact, .builds_whole_list = exact};
    struct prediction first = {0};
    enum status status = prediction_make(&first, &question, diag);
    if (status == STATUS_OK)
        status = batch_times_make(times, &first, r->batch, BATCHES, diag);
    prediction_release(&first);
    return status;
}

/* Compares step times with exact ones. The relative tolerance is `within` for estimated times, and 1e-9 for the first
 * batch and for times that are not estimated. Returns the number of layers that estimates use; 0: no estimates. */
static int64_t check_batch_step_times(const struct configuration *c, uint64_t seed, double within)
{
    struct run r = {0};
    struct batch_times fast = {0}, exact = {0};
    struct diag diag = {0};
    enum status status = pack_batches_of_configuration(&r, c, seed, &diag);
    if (status == STATUS_OK)
        status = predict(&fast, &r, false, &diag);
    if (status == STATUS_OK)
        status = predict(&exact, &r, true, &diag);
    if (CHECK_INT(c->label, status, STATUS_OK)) {
        CHECK_CLOSE(c->label, fast.step_s[0], exact.step_s[0], 1e-9);
        for (size_t i = 1; i < BATCHES; i++)
            CHECK_CLOSE(c->label, fast.step_s[i], exact.step_s[i],
                        fast.simulated_layers > 0 ? within : 1e-9);
        CHECK_INT(c->label, exact.simulated_layers, 0);
    } else {
        fputs(diag.text, stderr);
    }
    int64_t layers = fast.simulated_layers;
    batch_times_release(&fast);
    batch_times_release(&exact);
    diag_release(&diag);
    release_packed_batches(&r);
    return layers;
}

/* Steps of few ops are not estimated, and their times equal those of a simulation of every rank.
 * Each day tests a part of the configurations. */
static void short_batch_steps_are_exact(void)
{
    struct check_random random = check_random_make();
    enum { COUNT = 10 };
    for (int i = 0; i < COUNT; i++) {
        static const char *const strategies[] = {"ulysses", "ring", "2d"};
        struct configuration c = {.strategy = strategies[i % 3]};
        char label[160], lengths[40];
        c.dp = (uint32_t)1 << check_random_i64(&random, 0, i % 3 == 2 ? 1 : 2);
        c.cp = i % 3 == 0   ? 0
               : i % 3 == 1 ? 16 / c.dp
                            : (uint32_t)1 << check_random_i64(&random, 1, 2);
        c.seq = 16384 << check_random_i64(&random, 0, 2);
        c.batch = c.dp * check_random_i64(&random, 1, 2);
        c.layout = check_random_i64(&random, 0, 1) ? RING_ZIGZAG : RING_ZIGZAG_DOCUMENTS;
        c.balance = (enum packing_balance_policy)check_random_i64(&random, 0,
                                                                  BALANCE_RANKS_AND_MICRO_BATCHES);
        snprintf(lengths, sizeof lengths, "lognormal:%lld,1.5",
                 (long long)check_random_i64(&random, 200, 5000));
        snprintf(label, sizeof label, "%s cp %u dp %u seq %lld batch %lld %s", c.strategy, c.cp,
                 c.dp, (long long)c.seq, (long long)c.batch, lengths);
        c.label = label;
        c.lengths = lengths;
        if (check_is_sampled_today((size_t)i, COUNT, 4))
            CHECK_INT(label, check_batch_step_times(&c, (uint64_t)i + 1, 0), 0);
    }
}

/* Long steps are estimated from few layers. What the estimate leaves out is how the wait of a rank at the ends of a
 * micro-batch differs from batch to batch. */
static void long_batch_steps_are_estimated_near(void)
{
    static const struct configuration rows[] = {
        {"ring of 16", "ring", "lognormal:3000,1.7", 16, 1, 131072, 24, RING_ZIGZAG, BALANCE_NONE},
        {"ring of 8, twice", "ring", "lognormal:3000,1.7", 8, 2, 65536, 64, RING_ZIGZAG,
         BALANCE_RANKS_AND_MICRO_BATCHES},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!check_is_sampled_today(i, ARRAY_LEN(rows), ARRAY_LEN(rows)))
            continue;
        int64_t layers = check_batch_step_times(&rows[i], 7, 0.005);
        CHECK(rows[i].label, layers >= 3 && layers <= 16);
    }
}

static const struct check_case cases[] = {
    {"short steps are exact", short_batch_steps_are_exact},
    {"long steps are near", long_batch_steps_are_estimated_near},
};
CHECK_MAIN("batches", cases)
