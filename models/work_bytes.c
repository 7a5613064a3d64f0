/* Computes the bytes of memory that work moves, and the bytes of scratch memory that a kernel needs. */
#include "models/work.h"

#include "models/frozen_storage.h"
#include "models/states.h"

#include <assert.h>

/* The dtypes and operands by which the bytes of a work are counted. */
struct element_sizes {
    double read_element_bytes, written_element_bytes; /* of the dtypes work.in and work.out */
    unsigned read_count,
        write_count; /* numbers of operands, with those optional ones that the op has */
};

typedef double memory_function(const struct work *work, struct element_sizes e);

static const double F32 = 4, I32 = 4;

static double matmul_bytes(const struct work *work, struct element_sizes e)
{
    double m = (double)work->matmul.m, n = (double)work->matmul.n, k = (double)work->matmul.k;
    double bias = work->matmul.epilogue == EPILOGUE_BIAS
                      ? n * (double)work_row_group_count(work) * e.read_element_bytes
                      : 0;
    double passes = work->matmul.accumulate ? 2 : 1; /* with accumulate, y is read too */
    /* the number of matrices in b; in a product that makes gradients of weights (form TN), the number in y */
    double groups = (double)work_row_group_count(work);
    bool turned = work->matmul.form == MATMUL_TN;
    /* elements of y that are written as zero: the gradients of the parts of other ranks */
    double zeros = turned && work->matmul.part > 0 && !work->matmul.accumulate
                       ? (double)(work_weight_matrix_count(work) - 1) * m * n
                       : 0;
    double in =
        work->matmul.scaling == SCALING_NV ? e.read_element_bytes / 2 : e.read_element_bytes;
    if (work->matmul.scaling != SCALING_NONE) /* the bias has the dtype of the result */
        bias = bias / e.read_element_bytes * e.written_element_bytes;
    return (m * k + (turned ? 1 : groups) * k * n) * in + bias +
           (passes * (turned ? groups : 1) * m * n + zeros) * e.written_element_bytes;
}

static double scale_bytes_of_quantised_copy(const struct work *work, int which)
{
    const struct scaling_layout layout = work_scale_layout(work, which);
    return (double)scaling_layout_scale_count(&layout) *
           (double)dtype_bytes(scaling_scale_dtype(layout.scaling));
}

/* Returns the bytes of a quantisation. One pass reads x and writes the copy, or both copies, and the scales. With
 * `amax`, a pass before reads x to find the largest magnitude. With `finds`, the op has only that pass; without `amax`
 * it then takes nothing, since the op that wrote x found the magnitude. If each row of a transposed copy has a scale, a
 * further pass first transposes x in its own dtype (torchao/testing/training/roofline_utils.py,
 * get_tensor_memory_traffic_ovhd_s()). */
static double quantise_bytes(const struct work *work, struct element_sizes e)
{
    const int64_t rows = work->quantise.rows, cols = work->quantise.cols;
    const enum scaling scaling = (enum scaling)work->quantise.scaling;
    const double count = (double)rows * (double)cols,
                 out = e.written_element_bytes / (scaling == SCALING_NV ? 2 : 1);
    const bool both = work->quantise.both, turned = work->quantise.turned || both;
    double bytes = count * (e.read_element_bytes + (both ? 2 : 1) * out);
    if (turned && scaling == SCALING_ROW)
        bytes += count * 2 * e.read_element_bytes;
    if (work->quantise.finds)
        return work->quantise.amax ? count * e.read_element_bytes : 0;
    if (work->quantise.amax)
        bytes += count * e.read_element_bytes;
    if (!work->quantise.turned || both)
        bytes += scale_bytes_of_quantised_copy(work, 0);
    return bytes + (turned ? scale_bytes_of_quantised_copy(work, 1) : 0);
}

static double attention_bytes(const struct work *work, struct element_sizes e)
{
    double q = (double)work->attention.q * (double)work->attention.heads;
    double kv = (double)work->attention.kv * (double)work->attention.kv_heads;
    double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    double in = (q + kv) * dim + kv * vdim;
    const double o_bytes =
        work->attention.scaling != SCALING_NONE ? e.written_element_bytes : e.read_element_bytes;
    if (work->kind == WORK_ATTENTION) /* reads q, k and v, writes o and lse */
        return in * e.read_element_bytes + q * vdim * e.written_element_bytes + q * F32;
    /* The backward reads q, k, v, lse, the gradient of the output, and the output or delta; it writes dq, dk and dv.
     * With MXFP8 it also reads transposed copies of q, k and the gradient of the output, and that gradient in 16
     * bits. */
    double o = work->attention.delta ? q * F32 : q * vdim * o_bytes;
    if (work->attention.scaling == SCALING_MX)
        o += (q + kv) * dim + q * vdim * (1 + o_bytes);
    return (in + q * vdim) * e.read_element_bytes + o + q * F32 + in * e.written_element_bytes;
}

static double merge_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->merge.rows * (double)work->merge.heads;
    double dim = (double)work->merge.dim;
    /* the first term: o is read and written, and the block's o is read; the last term: the same with lse */
    return rows * dim * (2 * F32 + e.read_element_bytes) + rows * 3 * F32;
}

static double norm_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->rows.rows, cols = (double)work->rows.cols;
    bool layer = work->kind == WORK_LAYERNORM || work->kind == WORK_LAYERNORM_BACKWARD;
    double vectors = layer ? 2 : 1; /* LayerNorm has a weight and a bias, a mean and an rstd */
    double statistics = vectors * rows * F32;
    if ((work->kind == WORK_RMSNORM && work->rmsnorm.bare) ||
        (work->kind == WORK_RMSNORM_BACKWARD && work->rmsnorm_backward.bare))
        return rows * cols *
                   ((work->kind == WORK_RMSNORM ? 1 : 2) * e.read_element_bytes +
                    e.written_element_bytes) +
               statistics;
    if (work->kind == WORK_RMSNORM || work->kind == WORK_LAYERNORM)
        return rows * cols * (e.read_element_bytes + e.written_element_bytes) +
               vectors * cols * e.read_element_bytes + statistics;
    double passes = work->rows.accumulate ? 2 : 1;
    return rows * cols * (2 * e.read_element_bytes + e.written_element_bytes) +
           cols * e.read_element_bytes + passes * vectors * cols * e.written_element_bytes +
           statistics;
}

static double rope_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->rope.rows;
    double cols = work->rope.stride ? (double)work->rope.stride
                                    : (double)work->rope.heads * (double)work->rope.dim;
    return rows * cols * (e.read_element_bytes + e.written_element_bytes) + rows * I32;
}

static double latent_keys_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->latent_keys.rows, heads = (double)work->latent_keys.heads;
    double rotated = (double)work->latent_keys.rotated;
    double narrow = heads * (double)(work->latent_keys.plain + work->latent_keys.vdim);
    double wide = narrow + heads * rotated;
    narrow += rotated;
    return rows * (work->kind == WORK_LATENT_KEYS
                       ? narrow * e.read_element_bytes + wide * e.written_element_bytes
                       : wide * e.read_element_bytes + narrow * e.written_element_bytes);
}

static double activation_bytes(const struct work *work, struct element_sizes e)
{
    double count = (double)work->activation.rows * (double)work->activation.cols;
    if (work->activation.touches > 0) /* a chain of kernels, which all use one dtype */
        return count * (double)work->activation.touches * e.read_element_bytes;
    const double weights = work->activation.weights ? (double)work->activation.rows * F32 : 0;
    switch ((enum work_kind)work->kind) {
    case WORK_SWIGLU:
        return count * (2 * e.read_element_bytes + e.written_element_bytes) + weights;
    case WORK_SWIGLU_BACKWARD: /* reads dy, gate and up, writes the gradients of gate and up */
        return count * (3 * e.read_element_bytes + 2 * e.written_element_bytes) + 2 * weights;
    case WORK_GELU:
        return count * (e.read_element_bytes + e.written_element_bytes);
    default: /* it is GELU_BACKWARD */
        return count * (2 * e.read_element_bytes + e.written_element_bytes);
    }
}

static double route_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->route.rows, logits = rows * (double)work->route.experts;
    double weights = rows * (double)work->route.copies * F32;
    return work->kind == WORK_ROUTE ? logits * e.read_element_bytes + weights
                                    : logits * (F32 + e.written_element_bytes) + weights;
}

static double permute_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->permute.rows, cols = (double)work->permute.cols;
    double weights = rows * (double)work->permute.copies * F32, one = rows * cols;
    double copies =
        work->permute.to > 0 ? (double)work->permute.to * cols : one * (double)work->permute.copies;
    double used = copies < one ? copies : one; /* rows of x without a copy are not read */
    switch ((enum work_kind)work->kind) {
    case WORK_PERMUTE_WEIGHTS:
    case WORK_PERMUTE_WEIGHTS_BACKWARD:
        return weights + (work->permute.to > 0 ? (double)work->permute.to * F32 : weights);
    case WORK_PERMUTE:
        return used * e.read_element_bytes + copies * e.written_element_bytes +
               (work->permute.weights ? weights : 0);
    case WORK_UNPERMUTE:
        return copies * e.read_element_bytes + one * e.written_element_bytes +
               (work->permute.weights ? weights : 0);
    /* UNPERMUTE_BACKWARD reads the gradient of the sum and the copies, writes the gradients of the copies, and reads
     * and writes the weights */
    default:
        return used * e.read_element_bytes +
               copies * (e.read_element_bytes + e.written_element_bytes) + 2 * weights;
    }
}

static double embedding_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->embedding.rows, cols = (double)work->embedding.cols;
    if (work->kind == WORK_EMBEDDING)
        return rows * I32 + rows * cols * (e.read_element_bytes + e.written_element_bytes);
    /* The backward reads and writes one row of the table of gradients for each token. The table is cleared first,
     * unless an earlier gradient is read. With `total`, a table of the whole vocabulary is used, in the dtype of the
     * rows, and always cleared. */
    double table =
        (double)(work->embedding.total > 0 ? work->embedding.total : work->embedding.vocab);
    double out = work->embedding.total > 0 ? e.read_element_bytes : e.written_element_bytes;
    double cleared = e.read_count < 3 || work->embedding.total > 0 ? table * cols * out : 0;
    return rows * I32 + rows * cols * (e.read_element_bytes + 2 * out) + cleared;
}

static double cross_entropy_bytes(const struct work *work, struct element_sizes e)
{
    double rows = (double)work->cross_entropy.rows;
    double logits = rows * (double)work->cross_entropy.vocab;
    switch ((enum work_kind)work->kind) {
    case WORK_CROSS_ENTROPY: /* reads labels, writes lse; the loss is few bytes but counts */
        return logits * e.read_element_bytes + rows * (I32 + F32) +
               (work->cross_entropy.accumulate ? 2 : 1) * F32 +
               (e.write_count > 2 ? logits * F32 : 0);
    case WORK_CROSS_ENTROPY_BACKWARD:
        return logits * (e.read_element_bytes + e.written_element_bytes) + rows * I32;
    case WORK_CROSS_ENTROPY_PARTIAL:
        return logits * e.read_element_bytes + rows * (I32 + 3 * F32);
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return logits * (e.read_element_bytes + e.written_element_bytes) + rows * (I32 + F32);
    default: /* FINISH: reads the statistics, which are all that is needed of the logits */
        return rows * (I32 + 3 * F32 + F32) + (work->p[4] ? 2 : 1) * F32;
    }
}

static double element_bytes(const struct work *work, struct element_sizes e)
{
    double count = (double)work->elements.count;
    switch ((enum work_kind)work->kind) {
    case WORK_ADD:
        return count * (e.read_element_bytes + 2 * e.written_element_bytes) +
               (double)work->elements.cols * e.read_element_bytes;
    case WORK_CAST:
        return count * (e.read_element_bytes + e.written_element_bytes);
    case WORK_FILL:
        return count * e.written_element_bytes;
    case WORK_SQUARE_SUM:
        return count * e.read_element_bytes + (work->square_sum.accumulate ? 2 : 1) * F32;
    case WORK_CLIP:
        return count * (e.read_element_bytes + e.written_element_bytes) + F32;
    /* ADAMW reads the gradient, reads and writes master and moments, and writes the copy of the parameters */
    default:
        return count * (e.read_element_bytes + (e.write_count > 3 ? e.written_element_bytes : 0)) +
               states_traffic_bytes((enum states)work->adamw.states, (uint64_t)work->adamw.count);
    }
}

static double dequantise_bytes(const struct work *work, struct element_sizes e)
{
    const enum frozen_storage storage = (enum frozen_storage)work->dequantise.storage;
    const int64_t rows = work->dequantise.rows, cols = work->dequantise.cols;
    const double count = (double)rows * (double)cols;
    return (double)frozen_storage_code_bytes(storage, (uint64_t)count) +
           (double)frozen_storage_scale_bytes(storage, rows, cols) +
           count * e.written_element_bytes;
}

static double pack_bytes(const struct work *work, struct element_sizes e)
{
    double width = (double)work->pack.w[0] + (double)work->pack.w[1] + (double)work->pack.w[2];
    return (double)work->pack.rows * (double)work->pack.parts * width *
           (e.read_element_bytes + e.written_element_bytes);
}

static double kv_head_copies_bytes(const struct work *work, struct element_sizes e)
{
    double one = (double)work->heads.rows * (double)work->heads.heads * (double)work->heads.dim;
    double copies = (double)work->heads.copies;
    return work->kind == WORK_HEAD_EXPAND
               ? one * (e.read_element_bytes + copies * e.written_element_bytes)
               : one * (copies * e.read_element_bytes + e.written_element_bytes);
}

/* Returns the bytes of the rank with the most rows: it reads as many rows as it writes. */
static double take_rows_bytes(const struct work *work, struct element_sizes e)
{
    return (double)work->take_rows.parts * (double)work->take_rows.to *
           (double)work->take_rows.width * (e.read_element_bytes + e.written_element_bytes);
}

static double add_rows_bytes(const struct work *work, struct element_sizes e)
{
    return (double)work->add_rows.parts * (double)work->add_rows.rows *
           (double)work->add_rows.width * (e.read_element_bytes + 2 * e.written_element_bytes);
}

static double merge_rows_bytes(const struct work *work, struct element_sizes e)
{
    const double rows = (double)work->merge_rows.rows * (double)work->merge_rows.heads;
    return rows * ((double)work->merge_rows.dim * (2 * F32 + e.read_element_bytes) + 3 * F32);
}

static double row_dot_bytes(const struct work *work, struct element_sizes e)
{
    const double rows = (double)work->merge.rows * (double)work->merge.heads;
    return rows * (2 * (double)work->merge.dim * e.read_element_bytes + F32);
}

static double column_sum_bytes(const struct work *work, struct element_sizes e)
{
    double cols = (double)work->column_sum.cols, sums = cols * (double)work_row_group_count(work);
    return (double)work->column_sum.rows * cols * e.read_element_bytes +
           (work->column_sum.accumulate ? 2 : 1) * sums * e.written_element_bytes;
}

/* Returns the bytes of work on attention sinks. SINK reads and writes o and lse; SINK_BACKWARD reads the gradient of o,
 * o and lse. Both read the sinks, which have the dtype of o; SINK_BACKWARD writes their gradients. */
static double sink_bytes(const struct work *work, struct element_sizes e)
{
    const double rows = (double)work->sink.rows * (double)work->sink.heads;
    const double dim = (double)work->sink.dim, sinks = (double)work->sink.sinks;
    if (work->kind == WORK_SINK)
        return rows * (dim * (e.read_element_bytes + e.written_element_bytes) + 2 * F32) +
               sinks * e.read_element_bytes;
    return rows * (2 * dim * e.read_element_bytes + F32) +
           sinks *
               (e.read_element_bytes + (work->sink.accumulate ? 2 : 1) * e.written_element_bytes);
}

static double opaque_bytes(const struct work *work, struct element_sizes e)
{
    (void)e;
    const struct work as = work_cost_equivalent(work);
    return as.kind == WORK_OPAQUE ? (double)work->opaque.bytes : work_memory_bytes(&as);
}

static double no_bytes(const struct work *work, struct element_sizes e)
{
    (void)work;
    (void)e;
    return 0;
}

static memory_function *const memory_functions[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = matmul_bytes,
    [WORK_QUANTISE] = quantise_bytes,
    [WORK_DEQUANTISE] = dequantise_bytes,
    [WORK_ATTENTION] = attention_bytes,
    [WORK_ATTENTION_BACKWARD] = attention_bytes,
    [WORK_MERGE] = merge_bytes,
    [WORK_SINK] = sink_bytes,
    [WORK_SINK_BACKWARD] = sink_bytes,
    [WORK_RMSNORM] = norm_bytes,
    [WORK_RMSNORM_BACKWARD] = norm_bytes,
    [WORK_LAYERNORM] = norm_bytes,
    [WORK_LAYERNORM_BACKWARD] = norm_bytes,
    [WORK_ROPE] = rope_bytes,
    [WORK_ROPE_BACKWARD] = rope_bytes,
    [WORK_SWIGLU] = activation_bytes,
    [WORK_SWIGLU_BACKWARD] = activation_bytes,
    [WORK_GELU] = activation_bytes,
    [WORK_GELU_BACKWARD] = activation_bytes,
    [WORK_LATENT_KEYS] = latent_keys_bytes,
    [WORK_LATENT_KEYS_BACKWARD] = latent_keys_bytes,
    [WORK_ROUTE] = route_bytes,
    [WORK_ROUTE_BACKWARD] = route_bytes,
    [WORK_PERMUTE] = permute_bytes,
    [WORK_UNPERMUTE] = permute_bytes,
    [WORK_UNPERMUTE_BACKWARD] = permute_bytes,
    [WORK_PERMUTE_WEIGHTS] = permute_bytes,
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = permute_bytes,
    [WORK_EMBEDDING] = embedding_bytes,
    [WORK_EMBEDDING_BACKWARD] = embedding_bytes,
    [WORK_CROSS_ENTROPY] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_BACKWARD] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_PARTIAL] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_FINISH] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = cross_entropy_bytes,
    [WORK_ADD] = element_bytes,
    [WORK_CAST] = element_bytes,
    [WORK_FILL] = element_bytes,
    [WORK_PACK] = pack_bytes,
    [WORK_UNPACK] = pack_bytes,
    [WORK_HEAD_EXPAND] = kv_head_copies_bytes,
    [WORK_HEAD_REDUCE] = kv_head_copies_bytes,
    [WORK_TAKE_ROWS] = take_rows_bytes,
    [WORK_ADD_ROWS] = add_rows_bytes,
    [WORK_MERGE_ROWS] = merge_rows_bytes,
    [WORK_ROW_DOT] = row_dot_bytes,
    [WORK_COLUMN_SUM] = column_sum_bytes,
    [WORK_ADAMW] = element_bytes,
    [WORK_SQUARE_SUM] = element_bytes,
    [WORK_CLIP] = element_bytes,
    [WORK_OPAQUE] = opaque_bytes,
    [WORK_ALL_TO_ALL] = no_bytes,
    [WORK_ALL_GATHER] = no_bytes,
    [WORK_REDUCE_SCATTER] = no_bytes,
    [WORK_ALL_REDUCE] = no_bytes,
    [WORK_REDUCE] = no_bytes,
    [WORK_BROADCAST] = no_bytes,
    [WORK_SCATTER] = no_bytes,
    [WORK_EXCHANGE] = no_bytes,
    [WORK_SHIFT] = no_bytes,
    [WORK_SEND] = no_bytes,
    [WORK_RECV] = no_bytes,
    [WORK_H2D] = no_bytes,
    [WORK_D2H] = no_bytes,
    [WORK_HOST_SYNC] = no_bytes,
    [WORK_BARRIER] = no_bytes,
};

double work_memory_bytes(const struct work *work)
{
    assert(work->kind < WORK_KIND_COUNT && memory_functions[work->kind]);
    const struct element_sizes e = {(double)dtype_bytes(work->in), (double)dtype_bytes(work->out),
                                    work->reads, work->writes};
    return memory_functions[work->kind](work, e);
}

/* ---- scratch memory ---- */

int64_t work_workspace_bytes(enum attention_impl impl, int sm, const struct work *work)
{
    assert(impl < ATTENTION_IMPL_COUNT);
    if (work->kind != WORK_ATTENTION_BACKWARD || impl == ATTENTION_CPU)
        return 0;
    double rows = (double)work->attention.q * (double)work->attention.heads;
    double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    double accumulator = F32 * rows * dim, delta = F32 * rows;
    double bytes = accumulator + delta;
    /* dk and dv of every query head in 16 bits, before they are summed over the query heads of a K/V head */
    if (work->attention.kv_heads < work->attention.heads)
        bytes += 2 * (double)work->attention.kv * (double)work->attention.heads * (dim + vdim);
    if (impl == ATTENTION_CUDNN && sm < 90)
        bytes += accumulator;
    return bytes < 0x1p63 ? (int64_t)bytes : INT64_MAX;
}
