/* The table of the kinds of work: which formula gives the device seconds of a kind, and what the issuing thread does
 * for it; and the functions of models/cost.h that use this table. */
#include "models/cost.h"

#include "models/cost_points.h"

#include <assert.h>
#include <string.h>

/* Returns 0: the time of communication, copies and kinds of STREAM_SYNC is that of links and of the issuing thread. */
static double no_device_time_s(const struct device_cost *cost, enum attention_impl impl,
                               const struct work *work, enum cost_clock_kind clock)
{
    (void)cost;
    (void)impl;
    (void)work;
    (void)clock;
    return 0;
}

/* The call that the issuing thread makes for an op. */
enum issue_kind {
    ISSUE_FRAMEWORK_CALLS, /* op_count calls into the framework, which launch kernel_count kernels */
    ISSUE_COLLECTIVE,      /* one call of a collective, a message or a barrier */
    ISSUE_COPY,            /* one call that starts a copy */
    ISSUE_SYNC             /* one call that waits */
};

struct kind_cost_functions {
    cost_function *device_seconds_function;
    enum issue_kind issue_kind;
    int op_count, kernel_count; /* these only count for ISSUE_FRAMEWORK_CALLS */
};

/* The numbers of calls and kernels are those of the fused kernels that training frameworks use. A merge is as in
 * PyTorch code: a cast, one jitted update of o, one of lse, and a copy back of each. */
static const struct kind_cost_functions kind_costs[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = {cost_matmul_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_QUANTISE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_DEQUANTISE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ATTENTION] = {cost_attention_s, ISSUE_FRAMEWORK_CALLS, 2, 1},
    [WORK_ATTENTION_BACKWARD] = {cost_attention_s, ISSUE_FRAMEWORK_CALLS, 2, 4},
    [WORK_MERGE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 5, 5},
    [WORK_SINK] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_SINK_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_RMSNORM] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_RMSNORM_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_LAYERNORM] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_LAYERNORM_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_ROPE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ROPE_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_LATENT_KEYS] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_LATENT_KEYS_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_SWIGLU] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_SWIGLU_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_GELU] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_GELU_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ROUTE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 2, 2},
    [WORK_ROUTE_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 2, 2},
    [WORK_PERMUTE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_UNPERMUTE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_UNPERMUTE_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_PERMUTE_WEIGHTS] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_EMBEDDING] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_EMBEDDING_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_CROSS_ENTROPY] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_CROSS_ENTROPY_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_CROSS_ENTROPY_PARTIAL] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_CROSS_ENTROPY_FINISH] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ADD] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_CAST] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_FILL] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_PACK] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_UNPACK] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_HEAD_EXPAND] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_HEAD_REDUCE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_TAKE_ROWS] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ADD_ROWS] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_MERGE_ROWS] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ROW_DOT] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_COLUMN_SUM] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ADAMW] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_SQUARE_SUM] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 2},
    [WORK_CLIP] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_OPAQUE] = {cost_memory_s, ISSUE_FRAMEWORK_CALLS, 1, 1},
    [WORK_ALL_TO_ALL] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_ALL_GATHER] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_REDUCE_SCATTER] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_ALL_REDUCE] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_REDUCE] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_BROADCAST] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_SCATTER] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_EXCHANGE] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_SHIFT] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_SEND] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_RECV] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
    [WORK_H2D] = {no_device_time_s, ISSUE_COPY, 1, 0},
    [WORK_D2H] = {no_device_time_s, ISSUE_COPY, 1, 0},
    [WORK_HOST_SYNC] = {no_device_time_s, ISSUE_SYNC, 1, 0},
    [WORK_BARRIER] = {no_device_time_s, ISSUE_COLLECTIVE, 1, 1},
};

double cost_ideal_s(double peak_flop_per_s, const struct work *work)
{
    assert(peak_flop_per_s > 0);
    return work_flops(work) / peak_flop_per_s;
}

static double work_s(const struct device_cost *cost, enum attention_impl impl,
                     const struct work *work, enum cost_clock_kind clock)
{
    assert(work->kind < WORK_KIND_COUNT && kind_costs[work->kind].device_seconds_function);
    if (cost->is_ideal)
        return cost_ideal_s(cost->device_peak_flop_per_s, work);
    if (work->kind == WORK_OPAQUE && work->opaque.ps > 0)
        return 1e-12 * (double)work->opaque.ps;
    const struct work as = work_cost_equivalent(work);
    impl = work_attention_impl(work, impl);
    if (work->kind == WORK_OPAQUE && as.kind != WORK_OPAQUE)
        return work_s(cost, impl, &as, clock);
    return cost_points_s(cost, impl, work, clock, kind_costs[work->kind].device_seconds_function);
}

double cost_work_s(const struct device_cost *cost, enum attention_impl impl,
                   const struct work *work)
{
    return work_s(cost, impl, work, COST_SUSTAINED);
}

/* Returns the ratio of the time corrected by measured points to the formula's, for a dense attention as large as the
 * piece with the most pairs; 1 if no measured shape is near it. */
static double measured_to_formula_ratio(const struct device_cost *cost, enum attention_impl impl,
                                        const struct work *work,
                                        const struct attention_piece *piece, size_t count)
{
    const struct attention_piece *largest = NULL;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double pairs = attention_piece_pairs(&piece[i]);
        if (pairs <= most)
            continue;
        most = pairs;
        largest = &piece[i];
    }
    if (largest == NULL || cost->points.count == 0)
        return 1;
    struct work dense = *work;
    memset(dense.p, 0, sizeof dense.p);
    dense.attention.q = largest->query_count;
    dense.attention.kv = largest->key_count;
    dense.attention.heads = work->attention.heads;
    dense.attention.kv_heads = work->attention.kv_heads;
    dense.attention.dim = work->attention.dim;
    dense.attention.vdim = work->attention.vdim;
    dense.attention.mask = largest->offset < largest->key_count - 1 ? MASK_CAUSAL : MASK_FULL;
    return cost_work_s(cost, impl, &dense) / cost_attention_s(cost, impl, &dense, COST_SUSTAINED);
}

double cost_document_attention_s(const struct device_cost *cost, enum attention_impl impl,
                                 const struct work *work, const struct attention_piece *piece,
                                 size_t count)
{
    if (cost->is_ideal) {
        double pairs = 0;
        for (size_t i = 0; i < count; i++)
            pairs += attention_piece_pairs(&piece[i]);
        return work_attention_flops(work, pairs) / cost->device_peak_flop_per_s;
    }
    return cost_attention_pieces_s(cost, impl, work, piece, count) *
           measured_to_formula_ratio(cost, impl, work, piece, count);
}

double cost_work_burst_s(const struct device_cost *cost, enum attention_impl impl,
                         const struct work *work)
{
    return work_s(cost, impl, work, COST_BURST);
}

double cost_host_issue_s(const struct device_cost *cost, const struct work *work)
{
    assert(work->kind < WORK_KIND_COUNT && kind_costs[work->kind].op_count > 0);
    if (cost->is_ideal || (work->kind == WORK_OPAQUE && work->opaque.as == OPAQUE_TAKES_NO_TIME))
        return 0;
    const struct work as = work_cost_equivalent(work);
    const struct kind_cost_functions *kind = &kind_costs[as.kind];
    const struct cost_elementwise_chain *chain = cost_elementwise_chain_of_work(cost, work);
    if (chain != NULL) /* each kernel of a chain is an operator of its own */
        return chain->kernel_count * (cost->host_op_s + cost->host_kernel_s);
    switch (kind->issue_kind) {
    case ISSUE_COLLECTIVE:
        return cost->host_collective_s;
    case ISSUE_COPY:
        return cost->host_copy_s;
    case ISSUE_SYNC:
        return cost->host_sync_s;
    default:
        return kind->op_count * cost->host_op_s + kind->kernel_count * cost->host_kernel_s +
               (as.kind == WORK_MATMUL ? cost->host_product_s : 0);
    }
}

double cost_host_work_bytes(const struct work *work)
{
    return work_memory_bytes(work);
}

double cost_host_work_s(const struct device_cost *cost, double host_memory_bytes_per_s,
                        const struct work *work)
{
    if (cost->is_ideal)
        return 0;
    assert(host_memory_bytes_per_s > 0);
    return cost->cpu_start_s +
           cost_host_work_bytes(work) / (host_memory_bytes_per_s * cost->cpu_stream_fraction);
}

static bool has_attention_costs(const struct device_cost *cost, int impl)
{
    return cost->attention[impl][ATTENTION_FORWARD_PASS].is_family_present &&
           cost->attention[impl][ATTENTION_BACKWARD_PASS].is_family_present;
}

/* True if an implementation multiplies in 8 bits. --attention does not offer it: --attention-products asks the
 * chosen implementation for products in 8 bits. So cost_only_attention_impl_plus_1() does not count it, and a message
 * about an implementation of 16 bits does not name it. */
static bool is_narrow(int impl)
{
    return impl == ATTENTION_CUDNN_FP8 || impl == ATTENTION_CUDNN_MXFP8;
}

int cost_only_attention_impl_plus_1(const struct device_cost *cost)
{
    int only = 0;
    for (int impl = 0; impl < ATTENTION_IMPL_COUNT && !cost->is_ideal; impl++) {
        const bool counts = has_attention_costs(cost, impl) && !is_narrow(impl);
        if (counts && only > 0)
            return 0;
        if (counts)
            only = impl + 1;
    }
    return only;
}

enum status cost_check_scaling(const struct device_cost *cost, enum scaling scaling,
                               const char *what, struct loc at, struct diag *diag)
{
    static const struct {
        enum scaling scaling;
        const char *name;
    } offered[] = {{SCALING_TENSOR, "8 bits with a scale for a tensor"},
                   {SCALING_ROW, "8 bits with a scale for a row"},
                   {SCALING_BLOCK, "8 bits with scales of 128 x 128"},
                   {SCALING_MX, "MXFP8"},
                   {SCALING_NV, "NVFP4"}};
    struct text has = {0};
    if (cost_supports_scaling(cost, scaling))
        return STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(offered); i++)
        if (cost_supports_scaling(cost, offered[i].scaling))
            text_printf(&has, "%s%s", has.size ? ", " : "", offered[i].name);
    enum status status =
        diag_error(diag, at, STATUS_BAD_INPUT,
                   "device %s does not multiply '%s'; it multiplies 16 and 32 bits%s%s", cost->name,
                   what, has.size ? ", " : "", has.size ? has.data : "");
    text_release(&has);
    return status;
}

enum status cost_check_attention(const struct device_cost *cost, enum attention_impl impl,
                                 int64_t dim, struct loc at, struct diag *diag)
{
    if (cost->is_ideal)
        return STATUS_OK;
    struct work work = {.kind = WORK_ATTENTION, .attention.dim = dim};
    const struct cost_attention *forward, *backward;
    size_t i;
    bool fits = cost_attention_find(cost, impl, &work, &forward, &i);
    work.kind = WORK_ATTENTION_BACKWARD;
    fits = cost_attention_find(cost, impl, &work, &backward, &i) && fits;
    if (fits)
        return STATUS_OK;
    if (forward->is_family_present && backward->is_family_present) {
        int64_t a = forward->head_dim[forward->dim_count - 1],
                b = backward->head_dim[backward->dim_count - 1];
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "device %s has no cost of attention '%s' with head dim %lld; the largest "
                          "is %lld",
                          cost->name, attention_impl_name(impl), (long long)dim,
                          (long long)(a < b ? a : b));
    }
    struct text has = {0};
    for (int other = 0; other < ATTENTION_IMPL_COUNT; other++) {
        if (has_attention_costs(cost, other) && (is_narrow((int)impl) || !is_narrow(other)))
            text_printf(&has, "%s%s", has.size ? ", " : "",
                        attention_impl_name((enum attention_impl)other));
    }
    enum status status =
        diag_error(diag, at, STATUS_BAD_INPUT, "device %s has no cost of attention '%s'; it has %s",
                   cost->name, attention_impl_name(impl), has.size ? has.data : "none");
    text_release(&has);
    return status;
}
