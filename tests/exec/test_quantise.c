/* tests/exec/test_quantise.c: 8-bit numbers and 8-bit copies of matrices are those that PyTorch stores
 * (tests/data/pytorch/float8.json, made by float8.py), and products of copies are right. */
#include "base/json.h"
#include "base/text.h"
#include "exec/number.h"
#include "tests/exec/plain.h"

#include <stdio.h>

static const char *word(struct json_node object, const char *key)
{
    const char *value = "";
    CHECK_INT(key, json_get_string(object, key, &value, NULL), STATUS_OK);
    return value;
}

/* Returns the number i of a text of numbers of `digits` hexadecimal digits. */
static uint32_t parse_nth_hex_number(const char *text, size_t i, int digits)
{
    char one[9] = {0};
    memcpy(one, text + i * (size_t)digits, (size_t)digits);
    return (uint32_t)strtoul(one, NULL, 16);
}

static float *floats(const char *text, size_t *count)
{
    *count = strlen(text) / 8;
    float *x = heap_alloc(*count, sizeof *x);
    for (size_t i = 0; i < *count; i++) {
        const uint32_t bits = parse_nth_hex_number(text, i, 8);
        memcpy(&x[i], &bits, sizeof bits);
    }
    return x;
}

static void check_casts(struct json_node root, enum dtype dtype)
{
    const struct json_node row =
        json_find_member(json_find_member(root, "casts"), dtype_name(dtype));
    const char *to = word(row, "to");
    size_t count, wrong = 0;
    float *from = floats(word(row, "from"), &count);
    for (size_t i = 0; i < count; i++) {
        uint8_t code;
        number_from_f32(&code, dtype, &from[i], 1);
        wrong += code != parse_nth_hex_number(to, i, 2);
    }
    CHECK(dtype_name(dtype), count > 900);
    CHECK_INT(dtype_name(dtype), (int64_t)wrong, 0);
    free(from);
}

/* Returns a kernel call that has quantised a copy of x. */
static struct kernel_call run_quantise_call(const float *x, int64_t rows, int64_t cols,
                                            struct work work, enum dtype dtype)
{
    struct kernel_call t = kernel_call_new(work, NULL);
    const enum scaling scaling = (enum scaling)work.quantise.scaling;
    const enum dtype scales = scaling_scale_dtype(scaling);
    float *in = kernel_call_allocate_operand(&t.call.read[t.call.read_count++],
                                             (uint64_t)(rows * cols), DTYPE_F32);
    memcpy(in, x, (size_t)(rows * cols) * sizeof *x);
    for (int turned = work.quantise.turned != 0;
         turned <= (work.quantise.turned || work.quantise.both); turned++) {
        int64_t count = turned ? scaling_scale_count(scaling, cols, rows)
                               : scaling_scale_count(scaling, rows, cols);
        kernel_call_allocate_operand(&t.call.write[t.call.write_count++], (uint64_t)(rows * cols),
                                     dtype);
        kernel_call_allocate_operand(&t.call.write[t.call.write_count++], (uint64_t)count, scales);
    }
    CHECK("quantised", kernel_call_run(&t) == NULL);
    return t;
}

static void check_quantised_matrix(struct json_node root, struct json_node row, const float *x)
{
    int64_t rows = 0, cols = 0;
    enum dtype dtype = DTYPE_COUNT;
    const char *name = word(row, "scaling"), *type = word(row, "dtype");
    json_get_i64(root, "rows", 1, 1000, &rows, NULL);
    json_get_i64(root, "cols", 1, 1000, &cols, NULL);
    CHECK(type, dtype_find(type, strlen(type), &dtype));
    const struct work_param *values = &work_kind_info(WORK_QUANTISE)->param[2];
    int64_t scaling = 0;
    while (scaling < values->value_count && strcmp(values->value_names[scaling], name) != 0)
        scaling++;
    const bool down = strcmp(word(row, "rule"), "down") == 0;
    struct kernel_call t = run_quantise_call(
        x, rows, cols,
        (struct work){.kind = WORK_QUANTISE, .quantise = {rows, cols, scaling, 0, 0, 0, down}},
        dtype);
    const char *codes = word(row, "codes"), *scales = word(row, "scales");
    const struct operand *of = &t.call.write[1];
    const int digits = 2 * (int)dtype_bytes((enum dtype)of->dtype);
    int64_t wrong = 0, wrong_scales = 0;
    for (size_t i = 0; i < (size_t)(rows * cols); i++)
        wrong += ((const uint8_t *)t.call.write[0].data)[i] != parse_nth_hex_number(codes, i, 2);
    for (size_t i = 0; i < of->element_count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, (const char *)of->data + i * (size_t)digits / 2, (size_t)digits / 2);
        wrong_scales += bits != parse_nth_hex_number(scales, i, digits);
    }
    CHECK_INT(name, (int64_t)of->element_count, (int64_t)strlen(scales) / digits);
    CHECK_INT(name, wrong, 0);
    CHECK_INT(name, wrong_scales, 0);
    kernel_call_release(&t);
}

static void numbers_are_those_of_pytorch(void)
{
    struct text text = {0};
    struct json json = {0};
    struct diag diag = {0};
    CHECK_INT("fixture", text_read(&text, check_path("data/pytorch/float8.json"), &diag),
              STATUS_OK);
    CHECK_INT("fixture", json_parse(&json, "float8.json", text.data, text.size, &diag), STATUS_OK);
    const struct json_node root = json_root(&json), rows = json_find_member(root, "matrices");
    check_casts(root, DTYPE_E4M3);
    check_casts(root, DTYPE_E5M2);
    size_t count;
    float *x = floats(word(root, "x"), &count);
    CHECK_INT("matrices", (int64_t)json_element_count(rows), 12);
    for (size_t i = 0; i < json_element_count(rows); i++)
        check_quantised_matrix(root, json_element_at(rows, i), x);
    free(x);
    json_release(&json);
    text_release(&text);
    diag_release(&diag);
}

/* Every code that is a number is unchanged by a conversion to fp32 and back; NaN and infinity, which no number is
 * rounded to, come back as the code of NaN and as the largest number. */
static void every_8_bit_code_survives_fp32(void)
{
    static const struct {
        enum dtype dtype;
        int nans, infinities;
    } types[] = {{DTYPE_E4M3, 2, 0}, {DTYPE_E5M2, 6, 2}};
    static const float largest[] = {448, 57344};
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        int nans = 0, infinities = 0, changed = 0;
        for (int code = 0; code < 256; code++) {
            uint8_t one = (uint8_t)code, back;
            float value;
            number_to_f32(&value, &one, types[t].dtype, 1);
            number_from_f32(&back, types[t].dtype, &value, 1);
            nans += isnan(value) != 0;
            infinities += isinf(value) != 0;
            float again;
            number_to_f32(&again, &back, types[t].dtype, 1);
            changed += isfinite(value) && back != one;
            changed += isnan(value) && !isnan(again);
            changed += isinf(value) && again != copysignf(largest[t], value);
        }
        CHECK_INT(dtype_name(types[t].dtype), nans, types[t].nans);
        CHECK_INT(dtype_name(types[t].dtype), infinities, types[t].infinities);
        CHECK_INT(dtype_name(types[t].dtype), changed, 0);
    }
}

/* The transposed copy is the copy of the transposed matrix, alone and beside the other one. */
static void turned_copies_are_of_the_transpose(void)
{
    enum { ROWS = 130, COLS = 40 };
    struct check_random random = check_random_make();
    float *x = heap_alloc(ROWS * COLS, sizeof *x), *turned = heap_alloc(ROWS * COLS, sizeof *x);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            x[i * COLS + j] = turned[j * ROWS + i] = (float)(2 * check_random_double(&random) - 1);
    for (int64_t scaling = SCALING_TENSOR; scaling <= SCALING_MX; scaling++) {
        struct work work = {.kind = WORK_QUANTISE, .quantise = {COLS, ROWS, scaling, 0, 0, 0, 0}};
        struct kernel_call plain = run_quantise_call(turned, COLS, ROWS, work, DTYPE_E4M3);
        work.quantise.rows = ROWS;
        work.quantise.cols = COLS;
        work.quantise.turned = 1;
        struct kernel_call alone = run_quantise_call(x, ROWS, COLS, work, DTYPE_E4M3);
        work.quantise.turned = 0;
        work.quantise.both = 1;
        struct kernel_call both = run_quantise_call(x, ROWS, COLS, work, DTYPE_E4M3);
        const struct operand *want = plain.call.write;
        for (int k = 0; k < 2; k++) {
            size_t bytes = want[k].element_count * dtype_bytes((enum dtype)want[k].dtype);
            CHECK("alone", memcmp(alone.call.write[k].data, want[k].data, bytes) == 0);
            CHECK("both", memcmp(both.call.write[2 + k].data, want[k].data, bytes) == 0);
        }
        kernel_call_release(&plain);
        kernel_call_release(&alone);
        kernel_call_release(&both);
    }
    free(x);
    free(turned);
}

/* A product of 8-bit operands is that of the numbers that they stand for. */
static void products_multiply_numbers_by_their_scales(void)
{
    enum { M = 5, N = 140, K = 200 };
    struct check_random random = check_random_make();
    for (int64_t scaling = SCALING_TENSOR; scaling <= SCALING_MX; scaling++) {
        const enum scaling of_a = scaling == SCALING_BLOCK ? SCALING_VECTOR : (enum scaling)scaling;
        float *a = heap_alloc(M * K, sizeof *a), *b = heap_alloc(N * K, sizeof *b);
        for (int i = 0; i < M * K; i++)
            a[i] = (float)(2 * check_random_double(&random) - 1);
        for (int i = 0; i < N * K; i++)
            b[i] = (float)(2 * check_random_double(&random) - 1);
        struct work work = {.kind = WORK_QUANTISE, .quantise = {M, K, of_a, 0, 0, 0, 0}};
        struct kernel_call qa = run_quantise_call(a, M, K, work, DTYPE_E5M2);
        work.quantise.rows = N;
        work.quantise.scaling = scaling;
        struct kernel_call qb = run_quantise_call(b, N, K, work, DTYPE_E4M3);
        struct kernel_call t = kernel_call_new(
            (struct work){.kind = WORK_MATMUL, .matmul = {M, N, K, MATMUL_NT, 0, 0, 0, scaling}},
            NULL);
        t.call.read[0] = qa.call.write[0];
        t.call.read[1] = qb.call.write[0];
        t.call.read[2] = qa.call.write[1];
        t.call.read[3] = qb.call.write[1];
        t.call.read_count = 4;
        float *y = kernel_call_add_write(&t, M * N);
        CHECK("a product", kernel_call_run(&t) == NULL);
        double worst = 0, off = 0, norm = 0;
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0, plain = 0;
                for (int l = 0; l < K; l++) {
                    const int64_t at[2] = {scaling_scale_index(of_a, M, K, i, l),
                                           scaling_scale_index((enum scaling)scaling, N, K, j, l)};
                    double value[2];
                    const struct operand *x[2] = {qa.call.write, qb.call.write};
                    const int64_t element[2] = {(int64_t)i * K + l, (int64_t)j * K + l};
                    for (int k = 0; k < 2; k++)
                        value[k] = number_read_element(x[k][0].data, (enum dtype)x[k][0].dtype,
                                                       (uint64_t)element[k]) *
                                   number_read_element(x[k][1].data, (enum dtype)x[k][1].dtype,
                                                       (uint64_t)at[k]);
                    sum += value[0] * value[1];
                    plain += (double)a[i * K + l] * b[j * K + l];
                }
                worst = fmax(worst, fabs(sum - y[i * N + j]));
                off += (sum - plain) * (sum - plain);
                norm += plain * plain;
            }
        CHECK("its numbers", worst < 1e-4);
        /* the rms error of rounding normal numbers: 2.65 % to e4m3, 5.3 % to e5m2; of a product of both 5.9 % */
        CHECK("is near the plain product", sqrt(off / norm) > 0.02 && sqrt(off / norm) < 0.12);
        t.call.read_count = 0;
        kernel_call_release(&t);
        kernel_call_release(&qa);
        kernel_call_release(&qb);
        free(a);
        free(b);
    }
}

/* Two ranks that hold the rows of a matrix find the largest element of their own, take the larger of both, and get the
 * copy that the whole matrix has. */
static void ranks_share_the_largest_element(void)
{
    enum { ROWS = 6, COLS = 40, PART = ROWS / 2 * COLS };
    struct check_random random = check_random_make();
    float x[ROWS * COLS], largest = 0;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)((i < PART ? 2 : 6) * check_random_double(&random) - 1);
    struct work work = {.kind = WORK_QUANTISE, .quantise = {ROWS, COLS, SCALING_TENSOR}};
    struct kernel_call whole = run_quantise_call(x, ROWS, COLS, work, DTYPE_E5M2);
    work.quantise.rows = ROWS / 2;
    for (int pass = 0; pass < 2; pass++)
        for (int part = 0; part < 2; part++) {
            work.quantise.finds = pass == 0;
            work.quantise.given = pass == 1;
            struct kernel_call t = kernel_call_new(work, NULL);
            float *in =
                kernel_call_allocate_operand(&t.call.read[t.call.read_count++], PART, DTYPE_F32);
            memcpy(in, x + part * PART, PART * sizeof *x);
            if (pass == 0) {
                float *found =
                    kernel_call_allocate_operand(&t.call.write[t.call.write_count++], 1, DTYPE_F32);
                CHECK("found", kernel_call_run(&t) == NULL);
                largest = fmaxf(largest, *found);
            } else {
                *(float *)kernel_call_allocate_operand(&t.call.read[t.call.read_count++], 1,
                                                       DTYPE_F32) = largest;
                uint8_t *copy = kernel_call_allocate_operand(&t.call.write[t.call.write_count++],
                                                             PART, DTYPE_E5M2);
                float *scale =
                    kernel_call_allocate_operand(&t.call.write[t.call.write_count++], 1, DTYPE_F32);
                CHECK("copied", kernel_call_run(&t) == NULL);
                const uint8_t *want = whole.call.write[0].data;
                CHECK("its numbers", memcmp(copy, want + part * PART, PART) == 0);
                CHECK("its scale", memcmp(scale, whole.call.write[1].data, sizeof *scale) == 0);
            }
            kernel_call_release(&t);
        }
    kernel_call_release(&whole);
}

static const struct check_case cases[] = {
    {"numbers are those of PyTorch", numbers_are_those_of_pytorch},
    {"all codes come back", every_8_bit_code_survives_fp32},
    {"turned copies are of the transpose", turned_copies_are_of_the_transpose},
    {"parts share the largest element", ranks_share_the_largest_element},
    {"products multiply numbers by their scales", products_multiply_numbers_by_their_scales},
};
CHECK_MAIN("quantise", cases)
