/* tests/exec/test_cuda_emulated.c: the CUDA backend on a device that the CPU emulates. Streams are threads,
 * kernels are the real ones compiled for the CPU, matrix products are computed by the CPU. The tests cover
 * everything but NVIDIA's own code: which kernel an op becomes, what waits for what, communication of ranks
 * that share a GPU, scratch, times and messages. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/fused.h"
#include "exec/cuda/versions.h"
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

/* Checks one of 80 schedules that cover all pairs; test_cuda_emulated_nightly.c checks all. Products compute what they
 * can of the next op; mutants run without. */
static void schedules_compute_the_reference(void)
{
    const struct factors factors = factors_all();
    struct matrix_rows *rows = rows_covering_pairs(&factors, 1);
    matrix_epilogues = true;
    check_rows(rows, true, 80);
    matrix_epilogues = false;
    rows_free(rows);
}

/* One of four days has the same mutants; test_cuda_emulated_nightly.c makes more. */
static void broken_schedules_are_found(void)
{
    check_mutants(MUTANTS, 1 + check_day() % 4, false);
}

/* These roles of points are measured only on a GPU. */
static void work_is_timed_in_company(void)
{
    static const enum point_role roles[] = {POINT_BESIDE, POINT_SM_HOG, POINT_SUSTAINED};
    const struct microbench_options options = {.backend = "cuda",
                                               .round_s = 1e-5,
                                               .most_rounds = 1,
                                               .operand_set_bytes = 1,
                                               .dtype = DTYPE_BF16};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        const struct microbench_case wanted = {
            (uint8_t)roles[i],
            POINT_NO_IMPL,
            {.kind = WORK_MATMUL, .matmul = {16, 16, 16, MATMUL_NT, 0, 0}}};
        struct point point = {0};
        struct diag diag = {0};
        CHECK_INT(point_role_name(roles[i]), microbench_run(&wanted, &options, &point, &diag),
                  STATUS_OK);
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
static void kernels_are_loaded_before_others_keep_the_device(void)
{
    const struct microbench_options options = {.backend = "cuda",
                                               .round_s = 1e-5,
                                               .most_rounds = 1,
                                               .operand_set_bytes = 1,
                                               .dtype = DTYPE_BF16};
    const struct microbench_case wanted = {
        POINT_SM_HOG,
        ATTENTION_CUDNN,
        {.kind = WORK_ATTENTION, .attention = {128, 128, 1, 1, 16, MASK_CAUSAL, 0, 0}}};
    struct point point = {0};
    struct diag diag = {0};
    CHECK_INT("measured", microbench_run(&wanted, &options, &point, &diag), STATUS_OK);
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

static bool part_sees(const struct attention_part *p, int64_t i, int64_t j)
{
    int64_t row = i - p->first_query;
    bool inside = row >= 0 && row < p->query_count && j < p->key_count;
    int64_t last = row + (p->mask == FUSED_TO_END ? p->key_count - p->query_count : 0);
    return inside &&
           (p->mask == FUSED_ALL || (j <= last && (p->window == 0 || j > last - p->window)));
}

/* For each tile that a fused kernel takes, the part that it computes and the part that is cleared together give the
 * mask. */
static void parts_of_masks_see_what_the_masks_show(void)
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
                    struct attention_part part;
                    if (!attention_find_fused_part(&w, &part))
                        continue;
                    taken++;
                    windows += part.window > 0;
                    wrong += part.query_count == 1 && part.mask != FUSED_ALL;
                    for (int64_t i = 0; i < q; i++)
                        for (int64_t j = 0; j < kv; j++)
                            wrong += sees(&w, i, j) != part_sees(&part, i, j);
                }
    CHECK_INT("(query, key) pairs seen otherwise", wrong, 0);
    CHECK("most masks have such a part", taken > 1000);
    CHECK("some have a window", windows > 40);
    printf("%u of %u parts have a window\n", windows, taken);
}

/* ---- what a user sees when it goes wrong ---- */

static const char ONE_OP[] = "longhaul schedule 1\nmesh g=1\nstream compute compute\n"
                             "stream h2d h2d\n"
                             "buffer a0 hbm %s [1000] activation persistent\n"
                             "buffer c0 pinned %s [1000] activation persistent\n"
                             "op 0 h2d h2d bytes=%d reads c0 writes a0\n";

/* Element i of x and of w, which E4M3 has exactly once it is divided by the scale of 448 / 3.5 = 128. */
static double eighth(uint64_t i)
{
    return (double)(i % 8) / 2;
}

static enum status fill_eighths(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)user;
    (void)diag;
    for (uint64_t i = 0; i < buffer->element_count; i++)
        number_set(buffer->data, buffer->dtype, i, eighth(i));
    return STATUS_OK;
}

/* Checks y, the only buffer of 16 x 32 elements. */
static enum status look_at_product(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    enum { M = 16, N = 32, K = 48 };
    (void)diag;
    if (buffer->element_count != M * N)
        return STATUS_OK;
    for (uint64_t i = 0; i < M * N; i++) {
        double sum = 0;
        for (uint64_t k = 0; k < K; k++)
            sum += eighth(i / N * K + k) * eighth(i % N * K + k);
        CHECK_CLOSE("y", number_get(buffer->data, buffer->dtype, i), sum, 1e-6);
    }
    ++*(uint32_t *)user;
    return STATUS_OK;
}

/* Casts and their product run in a schedule; scales of blocks are refused by name before a step. */
static void products_of_8_bits_run_or_are_refused(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh g=1\n"
        "tokens layout=contiguous cp=1 hp=1 seq=1 batch=1 micro_batch=1 dtype=f32\n"
        "stream compute compute\n"
        "tensor x [1,768]\nbundle x first=x count=1 elements=768\n"
        "tensor w [1,1536]\nbundle w first=w count=1 elements=1536\n"
        "tensor y [1,512]\nbundle y first=y count=1 elements=512\n"
        "buffer x0 hbm f32 [16,48] activation bind=param bundle=x\n"
        "buffer w0 hbm f32 [32,48] activation bind=param bundle=w\n"
        "buffer y0 hbm f32 [16,32] activation bind=param bundle=y\n"
        "buffer q0 hbm e4m3 [16,48] activation free=2\nbuffer s0 hbm f32 [1] activation free=2\n"
        "buffer q1 hbm e4m3 [32,48] activation free=2\nbuffer s1 hbm f32 [1] activation free=2\n"
        "op 0 quantise compute rows=16 cols=48 scaling=tensor amax=1 reads x0 writes q0 s0\n"
        "op 1 quantise compute rows=32 cols=48 scaling=tensor amax=1 reads w0 writes q1 s1\n"
        "op 2 matmul compute m=16 n=32 k=48 scaling=tensor reads q0 q1 s0 s1 writes y0\n";
    static const char blocks[] =
        "longhaul schedule 1\nmesh g=1\nstream compute compute\n"
        "buffer x0 hbm bf16 [16,64] activation persistent\n"
        "buffer q0 hbm e4m3 [16,64] activation free=0\nbuffer s0 hbm e8m0 [32] activation free=0\n"
        "op 0 quantise compute rows=16 cols=64 scaling=mx reads x0 writes q0 s0\n";
    struct hand h;
    uint32_t looked = 0;
    if (hand_load(&h, text)) {
        h.io = (struct exec_io){&looked, fill_eighths, look_at_product, 0, UINT32_MAX, NULL};
        CHECK_INT("run", hand_run(&h), STATUS_OK);
        CHECK_TEXT("without a message", h.diag.text ? h.diag.text : "", "");
        CHECK_INT("looked", looked, 1);
    }
    hand_release(&h);
    if (hand_load(&h, blocks)) {
        CHECK_INT("blocks", hand_run(&h), STATUS_BAD_INPUT);
        CHECK_TEXT(
            "by name", h.diag.text ? h.diag.text : "",
            "hand.ir: error: op 0 (quantise) has scaling=mx; the cuda backend has scales for "
            "a tensor and for blocks of 128 (--products fp8-tensor, fp8-delayed, "
            "fp8-block); --backend cpu has it\n");
    }
    hand_release(&h);
}

/* cuBLASLt has products with scales of blocks since 12.9, and on Hopper only. */
static void scales_of_blocks_are_refused_where_there_are_none(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh g=1\nstream compute compute\n"
        "buffer x0 hbm bf16 [16,64] activation persistent\n"
        "buffer q0 hbm e4m3 [16,64] activation free=0\nbuffer s0 hbm f32 [16] activation free=0\n"
        "op 0 quantise compute rows=16 cols=64 scaling=vector reads x0 writes q0 s0\n";
    static const struct {
        int major, version;
        const char *why; /* NULL: it runs */
    } rows[] = {
        {9, 120900, NULL},
        {9, 120803, "cuBLASLt older than 12.9 has no products"},
        {8, 130000,
         "cuBLASLt has products on GPUs of compute capability 9.0 (Hopper) only, and this one is "
         "older"},
        {10, 130000,
         "cuBLASLt has products on GPUs of compute capability 9.0 (Hopper) only, and this one is "
         "newer (Blackwell has those of mxfp8 and nvfp4 instead)"},
    };
    const int version = emulator_versions.cublaslt;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hand h;
        char want[400] = "";
        emulator_capability = rows[i].major;
        emulator_versions.cublaslt = rows[i].version;
        if (rows[i].why != NULL)
            snprintf(want, sizeof want,
                     "hand.ir: error: op 0 (quantise) has scaling=vector, for which %s; --backend "
                     "cpu has it\n",
                     rows[i].why);
        if (hand_load(&h, text)) {
            CHECK_INT("blocks", hand_run(&h), rows[i].why != NULL ? STATUS_BAD_INPUT : STATUS_OK);
            CHECK_TEXT("by name", h.diag.text ? h.diag.text : "", want);
        }
        hand_release(&h);
    }
    emulator_capability = 9;
    emulator_versions.cublaslt = version;
}

static void what_cannot_be_is_said(void)
{
    static const struct {
        const char *label, *type, *message;
        int bytes, devices;
        size_t memory;
        double copies;
    } rows[] = {
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
/* Tiles take them: test_cuda_emulated_documents.c. */
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
        hand_expect("refused", &h, STATUS_SYSTEM, said);
    }
    hand_release(&h);
}

static void fused_attention_refuses(void)
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

/* One half of k has the value 1 + 2^-9 and the other -1, so that a 16-bit partial sum would make the result 0. The
 * library may split such a k. */
static void products_of_16_bits_are_added_up_in_fp32(void)
{
    enum { K = 128 };
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F32};
    static const struct {
        int at;
        double value;
    } terms[] = {{0, 1}, {1, 1.0 / 512}, {K - 1, -1}};
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        const struct product_shape shape = {.m = 1,
                                            .n = 1,
                                            .k = K,
                                            .a_stride = K,
                                            .b_stride = K,
                                            .y_stride = 1,
                                            .form = MATMUL_NT,
                                            .a_type = DTYPE_BF16,
                                            .y_type = (uint8_t)dtypes[d]};
        uint16_t a[K] = {0}, b[K];
        float y = 0, workspace = 0;
        struct diag diag = {0};
        for (int k = 0; k < K; k++)
            number_set(b, DTYPE_BF16, (uint64_t)k, 1);
        for (size_t i = 0; i < ARRAY_LEN(terms); i++)
            number_set(a, DTYPE_BF16, (uint64_t)terms[i].at, terms[i].value);
        struct products *products = products_new(cublaslt_open(&diag), &diag);
        const struct product *product = products_plan(products, &shape, &diag);
        CU_ASSERT_PTR_NOT_NULL_FATAL(product);
        CHECK_INT("run",
                  product_run(products, product, 1, a, b, NULL, &y, &y, NULL, &workspace, NULL), 0);
        emulator_wait();
        CHECK_CLOSE(dtype_name(dtypes[d]), number_get(&y, dtypes[d], 0), 1.0 / 512, 0);
        products_free(products);
        diag_release(&diag);
    }
}

/* Refuses what the backend has no kernels for, in words. */
static void what_has_no_kernel_is_refused(void)
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
            hand_expect(rows[i].op, &h, STATUS_BAD_INPUT, rows[i].message);
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
        hand_expect("runs", &h, STATUS_OK, "");
    hand_release(&h);
    emulator_memory = 100;
    if (hand_load(&h, text))
        hand_expect("is refused", &h, STATUS_SYSTEM,
                    "cudaMalloc: error: out of memory: rank 0 needs 256 KiB of planned arena "
                    "and 66.0 KiB of scratch; the device has 100 B free of 100 B; the largest "
                    "buffer is x with 256 KiB\n");
    hand_release(&h);
    emulator_memory = memory;
}

/* 8-bit factors of different types, each with a scale. The library refuses what it cannot multiply, with a message. */
static void products_of_8_bits_have_scales(void)
{
    enum { M = 16, N = 32, K = 48 };
    struct product_shape shape = {.m = M,
                                  .n = N,
                                  .k = K,
                                  .a_stride = K,
                                  .b_stride = K,
                                  .y_stride = N,
                                  .form = MATMUL_NT,
                                  .a_type = DTYPE_E5M2,
                                  .b_type = DTYPE_E4M3,
                                  .y_type = DTYPE_F32,
                                  .has_scales = 1};
    uint8_t a[M * K], b[N * K];
    float y[M * N], workspace = 0;
    const float scale_a = 0.5f, scale_b = 3;
    struct diag diag = {0};
    for (int i = 0; i < M * K; i++)
        number_set(a, DTYPE_E5M2, (uint64_t)i, i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        number_set(b, DTYPE_E4M3, (uint64_t)i, i % 5 - 1.5);
    struct products *products = products_new(cublaslt_open(&diag), &diag);
    const struct product *product = products_plan(products, &shape, &diag);
    CU_ASSERT_PTR_NOT_NULL_FATAL(product);
    CHECK_INT("scales", product_set_scales(products, product, &scale_a, &scale_b), 0);
    CHECK_INT("run", product_run(products, product, 1, a, b, NULL, y, y, NULL, &workspace, NULL),
              0);
    emulator_wait();
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += ((i * K + k) % 7 - 3) * ((j * K + k) % 5 - 1.5);
            CHECK_CLOSE("product", y[i * N + j], 1.5 * sum, 1e-6);
        }
    shape.form = MATMUL_NN; /* Hopper wants k innermost in both */
    shape.b_stride = N;
    CHECK("refused", products_plan(products, &shape, &diag) == NULL);
    size_t size;
    const char *message = diag_first_message(&diag, &size);
    CHECK("by its types", message != NULL && strstr(message, "of e5m2 into f32") != NULL);
    products_free(products);
    diag_release(&diag);
}

/* Factors with a scale for each block: of 1 x 128 in a, of 1 x 128 or 128 x 128 in b. The last blocks of k and n are
 * incomplete. */
static void products_of_8_bits_have_scales_of_blocks(void)
{
    enum { M = 16, N = 160, K = 336, ALONG = 3 };
    static uint8_t a[M * K], b[N * K];
    static float y[M * N], scale_a[M * ALONG], scale_b[N * ALONG];
    _Alignas(16) static float laid_a[M * ALONG], laid_b[N * ALONG];
    float workspace = 0;
    for (int i = 0; i < M * K; i++)
        number_set(a, DTYPE_E4M3, (uint64_t)i, i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        number_set(b, DTYPE_E4M3, (uint64_t)i, i % 5 - 1.5);
    for (int i = 0; i < M * ALONG; i++)
        scale_a[i] = 1 + (float)i / 8;
    for (int i = 0; i < N * ALONG; i++)
        scale_b[i] = 2 - (float)i / 512;
    for (int rows = 1; rows <= CUDA_SCALE_BLOCK; rows += CUDA_SCALE_BLOCK - 1) {
        struct diag diag = {0};
        struct product_shape shape = {.m = M,
                                      .n = N,
                                      .k = K,
                                      .a_stride = K,
                                      .b_stride = K,
                                      .y_stride = N,
                                      .form = MATMUL_NT,
                                      .a_type = DTYPE_E4M3,
                                      .b_type = DTYPE_E4M3,
                                      .y_type = DTYPE_F32,
                                      .has_scales = 1,
                                      .scaling = rows == 1 ? SCALING_VECTOR : SCALING_BLOCK};
        struct products *products = products_new(cublaslt_open(&diag), &diag);
        const struct product *product = products_plan(products, &shape, &diag);
        CU_ASSERT_PTR_NOT_NULL_FATAL(product);
        CHECK("room for scales", cuda_laid_out_scales(M, K, 1) <= ARRAY_LEN(laid_a) &&
                                     cuda_laid_out_scales(N, K, rows) <= ARRAY_LEN(laid_b));
        CHECK_INT("scales of a", cuda_lay_out_scales(laid_a, scale_a, M, K, 1, NULL), 0);
        CHECK_INT("scales of b", cuda_lay_out_scales(laid_b, scale_b, N, K, rows, NULL), 0);
        CHECK_INT("scales", product_set_scales(products, product, laid_a, laid_b), 0);
        CHECK_INT("run",
                  product_run(products, product, 1, a, b, NULL, y, y, NULL, &workspace, NULL), 0);
        emulator_wait();
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += ((i * K + k) % 7 - 3) * ((j * K + k) % 5 - 1.5) *
                           (double)scale_a[i * ALONG + k / 128] *
                           (double)scale_b[j / rows * ALONG + k / 128];
                CHECK("product", fabs(y[i * N + j] - sum) <= 1e-3 + 1e-5 * fabs(sum));
            }
        shape.m = 18; /* the library wants lines of scales in multiples of 4 */
        CHECK("refused", products_plan(products, &shape, NULL) == NULL);
        products_free(products);
        diag_release(&diag);
    }
}

/* CUDA reads the variable at its first call. */
static void streams_have_queues_of_their_own(void)
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

/* ---- versions ---- */

static bool opens(enum nvidia_library library, struct diag *diag)
{
    int count;
    switch (library) {
    case NVIDIA_DRIVER:
        return cuda_count_devices(&count, diag) == STATUS_OK;
    case NVIDIA_CUBLASLT:
        return cublaslt_open(diag) != NULL;
#ifdef HAVE_CUDNN
    case NVIDIA_CUDNN:
        return cudnn_open(diag) != NULL;
#endif
#ifdef HAVE_NCCL
    case NVIDIA_NCCL:
        return nccl_open(diag) != NULL;
#endif
#ifdef HAVE_CUPTI
    case NVIDIA_CUPTI:
        return cupti_library(diag) != NULL;
#endif
    default:
        return false;
    }
}

/* True if this program was built with the headers of a library, and so can open it. */
static bool is_built_with(enum nvidia_library library)
{
#ifndef HAVE_CUDNN
    if (library == NVIDIA_CUDNN)
        return false;
#endif
#ifndef HAVE_NCCL
    if (library == NVIDIA_NCCL)
        return false;
#endif
#ifndef HAVE_CUPTI
    if (library == NVIDIA_CUPTI)
        return false;
#endif
    return library < NVIDIA_LIBRARY_COUNT;
}

static void check_version(const struct version_rule *rule, int version)
{
    int *const numbers[NVIDIA_LIBRARY_COUNT] = {
        [NVIDIA_DRIVER] = &emulator_versions.driver,
        [NVIDIA_CUBLASLT] = &emulator_versions.cublaslt,
        [NVIDIA_CUDNN] = &emulator_versions.cudnn,
        [NVIDIA_NCCL] = &emulator_versions.nccl,
        [NVIDIA_CUPTI] = &emulator_versions.cupti,
    };
    const enum nvidia_library library = (enum nvidia_library)rule->library;
    const struct emulator_versions before = emulator_versions;
    const struct version_rule *wanted = version_find_rule(library, VERSION_REFUSED, version);
    struct diag diag = {0};
    char printed[32];
    *numbers[library] = version;
    if (library == NVIDIA_DRIVER)
        emulator_devices = wanted != NULL ? -1 : 1; /* the runtime finds the old driver as well */
    version_print(library, version, printed, sizeof printed);
    CHECK_INT(printed, opens(library, &diag), wanted == NULL);
    if (wanted != NULL) {
        CHECK(printed, strstr(diag.text, version_library(library)) == diag.text);
        CHECK(printed, strstr(diag.text, printed) != NULL);
        CHECK(printed, strstr(diag.text, wanted->fault) != NULL);
        CHECK(printed, strstr(diag.text, wanted->remedy) != NULL);
    }
    emulator_versions = before;
    emulator_devices = 1;
    diag_release(&diag);
}

static void wrong_versions_are_refused(void)
{
    char text[32];
    for (size_t i = 0; i < version_rule_count; i++) {
        const struct version_rule *rule = &version_rules[i];
        CHECK(rule->fault, rule->first_version <= rule->last_version && rule->source[0] != '\0');
        if (rule->effect != VERSION_REFUSED || !is_built_with((enum nvidia_library)rule->library))
            continue;
        CHECK_INT(rule->fault,
                  version_find_rule((enum nvidia_library)rule->library, VERSION_REFUSED,
                                    rule->first_version) == rule,
                  true);
        check_version(rule, rule->first_version);
        check_version(rule, rule->last_version);
        check_version(rule, rule->last_version + 1);
    }
    version_print(NVIDIA_CUDNN, 91900, text, sizeof text);
    CHECK_TEXT("cuDNN 9", text, "9.19.0");
    version_print(NVIDIA_CUDNN, 8907, text, sizeof text);
    CHECK_TEXT("cuDNN 8", text, "8.9.7");
    version_print(NVIDIA_CUPTI, 26, text, sizeof text);
    CHECK_TEXT("CUPTI of CUDA 12", text, "API 26");
}

#ifdef HAVE_CUDNN
/* Checks which library computes a tile of attention, and the reason given. */
static void check_way(const char *label, int version, struct work work, const char *wanted)
{
    static float memory[1024];
    struct diag diag = {0};
    struct call call = {.work = &work, .op = 7, .read_count = 3, .write_count = 2};
    char text[1024];
    if (work.kind == WORK_ATTENTION_BACKWARD) {
        call.read_count = 6;
        call.write_count = 3;
    }
    for (uint32_t k = 0; k < CALL_OPERANDS_MAX; k++)
        call.read[k] = call.write[k] = (struct operand){memory, 1, DTYPE_BF16};
    emulator_versions.cudnn = version;
    struct products *products = products_new(cublaslt_open(&diag), &diag);
    struct attentions *all = attentions_new(products, EXEC_ATTENTION_AUTO, &diag);
    CHECK(label, attention_new(all, &call, NULL, &diag) != NULL);
    CHECK_INT(label, attentions_build(all, &diag), STATUS_OK);
    attentions_describe(all, text, sizeof text);
    CHECK_TEXT(label, text, wanted);
    attentions_free(all);
    products_free(products);
    emulator_versions.cudnn = CUDNN_VERSION;
    diag_release(&diag);
}

static void cudnn_is_asked_for_what_it_does_right(void)
{
    const struct work forward = {.kind = WORK_ATTENTION,
                                 .attention = {96, 96, 4, 2, 64, MASK_CAUSAL, 0, 0}};
    struct work backward = forward, whole = forward, one = forward;
    backward.kind = whole.kind = one.kind = WORK_ATTENTION_BACKWARD;
    whole.attention.kv = whole.attention.q = 256;
    one.attention.kv = one.attention.q = 1;
    check_way("9.15.0, forward", 91500, forward, "cudnn");
    check_way(
        "9.15.0, backward of 96 keys", 91500, backward,
        "tiles (op 7: touches memory that is not its own in attention's backward when the keys "
        "are no multiple of 128)");
    check_way("9.15.0, backward of 256 keys", 91500, whole, "cudnn");
    check_way("9.15.1, backward of 96 keys", 91501, backward, "cudnn");
    check_way("one query and one key", 91900, one,
              "tiles (op 7: cuDNN has no backward of one query and one key)");
    check_way("9.5.1", 90501, forward,
              "tiles (cuDNN: version 9.5.1 cannot be used: it adds attention's dQ to whatever is "
              "in its workspace "
              "(github.com/NVIDIA/cudnn-frontend, include/cudnn_frontend/node/"
              "scaled_dot_product_flash_attention.h); use 9.10.2 or later)");
}
#endif

static const struct check_case cases[] = {
    {"streams have queues of their own", streams_have_queues_of_their_own},
    {"wrong versions are refused", wrong_versions_are_refused},
#ifdef HAVE_CUDNN
    {"cuDNN is asked for what it does right", cudnn_is_asked_for_what_it_does_right},
#endif
    {"work on another device is refused", work_on_another_device_is_refused},
    {"products of 16 bits are added up in fp32", products_of_16_bits_are_added_up_in_fp32},
    {"what has no kernel is refused", what_has_no_kernel_is_refused},
    {"scratch is that of the rank with the most rows",
     scratch_is_that_of_the_rank_with_the_most_rows},
    {"products of 8 bits have scales", products_of_8_bits_have_scales},
    {"products of 8 bits have scales of blocks", products_of_8_bits_have_scales_of_blocks},
    {"scales of blocks are refused where there are none",
     scales_of_blocks_are_refused_where_there_are_none},
    {"products of 8 bits run or are refused", products_of_8_bits_run_or_are_refused},
    {"parts of masks see what the masks show", parts_of_masks_see_what_the_masks_show},
    {"what cannot be is said", what_cannot_be_is_said},
#ifdef HAVE_CUDNN
    {"fused attention refuses windows of documents, sums, and odd heads", fused_attention_refuses},
    {"kernels are loaded before others keep the device",
     kernels_are_loaded_before_others_keep_the_device},
#endif
    {"every kind computes what the processor does", every_kind_computes_what_the_processor_does},
    {"attention computes what the processor does", attention_computes_what_the_processor_does},
    {"schedules compute the reference", schedules_compute_the_reference},
    {"broken schedules are found", broken_schedules_are_found},
    {"work is timed in company", work_is_timed_in_company},
    {"16 bits stay within their tolerance", sixteen_bits_stay_within_their_tolerance},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = mutation_backend = hand_backend = "cuda";
    return check_run("cuda emulated", cases, ARRAY_LEN(cases), argc, argv);
}
