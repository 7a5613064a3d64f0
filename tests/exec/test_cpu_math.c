/* tests/exec/test_cpu_math.c: CPU kernels of products, norms, element-wise work, positions, layout passes and the
 * optimizer compute what their definitions say. */
#include "tests/exec/plain.h"

/* ---- products ---- */

/* Computes a product in double. in: a, b, bias; out: y. */
static void plain_matmul(const struct work *work, const double *const *in, double *const *out)
{
    int64_t m = work->matmul.m, n = work->matmul.n, k = work->matmul.k;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = in[2] != NULL ? in[2][j] : 0;
            for (int64_t l = 0; l < k; l++) {
                double a = in[0][work->matmul.form == MATMUL_TN ? l * m + i : i * k + l];
                double b = in[1][work->matmul.form == MATMUL_NT ? j * k + l : l * n + j];
                sum += a * b;
            }
            out[0][i * n + j] = sum;
        }
}

static void products_agree_in_every_form(void)
{
    struct check_random random = check_random_make();
    for (int form = 0; form < MATMUL_FORM_COUNT; form++)
        for (int option = 0; option < 8; option++) {
            int64_t m = check_random_i64(&random, 1, 40), n = check_random_i64(&random, 1, 40),
                    k = check_random_i64(&random, 1, 40);
            bool bias = option & 1, accumulate = option & 2, in_place = option & 4;
            struct kernel_call t = kernel_call_new(
                (struct work){.kind = WORK_MATMUL, .matmul = {m, n, k, form, bias, accumulate}},
                &random);
            struct plain_loop_call p = {.run = plain_matmul, .work = &t.work};
            plain_loop_add_input(&p, kernel_call_add_read(&t, m * k), m * k);
            plain_loop_add_input(&p, kernel_call_add_read(&t, n * k), n * k);
            if (bias)
                plain_loop_add_input(&p, kernel_call_add_read(&t, n), n);
            float *before = accumulate ? kernel_call_add_read(&t, m * n) : NULL;
            double *old = accumulate ? copy_as_double(before, m * n) : NULL;
            float *y = accumulate && in_place
                           ? kernel_call_add_in_place_write(&t, t.call.read_count - 1)
                           : kernel_call_add_write(&t, m * n);
            plain_loop_add_output(&p, m * n, NULL);
            CHECK("a product", kernel_call_run(&t) == NULL);
            weighted_sum_of_outputs(&p);
            for (int64_t i = 0; accumulate && i < m * n; i++)
                p.out[0][i] += old[i];
            check_all_near("a product", y, p.out[0], m * n, 1e-5);
            free(old);
            plain_loop_release(&p);
            kernel_call_release(&t);
        }
}

/* ---- norms and column sums ---- */

/* Computes RMSNorm in double. in: x, weight; out: y, rstd. */
static void plain_rmsnorm(const struct work *work, const double *const *in, double *const *out)
{
    int64_t rows = work->rows.rows, cols = work->rows.cols;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += in[0][i * cols + j] * in[0][i * cols + j];
        out[1][i] = 1 / sqrt(sum / (double)cols + plain_model.norm_eps);
        for (int64_t j = 0; j < cols; j++)
            out[0][i * cols + j] = in[0][i * cols + j] * out[1][i] * in[1][j];
    }
}

/* Computes LayerNorm in double. in: x, weight, bias; out: y, stats. */
static void plain_layernorm(const struct work *work, const double *const *in, double *const *out)
{
    int64_t rows = work->rows.rows, cols = work->rows.cols;
    for (int64_t i = 0; i < rows; i++) {
        double mean = 0, square = 0;
        for (int64_t j = 0; j < cols; j++)
            mean += in[0][i * cols + j] / (double)cols;
        for (int64_t j = 0; j < cols; j++)
            square += (in[0][i * cols + j] - mean) * (in[0][i * cols + j] - mean) / (double)cols;
        out[1][2 * i] = mean;
        out[1][2 * i + 1] = 1 / sqrt(square + plain_model.norm_eps);
        for (int64_t j = 0; j < cols; j++)
            out[0][i * cols + j] =
                (in[0][i * cols + j] - mean) * out[1][2 * i + 1] * in[1][j] + in[2][j];
    }
}

/* Compares the forward of a norm with plain loops and its backward with their central differences, with and
 * without accumulation. */
static void check_norm_against_plain_loops(const char *label, bool layer, int64_t rows,
                                           int64_t cols, bool accumulate,
                                           struct check_random *random)
{
    enum work_kind kind = layer ? WORK_LAYERNORM : WORK_RMSNORM;
    struct work work = {.kind = (uint8_t)kind, .rows = {rows, cols, 0}};
    int vectors = layer ? 2 : 1;
    int64_t stats = rows * vectors;
    struct kernel_call f = kernel_call_new(work, random), b = kernel_call_new(work, random);
    b.work.kind = layer ? WORK_LAYERNORM_BACKWARD : WORK_RMSNORM_BACKWARD;
    b.work.rows.accumulate = accumulate;
    struct plain_loop_call p = {.run = layer ? plain_layernorm : plain_rmsnorm, .work = &f.work};

    plain_loop_add_input(&p, kernel_call_add_read(&f, rows * cols), rows * cols);
    for (int k = 0; k < vectors; k++)
        plain_loop_add_input(&p, kernel_call_add_read(&f, cols), cols);
    float *y = kernel_call_add_write(&f, rows * cols), *s = kernel_call_add_write(&f, stats);
    CHECK(label, kernel_call_run(&f) == NULL);

    double *weight =
        copy_as_double(kernel_call_add_read(&b, rows * cols), rows * cols); /* the gradient of y */
    plain_loop_add_output(&p, rows * cols, weight);
    plain_loop_add_output(&p, stats, NULL);
    weighted_sum_of_outputs(&p);
    check_all_near(label, y, p.out[0], rows * cols, 1e-5);
    check_all_near(label, s, p.out[1], stats, 1e-5);

    memcpy(kernel_call_add_read(&b, rows * cols), f.call.read[0].data,
           (size_t)(rows * cols) * sizeof(float));
    memcpy(kernel_call_add_read(&b, cols), f.call.read[1].data, (size_t)cols * sizeof(float));
    memcpy(kernel_call_add_read(&b, stats), s, (size_t)stats * sizeof(float));
    float *before[2] = {NULL, NULL};
    for (int k = 0; accumulate && k < vectors; k++)
        before[k] = kernel_call_add_read(&b, cols);
    float *dx = kernel_call_add_write(&b, rows * cols);
    float *dw = kernel_call_add_write(&b, cols),
          *db = layer ? kernel_call_add_write(&b, cols) : NULL;
    CHECK(label, kernel_call_run(&b) == NULL);
    check_gradient_by_differences(label, &p, 0, dx, NULL, 2e-4);
    check_gradient_by_differences(label, &p, 1, dw, before[0], 2e-4);
    if (layer)
        check_gradient_by_differences(label, &p, 2, db, before[1], 2e-4);
    free(weight);
    plain_loop_release(&p);
    kernel_call_release(&f);
    kernel_call_release(&b);
}

static void norms_agree_with_plain_loops(void)
{
    struct check_random random = check_random_make();
    static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {17, 32}, {2, 96}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (int option = 0; option < 4; option++)
            check_norm_against_plain_loops(option & 1 ? "layernorm" : "rmsnorm", option & 1,
                                           sizes[i][0], sizes[i][1], option & 2, &random);
}

static void columns_are_summed(void)
{
    struct check_random random = check_random_make();
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        struct kernel_call t = kernel_call_new(
            (struct work){.kind = WORK_COLUMN_SUM, .rows = {9, 5, accumulate}}, &random);
        const float *x = kernel_call_add_read(&t, 45),
                    *old = accumulate ? kernel_call_add_read(&t, 5) : NULL;
        float *y = kernel_call_add_write(&t, 5);
        double want[5];
        for (int j = 0; j < 5; j++) {
            want[j] = old != NULL ? old[j] : 0;
            for (int i = 0; i < 9; i++)
                want[j] += x[i * 5 + j];
        }
        kernel_call_run(&t);
        check_all_near("column sums", y, want, 5, 1e-6);
        kernel_call_release(&t);
    }
}

/* The result has one row of sums for each expert; that of an expert without rows is 0, or with `accumulate` as it
 * was. */
static void columns_are_summed_by_expert(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 4; i++) {
        const int64_t rows = i / 2 ? 3 : 14, accumulate = i % 2;
        enum { GROUPS = 5, COLS = 3 };
        struct kernel_call t =
            kernel_call_new((struct work){.kind = WORK_COLUMN_SUM,
                                          .column_sum = {rows, COLS, accumulate, GROUPS, 0, 0}},
                            &random);
        const float *x = kernel_call_add_read(&t, rows * COLS);
        const float *old = accumulate ? kernel_call_add_read(&t, GROUPS * COLS) : NULL;
        float *y = kernel_call_add_write(&t, GROUPS * COLS);
        double want[GROUPS * COLS];
        for (int j = 0; j < GROUPS * COLS; j++)
            want[j] = old != NULL ? old[j] : 0;
        for (int64_t r = 0; r < rows; r++)
            for (int j = 0; j < COLS; j++)
                want[work_row_group_of_row(rows, GROUPS, r) * COLS + j] += x[r * COLS + j];
        kernel_call_run(&t);
        check_all_near("column sums of experts", y, want, GROUPS * COLS, 1e-6);
        kernel_call_release(&t);
    }
}

/* ---- element-wise work, AdamW and clipping ---- */

/* Returns the value of an activation function other than FUNCTION_CLAMPED at one input, or at one element of the gate,
 * in double. */
static double plain_activation(const struct work *work, double x)
{
    bool silu =
        work->kind == WORK_SWIGLU && work->activation.function == ACTIVATION_FUNCTION_OF_KIND;
    if (work->activation.function == FUNCTION_RELU2)
        return x > 0 ? x * x : 0;
    return silu ? x / (1 + exp(-x))
                : 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

/* Computes a gated activation in double. in: x (gate and up); out: y. */
static void plain_gated_activation(const struct work *work, const double *const *in,
                                   double *const *out)
{
    int64_t cols = work->rows.cols;
    for (int64_t i = 0; i < work->rows.rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double gate = in[0][2 * i * cols + j], up = in[0][2 * i * cols + cols + j];
            out[0][i * cols + j] = plain_activation(work, gate) * up;
            if (work->activation.function == FUNCTION_CLAMPED) { /* gpt-oss, torch/model.py */
                gate = fmin(gate, 7);
                out[0][i * cols + j] =
                    (fmax(-7, fmin(up, 7)) + 1) * gate / (1 + exp(-1.702 * gate));
            }
        }
}

static void plain_ungated_activation(const struct work *work, const double *const *in,
                                     double *const *out)
{
    for (int64_t i = 0; i < work->rows.rows * work->rows.cols; i++)
        out[0][i] = plain_activation(work, in[0][i]);
}

static void activations_agree_with_plain_loops(void)
{
    struct check_random random = check_random_make();
    for (int gated = 0; gated < 2; gated++)
        for (int i = 0; i < 6 * FUNCTION_COUNT; i++) {
            int64_t rows = check_random_i64(&random, 1, 9), cols = check_random_i64(&random, 1, 30);
            int64_t in = rows * cols * (gated ? 2 : 1), out = rows * cols;
            const char *label = gated ? "swiglu" : "gelu";
            if (!gated && i % FUNCTION_COUNT == FUNCTION_CLAMPED)
                continue;
            struct work work = {.kind = gated ? WORK_SWIGLU : WORK_GELU,
                                .activation = {rows, cols, 0, i % FUNCTION_COUNT}};
            struct kernel_call f = kernel_call_new(work, &random),
                               b = kernel_call_new(work, &random);
            b.work.kind = gated ? WORK_SWIGLU_BACKWARD : WORK_GELU_BACKWARD;
            float *x = kernel_call_add_read(&f, in), *y = kernel_call_add_write(&f, out);
            for (int64_t k = 0; k < in; k++)
                x[k] *= i % FUNCTION_COUNT == FUNCTION_CLAMPED ? 12 : 6;
            kernel_call_run(&f);
            double *dy = copy_as_double(kernel_call_add_read(&b, out), out);
            memcpy(kernel_call_add_read(&b, in), x, (size_t)in * sizeof *x);
            float *dx = kernel_call_add_write(&b, in);
            kernel_call_run(&b);
            struct plain_loop_call p = {
                .run = gated ? plain_gated_activation : plain_ungated_activation, .work = &f.work};
            plain_loop_add_input(&p, x, in);
            plain_loop_add_output(&p, out, dy);
            weighted_sum_of_outputs(&p);
            check_all_near(label, y, p.out[0], out, 1e-6);
            check_gradient_by_differences(label, &p, 0, dx, NULL, 1e-5);
            free(dy);
            plain_loop_release(&p);
            kernel_call_release(&f);
            kernel_call_release(&b);
        }
}

static void add_and_clear_kernels_agree(void)
{
    struct check_random random = check_random_make();
    struct kernel_call add =
        kernel_call_new((struct work){.kind = WORK_ADD, .elements = {17}}, &random);
    const float *a = kernel_call_add_read(&add, 17), *b = kernel_call_add_read(&add, 17);
    float *y = kernel_call_add_write(&add, 17);
    double want[17];
    for (int i = 0; i < 17; i++)
        want[i] = a[i] + b[i];
    kernel_call_run(&add);
    check_all_near("a sum", y, want, 17, 0);
    kernel_call_release(&add);

    struct kernel_call clear =
        kernel_call_new((struct work){.kind = WORK_FILL, .elements = {5}}, &random);
    const double zero[5] = {0};
    y = kernel_call_add_write(&clear, 5);
    kernel_call_run(&clear);
    check_all_near("zeros", y, zero, 5, 0);
    kernel_call_release(&clear);
}

/* PyTorch's AdamW on one element, lr 0.1, betas 0.9 and 0.999, eps 1e-8, weight decay 0.01. By
 * hand: step 1 of p = 1, g = 0.5: p (1 - 0.001) - 0.1 * 0.5 / (0.5 + 1e-8) = 0.999 - 0.1 = 0.899.
 */
static void adamw_takes_the_steps_of_its_definition(void)
{
    struct check_random random = check_random_make();
    struct kernel_call t =
        kernel_call_new((struct work){.kind = WORK_ADAMW, .elements = {1}}, &random);
    t.call.adamw = (struct exec_adamw){0.1, 0.9, 0.999, 1e-8, 0.01, 1, 0};
    float *grad = kernel_call_add_read(&t, 1), *master = kernel_call_add_read(&t, 1);
    float *m = kernel_call_add_read(&t, 1), *v = kernel_call_add_read(&t, 1);
    for (uint32_t k = 1; k < 4; k++)
        kernel_call_add_in_place_write(&t, k);
    float *param = kernel_call_add_write(&t, 1);
    *grad = 0.5f;
    *master = 1;
    *m = *v = 0;
    double p = 1, wm = 0, wv = 0;
    for (int step = 1; step <= 3; step++) {
        *grad = step == 2 ? -0.25f : 0.5f;
        t.call.adamw.step_number = step;
        kernel_call_run(&t);
        wm = 0.9 * wm + 0.1 * *grad;
        wv = 0.999 * wv + 0.001 * *grad * *grad;
        p = p * (1 - 0.1 * 0.01) -
            0.1 * (wm / (1 - pow(0.9, step))) / (sqrt(wv / (1 - pow(0.999, step))) + 1e-8);
        if (step == 1)
            CHECK_CLOSE("by hand", *master, 0.899, 1e-6);
        CHECK_CLOSE("master", *master, p, 1e-5);
        CHECK_CLOSE("m", *m, wm, 1e-5);
        CHECK_CLOSE("v", *v, wv, 1e-5);
        CHECK("the copy is the master", *param == *master);
    }
    kernel_call_release(&t);
}

/* Sums of squares by hand: 3^2 + 4^2 = 25; the third element is not counted, and half of the fourth, 2^2, is; with 1
 * from before that is 28. Clipping to 2.5 scales a norm of 5 by half. */
static void gradient_norm_weighs_elements(void)
{
    struct check_random random = check_random_make();
    static const struct copied_run share[] = {{0, 2, 1}, {3, 1, 2}};
    struct kernel_call t =
        kernel_call_new((struct work){.kind = WORK_SQUARE_SUM, .square_sum = {4, 1, 0}}, &random);
    float *x = kernel_call_add_read(&t, 4), *before = kernel_call_add_read(&t, 1),
          *y = kernel_call_add_write(&t, 1);
    x[0] = 3, x[1] = -4, x[2] = 100, x[3] = 2;
    *before = 1;
    t.call.square_sum_runs = share;
    t.call.square_sum_run_count = 2;
    kernel_call_run(&t);
    CHECK_CLOSE("squares", *y, 28, 1e-6);
    t.call.square_sum_run_count = 0; /* a rank that has only padding */
    kernel_call_run(&t);
    CHECK_CLOSE("nothing", *y, 1, 1e-6);
    kernel_call_release(&t);

    t = kernel_call_new((struct work){.kind = WORK_CLIP, .elements = {2, 0}}, &random);
    x = kernel_call_add_read(&t, 2);
    before = kernel_call_add_read(&t, 1);
    y = kernel_call_add_write(&t, 2);
    x[0] = 3, x[1] = -4;
    *before = 25;
    t.call.adamw.max_norm = 2.5;
    kernel_call_run(&t);
    CHECK_CLOSE("clipped", y[0], 1.5, 1e-5);
    CHECK_CLOSE("clipped", y[1], -2, 1e-5);
    t.call.adamw.max_norm = 6;
    kernel_call_run(&t);
    CHECK_CLOSE("short enough", y[1], -4, 0);
    t.call.adamw.max_norm = 0;
    kernel_call_run(&t);
    CHECK_CLOSE("as they are", y[1], -4, 0);
    kernel_call_release(&t);
}

/* ---- positions and latent keys ---- */

static void rope_backward_undoes_the_rotation(void)
{
    enum { ROWS = 6, HEADS = 3, DIM = 8, STRIDE = HEADS * DIM + 5 };
    struct check_random random = check_random_make();
    struct work work = {.kind = WORK_ROPE, .rope = {ROWS, HEADS, DIM, STRIDE}};
    struct kernel_call t = kernel_call_new(work, &random), back = kernel_call_new(work, &random);
    const float *x = kernel_call_add_read(&t, ROWS * STRIDE);
    const int32_t *position = kernel_call_add_index_read(&t, ROWS, 0, 100000);
    float *y = kernel_call_add_write(&t, ROWS * STRIDE);
    kernel_call_run(&t);
    double want[ROWS * STRIDE], original[ROWS * STRIDE];
    for (int i = 0; i < ROWS * STRIDE; i++)
        want[i] = original[i] = x[i];
    for (int i = 0; i < ROWS; i++)
        for (int h = 0; h < HEADS; h++)
            for (int j = 0; j < DIM / 2; j++) {
                double angle = position[i] * pow(10000, -2.0 * j / DIM);
                int low = i * STRIDE + h * DIM + j, high = low + DIM / 2;
                want[low] = x[low] * cos(angle) - x[high] * sin(angle);
                want[high] = x[high] * cos(angle) + x[low] * sin(angle);
            }
    check_all_near("turned", y, want, ROWS * STRIDE, 1e-6);

    back.work.kind = WORK_ROPE_BACKWARD;
    memcpy(kernel_call_add_read(&back, ROWS * STRIDE), y, sizeof(float) * ROWS * STRIDE);
    memcpy(kernel_call_add_index_read(&back, ROWS, 0, 1), position, ROWS * sizeof *position);
    float *z = kernel_call_add_in_place_write(&back, 0);
    kernel_call_run(&back);
    check_all_near("turned back, in place", z, original, ROWS * STRIDE, 1e-6);
    kernel_call_release(&t);
    kernel_call_release(&back);
}

/* Only the last columns of each head turn, as if they were the head; the others stay. */
static void rotation_turns_the_last_columns(void)
{
    enum { ROWS = 5, HEADS = 3, DIM = 7, ROTATED = 4, PLAIN = DIM - ROTATED };
    struct check_random random = check_random_make();
    struct work work = {.kind = WORK_ROPE, .rope = {ROWS, HEADS, DIM, 0, ROTATED}};
    struct kernel_call t = kernel_call_new(work, &random);
    const float *x = kernel_call_add_read(&t, ROWS * HEADS * DIM);
    const int32_t *position = kernel_call_add_index_read(&t, ROWS, 0, 100000);
    float *y = kernel_call_add_write(&t, ROWS * HEADS * DIM);
    kernel_call_run(&t);
    double want[ROWS * HEADS * DIM];
    for (int i = 0; i < ROWS * HEADS * DIM; i++)
        want[i] = x[i];
    for (int i = 0; i < ROWS * HEADS; i++)
        for (int j = 0; j < ROTATED / 2; j++) {
            const int row = i / HEADS;
            const double angle = position[row] * pow(10000, -2.0 * j / ROTATED);
            const int low = i * DIM + PLAIN + j, high = low + ROTATED / 2;
            want[low] = x[low] * cos(angle) - x[high] * sin(angle);
            want[high] = x[high] * cos(angle) + x[low] * sin(angle);
        }
    check_all_near("the last columns", y, want, ROWS * HEADS * DIM, 1e-6);
    kernel_call_release(&t);
}

/* Keys of all heads share their last columns, whose gradient is the sum over the heads. */
static void latent_keys_are_shared_and_summed(void)
{
    enum { ROWS = 4, HEADS = 3, PLAIN = 2, ROTATED = 4, VDIM = 5, DIM = PLAIN + ROTATED };
    enum { UP = PLAIN + VDIM };
    struct check_random random = check_random_make();
    struct work work = {.kind = WORK_LATENT_KEYS,
                        .latent_keys = {ROWS, HEADS, PLAIN, ROTATED, VDIM}};
    struct kernel_call t = kernel_call_new(work, &random);
    const float *up = kernel_call_add_read(&t, ROWS * HEADS * UP),
                *shared = kernel_call_add_read(&t, ROWS * ROTATED);
    float *k = kernel_call_add_write(&t, ROWS * HEADS * DIM),
          *v = kernel_call_add_write(&t, ROWS * HEADS * VDIM);
    kernel_call_run(&t);
    double want_k[ROWS * HEADS * DIM], want_v[ROWS * HEADS * VDIM];
    for (int i = 0; i < ROWS * HEADS; i++) {
        for (int j = 0; j < DIM; j++)
            want_k[i * DIM + j] =
                j < PLAIN ? up[i * UP + j] : shared[i / HEADS * ROTATED + j - PLAIN];
        for (int j = 0; j < VDIM; j++)
            want_v[i * VDIM + j] = up[i * UP + PLAIN + j];
    }
    check_all_near("k", k, want_k, ROWS * HEADS * DIM, 0);
    check_all_near("v", v, want_v, ROWS * HEADS * VDIM, 0);
    kernel_call_release(&t);

    work.kind = WORK_LATENT_KEYS_BACKWARD;
    struct kernel_call back = kernel_call_new(work, &random);
    const float *dk = kernel_call_add_read(&back, ROWS * HEADS * DIM);
    const float *dv = kernel_call_add_read(&back, ROWS * HEADS * VDIM);
    float *d_up = kernel_call_add_write(&back, ROWS * HEADS * UP);
    float *d_shared = kernel_call_add_write(&back, ROWS * ROTATED);
    kernel_call_run(&back);
    double want_up[ROWS * HEADS * UP], want_shared[ROWS * ROTATED] = {0};
    for (int i = 0; i < ROWS * HEADS; i++) {
        for (int j = 0; j < UP; j++)
            want_up[i * UP + j] = j < PLAIN ? dk[i * DIM + j] : dv[i * VDIM + j - PLAIN];
        for (int j = 0; j < ROTATED; j++)
            want_shared[i / HEADS * ROTATED + j] += dk[i * DIM + PLAIN + j];
    }
    check_all_near("d up", d_up, want_up, ROWS * HEADS * UP, 0);
    check_all_near("d shared", d_shared, want_shared, ROWS * ROTATED, 1e-6);
    kernel_call_release(&back);
}

/* ---- layout passes ---- */

static void packing_cuts_columns_and_unpacking_joins_them(void)
{
    static const struct {
        int64_t rows, parts, w[3];
    } sizes[] = {
        {1, 1, {1, 0, 0}}, {4, 3, {5, 2, 2}}, {3, 2, {4, 0, 1}},
        {5, 1, {6, 3, 3}}, {2, 4, {3, 0, 0}},
    };
    struct check_random random = check_random_make();
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        int64_t rows = sizes[s].rows, parts = sizes[s].parts;
        struct work work = {.kind = WORK_PACK,
                            .pack = {rows, parts, {sizes[s].w[0], sizes[s].w[1], sizes[s].w[2]}}};
        int64_t cols = parts * (sizes[s].w[0] + sizes[s].w[1] + sizes[s].w[2]), column = 0;
        struct kernel_call pack = kernel_call_new(work, &random),
                           unpack = kernel_call_new(work, &random);
        unpack.work.kind = WORK_UNPACK;
        const float *x = kernel_call_add_read(&pack, rows * cols);
        float *block[3] = {NULL};
        for (int i = 0; i < 3; i++)
            if (sizes[s].w[i] > 0)
                block[i] = kernel_call_add_write(&pack, parts * rows * sizes[s].w[i]);
        kernel_call_run(&pack);
        bool equal = true;
        for (int i = 0; i < 3; i++)
            for (int64_t p = 0; p < parts; p++)
                for (int64_t j = 0; j < sizes[s].w[i]; j++, column++)
                    for (int64_t r = 0; r < rows; r++)
                        equal = equal && block[i][(p * rows + r) * sizes[s].w[i] + j] ==
                                             x[r * cols + column];
        CHECK("packed", equal);
        for (int i = 0; i < 3; i++)
            if (sizes[s].w[i] > 0)
                memcpy(kernel_call_add_read(&unpack, parts * rows * sizes[s].w[i]), block[i],
                       (size_t)(parts * rows * sizes[s].w[i]) * sizeof(float));
        float *y = kernel_call_add_write(&unpack, rows * cols);
        kernel_call_run(&unpack);
        CHECK("and back", memcmp(y, x, (size_t)(rows * cols) * sizeof *y) == 0);
        kernel_call_release(&pack);
        kernel_call_release(&unpack);
    }
}

static void heads_are_copied_and_copies_summed(void)
{
    enum { ROWS = 3, HEADS = 2, DIM = 4, COPIES = 3, ONE = ROWS * HEADS * DIM };
    struct check_random random = check_random_make();
    struct work work = {.kind = WORK_HEAD_EXPAND, .heads = {ROWS, HEADS, DIM, COPIES}};
    struct kernel_call expand = kernel_call_new(work, &random),
                       reduce = kernel_call_new(work, &random);
    reduce.work.kind = WORK_HEAD_REDUCE;
    const float *x = kernel_call_add_read(&expand, ONE);
    float *y = kernel_call_add_write(&expand, ONE * COPIES);
    kernel_call_run(&expand);
    bool equal = true;
    for (int i = 0; i < ONE * COPIES; i++)
        equal = equal && y[i] == x[i / (DIM * COPIES) * DIM + i % DIM];
    CHECK("each head three times in a row", equal);
    const float *z = kernel_call_add_read(&reduce, ONE * COPIES);
    float *sum = kernel_call_add_write(&reduce, ONE);
    double want[ONE] = {0};
    for (int i = 0; i < ONE * COPIES; i++)
        want[i / (DIM * COPIES) * DIM + i % DIM] += z[i];
    kernel_call_run(&reduce);
    check_all_near("summed", sum, want, ONE, 1e-6);
    kernel_call_release(&expand);
    kernel_call_release(&reduce);
}

static const struct check_case cases[] = {
    {"products agree in every form", products_agree_in_every_form},
    {"norms agree, and their gradients", norms_agree_with_plain_loops},
    {"columns are summed", columns_are_summed},
    {"columns are summed by expert", columns_are_summed_by_expert},
    {"activations agree, and their gradients", activations_agree_with_plain_loops},
    {"elements add and clear", add_and_clear_kernels_agree},
    {"norms are those of what counts", gradient_norm_weighs_elements},
    {"AdamW takes the steps of its definition", adamw_takes_the_steps_of_its_definition},
    {"rotation turns pairs and back", rope_backward_undoes_the_rotation},
    {"rotation turns the last columns", rotation_turns_the_last_columns},
    {"latent keys are shared and summed", latent_keys_are_shared_and_summed},
    {"packing cuts columns and unpacking joins them",
     packing_cuts_columns_and_unpacking_joins_them},
    {"heads are copied and copies summed", heads_are_copied_and_copies_summed},
};
CHECK_MAIN("cpu math", cases)
