/* tests/property/folding.h: checks that folded predictions equal those that simulate all ranks, over
 * random schedules, clusters and placements. Included by test files only. */
#ifndef TESTS_PROPERTY_FOLDING_H
#define TESTS_PROPERTY_FOLDING_H

#include "tests/property/world.h"

#include <math.h>

static inline double sum_link_bytes_of_replicas(const struct sim_result *result)
{
    double sum = 0;
    for (size_t i = 0; i < result->link_load_count; i++)
        sum += result->loads_by_link[i].bytes * result->equal_replica_count;
    return sum;
}

/* Checks that every rank ends every op at the same time in both results, and that the peaks of its memories are
 * equal. */
static inline void check_rank_times_and_peaks(const char *label, const struct sim_result *folded,
                                              const struct sim_result *plain)
{
    CHECK_CLOSE(label, folded->step_s, plain->step_s, 1e-9);
    CHECK_CLOSE(label, sum_link_bytes_of_replicas(folded), sum_link_bytes_of_replicas(plain), 1e-9);
    CHECK(label, folded->class_count <= plain->class_count);
    for (uint32_t rank = 0; rank < plain->rank_count; rank++) {
        const struct sim_class *class = &plain->classes[plain->class_of_rank[rank]];
        const double *a = sim_op_ends_of_rank_s(folded, rank),
                     *b = sim_op_ends_of_rank_s(plain, rank);
        double worst = 0;
        for (uint32_t op = 0; op < class->op_count; op++)
            worst = fmax(worst, fabs(a[op] - b[op]) / plain->step_s);
        CHECK(label, worst <= 1e-9);
        for (int m = 0; m < MEMORY_COUNT; m++)
            CHECK_INT(label, (int64_t)folded->peak[folded->class_of_rank[rank]][m].bytes,
                      (int64_t)plain->peak[plain->class_of_rank[rank]][m].bytes);
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK_INT(label, (int64_t)folded->highest_node_peak_by_memory[m].bytes,
                  (int64_t)plain->highest_node_peak_by_memory[m].bytes);
}

/* Compares predictions with folded ranks and without over `worlds` random worlds. Returns in how many of them one of
 * several equal replicas was simulated for all (sim/traffic/replicas.h). */
static inline int check_folded_predictions(int worlds, bool make(struct property_world *,
                                                                 struct check_random *))
{
    struct check_random random = check_random_make();
    int replicated_worlds = 0;
    for (int i = 0; i < worlds; i++) {
        struct property_world w;
        struct sim_result folded = {0}, plain = {0};
        if (make(&w, &random) && simulate(&w, false, &folded) && simulate(&w, true, &plain)) {
            check_rank_times_and_peaks(w.label, &folded, &plain);
            replicated_worlds += folded.equal_replica_count > 1;
        }
        sim_result_release(&folded);
        sim_result_release(&plain);
        world_release(&w);
    }
    return replicated_worlds;
}

#endif
