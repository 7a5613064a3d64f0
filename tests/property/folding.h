/* tests/property/folding.h: checks that folded predictions equal those that simulate all ranks and layers, over
 * random schedules, clusters and placements. Included by test files only. */
#ifndef TESTS_PROPERTY_FOLDING_H
#define TESTS_PROPERTY_FOLDING_H

#include "sim/waterfall.h"
#include "tests/property/world.h"

#include <math.h>

static inline double sum_loads(const struct sim_result *result)
{
    double sum = 0;
    for (size_t i = 0; i < result->load_count; i++)
        sum += result->load[i].bytes * result->replicas;
    return sum;
}

/* Checks that every rank ends every op at the same time in both results, and that the peaks of its memories are
 * equal. */
static inline void check_same_ranks(const char *label, const struct sim_result *folded,
                                    const struct sim_result *plain)
{
    CHECK_CLOSE(label, folded->step_s, plain->step_s, 1e-9);
    CHECK_CLOSE(label, sum_loads(folded), sum_loads(plain), 1e-9);
    CHECK(label, folded->class_count <= plain->class_count);
    for (uint32_t rank = 0; rank < plain->rank_count; rank++) {
        const struct sim_class *class = &plain->classes[plain->class_of_rank[rank]];
        const double *a = sim_end_s(folded, rank), *b = sim_end_s(plain, rank);
        double worst = 0;
        for (uint32_t op = 0; op < class->op_count; op++)
            worst = fmax(worst, fabs(a[op] - b[op]) / plain->step_s);
        CHECK(label, worst <= 1e-9);
        for (int m = 0; m < MEMORY_COUNT; m++)
            CHECK_INT(label, (int64_t)folded->peak[folded->class_of_rank[rank]][m].bytes,
                      (int64_t)plain->peak[plain->class_of_rank[rank]][m].bytes);
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK_INT(label, (int64_t)folded->host[m].bytes, (int64_t)plain->host[m].bytes);
}

/* Compares predictions with folded ranks and without over `worlds` random worlds. Returns in how many only one
 * replica was simulated (sim/plan/replicas.h). */
static inline int check_folded(int worlds, bool make(struct world *, struct check_random *))
{
    struct check_random random = check_random_make();
    int replicated = 0;
    for (int i = 0; i < worlds; i++) {
        struct world w;
        struct sim_result folded = {0}, plain = {0};
        if (make(&w, &random) && simulate(&w, false, &folded) && simulate(&w, true, &plain)) {
            check_same_ranks(w.label, &folded, &plain);
            replicated += folded.replicas > 1;
        }
        sim_result_release(&folded);
        sim_result_release(&plain);
        world_release(&w);
    }
    return replicated;
}

/* Multiplies the kernels' times by a random power of ten, which makes them from far shorter to far longer than
 * the time to issue them. */
static inline void stretch_work(struct world *w, struct check_random *random)
{
    double factor = pow(10, (double)check_random_i64(random, -1, 3));
    for (uint32_t i = 0; i < w->ir.shape_count; i++)
        w->work_s[i] *= factor;
}

static inline void check_same_peak(const char *label, const struct sim_peak *a,
                                   const struct sim_peak *b)
{
    CHECK_INT(label, (int64_t)a->bytes, (int64_t)b->bytes);
    CHECK_CLOSE(label, a->time_s, b->time_s, 1e-9);
    CHECK_INT(label, a->op, b->op);
    CHECK_INT(label, a->top_count, b->top_count);
    for (int k = 0; k < CATEGORY_COUNT; k++)
        CHECK_INT(label, (int64_t)a->category_bytes[k], (int64_t)b->category_bytes[k]);
    for (uint32_t i = 0; i < a->top_count && i < b->top_count; i++) {
        CHECK_INT(label, a->top[i].buffer, b->top[i].buffer);
        CHECK_INT(label, (int64_t)a->top[i].bytes, (int64_t)b->top[i].bytes);
    }
}

/* Compares predictions with folded layers and without: times, memory peaks, loads of links and waterfall. */
static inline void check_layers_left_out(int worlds)
{
    struct check_random random = check_random_make();
    uint32_t folded_worlds = 0;
    for (int i = 0; i < worlds; i++) {
        struct world w;
        struct sim_result folded, plain;
        int64_t layers = check_random_i64(&random, 10, 40);
        if (world_make_deep(&w, &random, layers)) {
            stretch_work(&w, &random);
            if (simulate(&w, false, &folded) && simulate(&w, true, &plain)) {
                struct waterfall a, b;
                double worst = 0;
                CHECK_CLOSE(w.label, folded.step_s, plain.step_s, 1e-9);
                for (uint32_t rank = 0; rank < plain.rank_count; rank++)
                    for (uint32_t op = 0; op < w.ir.op.count; op++)
                        worst = fmax(worst, fabs(sim_start_s(&folded, rank)[op] -
                                                 sim_start_s(&plain, rank)[op]));
                CHECK(w.label, worst <= 1e-9 * plain.step_s);
                for (int m = 0; m < MEMORY_COUNT; m++)
                    check_same_peak(w.label, &folded.peak[0][m], &plain.peak[0][m]);
                CHECK_CLOSE(w.label, sum_loads(&folded), sum_loads(&plain), 1e-12);
                waterfall_make(&a, &w.ir, &folded, (struct waterfall_peak){.flop_per_s = 312e12},
                               0);
                waterfall_make(&b, &w.ir, &plain, (struct waterfall_peak){.flop_per_s = 312e12}, 0);
                for (int k = 0; k < CAUSE_COUNT; k++)
                    CHECK(w.label, fabs(a.cause_s[k] - b.cause_s[k]) <= 1e-9 * plain.step_s);
                folded_worlds += folded.depth.outcome == SIM_DEPTH_FOLDED;
            }
            sim_result_release(&folded);
            sim_result_release(&plain);
        }
        world_release(&w);
    }
    CHECK("a half of them folds", 2 * folded_worlds >= (uint32_t)worlds);
}

#endif
