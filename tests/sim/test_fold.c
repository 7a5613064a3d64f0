/* tests/sim/test_fold.c: folded simulations of random plans equal those that simulate every rank. */
#include "tests/sim/random_plan.h"

#include "sim/traffic/fold.h"
#include "sim/waterfall.h"

/* Folding may change times by rounding only. */
static const double tolerance = 1e-9;

static void compare_op_times_of_ranks(const char *label, const struct sim_result *folded,
                                      const struct sim_result *exact)
{
    CHECK_CLOSE(label, folded->step_s, exact->step_s, tolerance);
    for (uint32_t r = 0; r < exact->rank_count; r++) {
        const struct sim_class *class = &exact->classes[exact->class_of_rank[r]];
        const double *a = sim_op_ends_of_rank_s(folded, r), *b = sim_op_ends_of_rank_s(exact, r);
        const double *c = sim_op_starts_of_rank_s(folded, r),
                     *d = sim_op_starts_of_rank_s(exact, r);
        for (uint32_t k = 0; k < class->op_count; k++)
            if (fabs(a[k] - b[k]) > tolerance * exact->step_s ||
                fabs(c[k] - d[k]) > tolerance * exact->step_s) {
                printf("%s: rank %u op %u: folded %.12g to %.12g, exact %.12g to %.12g\n", label, r,
                       class->op_begin + k, c[k], a[k], d[k], b[k]);
                CHECK(label, !"folded and exact agree");
                return;
            }
    }
}

static void compare_link_load_sums(const char *label, const struct sim_result *folded,
                                   const struct sim_result *exact)
{
    double a = 0, b = 0;
    CHECK_INT(label, (int64_t)(folded->link_load_count * folded->equal_replica_count),
              (int64_t)exact->link_load_count);
    for (size_t i = 0; i < folded->link_load_count; i++)
        a += folded->loads_by_link[i].bytes * folded->equal_replica_count;
    for (size_t i = 0; i < exact->link_load_count; i++)
        b += exact->loads_by_link[i].bytes;
    CHECK_CLOSE(label, a, b, tolerance);
}

static void check_waterfalls(const char *label, const struct ir *ir,
                             const struct sim_result *result)
{
    for (uint32_t r = 0; r < result->rank_count; r++) {
        struct waterfall w;
        double sum = 0;
        waterfall_make(&w, ir, result, (struct waterfall_peak){.flop_per_s = 1e12}, r);
        for (int c = 0; c < CAUSE_COUNT; c++) {
            CHECK(label, w.cause_s[c] >= 0);
            sum += w.cause_s[c];
        }
        CHECK_CLOSE(label, sum, result->step_s, 1e-12);
    }
}

static void folded_is_exact_on_random_plans(void)
{
    struct check_random random = check_random_make();
    uint64_t folded_plans = 0, replicated = 0;
    for (int round = 0; round < 150; round++) {
        char label[32];
        snprintf(label, sizeof label, "round %d", round);
        struct text text = {0};
        struct cluster cluster;
        struct ir ir = {0};
        struct sim_result folded = {0}, exact = {0};
        write_random_schedule(&random, 24, &text, &cluster);
        if (!parse_schedule_or_fail_check(&ir, label, text.data)) {
            puts(text.data);
            break;
        }
        struct toy_sim_costs costs = toy_sim_costs_make(&ir, round % 3 ? 0 : 1e-3);
        if (simulate_or_fail_check(label, &ir, &cluster, &costs.costs, (struct sim_options){0},
                                   &folded) &&
            simulate_or_fail_check(label, &ir, &cluster, &costs.costs,
                                   (struct sim_options){.simulates_every_rank_and_op = true},
                                   &exact)) {
            compare_op_times_of_ranks(label, &folded, &exact);
            compare_link_load_sums(label, &folded, &exact);
            check_waterfalls(label, &ir, &folded);
            folded_plans += folded.class_count < exact.class_count;
            replicated += folded.equal_replica_count > 1;
        } else {
            puts(text.data);
        }
        sim_result_release(&folded);
        sim_result_release(&exact);
        toy_sim_costs_release(&costs);
        ir_release(&ir);
        text_release(&text);
    }
    CHECK("some plans fold", folded_plans > 50);
    CHECK("some are planned in part", replicated > 10);
}

static const char head[] = "stream compute compute\nstream comm comm\nstream dp comm\n"
                           "stream h2d h2d\nbuffer a0 hbm u8 [100000000000] workspace persistent\n"
                           "buffer pin0 pinned u8 [100000000000] workspace persistent\n";

/* 8 ranks on 2 nodes of 4. clang-format 14 crashes on this table. */
/* clang-format off */
static const struct {
    const char *label, *mesh, *ops;
    uint32_t classes;
} symmetric[] = {
    {"ulysses over all",                   "mesh sp=8\ngroup sp axes=sp\n",
     "op 0 fill compute count=1000000 writes a0\n"
     "op 1 all_to_all comm group=sp bytes=8000000000 waits 0 reads a0 writes a0\n"
     "op 2 h2d h2d bytes=1000000000 waits 1 reads pin0 writes a0\n",                 1},
    {"ulysses in nodes, dp across",        "mesh dp=2 sp=4\ngroup sp axes=sp\ngroup dp axes=dp\n",
     "op 0 all_to_all comm group=sp bytes=8000000000 reads a0 writes a0\n"
     "op 1 all_reduce dp group=dp bytes=8000000000 reads a0 writes a0\n"
     "op 2 fill compute count=1000000 waits 0,1 writes a0\n",                        1},
    {"a ring",                             "mesh cp=8\ngroup cp axes=cp\n",
     "op 0 shift comm group=cp by=+1 bytes=8000000000 reads a0 writes a0\n"
     "op 1 fill compute count=1000000 waits 0 writes a0\n",                          4}, /* places in the node differ: next to the NIC, or not */
    {"a ring whose first rank works more", "mesh dp=2 cp=4\ngroup cp axes=cp\n",
     "op 0 fill compute count=1000000 guard cp<1 writes a0\n"
     "op 1 shift comm group=cp by=+1 bytes=8000000000 waits 0 reads a0 writes a0\n", 4},
};

static void symmetric_plans_fold_to_few_classes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(symmetric); i++) {
        struct text text = {0};
        struct ir ir = {0};
        struct sim_result result = {0};
        struct cluster cluster = make_round_number_cluster(2);
        text_printf(&text, "longhaul schedule 1\n%s%s%s", symmetric[i].mesh, head,
                    symmetric[i].ops);
        if (parse_schedule_or_fail_check(&ir, symmetric[i].label, text.data)) {
            struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
            if (simulate_or_fail_check(symmetric[i].label, &ir, &cluster, &costs.costs,
                            (struct sim_options){0}, &result))
                CHECK_INT(symmetric[i].label, result.class_count, symmetric[i].classes);
            toy_sim_costs_release(&costs);
        }
        sim_result_release(&result);
        ir_release(&ir);
        text_release(&text);
    }
}

static const struct check_case cases[] = {
    {"folded is exact on random plans",     folded_is_exact_on_random_plans    },
    {"symmetric plans fold to few classes", symmetric_plans_fold_to_few_classes},
};
CHECK_MAIN("sim/fold", cases)
