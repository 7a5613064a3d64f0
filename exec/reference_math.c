#include "exec/reference_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *new_matrix(struct arena *arena, size_t rows, size_t cols)
{
    return arena_array(arena, rows * cols, sizeof(double));
}

/* Returns the transpose, (cols, rows), of x, (rows, cols), whose rows begin `stride` elements apart. */
static double *new_transpose(const double *x, size_t rows, size_t cols, size_t stride)
{
    double *y = heap_alloc(rows * cols, sizeof *y);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * stride + j];
    return y;
}

static void add_scaled(double *restrict y, double scale, const double *restrict x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] += scale * x[i];
}

static double dot_product(const double *x, const double *y, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Adds the product a b to y, (m, n). Element (i, l) of a, (m, k), is a[i * row + l * col]; rows of b, (k, n), begin
 * b_row elements apart. It works in tiles, so that y stays in the cache. The tiles do not change the order in which an
 * element adds its k products. */
static void add_product(double *y, const double *a, size_t row, size_t col, const double *b,
                        size_t b_row, size_t m, size_t n, size_t k)
{
    const size_t tile_m = 16, tile_n = 256;
    for (size_t i0 = 0; i0 < m; i0 += tile_m) {
        const size_t i1 = m - i0 < tile_m ? m : i0 + tile_m;
        for (size_t j0 = 0; j0 < n; j0 += tile_n) {
            const size_t width = n - j0 < tile_n ? n - j0 : tile_n;
            for (size_t l = 0; l < k; l++)
                for (size_t i = i0; i < i1; i++)
                    add_scaled(&y[i * n + j0], a[i * row + l * col], &b[l * b_row + j0], width);
        }
    }
}

/* Returns x a^T of an adapter, (rows, rank), on the heap. */
static double *new_adapter_product(const struct reference_adapter *p, const double *x, size_t rows,
                                   size_t inputs)
{
    double *adapter_product = heap_zalloc(rows * p->rank + 1, sizeof *adapter_product);
    for (size_t i = 0; i < rows; i++)
        for (size_t r = 0; r < p->rank; r++)
            for (size_t j = 0; j < inputs; j++)
                adapter_product[i * p->rank + r] += x[i * inputs + j] * p->a[r * inputs + j];
    return adapter_product;
}

/* Adds (x a^T) b^T to the adapter's columns of y, (rows, outputs). */
static void add_adapter(const struct reference_adapter *p, double *y, const double *x, size_t rows,
                        size_t outputs, size_t inputs)
{
    double *narrow = new_adapter_product(p, x, rows, inputs);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < p->outputs; k++)
            for (size_t r = 0; r < p->rank; r++)
                y[i * outputs + p->first + k] += narrow[i * p->rank + r] * p->b[k * p->rank + r];
    free(narrow);
}

/* Adds the gradients of the adapter's weights, and adds to dx, (rows, inputs), the gradient that follows from the
 * adapter's columns of dy, (rows, outputs). */
static void adapter_backward(const struct reference_adapter *p, double *dx, const double *dy,
                             const double *x, size_t rows, size_t outputs, size_t inputs)
{
    double *narrow = new_adapter_product(p, x, rows, inputs);
    for (size_t i = 0; i < rows; i++)
        for (size_t r = 0; r < p->rank; r++) {
            double dnarrow = 0;
            for (size_t k = 0; k < p->outputs; k++) {
                const double d = dy[i * outputs + p->first + k];
                dnarrow += d * p->b[k * p->rank + r];
                p->db[k * p->rank + r] += d * narrow[i * p->rank + r];
            }
            for (size_t j = 0; j < inputs; j++) {
                p->da[r * inputs + j] += dnarrow * x[i * inputs + j];
                dx[i * inputs + j] += dnarrow * p->a[r * inputs + j];
            }
        }
    free(narrow);
}

double *reference_linear(struct arena *arena, const struct reference_weight_and_bias *p,
                         const double *x, size_t rows)
{
    const size_t n = p->outputs, k = p->inputs;
    const struct reference_eight_bit_products *narrow = p->eight_bit_products;
    double *y = new_matrix(arena, rows, n), *w = NULL, *in = NULL;
    if (narrow != NULL) {
        w = reference_round_to_narrow(p->weight, n, k, narrow->weight_dtype, narrow->weight_scaling,
                                      false);
        in = reference_round_to_narrow(x, rows, k, narrow->input_dtype, narrow->scaling, false);
    }
    /* wt is (inputs, outputs), so that the inner loop of add_product() runs along consecutive elements of a row */
    double *wt = new_transpose(w != NULL ? w : p->weight, n, k, k);
    for (size_t i = 0; i < rows && p->bias != NULL; i++)
        memcpy(&y[i * n], p->bias, n * sizeof *y);
    add_product(y, in != NULL ? in : x, k, 1, wt, n, rows, n, k);
    for (int i = 0; i < REFERENCE_ADAPTERS && p->adapter[i].a != NULL; i++)
        add_adapter(&p->adapter[i], y, x, rows, n, k);
    free(wt);
    free(w);
    free(in);
    return y;
}

void reference_linear_backward(const struct reference_weight_and_bias *p, double *dx,
                               const double *dy, const double *x, size_t rows)
{
    const size_t n = p->outputs, k = p->inputs;
    const struct reference_eight_bit_products *narrow = p->eight_bit_products;
    if (narrow != NULL) { /* the first product sums over outputs, the second over rows */
        double *of[] = {
            reference_round_to_narrow(dy, rows, n, narrow->gradient_dtype, narrow->scaling, false),
            reference_round_to_narrow(p->weight, n, k, narrow->weight_dtype, narrow->weight_scaling,
                                      true),
            reference_round_to_narrow(dy, rows, n, narrow->gradient_dtype, narrow->scaling, true),
            reference_round_to_narrow(x, rows, k, narrow->input_dtype, narrow->scaling, true)};
        add_product(dx, of[0], n, 1, of[1], k, rows, k, n);
        add_product(p->dweight, of[2], 1, n, of[3], k, n, k, rows);
        for (int i = 0; i < 4; i++)
            free(of[i]);
    } else {
        add_product(dx, dy, n, 1, p->weight, k, rows, k, n);
        add_product(p->dweight, dy, 1, n, x, k, n, k, rows);
    }
    for (size_t i = 0; i < rows && p->dbias != NULL; i++)
        add_scaled(p->dbias, 1, &dy[i * n], n);
    for (int i = 0; i < REFERENCE_ADAPTERS && p->adapter[i].a != NULL; i++)
        adapter_backward(&p->adapter[i], dx, dy, x, rows, n, k);
}

/* ---- norms ---- */

struct row_stats {
    double mean, rstd; /* rstd: 1 / sqrt(variance + eps) */
};

static struct row_stats row_stats(enum norm norm, double eps, const double *x, size_t cols)
{
    double mean = 0, square = 0;
    for (size_t j = 0; j < cols && norm == NORM_LAYERNORM; j++)
        mean += x[j] / (double)cols;
    for (size_t j = 0; j < cols; j++)
        square += (x[j] - mean) * (x[j] - mean) / (double)cols;
    return (struct row_stats){mean, 1 / sqrt(square + eps)};
}

/* Returns a norm's weight of a column; 1 if the norm has no weights. */
static double norm_weight_at(const struct reference_weight_and_bias *p, size_t column)
{
    return p->weight != NULL ? p->weight[column] : 1;
}

double *reference_norm(struct arena *arena, const struct reference_weight_and_bias *p,
                       enum norm norm, double eps, const double *x, size_t rows)
{
    const size_t cols = p->outputs;
    double *y = new_matrix(arena, rows, cols);
    for (size_t i = 0; i < rows; i++) {
        const double *in = &x[i * cols];
        const struct row_stats stats = row_stats(norm, eps, in, cols);
        for (size_t j = 0; j < cols; j++)
            y[i * cols + j] = (in[j] - stats.mean) * stats.rstd * norm_weight_at(p, j) +
                              (p->bias != NULL ? p->bias[j] : 0);
    }
    return y;
}

/* Adds the gradient of a norm. With n = (x - mean) rstd and g = dy weight: dx += rstd (g - n mean(g n) - mean(g)). The
 * last term comes from the mean; an RMSNorm has no mean, and no such term. */
void reference_norm_backward(const struct reference_weight_and_bias *p, enum norm norm, double eps,
                             double *dx, const double *dy, const double *x, size_t rows)
{
    const size_t cols = p->outputs;
    for (size_t i = 0; i < rows; i++) {
        const double *in = &x[i * cols], *d = &dy[i * cols];
        const struct row_stats stats = row_stats(norm, eps, in, cols);
        double mean_g = 0, mean_gn = 0;
        for (size_t j = 0; j < cols; j++) {
            const double g = d[j] * norm_weight_at(p, j), n = (in[j] - stats.mean) * stats.rstd;
            mean_g += g / (double)cols;
            mean_gn += g * n / (double)cols;
            if (p->dweight != NULL)
                p->dweight[j] += d[j] * n;
            if (p->dbias != NULL)
                p->dbias[j] += d[j];
        }
        for (size_t j = 0; j < cols; j++) {
            const double g = d[j] * norm_weight_at(p, j), n = (in[j] - stats.mean) * stats.rstd;
            dx[i * cols + j] +=
                stats.rstd * (g - n * mean_gn - (norm == NORM_LAYERNORM ? mean_g : 0));
        }
    }
}

/* ---- RoPE and attention ---- */

void reference_rope(double *x, double theta, double sign, size_t rows, size_t heads, size_t dim,
                    size_t rotated)
{
    const size_t half = rotated / 2;
    for (size_t j = 0; j < half; j++) {
        const double turn = pow(theta, -2 * (double)j / (double)rotated);
        for (size_t i = 0; i < rows; i++) {
            const double c = cos((double)i * turn), s = sign * sin((double)i * turn);
            for (size_t head = 0; head < heads; head++) {
                double *a = &x[(i * heads + head + 1) * dim - rotated + j], *b = a + half;
                const double a0 = *a, b0 = *b;
                *a = a0 * c - b0 * s;
                *b = b0 * c + a0 * s;
            }
        }
    }
}

/* Sets row[j], for j < count, to the product of the vector a with column j of bt, (dim, stride). */
static void dot_with_columns(double *row, const double *a, const double *bt, size_t dim,
                             size_t stride, size_t count)
{
    memset(row, 0, count * sizeof *row);
    add_product(row, a, 0, 1, bt, stride, 1, count, dim);
}

/* Sets to minus infinity the scores of the keys 0 .. i that query i does not see: with block-sparse attention, those of
 * earlier chunks that are not kept; keys before its window or its chunk; and keys before its document. */
static void mask_row(const struct reference_attention_shape *shape, double *row, size_t i)
{
    for (size_t j = 0; shape->chunk_tokens > 0 && j < i / shape->chunk_tokens * shape->chunk_tokens;
         j++)
        if (j % shape->chunk_tokens >= shape->kept_tokens)
            row[j] = -INFINITY;
    for (size_t j = 0; shape->window_is_chunk && shape->window > 0 && j < i - i % shape->window;
         j++)
        row[j] = -INFINITY;
    for (size_t j = 0; !shape->window_is_chunk && shape->window > 0 && j + shape->window <= i; j++)
        row[j] = -INFINITY;
    for (size_t j = 0; shape->document_begin != NULL && (int64_t)j < shape->document_begin[i]; j++)
        row[j] = -INFINITY;
}

double *reference_attention(struct arena *arena, const struct reference_attention_shape *shape,
                            const double *q, const double *k, const double *v, double **lse)
{
    const size_t s = shape->rows, dim = shape->dim, group = shape->heads / shape->kv_heads;
    const size_t vdim = shape->vdim > 0 ? shape->vdim : dim;
    const size_t q_row = shape->heads * dim, k_row = shape->kv_heads * dim;
    const size_t o_row = shape->heads * vdim, v_row = shape->kv_heads * vdim;
    const double scale = 1 / sqrt((double)dim);
    double *o = new_matrix(arena, s, o_row);
    double *row = heap_alloc(s, sizeof *row);
    *lse = new_matrix(arena, s, shape->heads);
    for (size_t kv_head = 0; kv_head < shape->kv_heads; kv_head++) {
        double *kt = new_transpose(&k[kv_head * dim], s, dim, k_row);
        for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            for (size_t i = 0; i < s; i++) {
                double *out = &o[i * o_row + head * vdim], max = -INFINITY, sum = 0;
                dot_with_columns(row, &q[i * q_row + head * dim], kt, dim, s, i + 1);
                mask_row(shape, row, i);
                for (size_t j = 0; j <= i; j++)
                    max = row[j] * scale > max ? row[j] * scale : max;
                if (shape->sinks != NULL)
                    max = shape->sinks[head] > max ? shape->sinks[head] : max;
                for (size_t j = 0; j <= i; j++) {
                    row[j] = exp(row[j] * scale - max);
                    sum += row[j];
                }
                if (shape->sinks != NULL)
                    sum += exp(shape->sinks[head] - max);
                for (size_t j = 0; j <= i; j++)
                    row[j] /= sum;
                add_product(out, row, 0, 1, &v[kv_head * vdim], v_row, 1, vdim, i + 1);
                (*lse)[i * shape->heads + head] = max + log(sum);
            }
        }
        free(kt);
    }
    free(row);
    return o;
}

/* Adds the gradient of attention. With P = exp(scale Q K^T - lse) and dS = scale P (dO V^T - dO . O): dV += P^T dO, dQ
 * += dS K and dK += dS^T Q. */
void reference_attention_backward(const struct reference_attention_shape *shape, double *dq,
                                  double *dk, double *dv, const double *dout, const double *q,
                                  const double *k, const double *v, const double *o,
                                  const double *lse)
{
    const size_t s = shape->rows, dim = shape->dim, group = shape->heads / shape->kv_heads;
    const size_t vdim = shape->vdim > 0 ? shape->vdim : dim;
    const size_t q_row = shape->heads * dim, k_row = shape->kv_heads * dim;
    const size_t o_row = shape->heads * vdim, v_row = shape->kv_heads * vdim;
    const double scale = 1 / sqrt((double)dim);
    double *row = heap_alloc(s, sizeof *row), *dp = heap_alloc(s, sizeof *dp);
    for (size_t kv_head = 0; kv_head < shape->kv_heads; kv_head++) {
        double *kt = new_transpose(&k[kv_head * dim], s, dim, k_row);
        double *vt = new_transpose(&v[kv_head * vdim], s, vdim, v_row);
        for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            for (size_t i = 0; i < s; i++) {
                const size_t at = i * q_row + head * dim, out = i * o_row + head * vdim;
                const double delta = dot_product(&dout[out], &o[out], vdim);
                const double log_sum = lse[i * shape->heads + head];
                if (shape->sinks != NULL) /* a sink is like a key whose value is 0 */
                    shape->d_sinks[head] -= exp(shape->sinks[head] - log_sum) * delta;
                dot_with_columns(row, &q[at], kt, dim, s, i + 1);
                mask_row(shape, row, i);
                dot_with_columns(dp, &dout[out], vt, vdim, s, i + 1);
                for (size_t j = 0; j <= i; j++) {
                    const size_t key = j * k_row + kv_head * dim;
                    const size_t value = j * v_row + kv_head * vdim;
                    const double p = exp(row[j] * scale - log_sum);
                    row[j] = p * (dp[j] - delta) * scale;
                    add_scaled(&dv[value], p, &dout[out], vdim);
                    add_scaled(&dk[key], row[j], &q[at], dim);
                }
                add_product(&dq[at], row, 0, 1, &k[kv_head * dim], k_row, 1, dim, i + 1);
            }
        }
        free(vt);
        free(kt);
    }
    free(dp);
    free(row);
}

/* ---- activations and loss ---- */

#define GELU_SCALE 0.79788456080286535588 /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715                /* Hendrycks and Gimpel 2016, the tanh form */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

#define SWIGLU_CLAMP_LIMIT 7.0
#define CLAMPED_SWIGLU_SIGMOID_SCALE 1.702

/* Returns (up + 1) gate sigmoid(1.702 gate), with `gate` clamped to at most 7, and `up` clamped between -7 and 7. Sets
 * *by_gate and *by_up to the derivatives, which are 0 beyond these limits (gpt-oss, torch/model.py, swiglu()). */
static double clamped_swiglu(double gate, double up, double *by_gate, double *by_up)
{
    const double x = fmin(gate, SWIGLU_CLAMP_LIMIT),
                 u = fmax(fmin(up, SWIGLU_CLAMP_LIMIT), -SWIGLU_CLAMP_LIMIT);
    const double s = sigmoid(CLAMPED_SWIGLU_SIGMOID_SCALE * x);
    *by_gate = gate > SWIGLU_CLAMP_LIMIT
                   ? 0
                   : (u + 1) * (s + CLAMPED_SWIGLU_SIGMOID_SCALE * x * s * (1 - s));
    *by_up = fabs(up) > SWIGLU_CLAMP_LIMIT ? 0 : x * s;
    return (u + 1) * x * s;
}

/* Returns f(x), where f is the function that the activation applies to its input or, if it has one, to its gate. Sets
 * *slope to the derivative f'(x). */
static double apply_activation(enum activation activation, double x, double *slope)
{
    if (activation == ACTIVATION_SWIGLU) {
        const double s = sigmoid(x);
        *slope = s * (1 + x * (1 - s));
        return x * s;
    }
    if (activation == ACTIVATION_RELU2) {
        const double positive = x > 0 ? x : 0;
        *slope = 2 * positive;
        return positive * positive;
    }
    const double t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));
    *slope = 0.5 * (1 + t + x * (1 - t * t) * GELU_SCALE * (1 + 3 * GELU_CUBE * x * x));
    return 0.5 * x * (1 + t);
}

static bool is_gated(enum activation activation)
{
    return transformer_has_gate(&(struct transformer){.activation = activation});
}

double *reference_activation(struct arena *arena, enum activation activation, const double *x,
                             size_t rows, size_t cols)
{
    double *y = new_matrix(arena, rows, cols);
    const size_t parts = is_gated(activation) ? 2 : 1; /* gate and up, or up */
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            double slope, other;
            if (activation == ACTIVATION_SWIGLU_CLAMPED) {
                y[i * cols + j] =
                    clamped_swiglu(x[i * 2 * cols + j], x[(i * 2 + 1) * cols + j], &slope, &other);
                continue;
            }
            double value = apply_activation(activation, x[i * parts * cols + j], &slope);
            y[i * cols + j] = parts == 2 ? value * x[(i * 2 + 1) * cols + j] : value;
        }
    }
    return y;
}

void reference_activation_backward(enum activation activation, double *dx, const double *dy,
                                   const double *x, size_t rows, size_t cols)
{
    const size_t parts = is_gated(activation) ? 2 : 1;
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            const size_t at = i * parts * cols + j, up = (i * 2 + 1) * cols + j;
            const double d = dy[i * cols + j];
            double slope, other;
            if (activation == ACTIVATION_SWIGLU_CLAMPED) {
                clamped_swiglu(x[at], x[up], &slope, &other);
                dx[at] += d * slope;
                dx[up] += d * other;
                continue;
            }
            double value = apply_activation(activation, x[at], &slope);
            dx[at] += parts == 2 ? d * x[up] * slope : d * slope;
            if (parts == 2)
                dx[up] += d * value;
        }
    }
}

double reference_cross_entropy(double *logits, const int32_t *labels, double scale, size_t rows,
                               size_t vocab)
{
    double loss = 0;
    for (size_t i = 0; i < rows; i++) {
        double *row = &logits[i * vocab], max = -INFINITY, sum = 0;
        if (labels[i] < 0) {
            memset(row, 0, vocab * sizeof *row);
            continue;
        }
        for (size_t j = 0; j < vocab; j++)
            max = row[j] > max ? row[j] : max;
        for (size_t j = 0; j < vocab; j++)
            sum += exp(row[j] - max);
        const double log_sum = max + log(sum);
        loss += log_sum - row[labels[i]];
        for (size_t j = 0; j < vocab; j++)
            row[j] = scale * exp(row[j] - log_sum);
        row[labels[i]] -= scale;
    }
    return loss;
}
