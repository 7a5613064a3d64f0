/* tests/traces/test_kernel_times.c: kernels of a profiler's recording are summed by operator and shapes. Recordings are
 * texts here (check_json_from_single_quotes()), made of three kinds of events: an operator, the launch of a kernel in
 * it, and the kernel, which has the number of its launch. */
#include "base/text.h"
#include "tests/check.h"
#include "traces/kernel_times.h"
#include "traces/step_recording.h"

#include <string.h>

#define OPERATOR(name, ts, dur, id, dims, types)                                                   \
    "{'ph':'X','cat':'cpu_op','name':'" name "','pid':1,'tid':1,'ts':" ts ",'dur':" dur            \
    ",'args':{'External id':" id ",'Input Dims':" dims ",'Input type':" types "}}"
#define LAUNCH(ts, number)                                                                         \
    "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':1,'tid':1,"                    \
    "'ts':" ts ",'dur':1,'args':{'correlation':" number "}}"
#define KERNEL(name, ts, dur, number)                                                              \
    "{'ph':'X','cat':'kernel','name':'" name "','pid':0,'tid':7,'ts':" ts ",'dur':" dur            \
    ",'args':{'device':0,'stream':7,'correlation':" number "}}"
#define BF16 "['c10::BFloat16','c10::BFloat16']"
#define TENSOR_LIST_AND_SCALAR_TYPES "['TensorList','Scalar']"

/* Two products of one shape take 10 and 30 us, the second in two kernels; the kernel of a conversion counts for the
 * outermost operator in wanted[], not for the copy in it; the profiler left out the shapes of the optimizer's tensors.
 * Inductor's kernels are operators of their own, or are launched together by a CUDA graph. Each line is an event. */
/* clang-format off */
static const char recording[] =
    "{'deviceProperties':[{'id':0,'name':'NVIDIA H200','totalGlobalMem':150109880320,'x':[{}],'numSms':132},{'name':'other','numSms':1},7],'traceEvents':["
    OPERATOR("aten::linear", "0", "20", "1", "[[4,8],[2,8]]", BF16) ","
    OPERATOR("aten::mm", "1", "10", "2", "[[4,8],[8,2]]", BF16) ","
    LAUNCH("2", "101") ","
    OPERATOR("aten::mm", "30", "10", "3", "[[4,8],[8,2],[]]", "['c10::BFloat16','c10::BFloat16','Scalar']") ","
    LAUNCH("31", "102") ","
    LAUNCH("33", "103") ","
    OPERATOR("aten::mm", "50", "10", "4", "[[4,8],[8,2]]", "['float','float']") ","
    LAUNCH("51", "104") ","
    OPERATOR("aten::to", "70", "20", "5", "[[4,8]]", "['float']") ","
    OPERATOR("aten::_to_copy", "71", "15", "6", "[[4,8]]", "['float']") ","
    OPERATOR("aten::copy_", "72", "5", "7", "[[4,8],[4,8]]", BF16) ","
    LAUNCH("73", "105") ","
    OPERATOR("aten::_foreach_add_", "100", "10", "8", "[[[4,8],[2]],[]]", TENSOR_LIST_AND_SCALAR_TYPES) ","
    LAUNCH("101", "106") ","
    OPERATOR("aten::_fused_adamw_", "120", "10", "9", "[[],[]]", TENSOR_LIST_AND_SCALAR_TYPES) ","
    LAUNCH("121", "107") ","
    OPERATOR("c10d::allreduce_", "140", "10", "10", "[[4,8]]", "['float']") ","
    LAUNCH("141", "108") ","
    OPERATOR("mine::scan", "160", "10", "11", "[[4,8]]", "['c10::Half']") ","
    LAUNCH("161", "109") ","
    OPERATOR("triton_poi_fused_add_exp2_3", "180", "5", "12", "[[4,8],[4,8],[]]", "['c10::BFloat16','c10::BFloat16','Scalar']") ","
    LAUNCH("181", "110") ","
    OPERATOR("triton_poi_fused_add_exp2_0", "186", "5", "13", "[[4,8],[4,8],[]]", "['c10::BFloat16','c10::BFloat16','Scalar']") ","
    LAUNCH("187", "111") ","
    OPERATOR("CompiledFunction", "192", "5", "14", "[[4,8]]", "['c10::BFloat16']") ","
    LAUNCH("193", "112") ","
    KERNEL("gemm", "200", "10", "101") ","
    KERNEL("gemm", "210", "25", "102") ","
    KERNEL("splitk", "235", "5", "103") ","
    KERNEL("sgemm", "240", "7", "104") ","
    KERNEL("cast", "250", "4", "105") ","
    KERNEL("add", "260", "3", "106") ","
    KERNEL("adam", "270", "2", "107") ","
    KERNEL("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "280", "90", "108") ","
    KERNEL("scan", "380", "6", "109") ","
    KERNEL("stray", "390", "1", "999") ","
    KERNEL("triton_poi_fused_add_exp2_3", "400", "11", "110") ","
    KERNEL("triton_poi_fused_add_exp2_0", "420", "13", "111") ","
    KERNEL("triton_red_fused_sum_1", "440", "8", "112") ","
    KERNEL("triton_red_fused_sum_2", "450", "10", "112")
    "]}";
/* clang-format on */

static const char *const wanted[] = {"mm",
                                     "_to_copy",
                                     "_foreach_add_.List",
                                     "_fused_adamw_",
                                     "mine.scan",
                                     "triton_poi_fused_add_exp2",
                                     "triton_red_fused_sum"};

/* The kernel that a recorded operator finds; us 0: none. */
static const struct {
    const char *label, *op, *inputs;
    uint8_t dtype;
    double us;
    size_t calls;
} found[] = {
    /* label, op, inputs, dtype, us, calls */
    {"the median of 10 and 25 + 5", "mm", "[4,8][8,2]", STEP_DTYPE_BF16, 20, 2},
    {"of another dtype", "mm", "[4,8][8,2]", STEP_DTYPE_F32, 7, 1},
    {"of an unknown dtype, none of two", "mm", "[4,8][8,2]", STEP_DTYPE_OTHER, 0, 0},
    {"of an unknown dtype, the only one", "mine.scan", "[4,8]", STEP_DTYPE_OTHER, 6, 1},
    {"of other shapes", "mm", "[4,8][8,3]", STEP_DTYPE_BF16, 0, 0},
    {"the copy within a conversion", "_to_copy", "[4,8]", STEP_DTYPE_F32, 4, 1},
    {"is no copy", "copy_", "[4,8][4,8]", STEP_DTYPE_BF16, 0, 0},
    {"a list of tensors, an overload", "_foreach_add_.List", "[4,8][2]", STEP_DTYPE_F32, 3, 1},
    {"a list that the profiler left out", "_fused_adamw_", "[1024][1024]", STEP_DTYPE_F32, 2, 1},
    {"an operator of another library", "mine.scan", "[4,8]", STEP_DTYPE_F16, 6, 1},
    {"a kernel of Inductor, without its number", "triton_poi_fused_add_exp2", "[4,8][4,8]",
     STEP_DTYPE_BF16, 12, 2},
    {"its name ends in no number", "triton_poi_fused_add_exp", "[4,8][4,8]", STEP_DTYPE_BF16, 0, 0},
    {"of other shapes", "triton_poi_fused_add_exp2", "[8,8][4,8]", STEP_DTYPE_BF16, 0, 0},
    {"launched by a CUDA graph, without shapes", "triton_red_fused_sum", "[4,8][4]",
     STEP_DTYPE_BF16, 9, 2},
    {"messages are left out", "c10d.allreduce_", "[4,8]", STEP_DTYPE_F32, 0, 0},
};

static void kernels_are_summed_by_operator_and_shapes(void)
{
    struct kernel_times times = {0};
    struct diag diag = {0};
    const char *text = check_json_from_single_quotes(recording);
    enum status status = kernel_times_read(&times, "trace.json", text, strlen(text), wanted,
                                           ARRAY_LEN(wanted), &diag);
    CHECK_TEXT("messages", diag.text ? diag.text : "", "");
    CHECK_INT("status", status, STATUS_OK);
    CHECK_INT("steps", (int64_t)times.step_count, 1);
    CHECK_TEXT("the first GPU", times.device.name, "NVIDIA H200");
    CHECK_CLOSE("its multiprocessors", times.device.multiprocessors, 132, 0);
    CHECK_CLOSE("its memory", times.device.memory_bytes, 150109880320.0, 0);
    CHECK_CLOSE("no operator", 1e6 * times.seconds_of_unassigned_kernels, 1, 1e-9);
    for (size_t i = 0; i < ARRAY_LEN(found) && status == STATUS_OK; i++) {
        const struct operator_key key = {found[i].op, found[i].inputs, found[i].dtype};
        const struct operator_kernel_time *time = kernel_times_find(&times, &key);
        CHECK_INT(found[i].label, time != NULL ? (int64_t)time->call_count : 0,
                  (int64_t)found[i].calls);
        CHECK_CLOSE(found[i].label, time != NULL ? 1e6 * time->median_s : 0, found[i].us, 1e-9);
    }
    kernel_times_release(&times);
    diag_release(&diag);
}

#define MM OPERATOR("aten::mm", "1", "10", "2", "[[4,8],[8,2]]", BF16)
#define PROFILER_STEP_AT_100_US                                                                    \
    "{'ph':'X','cat':'user_annotation','name':'ProfilerStep#1','pid':1,'tid':1,"                   \
    "'ts':100,'dur':50}"

static const struct {
    const char *label, *text, *message;
} refused[] = {
    {"of a CPU",
     "{'traceEvents':[" OPERATOR("aten::mm", "1", "10", "2", "[[4,8],[8,2]]", BF16) "]}",
     "t.json: error: has no kernels of a GPU: record with activities=[ProfilerActivity.CPU, "
     "ProfilerActivity.CUDA]\n"},
    {"without shapes",
     "{'traceEvents':[{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':1,'dur':9,'"
     "args':{'External id':2}}," LAUNCH("2", "101") "," KERNEL("gemm", "200", "10", "101") "]}",
     "t.json: error: does not say the shapes of operators, by which they are told apart: record "
     "with record_shapes=True\n"},
    {"of messages alone",
     "{'traceEvents':[" MM
     "," LAUNCH("2", "101") "," KERNEL("ncclDevKernel_AllReduce", "200", "10", "101") "]}",
     "t.json: error: has kernels of messages alone: record a step that computes\n"},
    {"outside of the steps",
     "{'traceEvents':[" PROFILER_STEP_AT_100_US "," MM
     "," LAUNCH("2", "101") "," KERNEL("gemm", "200", "10", "101") "]}",
     "t.json: error: no kernel was launched in a step of the profiler (ProfilerStep): call "
     "profiler.step() after each training step\n"},
    {"without times",
     "{'traceEvents':[" MM "," LAUNCH("2", "101") "," KERNEL("gemm", "200", "0", "101") "]}",
     "t.json: error: all kernels take 0 us: the profiler recorded no times of the GPU\n"},
    {"a kernel of years",
     "{'traceEvents':[" MM "," LAUNCH("2", "101") "," KERNEL("gemm", "200", "1e15", "101") "]}",
     "t.json: error: a call takes 1e+09 s with its kernel 'gemm', and at most 1000000 s are read: "
     "is the recording damaged?\n"},
    {"kernels of one call that are too long together",
     "{'traceEvents':[" MM "," LAUNCH("2", "101") "," LAUNCH("4", "102") "," KERNEL(
         "gemm", "200", "6e11", "101") "," KERNEL("sum", "200", "6e11", "102") "]}",
     "t.json: error: a call takes 1.2e+06 s with its kernel 'sum', and at most 1000000 s are read: "
     "is the recording damaged?\n"},
};

static void unmatched_operators_are_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct kernel_times times = {0};
        struct diag diag = {0};
        const char *text = check_json_from_single_quotes(refused[i].text);
        CHECK_INT(refused[i].label,
                  kernel_times_read(&times, "t.json", text, strlen(text), wanted, 1, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(refused[i].label, diag.text ? diag.text : "", refused[i].message);
        kernel_times_release(&times);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"kernels are summed by operator and shapes", kernels_are_summed_by_operator_and_shapes},
    {"what cannot be matched is refused", unmatched_operators_are_refused},
};
CHECK_MAIN("traces/kernel_times", cases)
