/* tests/exec/test_cuda_emulated_products.c: products of the CUDA backend in 16 and in 8 bits by the emulated cuBLASLt:
 * what they compute, where their scales lie, and what is refused. */
#include "exec/cuda/cuda.h"
#include "exec/number.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/emulator/order.h"
#include "tests/exec/hand.h"

#include <math.h>

/* ---- a product by itself ---- */

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
            number_write_element(b, DTYPE_BF16, (uint64_t)k, 1);
        for (size_t i = 0; i < ARRAY_LEN(terms); i++)
            number_write_element(a, DTYPE_BF16, (uint64_t)terms[i].at, terms[i].value);
        struct products *products = products_new(cublaslt_open(&diag), &diag);
        const struct product *product = products_plan(products, &shape, &diag);
        CU_ASSERT_PTR_NOT_NULL_FATAL(product);
        CHECK_INT("run",
                  product_run(products, product, 1, a, b, NULL, &y, &y, NULL, &workspace, NULL), 0);
        emulator_device_synchronize();
        CHECK_CLOSE(dtype_name(dtypes[d]), number_read_element(&y, dtypes[d], 0), 1.0 / 512, 0);
        products_free(products);
        diag_release(&diag);
    }
}

/* Returns the shape of a product (m, k) x (n, k)^T of 8-bit factors, b in E4M3. */
static struct product_shape shape_of_scaled_product(int64_t m, int64_t n, int64_t k,
                                                    enum dtype a_type, enum scaling scaling)
{
    return (struct product_shape){.m = m,
                                  .n = n,
                                  .k = k,
                                  .a_stride = k,
                                  .b_stride = k,
                                  .y_stride = n,
                                  .form = MATMUL_NT,
                                  .a_type = (uint8_t)a_type,
                                  .b_type = DTYPE_E4M3,
                                  .y_type = DTYPE_F32,
                                  .has_scales = 1,
                                  .scaling = (uint8_t)scaling};
}

/* 8-bit factors of different types, each with a scale. The library refuses what it cannot multiply, with a message. */
static void products_of_8_bits_have_scales(void)
{
    enum { M = 16, N = 32, K = 48 };
    struct product_shape shape = shape_of_scaled_product(M, N, K, DTYPE_E5M2, SCALING_TENSOR);
    uint8_t a[M * K], b[N * K];
    float y[M * N], workspace = 0;
    const float scale_a = 0.5f, scale_b = 3;
    struct diag diag = {0};
    for (int i = 0; i < M * K; i++)
        number_write_element(a, DTYPE_E5M2, (uint64_t)i, i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        number_write_element(b, DTYPE_E4M3, (uint64_t)i, i % 5 - 1.5);
    struct products *products = products_new(cublaslt_open(&diag), &diag);
    const struct product *product = products_plan(products, &shape, &diag);
    CU_ASSERT_PTR_NOT_NULL_FATAL(product);
    CHECK_INT("scales", product_set_scales(products, product, &scale_a, &scale_b), 0);
    CHECK_INT("run", product_run(products, product, 1, a, b, NULL, y, y, NULL, &workspace, NULL),
              0);
    emulator_device_synchronize();
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
        number_write_element(a, DTYPE_E4M3, (uint64_t)i, i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        number_write_element(b, DTYPE_E4M3, (uint64_t)i, i % 5 - 1.5);
    for (int i = 0; i < M * ALONG; i++)
        scale_a[i] = 1 + (float)i / 8;
    for (int i = 0; i < N * ALONG; i++)
        scale_b[i] = 2 - (float)i / 512;
    for (int rows = 1; rows <= CUDA_SCALE_BLOCK; rows += CUDA_SCALE_BLOCK - 1) {
        struct diag diag = {0};
        struct product_shape shape = shape_of_scaled_product(
            M, N, K, DTYPE_E4M3, rows == 1 ? SCALING_VECTOR : SCALING_BLOCK);
        struct products *products = products_new(cublaslt_open(&diag), &diag);
        const struct product *product = products_plan(products, &shape, &diag);
        CU_ASSERT_PTR_NOT_NULL_FATAL(product);
        CHECK("room for scales", cuda_laid_out_scale_count(M, K, 1) <= ARRAY_LEN(laid_a) &&
                                     cuda_laid_out_scale_count(N, K, rows) <= ARRAY_LEN(laid_b));
        CHECK_INT("scales of a", cuda_lay_out_scales(laid_a, scale_a, M, K, 1, NULL), 0);
        CHECK_INT("scales of b", cuda_lay_out_scales(laid_b, scale_b, N, K, rows, NULL), 0);
        CHECK_INT("scales", product_set_scales(products, product, laid_a, laid_b), 0);
        CHECK_INT("run",
                  product_run(products, product, 1, a, b, NULL, y, y, NULL, &workspace, NULL), 0);
        emulator_device_synchronize();
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

/* ---- casts and products of a schedule ---- */

enum { STEP_M = 16, STEP_N = 32, STEP_K = 144 }; /* k has a whole block of 128 and a part of one */

/* Returns element i of x and of w. The largest number differs between rows and between blocks of k. E4M3 holds every
 * number exactly, because all scales are powers of two: the largest number of a block is 3.5 times such a power, and
 * the largest of the type is 448 = 128 x 3.5. */
static double matmul_input_element(uint64_t i)
{
    const uint64_t row = i / STEP_K, block = i % STEP_K / 128;
    return ldexp((double)(i % 8) / 2, (int)(row % 3 + block));
}

static enum status fill_matmul_inputs(void *user, const struct exec_buffer *buffer,
                                      struct diag *diag)
{
    (void)user;
    (void)diag;
    for (uint64_t i = 0; i < buffer->element_count; i++)
        number_write_element(buffer->data, buffer->dtype, i, matmul_input_element(i));
    return STATUS_OK;
}

/* Checks y, the only buffer of STEP_M x STEP_N elements. */
static enum status check_product(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)diag;
    if (buffer->element_count != STEP_M * STEP_N)
        return STATUS_OK;
    for (uint64_t i = 0; i < STEP_M * STEP_N; i++) {
        double sum = 0;
        for (uint64_t k = 0; k < STEP_K; k++)
            sum += matmul_input_element(i / STEP_N * STEP_K + k) *
                   matmul_input_element(i % STEP_N * STEP_K + k);
        CHECK_CLOSE("y", number_read_element(buffer->data, buffer->dtype, i), sum, 1e-6);
    }
    ++*(uint32_t *)user;
    return STATUS_OK;
}

/* Casts to 8 bits and the product of their results run in a schedule; a scaling that the backend lacks is refused by
 * name before a step. */
static void products_of_8_bits_run_or_are_refused(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh g=1\n"
        "tokens layout=contiguous cp=1 hp=1 seq=1 batch=1 micro_batch=1 dtype=f32\n"
        "stream compute compute\n"
        "tensor x [1,2304]\nbundle x first=x count=1 elements=2304\n"
        "tensor w [1,4608]\nbundle w first=w count=1 elements=4608\n"
        "tensor y [1,512]\nbundle y first=y count=1 elements=512\n"
        "buffer x0 hbm f32 [16,144] activation bind=param bundle=x\n"
        "buffer w0 hbm f32 [32,144] activation bind=param bundle=w\n"
        "buffer y0 hbm f32 [16,32] activation bind=param bundle=y\n"
        "buffer q0 hbm e4m3 [16,144] activation free=2\n"
        "buffer s0 hbm f32 [%d] activation free=2\n"
        "buffer q1 hbm e4m3 [32,144] activation free=2\n"
        "buffer s1 hbm f32 [%d] activation free=2\n"
        "op 0 quantise compute rows=16 cols=144 scaling=%s reads x0 writes q0 s0\n"
        "op 1 quantise compute rows=32 cols=144 scaling=%s reads w0 writes q1 s1\n"
        "op 2 matmul compute m=16 n=32 k=144 scaling=%s reads q0 q1 s0 s1 writes y0\n";
    static const struct {
        const char *of_x, *of_w, *of_product;
        int x_scales, w_scales;
    } rows[] = {
        /* of_x, of_w, of_product, x_scales, w_scales */
        {"tensor amax=1", "tensor amax=1", "tensor", 1, 1},
        {"vector", "vector", "vector", 32, 64},
        {"vector", "block", "block", 32, 2},
    };
    static const char blocks[] =
        "longhaul schedule 1\nmesh g=1\nstream compute compute\n"
        "buffer x0 hbm bf16 [16,64] activation persistent\n"
        "buffer q0 hbm e4m3 [16,64] activation free=0\nbuffer s0 hbm e8m0 [32] activation free=0\n"
        "op 0 quantise compute rows=16 cols=64 scaling=mx reads x0 writes q0 s0\n";
    struct hand h;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char schedule[2048];
        uint32_t looked = 0;
        snprintf(schedule, sizeof schedule, text, rows[i].x_scales, rows[i].w_scales, rows[i].of_x,
                 rows[i].of_w, rows[i].of_product);
        if (hand_load(&h, schedule)) {
            h.io =
                (struct exec_io){&looked, fill_matmul_inputs, check_product, 0, UINT32_MAX, NULL};
            CHECK_INT(rows[i].of_product, hand_run(&h), STATUS_OK);
            CHECK_TEXT(rows[i].of_product, h.diag.text ? h.diag.text : "", "");
            CHECK_INT(rows[i].of_product, looked, 1);
        }
        hand_release(&h);
    }
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

static const struct check_case cases[] = {
    {"products of 16 bits are added up in fp32", products_of_16_bits_are_added_up_in_fp32},
    {"products of 8 bits have scales", products_of_8_bits_have_scales},
    {"products of 8 bits have scales of blocks", products_of_8_bits_have_scales_of_blocks},
    {"products of 8 bits run or are refused", products_of_8_bits_run_or_are_refused},
    {"scales of blocks are refused where there are none",
     scales_of_blocks_are_refused_where_there_are_none},
};

int main(int argc, char **argv)
{
    emulator_use();
    hand_backend = "cuda";
    return check_run("cuda emulated products", cases, ARRAY_LEN(cases), argc, argv);
}
