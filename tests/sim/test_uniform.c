/* tests/sim/test_uniform.c: all ranks of a long ring are simulated like the last one where guards
 * choose between equal work; the flops stay those of each rank. */
#include "tests/sim/machine.h"

#include "sim/uniform/uniform.h"

/* A ring of 4 ranks in one node, two steps. In step N the ranks from N on take 2 s and those below N 1 s; a
 * message of 5 GB takes 0.1 s at 50 GB/s and starts when both ends are ready. */
static const char head[] = "longhaul schedule 1\nmesh cp=4\ngroup cp axes=cp\nstream compute "
                           "compute\nstream comm comm\nstream h2d h2d\n"
                           "buffer a0 hbm u8 [100000000000] workspace persistent\n"
                           "buffer pin0 pinned u8 [100000000000] workspace persistent\n";
static const char ring[] =
    "op 0 fill compute count=2000000000 guard cp>=1 writes a0\n"
    "op 1 fill compute count=1000000000 guard cp<1 writes a0\n"
    "op 2 shift comm group=cp by=+1 bytes=5000000000 waits 0,1 reads a0 writes a0\n"
    "op 3 fill compute count=2000000000 guard cp>=2 waits 2 writes a0\n"
    "op 4 fill compute count=1000000000 guard cp<2 waits 2 writes a0\n";

static bool run_schedule(const char *ops, struct sim_options options, struct ir *ir,
                         struct sim_result *result)
{
    struct text text = {0};
    struct cluster cluster = make_round_number_cluster(1);
    bool ok = false;
    text_printf(&text, "%s%s", head, ops);
    if (parse_schedule_or_fail_check(ir, ops, text.data)) {
        struct toy_sim_costs costs = toy_sim_costs_make(ir, 0);
        ok = simulate_or_fail_check(ops, ir, &cluster, &costs.costs, options, result);
        toy_sim_costs_release(&costs);
    }
    text_release(&text);
    return ok;
}

static void even_ranks_fold_into_the_last_class(void)
{
    static const struct {
        const char *label;
        struct sim_options options;
        uint32_t even, classes;
        double rank0_s; /* end of rank 0's work */
    } cases[] = {
        /* label, options, even, classes, rank0_s */
        {"more ranks than 3", {.uniform_above_ranks = 3}, 4, 1, 4.1},
        {"no more than 4", {.uniform_above_ranks = 4}, 0, 4, 3.1},
        {"no more than 64, the default", {0}, 0, 4, 3.1},
        {"exact", {.simulates_every_rank_and_op = true, .uniform_above_ranks = 3}, 0, 4, 3.1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ir ir = {0};
        struct sim_result result = {0};
        const char *label = cases[i].label;
        bool even = cases[i].even > 0;
        if (run_schedule(ring, cases[i].options, &ir, &result)) {
            CHECK_CLOSE(label, result.step_s, 4.1, 1e-12);
            CHECK_INT(label, result.uniform_rank_count, cases[i].even);
            CHECK_INT(label, result.class_count, cases[i].classes);
            CHECK_CLOSE(
                label,
                fmax(sim_op_ends_of_rank_s(&result, 0)[3], sim_op_ends_of_rank_s(&result, 0)[4]),
                cases[i].rank0_s, 1e-12);
            CHECK_INT(label, sim_rank_runs_op(&ir, &result, 0, 0), even);
            CHECK_INT(label, sim_rank_runs_op(&ir, &result, 0, 1), !even);
            CHECK_INT(label, sim_rank_runs_op(&ir, &result, 3, 3), true);
            CHECK_INT(label, sim_rank_runs_op(&ir, &result, 3, 4), false);
            struct trace trace = {0};
            sim_make_trace(&ir, &result, 0, 1, false, &trace);
            if (CHECK_INT(label, (int64_t)trace.ops.count, 3))
                CHECK_INT(label, trace.ops.op[0], even ? 0 : 1);
            trace_release(&trace);
        }
        sim_result_release(&result);
        ir_release(&ir);
    }
}

/* Ranks 1 to 3 do 1 Gflop and rank 0 5 % less: flops are counted for each rank's own op. */
static void flops_are_those_of_each_rank(void)
{
    static const char ops[] =
        "op 0 matmul compute m=1000 n=1000 k=500 guard cp>=1 reads a0[:1000000] "
        "a0[:1000000] writes a0[:2000000]\n"
        "op 1 matmul compute m=950 n=1000 k=500 guard cp<1 reads a0[:950000] "
        "a0[:1000000] writes a0[:1900000]\n";
    struct ir ir = {0};
    struct sim_result result = {0};
    if (run_schedule(ops, (struct sim_options){.uniform_above_ranks = 3}, &ir, &result)) {
        CHECK_INT("even", result.uniform_rank_count, 4);
        CHECK_CLOSE("flops", sim_flops(&ir, &result), 3.95e9, 1e-12);
    }
    sim_result_release(&result);
    ir_release(&ir);
}

static void unpaired_guards_distinguish_ranks(void)
{
    static const char *const apart[] = {
        /* no op for rank 0; then two ops for rank 1 */
        "op 0 fill compute count=1000000 guard cp>=1 writes a0\n",
        "op 0 fill compute count=1000000 guard cp>=1 writes a0\n"
        "op 1 fill compute count=1000000 guard cp<2 writes a0\n",
        /* a guard that only one rank passes */
        "op 0 fill compute count=1000000 guard cp==1 writes a0\n",
        /* work that differs */
        "op 0 matmul compute m=1000 n=1000 k=500 guard cp>=1 reads a0[:1000000] a0[:1000000] "
        "writes a0[:2000000]\n"
        "op 1 matmul compute m=500 n=1000 k=500 guard cp<1 reads a0[:500000] a0[:1000000] "
        "writes a0[:1000000]\n",
        /* copies, which are no computation */
        "op 0 h2d h2d bytes=1000000 guard cp>=1 reads pin0 writes a0\n"
        "op 1 h2d h2d bytes=1000000 guard cp<1 reads pin0 writes a0\n",
        /* a pair of guards, and a third guard of the same group that has no counterpart */
        "op 0 fill compute count=1000000 guard cp>=1 writes a0\n"
        "op 1 fill compute count=1000000 guard cp<1 writes a0\n"
        "op 2 fill compute count=1000000 guard cp<3 writes a0\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(apart); i++) {
        struct ir ir = {0};
        struct sim_result result = {0};
        if (run_schedule(apart[i], (struct sim_options){.uniform_above_ranks = 3}, &ir, &result)) {
            CHECK_INT(apart[i], result.uniform_rank_count, 0);
            CHECK(apart[i], result.class_count > 1);
        }
        sim_result_release(&result);
        ir_release(&ir);
    }
}

static const struct check_case cases[] = {
    {"even ranks work as the last", even_ranks_fold_into_the_last_class},
    {"flops are those of each rank", flops_are_those_of_each_rank},
    {"other guards tell ranks apart", unpaired_guards_distinguish_ranks},
};
CHECK_MAIN("even", cases)
