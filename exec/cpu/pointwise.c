/* Work on single elements, and sums over elements. */
#include "exec/cpu/kernels.h"
#include "exec/cpu/lanes.h"

#include "exec/cpu/fast_exp.h"

#include <math.h>
#include <string.h>

static float sigmoid(float x)
{
    return 1 / (1 + fast_exp(-x));
}

static const float GELU_SCALE = 0.79788456f, GELU_CUBE = 0.044715f; /* sqrt(2 / pi) */

/* Returns tanh(sqrt(2 / pi) (x + 0.044715 x^3)), a factor of GELU's tanh form. It computes tanh u as 1 - 2 / (1 + exp
 * 2u). The absolute error of some 1e-7 suffices, since GELU uses 1 + tanh u. */
static float tanh_for_gelu(float x)
{
    return 1 - 2 / (1 + fast_exp(2 * GELU_SCALE * (x + GELU_CUBE * x * x * x)));
}

/* Returns f(x) and sets *slope to f'(x). f(x) is max(x, 0)^2 for FUNCTION_RELU2, and GELU's tanh form for any other
 * function. */
static float apply_activation(int64_t function, float x, float *slope)
{
    if (function == FUNCTION_RELU2) {
        float positive = x > 0 ? x : 0;
        *slope = 2 * positive;
        return positive * positive;
    }
    float t = tanh_for_gelu(x);
    *slope = 0.5f * (1 + t + x * (1 - t * t) * GELU_SCALE * (1 + 3 * GELU_CUBE * x * x));
    return 0.5f * x * (1 + t);
}

static const float SWIGLU_CLAMP_LIMIT = 7, CLAMPED_SWIGLU_SIGMOID_SCALE = 1.702f;

/* Returns (up + 1) gate sigmoid(1.702 gate), with `gate` clamped to at most 7, and `up` clamped between -7 and 7. Sets
 * *by_gate and *by_up to the derivatives. */
static float clamped_swiglu(float gate, float up, float *by_gate, float *by_up)
{
    const float x = gate < SWIGLU_CLAMP_LIMIT ? gate : SWIGLU_CLAMP_LIMIT;
    const float u = up < -SWIGLU_CLAMP_LIMIT  ? -SWIGLU_CLAMP_LIMIT
                    : up < SWIGLU_CLAMP_LIMIT ? up
                                              : SWIGLU_CLAMP_LIMIT;
    const float s = sigmoid(CLAMPED_SWIGLU_SIGMOID_SCALE * x);
    *by_gate = gate <= SWIGLU_CLAMP_LIMIT
                   ? (u + 1) * s * (1 + CLAMPED_SWIGLU_SIGMOID_SCALE * x * (1 - s))
                   : 0;
    *by_up = up >= -SWIGLU_CLAMP_LIMIT && up <= SWIGLU_CLAMP_LIMIT ? x * s : 0;
    return (u + 1) * x * s;
}

/* Returns the result of a gated activation for one gate and up. Sets *by_gate and *by_up to the derivatives. */
static float apply_gated(int64_t function, float gate, float up, float *by_gate, float *by_up)
{
    if (function == FUNCTION_CLAMPED)
        return clamped_swiglu(gate, up, by_gate, by_up);
    if (function == ACTIVATION_FUNCTION_OF_KIND) { /* silu, whose derivative is s (1 + x (1 - s)) */
        const float s = sigmoid(gate);
        *by_up = gate * s;
        *by_gate = up * s * (1 + gate * (1 - s));
        return gate * s * up;
    }
    *by_up = apply_activation(function, gate, by_gate);
    *by_gate *= up;
    return *by_up * up;
}

const char *cpu_swiglu(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t cols = work->activation.cols;
    const float *weights = work->activation.weights ? call->read[1].data : NULL; /* (rows) */
    float by_gate, by_up;
    for (int64_t i = 0; i < work->activation.rows; i++) {
        const float *gate = (const float *)call->read[0].data + 2 * i * cols, *up = gate + cols;
        float *y = (float *)call->write[0].data + i * cols;
        for (int64_t j = 0; j < cols; j++)
            y[j] = apply_gated(work->activation.function, gate[j], up[j], &by_gate, &by_up);
        for (int64_t j = 0; weights != NULL && j < cols; j++)
            y[j] *= weights[i];
    }
    return NULL;
}

const char *cpu_swiglu_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t cols = work->activation.cols;
    const float *weights = work->activation.weights ? call->read[2].data : NULL; /* (rows) */
    for (int64_t i = 0; i < work->activation.rows; i++) {
        const float *dy = (const float *)call->read[0].data + i * cols;
        const float *gate = (const float *)call->read[1].data + 2 * i * cols, *up = gate + cols;
        float *d_gate = (float *)call->write[0].data + 2 * i * cols, *d_up = d_gate + cols;
        const float weight = weights != NULL ? weights[i] : 1;
        double dot = 0;
        for (int64_t j = 0; j < cols; j++) {
            float by_gate, by_up;
            const float y =
                apply_gated(work->activation.function, gate[j], up[j], &by_gate, &by_up);
            dot += (double)dy[j] * (double)y;
            d_gate[j] = weight * dy[j] * by_gate;
            d_up[j] = weight * dy[j] * by_up;
        }
        if (weights != NULL)
            ((float *)call->write[1].data)[i] = (float)dot;
    }
    return NULL;
}

const char *cpu_gelu(const struct call *call, float *scratch)
{
    (void)scratch;
    const float *x = call->read[0].data;
    float *y = call->write[0].data;
    const int64_t count = call->work->rows.rows * call->work->rows.cols;
    float slope;
    for (int64_t i = 0; i < count; i++)
        y[i] = apply_activation(call->work->activation.function, x[i], &slope);
    return NULL;
}

const char *cpu_gelu_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const float *dy = call->read[0].data, *x = call->read[1].data;
    float *dx = call->write[0].data;
    const int64_t count = call->work->rows.rows * call->work->rows.cols;
    for (int64_t i = 0; i < count; i++) {
        float slope;
        apply_activation(call->work->activation.function, x[i], &slope);
        dx[i] = dy[i] * slope;
    }
    return NULL;
}

const char *cpu_add(const struct call *call, float *scratch)
{
    (void)scratch;
    const int64_t count = call->work->elements.count, cols = call->work->elements.cols;
    const float *a = call->read[0].data, *b = call->read[1].data;
    float *y = call->write[0].data;
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
    for (int64_t i = 0; cols > 0 && i < count; i += cols) { /* a bias on every row */
        const float *bias = call->read[2].data;
        for (int64_t j = 0; j < cols; j++)
            y[i + j] += bias[j];
    }
    return NULL;
}

const char *cpu_cast(const struct call *call, float *scratch)
{
    (void)scratch; /* cpu_compute_call() has converted x, and converts y */
    memmove(call->write[0].data, call->read[0].data,
            (size_t)call->work->elements.count * sizeof(float));
    return NULL;
}

const char *cpu_fill_zeros(const struct call *call, float *scratch)
{
    (void)scratch;
    memset(call->write[0].data, 0,
           call->write[0].element_count * dtype_bytes(call->write[0].dtype));
    return NULL;
}

const char *cpu_square_sum(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct copied_run all = {0, (uint64_t)call->work->square_sum.count, 1};
    const struct copied_run *share = call->square_sum_runs != NULL ? call->square_sum_runs : &all;
    const uint32_t shares = call->square_sum_runs != NULL ? call->square_sum_run_count : 1;
    const float *x = call->read[0].data;
    float *y = call->write[0].data;
    double sum = call->read_count > 1 ? *(const float *)call->read[1].data : 0;
    for (uint32_t k = 0; k < shares; k++) {
        double own = 0;
        for (uint64_t i = share[k].begin; i < share[k].begin + share[k].element_count; i++)
            own += (double)x[i] * x[i];
        sum += own / share[k].copies;
    }
    *y = (float)sum;
    return NULL;
}

/* Returns the factor that clips gradients: max_norm / (norm + 1e-6), at most 1, as in torch.nn.utils.clip_grad_norm_
 * and Megatron-LM's clip_grads.py; 1 if max_norm is 0. *squares: the square of the norm. */
static float clip_factor(const struct call *call, const float *squares)
{
    double factor = call->adamw.max_norm / (sqrt((double)*squares) + 1e-6);
    return call->adamw.max_norm > 0 && factor < 1 ? (float)factor : 1;
}

const char *cpu_clip(const struct call *call, float *scratch)
{
    (void)scratch;
    const float *x = call->read[0].data, factor = clip_factor(call, call->read[1].data);
    float *y = call->write[0].data;
    for (int64_t i = 0; i < call->work->elements.count; i++)
        y[i] = x[i] * factor;
    return NULL;
}

/* Constants of AdamW in step t: decay_factor is 1 - lr weight_decay, corrected_lr is lr / (1 - beta1^t),
 * root_correction is 1 / sqrt(1 - beta2^t), and clip_factor is 1 unless gradients are clipped. */
struct adamw_constants {
    float beta1, beta2, one_less_beta1, one_less_beta2, eps, decay_factor, corrected_lr,
        root_correction, clip_factor;
};

/* Updates n <= LANES elements from element `at` on. It reads all of them before it writes any, so that the compiler can
 * vectorise the computation although results usually overwrite operands. */
static inline void update_adamw_lanes(const struct adamw_constants *a, const struct call *call,
                                      int64_t at, size_t n)
{
    float g[LANES] = {0}, p[LANES] = {0}, m[LANES] = {0}, v[LANES] = {0};
    memcpy(g, (const float *)call->read[0].data + at, n * sizeof *g);
    memcpy(p, (const float *)call->read[1].data + at, n * sizeof *p);
    memcpy(m, (const float *)call->read[2].data + at, n * sizeof *m);
    memcpy(v, (const float *)call->read[3].data + at, n * sizeof *v);
    for (int k = 0; k < LANES; k++) {
        float grad = g[k] * a->clip_factor;
        m[k] = a->beta1 * m[k] + a->one_less_beta1 * grad;
        v[k] = a->beta2 * v[k] + a->one_less_beta2 * grad * grad;
        p[k] = p[k] * a->decay_factor -
               a->corrected_lr * m[k] / (sqrtf(v[k]) * a->root_correction + a->eps);
    }
    memcpy((float *)call->write[0].data + at, p, n * sizeof *p);
    memcpy((float *)call->write[1].data + at, m, n * sizeof *m);
    memcpy((float *)call->write[2].data + at, v, n * sizeof *v);
    if (call->write_count > 3)
        memcpy((float *)call->write[3].data + at, p, n * sizeof *p);
}

/* Computes AdamW (Loshchilov and Hutter, arXiv 1711.05101) in the order of PyTorch's AdamW: p <- p (1 - lr
 * weight_decay); then m and v; then p <- p - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps), where t is the
 * number of the step. */
const char *cpu_adamw(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct exec_adamw *from = &call->adamw;
    const struct adamw_constants a = {
        .beta1 = (float)from->beta1,
        .beta2 = (float)from->beta2,
        .one_less_beta1 = (float)(1 - from->beta1),
        .one_less_beta2 = (float)(1 - from->beta2),
        .eps = (float)from->eps,
        .decay_factor = (float)(1 - from->lr * from->weight_decay),
        .corrected_lr = (float)(from->lr / (1 - pow(from->beta1, (double)from->step_number))),
        .root_correction = (float)(1 / sqrt(1 - pow(from->beta2, (double)from->step_number))),
        .clip_factor = call->read_count > 4 ? clip_factor(call, call->read[4].data) : 1,
    };
    int64_t count = call->work->elements.count, at = 0;
    for (; at + LANES <= count; at += LANES)
        update_adamw_lanes(&a, call, at, LANES);
    if (at < count)
        update_adamw_lanes(&a, call, at, (size_t)(count - at));
    return NULL;
}
