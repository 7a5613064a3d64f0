/* tests/sim/test_jitter.c: the time that jitter adds, computed by hand and by random draws. */
#include "sim/jitter.h"
#include "tests/sim/machine.h"

#include <gsl/gsl_randist.h>

static const char head[] = "longhaul schedule 1\n"
                           "mesh g=4\n"
                           "group g axes=g\n"
                           "stream compute compute\n"
                           "stream comm comm\n"
                           "buffer a0 hbm u8 [100000000000] workspace persistent\n";

#define FILL "fill compute count=1000000 " /* 1 ms */
#define ALL_REDUCE_OF_FOUR_BYTES                                                                   \
    "all_reduce comm group=g bytes=4 algorithm=ring " /* nearly no time */

/* E(n) is the expected maximum of n standard normal numbers: E(2) is 0.5642, E(4) 1.0294, E(32)
 * 2.0697, E(1024) 3.2413 (tables of normal order statistics). */
static void the_expected_maximum_is_that_of_tables(void)
{
    CHECK_CLOSE("1", jitter_expected_max_of_normals(1), 0, 0);
    CHECK_CLOSE("2", jitter_expected_max_of_normals(2), 0.5642, 0.05);
    CHECK_CLOSE("4", jitter_expected_max_of_normals(4), 1.0294, 0.03);
    CHECK_CLOSE("32", jitter_expected_max_of_normals(32), 2.0697, 0.01);
    CHECK_CLOSE("1024", jitter_expected_max_of_normals(1024), 3.2413, 0.01);
}

static const struct {
    const char *label, *ops;
    /* How much longer the step is, in units of E(4) times the standard deviation of one kernel. It is the sum, over the
     * rendezvous that delay a kernel and over the end of the step, of the square root of the number of kernels since
     * the rendezvous before. */
    double expected_delay_in_e4_sigmas;
} rows[] = {
    {"nobody meets before the end", "op 0 " FILL "writes a0\nop 1 " FILL "writes a0\n", 1.41421356},
    {"a meeting between two kernels",
     "op 0 " FILL "writes a0\nop 1 " ALL_REDUCE_OF_FOUR_BYTES "waits 0 reads a0 writes a0\n"
     "op 2 " FILL "waits 1 writes a0\n",
     2},
    {"kernels between meetings add their variances",
     "op 0 " FILL "writes a0\nop 1 " FILL "writes a0\nop 2 " FILL "writes a0\nop 3 " FILL
     "writes a0\nop 4 " ALL_REDUCE_OF_FOUR_BYTES "waits 3 reads a0 writes a0\nop 5 " FILL
     "waits 4 writes a0\n",
     3},
    /* op 3 waits for op 1, but follows op 2, which ends 1 ms after op 1. This is 10 standard
     * deviations of a kernel, so op 1 delays nothing. */
    {"a meeting behind a kernel delays nobody",
     "op 0 " FILL "writes a0\nop 1 " ALL_REDUCE_OF_FOUR_BYTES "waits 0 reads a0 writes a0\n"
     "op 2 " FILL "writes a0\nop 3 " FILL "waits 1 writes a0\n",
     1.73205081},
};

static void rendezvous_wait_for_the_last_rank(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        struct ir ir = {0};
        text_printf(&text, "%s%s", head, rows[i].ops);
        if (parse_schedule_or_fail_check(&ir, rows[i].label, text.data)) {
            struct cluster cluster = make_round_number_cluster(1);
            struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
            struct sim_result result = {0};
            if (simulate_or_fail_check(rows[i].label, &ir, &cluster, &costs.costs,
                                       (struct sim_options){.simulates_every_rank_and_op = true},
                                       &result)) {
                CHECK_CLOSE(rows[i].label, jitter_s(&ir, &result, 0, 0.1),
                            jitter_expected_max_of_normals(4) * 1e-4 *
                                rows[i].expected_delay_in_e4_sigmas,
                            1e-6);
                CHECK_CLOSE("none measured, none added", jitter_s(&ir, &result, 0, 0), 0, 0);
            }
            sim_result_release(&result);
            toy_sim_costs_release(&costs);
        }
        ir_release(&ir);
        text_release(&text);
    }
}

/* Random draws of 40 kernels with a rendezvous after every fourth, on 32 ranks, agree with the formula. */
static void drawn_jitter_equals_the_expected_maximum(void)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double drawn = 0;
    enum { DRAWS = 2000, MEETINGS = 10, KERNELS = 4, RANKS = 32 };
    for (int draw = 0; draw < DRAWS; draw++)
        for (int meeting = 0; meeting < MEETINGS; meeting++) {
            double last = -INFINITY;
            for (int rank = 0; rank < RANKS; rank++) {
                double late = 0;
                for (int kernel = 0; kernel < KERNELS; kernel++)
                    late += gsl_ran_gaussian(random, 1e-5);
                last = fmax(last, late);
            }
            drawn += last / DRAWS;
        }
    gsl_rng_free(random);
    CHECK_CLOSE("the mean of the draws", drawn,
                MEETINGS * jitter_expected_max_of_normals(RANKS) * sqrt(KERNELS) * 1e-5, 0.01);
}

static const struct check_case cases[] = {
    {"the expected maximum is that of tables", the_expected_maximum_is_that_of_tables},
    {"meetings wait for the last", rendezvous_wait_for_the_last_rank},
    {"drawing it gives the same", drawn_jitter_equals_the_expected_maximum},
};
CHECK_MAIN("sim/jitter", cases)
