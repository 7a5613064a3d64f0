/* Kernels that compute elements independently of each other, and sums of elements. Each thread computes eight elements
 * at a time. */
#include "exec/cuda/device.cuh"
#include "exec/draw.h"

enum { THREADS = 256 };

/* ---- additions and casts ---- */

static __global__ void add_kernel(struct array y, struct array a, struct array b, int64_t count)
{
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int64_t i = k * EIGHT;
        int n = at_most_eight(count - i);
        struct stored8 sa = fetch8(a, i, n), sb = fetch8(b, i, n);
        struct eight_floats ea = unpack8(sa, a.dtype), eb = unpack8(sb, b.dtype);
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            ea.x[j] += eb.x[j];
        store8(y, i, n, ea);
    }
}

int cuda_add(struct cuda_array y, struct cuda_array a, struct cuda_array b, int64_t count,
             cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(add_kernel, blocks_for(ceil_div(count, EIGHT), THREADS),
                                      THREADS, stream, kernel_array_of(y), kernel_array_of(a),
                                      kernel_array_of(b), count);
}

static __global__ void add_bias_kernel(struct array y, struct array a, struct array b,
                                       struct array bias, int64_t rows, int64_t cols)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        int64_t c = (int64_t)w.column_group * EIGHT, i = w.row * cols + c;
        int n = at_most_eight(cols - c);
        struct stored8 sa = fetch8(a, i, n), sb = fetch8(b, i, n), sc = fetch8(bias, c, n);
        struct eight_floats ea = unpack8(sa, a.dtype), eb = unpack8(sb, b.dtype),
                            ec = unpack8(sc, bias.dtype);
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            ea.x[j] = ea.x[j] + eb.x[j] + ec.x[j];
        store8(y, i, n, ea);
    }
}

int cuda_add_bias(struct cuda_array y, struct cuda_array a, struct cuda_array b,
                  struct cuda_array bias, int64_t rows, int64_t cols, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        add_bias_kernel, blocks_for(rows * ceil_div(cols, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(y, cols), kernel_array_of_rows(a, cols), kernel_array_of_rows(b, cols),
        kernel_array_of_rows(bias, cols), rows, cols);
}

static __global__ void cast_kernel(struct array y, struct array x, int64_t count)
{
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int n = at_most_eight(count - k * EIGHT);
        store8(y, k * EIGHT, n, load8(x, k * EIGHT, n));
    }
}

int cuda_cast(struct cuda_array y, struct cuda_array x, int64_t count, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(cast_kernel, blocks_for(ceil_div(count, EIGHT), THREADS),
                                      THREADS, stream, kernel_array_of(y), kernel_array_of(x),
                                      count);
}

/* ---- weights in 4 or 8 bits ---- */

static __device__ __forceinline__ float float_of_bytes(const uint8_t *p)
{
    return __uint_as_float((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                           (uint32_t)p[3] << 24);
}

static __device__ __forceinline__ float scale_of(const struct cuda_stored_weight &w, uint32_t block)
{
    if (!w.has_narrow_scales)
        return float_of_bytes(w.scales + 4 * (int64_t)block);
    const uint32_t blocks = ((uint32_t)w.count - 1) / (uint32_t)w.scale_elements + 1;
    const uint8_t *wide = w.scales + ((int64_t)blocks + 3) / 4 * 4,
                  *offset = wide + ((int64_t)blocks + 255) / 256 * 4;
    return w.scale_value[w.scales[block]] * float_of_bytes(wide + (int64_t)(block / 256) * 4) +
           float_of_bytes(offset);
}

enum { TOO_MANY_ELEMENTS = 1 }; /* cudaErrorInvalidValue */

/* Computes the elements from their codes and scales. It divides in 32 bits, which is several times as fast as in 64;
 * cuda_dequantise() refuses weights for which 32 bits do not suffice. */
static __global__ void dequantise_kernel(struct array y, struct cuda_stored_weight w)
{
    const uint32_t scale_elements = (uint32_t)w.scale_elements;
    FOR_EACH(k, (w.count + EIGHT - 1) / EIGHT)
    {
        const int64_t first = k * EIGHT;
        const int n = at_most_eight(w.count - first);
        struct eight_floats e;
        uint32_t block = (uint32_t)first / scale_elements;
        float scale = scale_of(w, block);
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            const int64_t i = first + j;
            e.x[j] = 0;
            if (j >= n)
                continue;
            if ((uint32_t)i / scale_elements != block)
                scale = scale_of(w, block = (uint32_t)i / scale_elements);
            const uint8_t code = w.codes[w.has_bytes ? i : i / 2];
            e.x[j] = w.has_bytes ? (float)(int8_t)code * scale * (1.0f / 127.0f)
                                 : w.value[i % 2 == 0 ? code >> 4 : code & 15] * scale;
        }
        store8(y, first, n, e);
    }
}

int cuda_dequantise(struct cuda_array y, struct cuda_stored_weight stored, cudaStream_t stream)
{
    if (stored.count > UINT32_MAX)
        return TOO_MANY_ELEMENTS;
    return LAUNCH_INDEPENDENT_THREADS(dequantise_kernel,
                                      blocks_for(ceil_div(stored.count, EIGHT), THREADS), THREADS,
                                      stream, kernel_array_of(y), stored);
}

/* ---- activations ---- */

static __device__ __forceinline__ float sigmoid(float x)
{
    return 1 / (1 + __expf(-x));
}

#define GELU_SCALE 0.79788456f /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715f

/* Returns f(x) of an activation's function, and sets *slope = f'(x). own: CUDA_OWN if the activation's default function
 * is silu, CUDA_GELU if it is GELU. */
static __device__ __forceinline__ float apply_activation(enum cuda_activation_kind function,
                                                         enum cuda_activation_kind own, float x,
                                                         float *slope)
{
    if (function == CUDA_OWN && own == CUDA_OWN) { /* silu' = s (1 + x (1 - s)) */
        float s = sigmoid(x);
        *slope = s * (1 + x * (1 - s));
        return x * s;
    }
    if (function == CUDA_RELU2) {
        float positive = x > 0 ? x : 0;
        *slope = 2 * positive;
        return positive * positive;
    }
    float t = tanhf(GELU_SCALE * (x + GELU_CUBE * x * x * x));
    *slope = 0.5f * (1 + t + x * (1 - t * t) * GELU_SCALE * (1 + 3 * GELU_CUBE * x * x));
    return 0.5f * x * (1 + t);
}

#define SWIGLU_CLAMP_LIMIT 7.f
#define CLAMPED_SWIGLU_SIGMOID_SCALE 1.702f

/* Returns (up + 1) gate sigmoid(1.702 gate), with `gate` clamped to at most 7, and `up` clamped between -7 and 7. Sets
 * *by_gate and *by_up to the derivatives by the numbers before they were clamped. */
static __device__ __forceinline__ float clamped_swiglu(float gate, float up, float *by_gate,
                                                       float *by_up)
{
    float x = fminf(gate, SWIGLU_CLAMP_LIMIT),
          u = fmaxf(fminf(up, SWIGLU_CLAMP_LIMIT), -SWIGLU_CLAMP_LIMIT);
    float s = sigmoid(CLAMPED_SWIGLU_SIGMOID_SCALE * x);
    *by_gate = gate > SWIGLU_CLAMP_LIMIT
                   ? 0
                   : (u + 1) * s * (1 + CLAMPED_SWIGLU_SIGMOID_SCALE * x * (1 - s));
    *by_up = fabsf(up) > SWIGLU_CLAMP_LIMIT ? 0 : x * s;
    return (u + 1) * x * s;
}

/* Returns the result of a gated activation for `gate` and `up`, and sets *by_gate and *by_up to its derivatives by
 * them. */
static __device__ __forceinline__ float apply_gated(enum cuda_activation_kind function, float gate,
                                                    float up, float *by_gate, float *by_up)
{
    if (function == CUDA_CLAMPED)
        return clamped_swiglu(gate, up, by_gate, by_up);
    *by_up = apply_activation(function, CUDA_OWN, gate, by_gate);
    *by_gate *= up;
    return *by_up * up;
}

static __global__ void swiglu_kernel(struct array y, struct array x, const float *weights,
                                     int64_t rows, int64_t cols, enum cuda_activation_kind function)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(cols - c);
        struct stored8 sg = fetch8(x, 2 * row * cols + c, n);
        struct stored8 su = fetch8(x, (2 * row + 1) * cols + c, n);
        struct eight_floats gate = unpack8(sg, x.dtype), up = unpack8(su, x.dtype);
        float weight = weights != NULL ? weights[row] : 1;
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            float by_gate, by_up;
            up.x[j] = weight * apply_gated(function, gate.x[j], up.x[j], &by_gate, &by_up);
        }
        store8(y, row * cols + c, n, up);
    }
}

int cuda_swiglu(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                int64_t cols, enum cuda_activation_kind function, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(swiglu_kernel,
                                      blocks_for(rows * ceil_div(cols, EIGHT), THREADS), THREADS,
                                      stream, kernel_array_of_rows(y, cols),
                                      kernel_array_of_rows(x, cols), weights, rows, cols, function);
}

static __global__ void swiglu_backward_kernel(struct array dx, struct array dy, struct array x,
                                              int64_t rows, int64_t cols,
                                              enum cuda_activation_kind function)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(cols - c);
        struct stored8 sg = fetch8(x, 2 * row * cols + c, n);
        struct stored8 su = fetch8(x, (2 * row + 1) * cols + c, n);
        struct stored8 sd = fetch8(dy, row * cols + c, n);
        struct eight_floats gate = unpack8(sg, x.dtype), up = unpack8(su, x.dtype);
        struct eight_floats d = unpack8(sd, dy.dtype);
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            float by_gate, by_up;
            apply_gated(function, gate.x[j], up.x[j], &by_gate, &by_up);
            gate.x[j] = d.x[j] * by_gate;
            up.x[j] = d.x[j] * by_up;
        }
        store8(dx, 2 * row * cols + c, n, gate);
        store8(dx, (2 * row + 1) * cols + c, n, up);
    }
}

int cuda_swiglu_backward(struct cuda_array dx, struct cuda_array dy, struct cuda_array x,
                         int64_t rows, int64_t cols, enum cuda_activation_kind function,
                         cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        swiglu_backward_kernel, blocks_for(rows * ceil_div(cols, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(dx, cols), kernel_array_of_rows(dy, cols),
        kernel_array_of_rows(x, cols), rows, cols, function);
}

/* Computes the gradients of a weighted activation. Each block works on one row at a time. */
static __global__ void weighted_swiglu_backward_kernel(struct array dx, float *d_weights,
                                                       struct array dy, struct array x,
                                                       const float *weights, int64_t rows,
                                                       int64_t cols,
                                                       enum cuda_activation_kind function)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float weight = weights[row], dot = 0;
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        {
            struct eight_floats gate = load8(x, 2 * row * cols + c, (int)n);
            struct eight_floats up = load8(x, (2 * row + 1) * cols + c, (int)n);
            struct eight_floats d = load8(dy, row * cols + c, (int)n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                float by_gate, by_up;
                float y = apply_gated(function, gate.x[j], up.x[j], &by_gate, &by_up);
                if (j < n) /* y of a missing element need not be 0 */
                    dot += d.x[j] * y;
                gate.x[j] = weight * d.x[j] * by_gate;
                up.x[j] = weight * d.x[j] * by_up;
            }
            store8(dx, 2 * row * cols + c, (int)n, gate);
            store8(dx, (2 * row + 1) * cols + c, (int)n, up);
        }
        dot = block_sum(dot);
        if (threadIdx.x == 0)
            d_weights[row] = dot;
    }
}

int cuda_weighted_swiglu_backward(struct cuda_array dx, float *d_weights, struct cuda_array dy,
                                  struct cuda_array x, const float *weights, int64_t rows,
                                  int64_t cols, enum cuda_activation_kind function,
                                  cudaStream_t stream)
{
    return LAUNCH(weighted_swiglu_backward_kernel, blocks_for(rows, 1),
                  threads_for_row(cols, THREADS), 0, stream, kernel_array_of_rows(dx, cols),
                  d_weights, kernel_array_of_rows(dy, cols), kernel_array_of_rows(x, cols), weights,
                  rows, cols, function);
}

static __global__ void gelu_kernel(struct array y, struct array x, int64_t count,
                                   enum cuda_activation_kind function)
{
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int n = at_most_eight(count - k * EIGHT);
        struct eight_floats e = load8(x, k * EIGHT, n);
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            float slope;
            e.x[j] = apply_activation(function, CUDA_GELU, e.x[j], &slope);
        }
        store8(y, k * EIGHT, n, e);
    }
}

int cuda_gelu(struct cuda_array y, struct cuda_array x, int64_t count,
              enum cuda_activation_kind function, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(gelu_kernel, blocks_for(ceil_div(count, EIGHT), THREADS),
                                      THREADS, stream, kernel_array_of(y), kernel_array_of(x),
                                      count, function);
}

static __global__ void gelu_backward_kernel(struct array dx, struct array dy, struct array x,
                                            int64_t count, enum cuda_activation_kind function)
{
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int n = at_most_eight(count - k * EIGHT);
        struct stored8 sx = fetch8(x, k * EIGHT, n), sd = fetch8(dy, k * EIGHT, n);
        struct eight_floats e = unpack8(sx, x.dtype), d = unpack8(sd, dy.dtype);
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            float slope;
            apply_activation(function, CUDA_GELU, e.x[j], &slope);
            d.x[j] *= slope;
        }
        store8(dx, k * EIGHT, n, d);
    }
}

int cuda_gelu_backward(struct cuda_array dx, struct cuda_array dy, struct cuda_array x,
                       int64_t count, enum cuda_activation_kind function, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        gelu_backward_kernel, blocks_for(ceil_div(count, EIGHT), THREADS), THREADS, stream,
        kernel_array_of(dx), kernel_array_of(dy), kernel_array_of(x), count, function);
}

/* ---- clipping of gradients, and sums of squares ---- */

static __device__ __forceinline__ float clip_factor(const float *squares, float max_norm)
{
    float factor = squares ? max_norm / (sqrtf(*squares) + 1e-6f) : 1.f;
    return squares && max_norm > 0 && factor < 1.f ? factor : 1.f;
}

static __global__ void clip_kernel(struct array y, struct array x, const float *squares,
                                   float max_norm, int64_t count)
{
    float factor = clip_factor(squares, max_norm);
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int64_t i = k * EIGHT;
        int n = at_most_eight(count - i);
        struct eight_floats e = load8(x, i, n);
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            e.x[j] *= factor;
        store8(y, i, n, e);
    }
}

int cuda_clip(struct cuda_array y, struct cuda_array x, const float *squares, double max_norm,
              int64_t count, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(clip_kernel, blocks_for(ceil_div(count, EIGHT), THREADS),
                                      THREADS, stream, kernel_array_of(y), kernel_array_of(x),
                                      squares, (float)max_norm, count);
}

static __global__ void square_kernel(float *part, struct array x, int64_t count)
{
    float own = 0;
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int64_t i = k * EIGHT;
        int n = at_most_eight(count - i);
        struct eight_floats e = load8(x, i, n);
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            own += j < n ? e.x[j] * e.x[j] : 0;
    }
    own = block_sum(own);
    if (threadIdx.x == 0)
        part[blockIdx.x] = own;
}

size_t cuda_square_sum_scratch_bytes(int64_t count)
{
    return blocks_for(ceil_div(count, EIGHT), THREADS) * sizeof(float);
}

int cuda_square_sum(float *sum, const float *before, struct cuda_array x, int64_t count,
                    uint32_t copies, void *scratch, cudaStream_t stream)
{
    unsigned blocks = blocks_for(ceil_div(count, EIGHT), THREADS);
    int error = LAUNCH(square_kernel, blocks, THREADS, 0, stream, (float *)scratch,
                       kernel_array_of(x), count);
    return error ? error
                 : cuda_add_terms(sum, before, (const float *)scratch, blocks, copies, stream);
}

/* ---- AdamW ---- */

static __global__ void adamw_kernel(struct array param, struct array master_new, struct array m_new,
                                    struct array v_new, struct array grad, struct array master,
                                    struct array m, struct array v, const float *squares,
                                    int64_t count, struct cuda_adamw a)
{
    float factor = clip_factor(squares, a.max_norm);
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int64_t i = k * EIGHT;
        int n = at_most_eight(count - i);
        struct stored8 sg = fetch8(grad, i, n), sp = fetch8(master, i, n), sm = fetch8(m, i, n),
                       sv = fetch8(v, i, n);
        struct eight_floats g = unpack8(sg, grad.dtype), p = unpack8(sp, master.dtype);
        struct eight_floats first = unpack8(sm, m.dtype), second = unpack8(sv, v.dtype);
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            g.x[j] *= factor;
            first.x[j] = a.beta1 * first.x[j] + a.one_less_beta1 * g.x[j];
            second.x[j] = a.beta2 * second.x[j] + a.one_less_beta2 * g.x[j] * g.x[j];
            p.x[j] = p.x[j] * a.decay_factor -
                     a.corrected_lr * first.x[j] / (sqrtf(second.x[j]) * a.root_correction + a.eps);
        }
        store8(master_new, i, n, p);
        store8(m_new, i, n, first);
        store8(v_new, i, n, second);
        if (param.data)
            store8(param, i, n, p);
    }
}

int cuda_adamw(struct cuda_array param, struct cuda_array master_new, struct cuda_array m_new,
               struct cuda_array v_new, struct cuda_array grad, struct cuda_array master,
               struct cuda_array m, struct cuda_array v, const float *squares, int64_t count,
               struct cuda_adamw constants, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        adamw_kernel, blocks_for(ceil_div(count, EIGHT), THREADS), THREADS, stream,
        kernel_array_of(param), kernel_array_of(master_new), kernel_array_of(m_new),
        kernel_array_of(v_new), kernel_array_of(grad), kernel_array_of(master), kernel_array_of(m),
        kernel_array_of(v), squares, count, constants);
}

/* ---- drawn numbers ---- */

static __global__ void draw_kernel(struct array to, struct draw draw)
{
    for (uint64_t row = blockIdx.y; row < draw.rows; row += gridDim.y)
        FOR_EACH(k, (int64_t)(draw.cols + EIGHT - 1) / EIGHT)
        {
            int64_t i = k * EIGHT;
            int n = at_most_eight((int64_t)draw.cols - i);
            struct eight_floats e;
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                e.x[j] = draw_element(&draw, draw.first_element + row * draw.row_stride +
                                                 (uint64_t)(i + j));
            store8(to, (int64_t)(row * draw.cols) + i, n, e);
        }
}

int cuda_draw(struct cuda_array to, const struct draw *draw, cudaStream_t stream)
{
    enum { ROWS_MOST = 4096 };
    const struct draw numbers = *draw; /* the emulated device runs the launch later */
    struct array array =
        draw->rows > 1 ? kernel_array_of_rows(to, (int64_t)draw->cols) : kernel_array_of(to);
    unsigned x = (unsigned)blocks_for(ceil_div((int64_t)draw->cols, EIGHT), THREADS);
    unsigned y = draw->rows < ROWS_MOST ? (unsigned)draw->rows : (unsigned)ROWS_MOST;
    return LAUNCH_INDEPENDENT_THREADS(draw_kernel, dim3(x, y), THREADS, stream, array, numbers);
}

/* ---- reductions over arrays, for ranks that share a device ---- */

struct reduce_operands {
    const void *from[CUDA_REDUCE_MEMBERS_MAX];
};

static __global__ void reduce_kernel(struct array to, struct reduce_operands members,
                                     int count_members, bool maximum, bool wide, int64_t count)
{
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        int64_t i = k * EIGHT;
        int n = at_most_eight(count - i);
        struct eight_floats sum;
        for (int member = 0; member < count_members; member++) {
            struct array a = {(char *)members.from[member], to.dtype, wide};
            struct eight_floats e = load8(a, i, n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                sum.x[j] = member == 0 ? e.x[j]
                           : maximum   ? fmaxf(sum.x[j], e.x[j])
                                       : sum.x[j] + e.x[j];
        }
        store8(to, i, n, sum);
    }
}

int cuda_reduce(struct cuda_array to, const void *const *from, int members, bool maximum,
                int64_t count, cudaStream_t stream)
{
    struct reduce_operands list = {};
    bool wide = true;
    for (int i = 0; i < members; i++) {
        list.from[i] = from[i];
        wide = wide && ((uintptr_t)from[i] & 15) == 0;
    }
    return LAUNCH_INDEPENDENT_THREADS(reduce_kernel, blocks_for(ceil_div(count, EIGHT), THREADS),
                                      THREADS, stream, kernel_array_of(to), list, members, maximum,
                                      wide, count);
}
