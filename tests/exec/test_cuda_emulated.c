/* tests/exec/test_cuda_emulated.c: the CUDA backend on a device that the CPU emulates. Streams are threads, kernels are
 * the real ones compiled for the CPU, matrix products are computed by the CPU. The tests cover which kernel an op
 * becomes, what waits for what, communication of ranks that share a GPU, scratch, times and messages, but not NVIDIA's
 * own code. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/fused.h"
#include "exec/microbench.h"
#include "schedule/config/resolve_config.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/emulator/order.h"
#include "tests/exec/hand.h"
#include "tests/exec/matrix.h"
#include "tests/exec/mutation_check.h"
#include "tests/exec/numerics_cases.h"

/* The address sanitizer makes a schedule four times as slow, so with it half as many mutants are run. */
#ifdef __SANITIZE_ADDRESS__
enum { MUTANTS = 4 };
#else
enum { MUTANTS = 8 };
#endif

/* Checks one of 80 schedules that cover all pairs; test_cuda_emulated_nightly.c checks all. These runs have epilogues
 * (exec/cuda/epilogues.h), those of mutants have not. */
static void schedules_compute_the_reference(void)
{
    const struct factor_level_counts factors = factors_with_all_levels();
    struct matrix_rows *rows = rows_covering_pairs(&factors, 1);
    matrix_epilogues = true;
    check_rows(rows, true, 80);
    matrix_epilogues = false;
    rows_free(rows);
}

/* Every fourth day has the same mutants; test_cuda_emulated_nightly.c makes more. */
static void broken_schedules_are_found(void)
{
    check_mutants(MUTANTS, 1 + check_day_number_of_sample() % 4, false);
}

/* These roles of points are measured only on a GPU. */
static void work_is_timed_beside_other_kernels(void)
{
    static const enum point_role roles[] = {POINT_BESIDE, POINT_SM_HOG, POINT_SUSTAINED};
    const struct microbench_options options = {.backend = "cuda",
                                               .round_s = 1e-5,
                                               .most_rounds = 1,
                                               .min_bytes_of_all_operand_sets = 1,
                                               .dtype = DTYPE_BF16};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        const struct microbench_case wanted = {
            (uint8_t)roles[i],
            POINT_NO_IMPL,
            {.kind = WORK_MATMUL, .matmul = {16, 16, 16, MATMUL_NT, 0, 0}}};
        struct point point = {0};
        struct diag diag = {0};
        CHECK_INT(point_role_name(roles[i]),
                  microbench_measure_case(&wanted, &options, &point, &diag), STATUS_OK);
        CHECK_TEXT(point_role_name(roles[i]), diag.text ? diag.text : "", "");
        CHECK_INT(point_role_name(roles[i]), point.role, roles[i]);
        CHECK(point_role_name(roles[i]), point.median_s > 0 && point.p10_s > 0);
        CHECK(point_role_name(roles[i]), point.repeats >= 3);
        diag_release(&diag);
    }
}

#ifdef HAVE_CUDNN
/* CUDA loads a kernel at its first launch, which may have to wait until the device is idle. The kernel that keeps
 * multiprocessors must not run yet, or neither ends. */
static void kernels_are_loaded_before_the_sm_hog_runs(void)
{
    const struct microbench_options options = {.backend = "cuda",
                                               .round_s = 1e-5,
                                               .most_rounds = 1,
                                               .min_bytes_of_all_operand_sets = 1,
                                               .dtype = DTYPE_BF16};
    const struct microbench_case wanted = {
        POINT_SM_HOG,
        ATTENTION_CUDNN,
        {.kind = WORK_ATTENTION, .attention = {128, 128, 1, 1, 16, MASK_CAUSAL, 0, 0}}};
    struct point point = {0};
    struct diag diag = {0};
    CHECK_INT("measured", microbench_measure_case(&wanted, &options, &point, &diag), STATUS_OK);
    CHECK_TEXT("measured", diag.text ? diag.text : "", "");
    CHECK("it took time", point.median_s > 0);
    diag_release(&diag);
}
#endif

static void sixteen_bits_stay_within_their_tolerance(void)
{
    static const enum dtype dtypes[] = {DTYPE_BF16};
    matrix_epilogues = true; /* sums and norms are joined in bf16 only */
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++)
        for (int m = 0; m < SHAPE_COUNT; m++) {
            struct request request = {.model = &shapes[m],
                                      .profile = m % 2 == 0 ? "ideal" : NULL,
                                      .weights = m % CHOICE_WEIGHTS_COUNT,
                                      .activations = m % CHOICE_ACTIVATIONS_COUNT,
                                      .optimizer = -1,
                                      .attention_impl = ATTENTION_CUDNN,
                                      .dtype = (int)dtypes[d],
                                      .ranks = 4,
                                      .hp = 2,
                                      .seq = 32,
                                      .gpus_per_node = 2,
                                      .sm = 90};
            struct choices choices;
            struct diag diag = {0};
            if (CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK))
                check_choices(&choices, true);
            diag_release(&diag);
        }
    matrix_epilogues = false;
}

static bool sees(const struct work *w, int64_t i, int64_t j)
{
    int64_t end = i + w->attention.offset;
    return w->attention.mask == MASK_FULL ||
           (j <= end && (w->attention.mask == MASK_CAUSAL || j > end - w->attention.window));
}

static bool attention_part_sees(const struct attention_fused_part *p, int64_t i, int64_t j)
{
    int64_t row = i - p->first_query;
    bool inside = row >= 0 && row < p->query_count && j < p->key_count;
    int64_t last = row + (p->mask == FUSED_MASK_CAUSAL_TO_END ? p->key_count - p->query_count : 0);
    return inside &&
           (p->mask == FUSED_MASK_NONE || (j <= last && (p->window == 0 || j > last - p->window)));
}

/* For each tile that a fused kernel takes, the part that it computes and the part that is cleared together give the
 * mask. */
static void tile_parts_together_give_the_mask(void)
{
    uint32_t taken = 0, windows = 0, wrong = 0;
    for (int64_t q = 1; q < 7; q++)
        for (int64_t kv = 1; kv < 9; kv++)
            for (int64_t offset = -8; offset < 10; offset++)
                for (int64_t window = 0; window < 10; window += 3) {
                    struct work w = {.kind = WORK_ATTENTION,
                                     .attention = {q, kv, 1, 1, 8,
                                                   window > 0 ? MASK_WINDOW : MASK_CAUSAL, offset,
                                                   window}};
                    struct attention_fused_part part;
                    if (!attention_find_fused_part(&w, &part))
                        continue;
                    taken++;
                    windows += part.window > 0;
                    wrong += part.query_count == 1 && part.mask != FUSED_MASK_NONE;
                    for (int64_t i = 0; i < q; i++)
                        for (int64_t j = 0; j < kv; j++)
                            wrong += sees(&w, i, j) != attention_part_sees(&part, i, j);
                }
    CHECK_INT("(query, key) pairs seen otherwise", wrong, 0);
    CHECK("most masks have such a part", taken > 1000);
    CHECK("some have a window", windows > 40);
    printf("%u of %u parts have a window\n", windows, taken);
}

/* ---- what a user sees when a run is refused or fails ---- */

static const char ONE_OP[] = "longhaul schedule 1\nmesh g=1\nstream compute compute\n"
                             "stream h2d h2d\n"
                             "buffer a0 hbm %s [1000] activation persistent\n"
                             "buffer c0 pinned %s [1000] activation persistent\n"
                             "op 0 h2d h2d bytes=%d reads c0 writes a0\n";

static void impossible_options_are_reported(void)
{
    static const struct {
        const char *label, *type, *message;
        int bytes, devices;
        size_t memory;
        double copies;
    } rows[] = {
        /* label, type, message, bytes, devices, memory, copies */
        {"no GPU", "f32",
         "cuda: error: no GPU can be used: cudaGetDeviceCount: no CUDA-capable device is "
         "detected\n",
         4000, 0, 1 << 30, 0},
        {"no driver", "f32",
         "cuda: error: no GPU can be used: cudaGetDeviceCount: CUDA driver version is insufficient "
         "for CUDA runtime version\n",
         4000, -1, 1 << 30, 0},
        {"fp64", "f64",
         "hand.ir: error: op 0 (h2d) has an operand in f64, which the cuda backend does not "
         "compute "
         "in; bf16, f16 and f32 would do\n",
         8000, 1, 1 << 30, 0},
        {"emulated links", "f32",
         "hand.ir: error: links are emulated only on the cpu backend; a GPU uses its real "
         "links\n",
         4000, 1, 1 << 30, 1e9},
        {"too little memory", "f32",
         "cudaMalloc: error: out of memory: rank 0 needs 4.00 KiB of planned arena and 0 B of "
         "scratch; the device has 100 B free of 100 B; the largest buffer is a0 with 3.91 KiB\n",
         4000, 1, 100, 0},
    };
    const size_t memory = emulator_memory;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[1024];
        struct hand h;
        snprintf(text, sizeof text, ONE_OP, rows[i].type, rows[i].type, rows[i].bytes);
        emulator_devices = rows[i].devices;
        emulator_memory = rows[i].memory;
        if (hand_load(&h, text)) {
            h.options.copy_link.bytes_per_s = rows[i].copies;
            enum status got = hand_run(&h);
            CHECK(rows[i].label, got == STATUS_SYSTEM || got == STATUS_BAD_INPUT);
            CHECK_TEXT(rows[i].label, h.diag.text ? h.diag.text : "", rows[i].message);
        }
        hand_release(&h);
    }
    emulator_devices = 1;
    emulator_memory = memory;
}

#ifdef HAVE_CUDNN
/* Checks that fused attention refuses the op with the message `said`. */
static void check_fused_refuses(const char *op, const char *said)
{
    static const char head[] =
        "longhaul schedule 1\nmesh cp=1\n"
        "tokens layout=contiguous cp=1 hp=1 seq=8 batch=1 micro_batch=1 dtype=bf16\n"
        "documents lengths=3,5\nstream compute compute\n"
        "buffer q0 hbm bf16 [64] activation persistent\n"
        "buffer o0 hbm bf16 [64] activation persistent\n"
        "buffer l0 hbm f32 [8] activation persistent\n";
    struct hand h;
    char text[1024];
    snprintf(text, sizeof text, "%s%s", head, op);
    if (hand_load(&h, text)) {
        h.options.attention = EXEC_ATTENTION_FUSED;
        hand_run_and_check_message("refused", &h, STATUS_SYSTEM, said);
    }
    hand_release(&h);
}

static void fused_attention_refuses_unsupported(void)
{
    check_fused_refuses(
        "op 0 attention compute q=8 kv=8 heads=1 kv_heads=1 dim=8 mask=documents window=3 "
        "reads q0 q0 q0 writes o0 l0\n",
        "cuDNN: error: does not take the attention of op 0: its documents share queries or keys "
        "with others; --attention-by tiles would do\n");
    check_fused_refuses("op 0 attention compute q=8 kv=8 heads=1 kv_heads=1 dim=8 mask=causal "
                        "vdim=4 reads q0 q0 q0[0:32] writes o0[0:32] l0\n",
                        "cuDNN: error: does not take the attention of op 0: its heads' "
                        "dimension is no multiple of 8; --attention-by tiles would do\n");
    check_fused_refuses("op 0 attention_backward compute q=8 kv=8 heads=1 kv_heads=1 dim=8 "
                        "mask=causal delta=1 reads q0 q0 q0 l0 l0 q0 writes o0 o0 o0\n",
                        "cuDNN: error: does not take the attention of op 0: cuDNN's backward reads "
                        "the output, and this one its product with the gradient; --attention-by "
                        "tiles would do\n");
}
#endif

/* Handles of device 1 work only while device 1 is current; copies always work. */
static void work_on_another_device_is_refused(void)
{
    enum { FLOATS = 4, BYTES = 16 };
    static const struct product_shape shape = {
        .m = 16, .n = 16, .k = 16, .a_stride = 16, .b_stride = 16, .y_stride = 16};
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    void *memory = NULL;
    float host[FLOATS] = {0};
    struct diag diag = {0};
    emulator_devices = 2;
    CHECK_INT("no such device", cudaSetDevice(2), cudaErrorInvalidDevice);
    CHECK_INT("the second device", cudaSetDevice(1), cudaSuccess);
    CHECK_INT("a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    CHECK_INT("an event", cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
    CHECK_INT("memory", cudaMalloc(&memory, BYTES), cudaSuccess);
    struct products *products = products_new(cublaslt_open(&diag), &diag);
    for (int device = 0; device < 2; device++) {
        const cudaError_t wanted = device == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
        CHECK_INT("current", cudaSetDevice(device), cudaSuccess);
        CHECK_INT("a kernel", cuda_fill_f32(memory, 1, FLOATS, stream), (int)wanted);
        CHECK_INT("a fill", cudaMemsetAsync(memory, 0, BYTES, stream), wanted);
        CHECK_INT("a fill of its memory", cudaMemset(memory, 0, BYTES), wanted);
        CHECK_INT("a copy", cudaMemcpyAsync(memory, host, BYTES, cudaMemcpyHostToDevice, stream),
                  cudaSuccess);
        CHECK_INT("its event on its stream", cudaEventRecord(event, stream), cudaSuccess);
        CHECK_INT("its event on the current device", cudaEventRecord(event, NULL), wanted);
        CHECK_INT("a plan of its handle", products_plan(products, &shape, &diag) != NULL,
                  device == 1);
    }
    products_free(products);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cudaEventDestroy(event);
    cudaFree(memory);
    cudaSetDevice(0);
    emulator_devices = 1;
    diag_release(&diag);
}

/* The backend refuses ops that it has no kernels for, with a message. */
static void ops_without_kernel_are_refused(void)
{
    static const struct {
        const char *routing, *op, *message;
    } rows[] = {
        {"routing experts=2 copies=1 layers=1 capacity=500000 shares=1,3\n",
         "op 0 permute compute rows=8 cols=8 copies=1 route=1 dealt=8 to=4 of=own reads x[0:64] "
         "writes y[0:32]\n",
         "error: backend cuda neither drops nor shuffles copies of tokens, nor sends tokens before "
         "it copies them; backend cpu, or a schedule of --dispatcher alltoall without "
         "--expert-capacity, would do\n"},
        {"routing experts=8 copies=1 layers=1 spread=1 shares=1,2,3,4,5,6,7,8\n",
         "op 0 route compute rows=8 experts=8 copies=1 route=1 reads x[0:64] writes y[0:8]\n",
         "error: backend cuda neither drops nor shuffles copies of tokens, nor sends tokens before "
         "it copies them; backend cpu, or a schedule of --dispatcher alltoall without "
         "--expert-capacity, would do\n"},
        {"", "op 0 rmsnorm compute rows=8 cols=8 bare=1 reads x[0:64] writes y[0:64] r[0:8]\n",
         "hand.ir: error: op 0 (rmsnorm) is one of norms without weights (qk_norm_bare), which the "
         "cuda backend does not execute; --backend cpu does\n"},
        {"",
         "op 0 quantise compute rows=8 cols=8 scaling=tensor groups=2 reads x[0:64] writes q[0:64] "
         "r[0:2]\n",
         "hand.ir: error: op 0 (quantise) has a scale for each of groups=2; the cuda backend "
         "multiplies experts in 16 bits; --backend cpu has it\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        struct hand h;
        text_printf(&text,
                    "longhaul schedule 1\nmesh g=1\ntokens batch=1 micro_batch=1 dtype=f32\n%s"
                    "stream compute compute\nbuffer x hbm f32 [64] activation persistent\n"
                    "buffer y hbm f32 [64] activation persistent\n"
                    "buffer r hbm f32 [8] activation persistent\n"
                    "buffer q hbm e4m3 [64] activation persistent\n%s",
                    rows[i].routing, rows[i].op);
        if (hand_load(&h, text.data))
            hand_run_and_check_message(rows[i].op, &h, STATUS_BAD_INPUT, rows[i].message);
        hand_release(&h);
        text_release(&text);
    }
}

/* The first rank's expert has no rows, the second one's has 1024: both get the scratch of a sum over 1024 rows, in 264
 * parts of 64 numbers, beside the 3 numbers of the table of experts. */
static void scratch_is_that_of_the_rank_with_the_most_rows(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh dp=2\ntokens batch=2 micro_batch=1 dtype=f32\n"
        "routing experts=2 copies=1 layers=1 shares=0,1\ngroup ep axes=dp\n"
        "stream compute compute\nbuffer x hbm f32 [1024,64] activation persistent\n"
        "buffer y hbm f32 [64] activation persistent\nop 0 fill compute count=65536 writes x\n"
        "op 1 column_sum compute rows=1024 cols=64 route=1 dealt=512 waits 0 reads x writes y\n";
    const size_t memory = emulator_memory;
    struct hand h;
    if (hand_load(&h, text))
        hand_run_and_check_message("runs", &h, STATUS_OK, "");
    hand_release(&h);
    emulator_memory = 100;
    if (hand_load(&h, text))
        hand_run_and_check_message(
            "is refused", &h, STATUS_SYSTEM,
            "cudaMalloc: error: out of memory: rank 0 needs 256 KiB of planned arena "
            "and 66.0 KiB of scratch; the device has 100 B free of 100 B; the largest "
            "buffer is x with 256 KiB\n");
    hand_release(&h);
    emulator_memory = memory;
}

/* CUDA reads CUDA_DEVICE_MAX_CONNECTIONS at its first call, so the backend sets it before, to 32 unless it is given. */
static void cuda_max_connections_is_set_first(void)
{
    static const char name[] = "CUDA_DEVICE_MAX_CONNECTIONS";
    char text[1024];
    snprintf(text, sizeof text, ONE_OP, "f32", "f32", 4000);
    for (int given = 0; given < 2; given++) {
        struct hand h;
        if (given)
            setenv(name, "8", 1);
        else
            unsetenv(name);
        if (hand_load(&h, text))
            CHECK_INT("runs", hand_run(&h), STATUS_OK);
        CHECK_TEXT("connections", emulator_connections != NULL ? emulator_connections : "",
                   given ? "8" : "32");
        hand_release(&h);
    }
    unsetenv(name);
}

static const struct check_case cases[] = {
    {"streams have queues of their own", cuda_max_connections_is_set_first},
    {"work on another device is refused", work_on_another_device_is_refused},
    {"what has no kernel is refused", ops_without_kernel_are_refused},
    {"scratch is that of the rank with the most rows",
     scratch_is_that_of_the_rank_with_the_most_rows},
    {"parts of masks see what the masks show", tile_parts_together_give_the_mask},
    {"what cannot be is said", impossible_options_are_reported},
#ifdef HAVE_CUDNN
    {"fused attention refuses windows of documents, sums, and odd heads",
     fused_attention_refuses_unsupported},
    {"kernels are loaded before others keep the device", kernels_are_loaded_before_the_sm_hog_runs},
#endif
    {"kinds compute what the processor does", kinds_compute_what_the_processor_does},
    {"attention computes what the processor does", attention_computes_what_the_processor_does},
    {"schedules compute the reference", schedules_compute_the_reference},
    {"broken schedules are found", broken_schedules_are_found},
    {"work is timed in company", work_is_timed_beside_other_kernels},
    {"16 bits stay within their tolerance", sixteen_bits_stay_within_their_tolerance},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = mutation_backend = hand_backend = "cuda";
    return check_run("cuda emulated", cases, ARRAY_LEN(cases), argc, argv);
}
