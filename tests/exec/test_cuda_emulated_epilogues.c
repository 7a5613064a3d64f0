/* tests/exec/test_cuda_emulated_epilogues.c: products whose library call also computes the next op (GELU, or the sums
 * of a bias gradient), norms of sums, and RoPE with the pack beside it. The tests check which ops may be joined, that a
 * step is right with and without joined ops, and what a run reports of them. */
#include "exec/cuda/epilogues.h"
#include "exec/cuda/kernels.h"
#include "exec/number.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/emulator/order.h"
#include "tests/exec/hand.h"
#include "tests/exec/step.h"

/* ---- products and the op after them ---- */

#define HEAD                                                                                       \
    "longhaul schedule 1\nmesh g=1\nstream compute compute\nstream h2d h2d\n"                      \
    "arena hbm=65536\n"                                                                            \
    "buffer x0 hbm bf16 [32,16] activation persistent at=0\n"                                      \
    "buffer w0 hbm bf16 [24,16] activation persistent at=1024\n"                                   \
    "buffer b0 hbm bf16 [24] activation persistent at=2048\n"                                      \
    "buffer up0 hbm bf16 [32,24] activation persistent at=4096\n"                                  \
    "buffer act0 hbm bf16 [32,24] activation persistent at=8192\n"                                 \
    "buffer over0 hbm bf16 [32,24] activation persistent at=512\n"                                 \
    "buffer act1 hbm f32 [32,24] activation persistent at=12288\n"                                 \
    "buffer dw0 hbm f32 [24,16] activation persistent at=20480\n"                                  \
    "buffer db0 hbm f32 [24] activation persistent at=24576\n"                                     \
    "buffer dw1 hbm bf16 [24,16] activation persistent at=28672\n"                                 \
    "buffer db1 hbm bf16 [24] activation persistent at=30720\n"                                    \
    "buffer r0 hbm bf16 [32,16] activation persistent at=32768\n"                                  \
    "buffer r1 hbm bf16 [32,16] activation persistent at=36864\n"                                  \
    "buffer n0 hbm bf16 [32,16] activation persistent at=40960\n"                                  \
    "buffer s0 hbm f32 [64] activation persistent at=45056\n"                                      \
    "buffer g0 hbm bf16 [16] activation persistent at=49152\n"                                     \
    "buffer c0 pinned bf16 [24] activation persistent at=0\n"
#define PRODUCT "op 0 matmul compute m=32 n=24 k=16 epilogue=bias reads x0 w0 b0 writes up0\n"
#define OP_WEIGHT_GRADIENT "op 0 matmul compute m=24 n=16 k=32 form=tn reads up0 x0 writes dw0\n"
#define GELU "op 1 gelu compute rows=32 cols=24 reads up0 writes act0\n"
#define SUM "op 1 column_sum compute rows=32 cols=24 reads up0 writes db0\n"

static const struct {
    const char *label, *ops;
    enum product_epilogue want;
} pairs[] = {
    {"GELU of a product", PRODUCT GELU, PRODUCT_GELU},
    {"and without a bias", "op 0 matmul compute m=32 n=24 k=16 reads x0 w0 writes up0\n" GELU,
     PRODUCT_GELU},
    {"another function",
     PRODUCT "op 1 gelu compute rows=32 cols=24 function=relu2 reads up0 writes act0\n",
     PRODUCT_NO_EPILOGUE},
    {"into another type", PRODUCT "op 1 gelu compute rows=32 cols=24 reads up0 writes act1\n",
     PRODUCT_NO_EPILOGUE},
    {"of half of the result",
     PRODUCT "op 1 gelu compute rows=16 cols=24 reads up0[0:384] writes act0[0:384]\n",
     PRODUCT_NO_EPILOGUE},
    {"of something else", PRODUCT "op 1 gelu compute rows=32 cols=24 reads act0 writes up0\n",
     PRODUCT_NO_EPILOGUE},
    {"over a factor, which the product still reads",
     PRODUCT "op 1 gelu compute rows=32 cols=24 reads up0 writes over0\n", PRODUCT_NO_EPILOGUE},
    {"over its own input", PRODUCT "op 1 gelu compute rows=32 cols=24 reads up0 writes up0\n",
     PRODUCT_NO_EPILOGUE},
    {"after an op of another stream",
     "op 0 h2d h2d bytes=48 reads c0 writes b0\n"
     "op 1 matmul compute m=32 n=24 k=16 reads x0 w0 writes up0\n"
     "op 2 gelu compute rows=32 cols=24 reads up0 writes act0 waits 0\n",
     PRODUCT_NO_EPILOGUE},
    {"one that the product waits for",
     "op 0 h2d h2d bytes=48 reads c0 writes b0\n"
     "op 1 matmul compute m=32 n=24 k=16 epilogue=bias reads x0 w0 b0 writes up0 waits 0\n"
     "op 2 gelu compute rows=32 cols=24 reads up0 writes act0\n",
     PRODUCT_GELU},
    {"another op between",
     PRODUCT "op 1 h2d h2d bytes=48 reads c0 writes b0\n"
             "op 2 gelu compute rows=32 cols=24 reads up0 writes act0\n",
     PRODUCT_NO_EPILOGUE},
    {"a sum that is added to",
     "op 0 matmul compute m=32 n=24 k=16 accumulate=1 reads x0 w0 up0 writes up0\n" GELU,
     PRODUCT_NO_EPILOGUE},
    {"gradient of a bias", OP_WEIGHT_GRADIENT SUM, PRODUCT_COLUMN_SUM},
    {"and added to one before",
     OP_WEIGHT_GRADIENT
     "op 1 column_sum compute rows=32 cols=24 accumulate=1 reads up0 db0 writes db0\n",
     PRODUCT_COLUMN_SUM},
    {"in 16 bits",
     "op 0 matmul compute m=24 n=16 k=32 form=tn reads up0 x0 writes dw1\n"
     "op 1 column_sum compute rows=32 cols=24 reads up0 writes db1\n",
     PRODUCT_COLUMN_SUM},
    {"added up in 16 bits, which would round twice",
     "op 0 matmul compute m=24 n=16 k=32 form=tn reads up0 x0 writes dw1\n"
     "op 1 column_sum compute rows=32 cols=24 accumulate=1 reads up0 db1 writes db1\n",
     PRODUCT_NO_EPILOGUE},
    {"of another type than the weight's",
     OP_WEIGHT_GRADIENT "op 1 column_sum compute rows=32 cols=24 reads up0 writes db1\n",
     PRODUCT_NO_EPILOGUE},
    {"of the other factor",
     OP_WEIGHT_GRADIENT "op 1 column_sum compute rows=32 cols=16 reads x0 writes db0[0:16]\n",
     PRODUCT_NO_EPILOGUE},
    {"of a forward's factor", "op 0 matmul compute m=32 n=16 k=24 reads up0 w0 writes x0\n" SUM,
     PRODUCT_NO_EPILOGUE},
    {"of each group",
     "op 0 matmul compute m=24 n=16 k=32 form=tn groups=2 reads up0 x0 writes act0[0:768]\n" SUM,
     PRODUCT_NO_EPILOGUE},
    {"the last op", PRODUCT, PRODUCT_NO_EPILOGUE},
};

static void adjacent_ops_are_joined_if_no_wait_separates_them(void)
{
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        char text[4096];
        struct ir ir = {0};
        struct diag diag = {0};
        snprintf(text, sizeof text, "%s%s", HEAD, pairs[i].ops);
        if (CHECK_INT(pairs[i].label, ir_parse(&ir, "pair.ir", text, strlen(text), &diag),
                      STATUS_OK)) {
            uint32_t product = 0;
            while (ir.op.kind[product] != WORK_MATMUL)
                product++;
            CHECK_INT(pairs[i].label, epilogue_for_product(&ir, product), pairs[i].want);
        } else {
            fputs(diag.text, stderr);
        }
        ir_release(&ir);
        diag_release(&diag);
    }
}

/* ---- norms of sums ---- */

#define OP_ADD_TWO_TENSORS "op 0 add compute count=512 reads x0 r0 writes r1\n"

static const struct {
    const char *label, *ops;
    bool is_joined;
} norms[] = {
    {"RMS norm of a sum",
     OP_ADD_TWO_TENSORS "op 1 rmsnorm compute rows=32 cols=16 reads r1 g0 writes n0 s0[0:32]\n",
     true},
    {"layer norm of a sum in place",
     "op 0 add compute count=512 reads x0 r0 writes r0\n"
     "op 1 layernorm compute rows=32 cols=16 reads r0 g0 g0 writes n0 s0\n",
     true},
    {"a norm of a term",
     OP_ADD_TWO_TENSORS "op 1 rmsnorm compute rows=32 cols=16 reads r0 g0 writes n0 s0[0:32]\n",
     false},
    {"over a whole term",
     OP_ADD_TWO_TENSORS "op 1 rmsnorm compute rows=32 cols=16 reads r1 g0 writes x0 s0[0:32]\n",
     true},
    {"over half of a term",
     "op 0 add compute count=512 reads over0[0:512] r0 writes r1\n"
     "op 1 rmsnorm compute rows=32 cols=16 reads r1 g0 writes x0 s0[0:32]\n",
     false},
    {"over the sum",
     OP_ADD_TWO_TENSORS "op 1 rmsnorm compute rows=32 cols=16 reads r1 g0 writes r1 s0[0:32]\n",
     false},
    {"a sum with a bias",
     "op 0 add compute count=512 cols=16 reads x0 r0 g0 writes r1\n"
     "op 1 rmsnorm compute rows=32 cols=16 reads r1 g0 writes n0 s0[0:32]\n",
     false},
    {"after a copy",
     "op 0 h2d h2d bytes=32 reads c0[0:16] writes g0\n"
     "op 1 add compute count=512 reads x0 r0 writes r1\n"
     "op 2 rmsnorm compute rows=32 cols=16 reads r1 g0 writes n0 s0[0:32] waits 0\n",
     false},
    {"of another type",
     "op 0 add compute count=512 reads dw0[0:384] dw0[0:384] writes act1[0:384]\n"
     "op 1 rmsnorm compute rows=24 cols=16 reads act1[0:384] db0[0:16] writes dw0 s0[0:24]\n",
     false},
};

static void norms_are_joined_to_sums(void)
{
    for (size_t i = 0; i < ARRAY_LEN(norms); i++) {
        char text[4096];
        struct ir ir = {0};
        struct diag diag = {0};
        snprintf(text, sizeof text, "%s%s", HEAD, norms[i].ops);
        if (CHECK_INT(norms[i].label, ir_parse(&ir, "norm.ir", text, strlen(text), &diag),
                      STATUS_OK)) {
            uint32_t sum = 0;
            while (ir.op.kind[sum] != WORK_ADD)
                sum++;
            CHECK_INT(norms[i].label, epilogue_addition_can_compute_norm(&ir, sum),
                      norms[i].is_joined);
        } else {
            fputs(diag.text, stderr);
        }
        ir_release(&ir);
        diag_release(&diag);
    }
}

/* One kernel for a sum and its norm gives the same bits as two kernels, for rows that a block reads by eight elements,
 * for others, and for the longest that it takes. */
static void sums_and_norms_have_the_same_bits_as_apart(void)
{
    enum { ROWS = 3, MOST = ROWS * CUDA_ADD_NORM_COLS_MAX };
    static _Alignas(16) uint16_t a[MOST], b[MOST], weight[MOST], bias[MOST], sum[2][MOST],
        y[3][MOST];
    static const int64_t cols[] = {1, 8, 77, 1000, 4096, CUDA_ADD_NORM_COLS_MAX};
    struct check_random random = {5};
    for (size_t i = 0; i < MOST; i++) {
        uint16_t *const to[] = {&a[i], &b[i], &weight[i], &bias[i]};
        for (size_t k = 0; k < ARRAY_LEN(to); k++)
            number_write_element(to[k], DTYPE_BF16, 0,
                                 1e-3 * (double)check_random_i64(&random, -3000, 3000));
    }
    for (size_t i = 0; i < 2 * ARRAY_LEN(cols); i++) {
        const int64_t n = cols[i / 2];
        const bool centred = i % 2 == 1;
        static float stats[2][2 * ROWS];
        const struct cuda_array terms[] = {{a, CUDA_BF16}, {b, CUDA_BF16}}, w = {weight, CUDA_BF16},
                                shift = {bias, CUDA_BF16};
        struct cuda_array sums[] = {{sum[0], CUDA_BF16}, {sum[1], CUDA_BF16}},
                          ys[] = {{y[0], CUDA_BF16}, {y[1], CUDA_BF16}};
        memset(sum, 0xff, sizeof sum);
        memset(y, 0xff, sizeof y);
        memset(stats, 0, sizeof stats);
        CHECK_INT("add", cuda_add(sums[0], terms[0], terms[1], ROWS * n, NULL), 0);
        emulator_device_synchronize();
        CHECK_INT("norm",
                  centred ? cuda_layernorm(ys[0], stats[0], sums[0], w, shift, ROWS, n, 1e-5, NULL)
                          : cuda_rmsnorm(ys[0], stats[0], sums[0], w, ROWS, n, 1e-5, NULL),
                  0);
        const struct cuda_add_norm one = {ys[1],    sums[1], terms[0], terms[1], w,      shift,
                                          stats[1], ROWS,    n,        1e-5,     centred};
        CHECK_INT("one kernel", cuda_add_norm(&one, NULL), 0);
        emulator_device_synchronize();
        struct cuda_add_norm over = one;
        over.y = over.b = (struct cuda_array){y[2], CUDA_BF16};
        memcpy(y[2], b, sizeof b);
        CHECK_INT("over a term", cuda_add_norm(&over, NULL), 0);
        emulator_device_synchronize();
        CHECK("over a term", memcmp(y[2], y[1], (size_t)(ROWS * n) * sizeof y[0][0]) == 0);
        CHECK("sums", memcmp(sum[0], sum[1], sizeof sum[0]) == 0);
        CHECK("norms", memcmp(y[0], y[1], sizeof y[0]) == 0);
        CHECK("statistics", memcmp(stats[0], stats[1], sizeof stats[0]) == 0);
    }
}

/* ---- RoPE and packs ---- */

#define ROTATION_HEAD                                                                              \
    "longhaul schedule 1\nmesh g=1\nstream compute compute\nstream h2d h2d\n"                      \
    "arena hbm=65536\n"                                                                            \
    "buffer p0 hbm i32 [8] activation persistent at=0\n"                                           \
    "buffer x0 hbm bf16 [8,80] activation persistent at=1024\n"                                    \
    "buffer r0 hbm bf16 [8,80] activation %s at=4096\n"                                            \
    "buffer q0 hbm bf16 [8,32] activation persistent at=8192\n"                                    \
    "buffer k0 hbm bf16 [8,16] activation persistent at=9216\n"                                    \
    "buffer v0 hbm bf16 [8,32] activation persistent at=10240\n"                                   \
    "buffer big0 hbm bf16 [8,48] activation persistent at=16384\n"                                 \
    "buffer over0 hbm bf16 [8,32] activation persistent at=1536\n"                                 \
    "buffer q1 hbm bf16 [8,32] activation %s at=12288\n"                                           \
    "buffer k1 hbm bf16 [8,16] activation %s at=13312\n"
#define OPS_ROPE_THEN_PACK                                                                         \
    "op 0 rope compute rows=8 heads=3 dim=16 stride=80 reads x0 p0 writes r0\n"                    \
    "op 1 pack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads r0 writes q0 k0 v0\n"
#define OPS_UNPACK_THEN_ROPE                                                                       \
    "op 0 unpack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads q0 k0 v0 writes r0\n"              \
    "op 1 rope_backward compute rows=8 heads=3 dim=16 stride=80 reads r0 p0 writes x0\n"
#define OPS_PACK_THEN_ROPES                                                                        \
    "op 0 pack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads x0 writes q1 k1 v0\n"                \
    "op 1 rope compute rows=8 heads=2 dim=16 reads q1 p0 writes q0\n"                              \
    "op 2 rope compute rows=8 heads=1 dim=16 reads k1 p0 writes k0\n"
#define OPS_ROPES_THEN_UNPACK                                                                      \
    "op 0 rope_backward compute rows=8 heads=1 dim=16 reads k0 p0 writes k1\n"                     \
    "op 1 rope_backward compute rows=8 heads=2 dim=16 reads q0 p0 writes q1\n"                     \
    "op 2 unpack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads q1 k1 v0 writes x0\n"

static const struct {
    const char *label, *r_free, *q_free, *k_free, *ops;
    uint32_t op_count; /* ops that one kernel computes; 0: each has its own */
} rotations[] = {
    /* label, r_free, q_free, k_free, ops, op_count */
    {"rope, pack", "free=1", "persistent", "persistent", OPS_ROPE_THEN_PACK, 2},
    {"unpack, rope back", "free=1", "persistent", "persistent", OPS_UNPACK_THEN_ROPE, 2},
    {"pack, ropes", "persistent", "free=1", "free=2", OPS_PACK_THEN_ROPES, 3},
    {"ropes back, unpack", "persistent", "free=2", "free=2", OPS_ROPES_THEN_UNPACK, 3},
    {"what is between is kept", "persistent", "persistent", "persistent", OPS_ROPE_THEN_PACK, 0},
    {"the keys between are kept", "persistent", "free=1", "persistent", OPS_PACK_THEN_ROPES, 0},
    {"a head over two parts", "free=1", "persistent", "persistent",
     "op 0 rope compute rows=8 heads=3 dim=16 stride=80 reads x0 p0 writes r0\n"
     "op 1 pack compute rows=8 parts=2 w0=24 w1=16 reads r0 writes big0 q0\n",
     0},
    {"rotated heads of two parts", "free=1", "persistent", "persistent",
     "op 0 rope compute rows=8 heads=3 dim=16 stride=80 reads x0 p0 writes r0\n"
     "op 1 pack compute rows=8 parts=2 w0=16 w1=16 w2=8 reads r0 writes q0 v0 k0\n",
     2},
    {"over what is read", "free=1", "persistent", "persistent",
     "op 0 rope compute rows=8 heads=3 dim=16 stride=80 reads x0 p0 writes r0\n"
     "op 1 pack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads r0 writes over0 k0 v0\n",
     0},
    {"pairs that are no groups of eight", "free=1", "persistent", "persistent",
     "op 0 rope compute rows=8 heads=6 dim=8 stride=80 reads x0 p0 writes r0\n"
     "op 1 pack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads r0 writes q0 k0 v0\n",
     0},
    {"a pack of something else", "free=0", "persistent", "persistent",
     "op 0 rope compute rows=8 heads=3 dim=16 stride=80 reads x0 p0 writes r0\n"
     "op 1 pack compute rows=8 parts=1 w0=32 w1=16 w2=32 reads x0 writes q0 k0 v0\n",
     0},
};

static void rotations_are_joined_to_packs(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rotations); i++) {
        char text[4096];
        struct ir ir = {0};
        struct diag diag = {0};
        struct epilogue_rotated_pack found;
        const int head = snprintf(text, sizeof text, ROTATION_HEAD, rotations[i].r_free,
                                  rotations[i].q_free, rotations[i].k_free);
        snprintf(text + head, sizeof text - (size_t)head, "%s", rotations[i].ops);
        if (CHECK_INT(rotations[i].label, ir_parse(&ir, "turn.ir", text, strlen(text), &diag),
                      STATUS_OK)) {
            const bool is_found = epilogue_find_rotated_pack(&ir, 0, &found);
            CHECK_INT(rotations[i].label, is_found ? found.op_count : 0, rotations[i].op_count);
        } else {
            fputs(diag.text, stderr);
        }
        ir_release(&ir);
        diag_release(&diag);
    }
}

/* Packs of three blocks with w columns for each of `parts` ranks. The first heads x dim columns of a whole row are
 * heads, of which RoPE turns the last `rotated` columns. */
static const struct {
    const char *label;
    uint8_t dtype;
    int64_t parts, w[3], heads, dim, rotated;
} turned[] = {
    /* label, dtype, parts, w, heads, dim, rotated */
    {"two ranks", CUDA_BF16, 2, {16, 16, 16}, 4, 16, 16},
    {"one block", CUDA_BF16, 3, {32, 0, 0}, 6, 16, 16},
    {"half of each head", CUDA_F16, 1, {64, 32, 32}, 3, 32, 16},
    {"fp32", CUDA_F32, 2, {32, 16, 24}, 6, 16, 16},
    {"long heads", CUDA_BF16, 1, {512, 512, 8}, 2, 512, 512},
};

static void rotated_packs_have_the_same_bits_as_apart(void)
{
    enum { ROWS = 5, MOST = ROWS * 1100 };
    static _Alignas(16) float whole[2][MOST], between[MOST], block[2][MOST];
    static const int32_t position[ROWS] = {0, 1, 77, 100000, 2000000};
    struct check_random random = {7};
    for (size_t i = 0; i < ARRAY_LEN(turned); i++) {
        const int64_t cols = turned[i].parts * (turned[i].w[0] + turned[i].w[1] + turned[i].w[2]);
        const uint8_t dtype = turned[i].dtype;
        const size_t element = dtype == CUDA_F32 ? 4 : 2;
        struct cuda_rotated_pack r = {
            .pack = {.rows = ROWS, .parts = turned[i].parts, .element_bytes = (int)element},
            .dtype = dtype,
            .position = position,
            .rope_shape = {ROWS, turned[i].heads, turned[i].dim, turned[i].rotated, cols, 10000, 1},
        };
        memcpy(r.pack.block_cols, turned[i].w, sizeof turned[i].w);
        for (int64_t k = 0; k < ROWS * cols; k++)
            number_write_element(whole[0], dtype, (size_t)k,
                                 1e-3 * (double)check_random_i64(&random, -3000, 3000));
        for (int way = 0; way < 2; way++) { /* apart, and in one kernel */
            char *next = (char *)block[way];
            memset(block[way], 0xff, sizeof block[way]);
            for (int b = 0; b < 3; b++) {
                r.pack.block[b] = next;
                next += ROWS * turned[i].parts * turned[i].w[b] * (int64_t)element;
            }
            r.pack.whole = way == 0 ? between : whole[0];
            if (way == 0) {
                CHECK_INT("rope",
                          cuda_rope((struct cuda_array){between, dtype},
                                    (struct cuda_array){whole[0], dtype}, position, r.rope_shape,
                                    NULL),
                          0);
                CHECK_INT("pack", cuda_pack(&r.pack, NULL), 0);
            } else {
                CHECK_INT("one kernel", cuda_rotated_pack(&r, true, NULL), 0);
            }
            emulator_device_synchronize();
        }
        CHECK(turned[i].label, memcmp(block[0], block[1], sizeof block[0]) == 0);
        r.rope_shape.rotation_sign = -1;
        memset(whole, 0xff, sizeof whole);
        r.pack.whole = between;
        CHECK_INT("unpack", cuda_unpack(&r.pack, NULL), 0);
        CHECK_INT("rope back",
                  cuda_rope((struct cuda_array){whole[0], dtype},
                            (struct cuda_array){between, dtype}, position, r.rope_shape, NULL),
                  0);
        r.pack.whole = whole[1];
        CHECK_INT("one kernel", cuda_rotated_pack(&r, false, NULL), 0);
        emulator_device_synchronize();
        CHECK(turned[i].label, memcmp(whole[0], whole[1], sizeof whole[0]) == 0);
    }
}

/* ---- whole steps ---- */

/* The model of make_wide_llama(). */
static struct transformer wide_llama;

/* Makes wide_llama: small_llama with heads of 16 columns, whose halves are groups of eight, as a rotated pack needs. */
static void make_wide_llama(void)
{
    wide_llama = small_llama;
    wide_llama.layers = 2;
    wide_llama.hidden = 64;
    wide_llama.head_dim = 16;
    wide_llama.ffn = 48; /* moves buffers; ops are not joined if certain buffers overlap */
}

struct epilogue_step_row {
    const char *label, *strategy, *profile, *by_products;
    enum dtype dtype;
    int64_t ranks, batch;
    int activations; /* enum activations_choice; -1: the strategy's */
    double tolerance;
    const struct transformer *model; /* NULL: small_gpt */
};

/* Some ops are not joined: a column sum that is added to values in 16 bits; with tensor ranks the sum for a bias after
 * a scatter, which is over other rows than the product's, and a GELU of 12 columns, which is no multiple of 8. FPDT
 * adds up gradients of pieces by separate ops, and some of its GELUs wait for copies. */
static const struct epilogue_step_row steps[] = {
    {"one rank", "local", "neutral",
     "gelu 4 of 4, column_sum 8 of 8, norms 0 of 9, rotations 0 of 0", DTYPE_F32, 1, 1, -1, 2e-4,
     NULL},
    {"bf16", "local", "neutral", "gelu 4 of 4, column_sum 8 of 8, norms 7 of 9, rotations 0 of 0",
     DTYPE_BF16, 1, 1, -1, 4e-2, NULL},
    {"bf16 gradients", "local", "internevo",
     "gelu 12 of 12, column_sum 8 of 24, norms 21 of 27, rotations 0 of 0", DTYPE_BF16, 1, 3, -1,
     4e-2, NULL},
    {"three micro-batches", "local", "neutral",
     "gelu 12 of 12, column_sum 24 of 24, norms 0 of 27, rotations 0 of 0", DTYPE_F32, 1, 3, -1,
     2e-4, NULL},
    {"sharded", "ulysses", "deepspeed",
     "gelu 4 of 4, column_sum 8 of 8, norms 0 of 9, rotations 0 of 0", DTYPE_F32, 2, 1, -1, 2e-4,
     NULL},
    {"tensor ranks", "megatron-sp", "megatron",
     "gelu 0 of 4, column_sum 4 of 8, norms 0 of 9, rotations 0 of 0", DTYPE_F32, 2, 1, -1, 2e-4,
     NULL},
    {"chunks", "fpdt", "deepspeed",
     "gelu 10 of 12, column_sum 2 of 12, norms 0 of 9, rotations 0 of 0", DTYPE_F32, 2, 1, -1, 2e-4,
     NULL},
    {"rotations", "local", "neutral",
     "gelu 0 of 0, column_sum 0 of 0, norms 0 of 9, rotations 4 of 12", DTYPE_F32, 1, 1, -1, 2e-4,
     &wide_llama},
    {"rotations of a ring", "ring", "neutral",
     "gelu 0 of 0, column_sum 0 of 0, norms 0 of 9, rotations 2 of 6", DTYPE_F32, 2, 1, -1, 2e-4,
     &wide_llama},
    {"in bf16", "ring", "neutral", "gelu 0 of 0, column_sum 0 of 0, norms 4 of 9, rotations 6 of 6",
     DTYPE_BF16, 2, 1, -1, 4e-2, &wide_llama},
    {"of pieces", "upipe", "neutral",
     "gelu 0 of 0, column_sum 0 of 0, norms 0 of 9, rotations 10 of 24", DTYPE_F32, 2, 1, -1, 2e-4,
     &wide_llama},
};

#define NOTE_OF_MISSING_ALGORITHM(what, count)                                                     \
    "epilogues: note: cuBLASLt computes " what " with " count                                      \
    " products; for the others it has no algorithm, and a kernel of its own computes it\n"

/* True if the kernel of an op before computes this one, as a part of a rotated pack. */
static bool is_computed_by_rotated_pack(const struct ir *ir, uint32_t op)
{
    struct epilogue_rotated_pack found;
    for (uint32_t first = op > 2 ? op - 2 : 0; first < op; first++)
        if (epilogue_find_rotated_pack(ir, first, &found) && first + found.op_count > op)
            return true;
    return false;
}

/* Checks that ops which are computed with the op before them start and end when it ends. Returns how many there are,
 * with the later ops of rotated packs. */
static uint32_t check_joined_op_times(const char *label, const struct executed_step *step)
{
    const struct trace_ops *ops = &step->result.trace.ops;
    uint32_t count = 0;
    for (size_t i = 0; i < ops->count; i++) {
        const uint32_t op = ops->op[i];
        const bool sum = op > 0 && step->ir.op.kind[op - 1] == WORK_ADD;
        count += is_computed_by_rotated_pack(&step->ir, op) && ops->start_s[i] == ops->end_s[i];
        if (op == 0 || !(sum ? epilogue_addition_can_compute_norm(&step->ir, op - 1)
                             : epilogue_for_product(&step->ir, op - 1) != PRODUCT_NO_EPILOGUE))
            continue;
        for (size_t k = 0; k < ops->count; k++)
            if (ops->rank[k] == ops->rank[i] && ops->op[k] == op - 1) {
                CHECK(label, ops->start_s[i] == ops->end_s[i] && ops->end_s[i] == ops->end_s[k]);
                count++;
            }
    }
    return count;
}

static void run_step_with_epilogues(const struct epilogue_step_row *row, bool fused,
                                    const char *by_products, const char *notes)
{
    struct executed_step step;
    struct diag noted = {0};
    struct request request = step_request(row->model ? row->model : &small_gpt, row->ranks, 16);
    request.strategy = row->strategy;
    request.profile = row->profile;
    request.dtype = (int)row->dtype;
    request.activations = row->activations;
    request.global_batch = row->batch;
    if (step_make(&step, row->label, &request)) {
        step.options.backend = "cuda";
        step.options.uses_epilogues = fused;
        step.options.records_trace = true;
        step.options.attention = EXEC_ATTENTION_TILES;
        step.options.notes = &noted;
        step_check_against_reference(&step, row->label, row->tolerance);
        const char *said = trace_get_key(&step.result.trace, "joined_ops");
        CHECK_TEXT(row->label, said ? said : "", by_products);
        CHECK_TEXT(row->label, noted.text ? noted.text : "", notes);
        if (fused && notes[0] == '\0')
            CHECK(row->label, check_joined_op_times(row->label, &step) > 0);
    }
    step_release(&step);
    diag_release(&noted);
}

static void steps_are_right_with_epilogues_and_without(void)
{
    make_wide_llama();
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const bool narrow = strcmp(steps[i].label, "tensor ranks") == 0;
        run_step_with_epilogues(&steps[i], true, steps[i].by_products,
                                narrow ? NOTE_OF_MISSING_ALGORITHM("GELU", "0 of 4") : "");
        run_step_with_epilogues(&steps[i], false, "", "");
    }
}

static void epilogues_without_an_algorithm_run_as_kernels(void)
{
    emulator_epilogues = 0;
    run_step_with_epilogues(&steps[0], true,
                            "gelu 0 of 4, column_sum 0 of 8, norms 0 of 9, rotations 0 of 0",
                            NOTE_OF_MISSING_ALGORITHM("GELU", "0 of 4")
                                NOTE_OF_MISSING_ALGORITHM("the gradient of a bias", "0 of 8"));
    emulator_epilogues = 1;
}

static const struct check_case cases[] = {
    {"neighbours are joined where nothing separates them",
     adjacent_ops_are_joined_if_no_wait_separates_them},
    {"norms are joined to sums", norms_are_joined_to_sums},
    {"sums and norms have the same bits as apart", sums_and_norms_have_the_same_bits_as_apart},
    {"rotations are joined to packs", rotations_are_joined_to_packs},
    {"rotated packs have the same bits as apart", rotated_packs_have_the_same_bits_as_apart},
    {"steps are right with epilogues and without", steps_are_right_with_epilogues_and_without},
    {"what the library cannot has kernels of its own",
     epilogues_without_an_algorithm_run_as_kernels},
};

int main(int argc, char **argv)
{
    emulator_use();
    hand_backend = "cuda";
    return check_run("cuda emulated epilogues", cases, ARRAY_LEN(cases), argc, argv);
}
