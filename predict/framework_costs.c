#include "predict/framework_costs.h"

#include "base/arena.h"
#include "predict/host_modules.h"
#include "schedule/choices/profile.h"

#include <stdlib.h>

/* The number of operators, forward and backward, with which Megatron-Core 0.17.1 routes tokens, by enum router. They
 * include those with which its dispatcher counts the tokens of each expert, but not the router's product and the
 * permutation. They run one after another (moe_router_fusion is off by default). They were counted as PyTorch
 * dispatched them, without views (docs/costs.md). */
static const struct {
    int forward, backward;
} router_operators[ROUTER_COUNT] = {
    [ROUTER_SOFTMAX] = {40, 27},
    [ROUTER_SOFTMAX_OF_CHOSEN] = {28, 21},
    [ROUTER_SIGMOID] = {51, 42},
};

/* True if the schedule permutes the router's weights of token copies: then its ops also send these weights, and in the
 * backward their gradients. */
static bool do_ops_send_router_weights(const struct ir *ir)
{
    for (uint32_t i = 0; i < ir->shape_count; i++)
        if (ir->shape[i].kind == WORK_PERMUTE_WEIGHTS)
            return true;
    return false;
}

/* Sets issue_s[shape] of routers that run operator by operator: the host's time for their operators and, if experts are
 * spread over ranks, for their exchanges. */
static void set_router_issue_s(const struct prediction *p, const struct device_cost *cost,
                               double *issue_s)
{
    const double call_s = cost->host_op_s + cost->host_kernel_s;
    /* exchanges that are no ops of the schedule: of counts, forward only, and of weights or their gradients */
    const int weights = do_ops_send_router_weights(&p->ir) ? 0 : 1, counts = 1;
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        const bool back = work->kind == WORK_ROUTE_BACKWARD;
        if (!back && work->kind != WORK_ROUTE)
            continue;
        const int operators = back ? router_operators[work->route.score].backward
                                   : router_operators[work->route.score].forward;
        const int exchanges = back ? weights : counts + weights;
        issue_s[i] =
            operators * call_s + (p->choices.ep > 1 ? exchanges * cost->host_collective_s : 0);
    }
}

/* The host's time that TransformerEngine takes for one expert, in times of host.op_s: for a product of 16-bit operands,
 * for a product of quantised operands (measured in 8 bits), and for each tensor that is quantised, with one scale or
 * with scales of blocks. The times of products include the saving of tensors and the hook of the weight's gradient.
 * Measured with TransformerEngine 2.9 (docs/costs.md, "Experts one by one"). */
static const double expert_product_ops = 1.25, expert_quantised_product_ops = 1.8,
                    expert_tensor_ops = 1.4, expert_blocks_ops = 1;

/* Kernels that are launched for each expert to quantise an operand. COPY_LAUNCHES: the quantised copy. AMAX_LAUNCHES:
 * with one scale for a tensor, the three kernels that fill with zeros, find the largest magnitude and compute the
 * scale. */
enum { COPY_LAUNCHES = 1, AMAX_LAUNCHES = 3 };

/* Adds to issue_s[shape] the host's time for grouped products that are one call of cuBLAS for each expert, and for the
 * casts of their operands, which are one call for each expert, too. The launch of the first expert is counted
 * already. */
static void add_expert_call_issue_s(const struct prediction *p, const struct device_cost *cost,
                                    double *issue_s)
{
    const double call_s = cost->host_op_s + cost->host_kernel_s;
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        if (work->kind == WORK_MATMUL && work->matmul.groups > 1) {
            const double groups = (double)work->matmul.groups;
            const double ops = work->matmul.scaling != SCALING_NONE ? expert_quantised_product_ops
                                                                    : expert_product_ops;
            issue_s[i] += (groups - 1) * call_s + groups * ops * cost->host_op_s;
        }
        if (work->kind == WORK_QUANTISE && work->quantise.groups > 1) {
            const double groups = (double)work->quantise.groups;
            const bool copies = work->quantise.finds == 0,
                       finds = work->quantise.finds != 0 || work->quantise.amax != 0;
            const int launches = (finds ? AMAX_LAUNCHES : 0) + (copies ? COPY_LAUNCHES : 0);
            issue_s[i] += (groups - 1) * launches * cost->host_kernel_s;
            if (copies)
                issue_s[i] +=
                    groups * (finds ? expert_tensor_ops : expert_blocks_ops) * cost->host_op_s;
        }
    }
}

/* The operators that add an expert's bias to its results, forward and backward. bytes: for each element of the results;
 * all: operators for all experts together; each: operators for each expert (docs/costs.md, "Biases of experts"). */
static const struct {
    double bytes;
    int all, each;
} bias_forward = {.bytes = 28, .all = 2, .each = 2},
  bias_backward = {.bytes = 40, .all = 3, .each = 6};

/* True if the work is a grouped product that makes the results of experts and adds a bias to them. */
static bool is_biased_expert_output_product(const struct transformer *m, const struct work *work)
{
    return work->kind == WORK_MATMUL && work->matmul.groups > 0 &&
           work->matmul.epilogue == EPILOGUE_BIAS && work->matmul.n == m->hidden &&
           work->matmul.k == m->expert_ffn;
}

/* Prices the operators that add biases to the results of experts, and the operators that compute the gradients of these
 * biases. Adds the former to the seconds of the products, and sets the seconds of the gradients to the latter. The
 * gradients of the experts' other biases cost nothing by themselves: they are part of a product. Fused experts add both
 * biases in their products, and sum the gradient of the second one in a pass of its own: then only the gradients of the
 * first one change. */
static void add_seconds_of_expert_biases(const struct prediction *p, const struct device_cost *cost,
                                         double *work_s, double *issue_s)
{
    const struct transformer *m = p->choices.model;
    const double call_s = p->profile->is_ideal ? 0 : cost->host_op_s + cost->host_kernel_s;
    const bool fused = choices_fuse_expert_bias_and_clamp(&p->choices);
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        const bool gradient = work->kind == WORK_COLUMN_SUM && work->column_sum.groups > 0;
        if (!gradient && !is_biased_expert_output_product(m, work))
            continue;
        const bool of_results = !gradient || work->column_sum.cols == m->hidden;
        if (fused && of_results)
            continue;
        if (gradient)
            work_s[i] = issue_s[i] = 0;
        if (!of_results)
            continue;
        const double rows = (double)(gradient ? work->column_sum.rows : work->matmul.m);
        const double experts = (double)(gradient ? work->column_sum.groups : work->matmul.groups);
        const double bytes = gradient ? bias_backward.bytes : bias_forward.bytes;
        const double calls = gradient ? bias_backward.all + experts * bias_backward.each
                                      : bias_forward.all + experts * bias_forward.each;
        work_s[i] += cost_elementwise_s(cost, calls, rows * (double)m->hidden * bytes);
        issue_s[i] += calls * call_s;
    }
}

/* The operators that a framework runs where it has no fused kernel. calls: their number, each of which launches one
 * kernel. bytes: the bytes that all of them move for each element (docs/costs.md, "Clamps and YaRN"). */
struct operators {
    double bytes;
    int calls;
};

/* The operators that clamp the input of an activation, in addition to the kernel of the activation. Elements are those
 * of gate and up. */
static const struct operators clamp_forward = {.bytes = 8, .calls = 3},
                              clamp_backward = {.bytes = 15, .calls = 9};

/* The operators of RoPE whose cosines and sines have a factor, in place of the fused kernel. Elements are those of
 * queries and keys. */
static const struct operators rope_forward = {.bytes = 24, .calls = 12},
                              rope_backward = {.bytes = 28, .calls = 7};

/* Adds the operators that clamp the input of experts' activation, unless experts are fused. */
static void add_clamp_operators(const struct prediction *p, const struct device_cost *cost,
                                double *work_s, double *issue_s)
{
    const double call_s = p->profile->is_ideal ? 0 : cost->host_op_s + cost->host_kernel_s;
    if (choices_fuse_expert_bias_and_clamp(&p->choices))
        return;
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        const bool back = work->kind == WORK_SWIGLU_BACKWARD;
        if ((!back && work->kind != WORK_SWIGLU) || work->activation.function != FUNCTION_CLAMPED)
            continue;
        const struct operators *operators = back ? &clamp_backward : &clamp_forward;
        const double elements = 2 * (double)work->activation.rows * (double)work->activation.cols;
        work_s[i] += cost_elementwise_s(cost, operators->calls, operators->bytes * elements);
        issue_s[i] += operators->calls * call_s;
    }
}

/* Sets the seconds of RoPE to those of its operators, for a model whose cosines and sines have a factor. */
static void set_rope_operator_seconds(const struct prediction *p, const struct device_cost *cost,
                                      double *work_s, double *issue_s)
{
    const double call_s = p->profile->is_ideal ? 0 : cost->host_op_s + cost->host_kernel_s;
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        const bool back = work->kind == WORK_ROPE_BACKWARD;
        if (!back && work->kind != WORK_ROPE)
            continue;
        const struct operators *operators = back ? &rope_backward : &rope_forward;
        const double elements =
            (double)work->rope.rows * (double)work->rope.heads * (double)work->rope.dim;
        work_s[i] = cost_elementwise_s(cost, operators->calls, operators->bytes * elements);
        issue_s[i] = operators->calls * call_s;
    }
}

/* Sets the seconds of the passes that add sinks to the output of attention to 0: the attention kernels add sinks
 * themselves. */
static void clear_sink_passes(const struct prediction *p, double *work_s, double *issue_s)
{
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const uint8_t kind = p->ir.shape[i].kind;
        if (kind == WORK_SINK || kind == WORK_SINK_BACKWARD)
            work_s[i] = issue_s[i] = 0;
    }
}

/* Makes the permutation of weights cost nothing: the kernel that permutes rows permutes their weights, too
 * (TransformerEngine, moe_permute_with_probs()). */
static void clear_weight_permutations(const struct prediction *p, double *work_s, double *issue_s)
{
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const uint8_t kind = p->ir.shape[i].kind;
        if (kind == WORK_PERMUTE_WEIGHTS || kind == WORK_PERMUTE_WEIGHTS_BACKWARD)
            work_s[i] = issue_s[i] = 0;
    }
}

/* True if the work is of a sort by which a layer sends rows to its experts, multiplies there, or returns the results.
 * Some work of attention is of such a sort, too, such as an all-to-all, and the activations of experts are of none:
 * mark_shapes_of_layers() tells these apart. */
static bool may_be_expert_work(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_PERMUTE:
    case WORK_UNPERMUTE:
    case WORK_UNPERMUTE_BACKWARD:
    case WORK_ALL_TO_ALL:
        return true;
    case WORK_MATMUL:
        return work->matmul.groups > 0;
    case WORK_QUANTISE:
        return work->quantise.groups > 0 || work->quantise.route > 0;
    case WORK_COLUMN_SUM:
        return work->column_sum.groups > 0;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.route > 0 || work->pack.parts > 1;
    default:
        return false;
    }
}

/* Returns whether the graph of a layer holds its experts, too (Megatron-LM's scope moe). It does if each expert gets
 * exactly its capacity, and neither clamps nor biases of experts are operators. */
static bool does_cuda_graph_hold_experts(const struct prediction *p)
{
    const struct transformer *m = p->choices.model;
    const bool clamps =
        p->profile->clamps_run_as_operators && m->activation == ACTIVATION_SWIGLU_CLAMPED;
    return p->choices.expert_capacity.pads && !clamps &&
           !(p->profile->expert_bias_by_operators && m->bias_ffn);
}

/* Properties of the ops that have a shape. */
struct facts_about_ops_of_shape {
    bool is_of_layer;             /* an op belongs to a layer */
    bool is_of_attention;         /* an op belongs to attention */
    bool is_of_expert_activation; /* an activation reads what a grouped product wrote */
};

/* Fills shape[i] for each shape of the schedule. Embedding, loss and optimizer have shapes of their own; only the last
 * norm may share the shape of the layers' norms. */
static void mark_shapes_of_layers(const struct ir *ir, struct facts_about_ops_of_shape *shape)
{
    bool *is_made_by_experts =
        heap_zalloc((size_t)ir->buffer.count + 1, sizeof *is_made_by_experts);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        struct facts_about_ops_of_shape *of = &shape[ir->op.shape[op]];
        const struct work *work = &ir->shape[ir->op.shape[op]];
        of->is_of_layer |= ir->op.layer[op] != IR_NONE16 && ir->op.phase[op] != PHASE_OPTIMIZER;
        of->is_of_attention |= ir->op.region[op] == REGION_ATTENTION;
        if (work->kind == WORK_MATMUL && work->matmul.groups > 0)
            is_made_by_experts[ir_touched_buffer(ir, op, ir->op.read_count[op])] = true;
        else if (work->kind == WORK_SWIGLU || work->kind == WORK_SWIGLU_BACKWARD)
            of->is_of_expert_activation |= is_made_by_experts[ir_touched_buffer(ir, op, 0)];
    }
    free(is_made_by_experts);
}

/* Sets issue_s[shape] to 0 if a CUDA graph launches the ops of the shape. Synchronisations of the host keep their time.
 * A router keeps the time of one launch: that of the graph of the router, or of its layer. With a graph of the whole
 * step it has none. */
static void clear_issue_s_of_cuda_graphs(const struct prediction *p, const struct device_cost *cost,
                                         double *issue_s)
{
    const uint8_t graphs = p->choices.cuda_graphs;
    const bool with_experts = does_cuda_graph_hold_experts(p);
    if (graphs == CUDA_GRAPHS_NONE)
        return;
    struct facts_about_ops_of_shape *shape =
        heap_zalloc((size_t)p->ir.shape_count + 1, sizeof *shape);
    mark_shapes_of_layers(&p->ir, shape);
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work *work = &p->ir.shape[i];
        const bool routes = work->kind == WORK_ROUTE || work->kind == WORK_ROUTE_BACKWARD,
                   waits = work->kind == WORK_HOST_SYNC || work->kind == WORK_BARRIER,
                   is_of_experts = shape[i].is_of_expert_activation ||
                                   (may_be_expert_work(work) && !shape[i].is_of_attention);
        if (routes)
            issue_s[i] = graphs == CUDA_GRAPHS_STEP ? 0 : cost->host_op_s + cost->host_kernel_s;
        else if (graphs == CUDA_GRAPHS_STEP && !waits)
            issue_s[i] = 0;
        else if (graphs == CUDA_GRAPHS_LAYER && shape[i].is_of_layer && !waits &&
                 (with_experts || !is_of_experts))
            issue_s[i] = 0;
    }
    free(shape);
}

void framework_costs_add(const struct prediction *p, const struct device_cost *cost, double *work_s,
                         double *issue_s)
{
    const struct profile *profile = p->profile;
    if (profile == NULL || !p->has_choices || cost->is_ideal)
        return;
    if (profile->router_by_operators && !profile->is_ideal)
        set_router_issue_s(p, cost, issue_s);
    if (profile->makes_product_call_per_expert && !profile->is_ideal)
        add_expert_call_issue_s(p, cost, issue_s);
    if (profile->host_runs_te_modules)
        host_modules_add(&p->ir, cost, issue_s);
    if (profile->expert_bias_by_operators)
        add_seconds_of_expert_biases(p, cost, work_s, issue_s);
    if (profile->clamps_run_as_operators)
        add_clamp_operators(p, cost, work_s, issue_s);
    if (profile->scaled_rope_runs_as_operators && p->choices.model->rope_scaled)
        set_rope_operator_seconds(p, cost, work_s, issue_s);
    if (profile->core_takes_sinks)
        clear_sink_passes(p, work_s, issue_s);
    if (profile->activation_weights_copies)
        clear_weight_permutations(p, work_s, issue_s);
    clear_issue_s_of_cuda_graphs(p, cost, issue_s);
}
