/* tests/exec/test_cuda_emulated_times.c: the times of ops, from CUPTI's records of the emulated device, when
 * all records, some or none are delivered; and the messages of a run whose runtime calls fail. */
#include "exec/cuda/versions.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/hand.h"

#include <math.h>
#include <stdlib.h>

/* Each rank copies, fills twice, exchanges a message, gathers from itself and runs an optimizer on the CPU. */
static const char text[] = "longhaul schedule 1\n"
                           "mesh g=2 one=1\ngroup g axes=g\ngroup one axes=one\n"
                           "stream compute compute\nstream comm comm\nstream h2d h2d\n"
                           "stream host host\n"
                           "buffer a0 hbm f32 [4] activation persistent\n"
                           "buffer b0 hbm f32 [4] activation persistent\n"
                           "buffer b1 hbm f32 [4] activation persistent\n"
                           "buffer c0 pinned f32 [4] activation persistent\n"
                           "buffer w pinned f32 [4] optimizer persistent\n"
                           "buffer d pinned f32 [4] gradient persistent\n"
                           "buffer m pinned f32 [4] optimizer persistent\n"
                           "buffer v pinned f32 [4] optimizer persistent\n"
                           "buffer loss hbm f32 [1] activation bind=loss\n"
                           "op 0 h2d h2d bytes=16 reads c0 writes a0\n"
                           "op 1 fill compute count=4 writes b0\n"
                           "op 2 fill compute count=4 writes b1\n"
                           "op 3 send comm group=g by=+1 bytes=16 guard g<1 waits 0 reads a0\n"
                           "op 4 recv comm group=g by=-1 bytes=16 guard g>=1 waits 1 writes b0\n"
                           "op 5 all_gather comm group=one bytes=16 reads b0 writes b0\n"
                           "op 6 adamw host count=4 reads w d m v writes w m v\n";

/* LAUNCHED: the ops with work on the device, for which CUPTI has a record: a copy and two fills on each of two ranks,
 * and the receive on rank 1. WORKED: the rows of the trace, one for each op of a rank that is not guarded out there. */
enum { LAUNCHED = 3 + 3 + 1, WORKED = 6 + 6 };

static const struct {
    const char *label, *ops; /* the trace header's cupti_ops; NULL: the run fails */
    size_t rows;
    struct emulated_cupti_faults cupti_faults;
    const char *message;
} rows[] = {
    /* label, ops, rows, wrong, message */
    {"all come", "7 of 7", WORKED, {0}, ""},
    {"a launch without a record", "6 of 7", WORKED - 1, {.uncounted_lost_records = 1}, ""},
    {"a record without times", "6 of 7", WORKED - 1, {.untimed_records = 1}, ""},
    {"no record of any op",
     NULL,
     0,
     {.uncounted_lost_records = LAUNCHED},
     "hand.ir: error: the step cannot be timed: CUPTI recorded none of its 7 ops; events can time "
     "it (without --cupti)\n"},
    {"records that found no room",
     NULL,
     0,
     {.dropped_records = 2},
     "hand.ir: error: the step cannot be timed: CUPTI dropped 2 records for want of memory; events "
     "can time it (without --cupti)\n"},
    {"a flush that fails",
     NULL,
     0,
     {.does_flush_fail = 1},
     "hand.ir: error: the step cannot be timed: cuptiActivityFlushAll: the words of the emulated "
     "library; events can time it (without --cupti)\n"},
    {"a buffer that is torn",
     NULL,
     0,
     {.tears_last_record = 1},
     "hand.ir: error: the step cannot be timed: cuptiActivityGetNextRecord: the words of the "
     "emulated library; events can time it (without --cupti)\n"},
};

/* Checks that every op but op 5, which launches nothing, took time, and that the send and its receive start together,
 * if no row is missing. */
static void check_times(const char *label, const struct trace *trace)
{
    double message_s[2] = {-1, -2}; /* start of the send, of the receive */
    for (size_t i = 0; i < trace->ops.count; i++) {
        double took_s = trace->ops.end_s[i] - trace->ops.start_s[i];
        bool nothing = trace->ops.op[i] == 5;
        CHECK(label, nothing ? took_s == 0 : took_s > 0);
        CHECK(label, nothing || trace->ops.start_s[i] > 0);
        if (trace->ops.op[i] == 3 || trace->ops.op[i] == 4)
            message_s[trace->ops.op[i] - 3] = trace->ops.start_s[i];
    }
    if (trace->ops.count == WORKED)
        CHECK(label, message_s[0] == message_s[1]);
}

static void ops_with_lost_records_have_no_time(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hand h;
        if (hand_load(&h, text)) {
            h.options.records_trace = h.options.times_by_cupti = true;
            emulated_cupti_faults = rows[i].cupti_faults;
            hand_run_and_check_message(rows[i].label, &h,
                                       rows[i].ops != NULL ? STATUS_OK : STATUS_SYSTEM,
                                       rows[i].message);
            const char *ops = trace_get_key(&h.result.trace, "cupti_ops");
            CHECK_TEXT(rows[i].label, ops != NULL ? ops : "", rows[i].ops ? rows[i].ops : "");
            CHECK_INT(rows[i].label, (int64_t)h.result.trace.ops.count, (int64_t)rows[i].rows);
            check_times(rows[i].label, &h.result.trace);
            emulated_cupti_faults = (struct emulated_cupti_faults){0};
        }
        hand_release(&h);
    }
}

/* Checks that the trace header has the versions of the libraries that the run opened. */
static void check_trace_has_versions(const struct trace *trace)
{
    const struct {
        const char *key;
        enum nvidia_library library;
        int version;
    } opened[] = {
        {"cublaslt", NVIDIA_CUBLASLT, emulator_versions.cublaslt},
#ifdef HAVE_CUDNN
        {"cudnn", NVIDIA_CUDNN, emulator_versions.cudnn},
#endif
        {"cupti", NVIDIA_CUPTI, emulator_versions.cupti},
    };
    for (size_t i = 0; i < ARRAY_LEN(opened); i++) {
        const char *said = trace_get_key(trace, opened[i].key);
        char wanted[32];
        version_to_text(opened[i].library, opened[i].version, wanted, sizeof wanted);
        CHECK_TEXT(opened[i].key, said != NULL ? said : "", wanted);
    }
    CHECK("no NCCL is opened", trace_get_key(trace, "nccl") == NULL);
}

/* A run without timing leaves records in CUPTI's buffers, which the next run must ignore. The header states the step
 * with most missing records. */
static void records_of_another_run_are_forgotten(void)
{
    struct hand h;
    if (hand_load(&h, text)) {
        h.options.times_by_cupti = true;
        CHECK_INT("untimed", hand_run(&h), STATUS_OK);
        exec_result_release(&h.result);
        h.options.records_trace = true;
        h.options.measured_steps = 3;
        emulated_cupti_faults.uncounted_lost_records =
            LAUNCHED + 1; /* the untimed run's, and one of the first step */
        CHECK_INT("timed", hand_run(&h), STATUS_OK);
        CHECK_TEXT("no message", h.diag.text ? h.diag.text : "", "");
        const char *ops = trace_get_key(&h.result.trace, "cupti_ops");
        CHECK_TEXT("the worst step", ops != NULL ? ops : "", "6 of 7");
        check_trace_has_versions(&h.result.trace);
        for (size_t i = 0; i < h.result.trace.ops.count; i++)
            CHECK("within the step",
                  h.result.trace.ops.start_s[i] >= 0 &&
                      h.result.trace.ops.end_s[i] <= h.result.step_s[h.result.median_step]);
    }
    hand_release(&h);
}

/* Calls of the CUDA runtime that fail, and words of the message, which name the call. */
static const struct {
    const char *call, *words;
    enum status status;
    int calls_before_failure; /* number of these calls that succeed before the one that fails */
} failing_runtime_calls[] = {
    {"cudaDeviceSynchronize", "cudaDeviceSynchronize: error: ", STATUS_SYSTEM, 0},
    {"cudaDeviceSynchronize",
     "op 1 (fill, stream compute) cudaDeviceSynchronize (after its first launch): ", STATUS_NO, 1},
    {"cudaDeviceSynchronize", "cudaDeviceSynchronize: error: ", STATUS_SYSTEM, 5},
    {"cudaDeviceSynchronize", "cudaDeviceSynchronize: error: ", STATUS_SYSTEM, 6},
    {"cudaDeviceSynchronize", "rank 0: cudaDeviceSynchronize: ", STATUS_NO, 7},
    {"cudaHostAlloc", "cudaHostAlloc: error: ", STATUS_SYSTEM, 0},
    {"cudaHostAlloc", "cudaHostAlloc (of the kernel beside the step): error: ", STATUS_SYSTEM, 2},
    {"cudaStreamCreateWithFlags", "cudaStreamCreateWithFlags: error: ", STATUS_SYSTEM, 0},
    {"cudaStreamCreateWithFlags",
     "cudaStreamCreateWithFlags (of the kernel beside the step): error: ", STATUS_SYSTEM, 8},
    {"cudaEventCreateWithFlags", "cudaEventCreateWithFlags: error: ", STATUS_SYSTEM, 0},
    {"cudaEventSynchronize", "rank 0: cudaEventSynchronize: ", STATUS_NO, 0},
    {"cudaStreamSynchronize",
     "rank 0: cudaStreamSynchronize (of the kernel beside the step): ", STATUS_NO, 0},
    {"cudaEventElapsedTime", "cudaEventElapsedTime: ", STATUS_NO, 0},
    {"cudaStreamWaitEvent", "cudaStreamWaitEvent: ", STATUS_NO, 0},
    {"cudaEventQuery", "cudaEventQuery (this op, or one before it): ", STATUS_NO, 0},
    {"cudaLaunchHostFunc", "op 6 (adamw, stream host) cudaLaunchHostFunc: ", STATUS_NO, 0},
};

/* Counts the bound buffers that are read back. A separate call copies each of them, and the test makes one of these
 * calls fail. */
static enum status check_collected_buffer(void *user, const struct exec_buffer *buffer,
                                          struct diag *diag)
{
    (void)buffer;
    (void)diag;
    ++*(int *)user;
    return STATUS_OK;
}

static void failed_reads_of_results_fail_the_run(void)
{
    enum { RANKS = 2 };
    char bound[2048];
    snprintf(bound, sizeof bound, "%s%s", text, "op 7 fill compute count=1 writes loss\n");
    for (int after = 0; after < RANKS + 1; after++) {
        struct hand h;
        int looks = 0;
        if (hand_load(&h, bound)) {
            h.io = (struct exec_io){
                .user = &looks, .read = check_collected_buffer, .read_after_last_step = UINT32_MAX};
            emulator_fails = "cudaMemcpy";
            emulator_fails_after = after;
            enum status wanted = after < RANKS ? STATUS_NO : STATUS_OK;
            char message[64];
            snprintf(message, sizeof message, "hand.ir: error: rank %d: cudaMemcpy: ", after);
            CHECK_INT("status", hand_run(&h), wanted);
            CHECK("which rank, and what",
                  wanted == STATUS_OK
                      ? h.diag.text == NULL
                      : strncmp(h.diag.text ? h.diag.text : "", message, strlen(message)) == 0);
            CHECK("nothing is presented as a result", wanted == STATUS_OK || h.result.steps == 0);
            emulator_fails = NULL;
        }
        hand_release(&h);
    }
}

static void refused_calls_are_named(void)
{
    for (size_t i = 0; i < ARRAY_LEN(failing_runtime_calls); i++) {
        struct hand h;
        if (hand_load(&h, text)) {
            h.options.records_trace = true;
            h.options.hogged_sm_count = 1;
            emulator_fails = failing_runtime_calls[i].call;
            emulator_fails_after = failing_runtime_calls[i].calls_before_failure;
            CHECK_INT(failing_runtime_calls[i].call, hand_run(&h), failing_runtime_calls[i].status);
            if (!CHECK(failing_runtime_calls[i].call,
                       h.diag.text != NULL &&
                           strstr(h.diag.text, failing_runtime_calls[i].words) != NULL))
                printf("%s", h.diag.text != NULL ? h.diag.text : "no message\n");
            emulator_fails = NULL;
        }
        hand_release(&h);
    }
}

/* The clock falls from 1980 to 1500 MHz. With waits_for_steady_clock, steps are measured once it has settled. The trace
 * says what limits the clock. */
static void steps_are_measured_at_a_steady_clock(void)
{
    for (int settle = 0; settle < 2; settle++) {
        struct hand h;
        if (hand_load(&h, text)) {
            emulator_use_nvml();
            emulator_clock_asked = 0;
            h.options.records_trace = h.options.runs_back_to_back = true;
            h.options.waits_for_steady_clock = settle;
            h.options.warmup_steps = 1;
            h.options.measured_steps = 2;
            hand_run_and_check_message("settles", &h, STATUS_OK, "");
            CHECK("a mean of the measured steps", h.result.clock_mhz > 1400);
            if (settle) {
                CHECK("more steps of warm-up", h.result.warmup_steps > 3);
                CHECK("a steady clock", h.result.clock_mhz < 1560);
            } else {
                CHECK_INT("as many steps as were asked for", h.result.warmup_steps, 1);
            }
            const char *limit = trace_get_key(&h.result.trace, "clock_limited_by");
            CHECK_TEXT("why", limit != NULL ? limit : "", "sw_power_cap");
            const char *watts = trace_get_key(&h.result.trace, "power_limit_w");
            CHECK_TEXT("limit", watts != NULL ? watts : "", "700");
            CHECK("samples", trace_get_key(&h.result.trace, "samples_s_mhz_w_c") != NULL);
        }
        hand_release(&h);
    }
}

static const struct check_case cases[] = {
    {"steps are measured at a steady clock", steps_are_measured_at_a_steady_clock},
    {"lost records are no times", ops_with_lost_records_have_no_time},
    {"records of another run are forgotten", records_of_another_run_are_forgotten},
    {"what cannot be read back is no result", failed_reads_of_results_fail_the_run},
    {"refused calls are named", refused_calls_are_named},
};

int main(int argc, char **argv)
{
    emulator_use();
    hand_backend = "cuda";
    return check_run("cuda emulated times", cases, ARRAY_LEN(cases), argc, argv);
}
