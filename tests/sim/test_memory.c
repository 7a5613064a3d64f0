/* tests/sim/test_memory.c: the peak of memory is where most bytes are live, and the host memory of a node's ranks adds
 * up. */
#include "sim/memory/memory.h"
#include "tests/sim/machine.h"

/* Kernels take 1 s each. Live ranges: k0 [0, 2), v0 [1, 3), tail0 from 2 on, keep0 always. part0 is part of
 * another buffer and is not counted. The copy out of k0 starts at 1 s and ends before 2 s. */
static const char schedule[] =
    "longhaul schedule 1\n"
    "mesh g=2\n"
    "group g axes=g\n"
    "stream compute compute\n"
    "stream d2h d2h\n"
    "buffer keep0 hbm u8 [100] parameter persistent\n"
    "buffer part0 hbm u8 [7000] gradient persistent part\n"
    "buffer k0 hbm u8 [1000000000] kv free=1,4\n"
    "buffer v0 hbm u8 [3000000000] activation free=2\n"
    "buffer tail0 hbm u8 [500] workspace\n"
    "buffer out0 pinned u8 [1000000000] activation\n"
    "op 0 fill compute count=1000000000 writes k0\n"
    "op 1 cast compute count=1000000000 reads k0 writes v0[0:1000000000]\n"
    "op 2 cast compute count=500 reads v0[0:500] writes tail0\n"
    "op 3 fill compute count=1000000000 guard g>=1 writes keep0[0:50]\n"
    "op 4 d2h d2h bytes=1000000000 waits 0 reads k0 writes out0\n";

static void run_schedule(struct ir *ir, struct sim_result *result)
{
    struct cluster cluster = make_round_number_cluster(1);
    if (!parse_schedule_or_fail_check(ir, "memory", schedule))
        return;
    struct toy_sim_costs costs = toy_sim_costs_make(ir, 0);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        if (ir->shape[s].kind == WORK_CAST)
            costs.work_s[s] = 1;
    simulate_or_fail_check("memory", ir, &cluster, &costs.costs, (struct sim_options){0}, result);
    toy_sim_costs_release(&costs);
}

static void peak_is_where_most_is_live(void)
{
    struct ir ir = {0};
    struct sim_result result = {0};
    run_schedule(&ir, &result);
    const struct sim_peak *hbm = &result.peak[result.class_of_rank[1]][MEMORY_HBM];
    CHECK_INT("bytes", (int64_t)hbm->bytes, 4000000100);
    CHECK_CLOSE("date", hbm->time_s, 1, 1e-12);
    CHECK_INT("op", hbm->op, 1);
    CHECK_INT("kv", (int64_t)hbm->category_bytes[CATEGORY_KV], 1000000000);
    CHECK_INT("parameter", (int64_t)hbm->category_bytes[CATEGORY_PARAMETER], 100);
    CHECK_INT("activation", (int64_t)hbm->category_bytes[CATEGORY_ACTIVATION], 3000000000);
    CHECK_INT("workspace", (int64_t)hbm->category_bytes[CATEGORY_WORKSPACE], 0);
    static const char *const top[] = {"v0", "k0", "keep0"};
    CHECK_INT("largest", hbm->top_buffer_count, 3);
    for (uint32_t i = 0; i < hbm->top_buffer_count && i < 3; i++) {
        char name[32];
        ir_buffer_name(&ir, (buffer_id){hbm->top_buffer[i].buffer}, name, sizeof name);
        CHECK_TEXT("largest", name, top[i]);
    }
    sim_result_release(&result);
    ir_release(&ir);
}

static void host_memory_adds_up_over_a_node(void)
{
    struct ir ir = {0};
    struct sim_result result = {0};
    run_schedule(&ir, &result);
    CHECK_INT("a rank", (int64_t)result.peak[0][MEMORY_PINNED].bytes, 1000000000);
    CHECK_INT("a node", (int64_t)result.highest_node_peak_by_memory[MEMORY_PINNED].bytes,
              2000000000);
    CHECK_CLOSE("date", result.highest_node_peak_by_memory[MEMORY_PINNED].time_s, 1, 1e-12);
    CHECK_INT("hbm is the device's", (int64_t)result.highest_node_peak_by_memory[MEMORY_HBM].bytes,
              0);
    sim_result_release(&result);
    ir_release(&ir);
}

static void trace_has_one_row_per_change(void)
{
    static const struct {
        double time_s;
        const char *memory, *category;
        double bytes;
    } want[] = {
        {0, "hbm", "parameter", 100},     {0, "hbm", "kv", 1e9}, {1, "hbm", "activation", 3e9},
        {1, "pinned", "activation", 1e9}, {2, "hbm", "kv", 0},   {2, "hbm", "workspace", 500},
        {3, "hbm", "activation", 0},
    };
    struct ir ir = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    run_schedule(&ir, &result);
    sim_make_trace(&ir, &result, 1, 2, true, &trace);
    CHECK_INT("rows", (int64_t)trace.memory.count, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want) && i < trace.memory.count; i++) {
        const char *category = trace.labels[trace.memory.category[i]];
        CHECK_CLOSE(category, trace.memory.time_s[i], want[i].time_s, 1e-12);
        CHECK_TEXT("memory", trace.labels[trace.memory.memory[i]], want[i].memory);
        CHECK_TEXT("category", category, want[i].category);
        CHECK_CLOSE(category, trace.memory.bytes[i], want[i].bytes, 0);
        CHECK_INT(category, trace.memory.rank[i], 1);
    }
    /* op 3 is guarded out on rank 0 and missing in its trace */
    CHECK_INT("ops of rank 1", (int64_t)trace.ops.count, 5);
    sim_make_trace(&ir, &result, 0, 1, false, &trace);
    CHECK_INT("and of rank 0", (int64_t)trace.ops.count, 9);
    trace_release(&trace);
    sim_result_release(&result);
    ir_release(&ir);
}

static const struct check_case cases[] = {
    {"peak is where most is live", peak_is_where_most_is_live},
    {"host memory adds up over a node", host_memory_adds_up_over_a_node},
    {"trace has one row per change", trace_has_one_row_per_change},
};
CHECK_MAIN("sim/memory", cases)
