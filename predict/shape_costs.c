#include "predict/shape_costs.h"

#include "predict/document_costs.h"
#include "predict/framework_costs.h"
#include "schedule/choices/chains.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/resolve_config.h"
#include "schedule/ir/visible.h"
#include "sim/uniform/uniform.h"

#include <math.h>
#include <stdlib.h>

void shape_costs_release(struct shape_costs *costs)
{
    document_costs_free(costs->work_s_by_place, costs->shape_count);
    free(costs->work_s);
    free(costs->host_work_s);
    free(costs->host_memory_bytes);
    free(costs->issue_s);
    free(costs->host_return_s);
}

/* Returns how many ranks work on one node. */
static double ranks_per_node(const struct prediction *p)
{
    int64_t ranks = mesh_rank_count(&p->ir.mesh), gpus = p->setup->cluster.gpus_per_node;
    return (double)(ranks < gpus ? ranks : gpus);
}

/* Returns the seconds of an op on the host if all ranks of the node work at once and share the bandwidth of its memory.
 * A cluster file may give another rate for AdamW; the passes that the profile adds to AdamW still run at the rate of
 * memory. */
static double host_work_s(const struct prediction *p, const struct work *work)
{
    const struct host *host = &p->setup->cluster.host;
    const struct device_cost *cost = &p->setup->cost;
    double bytes_per_s = host->memory_bytes_per_s * (double)host->sockets;
    if (work->kind == WORK_ADAMW && host->adam_bytes_per_s > 0)
        bytes_per_s = host->adam_bytes_per_s / cost->cpu_stream_fraction;
    double seconds = cost_host_work_s(cost, bytes_per_s / ranks_per_node(p), work);
    if (work->kind == WORK_ADAMW && p->profile != NULL && !cost->is_ideal)
        seconds += (double)p->profile->host_bytes_per_param_around_adamw *
                   (double)work->adamw.count * ranks_per_node(p) /
                   (host->memory_bytes_per_s * (double)host->sockets * cost->cpu_stream_fraction);
    return seconds;
}

/* Sets host_return_s[shape] of each checkpoint that is copied to host memory or back: the framework's time after the
 * host has waited for the copy. */
static void add_host_s_of_checkpoint_copies(const struct prediction *p, struct shape_costs *costs)
{
    double seconds = p->profile != NULL ? p->profile->host_per_checkpoint_copy_s : 0;
    if (seconds <= 0 || p->setup->cost.is_ideal)
        return;
    bool *added = heap_zalloc((size_t)p->ir.shape_count + 1, sizeof *added);
    for (uint32_t op = 0; op < p->ir.op.count; op++) {
        uint32_t shape = p->ir.op.shape[op];
        bool copies = p->ir.op.kind[op] == WORK_D2H || p->ir.op.kind[op] == WORK_H2D;
        if (!copies || p->ir.op.region[op] != REGION_OFFLOAD || !ir_blocks_host(&p->ir, op) ||
            added[shape])
            continue;
        costs->host_return_s[shape] = seconds;
        added[shape] = costs->has_checkpoint_costs = true;
    }
    free(added);
}

/* Adds the framework's time per step to issue_s of barriers: it is spent at the barrier before the optimizer. */
static void add_host_s_before_optimizer(const struct prediction *p, struct shape_costs *costs)
{
    double seconds = p->profile != NULL ? p->profile->host_before_optimizer_s : 0;
    for (uint32_t i = 0; i < p->ir.shape_count && !p->setup->cost.is_ideal; i++)
        if (p->ir.shape[i].kind == WORK_BARRIER)
            costs->issue_s[i] += seconds;
}

/* Adds to issue_s the framework's time for all-to-alls and shifts, which PyTorch takes as lists of tensors (the
 * profile's host_per_tensor_list_exchange_s). An all-to-all has one tensor for each rank of the group: each is copied
 * out, and another is allocated for the result. */
static void add_tensor_list_exchange_host_s(const struct prediction *p, struct shape_costs *costs)
{
    const struct device_cost *cost = &p->setup->cost;
    double call_s = p->profile != NULL ? p->profile->host_per_tensor_list_exchange_s : 0;
    if (call_s <= 0 || cost->is_ideal)
        return;
    double each_s = p->profile->is_ideal ? 0 : 2 * cost->host_op_s + cost->host_kernel_s;
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        uint32_t tensors = 0;
        if (work->kind == WORK_ALL_TO_ALL)
            tensors = group_rank_count(&p->ir.mesh, &p->ir.group[work->collective.group]);
        if (work->kind == WORK_ALL_TO_ALL || work->kind == WORK_SHIFT)
            costs->issue_s[i] += call_s + tensors * each_s;
    }
}

/* Adds to issue_s of products the host's time for the dispatch of DTensors, if tensor parallelism uses them and kernels
 * are not compiled. */
static void add_framework_product_issue_s(const struct prediction *p, struct shape_costs *costs)
{
    const struct profile *profile = p->profile;
    const struct choices *c = &p->choices;
    if (profile == NULL || profile->is_ideal || p->setup->cost.is_ideal)
        return;
    bool tensors =
        p->has_choices && c->tp > 1 && tensor_uses_dtensor(c) && c->kernels != KERNELS_COMPILED;
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        if (p->ir.shape[i].kind != WORK_MATMUL)
            continue;
        if (tensors)
            costs->issue_s[i] += profile->host_dtensor_product_s;
    }
}

static bool is_tensor_core_work(const struct work *work)
{
    const struct work as = work_cost_equivalent(work);
    return as.kind == WORK_MATMUL || as.kind == WORK_ATTENTION ||
           as.kind == WORK_ATTENTION_BACKWARD;
}

/* Returns the seconds of memory-bound kernels for each second of products and attention on a rank, all at the highest
 * clock. These kernels let the device draw more power in products; the least ratio of all roles is returned, so that no
 * role is assumed to draw more power than the device has. Returns 0 if there is packed attention, whose time depends on
 * the rank, or if no role has products or attention. */
static double memory_s_per_tensor_core_s_of_step(const struct prediction *p,
                                                 const struct device_cost *cost)
{
    const struct ir *ir = &p->ir;
    enum attention_impl impl = (enum attention_impl)p->choices.attention_impl;
    double least = INFINITY;
    double *seconds = heap_alloc((size_t)ir->shape_count + 1, sizeof *seconds);
    for (uint32_t i = 0; i < ir->shape_count; i++) {
        if (work_pairs_depend_on_rank(&ir->shape[i]))
            least = 0;
        seconds[i] = least > 0 ? cost_work_burst_s(cost, impl, &ir->shape[i]) : 0;
    }
    for (uint32_t r = 0; r < ir->role_count && least > 0; r++) {
        double tensor_s = 0, memory_s = 0;
        for (uint32_t k = 0; k < ir->role[r].op_count; k++) {
            uint32_t op = ir->role[r].op_begin + k;
            if (ir->stream[ir->op.stream[op]].stream_class != STREAM_COMPUTE)
                continue;
            double all_s = seconds[ir->op.shape[op]] * repeats_occurrence_count(&ir->repeats, op);
            if (is_tensor_core_work(ir_work(ir, op)))
                tensor_s += all_s;
            else
                memory_s += all_s;
        }
        if (tensor_s > 0)
            least = fmin(least, memory_s / tensor_s);
    }
    free(seconds);
    return least < INFINITY ? least : 0;
}

struct assumed_clock assumed_clock(const struct prediction *p)
{
    struct device_cost cost = p->setup->cost;
    if (cost.is_ideal)
        return (struct assumed_clock){0};
    chains_fill_for_choices(p->profile, &p->choices, false, cost.chain);
    if (cost.device_memory_power > 0)
        cost.memory_s_per_tensor_s = memory_s_per_tensor_core_s_of_step(p, &cost);
    return (struct assumed_clock){
        cost.device_power, cost.device_clock_mhz, cost_product_mhz(&cost, (enum dtype)p->ir.dtype),
        cost_attention_mhz(&cost, (enum attention_impl)p->choices.attention_impl)};
}

/* Bytes per element of a merge in one kernel, which reads the fp32 sum and the 16-bit block, and writes the sum. */
#define FUSED_MERGE_BYTES_PER_ELEMENT 10

/* Returns the work that a kernel computes. An attention kernel that gets the causal mask as a tensor computes all
 * pairs, and the mask only hides them from the result. Other work is returned unchanged. */
static struct work work_that_kernel_computes(const struct prediction *p, const struct work *work)
{
    struct work all = *work;
    bool attention = work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD;
    if (attention && p->has_choices && p->choices.core_gets_causal_mask_tensor &&
        work->attention.mask == MASK_CAUSAL) {
        all.attention.mask = MASK_FULL;
        all.attention.offset = 0;
    }
    return all;
}

void shape_costs_make(struct shape_costs *costs, const struct prediction *p)
{
    struct device_cost fused = p->setup->cost;
    const struct device_cost *cost = &fused;
    enum attention_impl impl = (enum attention_impl)p->choices.attention_impl;
    bool merges = p->choices.kernels == KERNELS_COMPILED ||
                  (p->profile != NULL && p->profile->merges_partial_outputs_in_one_kernel);
    if (merges && impl != ATTENTION_CPU &&
        fused.merge_bytes_per_element[impl] > FUSED_MERGE_BYTES_PER_ELEMENT)
        fused.merge_bytes_per_element[impl] = FUSED_MERGE_BYTES_PER_ELEMENT;
    bool kept = p->has_choices && (p->choices.activations == CHOICE_ACTIVATIONS_KEEP ||
                                   p->choices.activations == CHOICE_ACTIVATIONS_RATIO);
    chains_fill_for_choices(p->profile, &p->choices, kept, fused.chain);
    if (cost->device_memory_power > 0 && !cost->is_ideal)
        fused.memory_s_per_tensor_s = memory_s_per_tensor_core_s_of_step(p, cost);
    bool ideal_profile = p->profile != NULL && p->profile->is_ideal;
    double slowdown = p->has_choices ? step_attention_slowdown(&p->choices) : 1;
    double peak = p->setup->cluster.device.peak_bf16_flop_per_s;
    size_t count = (size_t)p->ir.shape_count + 1;
    costs->work_s = heap_zalloc(count, sizeof(double));
    costs->host_work_s = heap_zalloc(count, sizeof(double));
    costs->host_memory_bytes = heap_zalloc(count, sizeof(double));
    costs->issue_s = heap_zalloc(count, sizeof(double));
    costs->host_return_s = heap_zalloc(count, sizeof(double));
    costs->shape_count = p->ir.shape_count;
    const struct document_costs_options options = {impl, slowdown, peak};
    struct visible_fullest_place fullest = {0};
    if (!p->question.is_exact &&
        uniform_takes_ranks_as_fullest(&p->ir, p->setup->uniform_above_ranks)) {
        fullest = visible_find_fullest_place(&p->ir);
        costs->fullest_pairs_over_mean = fullest.pairs_over_mean;
    } else
        costs->work_s_by_place = document_costs_by_place(&p->ir, cost, &options);
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        bool by_place = work_pairs_depend_on_rank(work);
        if (by_place)
            costs->work_s[i] = costs->work_s_by_place != NULL
                                   ? costs->work_s_by_place[i][ir_place_of_rank(&p->ir, 0)]
                                   : document_cost_s(&p->ir, work, fullest.rank, cost, &options);
        /* the peak is that of the cluster file, which may differ from that of the cost file */
        if (cost->is_ideal) {
            if (!by_place)
                costs->work_s[i] = cost_ideal_s(peak, work);
            continue;
        }
        const struct work all = work_that_kernel_computes(p, work);
        if (!by_place)
            costs->work_s[i] = cost_work_s(cost, impl, &all);
        if (!by_place && (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD))
            costs->work_s[i] *= slowdown;
        costs->issue_s[i] = ideal_profile ? 0 : cost_host_issue_s(cost, work);
        if (work_may_run_on((enum work_kind)work->kind, STREAM_HOST)) {
            costs->host_work_s[i] = host_work_s(p, work);
            costs->host_memory_bytes[i] = cost_host_work_bytes(work);
        }
    }
    add_host_s_of_checkpoint_copies(p, costs);
    add_tensor_list_exchange_host_s(p, costs);
    add_framework_product_issue_s(p, costs);
    framework_costs_add(p, cost, costs->work_s, costs->issue_s);
    add_host_s_before_optimizer(p, costs);
    costs->sim_costs = (struct sim_costs){
        .work_s_by_place = (const double *const *)costs->work_s_by_place,
        .work_s = costs->work_s,
        .host_work_s = costs->host_work_s,
        .issue_s = costs->issue_s,
        .host_return_s_by_shape = costs->host_return_s,
        .host_memory_bytes_by_shape = costs->host_memory_bytes,
        .collective_launch_s = cost->is_ideal ? 0 : cost->device_kernel_start_s,
    };
}
