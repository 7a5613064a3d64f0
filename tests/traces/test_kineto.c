/* tests/traces/test_kineto.c: recordings of PyTorch's profiler are read as rows of a trace, with
 * their phases, kernel classes and runtime calls; hostile text gets one message. A recording is a
 * list of events, which macros write: OP is an operator of the host, USER_ANNOTATION_EVENT an annotation around
 * others, CALL a call of CUDA's runtime, KERNEL a kernel, which has the correlation of its call.
 * Times are microseconds. */
#include "base/text.h"
#include "tests/check.h"
#include "traces/kernel_class.h"
#include "traces/kineto.h"

#include <string.h>

/* Reads a recording from a text (check_json_from_single_quotes()). */
static enum status parse(struct trace *trace, const char *recording, struct diag *diag)
{
    const char *text = check_json_from_single_quotes(recording);
    return kineto_parse(trace, "t.json", text, strlen(text), diag);
}

static const char *label_of_id(const struct trace *trace, uint16_t id)
{
    return trace->labels[id];
}

/* Writes one row as text, times in microseconds. */
static void put_row(struct text *out, const struct trace *trace, size_t i)
{
    const struct trace_ops *ops = &trace->ops;
    text_printf(out, "%u %s %s %s %s step=%d %.3f-%.3f flops=%.0f bytes=%.0f\n", ops->rank[i],
                label_of_id(trace, ops->stream[i]), label_of_id(trace, ops->kind[i]),
                label_of_id(trace, ops->region[i]), label_of_id(trace, ops->phase[i]), ops->step[i],
                1e6 * ops->start_s[i], 1e6 * ops->end_s[i], ops->flops[i], ops->bytes[i]);
}

/* Checks the rows of the trace that a recording becomes; wanted: lines of put_row(). */
static void check_rows(const char *what, const char *recording, const char *wanted)
{
    struct trace trace = {0};
    struct diag diag = {0};
    struct text rows = {0};
    text_puts(&rows, "");
    enum status status = parse(&trace, recording, &diag);
    CHECK_INT(what, status, STATUS_OK);
    CHECK_TEXT(what, diag.text == NULL ? "" : diag.text, "");
    for (size_t i = 0; i < trace.ops.count; i++)
        put_row(&rows, &trace, i);
    CHECK_TEXT(what, rows.data, wanted);
    text_release(&rows);
    diag_release(&diag);
    trace_release(&trace);
}

#define OP(name, ts, dur, args)                                                                    \
    "{'ph':'X','cat':'cpu_op','name':'" name "','pid':1,'tid':2,'ts':" #ts ",'dur':" #dur          \
    ",'args':{" args "}}"
#define USER_ANNOTATION_EVENT(name, ts, dur)                                                       \
    "{'ph':'X','cat':'user_annotation','name':'" name "','pid':1,'tid':2,'ts':" #ts ",'dur':" #dur \
    "}"

static void the_outermost_operator_that_works_is_a_row(void)
{
    check_rows("linear calls addmm, which copies the bias",
               "[" OP("aten::linear", 100, 50, "") "," OP("aten::t", 101, 5, "") "," OP(
                   "aten::addmm", 110, 30,
                   "'Input Dims':[[8],[4,16],[16,8],[],[]]") "," OP("aten::copy_", 112, 4, "") "]",
               "0 cpu.1 aten::addmm matmul forward step=0 10.000-40.000 flops=1024 bytes=0\n");
    check_rows("an unknown operator counts when it calls nothing",
               "[" OP("mine::outer", 0, 50, "") "," OP("mine::inner", 10, 5, "") "]",
               "0 cpu.1 mine::inner other forward step=0 10.000-15.000 flops=0 bytes=0\n");
    check_rows("a list of tensors has no shape of its own",
               "[" OP("aten::mm", 0, 5, "'Input Dims':[[[2,3],[3,4]],[3,4]]") "]",
               "0 cpu.1 aten::mm matmul forward step=0 0.000-5.000 flops=0 bytes=0\n");
}

static void phases_follow_from_enclosing_ops(void)
{
    check_rows("engine, recomputation, optimizer",
               "[" OP("autograd::engine::evaluate_function: MmBackward0", 0, 10,
                      "") "," OP("MmBackward0", 1, 8, "") "," OP("aten::mm", 2, 3, "") "," //
               OP("autograd::engine::evaluate_function: CheckpointFunctionBackward", 20, 10,
                  "") "," OP("aten::mm", 22, 3, "") "," //
               USER_ANNOTATION_EVENT("Optimizer.step#AdamW.step", 40, 10) "," OP("aten::mul_", 41,
                                                                                 3, "") "]",
               "0 cpu.1 aten::mm matmul backward step=0 2.000-5.000 flops=0 bytes=0\n"
               "0 cpu.1 aten::mm matmul recompute step=0 22.000-25.000 flops=0 bytes=0\n"
               "0 cpu.1 aten::mul_ optimizer optimizer step=0 41.000-44.000 flops=0 bytes=0\n");
}

static void rows_outside_the_profilers_steps_are_left_out(void)
{
    check_rows(
        "before, in two steps, between and after",
        "[" OP("aten::mm", 0, 5, "") "," USER_ANNOTATION_EVENT("ProfilerStep#7", 10, 10) "," //
        OP("aten::mm", 12, 5, "") "," OP("aten::mm", 21, 2, "") ","                          //
        USER_ANNOTATION_EVENT("ProfilerStep#8", 30, 10) "," OP("aten::mm", 30, 5, "") ","    //
        OP("aten::mm", 40, 5, "") "]",
        "0 cpu.1 aten::mm matmul forward step=7 12.000-17.000 flops=0 bytes=0\n"
        "0 cpu.1 aten::mm matmul forward step=8 30.000-35.000 flops=0 bytes=0\n");
}

#define EVENT_ON_GPU(category, name, stream, ts, dur, args)                                        \
    "{'ph':'X','cat':'" category "','name':'" name "','pid':0,'tid':" #stream ",'ts':" #ts         \
    ",'dur':" #dur ",'args':{'device':0,'stream':" #stream args "}}"

/* A hand-written recording in the form of Kineto's output_json.cpp. Since it has kernels, the trace
 * has rows of kernels and copies only; operators give them their class, phase and shape. */
static void kernels_take_class_phase_and_shape_from_their_operator(void)
{
    check_rows(
        "a product in two kernels, a collective, a copy, a kernel nobody launched",
        "{'schemaVersion':1,'distributedInfo':{'backend':'nccl','rank':3,'world_size':8},"
        "'traceEvents':[" USER_ANNOTATION_EVENT("ProfilerStep#1", 0, 100) ","                //
        OP("autograd::engine::evaluate_function: MmBackward0", 1, 50, "'External id':4") "," //
        OP("aten::mm", 2, 10, "'External id':5,'Input Dims':[[4,16],[16,8]]") ","            //
        EVENT_ON_GPU("kernel", "nvjet_tst_128x256", 7, 200, 20, ",'External id':5") ","      //
        EVENT_ON_GPU("kernel", "splitKreduce_kernel", 7, 220, 5, ",'External id':5") ","     //
        EVENT_ON_GPU("kernel", "ncclDevKernel_AllGather_RING_LL", 20, 90, 9,
                     ",'In msg nelems':1024,'dtype':'BFloat16'") "," //
        EVENT_ON_GPU("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 80, 2,
                     ",'bytes':4096") "," //
        EVENT_ON_GPU("kernel", "late_kernel", 7, 300, 2, "") "]}",
        "3 gpu0.7 Memcpy HtoD (Pinned -> Device) copy  step=1 80.000-82.000 flops=0 bytes=4096\n"
        "3 gpu0.7 nvjet_tst_128x256 matmul backward step=1 200.000-220.000 flops=1024 bytes=0\n"
        "3 gpu0.7 splitKreduce_kernel matmul backward step=1 220.000-225.000 flops=0 bytes=0\n"
        "3 gpu0.20 ncclDevKernel_AllGather_RING_LL communication  step=1 90.000-99.000 flops=0 "
        "bytes=2048\n");
}

#define CALL(name, tid, ts, dur, correlation)                                                      \
    "{'ph':'X','cat':'cuda_runtime','name':'" name "','pid':1,'tid':" #tid ",'ts':" #ts            \
    ",'dur':" #dur ",'args':{'External id':" #correlation                                          \
    ",'cbid':211,'correlation':" #correlation "}}"
#define KERNEL(name, stream, ts, dur, correlation)                                                 \
    "{'ph':'X','cat':'kernel','name':'" name "','pid':0,'tid':" #stream ",'ts':" #ts               \
    ",'dur':" #dur ",'args':{'External id':" #correlation ",'device':0,'stream':" #stream          \
    ",'correlation':" #correlation "}}"

/* Recordings of 2022 repeat the correlation as the kernel's "External id"; here 5 is also the id of
 * another operator. */
static void the_call_names_the_operator_of_a_kernel(void)
{
    check_rows("a product whose kernel has the id of another operator",
               "[" OP("aten::mm", 0, 20,
                      "'External id':4,'Input Dims':[[4,16],[16,8]]") "," //
               OP("aten::mul", 30, 20, "'External id':5") ","             //
               CALL("cudaLaunchKernel", 2, 10, 5, 5) ","                  //
               KERNEL("some_gemm", 7, 18, 9, 5) "]",
               "0 gpu0.7 some_gemm matmul forward step=0 18.000-27.000 flops=1024 bytes=0\n");
}

/* Writes what was found of the host's calls, one line for each step. For each kind of call that the
 * step has, it says "CALLS of OPERATORS: time in calls after time between them"; then follow held
 * calls, pauses and idle starts. A last line is of the whole recording. Times are in
 * microseconds. */
static void write_host_calls_by_step(struct text *out, const struct kineto_host_calls *issue)
{
    static const char *const names[CALL_COUNT] = {"launch", "collective", "copy", "wait"};
    for (size_t i = 0; i < issue->step_count; i++) {
        const struct kineto_host_calls_of_step *step = &issue->steps[i];
        for (int kind = 0; kind < CALL_COUNT; kind++)
            if (step->issue_calls_by_kind[kind].call_count > 0)
                text_printf(out, "%s %zu of %zu: %.1f after %.1f; ", names[kind],
                            step->issue_calls_by_kind[kind].call_count,
                            step->issue_calls_by_kind[kind].operator_count,
                            1e6 * step->issue_calls_by_kind[kind].total_call_s,
                            1e6 * step->issue_calls_by_kind[kind].total_gap_before_calls_s);
        text_printf(out, "held %zu, pauses %zu of %.1f, idle starts %zu in %.1f\n",
                    step->gpu_waiting_call_count, step->pause_count, 1e6 * step->sum_of_pauses_s,
                    step->empty_stream_launch_count, 1e6 * step->total_empty_stream_launch_delay_s);
    }
    text_printf(out, "queued %zu in %.1f, graphs %zu\n", issue->queued_gap_count,
                issue->queued_gap_count > 0 ? 1e6 * issue->gaps_of_queued_gpu_work_s[0] : 0,
                issue->graph_launch_count);
}

/* Checks the calls of a recording; wanted: lines of write_host_calls_by_step(). */
static void check_host_calls_of_recording(const char *what, const char *recording,
                                          const char *wanted)
{
    struct trace trace = {0};
    struct kineto_host_calls issue = {0};
    struct text calls = {0};
    const char *text = check_json_from_single_quotes(recording);
    enum status status =
        kineto_parse_with_host_calls(&trace, &issue, "t.json", text, strlen(text), NULL);
    CHECK_INT(what, status, STATUS_OK);
    write_host_calls_by_step(&calls, &issue);
    CHECK_TEXT(what, calls.data, wanted);
    text_release(&calls);
    kineto_host_calls_release(&issue);
    trace_release(&trace);
}

static void calls_of_the_runtime_are_summed(void)
{
    check_host_calls_of_recording(
        "the first call of a step only begins the second's time; threads are one sequence",
        "[" CALL("cudaLaunchKernel", 2, 10, 5, 1) "," KERNEL("a", 7, 18, 2, 1) "," //
        CALL("cudaLaunchKernel", 3, 23, 4, 2) "," KERNEL("b", 7, 30, 50, 2) ","    //
        CALL("cudaLaunchKernel", 2, 40, 6, 3) "," KERNEL("c", 7, 82, 9, 3) "]",
        "launch 2 of 2: 10.0 after 21.0; held 0, pauses 0 of 0.0, idle starts 1 in 7.0\n"
        "queued 1 in 2.0, graphs 0\n");
    check_host_calls_of_recording(
        "an operator that launches two kernels; a collective; copies; a wait",
        "[" CALL("cudaLaunchKernel", 2, 0, 5, 1) "," KERNEL("a", 7, 8, 2, 1) ","  //
        OP("aten::mm", 6, 19, "") ","                                             //
        CALL("cudaLaunchKernel", 2, 10, 5, 2) "," KERNEL("b", 7, 18, 2, 2) ","    //
        CALL("cuLaunchKernel", 2, 16, 5, 3) "," KERNEL("c", 7, 24, 2, 3) ","      //
        CALL("cudaLaunchKernelExC", 2, 51, 10, 4) ","                             //
        KERNEL("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 9, 62, 8, 4) ","       //
        CALL("cudaEventRecord", 2, 62, 1, 5) ","                                  //
        CALL("cudaMemcpyAsync", 2, 70, 3, 6) ","                                  //
        KERNEL("Memcpy DtoH (Device -> Pinned)", 7, 80, 10, 6) ","                //
        CALL("cudaMemcpyAsync", 2, 75, 30, 7) ","                                 //
        KERNEL("Memcpy DtoH (Device -> Pageable)", 7, 91, 9, 7) ","               //
        CALL("cudaStreamSynchronize", 2, 106, 1, 8) ","                           //
        CALL("cudaLaunchKernel", 2, 110, 5, 9) "," KERNEL("d", 7, 120, 40, 9) "," //
        CALL("cudaDeviceSynchronize", 2, 117, 60, 10) "]",
        "launch 3 of 2: 15.0 after 9.0; collective 1 of 1: 10.0 after 30.0; copy 1 of 1: "
        "3.0 after 9.0; wait 1 of 0: 17.0 after 0.0; held 1, pauses 0 of 0.0, idle starts "
        "2 in 18.0\n"
        "queued 0 in 0.0, graphs 0\n");
    check_host_calls_of_recording(
        "a pause, a graph, steps, and what lies between them",
        "[" USER_ANNOTATION_EVENT("ProfilerStep#1", 0, 3000) "," USER_ANNOTATION_EVENT(
            "ProfilerStep#2", 3100, 900) ","                                       //
        CALL("cudaLaunchKernel", 2, 0, 5, 1) "," KERNEL("a", 7, 8, 2, 1) ","       //
        CALL("cudaLaunchKernel", 2, 2005, 5, 2) "," KERNEL("b", 7, 2018, 2, 2) "," //
        CALL("cudaLaunchKernel", 2, 3050, 5, 3) "," KERNEL("c", 7, 3060, 2, 3) "," //
        CALL("cudaGraphLaunch", 2, 3100, 5, 4) "," KERNEL("d", 7, 3110, 2, 4) ","  //
        KERNEL("e", 7, 3113, 2, 4) ","                                             //
        CALL("cudaLaunchKernel", 2, 3112, 5, 5) "," KERNEL("f", 7, 3120, 2, 5) "]",
        "held 0, pauses 1 of 2000.0, idle starts 0 in 0.0\n"
        "launch 1 of 1: 5.0 after 7.0; held 0, pauses 0 of 0.0, idle starts 0 in 0.0\n"
        "queued 0 in 0.0, graphs 1\n");
    check_host_calls_of_recording(
        "a call of 2 ms is a pause of its own time; with a gap of 3 ms, of both",
        "[" CALL("cudaLaunchKernel", 2, 0, 5, 1) "," KERNEL("a", 7, 8, 2, 1) ","      //
        CALL("cudaLaunchKernel", 2, 12, 2000, 2) "," KERNEL("b", 7, 2018, 2, 2) ","   //
        CALL("cudaLaunchKernel", 2, 5012, 2000, 3) "," KERNEL("c", 7, 7018, 2, 3) "," //
        CALL("cudaLaunchKernel", 2, 7022, 5, 4) "," KERNEL("d", 7, 7030, 2, 4) "]",
        "launch 1 of 1: 5.0 after 10.0; held 0, pauses 2 of 7000.0, idle starts 1 in 8.0\n"
        "queued 0 in 0.0, graphs 0\n");
    check_host_calls_of_recording(
        "launches before the first step are in no step",
        "[" USER_ANNOTATION_EVENT("ProfilerStep#1", 100, 900) ","                //
        CALL("cudaLaunchKernel", 2, 0, 5, 1) "," KERNEL("a", 7, 8, 2, 1) ","     //
        CALL("cudaLaunchKernel", 2, 12, 5, 2) "," KERNEL("b", 7, 20, 2, 2) ","   //
        CALL("cudaLaunchKernel", 2, 100, 5, 3) "," KERNEL("c", 7, 110, 2, 3) "," //
        CALL("cudaLaunchKernel", 2, 112, 5, 4) "," KERNEL("d", 7, 120, 2, 4) "]",
        "launch 1 of 1: 5.0 after 7.0; held 0, pauses 0 of 0.0, idle starts 1 in 8.0\n"
        "queued 0 in 0.0, graphs 0\n");
    check_host_calls_of_recording("a recording on processors", "[" OP("aten::mm", 0, 5, "") "]",
                                  "queued 0 in 0.0, graphs 0\n");
}

/* Launches 1,100 kernels, 2 us apart. The second starts after 5 ms only, so that the queue fills
 * and the last launches wait. */
static void launches_into_a_full_queue_are_held(void)
{
    struct text recording = {0};
    text_puts(&recording, "[");
    for (int i = 1; i <= 1100; i++) {
        text_printf(&recording,
                    "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':1,'tid':2,'ts':"
                    "%d,'dur':1,'args':{'correlation':%d}},",
                    2 * i, i);
        text_printf(&recording,
                    "{'ph':'X','cat':'kernel','name':'a','pid':0,'tid':7,'ts':%d,'dur':1,'args':{'"
                    "device':0,'stream':7,'correlation':%d}}%s",
                    i == 1 ? 3 : 5000 + 2 * i, i, i < 1100 ? "," : "]");
    }
    check_host_calls_of_recording(
        "1,000 wait", recording.data,
        "launch 1000 of 1000: 1000.0 after 1000.0; held 99, pauses 0 of 0.0, idle starts "
        "1 in 5000.0\n"
        "queued 999 in 1.0, graphs 0\n");
    text_release(&recording);
}

static void kernel_classes_follow_from_names(void)
{
    static const struct {
        enum kernel_class (*of)(const char *name);
        const char *name;
        enum kernel_class class;
    } rows[] = {
        {kernel_class_of_kernel, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", CLASS_MATMUL},
        {kernel_class_of_kernel, "void pytorch_flash::flash_bwd_dq_dk_dv_loop_kernel<>",
         CLASS_ATTENTION},
        {kernel_class_of_kernel, "cudnn_generated_fort_native_sdpa_sm90_flash_fprop",
         CLASS_ATTENTION},
        {kernel_class_of_kernel, "void at::native::vectorized_layer_norm_kernel<>", CLASS_NORM},
        {kernel_class_of_kernel, "void at::native::vectorized_elementwise_kernel<4>",
         CLASS_ELEMENTWISE},
        {kernel_class_of_kernel, "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
         CLASS_OPTIMIZER},
        {kernel_class_of_kernel, "ncclDevKernel_SendRecv", CLASS_COMMUNICATION},
        {kernel_class_of_kernel, "Memcpy DtoH (Device -> Pinned)", CLASS_COPY},
        {kernel_class_of_kernel, "Memcpy DtoD (Device -> Device)", CLASS_ELEMENTWISE},
        {kernel_class_of_kernel, "something_else", CLASS_OTHER},
        {kernel_class_of_operator, "aten::_scaled_dot_product_flash_attention_backward",
         CLASS_ATTENTION},
        {kernel_class_of_operator, "aten::native_layer_norm", CLASS_NORM},
        {kernel_class_of_operator, "aten::bmm", CLASS_ATTENTION},
        {kernel_class_of_operator, "aten::_log_softmax", CLASS_ELEMENTWISE},
        {kernel_class_of_operator, "aten::view", CLASS_NO_WORK},
        {kernel_class_of_kind, "attention_backward", CLASS_ATTENTION},
        {kernel_class_of_kind, "host_sync", CLASS_NO_WORK},
        {kernel_class_of_kind, "matmuls", CLASS_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_TEXT(rows[i].name, kernel_class_name(rows[i].of(rows[i].name)),
                   kernel_class_name(rows[i].class));
}

static void real_recordings_are_read_whole(void)
{
    static const struct {
        const char *file;
        size_t matmuls; /* of one step: 7 or 4 a layer and the head, each with two backward */
        int first_step, last_step;
    } rows[] = {
        {"data/kineto/llama.json", 45, 3, 3},
        {"data/kineto/gpt.json", 27, 3, 3},
        {"data/kineto/gpt-steps.json", 15, 3, 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        struct trace trace = {0};
        struct diag diag = {0};
        CHECK_INT(rows[i].file, text_read(&text, check_path(rows[i].file), &diag), STATUS_OK);
        CHECK(rows[i].file, kineto_recognise(text.data, text.size));
        enum status status = kineto_parse(&trace, rows[i].file, text.data, text.size, &diag);
        CHECK_INT(rows[i].file, status, STATUS_OK);
        size_t matmuls = 0, shaped = 0, unknown = 0;
        for (size_t k = 0; k < trace.ops.count; k++) {
            const char *class = label_of_id(&trace, trace.ops.region[k]);
            bool first = trace.ops.step[k] == rows[i].first_step;
            CHECK(rows[i].file, trace.ops.step[k] >= rows[i].first_step &&
                                    trace.ops.step[k] <= rows[i].last_step);
            matmuls += first && strcmp(class, "matmul") == 0;
            shaped += first && strcmp(class, "matmul") == 0 && trace.ops.flops[k] > 0;
            unknown += strcmp(class, "other") == 0;
        }
        CHECK_INT(rows[i].file, (int64_t)matmuls, (int64_t)rows[i].matmuls);
        CHECK_INT(rows[i].file, (int64_t)shaped, (int64_t)rows[i].matmuls);
        CHECK_INT(rows[i].file, (int64_t)unknown, 0);
        diag_release(&diag);
        trace_release(&trace);
        text_release(&text);
    }
}

#define MESSAGE_UNKNOWN_ESCAPE                                                                     \
    "t.json:1:3: error: unknown escape in a string: \\\" \\\\ \\/ \\b \\f \\n \\r \\t and "        \
    "\\uXXXX are known\n"
#define MESSAGE_NO_TRACE_EVENTS                                                                    \
    "t.json: error: no list 'traceEvents': not a recording of the PyTorch profiler\n"
#define MESSAGE_NO_OPS_NOR_KERNELS                                                                 \
    "t.json: error: among 1 events there are no operators or kernels of the PyTorch profiler "     \
    "(categories cpu_op, kernel, gpu_memcpy, gpu_memset) that belong to a step\n"
#define MESSAGE_EVENT_WITHOUT_TIME                                                                 \
    "t.json:1:54: error: the event that ends here lacks 'name', 'ts' or 'dur'\n"
#define EVENT_OF_NEGATIVE_DURATION "[" OP("aten::mm", 0, -1, "") "]"
#define MESSAGE_IMPOSSIBLE_TIME                                                                    \
    "t.json:1:86: error: the event that ends here has an impossible time: 'ts' and 'dur' are "     \
    "microseconds, at most 1e18, 'dur' from 0 on\n"

static void hostile_text_gives_one_message(void)
{
    static const struct {
        const char *label, *text, *message;
    } rows[] = {
        {"empty", "", "t.json:1:1: error: expected a value, but the text ends here\n"},
        {"cut", "{'traceEvents':[{'ph':'X'",
         "t.json:1:26: error: expected ',' or '}', but the text ends here\n"},
        {"open text", "{'trace", "t.json:1:2: error: this string does not end on its line\n"},
        {"trailing comma", "[{},]", "t.json:1:5: error: there must be no comma before ']'\n"},
        {"no comma", "[{} {}]", "t.json:1:5: error: expected ',' or ']', found '{'\n"},
        {"two values", "[] []", "t.json:1:4: error: expected nothing after the value, found '['\n"},
        {"word", "[nul]", "t.json:1:2: error: 'nul' is no JSON value\n"},
        {"key", "{1:2}", "t.json:1:2: error: expected a key in double quotes, found '1'\n"},
        {"colon", "{'a' 2}", "t.json:1:6: error: expected ':', found '2'\n"},
        {"escape", "['\\x']", MESSAGE_UNKNOWN_ESCAPE},
        {"unicode", "['\\u12g4']", MESSAGE_UNKNOWN_ESCAPE},
        {"line end in a text", "[\n'a\nb']",
         "t.json:2:1: error: this string does not end on its line\n"},
        {"no events", "{'a':[1,2]}", MESSAGE_NO_TRACE_EVENTS},
        {"a scalar", "17", MESSAGE_NO_TRACE_EVENTS},
        {"not objects", "[1]", "t.json:1:2: error: expected an event, which is an object {...}\n"},
        {"no rows", "[{'ph':'X','cat':'python_function'}]", MESSAGE_NO_OPS_NOR_KERNELS},
        {"no time", "[{'ph':'X','cat':'cpu_op','name':'a','ts':NaN,'dur':1}]",
         MESSAGE_EVENT_WITHOUT_TIME},
        {"ends early", EVENT_OF_NEGATIVE_DURATION, MESSAGE_IMPOSSIBLE_TIME},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace trace = {0};
        struct diag diag = {0};
        CHECK_INT(rows[i].label, parse(&trace, rows[i].text, &diag), STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text == NULL ? "" : diag.text, rows[i].message);
        CHECK_INT(rows[i].label, (int64_t)trace.ops.count, 0);
        diag_release(&diag);
        trace_release(&trace);
    }
}

static void nesting_is_limited(void)
{
    struct text text = {0};
    struct trace trace = {0};
    struct diag diag = {0};
    for (int i = 0; i < 100000; i++)
        text_putc(&text, '[');
    CHECK_INT("brackets", parse(&trace, text.data, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("one bracket only", diag.text,
               "t.json:1:2: error: expected an event, which is an object {...}\n");
    diag_clear(&diag);
    text.size = 0;
    text_puts(&text, "{'a':");
    for (int i = 0; i < 100000; i++)
        text_putc(&text, '[');
    CHECK_INT("skipped", parse(&trace, text.data, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("depth", diag.text, "t.json:1:69: error: nested deeper than 64 levels\n");
    diag_release(&diag);
    text_release(&text);
    trace_release(&trace);
}

static const struct check_case cases[] = {
    {"the outermost operator that works is a row", the_outermost_operator_that_works_is_a_row},
    {"phases come from what stands around", phases_follow_from_enclosing_ops},
    {"rows outside the profiler's steps are left out",
     rows_outside_the_profilers_steps_are_left_out},
    {"kernels take class, phase and shape from their operator",
     kernels_take_class_phase_and_shape_from_their_operator},
    {"the call names the operator of a kernel", the_call_names_the_operator_of_a_kernel},
    {"calls of the runtime are summed", calls_of_the_runtime_are_summed},
    {"launches into a full queue are held", launches_into_a_full_queue_are_held},
    {"classes follow from names", kernel_classes_follow_from_names},
    {"real recordings are read whole", real_recordings_are_read_whole},
    {"hostile text gives one message", hostile_text_gives_one_message},
    {"nesting is limited", nesting_is_limited},
};

CHECK_MAIN("kineto", cases)
