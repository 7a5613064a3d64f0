/* tests/predict/test_bounds.c: no step of a random pipeline is faster than its lower bounds. */
#include "predict/bounds.h"

#include "predict/prediction.h"
#include "predict/setup/subsequences.h"
#include "schedule/choices/products.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>

enum { DRAWS = 150 };

static int64_t draw(struct check_random *random, const int64_t *values, size_t count)
{
    return values[check_random_i64(random, 0, (int64_t)count - 1)];
}

/* Draws a plain pipeline of whole sequences or of subsequences, but not its number of layers. */
static void draw_pipeline_request(struct request *r, struct check_random *random)
{
    static const int64_t pipelines[] = {CHOICE_PIPELINE_GPIPE, CHOICE_PIPELINE_1F1B,
                                        CHOICE_PIPELINE_TERAPIPE, CHOICE_PIPELINE_SEQ1F1B};
    static const int64_t activations[] = {CHOICE_ACTIVATIONS_KEEP, CHOICE_ACTIVATIONS_FULL,
                                          CHOICE_ACTIVATIONS_FULL, CHOICE_ACTIVATIONS_OFFLOAD};
    static const int64_t stages[] = {2, 3, 4}, pieces[] = {1, 2, 4, 8};
    r->pp = draw(random, stages, ARRAY_LEN(stages));
    r->ranks = r->pp;
    r->pipeline = (int)draw(random, pipelines, ARRAY_LEN(pipelines));
    r->subsequences =
        r->pipeline == CHOICE_PIPELINE_TERAPIPE || r->pipeline == CHOICE_PIPELINE_SEQ1F1B
            ? draw(random, pieces, ARRAY_LEN(pieces))
            : 1;
    r->activations = (int)draw(random, activations, ARRAY_LEN(activations));
    r->seq = (int64_t)8192 << check_random_i64(random, 0, 4);
    r->global_batch = check_random_i64(random, 1, 3);
}

/* Loads the model and the cluster, and makes the drawn request complete. Returns false if that is not possible. A check
 * fails if there is any message. */
static bool load_pipeline_question(struct setup *setup, const struct request *drawn,
                                   const char *cluster, const char *fields, struct diag *diag)
{
    const bool ok = setup_load_model(setup, "gpt-7b", NULL, fields, diag) == STATUS_OK &&
                    setup_load_cluster(setup, cluster, 0, drawn->ranks, diag) == STATUS_OK;
    CHECK_TEXT(cluster, diag->text ? diag->text : "", "");
    setup_leave_request_open(setup);
    setup->request.strategy = "local";
    setup->request.profile = "ideal";
    setup->request.pp = drawn->pp;
    setup->request.pipeline = drawn->pipeline;
    setup->request.subsequences = drawn->subsequences;
    setup->request.activations = drawn->activations;
    setup->request.seq = drawn->seq;
    setup->request.global_batch = drawn->global_batch;
    setup->request.micro_batch = 1;
    subsequences_set_open_choices(&setup->request, setup);
    return ok;
}

/* A stage that recomputes can do so while it waits for a gradient, so that not all of a unit's recomputation delays the
 * end of the step. */
static void no_pipeline_is_faster_than_its_bounds(void)
{
    static const char *const clusters[] = {"ideal", "dgx-a100"};
    struct check_random random = check_random_make();
    double closest[2] = {0};
    for (int i = 0; i < DRAWS; i++) {
        const char *cluster = clusters[check_random_i64(&random, 0, 1)];
        struct setup setup = {0};
        struct diag diag = {0};
        struct prediction p = {0};
        struct request drawn = {0};
        char label[160], fields[32];
        draw_pipeline_request(&drawn, &random);
        snprintf(fields, sizeof fields, "layers=%lld",
                 (long long)(drawn.pp * check_random_i64(&random, 1, 2)));
        snprintf(label, sizeof label,
                 "%s %s pp %lld pipeline %d subsequences %lld activations %d seq %lld batch %lld",
                 cluster, fields, (long long)drawn.pp, drawn.pipeline,
                 (long long)drawn.subsequences, drawn.activations, (long long)drawn.seq,
                 (long long)drawn.global_batch);
        if (load_pipeline_question(&setup, &drawn, cluster, fields, &diag)) {
            const struct prediction_question question = {.setup = &setup,
                                                         .request = &setup.request};
            CHECK_INT(label, prediction_make(&p, &question, &diag), STATUS_OK);
            const double bound_s[] = {bound_step_s(&setup, &p.choices),
                                      prediction_step_lower_bound_s(&p)};
            for (size_t k = 0; k < ARRAY_LEN(bound_s); k++) {
                closest[k] = fmax(closest[k], bound_s[k] / p.sim.step_s);
                CHECK(label, bound_s[k] <= p.sim.step_s * (1 + 1e-9));
            }
        }
        prediction_release(&p);
        diag_release(&diag);
        setup_release(&setup);
    }
    printf("bounds are up to %.4f and %.4f of the step", closest[0], closest[1]);
}

/* Large products of 8 or 4 bits are faster than those of bf16, by which the bound of such a step must not go. */
static void no_step_of_narrow_products_is_faster_than_its_bound(void)
{
    static const struct {
        const char *cluster;
        int products;
    } rows[] = {{"dgx-h100", PRODUCTS_FP8_TENSOR},
                {"dgx-h100", PRODUCTS_FP8_BLOCK},
                {"b200", PRODUCTS_MXFP8},
                {"b200", PRODUCTS_NVFP4}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *name = products_names[rows[i].products];
        struct setup setup = {0};
        struct diag diag = {0};
        struct prediction p = {0};
        const struct request drawn = {.pp = 1,
                                      .ranks = 1,
                                      .subsequences = 1,
                                      .seq = 4096,
                                      .global_batch = 4,
                                      .activations = CHOICE_ACTIVATIONS_KEEP};
        if (load_pipeline_question(&setup, &drawn, rows[i].cluster,
                                   "layers=4,hidden=16384,heads=128,head_dim=128,ffn=65536",
                                   &diag)) {
            setup.request.products = rows[i].products;
            const struct prediction_question question = {.setup = &setup,
                                                         .request = &setup.request};
            CHECK_INT(name, prediction_make(&p, &question, &diag), STATUS_OK);
            const double bound_s = bound_step_s(&setup, &p.choices);
            printf("%s: bound is %.3f of the step\n", name, bound_s / p.sim.step_s);
            CHECK(name, bound_s <= p.sim.step_s * (1 + 1e-9) && bound_s > 0.3 * p.sim.step_s);
        }
        prediction_release(&p);
        diag_release(&diag);
        setup_release(&setup);
    }
}

static const struct check_case cases[] = {
    {"no step of narrow products is faster than its bound",
     no_step_of_narrow_products_is_faster_than_its_bound},
    {"no pipeline is faster than its bounds", no_pipeline_is_faster_than_its_bounds},
};
CHECK_MAIN("bounds", cases)
