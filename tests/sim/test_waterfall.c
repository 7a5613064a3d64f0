/* tests/sim/test_waterfall.c: every instant of a rank's step has one cause, worked by hand for small schedules. */
#include "sim/waterfall.h"
#include "tests/sim/machine.h"

enum { MOST_CAUSES = 4 };

static const char head[] = "longhaul schedule 1\n"
                           "mesh g=2\n"
                           "group g axes=g\n"
                           "stream compute compute\n"
                           "stream comm comm\n"
                           "stream h2d h2d\n"
                           "stream host host\n"
                           "buffer a0 hbm u8 [100000000000] workspace persistent\n"
                           "buffer x0 hbm bf16 [1000000] activation persistent\n"
                           "buffer y0 hbm bf16 [1000000] activation persistent\n"
                           "buffer l0 hbm f32 [1000] activation persistent\n"
                           "buffer pin0 pinned u8 [100000000000] workspace persistent\n";

/* A matmul of 1000^3 does 2 Gflop: 2 ms at 1 Tflop/s; the costs below are 5 ms, for attention too. */
#define MATMUL "matmul compute m=1000 n=1000 k=1000 reads x0 x0 writes y0"

/* clang-format off */
static const struct {
    const char *label, *ops;
    double issue_s;
    struct {
        enum cause cause;
        double seconds;
    } want[MOST_CAUSES];
} cases_of_causes[] = {
    /* label, ops of the schedule after `head`, issue_s of each op, the seconds of each cause on rank 0 */
    {"forward flops and the rest of the kernel",
     "op 0 " MATMUL " phase=forward\n", 0,
     {{CAUSE_USEFUL, 2e-3}, {CAUSE_INEFFICIENCY, 3e-3}}},
    {"backward flops are useful, recomputed ones are not",
     "op 0 " MATMUL " phase=backward\nop 1 " MATMUL " phase=recompute\n", 0,
     {{CAUSE_USEFUL, 2e-3}, {CAUSE_INEFFICIENCY, 3e-3}, {CAUSE_RECOMPUTE, 5e-3}}},
    /* five products of 2 x 1000 x 1000 x 100 flops: 1 ms at peak, of which one makes scores again */
    {"attention's backward recomputes the scores",
     "op 0 attention_backward compute q=1000 kv=1000 heads=1 kv_heads=1 dim=100 mask=full "
     "reads x0 x0 x0 x0 x0 l0 writes y0 y0 y0 phase=backward\n", 0,
     {{CAUSE_USEFUL, 0.8e-3}, {CAUSE_RECOMPUTE, 0.2e-3}, {CAUSE_INEFFICIENCY, 4e-3}}},
    /* three products of 150 columns and two of 100: 1.3 ms at peak, of which one of 150 makes scores again */
    {"attention's backward with narrower values",
     "op 0 attention_backward compute q=1000 kv=1000 heads=1 kv_heads=1 dim=150 mask=full vdim=100 "
     "reads x0 x0 x0 x0 x0 l0 writes y0 y0 y0 phase=backward\n", 0,
     {{CAUSE_USEFUL, 1e-3}, {CAUSE_RECOMPUTE, 0.3e-3}, {CAUSE_INEFFICIENCY, 3.7e-3}}},
    {"work without flops is bound by memory",
     "op 0 fill compute count=1000000 writes a0 phase=forward\n", 0,
     {{CAUSE_MEMORY_BOUND, 1e-3}}},
    {"the optimizer's phase",
     "op 0 fill compute count=1000000 writes a0 phase=optimizer\n", 0,
     {{CAUSE_OPTIMIZER, 1e-3}}},
    /* 1 of 2 GB leaves through a port of 100 GB/s: 10 ms */
    {"an exposed all-to-all",
     "op 0 fill compute count=1000000 writes a0\n"
     "op 1 all_to_all comm group=g bytes=2000000000 waits 0 reads a0 writes a0\n"
     "op 2 fill compute count=1000000 waits 1 writes a0\n", 0,
     {{CAUSE_MEMORY_BOUND, 2e-3}, {CAUSE_ALL_TO_ALL, 10e-3}}},
    {"only the exposed part of a shift counts",
     "op 0 shift comm group=g by=+1 bytes=500000000 reads a0 writes a0\n"
     "op 1 fill compute count=4000000 writes a0\n"
     "op 2 fill compute count=1000000 waits 0 writes a0\n", 0,
     {{CAUSE_MEMORY_BOUND, 5e-3}, {CAUSE_RING, 6e-3}}},
    {"a gap is followed back through what waited for what",
     "op 0 h2d h2d bytes=200000000 reads pin0 writes a0\n"
     "op 1 all_to_all comm group=g bytes=2000000000 waits 0 reads a0 writes a0\n"
     "op 2 fill compute count=1000000 waits 1 writes a0\n", 0,
     {{CAUSE_OFFLOAD, 0.2 / 15}, {CAUSE_ALL_TO_ALL, 10e-3}, {CAUSE_MEMORY_BOUND, 1e-3}}},
    {"gathers of weights and others",
     "op 0 all_gather comm group=g bytes=1000000000 reads a0 writes a0 region=weights\n"
     "op 1 all_reduce comm group=g bytes=1000000000 reads a0 writes a0 region=loss algorithm=ring\n"
     "op 2 fill compute count=1000000 waits 1 writes a0\n", 0,
     {{CAUSE_WEIGHT_COLLECTIVES, 10e-3}, {CAUSE_OTHER_COLLECTIVES, 10e-3}, {CAUSE_MEMORY_BOUND, 1e-3}}},
    {"a slow host",
     "op 0 fill compute count=1000000 writes a0\nop 1 fill compute count=1000000 writes a0\n", 3e-3,
     {{CAUSE_HOST, 5e-3}, {CAUSE_MEMORY_BOUND, 2e-3}}},
    {"a sync that waits for an all-to-all",
     "op 0 all_to_all comm group=g bytes=2000000000 reads a0 writes a0\n"
     "op 1 host_sync comm\n"
     "op 2 fill compute count=1000000 writes a0\n", 1e-3,
     {{CAUSE_HOST, 3e-3}, {CAUSE_ALL_TO_ALL, 10e-3}, {CAUSE_MEMORY_BOUND, 1e-3}}},
    {"what runs last",
     "op 0 fill compute count=1000000 writes a0\n"
     "op 1 all_to_all comm group=g bytes=2000000000 waits 0 reads a0 writes a0\n", 0,
     {{CAUSE_MEMORY_BOUND, 1e-3}, {CAUSE_ALL_TO_ALL, 10e-3}}},
    {"waiting for the optimizer on the host",
     "op 0 fill compute count=1000000 writes a0\n"
     "op 1 adamw host count=4000000 waits 0 reads pin0 pin0 pin0 pin0 writes pin0 pin0 pin0\n", 0,
     {{CAUSE_MEMORY_BOUND, 1e-3}, {CAUSE_OPTIMIZER, 4e-3}}},
    {"others have not ended",
     "op 0 fill compute count=1000000 writes a0\n"
     "op 1 fill compute count=4000000 guard g>=1 writes a0\n", 0,
     {{CAUSE_MEMORY_BOUND, 1e-3}, {CAUSE_OTHER, 4e-3}}},
    {"a message between stages",
     "op 0 fill compute count=5000000 guard g>=1 writes a0\n"
     "op 1 send comm group=g by=-1 bytes=500000000 guard g>=1 waits 0 reads a0\n"
     "op 2 recv comm group=g by=+1 bytes=500000000 guard g<1 writes a0\n"
     "op 3 fill compute count=1000000 guard g<1 waits 2 writes a0\n", 0,
     {{CAUSE_MEMORY_BOUND, 1e-3}, {CAUSE_PIPELINE_FILL, 15e-3}}},
    {"messages while a pipeline turns, and at its end",
     "op 0 fill compute count=1000000 guard g>=1 writes a0 phase=backward\n"
     "op 1 send comm group=g by=-1 bytes=500000000 guard g>=1 waits 0 reads a0\n"
     "op 2 send comm group=g by=-1 bytes=500000000 guard g>=1 waits 0 reads a0\n"
     "op 3 fill compute count=1000000 guard g<1 writes a0 phase=backward\n"
     "op 4 recv comm group=g by=+1 bytes=500000000 guard g<1 writes a0\n"
     "op 5 fill compute count=1000000 guard g<1 waits 4 writes a0\n"
     "op 6 recv comm group=g by=+1 bytes=500000000 guard g<1 writes a0\n"
     "op 7 fill compute count=1000000 guard g<1 waits 6 writes a0 phase=backward\n", 0,
     {{CAUSE_MEMORY_BOUND, 3e-3}, {CAUSE_PIPELINE_IMBALANCE, 10e-3}, {CAUSE_PIPELINE_DRAIN, 9e-3}}},
    /* 10 ms each, on separate links */
    {"of two that end at once, the later in the list",
     "op 0 all_to_all comm group=g bytes=2000000000 reads a0 writes a0\n"
     "op 1 h2d h2d bytes=150000000 reads pin0 writes a0\n"
     "op 2 fill compute count=1000000 waits 0,1 writes a0\n", 0,
     {{CAUSE_OFFLOAD, 10e-3}, {CAUSE_MEMORY_BOUND, 1e-3}}},
    {"of two that end last at once, the later in the list",
     "op 0 h2d h2d bytes=150000000 reads pin0 writes a0\n"
     "op 1 all_to_all comm group=g bytes=2000000000 reads a0 writes a0\n", 0,
     {{CAUSE_ALL_TO_ALL, 10e-3}}},
};
/* clang-format on */

static void check_waterfall_seconds_by_cause(const char *label, const struct ir *ir,
                                             const struct sim_result *result,
                                             const double want[CAUSE_COUNT])
{
    struct waterfall w;
    waterfall_make(&w, ir, result, (struct waterfall_peak){.flop_per_s = 1e12}, 0);
    for (int c = 0; c < CAUSE_COUNT; c++)
        if (!CHECK_CLOSE(label, w.cause_s[c], want[c], 1e-9))
            printf("cause: %s\n", cause_name((enum cause)c));
}

static void waterfall_time_by_cause_by_hand(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases_of_causes); i++) {
        const char *label = cases_of_causes[i].label;
        struct text text = {0};
        struct ir ir = {0};
        struct sim_result result = {0};
        struct cluster cluster = make_round_number_cluster(1);
        text_printf(&text, "%s%s", head, cases_of_causes[i].ops);
        if (!parse_schedule_or_fail_check(&ir, label, text.data))
            continue;
        struct toy_sim_costs costs = toy_sim_costs_make(&ir, cases_of_causes[i].issue_s);
        for (uint32_t s = 0; s < ir.shape_count; s++)
            if (ir.shape[s].kind == WORK_MATMUL || ir.shape[s].kind == WORK_ATTENTION_BACKWARD)
                costs.work_s[s] = 5e-3;
        if (simulate_or_fail_check(label, &ir, &cluster, &costs.costs, (struct sim_options){0},
                                   &result)) {
            double want[CAUSE_COUNT] = {0};
            for (int k = 0; k < MOST_CAUSES; k++)
                want[cases_of_causes[i].want[k].cause] += cases_of_causes[i].want[k].seconds;
            check_waterfall_seconds_by_cause(label, &ir, &result, want);
            for (size_t row = 0; row < result.row_count; row++) { /* with an end rounded up */
                double end_s = result.end_s[row];
                result.end_s[row] = nextafter(end_s, INFINITY);
                check_waterfall_seconds_by_cause(label, &ir, &result, want);
                result.end_s[row] = end_s;
            }
        }
        sim_result_release(&result);
        toy_sim_costs_release(&costs);
        ir_release(&ir);
        text_release(&text);
    }
}

static void every_cause_has_a_name(void)
{
    for (int c = 0; c < CAUSE_COUNT; c++)
        CHECK("name", cause_name((enum cause)c) != NULL);
}

static const struct check_case cases[] = {
    {"every instant has its cause", waterfall_time_by_cause_by_hand},
    {"every cause has a name", every_cause_has_a_name},
};
CHECK_MAIN("sim/waterfall", cases)
