/* Computes the seconds of memory-bound work: the bytes that it moves, divided by the share of the bandwidth that its
 * kind of work reaches. */
#include "models/cost_parts.h"

#include <assert.h>
#include <math.h>

/* Kinds of work that reach the same share of the bandwidth. */
struct memory_class {
    const char *name; /* of the share in models/cost_params.def: "memory.stream_fraction" */
    size_t offset;    /* of the share in struct device_cost */
};
#define DEFINE_MEMORY_CLASS(name)                                                                  \
    static const struct memory_class name = {                                                      \
        "memory." #name "_fraction", offsetof(struct device_cost, memory_##name##_fraction)}
DEFINE_MEMORY_CLASS(stream);
DEFINE_MEMORY_CLASS(reduce);
DEFINE_MEMORY_CLASS(permute);
DEFINE_MEMORY_CLASS(gather);
DEFINE_MEMORY_CLASS(scatter);

/* The class of each kind; NULL: memory does not limit the kind, or it is OPAQUE, whose class is in
 * class_of_opaque[]. */
static const struct memory_class *const class_of[WORK_KIND_COUNT] = {
    [WORK_QUANTISE] = &stream,
    [WORK_DEQUANTISE] = &stream,
    [WORK_MERGE] = &stream,
    [WORK_SINK] = &stream,
    [WORK_SINK_BACKWARD] = &reduce,
    [WORK_RMSNORM] = &reduce,
    [WORK_RMSNORM_BACKWARD] = &reduce,
    [WORK_LAYERNORM] = &reduce,
    [WORK_LAYERNORM_BACKWARD] = &reduce,
    [WORK_ROPE] = &permute,
    [WORK_ROPE_BACKWARD] = &permute,
    [WORK_LATENT_KEYS] = &permute,
    [WORK_LATENT_KEYS_BACKWARD] = &permute,
    [WORK_SWIGLU] = &stream,
    [WORK_SWIGLU_BACKWARD] = &stream,
    [WORK_GELU] = &stream,
    [WORK_GELU_BACKWARD] = &stream,
    [WORK_ROUTE] = &reduce,
    [WORK_ROUTE_BACKWARD] = &reduce,
    [WORK_PERMUTE] = &permute,
    [WORK_UNPERMUTE] = &permute,
    [WORK_UNPERMUTE_BACKWARD] = &permute,
    [WORK_PERMUTE_WEIGHTS] = &permute,
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = &permute,
    [WORK_EMBEDDING] = &gather,
    [WORK_EMBEDDING_BACKWARD] = &scatter,
    [WORK_CROSS_ENTROPY] = &reduce,
    [WORK_CROSS_ENTROPY_BACKWARD] = &reduce,
    [WORK_CROSS_ENTROPY_PARTIAL] = &reduce,
    [WORK_CROSS_ENTROPY_FINISH] = &reduce,
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = &reduce,
    [WORK_ADD] = &stream,
    [WORK_CAST] = &stream,
    [WORK_FILL] = &stream,
    [WORK_PACK] = &permute,
    [WORK_UNPACK] = &permute,
    [WORK_HEAD_EXPAND] = &permute,
    [WORK_HEAD_REDUCE] = &permute,
    [WORK_TAKE_ROWS] = &gather,
    [WORK_ADD_ROWS] = &scatter,
    [WORK_MERGE_ROWS] = &scatter,
    [WORK_ROW_DOT] = &reduce,
    [WORK_COLUMN_SUM] = &reduce,
    [WORK_ADAMW] = &stream,
    [WORK_SQUARE_SUM] = &reduce,
    [WORK_CLIP] = &stream,
};

/* The classes of recorded operators. NULL: memory does not limit the operator. */
static const struct memory_class *const class_of_opaque[OPAQUE_COUNT] = {
    [OPAQUE_STREAM] = &stream, [OPAQUE_REDUCE] = &reduce,   [OPAQUE_PERMUTE] = &permute,
    [OPAQUE_GATHER] = &gather, [OPAQUE_SCATTER] = &scatter,
};

const char *cost_memory_class_name(enum work_kind kind)
{
    return class_of[kind] ? class_of[kind]->name : NULL;
}

double cost_bandwidth_share(const struct device_cost *cost, const struct work *work)
{
    const struct memory_class *class =
        work->kind == WORK_OPAQUE ? class_of_opaque[work->opaque.as] : class_of[work->kind];
    if (class == NULL)
        return 0;
    return cost->kind_bandwidth_share[work->kind] > 0
               ? cost->kind_bandwidth_share[work->kind]
               : *(const double *)((const char *)cost + class->offset);
}

double cost_memory_s_for_bytes(const struct device_cost *cost, double fraction, double bytes)
{
    if (bytes <= 0)
        return 0;
    return (bytes + cost->memory_ramp_bytes) / (cost->device_memory_bytes_per_s * fraction);
}

static double merge_bytes(const struct device_cost *cost, enum attention_impl impl,
                          const struct work *work)
{
    double rows = (double)work->merge.rows * (double)work->merge.heads;
    double f32 = 4;
    return rows * ((double)work->merge.dim * cost->merge_bytes_per_element[impl] + 3 * f32);
}

/* Returns the number of elements by which a chain's bytes are counted; 0: the work has no chain. */
static double elements_of_elementwise_chain(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_RMSNORM:
    case WORK_RMSNORM_BACKWARD:
        return (double)work->rows.rows * (double)work->rows.cols;
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD:
        return (double)work->rope.rows * (double)work->rope.heads * (double)work->rope.dim;
    /* with `touches` there is no chain: it says how many times kernels read or write an element */
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.touches > 0
                   ? 0
                   : (double)work->activation.rows * (double)work->activation.cols;
    case WORK_CROSS_ENTROPY:
    case WORK_CROSS_ENTROPY_BACKWARD:
        return (double)work->cross_entropy.rows * (double)work->cross_entropy.vocab;
    case WORK_CROSS_ENTROPY_PARTIAL:
        return (double)work->loss_partial.rows * (double)work->loss_partial.vocab;
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return (double)work->loss_backward.rows * (double)work->loss_backward.vocab;
    case WORK_EMBEDDING: /* kernels mask the tokens of other ranks, if the table is divided between ranks */
        return work->embedding.part > 0
                   ? (double)work->embedding.rows * (double)work->embedding.cols
                   : 0;
    case WORK_PERMUTE:
    case WORK_UNPERMUTE:
    case WORK_UNPERMUTE_BACKWARD:
        return (work->permute.to > 0 ? (double)work->permute.to
                                     : (double)work->permute.rows * (double)work->permute.copies) *
               (double)work->permute.cols;
    case WORK_ADD:
        return (double)work->elements.count;
    case WORK_SQUARE_SUM:
        return (double)work->square_sum.count;
    case WORK_CLIP:
        return (double)work->elements.count;
    case WORK_ADAMW:
        return (double)work->adamw.count;
    default:
        return 0;
    }
}

const struct cost_elementwise_chain *cost_elementwise_chain_of_work(const struct device_cost *cost,
                                                                    const struct work *work)
{
    const struct cost_elementwise_chain *chain = &cost->chain[work->kind];
    if (work->kind == WORK_UNPERMUTE && !work->permute.weights)
        chain = chain->chain_without_copy_weights;
    return chain != NULL && chain->bytes_per_element > 0 &&
                   elements_of_elementwise_chain(work) > 0 && !cost->is_ideal
               ? chain
               : NULL;
}

/* Returns the bytes moved by the kernels before and after an attention backward. Before it, delta is computed from o
 * and d_o, and the fp32 dq is cleared. After it, dq is cast; with grouped heads, dk and dv of the query heads are
 * summed over each group. */
double cost_memory_around_attention_bytes(const struct work *work)
{
    double out = (double)dtype_bytes((enum dtype)work->out), f32 = 4;
    /* delta is computed from o and d_o in the dtype of dq, also where attention multiplies in 8 bits */
    double in =
        work->attention.scaling != SCALING_NONE ? out : (double)dtype_bytes((enum dtype)work->in);
    double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    double q = (double)work->attention.q * (double)work->attention.heads;
    double kv = (double)work->attention.kv * (double)work->attention.heads;
    double kv_own = (double)work->attention.kv * (double)work->attention.kv_heads;
    double bytes = q * (vdim * 2 * in + dim * (f32 + f32 + out));
    if (work->attention.kv_heads < work->attention.heads)
        bytes += (dim + vdim) * (kv + kv_own) * out;
    return bytes;
}

double cost_memory_traffic_bytes(const struct device_cost *cost, enum attention_impl impl,
                                 const struct work *work)
{
    const struct work as = work_cost_equivalent(work);
    if (as.kind != work->kind)
        return cost_memory_traffic_bytes(cost, work_attention_impl(work, impl), &as);
    if (work->kind == WORK_MERGE && !cost->is_ideal)
        return merge_bytes(cost, impl, work);
    const struct cost_elementwise_chain *chain = cost_elementwise_chain_of_work(cost, work);
    if (chain != NULL)
        return elements_of_elementwise_chain(work) * chain->bytes_per_element;
    double bytes = work_memory_bytes(work);
    if (work->kind == WORK_ATTENTION_BACKWARD && !cost->is_ideal)
        bytes += cost_memory_around_attention_bytes(work);
    return bytes;
}

/* Returns the seconds of a chain of kernels on `elements` elements. Gathered and scattered bytes
 * move at the rates of the classes gather and scatter. Slow kernels take as long as their elements
 * take at memory_element_rate, but at least as long as their bytes take; if that rate is not known,
 * they count as the others. All other bytes move at the rate of the class stream. */
static double elementwise_chain_s(const struct device_cost *cost,
                                  const struct cost_elementwise_chain *chain, double elements)
{
    bool slow = cost->memory_element_rate > 0 && chain->slow_kernel_passes > 0;
    double gathered = elements * chain->gathered_bytes,
           scattered = elements * chain->scattered_bytes;
    double bytes = elements * (chain->bytes_per_element - (slow ? chain->slow_bytes : 0)) -
                   gathered - scattered;
    double seconds = chain->kernel_count * cost->device_kernel_start_s +
                     cost_memory_s_for_bytes(cost, cost->memory_gather_fraction, gathered) +
                     cost_memory_s_for_bytes(cost, cost->memory_scatter_fraction, scattered);
    if (slow)
        seconds += elements * fmax(chain->slow_kernel_passes / cost->memory_element_rate,
                                   chain->slow_bytes / (cost->device_memory_bytes_per_s *
                                                        cost->memory_stream_fraction));
    return seconds + chain->kernel_count * cost_memory_s_for_bytes(cost,
                                                                   cost->memory_stream_fraction,
                                                                   bytes / chain->kernel_count);
}

double cost_elementwise_s(const struct device_cost *cost, double kernels, double bytes)
{
    return kernels * cost->device_kernel_start_s +
           cost_memory_s_for_bytes(cost, cost->memory_stream_fraction, bytes);
}

double cost_memory_s(const struct device_cost *cost, enum attention_impl impl,
                     const struct work *work, enum cost_clock_kind clock)
{
    (void)clock; /* the power limit does not slow work that waits for memory */
    if (work->kind == WORK_OPAQUE && work->opaque.as == OPAQUE_TAKES_NO_TIME)
        return 0;
    double fraction = cost_bandwidth_share(cost, work);
    assert(fraction > 0);
    const struct cost_elementwise_chain *chain = cost_elementwise_chain_of_work(cost, work);
    if (chain != NULL)
        return elementwise_chain_s(cost, chain, elements_of_elementwise_chain(work));
    /* a share that is the kind's own was fitted to times that contain memory.start_s */
    double start_s = cost->kind_bandwidth_share[work->kind] > 0 ? 0 : cost->memory_start_s;
    double seconds =
        cost_memory_s_for_bytes(cost, fraction, cost_memory_traffic_bytes(cost, impl, work));
    if (work->kind == WORK_OPAQUE && work->opaque.slow > 0 && cost->memory_element_rate > 0 &&
        !cost->is_ideal)
        seconds = fmax(seconds, (double)work->opaque.slow / cost->memory_element_rate);
    return cost->device_kernel_start_s + start_s + seconds;
}
