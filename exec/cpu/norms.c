/* Norms, their gradients, and sums over rows. Sums are kept in fp64: over 10^5 rows fp32 would lose the last two
 * digits. */
#include "exec/assignment.h"
#include "exec/cpu/kernels.h"

#include <math.h>

size_t cpu_column_scratch_floats(const struct work *work)
{
    return 4 * (size_t)work->rows.cols; /* two sums of doubles */
}

const char *cpu_rmsnorm(const struct call *call, float *scratch)
{
    (void)scratch;
    const int64_t rows = call->work->rows.rows, cols = call->work->rows.cols;
    const float *weight = call->work->rmsnorm.bare ? NULL : call->read[1].data; /* (cols) */
    float *rstd = call->write[1].data;                                          /* (rows) */
    for (int64_t i = 0; i < rows; i++) {
        const float *x = (const float *)call->read[0].data + i * cols;
        float *y = (float *)call->write[0].data + i * cols;
        double sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += (double)x[j] * x[j];
        float r = (float)(1 / sqrt(sum / (double)cols + call->model.norm_eps));
        for (int64_t j = 0; j < cols; j++)
            y[j] = x[j] * r * (weight != NULL ? weight[j] : 1);
        rstd[i] = r;
    }
    return NULL;
}

/* Computes the gradient of an RMSNorm. With xhat = x rstd and g = dy weight: dx = rstd (g - xhat mean(g xhat)), and
 * dweight is the sum of dy xhat over rows, plus the gradient so far if the work accumulates. */
const char *cpu_rmsnorm_backward(const struct call *call, float *scratch)
{
    const int64_t rows = call->work->rows.rows, cols = call->work->rows.cols;
    const bool bare = call->work->rmsnorm_backward.bare != 0;
    const float *weight = bare ? NULL : call->read[2].data, *rstd = call->read[bare ? 2 : 3].data;
    float *dweight = bare ? NULL : call->write[1].data;
    double *sum = (double *)(void *)scratch;
    for (int64_t j = 0; j < cols; j++)
        sum[j] = call->work->rows.accumulate ? ((const float *)call->read[4].data)[j] : 0;
    for (int64_t i = 0; i < rows; i++) {
        const float *dy = (const float *)call->read[0].data + i * cols;
        const float *x = (const float *)call->read[1].data + i * cols;
        float *dx = (float *)call->write[0].data + i * cols;
        float r = rstd[i];
        double dot = 0;
        for (int64_t j = 0; j < cols; j++) {
            dot += (double)(dy[j] * (bare ? 1 : weight[j])) * (x[j] * r);
            sum[j] += (double)dy[j] * (x[j] * r);
        }
        float mean = (float)(dot / (double)cols);
        for (int64_t j = 0; j < cols; j++)
            dx[j] = r * (dy[j] * (bare ? 1 : weight[j]) - x[j] * r * mean);
    }
    for (int64_t j = 0; j < cols && !bare; j++)
        dweight[j] = (float)sum[j];
    return NULL;
}

const char *cpu_layernorm(const struct call *call, float *scratch)
{
    (void)scratch;
    const int64_t rows = call->work->rows.rows, cols = call->work->rows.cols;
    const float *weight = call->read[1].data, *bias = call->read[2].data;
    float *stats = call->write[1].data; /* (rows, 2): mean, rstd */
    for (int64_t i = 0; i < rows; i++) {
        const float *x = (const float *)call->read[0].data + i * cols;
        float *y = (float *)call->write[0].data + i * cols;
        double sum = 0, square = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[j];
        double mean = sum / (double)cols;
        for (int64_t j = 0; j < cols; j++)
            square += (x[j] - mean) * (x[j] - mean);
        float m = (float)mean, r = (float)(1 / sqrt(square / (double)cols + call->model.norm_eps));
        for (int64_t j = 0; j < cols; j++)
            y[j] = (x[j] - m) * r * weight[j] + bias[j];
        stats[2 * i] = m;
        stats[2 * i + 1] = r;
    }
    return NULL;
}

/* Computes the gradient of a LayerNorm. With xhat = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - xhat
 * mean(g xhat)). dweight is the sum of dy xhat over rows and dbias that of dy, plus the gradients so far if the work
 * accumulates. */
const char *cpu_layernorm_backward(const struct call *call, float *scratch)
{
    const int64_t rows = call->work->rows.rows, cols = call->work->rows.cols;
    const float *weight = call->read[2].data, *stats = call->read[3].data;
    float *dweight = call->write[1].data, *dbias = call->write[2].data;
    double *weight_sum = (double *)(void *)scratch, *bias_sum = weight_sum + cols;
    bool accumulate = call->work->rows.accumulate;
    for (int64_t j = 0; j < cols; j++) {
        weight_sum[j] = accumulate ? ((const float *)call->read[4].data)[j] : 0;
        bias_sum[j] = accumulate ? ((const float *)call->read[5].data)[j] : 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        const float *dy = (const float *)call->read[0].data + i * cols;
        const float *x = (const float *)call->read[1].data + i * cols;
        float *dx = (float *)call->write[0].data + i * cols;
        float mean = stats[2 * i], r = stats[2 * i + 1];
        double g_sum = 0, dot = 0;
        for (int64_t j = 0; j < cols; j++) {
            float g = dy[j] * weight[j], xhat = (x[j] - mean) * r;
            g_sum += g;
            dot += (double)g * xhat;
            weight_sum[j] += (double)dy[j] * xhat;
            bias_sum[j] += dy[j];
        }
        float g_mean = (float)(g_sum / (double)cols), d_mean = (float)(dot / (double)cols);
        for (int64_t j = 0; j < cols; j++)
            dx[j] = r * (dy[j] * weight[j] - g_mean - (x[j] - mean) * r * d_mean);
    }
    for (int64_t j = 0; j < cols; j++) {
        dweight[j] = (float)weight_sum[j];
        dbias[j] = (float)bias_sum[j];
    }
    return NULL;
}

const char *cpu_column_sum(const struct call *call, float *scratch)
{
    const int64_t cols = call->work->column_sum.cols, groups = work_row_group_count(call->work);
    double *sum = (double *)(void *)scratch;
    int64_t end = 0;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t first = end;
        const float *before =
            call->work->column_sum.accumulate ? (const float *)call->read[1].data + g * cols : NULL;
        float *y = (float *)call->write[0].data + g * cols;
        end = assignment_group_rows_end(call->routed_rows, call->work->column_sum.rows, groups, g,
                                        first);
        for (int64_t j = 0; j < cols; j++)
            sum[j] = before != NULL ? before[j] : 0;
        for (int64_t i = first; i < end; i++) {
            const float *x = (const float *)call->read[0].data + i * cols;
            for (int64_t j = 0; j < cols; j++)
                sum[j] += x[j];
        }
        for (int64_t j = 0; j < cols; j++)
            y[j] = (float)sum[j];
    }
    return NULL;
}
