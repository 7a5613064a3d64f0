/* tests/cli/test_space.c: the estimates by which `plan` skips configurations without simulating them are bounds, or
 * are close to the simulation; and the search for the longest sequence finds it, also when it is interrupted. */
#include "base/interrupt.h"
#include "cli/plan/longest_report.h"
#include "predict/bounds.h"
#include "predict/plan/best.h"
#include "predict/plan/shortened.h"
#include "predict/setup/subsequences.h"
#include "tests/check.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct question {
    const char *model, *cluster, *profile, *strategy; /* NULL: all */
    int64_t gpus, layers, seq, batch;
    size_t every; /* every how many candidates one is checked */
    int dtype;
    int64_t chunk;       /* tokens of a chunk, whose queries see half the keys; 0: dense */
    const char *lengths; /* of packed documents; NULL: each sequence is one document */
} questions[] = {
    {"llama3-8b", "dgx-h100", "published", NULL, 8, 4, 65536, 8, 9, DTYPE_BF16, 0, NULL},
    {"gpt-2.7b", "fpdt-a100-80g", "ideal", NULL, 4, 3, 32768, 0, 9, DTYPE_BF16, 0, NULL},
    {"llama3-8b", "dgx-a100", "published", NULL, 16, 2, 131072, 16, 9, DTYPE_BF16, 0, NULL},
    {"gpt-7b", "sppo-a100", "published", "sppo", 8, 5, 131072, 2, 3, DTYPE_BF16, 0, NULL},
    {"gpt-7b", "sppo-a100", "ideal", "sppo", 8, 4, 65536, 1, 3, DTYPE_BF16, 0, NULL},
    /* memory that is mostly model states */
    {"gpt-65b", "dgx-h100", "torchtitan", NULL, 8, 40, 1024, 8, 25, DTYPE_BF16, 0, NULL},
    {"gpt-13b", "dgx-h100", "ideal", NULL, 8, 40, 1024, 8, 25, DTYPE_F32, 0, NULL},
    {"llama3-8b", "dgx-h100", "ideal", "fpdt", 4, 2, 1048576, 1, 2, DTYPE_BF16, 65536, NULL},
    /* a few long documents among short ones, so that micro-batches and ranks differ */
    {"llama3-8b", "dgx-h100", "neutral", NULL, 8, 4, 65536, 8, 25, DTYPE_BF16, 0,
     "lognormal:2K,1.8"},
};

static bool load(struct setup *setup, size_t i, struct diag *diag)
{
    char fields[32];
    snprintf(fields, sizeof fields, "layers=%lld", (long long)questions[i].layers);
    bool ok =
        setup_load_model(setup, questions[i].model, NULL, fields, diag) == STATUS_OK &&
        setup_load_cluster(setup, questions[i].cluster, 0, questions[i].gpus, diag) == STATUS_OK;
    CHECK_TEXT(questions[i].model, diag->text ? diag->text : "", "");
    setup_open_request(setup);
    setup->request.seq = questions[i].seq;
    setup->request.global_batch = questions[i].batch;
    setup->request.profile = questions[i].profile;
    setup->request.strategy = questions[i].strategy;
    setup->request.dtype = questions[i].dtype;
    setup->request.chunk = questions[i].chunk;
    if (questions[i].chunk > 0)
        setup_sparsity(setup, questions[i].chunk, 0.5);
    subsequences_open(&setup->request, setup);
    return ok;
}

/* Checks that no repair (a configuration that is tried when the request does not fit) needs less host memory than the
 * request, and that the last repair needs the least GPU memory, within RESERVED_ERROR of the memory that is available.
 * This does not hold where activations are offloaded by ratio. */
static void check_repairs(const char *label, const struct setup *setup,
                          const struct request *request, const struct prediction *unrepaired)
{
    const struct choices *c = &unrepaired->choices;
    uint64_t host_bytes = unrepaired->verdict.needed[LIMIT_HOST];
    uint64_t least_bytes = unrepaired->verdict.needed[LIMIT_DEVICE];
    double kept = RESERVED_ERROR * (double)unrepaired->verdict.available[LIMIT_DEVICE];
    static const struct {
        int64_t loss_chunks, ffn_chunks;
        bool host_optimizer;
    } tries[] = {{8, 0, false}, {8, 8, false}, {64, 8, false}, {0, 0, true},
                 {8, 0, true},  {8, 8, true},  {64, 8, true}};
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        struct prediction p = {0};
        struct request repaired = *request;
        if (c->loss_chunks < tries[i].loss_chunks)
            repaired.loss_chunks = tries[i].loss_chunks;
        if (c->ffn_chunks < tries[i].ffn_chunks)
            repaired.ffn_chunks = tries[i].ffn_chunks;
        if (tries[i].host_optimizer)
            repaired.optimizer = CHOICE_OPTIMIZER_HOST;
        if (prediction_memory(&p, setup, &repaired, NULL, NULL) == STATUS_OK) {
            uint64_t needed = p.verdict.needed[LIMIT_DEVICE];
            CHECK(label, p.verdict.needed[LIMIT_HOST] >= host_bytes);
            if (i + 1 == ARRAY_LEN(tries))
                CHECK(label, (double)needed <= (double)least_bytes + kept);
            least_bytes = needed < least_bytes ? needed : least_bytes;
        }
        prediction_release(&p);
    }
}

static double ranks_of_node(const struct setup *setup)
{
    return fmin((double)setup->cluster.gpus, (double)setup->cluster.gpus_per_node);
}

static void check_candidate(struct setup *setup, const struct candidate *c)
{
    struct prediction p = {0};
    struct diag diag = {0};
    char label[160];
    setup->padding = c->sample != NULL ? c->sample->batch[c->sample->typical].padding : 0;
    snprintf(
        label, sizeof label,
        "%s subsequences %lld pp %lld tp %lld cp %lld hp %lld dp %lld weights %d activations %d",
        c->request.strategy, (long long)c->request.subsequences, (long long)c->request.pp,
        (long long)c->request.tp, (long long)c->request.cp, (long long)c->request.hp,
        (long long)c->request.dp, c->request.weights, c->request.activations);
    if (prediction_make(&p, setup, &c->request, false, &diag) == STATUS_OK) {
        double bound_s = prediction_bound_s(&p);
        CHECK(label, c->bound_s <= p.sim.step_s);
        CHECK(label, bound_s <= p.sim.step_s * (1 + 1e-9));
        CHECK(label, c->least_bytes <= (double)p.verdict.needed[LIMIT_DEVICE]);
        CHECK(label, ranks_of_node(setup) * bound_host_bytes(&p.choices) <=
                         (double)p.verdict.needed[LIMIT_HOST]);
        CHECK_CLOSE(label, prediction_tokens(&p), c->tokens, 1e-15);
        if (p.choices.activations != CHOICE_ACTIVATIONS_RATIO)
            check_repairs(label, setup, &c->request, &p);
    }
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    diag_release(&diag);
    prediction_release(&p);
}

static void nothing_is_better_than_its_bounds(void)
{
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct setup setup = {0};
        struct diag diag = {0};
        struct space space = {0};
        struct samples samples = {.asked = {.lengths = questions[i].lengths, .batches = 3}};
        struct space_open all = {.strategy = questions[i].strategy == NULL,
                                 .placement = true,
                                 .stage_placement = true,
                                 .layout = true,
                                 .samples = questions[i].lengths != NULL ? &samples : NULL};
        if (load(&setup, i, &diag) &&
            space_add(&space, &setup, questions[i].gpus, all, &diag) == STATUS_OK)
            for (size_t c = i % questions[i].every; c < space.count; c += questions[i].every)
                check_candidate(&setup, &space.row[c]);
        CHECK(questions[i].model, space.count > 10);
        space_release(&space);
        samples_release(&samples);
        diag_release(&diag);
        setup_release(&setup);
    }
}

/* Fills *space with candidates of sppo for steps of 32 sequences on 8 GPUs. */
static bool open_long_steps(struct setup *setup, struct space *space, int64_t seq,
                            const char *fields, struct diag *diag)
{
    enum { GPUS = 8 };
    struct space_open all = {.placement = true, .stage_placement = true};
    bool ok = setup_load_model(setup, "gpt-7b", NULL, fields, diag) == STATUS_OK &&
              setup_load_cluster(setup, "sppo-a100", 0, GPUS, diag) == STATUS_OK;
    setup_open_request(setup);
    setup->request.seq = seq;
    setup->request.global_batch = 32;
    setup->request.strategy = "sppo";
    subsequences_open(&setup->request, setup);
    ok = ok && space_add(space, setup, GPUS, all, diag) == STATUS_OK;
    CHECK_TEXT("space", diag->text ? diag->text : "", "");
    return ok;
}

/* Checks that the time of a step of many micro-batches, extrapolated from steps of few, is within SHORTENED_ERROR of
 * the simulated time. */
static void short_steps_tell_the_time_of_long_ones(void)
{
    enum { EVERY = 2 };
    struct setup setup = {0};
    struct diag diag = {0};
    struct space space = {0};
    size_t told = 0;
    double worst = 0;
    bool ok = open_long_steps(&setup, &space, 65536, "layers=4", &diag);
    for (size_t i = 0; ok && i < space.count; i += EVERY) {
        const struct request *r = &space.row[i].request;
        struct prediction p = {0};
        char label[96];
        double short_s = shortened_step_s(&setup, r);
        snprintf(label, sizeof label, "subsequences %lld pp %lld tp %lld dp %lld",
                 (long long)r->subsequences, (long long)r->pp, (long long)r->tp, (long long)r->dp);
        if (short_s > 0 && prediction_make(&p, &setup, r, false, &diag) == STATUS_OK) {
            CHECK_CLOSE(label, short_s, p.sim.step_s, SHORTENED_ERROR);
            worst = fmax(worst, fabs(short_s / p.sim.step_s - 1));
            told++;
        }
        prediction_release(&p);
    }
    CHECK("several", told >= 3);
    printf("%zu steps, off by %.2f %% at most", told, 100 * worst);
    space_release(&space);
    diag_release(&diag);
    setup_release(&setup);
}

/* If a step of few micro-batches does not fit into memory, a step of many does not fit either. */
static void what_short_steps_lack_long_ones_lack(void)
{
    enum { EVERY = 4 };
    struct setup setup = {0};
    struct diag diag = {0};
    struct space space = {0};
    size_t lacking = 0, unfit = 0;
    bool ok = open_long_steps(&setup, &space, 262144, "layers=8", &diag), one = false;
    for (size_t i = 0; ok && i < space.count; i++)
        one = one || space.row[i].request.dp == 1;
    CHECK("one sequence at a time", one);
    for (size_t i = 0; ok && i < space.count; i += EVERY) {
        const struct request *r = &space.row[i].request;
        struct prediction p = {0};
        struct verdict early;
        char label[96];
        snprintf(label, sizeof label, "subsequences %lld pp %lld tp %lld dp %lld",
                 (long long)r->subsequences, (long long)r->pp, (long long)r->tp, (long long)r->dp);
        if (prediction_memory(&p, &setup, r, NULL, NULL) == STATUS_OK) {
            bool lacks = shortened_lacks(&early, &setup, r);
            CHECK(label, !lacks || !p.verdict.fits);
            lacking += lacks;
            unfit += !p.verdict.fits;
        }
        prediction_release(&p);
    }
    CHECK("some", lacking > 0);
    printf("%zu of %zu that do not fit", lacking, unfit);
    space_release(&space);
    diag_release(&diag);
    setup_release(&setup);
}

/* The search finds the last length that fits, wherever it begins. */
static void the_boundary_does_not_depend_on_the_guess(void)
{
    static const int64_t guesses[] = {0, 1024, 300000, 50000000};
    struct setup setup = {0};
    struct diag diag = {0};
    struct ladder ladder;
    if (load(&setup, 0, &diag) &&
        CHECK_INT("ladder", ladder_of(&ladder, &setup.request, &diag), STATUS_OK)) {
        int64_t first = 0;
        for (size_t i = 0; i < ARRAY_LEN(guesses); i++) {
            struct longest longest;
            CHECK_INT(
                "found",
                longest_find(&longest, &setup, &setup.request, &ladder, guesses[i], NULL, &diag),
                STATUS_OK);
            CHECK("at fits", longest.at.fits && !longest.beyond.fits);
            CHECK_INT("one step", longest.next - longest.tokens, ladder.first);
            first = first > 0 ? first : longest.tokens;
            CHECK_INT("same", longest.tokens, first);
        }
    }
    diag_release(&diag);
    setup_release(&setup);
}

static const struct {
    int64_t guess;
    const char *text, *message;
} interrupted_searches[] = {
    {1024,
     "longest       at least 1K tokens (1024), in steps of 1024, 1 lengths asked about\n"
     "fits          device memory needs ",
     "plan: error: ended by an interrupt; lengths beyond 1K tokens were not asked about\n"},
    {1024 * 1024 * 1024,
     "longest       not known: no length that was asked about fits\n"
     "next          1G tokens: device memory needs ",
     "plan: error: ended by an interrupt; lengths below 1G tokens were not asked about\n"},
};

/* Sends the signal before the first length is predicted. This case must be the last one, because the program
 * remembers a signal until it ends. */
static void an_interrupted_search_says_what_it_knows(void)
{
    struct interrupt interrupt;
    interrupt_catch(&interrupt);
    raise(SIGINT);
    for (size_t i = 0; i < ARRAY_LEN(interrupted_searches); i++) {
        struct setup setup = {0};
        struct longest_certificate report = {0};
        struct text out = {0}, json = {0};
        struct diag diag = {0};
        if (load(&setup, 0, &diag)) {
            setup.request.seq = interrupted_searches[i].guess;
            longest_certificate_make(&report, &setup, &diag);
            longest_report_print(&(struct screen){.out = &out}, &report, false);
            longest_report_print_json(&json, &report);
            CHECK_INT("one length", report.longest.asked, 1);
            CHECK("text", strncmp(out.data, interrupted_searches[i].text,
                                  strlen(interrupted_searches[i].text)) == 0);
            CHECK("JSON", strstr(json.data, "\"search_ended_early\": true") != NULL);
            CHECK_INT("status", longest_report_ended(&report, &diag), STATUS_SYSTEM);
            CHECK_TEXT("message", diag.text, interrupted_searches[i].message);
        }
        longest_certificate_release(&report);
        text_release(&out);
        text_release(&json);
        diag_release(&diag);
        setup_release(&setup);
    }
    interrupt_release(&interrupt);
}

static const struct check_case cases[] = {
    {"nothing is better than its bounds", nothing_is_better_than_its_bounds},
    {"short steps tell the time of long ones", short_steps_tell_the_time_of_long_ones},
    {"what short steps lack, long ones lack", what_short_steps_lack_long_ones_lack},
    {"the boundary does not depend on the guess", the_boundary_does_not_depend_on_the_guess},
    {"an interrupted search says what it knows", an_interrupted_search_says_what_it_knows},
};
CHECK_MAIN("space", cases)
