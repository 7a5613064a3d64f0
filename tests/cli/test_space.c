/* tests/cli/test_space.c: the estimates by which `plan` skips configurations without simulating them are bounds, or
 * are close to the simulation; and the search for the longest sequence finds it, also when it is interrupted. */
#include "base/interrupt.h"
#include "cli/plan/longest_report.h"
#include "predict/bounds.h"
#include "predict/plan/best.h"
#include "predict/plan/layer_time.h"
#include "predict/plan/shortened.h"
#include "predict/setup/choice_rows.h"
#include "predict/setup/subsequences.h"
#include "tests/check.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A candidate is checked once in DAYS days (check_is_sampled_today()), a long step once in LONG_DAYS. Under the address
 * sanitizer check_is_sampled_today() multiplies the days by four; the long steps are few, so their days are fewer
 * there. */
enum {
    DAYS = 12,
#ifdef __SANITIZE_ADDRESS__
    LONG_DAYS = 2
#else
    LONG_DAYS = 6
#endif
};

/* Searches of `plan` whose candidates are simulated, to be compared with their bounds. */
static const struct question {
    const char *model, *cluster, *profile, *strategy; /* NULL: all */
    int64_t gpus, layers, seq, batch;
    size_t every; /* one of this many candidates is checked, once in DAYS days */
    int dtype;
    int64_t chunk;       /* tokens of a chunk, whose queries see half the keys; 0: dense */
    const char *lengths; /* of packed documents; NULL: each sequence is one document */
} questions[] = {
    /* model, cluster, profile, strategy, gpus, layers, seq, batch, every, dtype, chunk, lengths */
    {"llama3-8b", "dgx-h100", "published", NULL, 8, 4, 65536, 8, 9, DTYPE_BF16, 0, NULL},
    {"gpt-2.7b", "fpdt-a100-80g", "ideal", NULL, 4, 3, 32768, 0, 9, DTYPE_BF16, 0, NULL},
    {"llama3-8b", "dgx-a100", "published", NULL, 16, 2, 131072, 16, 9, DTYPE_BF16, 0, NULL},
    {"gpt-7b", "sppo-a100", "published", "sppo", 8, 5, 131072, 2, 3, DTYPE_BF16, 0, NULL},
    {"gpt-7b", "sppo-a100", "ideal", "sppo", 8, 4, 65536, 1, 3, DTYPE_BF16, 0, NULL},
    /* two whose memory is mostly model states, and one with sparse attention */
    {"gpt-65b", "dgx-h100", "torchtitan", NULL, 8, 40, 1024, 8, 25, DTYPE_BF16, 0, NULL},
    {"gpt-13b", "dgx-h100", "ideal", NULL, 8, 40, 1024, 8, 25, DTYPE_F32, 0, NULL},
    {"llama3-8b", "dgx-h100", "ideal", "fpdt", 4, 2, 1048576, 1, 2, DTYPE_BF16, 65536, NULL},
    /* a few long documents among short ones, so that micro-batches and ranks differ */
    {"llama3-8b", "dgx-h100", "neutral", NULL, 8, 4, 65536, 8, 25, DTYPE_BF16, 0,
     "lognormal:2K,1.8"},
};

/* Loads the model and the cluster of questions[i], and fills in the request. Returns false if that is not possible. A
 * check fails if there is any message. */
static bool load_search_question(struct setup *setup, size_t i, struct diag *diag)
{
    char model_overrides[32];
    snprintf(model_overrides, sizeof model_overrides, "layers=%lld",
             (long long)questions[i].layers);
    bool ok =
        setup_load_model(setup, questions[i].model, NULL, model_overrides, diag) == STATUS_OK &&
        setup_load_cluster(setup, questions[i].cluster, 0, questions[i].gpus, diag) == STATUS_OK;
    CHECK_TEXT(questions[i].model, diag->text ? diag->text : "", "");
    setup_leave_request_open(setup);
    setup->request.seq = questions[i].seq;
    setup->request.global_batch = questions[i].batch;
    setup->request.profile = questions[i].profile;
    setup->request.strategy = questions[i].strategy;
    setup->request.dtype = questions[i].dtype;
    setup->request.chunk_tokens = questions[i].chunk;
    if (questions[i].chunk > 0)
        setup_set_sparsity(setup, questions[i].chunk, 0.5);
    subsequences_set_open_choices(&setup->request, setup);
    return ok;
}

/* Checks that no repair (a configuration that is tried when the request does not fit) needs less host memory than the
 * request, and that the last repair needs the least GPU memory, within RESERVED_VERDICT_MARGIN_SHARE of the memory that
 * is available. This does not hold where activations are offloaded by ratio. */
static void check_repairs_need_less_memory(const char *label, const struct setup *setup,
                                           const struct request *request,
                                           const struct prediction *unrepaired)
{
    const struct choices *c = &unrepaired->choices;
    uint64_t host_bytes = unrepaired->verdict.needed_bytes[LIMIT_HOST];
    uint64_t least_bytes = unrepaired->verdict.needed_bytes[LIMIT_DEVICE];
    double kept =
        RESERVED_VERDICT_MARGIN_SHARE * (double)unrepaired->verdict.available_bytes[LIMIT_DEVICE];
    static const struct {
        int64_t loss_chunks, ffn_chunks;
        bool host_optimizer;
    } tries[] = {{8, 0, false}, {8, 8, false}, {64, 8, false}, {0, 0, true},
                 {8, 0, true},  {8, 8, true},  {64, 8, true}};
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        struct prediction p = {0};
        struct request repaired = *request;
        const struct prediction_question question = {.setup = setup, .request = &repaired};
        if (c->loss_chunks < tries[i].loss_chunks)
            repaired.loss_chunks = tries[i].loss_chunks;
        if (c->ffn_chunks < tries[i].ffn_chunks)
            repaired.ffn_chunks = tries[i].ffn_chunks;
        if (tries[i].host_optimizer)
            repaired.optimizer = CHOICE_OPTIMIZER_HOST;
        if (prediction_memory(&p, &question, NULL, NULL) == STATUS_OK) {
            uint64_t needed = p.verdict.needed_bytes[LIMIT_DEVICE];
            CHECK(label, p.verdict.needed_bytes[LIMIT_HOST] >= host_bytes);
            if (i + 1 == ARRAY_LEN(tries))
                CHECK(label, (double)needed <= (double)least_bytes + kept);
            least_bytes = needed < least_bytes ? needed : least_bytes;
        }
        prediction_release(&p);
    }
}

/* Choices that a search tries, and that change a layer's time, change its key. */
static void layer_keys_differ_by_searched_choice(void)
{
    const struct transformer model = {.layers = 4, .kv_latent = 512};
    const struct choices base = {.model = &model, .cp = 2, .hp = 2, .subsequences = 2};
    const struct request request = {.model = &model};
    struct choices other[] = {base, base, base, base, base};
    struct layer_key key, of_other;
    other[0].mla_exchange = MLA_EXCHANGE_LATENT;
    other[1].placement = PLACEMENT_CONTEXT_FIRST;
    other[2].ring_layout = RING_CONTIGUOUS;
    other[3].rotation = ROTATE_NEEDED_ROWS;
    other[4].ring_window = 2;
    CHECK("a key", layer_key_make(&key, &base, &request, false));
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        CHECK("a key", layer_key_make(&of_other, &other[i], &request, false));
        CHECK("keys differ", !layer_keys_equal(&key, &of_other));
    }
}

static double gpus_used_per_node(const struct setup *setup)
{
    return fmin((double)setup->cluster.gpus, (double)setup->cluster.gpus_per_node);
}

/* Checks that no step takes less than its layers, by their kernels and by their simulated time. */
static void check_step_exceeds_its_layers(const char *label, const struct setup *setup,
                                          const struct request *request, const struct prediction *p)
{
    struct layer_key least, own;
    if (!layer_key_make(&least, &p->choices, request, true) ||
        !layer_key_make(&own, &p->choices, request, false))
        return;
    struct layer_lower_bound kernels = layer_kernel_sums(setup, request, &least),
                             layer = layer_kernel_sums(setup, request, &own);
    CHECK(label, kernels.kernels_s > 0);
    CHECK(label, bound_step_from_layer_s(setup, &p->choices, &kernels) <= p->sim.step_s);
    layer.kernels_s = kernels.kernels_s;
    layer.step_s = fmax(layer.step_s, layer_simulated_s(setup, request, &own));
    CHECK(label, bound_step_from_layer_s(setup, &p->choices, &layer) <= p->sim.step_s);
}

/* Simulates a candidate, and checks that its time and memory are not below their bounds. */
static void check_bounds_of_candidate(struct setup *setup, const struct candidate *c)
{
    const struct prediction_question question = {.setup = setup, .request = &c->request};
    struct prediction p = {0};
    struct diag diag = {0};
    char label[160];
    setup->padding_tokens = c->packed_set != NULL
                                ? c->packed_set->batch[c->packed_set->typical_batch].padding_tokens
                                : 0;
    snprintf(
        label, sizeof label,
        "%s subsequences %lld pp %lld tp %lld cp %lld hp %lld dp %lld weights %d activations %d",
        c->request.strategy, (long long)c->request.subsequences, (long long)c->request.pp,
        (long long)c->request.tp, (long long)c->request.cp, (long long)c->request.hp,
        (long long)c->request.dp, c->request.weights, c->request.activations);
    if (prediction_make(&p, &question, &diag) == STATUS_OK) {
        double bound_s = prediction_step_lower_bound_s(&p);
        CHECK(label, c->step_lower_bound_s <= p.sim.step_s);
        CHECK(label, bound_s <= p.sim.step_s * (1 + 1e-9));
        check_step_exceeds_its_layers(label, setup, &c->request, &p);
        CHECK(label, c->gpu_lower_bound_bytes <= (double)p.verdict.needed_bytes[LIMIT_DEVICE]);
        CHECK(label, gpus_used_per_node(setup) * bound_saved_host_bytes(&p.choices) <=
                         (double)p.verdict.needed_bytes[LIMIT_HOST]);
        CHECK_CLOSE(label, prediction_tokens(&p), c->step_tokens, 1e-15);
        if (p.choices.activations != CHOICE_ACTIVATIONS_RATIO)
            check_repairs_need_less_memory(label, setup, &c->request, &p);
    }
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    diag_release(&diag);
    prediction_release(&p);
}

static void no_candidate_beats_its_bounds(void)
{
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct setup setup = {0};
        struct diag diag = {0};
        struct space space = {0};
        struct packed_sets packed_sets = {
            .request = {.lengths_text = questions[i].lengths, .batch_count = 3}};
        struct space_open all = {.strategy = questions[i].strategy == NULL,
                                 .placement = true,
                                 .stage_placement = true,
                                 .ring_layout = true,
                                 .packed_sets = questions[i].lengths != NULL ? &packed_sets : NULL};
        if (load_search_question(&setup, i, &diag) &&
            space_add_candidates_of_gpus(&space, &setup, questions[i].gpus, all, &diag) ==
                STATUS_OK)
            for (size_t n = 0, c = i % questions[i].every; c < space.candidate_count;
                 n++, c += questions[i].every)
                if (check_is_sampled_today(n, SIZE_MAX, DAYS))
                    check_bounds_of_candidate(&setup, &space.row[c]);
        CHECK(questions[i].model, space.candidate_count > 10);
        space_release(&space);
        packed_sets_release(&packed_sets);
        diag_release(&diag);
        setup_release(&setup);
    }
}

/* Questions whose steps are long: many micro-batches, many layers, or both. */
static const struct long_steps {
    const char *model, *fields, *cluster, *strategy; /* NULL: all */
    int64_t gpus, seq, batch;
    size_t every; /* one of this many candidates is checked, once in LONG_DAYS days */
} long_steps[] = {
    /* model, fields, cluster, strategy, gpus, seq, batch, every */
    {"gpt-7b", "layers=4", "sppo-a100", "sppo", 8, 65536, 32, 2},
    {"gpt-7b", "layers=8", "sppo-a100", "sppo", 8, 262144, 32, 4},
    {"gpt-13b", "layers=40", "loongtrain-a100", "sppo", 16, 32768, 64, 2},
    {"llama3-8b", "layers=32", "dgx-h100", NULL, 8, 65536, 16, 60},
    {"llama3-70b", "layers=40", "dgx-h100", NULL, 32, 131072, 16, 150},
    {"gpt-13b", "layers=40", "loongtrain-a100", NULL, 16, 32768, 64, 90},
};

/* Fills *space with the candidates of a question. Returns false if that is not possible. A check fails if there is any
 * message. */
static bool list_candidates_of_long_steps(struct setup *setup, struct space *space,
                                          const struct long_steps *q, struct diag *diag)
{
    struct space_open all = {
        .strategy = q->strategy == NULL, .placement = true, .stage_placement = true};
    bool ok = setup_load_model(setup, q->model, NULL, q->fields, diag) == STATUS_OK &&
              setup_load_cluster(setup, q->cluster, 0, q->gpus, diag) == STATUS_OK;
    setup_leave_request_open(setup);
    setup->request.seq = q->seq;
    setup->request.global_batch = q->batch;
    setup->request.strategy = q->strategy;
    setup->request.profile = "neutral";
    subsequences_set_open_choices(&setup->request, setup);
    ok = ok && space_add_candidates_of_gpus(space, setup, q->gpus, all, diag) == STATUS_OK;
    CHECK_TEXT("space", diag->text ? diag->text : "", "");
    return ok;
}

/* Numbers of long steps: tried: all; estimated: those whose time was estimated; lacking: those that the short ones say
 * lack memory; unfit: those that do not fit by simulation. */
struct long_step_estimate_tally {
    size_t tried, estimated, lacking, unfit;
    double above, below; /* the largest errors of estimated times, relative, both positive */
};

/* Checks that the time of a long step, extrapolated from short ones, exceeds the simulated time by
 * at most SHORTENED_ERROR_SHARE, and is at most SHORTENED_DIFFERENCE_SHARE below it; and that a long step does
 * not fit, or fits with a probability below 0.9, if the short ones say so. */
static void check_long_step_estimate(struct long_step_estimate_tally *checks,
                                     const struct setup *setup, const struct request *r)
{
    const struct prediction_question question = {.setup = setup, .request = r};
    struct prediction p = {0};
    struct verdict verdict_of_short_steps;
    struct diag diag = {0};
    struct text label = {0};
    text_printf(&label, "%s: ", setup->model.name);
    request_put_options(&label, r);
    double short_s = shortened_step_s(setup, r);
    bool lacks = shortened_lacks_memory(&verdict_of_short_steps, setup, r, 0.5);
    bool is_risky = shortened_lacks_memory(&verdict_of_short_steps, setup, r, 0.9);
    checks->tried++;
    if ((short_s > 0 || is_risky) && prediction_make(&p, &question, &diag) == STATUS_OK) {
        double error = short_s > 0 ? short_s / (p.sim.step_s - p.jitter_s) - 1 : 0;
        CHECK(label.data, error <= SHORTENED_ERROR_SHARE && error >= -SHORTENED_DIFFERENCE_SHARE);
        CHECK(label.data, !lacks || !p.verdict.fits);
        CHECK(label.data, !is_risky || p.verdict.fits_probability < 0.9);
        checks->estimated += short_s > 0;
        checks->lacking += lacks;
        checks->unfit += !p.verdict.fits;
        checks->above = fmax(checks->above, error);
        checks->below = fmax(checks->below, -error);
    }
    CHECK_TEXT(label.data, diag.text ? diag.text : "", "");
    prediction_release(&p);
    diag_release(&diag);
    text_release(&label);
}

static void short_steps_predict_long_ones(void)
{
    struct long_step_estimate_tally checks = {0};
    for (size_t q = 0; q < ARRAY_LEN(long_steps); q++) {
        struct setup setup = {0};
        struct diag diag = {0};
        struct space space = {0};
        if (list_candidates_of_long_steps(&setup, &space, &long_steps[q], &diag))
            for (size_t n = 0, i = 0; i < space.candidate_count; n++, i += long_steps[q].every)
                if (check_is_sampled_today(n, SIZE_MAX, LONG_DAYS))
                    check_long_step_estimate(&checks, &setup, &space.row[i].request);
        space_release(&space);
        diag_release(&diag);
        setup_release(&setup);
    }
    CHECK("some steps are tried", checks.tried > 1);
    CHECK("most are told", checks.estimated + checks.lacking > 1 &&
                               checks.estimated + checks.lacking >= checks.tried / 2);
    printf("%zu of %zu steps, off by -%.2f to +%.2f %%; %zu of %zu that do not fit are known",
           checks.estimated, checks.tried, 100 * checks.below, 100 * checks.above, checks.lacking,
           checks.unfit);
}

/* The search finds the last length that fits, wherever it begins. */
static void longest_length_ignores_first_guess(void)
{
    static const int64_t guesses[] = {0, 1024, 300000, 50000000};
    struct setup setup = {0};
    struct diag diag = {0};
    struct length_ladder ladder;
    if (load_search_question(&setup, 0, &diag) &&
        CHECK_INT("ladder", ladder_make(&ladder, &setup.request, &diag), STATUS_OK)) {
        int64_t first = 0;
        for (size_t i = 0; i < ARRAY_LEN(guesses); i++) {
            struct longest longest;
            CHECK_INT(
                "found",
                longest_find(&longest, &setup, &setup.request, &ladder, guesses[i], NULL, &diag),
                STATUS_OK);
            CHECK("at fits", longest.verdict.fits && !longest.verdict_of_shortest_unfit.fits);
            CHECK_INT("one step", longest.shortest_unfit_tokens - longest.tokens,
                      ladder.first_length_or_step_tokens);
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
static void an_interrupted_search_reports_itself(void)
{
    struct interrupt interrupt;
    interrupt_catch(&interrupt);
    raise(SIGINT);
    for (size_t i = 0; i < ARRAY_LEN(interrupted_searches); i++) {
        struct setup setup = {0};
        struct longest_certificate report = {0};
        struct text out = {0}, json = {0};
        struct diag diag = {0};
        if (load_search_question(&setup, 0, &diag)) {
            setup.request.seq = interrupted_searches[i].guess;
            longest_certificate_make(&report, &setup, &diag);
            longest_report_print(&(struct screen){.out = &out}, &report, false);
            longest_report_print_json(&json, &report);
            CHECK_INT("one length", report.longest.built_length_count, 1);
            CHECK("text", strncmp(out.data, interrupted_searches[i].text,
                                  strlen(interrupted_searches[i].text)) == 0);
            CHECK("JSON", strstr(json.data, "\"search_ended_early\": true") != NULL);
            CHECK_INT("status", longest_report_add_interrupt_error(&report, &diag), STATUS_SYSTEM);
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
    {"layers differ where searched choices differ", layer_keys_differ_by_searched_choice},
    {"nothing is better than its bounds", no_candidate_beats_its_bounds},
    {"short steps tell of long ones", short_steps_predict_long_ones},
    {"the boundary does not depend on the guess", longest_length_ignores_first_guess},
    {"an interrupted search says what it knows", an_interrupted_search_reports_itself},
};
CHECK_MAIN("space", cases)
