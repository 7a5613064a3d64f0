/* Points to calibrate from, with noise or without. */
#ifndef TESTS_MODELS_CALIBRATE_FIXTURE_H
#define TESTS_MODELS_CALIBRATE_FIXTURE_H

#include "models/calibrate.h"
#include "tests/check.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

struct fixture {
    struct arena arena;
    struct diag diag;
    struct device_cost base, truth;
    struct points points;
    struct calibration result;
    gsl_rng *rng;
    double noise; /* relative standard deviation */
};

static inline void fixture_init(struct fixture *f, const char *base, double noise)
{
    *f = (struct fixture){.noise = noise, .rng = gsl_rng_alloc(gsl_rng_mt19937)};
    gsl_rng_set(f->rng, 7);
    enum status status = cost_load(&f->base, &f->arena, base, &f->diag);
    CHECK_INT("the base loads", status, STATUS_OK);
    f->truth = f->base;
}

static inline void fixture_release(struct fixture *f)
{
    gsl_rng_free(f->rng);
    calibration_release(&f->result);
    points_release(&f->points);
    diag_release(&f->diag);
    arena_release(&f->arena);
}

static inline void add(struct fixture *f, enum point_role role, int impl, struct work work,
                       double seconds)
{
    double s = seconds * (1 + gsl_ran_gaussian(f->rng, f->noise));
    struct point point = {.role = (uint8_t)role,
                          .impl = (uint8_t)impl,
                          .nodes = 1,
                          .work = work,
                          .median_s = s,
                          .p10_s = s,
                          .p90_s = s,
                          .repeats = 10};
    points_add(&f->points, &point);
}

#endif
