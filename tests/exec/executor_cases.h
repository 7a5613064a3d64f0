/* tests/exec/executor_cases.h: tests of how runs end (result, failure, stall, time limit), on the backend that
 * hand_backend names. Included by test files only. */
#ifndef TESTS_EXEC_EXECUTOR_CASES_H
#define TESTS_EXEC_EXECUTOR_CASES_H

#include "tests/exec/hand.h"

#define HEAD                                                                                       \
    "longhaul schedule 1\n"                                                                        \
    "mesh g=2\ngroup g axes=g\nstream compute compute\nstream comm comm\nstream h2d h2d\n"
#define BUFFER_LINES                                                                               \
    "buffer a0 hbm f32 [4] activation persistent\n"                                                \
    "buffer b0 hbm f32 [4] activation persistent\n"                                                \
    "buffer c0 pinned f32 [4] activation persistent\n"

static const struct {
    const char *label, *ops, *message;
} stalls[] = {
    {"a collective that rank 1 does not come to",
     "op 0 fill compute count=4 writes a0\n"
     "op 1 all_reduce comm group=g bytes=16 guard g<1 waits 0 reads a0 writes b0 layer=3\n",
     "hand.ir: error: the step has stalled: rank 0: op 1 (all_reduce, stream comm, layer 3) waits "
     "for rank 1 in group g, where op 1 is guarded out\n"},
    {"a circle of waits",
     "op 0 fill compute count=4 waits 1 writes a0\n"
     "op 1 all_reduce comm group=g bytes=16 waits 0 reads b0 writes b0\n",
     "hand.ir: error: the step has stalled: rank 0: op 0 (fill, stream compute) waits for op 1; "
     "rank 0: op 1 (all_reduce, stream comm) waits for op 0; rank 0: op 0 (fill, stream compute) "
     "again: they wait in a circle\n"},
    {"a circle after an op that nothing waits for",
     "op 0 fill compute count=4 writes a0\n"
     "op 1 fill compute count=4 writes b0\n"
     "op 2 fill compute count=4 waits 3 writes a0\n"
     "op 3 all_reduce comm group=g bytes=16 waits 2 reads b0 writes b0\n",
     "hand.ir: error: the step has stalled: rank 0: op 2 (fill, stream compute) waits for op 3; "
     "rank 0: op 3 (all_reduce, stream comm) waits for op 2; rank 0: op 2 (fill, stream compute) "
     "again: they wait in a circle\n"},
    {"a circle behind a host that waits",
     "op 0 fill compute count=4 waits 2 writes a0\n"
     "op 1 host_sync compute\n"
     "op 2 fill compute count=4 writes b0\n",
     "hand.ir: error: the step has stalled: rank 0: op 0 (fill, stream compute) waits for op 2; "
     "rank 0: op 2 (fill, stream compute) is not issued: the host is at op 1 (host_sync, stream "
     "compute), which holds it until op 0 has ended; rank 0: op 0 (fill, stream compute) again: "
     "they wait in a circle\n"},
    {"a blocking copy that waits for what comes later",
     "op 0 h2d h2d bytes=16 blocking=1 waits 1 reads c0 writes a0\n"
     "op 1 fill compute count=4 writes b0\n",
     "hand.ir: error: the step has stalled: rank 0: op 0 (h2d, stream h2d) waits for op 1; rank "
     "0: op 1 (fill, stream compute) is not issued: the host is at op 0 (h2d, stream h2d), which "
     "holds it until op 0 has ended; rank 0: op 0 (h2d, stream h2d) again: they wait in a "
     "circle\n"},
    {"a sync that waits for what comes later",
     "op 0 host_sync compute waits 1\n"
     "op 1 fill compute count=4 writes b0\n",
     "hand.ir: error: the step has stalled: rank 0: op 0 (host_sync, stream compute) holds the "
     "host until op 1 has ended; rank 0: op 1 (fill, stream compute) is not issued: the host is at "
     "op 0 (host_sync, stream compute), which holds it until op 1 has ended; rank 0: op 1 (fill, "
     "stream compute) again: they wait in a circle\n"},
    {"a send that nobody receives", "op 0 send comm group=g by=+1 bytes=16 guard g<1 reads a0\n",
     "hand.ir: error: the step has stalled: rank 0: op 0 (send, stream comm) waits for rank 1, "
     "which never receives it on channel 0\n"},
    {"two ranks that send to each other first",
     "op 0 send comm group=g by=+1 bytes=16 guard g<1 reads a0\n"
     "op 1 send comm group=g by=-1 bytes=16 guard g>=1 reads a0\n"
     "op 2 recv comm group=g by=+1 bytes=16 guard g<1 writes b0\n"
     "op 3 recv comm group=g by=-1 bytes=16 guard g>=1 writes b0\n",
     "hand.ir: error: the step has stalled: rank 0: op 0 (send, stream comm) waits for rank 1 to "
     "receive; rank 1: op 3 (recv, stream comm) comes behind op 1 on its stream; rank 1: op 1 "
     "(send, stream comm) waits for rank 0 to receive; rank 0: op 2 (recv, stream comm) comes "
     "behind op 0 on its stream; rank 0: op 0 (send, stream comm) again: they wait in a circle\n"},
};

static void a_schedule_that_stands_still_says_who_waits_for_whom(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stalls); i++) {
        struct hand h;
        char text[2048];
        snprintf(text, sizeof text, "%s%s%s", HEAD, BUFFER_LINES, stalls[i].ops);
        if (hand_load(&h, text)) {
            h.options.step_limit_s = 20; /* a stall that is taken for work would never end */
            hand_run_and_check_message(stalls[i].label, &h, STATUS_NO, stalls[i].message);
        }
        hand_release(&h);
    }
}

static const char common[] =
    HEAD BUFFER_LINES "op 0 fill compute count=4 writes a0\n"
                      "op 1 all_reduce comm group=g bytes=16 waits 0 reads a0 writes b0\n"
                      "op 2 barrier compute group=g\n"
                      "op 3 add compute count=4 waits 1 reads a0 b0 writes a0\n";

static const struct {
    const char *label;
    struct exec_fault fault;
    const char *message;
} faults[] = {
    {"a rank whose host stops before a collective",
     {EXEC_FAULT_STALL, 1, 1},
     "hand.ir: error: the step has stalled: rank 0: op 1 (all_reduce, stream comm) waits for rank "
     "1 in group g; rank 1: op 1 (all_reduce, stream comm) is where the host has stopped\n"},
    {"a rank whose host stops before a barrier",
     {EXEC_FAULT_STALL, 1, 2},
     "hand.ir: error: the step has stalled: rank 0: op 2 (barrier, stream compute) waits for rank "
     "1 in group g; rank 1: op 2 (barrier, stream compute) is where the host has stopped\n"},
    {"a rank that fails",
     {EXEC_FAULT_FAIL, 0, 3},
     "hand.ir: error: rank 0: op 3 (add, stream compute) fails on purpose, as a test requested\n"},
};

static void a_rank_that_fails_or_stalls_ends_the_run(void)
{
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct hand h;
        if (hand_load(&h, common)) {
            h.options.fault = faults[i].fault;
            h.options.records_trace = true;
            hand_run_and_check_message(faults[i].label, &h, STATUS_NO, faults[i].message);
        }
        hand_release(&h);
    }
}

/* Each row is op 1 of a schedule. It holds the host of rank 0 until op 0 has ended, which is a collective that never
 * ends. Op 2 follows. */
static const struct {
    const char *label, *op;
} holders[] = {
    {"host_sync", "op 1 host_sync compute waits 0\n"},
    {"barrier", "op 1 barrier compute group=own waits 0\n"},
    {"blocking copy", "op 1 h2d h2d bytes=16 blocking=1 waits 0 reads c0 writes b0\n"},
    {"blocking copy, guarded out",
     "op 1 h2d h2d bytes=16 blocking=1 guard g>=1 waits 0 reads c0 writes b0\n"},
};

/* The injected fault makes the run fail when the host issues op 2. Op 1 must keep the host from issuing it, since op 0
 * never ends; so the message must be that of a stall. */
static void a_host_is_held_by_waits_on_other_streams(void)
{
    for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
        struct hand h;
        char text[2048];
        snprintf(text, sizeof text, "%s%s%s%s%s", HEAD "group own\n", BUFFER_LINES,
                 "op 0 all_reduce comm group=g bytes=16 guard g<1 reads a0 writes a0\n",
                 holders[i].op, "op 2 fill compute count=4 writes b0\n");
        if (hand_load(&h, text)) {
            h.options.fault = (struct exec_fault){EXEC_FAULT_FAIL, 0, 2};
            hand_run_and_check_message(
                holders[i].label, &h, STATUS_NO,
                "hand.ir: error: the step has stalled: rank 0: op 0 (all_reduce, stream "
                "comm) waits for rank 1 in group g, where op 0 is guarded out\n");
        }
        hand_release(&h);
    }
}

static void a_step_over_its_limit_ends(void)
{
    struct hand h;
    if (hand_load(&h, common)) {
        h.options.stall_limit_s = 60;
        h.options.step_limit_s = 0.3;
        h.options.fault = (struct exec_fault){EXEC_FAULT_STALL, 1, 1};
        hand_run_and_check_message(
            "limit", &h, STATUS_NO,
            "hand.ir: error: the step takes longer than the limit of 0.3 s: rank 0: op 1 "
            "(all_reduce, stream comm) waits for rank 1 in group g; rank 1: op 1 "
            "(all_reduce, stream comm) is where the host has stopped\n");
    }
    hand_release(&h);
}

/* A copy that takes longer than stall_limit_s is work in progress, not a stall. */
static void slow_work_is_no_stall(void)
{
    struct hand h;
    if (hand_load(&h, HEAD "buffer a0 hbm f32 [1000] activation persistent\n"
                           "buffer c0 pinned f32 [1000] activation persistent\n"
                           "op 0 h2d h2d bytes=4000 reads c0 writes a0\n")) {
        h.options.stall_limit_s = 0.1;
        h.options.copy_link.latency_s = 0.4;
        hand_run_and_check_message("slow", &h, STATUS_OK, "");
        CHECK("as slow as asked for", h.result.median_s >= 0.4 && h.result.median_s < 2);
    }
    hand_release(&h);
}

static void warmup_and_measured_steps_run(void)
{
    struct hand h;
    if (hand_load(&h, common)) {
        h.options.warmup_steps = 2;
        h.options.measured_steps = 5;
        h.options.records_trace = true;
        hand_run_and_check_message("steps", &h, STATUS_OK, "");
        CHECK_INT("measured", h.result.steps, 5);
        uint32_t faster = 0, slower = 0;
        for (uint32_t i = 0; i < h.result.steps; i++) {
            faster += h.result.step_s[i] < h.result.median_s;
            slower += h.result.step_s[i] > h.result.median_s;
        }
        CHECK("the median", faster <= 2 && slower <= 2);
        CHECK_INT("rows: 4 ops on 2 ranks", (int64_t)h.result.trace.ops.count, 8);
    }
    hand_release(&h);
}

static void an_unknown_backend_is_refused(void)
{
    struct hand h;
    if (hand_load(&h, common)) {
        h.options.backend = "gpu";
        hand_run_and_check_message(
            "backend", &h, STATUS_BAD_INPUT,
            "error: there is no backend 'gpu' in this build; 'cpu' would do\n");
    }
    hand_release(&h);
}

static const struct check_case executor_cases[] = {
    {"a schedule that stands still says who waits for whom",
     a_schedule_that_stands_still_says_who_waits_for_whom},
    {"a rank that fails or stalls ends the run", a_rank_that_fails_or_stalls_ends_the_run},
    {"a host is held by waits on other streams", a_host_is_held_by_waits_on_other_streams},
    {"a step over its limit ends", a_step_over_its_limit_ends},
    {"slow work is no stall", slow_work_is_no_stall},
    {"steps follow each other", warmup_and_measured_steps_run},
    {"an unknown backend is refused", an_unknown_backend_is_refused},
};

#endif
