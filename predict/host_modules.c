#include "predict/host_modules.h"

/* By kind of work: the time of its module on the host, as a multiple of the time of torch.nn.Linear without that of
 * cuBLAS and CUDA (host_op_s), less 1, since each op counts one already. 0: no module does this work. A kind that
 * serves forward and backward has the mean of both. Measured with Megatron-Core 0.16 and TransformerEngine 2.9
 * (bench/host; docs/costs.md, "Modules of TransformerEngine"). */
static const double module_ops[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = 10,    [WORK_QUANTISE] = 5,
    [WORK_ATTENTION] = 58, [WORK_ATTENTION_BACKWARD] = 10,
    [WORK_RMSNORM] = 10,   [WORK_RMSNORM_BACKWARD] = 7,
    [WORK_LAYERNORM] = 10, [WORK_LAYERNORM_BACKWARD] = 7,
    [WORK_ROPE] = 2.5,     [WORK_ROPE_BACKWARD] = 1.8,
    [WORK_SWIGLU] = 17,    [WORK_SWIGLU_BACKWARD] = 19,
    [WORK_GELU] = 17,      [WORK_GELU_BACKWARD] = 19,
    [WORK_ADD] = 10,       [WORK_PACK] = 8,
    [WORK_UNPACK] = 8,     [WORK_PERMUTE] = 24,
    [WORK_UNPERMUTE] = 13, [WORK_UNPERMUTE_BACKWARD] = 13,
    [WORK_ROUTE] = 64,
};

/* The number of kernels that the dispatcher launches to make lists of rows from the router's choices. */
enum { DISPATCH_LAUNCHES = 12 };

void host_modules_add(const struct ir *ir, const struct device_cost *cost, double *issue_s)
{
    for (uint32_t i = 0; i < ir->shape_count; i++) {
        const struct work *work = &ir->shape[i];
        issue_s[i] += module_ops[work->kind] * cost->host_op_s;
        if (work->kind == WORK_ROUTE)
            issue_s[i] += DISPATCH_LAUNCHES * cost->host_kernel_s;
    }
}
