/* tests/property/plans.h: the laws of a search, checked over random small requests. Included by test files only.
 *
 * The plan found is as good as the best of all configurations that the search may choose from, each predicted with
 * the first repair (loss and FFN chunks, optimizer on the host) with which it fits with the probability that is asked:
 * bounds, orders and margins lose nothing. It is also at least as good as the result of any narrower search, in which a
 * strategy or another option is given. And the options that a row of a plan prints predict that row. */
#ifndef TESTS_PROPERTY_PLANS_H
#define TESTS_PROPERTY_PLANS_H

#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "predict/plan/best.h"
#include "predict/plan/room.h"
#include "predict/setup/choice_rows.h"
#include "predict/setup/subsequences.h"
#include "predict/workers.h"
#include "schedule/choices/strategies.h"
#include "schedule/pipeline/pipeline.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan_random_setup {
    struct setup setup;
    struct space_open open;
    char label[200];
};

static inline int64_t plan_draw_value(struct check_random *random, const int64_t *of, int64_t count)
{
    return of[check_random_i64(random, 0, count - 1)];
}

/* Makes a random setup: a model of few layers on few GPUs, often with little memory. tiny: one layer on at most
 * two GPUs. Returns false, with a failed check, when it cannot be loaded. */
static inline bool plan_random_setup_make(struct plan_random_setup *w, int number,
                                          struct check_random *random, bool tiny)
{
    static const struct {
        const char *name;
        int64_t gpus[5];
    } clusters[] = {
        {"dgx-h100", {1, 2, 4, 2, 4}},
        {"dgx-a100-40g", {1, 2, 3, 4, 6}},
        {"h200", {2, 4, 2, 2, 4}},
        {"fpdt-a100-80g", {1, 2, 4, 8, 4}},
        {"loongtrain-a100", {2, 4, 8, 4, 2}},
        {"gh200", {1, 2, 4, 3, 2}},
        {"ideal", {1, 2, 4, 2, 4}},
        {"torchtitan-h100", {2, 4, 2, 4, 2}},
    };
    static const char *const models[] = {"longhaul-3m", "gpt2",     "llama3-8b",
                                         "gpt-2.7b",    "qwen2-7b", "internlm-7b-mha"};
    static const char *const profiles[] = {"published",  "published",   "published",
                                           "deepspeed",  "megatron",    "internevo",
                                           "torchtitan", "megatron-te", "ideal"};
    static const int64_t lengths[] = {1024, 3072, 4096, 8192, 16384, 24576, 32768, 65536};
    static const int64_t batches[] = {0, 0, 1, 2, 4, 6, 8, 16, 32};
    struct diag diag = {0};
    size_t c = (size_t)check_random_i64(random, 0, (int64_t)ARRAY_LEN(clusters) - 1);
    int64_t names = tiny ? 2 : (int64_t)ARRAY_LEN(models);
    const char *model = models[check_random_i64(random, 0, names - 1)];
    int64_t layers = check_random_i64(random, 1, 3),
            gpus = plan_draw_value(random, clusters[c].gpus, 5);
    if (tiny) {
        layers = 1;
        gpus = gpus > 2 ? 2 : gpus;
    }
    const char *profile = profiles[check_random_i64(random, 0, (int64_t)ARRAY_LEN(profiles) - 1)];
    char fields[64];
    *w = (struct plan_random_setup){
        .open = {.strategy = true, .placement = true, .stage_placement = true}};
    snprintf(fields, sizeof fields, "layers=%lld%s", (long long)layers,
             strcmp(model, "gpt2") == 0 ? ",max_positions=1048576" : "");
    struct setup *s = &w->setup;
    bool ok = setup_load_model(s, model, NULL, fields, &diag) == STATUS_OK &&
              setup_load_cluster(s, clusters[c].name, 0, gpus, &diag) == STATUS_OK;
    setup_leave_request_open(s);
    s->request.profile = profile;
    s->request.seq = plan_draw_value(random, lengths, tiny ? 4 : ARRAY_LEN(lengths));
    s->request.global_batch = plan_draw_value(random, batches, ARRAY_LEN(batches));
    s->request.dtype = check_random_i64(random, 0, 7) == 0 ? DTYPE_F32 : -1;
    s->fits_probability = number % 2 == 0 ? 0.9 : 0.5;
    double room = 1e9 * pow(10, 2 * check_random_double(random) - 0.5);
    struct device *device = &s->cluster.device;
    double taken = device->driver_bytes + device->cuda_context_bytes;
    if (check_random_i64(random, 0, 2) > (tiny ? 1 : 0) && device->memory_bytes > taken + room) {
        device->memory_bytes = taken + room;
        if (device->usable_bytes > room + device->cuda_context_bytes)
            device->usable_bytes = room + device->cuda_context_bytes;
    } else {
        room = 0;
    }
    snprintf(w->label, sizeof w->label,
             "%d: %s %s on %lld of %s, %s, %lld tokens x %lld%s, %.2f GB, P %.1f", number, model,
             fields, (long long)gpus, clusters[c].name, profile, (long long)s->request.seq,
             (long long)s->request.global_batch, s->request.dtype == DTYPE_F32 ? ", f32" : "",
             room / 1e9, s->fits_probability);
    CHECK_TEXT(w->label, diag.text ? diag.text : "", "");
    diag_release(&diag);
    return ok;
}

static inline void plan_random_setup_release(struct plan_random_setup *w)
{
    setup_release(&w->setup);
}

/* Gives, in about half of the calls, an option that a search does not vary. */
static inline void plan_draw_fixed_option(struct plan_random_setup *w, struct check_random *random)
{
    struct request *r = &w->setup.request;
    switch (check_random_i64(random, 0, 15)) {
    case 0:
        r->attention_impl = ATTENTION_FA3;
        break;
    case 1:
        r->dtype = DTYPE_F16;
        break;
    case 2:
        r->micro_batch = 2;
        break;
    case 3:
        r->loss_chunks = 1;
        break;
    case 4:
        r->rotation = ROTATE_ALL_GATHER;
        r->kernels = KERNELS_COMPILED;
        break;
    case 5:
        r->ring_layout = RING_STRIPED;
        break;
    case 6:
        r->kv_offload = KV_OFFLOAD_OFF;
        r->chunk_order = ORDER_QUERY_OUTER;
        break;
    case 7:
        r->activations = CHOICE_ACTIVATIONS_RATIO;
        r->offload_ratio = 1.0 / 3;
        w->setup.offload_given = true;
        break;
    case 8:
        w->open.strategy = false;
        r->strategy = "fpdt";
        r->chunk_tokens = r->seq / 2;
        setup_set_sparsity(&w->setup, r->chunk_tokens, 0.3);
        break;
    default:
        break;
    }
}

/* Checks that the options that a row prints, parsed again, predict the same step. */
static inline void plan_check_pasted_row(const struct plan_random_setup *w, const struct outcome *o)
{
    enum { WORDS_MAX = 96 };
    static const struct option_set *const sets[] = {&setup_choice_options, NULL};
    struct text line = {0};
    char *words[WORDS_MAX];
    int count = 0;
    struct options options = {0};
    struct diag diag = {0};
    struct setup setup = w->setup;
    const struct prediction_question question = {.setup = &setup};
    struct prediction p = {0};
    text_printf(&line, "--seq %lld", (long long)o->request.seq);
    if (o->request.global_batch > 0)
        text_printf(&line, " --batch %lld", (long long)o->request.global_batch);
    text_putc(&line, ' ');
    request_put_options(&line, &o->request);
    struct text label = {0};
    text_printf(&label, "%s: %s", w->label, line.data);
    for (char *word = strtok(line.data, " "); word != NULL && count < WORDS_MAX;
         word = strtok(NULL, " "))
        words[count++] = word;
    CHECK_INT(label.data, options_parse(&options, sets, count, words, &diag), STATUS_OK);
    CHECK_INT(label.data, setup_read_choices(&setup, &options, &diag), STATUS_OK);
    CHECK_INT(label.data, prediction_make(&p, &question, &diag), STATUS_OK);
    CHECK(label.data, p.sim.step_s == o->step_s && p.tokens_per_s_gpu == o->rate_bound);
    CHECK_TEXT(label.data, diag.text ? diag.text : "", "");
    prediction_release(&p);
    diag_release(&diag);
    options_release(&options);
    text_release(&label);
    text_release(&line);
}

/* Returns the tokens/s/GPU that a search finds; 0 if nothing fits. `options` (may be NULL) gets the
 * options of the best row. The rows that are printed first must predict the same when pasted. */
static inline double plan_search_best_tokens_per_s_gpu(struct plan_random_setup *w,
                                                       struct text *options)
{
    struct best best = {0};
    struct diag unread = {0};
    struct request request = w->setup.request;
    double most = 0;
    if (best_find(&best, GOAL_SPEED, &w->setup, w->open, &unread) == STATUS_OK) {
        most = best.row[0].rate_bound;
        for (size_t i = 0; i < 2 && i < best.row_count && best.row[i].kind == OUTCOME_SIMULATED;
             i++)
            plan_check_pasted_row(w, &best.row[i]);
        if (options != NULL)
            request_put_options(options, &best.row[0].request);
    }
    w->setup.request = request;
    best_release(&best);
    diag_release(&unread);
    return most;
}

/* ---- predictions ---- */

struct plan_requests_to_try {
    const struct setup *setup;
    const struct request *request;
    size_t every; /* one of this many requests is predicted */
};

struct plan_best_of_tries {
    double most;
    struct request request;
};

/* Predicts the request of job number `job` with one repair after the other until it fits: more and more pieces of the
 * loss and the FFN, then the same with the optimizer on the host. If the request then fits and is faster than *result
 * (struct plan_best_of_tries), it replaces *result. */
static inline void plan_predict_request_until_it_fits(void *context, size_t job, void *result)
{
    static const int64_t tries[][2] = {
        {0, 0}, {8, 0}, {8, 8}, {64, 8}}; /* pieces of the loss and the FFN */
    const struct plan_requests_to_try *all = context;
    struct plan_best_of_tries *best = result;
    bool fits = false;
    for (size_t i = 0; i < 2 * ARRAY_LEN(tries) && !fits; i++) {
        struct request r = all->request[job * all->every];
        const struct prediction_question question = {.setup = all->setup, .request = &r};
        struct prediction p = {0};
        const int64_t *pieces = tries[i % ARRAY_LEN(tries)];
        if (r.loss_chunks <= 0)
            r.loss_chunks = pieces[0];
        if (r.ffn_chunks <= 0)
            r.ffn_chunks = pieces[1];
        if (r.optimizer < 0 && i >= ARRAY_LEN(tries))
            r.optimizer = CHOICE_OPTIMIZER_HOST;
        fits = prediction_make(&p, &question, NULL) == STATUS_OK &&
               room_fits_asked_probability(all->setup, &p.verdict);
        if (fits && p.tokens_per_s_gpu > best->most)
            *best = (struct plan_best_of_tries){p.tokens_per_s_gpu, r};
        prediction_release(&p);
    }
}

static inline void plan_check_beats_all(struct plan_random_setup *w, const char *law, double found,
                                        const struct request *request, size_t all_count,
                                        size_t every)
{
    struct plan_requests_to_try all = {&w->setup, request, every};
    size_t count = (all_count + every - 1) / every;
    struct plan_best_of_tries *best = heap_zalloc(count + 1, sizeof *best);
    struct diag diag = {0};
    size_t most = 0;
    workers_run(count, sizeof *best, plan_predict_request_until_it_fits, &all, best, NULL, &diag);
    for (size_t i = 1; i < count; i++)
        most = best[i].most > best[most].most ? i : most;
    struct text label = {0};
    text_printf(&label, "%s: %s: %.6g found, %.6g with ", w->label, law, found, best[most].most);
    if (best[most].most > 0)
        request_put_options(&label, &best[most].request);
    CHECK(label.data, found >= best[most].most * (1 - 1e-9));
    CHECK_TEXT(w->label, diag.text ? diag.text : "", "");
    diag_release(&diag);
    text_release(&label);
    free(best);
}

/* ---- requests that a search chooses from, and the laws ---- */

/* A set of requests, compared by their options, so that each is predicted once. */
struct plan_request_set {
    struct request *request;
    char **options;
    size_t count;
};

static inline void plan_request_set_release(struct plan_request_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->options[i]);
    free(set->options);
    free(set->request);
}

/* Adds a request. Returns false if the set has one with the same options. */
static inline bool plan_request_set_add(struct plan_request_set *set, const struct request *request)
{
    struct text options = {0};
    request_put_options(&options, request);
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->options[i], options.data) == 0) {
            text_release(&options);
            return false;
        }
    set->options = heap_realloc(set->options, set->count + 1, sizeof *set->options);
    set->request = heap_realloc(set->request, set->count + 1, sizeof *set->request);
    set->options[set->count] = heap_alloc(options.size + 1, 1);
    memcpy(set->options[set->count], options.data, options.size + 1);
    set->request[set->count++] = *request;
    text_release(&options);
    return true;
}

/* Adds the requests that the search of a random setup chooses from. */
static inline void plan_request_set_add_searched(struct plan_request_set *set,
                                                 const struct plan_random_setup *w)
{
    struct space space = {0};
    struct diag unread = {0};
    if (space_add_candidates_of_gpus(&space, &w->setup, w->setup.cluster.gpus, w->open, &unread) ==
        STATUS_OK)
        for (size_t i = 0; i < space.candidate_count; i++)
            plan_request_set_add(set, &space.row[i].request);
    space_release(&space);
    diag_release(&unread);
}

static inline void plan_give_strategy(struct plan_random_setup *w, size_t row)
{
    size_t count;
    const struct strategy *table = strategies_list(&count);
    w->open.strategy = false;
    w->setup.request.strategy = table[row % count].name;
    subsequences_set_open_choices(&w->setup.request, &w->setup);
}

/* Gives a random value, of those that the search tries, to one of the options that it varies. */
static inline void plan_draw_varied_option(struct plan_random_setup *w, struct check_random *random)
{
    static const int searched[] = {
        CHOICE_ACTIVATIONS_KEEP,    CHOICE_ACTIVATIONS_SELECTIVE,         CHOICE_ACTIVATIONS_FULL,
        CHOICE_ACTIVATIONS_OFFLOAD, CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD, CHOICE_ACTIVATIONS_RATIO};
    static const int64_t degrees[] = {1, 1, 2, 2, 4, 3, 8};
    struct request *r = &w->setup.request;
    int64_t *const degree[] = {&r->dp, &r->cp, &r->hp, &r->tp, &r->pp};
    switch (check_random_i64(random, 0, 6)) {
    case 0:
        r->weights = (int)check_random_i64(random, 0, CHOICE_WEIGHTS_COUNT - 1);
        break;
    case 1:
        r->activations = searched[check_random_i64(random, 0, (int64_t)ARRAY_LEN(searched) - 1)];
        break;
    case 2:
        r->optimizer = (int)check_random_i64(random, 0, CHOICE_OPTIMIZER_COUNT - 1);
        break;
    case 3:
        w->open.placement = w->open.stage_placement = false;
        r->placement = (int)check_random_i64(random, 0, PLACEMENT_COUNT - 1);
        r->stage_placement = (int)check_random_i64(random, 0, STAGE_PLACEMENT_COUNT - 1);
        break;
    case 4:
        r->loss_chunks = 8;
        break;
    default:
        *degree[check_random_i64(random, 0, 4)] = degrees[check_random_i64(random, 0, 6)];
        break;
    }
}

/* Adds the requests of narrower searches: one for each strategy, and up to `parts` with one or two
 * other options given. */
static inline void plan_request_set_add_narrower(struct plan_request_set *set,
                                                 const struct plan_random_setup *w,
                                                 struct check_random *random, int parts)
{
    size_t strategies;
    strategies_list(&strategies);
    for (size_t s = 0; s < strategies; s++) {
        struct plan_random_setup part = *w;
        plan_give_strategy(&part, s);
        plan_request_set_add_searched(set, &part);
    }
    for (int i = 0; i < parts; i++) {
        struct plan_random_setup part = *w;
        for (int64_t n = check_random_i64(random, 1, 2); n > 0; n--)
            plan_draw_varied_option(&part, random);
        bool cuts = part.setup.request.tp > 1 || part.setup.request.pp > 1;
        if (cuts && (part.setup.request.cp > 1 || part.setup.request.hp > 1))
            continue; /* a given degree makes combinations that the wide search does not try */
        plan_request_set_add_searched(set, &part);
    }
}

/* A request of a real model, whose plan is compared with a sweep of all configurations. */
struct plan_case {
    const char *model, *fields, *cluster,
        *strategy; /* fields NULL: the model as it is; strategy NULL: all */
    int64_t gpus, seq, batch;
};

static inline void check_plan_case(const struct plan_case *q)
{
    struct plan_random_setup w = {
        .open = {.strategy = q->strategy == NULL, .placement = true, .stage_placement = true}};
    struct setup *s = &w.setup;
    struct diag diag = {0};
    struct plan_request_set set = {0};
    bool ok = setup_load_model(s, q->model, NULL, q->fields, &diag) == STATUS_OK &&
              setup_load_cluster(s, q->cluster, 0, q->gpus, &diag) == STATUS_OK;
    CHECK_TEXT(q->model, diag.text != NULL ? diag.text : "", "");
    setup_leave_request_open(s);
    s->request.profile = "neutral";
    s->request.strategy = q->strategy;
    s->request.seq = q->seq;
    s->request.global_batch = q->batch;
    s->fits_probability = 0.9;
    if (q->strategy != NULL)
        subsequences_set_open_choices(&s->request, s);
    snprintf(w.label, sizeof w.label, "%s on %lld GPUs, %lld tokens x %lld", q->model,
             (long long)q->gpus, (long long)q->seq, (long long)q->batch);
    if (ok) {
        double found = plan_search_best_tokens_per_s_gpu(&w, NULL);
        CHECK(w.label, found > 0);
        plan_request_set_add_searched(&set, &w);
        plan_check_beats_all(&w, "among all", found, set.request, set.count, 1);
        printf("%s: %.6g tokens/s/GPU among %zu\n", w.label, found, set.count);
    }
    plan_request_set_release(&set);
    plan_random_setup_release(&w);
    diag_release(&diag);
}

/* Checks the laws over `worlds` random requests. tiny: one layer on one or two GPUs, and only every
 * ninth configuration is predicted. If ONLY is set in the environment, only the request of that
 * number is checked. */
static inline void check_plans(int worlds, int parts, bool tiny)
{
    struct check_random states = check_random_make();
    const char *only = getenv("ONLY");
    int fit = 0;
    size_t among = 0, of_parts = 0;
    for (int i = 0; i < worlds; i++) {
        struct check_random random = {check_random_u64(&states)};
        struct plan_random_setup w;
        if (only != NULL && i != (int)strtol(only, NULL, 10))
            continue;
        struct text options = {0};
        if (plan_random_setup_make(&w, i, &random, tiny)) {
            struct plan_request_set set = {0};
            plan_draw_fixed_option(&w, &random);
            double found = plan_search_best_tokens_per_s_gpu(&w, &options);
            fit += found > 0;
            plan_request_set_add_searched(&set, &w);
            size_t own = set.count;
            if (w.open.strategy)
                plan_request_set_add_narrower(&set, &w, &random, parts);
            size_t every = tiny ? 9 : 1;
            plan_check_beats_all(&w, "among all", found, set.request, own, every);
            plan_check_beats_all(&w, "of a part", found, set.request + own, set.count - own, every);
            struct plan_random_setup part = w;
            if (w.open.strategy)
                plan_give_strategy(&part, (size_t)check_random_i64(&random, 0, 99));
            CHECK(w.label, plan_search_best_tokens_per_s_gpu(&part, NULL) <= found * (1 + 1e-9));
            among += own;
            of_parts += set.count - own;
            if (getenv("PLANS_VERBOSE") != NULL) {
                printf("%s: %.6g %s; %zu %zu\n", w.label, found, options.data ? options.data : "",
                       own, set.count - own);
                fflush(stdout);
            }
            plan_request_set_release(&set);
        }
        text_release(&options);
        plan_random_setup_release(&w);
    }
    CHECK("some fit", only != NULL || 3 * fit > worlds);
    printf("%d requests, %zu configurations and %zu of parts\n", worlds, among, of_parts);
}

#endif
