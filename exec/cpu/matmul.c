#include "exec/assignment.h"
#include "exec/cpu/kernels.h"

#include "exec/number.h"

#include <cblas.h>
#include <string.h>

/* Computes one product, and adds it to beta y. If m or n is 0, there is no result. A sum over k = 0 terms is 0. */
static void multiply(enum matmul_form form, blasint m, blasint n, blasint k, const float *a,
                     const float *b, float *y, float beta)
{
    const bool a_turned = form == MATMUL_TN, b_turned = form == MATMUL_NT;
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        if (beta == 0)
            memset(y, 0, (size_t)m * (size_t)n * sizeof *y);
        return;
    }
    cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
                b_turned ? CblasTrans : CblasNoTrans, m, n, k, 1, a, a_turned ? m : k, b,
                b_turned ? k : n, beta, y, n);
}

static bool has_scales(const struct work *work)
{
    return work->matmul.scaling != SCALING_NONE;
}

size_t cpu_matmul_scratch_floats(const struct work *work)
{
    const int64_t matrices = work->matmul.form == MATMUL_TN ? 1 : work_row_group_count(work);
    return has_scales(work)
               ? (size_t)((work->matmul.m + matrices * work->matmul.n) * work->matmul.k)
               : 0;
}

/* An 8-bit operand and its scales, as one matrix for each group. If rows_are_split_by_group is set, the matrix of a
 * group has that group's rows; else all matrices have equally many rows. */
struct scaled_operand {
    const struct operand *values, *scales;
    struct scaling_layout scale_layout;
    bool rows_are_split_by_group;
};

/* Writes an operand's values, each multiplied by its scale, to `to`, and returns `to`. */
static const float *rescaled_operand(float *to, const struct call *call,
                                     const struct scaled_operand *o)
{
    const struct scaling_layout *l = &o->scale_layout;
    int64_t first = 0;
    for (int64_t g = 0; g < l->groups; g++) {
        const int64_t end =
            o->rows_are_split_by_group
                ? assignment_group_rows_end(call->routed_rows, l->rows, l->groups, g, first)
                : (g + 1) * (l->rows / l->groups);
        const int64_t rows = l->is_transposed ? l->cols : end - first,
                      cols = l->is_transposed ? end - first : l->cols;
        const int64_t begin = first * l->cols,
                      scale = scaling_layout_first_scale_of_group(l, g, first);
        number_to_f32(to + begin, (const uint8_t *)o->values->data + begin,
                      (enum dtype)o->values->dtype, (uint64_t)(rows * cols));
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                to[begin + i * cols + j] *= (float)number_read_element(
                    o->scales->data, (enum dtype)o->scales->dtype,
                    (uint64_t)(scale + scaling_scale_index(l->scaling, rows, cols, i, j)));
        first = end;
    }
    return to;
}

/* Sets each of the `rows` rows of y from row `first` on to the bias, or adds the bias to it if the product accumulates.
 * The product is added afterwards. */
static void add_bias(const struct call *call, size_t first, size_t rows, const float *bias)
{
    const size_t n = (size_t)call->work->matmul.n;
    float *y = (float *)call->write[0].data + first * n;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++)
            y[i * n + j] = (call->work->matmul.accumulate ? y[i * n + j] : 0) + bias[j];
}

const char *cpu_matmul(const struct call *call, float *scratch)
{
    const struct work *work = call->work;
    const blasint m = (blasint)work->matmul.m, n = (blasint)work->matmul.n,
                  k = (blasint)work->matmul.k;
    const float *a = call->read[0].data, *b = call->read[1].data;
    float *y = call->write[0].data; /* (m, n) */
    if (has_scales(work)) {
        const struct operand *scales = &call->read[call->read_count - 2];
        const bool of_rows = work_row_group_count(work) > 1 && work->matmul.form == MATMUL_TN;
        const struct scaled_operand first = {&call->read[0], &scales[0], work_scale_layout(work, 0),
                                             true},
                                    second = {&call->read[1], &scales[1],
                                              work_scale_layout(work, 1), of_rows};
        if (work->matmul.scaling == SCALING_NV)
            return "has scaling=nv, which is predicted and not executed";
        a = rescaled_operand(scratch, call, &first);
        b = rescaled_operand(scratch + (size_t)m * (size_t)k, call, &second);
    }
    bool bias = work->matmul.epilogue == EPILOGUE_BIAS;
    if (work->matmul.accumulate) {
        const float *before = call->read[bias ? 3 : 2].data;
        if (before != y)
            memmove(y, before, call->write[0].element_count * sizeof *y);
    }
    const float beta = bias || work->matmul.accumulate ? 1 : 0;
    const enum matmul_form form = (enum matmul_form)work->matmul.form;
    const int64_t groups = work_row_group_count(work);
    if (work->matmul.part > 0) {
        const size_t matrix =
            (size_t)call->index_in_sharding_group * (size_t)n * (size_t)(form == MATMUL_TN ? m : k);
        if (form == MATMUL_TN && !work->matmul.accumulate)
            memset(y, 0, call->write[0].element_count * sizeof *y);
        multiply(form, m, n, k, a, form == MATMUL_TN ? b : b + matrix,
                 form == MATMUL_TN ? y + matrix : y, beta);
        return NULL;
    }
    size_t end = 0;
    for (int64_t g = 0; g < groups; g++) {
        const size_t first = end;
        end = (size_t)assignment_group_rows_end(call->routed_rows, form == MATMUL_TN ? k : m,
                                                groups, g, (int64_t)first);
        if (bias)
            add_bias(call, form == MATMUL_TN ? 0 : first,
                     form == MATMUL_TN ? (size_t)m : end - first,
                     (const float *)call->read[2].data + g * n);
        const size_t matrix = (size_t)g * (size_t)n * (size_t)(form == MATMUL_TN ? m : k);
        if (work->matmul.turned)
            multiply(MATMUL_NT, m, n, (blasint)(end - first), a + first * (size_t)m,
                     b + first * (size_t)n, y + matrix, beta);
        else if (form == MATMUL_TN)
            multiply(form, m, n, (blasint)(end - first), a + first * (size_t)m,
                     b + first * (size_t)n, y + matrix, beta);
        else
            multiply(form, (blasint)(end - first), n, k, a + first * (size_t)k, b + matrix,
                     y + first * (size_t)n, beta);
    }
    return NULL;
}
