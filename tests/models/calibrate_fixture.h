/* tests/models/calibrate_fixture.h: makes points (measured times of kernels) to calibrate a device's costs from. Their
 * times are those that a device of known costs, `truth`, would take, with random noise or without: a calibration that
 * begins with the costs `base` must find those of `truth`. Included by test files only. */
#ifndef TESTS_MODELS_CALIBRATE_FIXTURE_H
#define TESTS_MODELS_CALIBRATE_FIXTURE_H

#include "models/calibrate.h"
#include "tests/check.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

struct calibrate_fixture {
    struct arena arena;
    struct diag diag;
    struct device_cost base, truth; /* truth: equals base until a test changes it */
    struct points points;
    struct calibration result;
    gsl_rng *rng;
    double noise; /* relative standard deviation */
};

static inline void fixture_init(struct calibrate_fixture *f, const char *base, double noise)
{
    *f = (struct calibrate_fixture){.noise = noise, .rng = gsl_rng_alloc(gsl_rng_mt19937)};
    gsl_rng_set(f->rng, 7);
    enum status status = cost_load(&f->base, &f->arena, base, &f->diag);
    CHECK_INT("the base loads", status, STATUS_OK);
    f->truth = f->base;
}

static inline void fixture_release(struct calibrate_fixture *f)
{
    gsl_rng_free(f->rng);
    calibration_release(&f->result);
    points_release(&f->points);
    diag_release(&f->diag);
    arena_release(&f->arena);
}

/* Adds a point of `seconds` and noise. impl: an implementation of attention, or POINT_NO_IMPL. */
static inline void fixture_add_point(struct calibrate_fixture *f, enum point_role role, int impl,
                                     struct work work, double seconds)
{
    double s = seconds * (1 + gsl_ran_gaussian(f->rng, f->noise));
    struct point point = {.role = (uint8_t)role,
                          .attention_impl = (uint8_t)impl,
                          .nodes = 1,
                          .work = work,
                          .median_s = s,
                          .p10_s = s,
                          .p90_s = s,
                          .repeats = 10};
    points_add(&f->points, &point);
}

/* Adds a point of `work` with the seconds that it takes on the device `truth`, and noise. */
static inline void fixture_add_point_of_truth(struct calibrate_fixture *f, int impl,
                                              struct work work)
{
    enum attention_impl used = impl == POINT_NO_IMPL ? ATTENTION_FA2 : (enum attention_impl)impl;
    fixture_add_point(f, POINT_WORK, impl, work,
                      cost_work_burst_s(&f->truth, used, &work)); /* in a short run */
}

/* Adds points of products: 4 x 5 sizes, and 5 products of few rows, which memory limits. */
static inline void fixture_add_products(struct calibrate_fixture *f)
{
    static const int64_t m[] = {256, 1024, 4096, 16384};
    static const int64_t nk[][2] = {
        {4096, 4096}, {1024, 8192}, {6144, 512}, {512, 128}, {2048, 2048}};
    for (size_t i = 0; i < ARRAY_LEN(m); i++)
        for (size_t k = 0; k < ARRAY_LEN(nk); k++) {
            struct work work = {.kind = WORK_MATMUL,
                                .in = DTYPE_BF16,
                                .out = DTYPE_BF16,
                                .matmul = {m[i], nk[k][0], nk[k][1], 0, 0, 0}};
            fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
        }
    for (int64_t size = 512; size <= 8192; size *= 2) { /* products that memory limits */
        struct work work = {.kind = WORK_MATMUL,
                            .in = DTYPE_BF16,
                            .out = DTYPE_BF16,
                            .matmul = {16, 2 * size, 8 * size, 0, 0, 0}};
        fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
    }
}

/* Adds points of kernels that memory limits: streams, reductions, permutations, gathers and scatters of 6 sizes. */
static inline void fixture_add_memory_bound(struct calibrate_fixture *f)
{
    for (int64_t rows = 64; rows <= 65536; rows *= 4) {
        const struct work works[] = {
            {.kind = WORK_ADD, .elements = {rows * 4096}},
            {.kind = WORK_FILL, .elements = {rows * 4096}},
            {.kind = WORK_RMSNORM, .rows = {rows, 4096, 0}},
            {.kind = WORK_LAYERNORM_BACKWARD, .rows = {rows, 4096, 0}},
            {.kind = WORK_PACK, .pack = {rows, 4, {1024, 0, 0}}},
            {.kind = WORK_EMBEDDING, .embedding = {rows, 4096, 8192, 0}},
            {.kind = WORK_EMBEDDING_BACKWARD, .embedding = {rows, 4096, 8192, 0}},
        };
        for (size_t i = 0; i < ARRAY_LEN(works); i++) {
            struct work work = works[i];
            work.reads = work.kind == WORK_EMBEDDING_BACKWARD ? 3 : 0; /* accumulates */
            fixture_add_point_of_truth(f, POINT_NO_IMPL, work);
        }
    }
}

#endif
