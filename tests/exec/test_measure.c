/* tests/exec/test_measure.c: the times in traces, and how emulated links lengthen them. */
#include "tests/exec/hand.h"
#include "tests/exec/step.h"

#include "traces/stats.h"

/* On links of 20 MB/s each transfer takes 50 ms: two copies of 1 MB to the device, one from it and a message. */
static const char transfers[] = "longhaul schedule 1\nmesh g=2\ngroup g axes=g\n"
                                "stream comm comm\nstream h2d h2d\nstream d2h d2h\n"
                                "buffer a0 hbm f32 [250000] activation persistent\n"
                                "buffer b0 hbm f32 [250000] activation persistent\n"
                                "buffer c0 hbm f32 [250000] activation persistent\n"
                                "buffer d0 hbm f32 [250000] activation persistent\n"
                                "buffer e0 hbm f32 [250000] activation persistent\n"
                                "buffer p0 pinned f32 [250000] activation persistent\n"
                                "buffer q0 pageable f32 [250000] activation persistent\n"
                                "op 0 h2d h2d bytes=1000000 reads p0 writes a0\n"
                                "op 1 h2d h2d bytes=1000000 reads p0 writes b0\n"
                                "op 2 d2h d2h bytes=1000000 reads c0 writes q0\n"
                                "op 3 shift comm group=g by=+1 bytes=1000000 reads d0 writes e0\n";

static struct op_row {
    double start_s, end_s;
} row_of(const struct trace *trace, uint32_t rank, uint32_t op)
{
    for (size_t i = 0; i < trace->ops.count; i++)
        if (trace->ops.rank[i] == rank && trace->ops.op[i] == op)
            return (struct op_row){trace->ops.start_s[i], trace->ops.end_s[i]};
    return (struct op_row){-1, -1};
}

/* The links of a rank work at the same time; copies in one direction run one after the other. */
static void emulated_links_have_rate_and_overlap(void)
{
    struct hand h;
    if (hand_load(&h, transfers)) {
        struct op_row op[4];
        h.options.records_trace = true;
        h.options.measured_steps = 3;
        h.options.copy_link = (struct exec_emulated_link_limits){20e6, 1e-3};
        h.options.message_link = (struct exec_emulated_link_limits){20e6, 0};
        hand_run_and_check_message("transfers", &h, STATUS_OK, "");
        for (uint32_t i = 0; i < 4; i++) {
            op[i] = row_of(&h.result.trace, 1, i);
            CHECK("50 ms at least", op[i].end_s - op[i].start_s >= 0.05);
        }
        CHECK("two copies behind each other", h.result.median_s >= 0.102);
        CHECK("the other direction at the same time", op[2].start_s < op[0].end_s);
        CHECK("messages at the same time", op[3].start_s < op[0].end_s);
    }
    hand_release(&h);
}

static void without_limits_nothing_sleeps(void)
{
    struct hand h;
    if (hand_load(&h, transfers)) {
        h.options.measured_steps = 5;
        hand_run_and_check_message("transfers", &h, STATUS_OK, "");
        double best_s = h.result.median_s;
        for (uint32_t i = 0; i < h.result.steps; i++)
            best_s = h.result.step_s[i] < best_s ? h.result.step_s[i] : best_s;
        CHECK("memory is faster than 20 MB/s", best_s < 0.05);
    }
    hand_release(&h);
}

/* The trace of a step has every op once per rank, the ops of a stream in order, and memory within the plan. */
static void traces_hold_the_whole_step(void)
{
    struct request request = step_request(&small_llama, 2, 24);
    struct executed_step step;
    request.activations = CHOICE_ACTIVATIONS_OFFLOAD;
    if (step_make(&step, "trace", &request)) {
        step.options.records_trace = true;
        step.options.warmup_steps = 1;
        step.options.measured_steps = 3;
        CHECK_INT("runs", step_run(&step, "trace"), STATUS_OK);
        const struct trace *trace = &step.result.trace;
        const struct trace_ops *ops = &trace->ops;
        CHECK_INT("rows", (int64_t)ops->count, 2 * (int64_t)step.ir.op.count);
        bool ordered = true, inside = true;
        double *end_s = heap_zalloc(2 * (size_t)step.ir.stream_count, sizeof *end_s);
        uint32_t *last = heap_zalloc(2 * (size_t)step.ir.stream_count, sizeof *last);
        for (size_t i = 0; i < ops->count; i++) {
            uint32_t op = ops->op[i];
            size_t stream = ops->rank[i] * step.ir.stream_count + step.ir.op.stream[op];
            inside = inside && ops->start_s[i] >= 0 && ops->end_s[i] >= ops->start_s[i] &&
                     ops->end_s[i] <= step.result.median_s;
            if (i > 0)
                ordered = ordered && ops->start_s[i - 1] <= ops->start_s[i];
            if (step.ir.op.kind[op] == WORK_HOST_SYNC)
                continue;
            ordered = ordered && ops->start_s[i] >= end_s[stream] && op >= last[stream];
            end_s[stream] = ops->end_s[i];
            last[stream] = op;
        }
        CHECK("within the step", inside);
        CHECK("in the order of streams", ordered);
        for (int m = 0; m < MEMORY_COUNT; m++) {
            CHECK_INT("the arena is the plan's", (int64_t)step.result.planned_bytes[m],
                      (int64_t)step.ir.planned_bytes[m]);
            CHECK("the peak fits", step.result.peak_bytes[m] <= step.result.planned_bytes[m]);
        }
        CHECK("something was live", step.result.peak_bytes[MEMORY_HBM] > 0);
        CHECK("no live memory below nothing", trace->memory.count > 0);
        for (size_t i = 0; i < trace->memory.count; i++)
            if (trace->memory.bytes[i] < 0) {
                CHECK("no live memory below nothing", false);
                break;
            }
        CHECK_TEXT("backend", trace_get_key(trace, "backend"), "cpu");
        CHECK_TEXT("steps", trace_get_key(trace, "measured_steps"), "3");
        free(end_s);
        free(last);
    }
    step_release(&step);
}

/* No op starts before all ops that it waits for have ended. */
static void no_op_starts_before_its_waits(void)
{
    struct request request = step_request(&small_gpt, 4, 16);
    struct executed_step step;
    request.profile = "ideal";
    request.activations = CHOICE_ACTIVATIONS_OFFLOAD;
    request.optimizer = CHOICE_OPTIMIZER_HOST;
    if (step_make(&step, "waits", &request)) {
        step.options.records_trace = true;
        CHECK_INT("runs", step_run(&step, "waits"), STATUS_OK);
        const struct trace_ops *ops = &step.result.trace.ops;
        double *start_s = heap_zalloc(step.ir.op.count, sizeof *start_s);
        double *end_s = heap_zalloc(step.ir.op.count, sizeof *end_s);
        uint32_t early = 0;
        for (uint32_t rank = 0; rank < 4; rank++) {
            for (size_t i = 0; i < ops->count; i++)
                if (ops->rank[i] == rank) {
                    start_s[ops->op[i]] = ops->start_s[i];
                    end_s[ops->op[i]] = ops->end_s[i];
                }
            for (uint32_t op = 0; op < step.ir.op.count; op++)
                for (uint32_t k = 0; k < step.ir.op.wait_count[op]; k++)
                    early += start_s[op] < end_s[step.ir.wait[step.ir.op.wait_begin[op] + k].i];
        }
        CHECK_INT("ops that started early", early, 0);
        free(start_s);
        free(end_s);
    }
    step_release(&step);
}

static const struct check_case cases[] = {
    {"links are as slow as asked, and overlap", emulated_links_have_rate_and_overlap},
    {"without limits nothing sleeps", without_limits_nothing_sleeps},
    {"traces hold the whole step", traces_hold_the_whole_step},
    {"waits are kept", no_op_starts_before_its_waits},
};
CHECK_MAIN("measure", cases)
