/* tests/predict/test_shared_units.c: compares the search for shared subsequences with cases computed by hand, and
 * checks what the setup derives from costs for subsequences. */
#include "predict/setup/offload_estimate.h"
#include "predict/setup/partition_option.h"
#include "predict/setup/shared_units.h"
#include "schedule/config/resolve_config.h"
#include "schedule/pipeline/pipeline.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>

struct world {
    struct setup setup;
    struct choices choices;
    struct diag diag;
};

static bool world_load(struct world *w, const char *model, const char *cluster, int64_t tp,
                       int64_t pp, int64_t seq, int64_t subsequences)
{
    *w = (struct world){0};
    struct setup *setup = &w->setup;
    bool ok = setup_load_model(setup, model, NULL, NULL, &w->diag) == STATUS_OK &&
              setup_load_cluster(setup, cluster, 0, tp * pp, &w->diag) == STATUS_OK;
    setup_leave_request_open(setup);
    struct request *r = &setup->request;
    r->strategy = "sppo";
    r->tp = tp;
    r->pp = pp;
    r->seq = seq;
    r->subsequences = subsequences;
    r->pipeline = CHOICE_PIPELINE_MSP;
    ok = ok && resolve_choices(&w->choices, r, NULL, &w->diag) == STATUS_OK;
    CHECK_TEXT(model, w->diag.text ? w->diag.text : "", "");
    return ok;
}

static void unload(struct world *w)
{
    setup_release(&w->setup);
    diag_release(&w->diag);
}

/* Sequences are short, so attention takes a few percent, and messages take no time: forward and backward of all
 * units are equally long. With sharing, 5 units of time become 4 (P 2, N 4), and 11 become 8 1/3 (P 4, N 8). If only
 * the first subsequence is shared, they become 4 1/2 and 10 1/4. */
static void perfect_helpers_fill_the_pipeline(void)
{
    static const struct {
        int64_t pp, n;
        struct shared_units shared;
        double part;
    } rows[] = {
        {2, 4, {1, 1}, 4.0 / 5},
        {2, 4, {1, 0}, 4.5 / 5},
        {4, 8, {3, 3}, (8 + 1.0 / 3) / 11},
        {4, 8, {1, 0}, 10.25 / 11},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        char label[64];
        snprintf(label, sizeof label, "pp %d, %u and %u shared", (int)rows[i].pp,
                 rows[i].shared.first, rows[i].shared.last);
        if (world_load(&w, "gpt-7b", "ideal", 1, rows[i].pp, 24 * rows[i].n, rows[i].n)) {
            double plain = shared_units_step_s(&w.setup, &w.choices, (struct shared_units){0, 0});
            double shared = shared_units_step_s(&w.setup, &w.choices, rows[i].shared);
            CHECK_CLOSE(label, shared / plain, rows[i].part, 0.01);
        }
        unload(&w);
    }
}

/* The first choice in the ranking is the fastest; each later one shares less, and the last shares nothing. */
static void ranked_choices_share_fewer_and_fewer(void)
{
    static const struct {
        const char *model, *cluster;
        int64_t tp, pp, seq, n;
    } rows[] = {
        {"gpt-7b", "sppo-a100", 8, 4, 524288, 32},   {"gpt-13b", "sppo-a100", 8, 8, 524288, 32},
        {"gpt-65b", "sppo-a100", 16, 8, 524288, 32}, {"gpt-7b", "ideal", 8, 4, 524288, 32},
        {"gpt-7b", "sppo-a100", 8, 4, 32768, 64}, /* weights take longer than units */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        if (world_load(&w, rows[i].model, rows[i].cluster, rows[i].tp, rows[i].pp, rows[i].seq,
                       rows[i].n)) {
            struct shared_units_worth_trying r =
                shared_units_rank_by_step_time(&w.setup, &w.choices);
            double before_s = 0;
            for (uint32_t k = 0; k < r.count; k++) {
                double step_s = shared_units_step_s(&w.setup, &w.choices, r.fastest_first[k]);
                CHECK(rows[i].model, step_s >= before_s);
                CHECK(rows[i].model, k == 0 ||
                                         r.fastest_first[k].last < r.fastest_first[k - 1].last ||
                                         (r.fastest_first[k].last == 0 &&
                                          r.fastest_first[k].first < r.fastest_first[k - 1].first));
                before_s = step_s;
            }
            CHECK_INT(rows[i].model,
                      r.fastest_first[r.count - 1].first + r.fastest_first[r.count - 1].last, 0);
            CHECK_INT(rows[i].model, r.count > 1, i + 1 < ARRAY_LEN(rows));
        }
        unload(&w);
    }
}

static void hidden_tensor_bytes_match_the_setup(void)
{
    enum { PIECES = 4 };
    struct world w;
    double *bytes = NULL;
    if (world_load(&w, "gpt-7b", "dgx-a100", 8, 4, 131072, PIECES)) {
        struct request *r = &w.setup.request;
        r->length_rule = SUBSEQUENCES_OF_EQUAL_LENGTH;
        r->activations = CHOICE_ACTIVATIONS_RATIO;
        struct request asked = *r;
        r->must_compute_offload_hidden_bytes = true;
        CHECK("estimated", offload_find_hidden_bytes(&bytes, &asked, &w.choices, &w.setup,
                                                     &w.diag) == STATUS_OK);
        CHECK("filled", setup_fill_open_fields(&w.setup, &w.diag) == STATUS_OK);
        for (int i = 0; i < PIECES; i++)
            CHECK_CLOSE("bytes behind a piece", r->offload_hidden_bytes_by_subsequence[i], bytes[i],
                        0);
    }
    free(bytes);
    unload(&w);
}

static const struct check_case cases[] = {
    {"perfect helpers fill the pipeline", perfect_helpers_fill_the_pipeline},
    {"what is ranked shares less and less", ranked_choices_share_fewer_and_fewer},
    {"hidden bytes are the setup's", hidden_tensor_bytes_match_the_setup},
};
CHECK_MAIN("shared_units", cases)
