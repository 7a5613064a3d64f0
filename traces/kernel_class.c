#include "traces/kernel_class.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <assert.h>
#include <string.h>

const char *kernel_class_name(enum kernel_class class)
{
    static const char *const names[CLASS_COUNT] = {
        [CLASS_NO_WORK] = "none",
        [CLASS_MATMUL] = "matmul",
        [CLASS_ATTENTION] = "attention",
        [CLASS_NORM] = "norm",
        [CLASS_ELEMENTWISE] = "elementwise",
        [CLASS_OPTIMIZER] = "optimizer",
        [CLASS_COPY] = "copy",
        [CLASS_COMMUNICATION] = "communication",
        [CLASS_OTHER] = "other",
    };
    assert(class < CLASS_COUNT);
    return names[class];
}

/* A pattern of names. '*' stands for any number of characters; upper and lower case are the same. Of several patterns
 * in a table that match a name, the first one decides. */
struct pattern {
    const char *text;
    enum kernel_class class;
};

static bool matches_pattern(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (c_lower(*pattern) == c_lower(*name)) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static enum kernel_class class_of_name(const struct pattern *patterns, size_t count,
                                       const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (matches_pattern(patterns[i].text, name))
            return patterns[i].class;
    return CLASS_OTHER;
}

enum kernel_class kernel_class_of_kind(const char *kind)
{
    static const struct pattern patterns[] = {
        {"matmul", CLASS_MATMUL},
        {"attention*", CLASS_ATTENTION},
        {"merge*", CLASS_ATTENTION},
        {"sink*", CLASS_ATTENTION},
        {"row_dot", CLASS_ATTENTION},
        {"rmsnorm*", CLASS_NORM},
        {"layernorm*", CLASS_NORM},
        {"adamw", CLASS_OPTIMIZER},
        {"square_sum", CLASS_OPTIMIZER},
        {"clip", CLASS_OPTIMIZER},
        {"h2d", CLASS_COPY},
        {"d2h", CLASS_COPY},
        {"all_to_all", CLASS_COMMUNICATION},
        {"all_gather", CLASS_COMMUNICATION},
        {"reduce_scatter", CLASS_COMMUNICATION},
        {"all_reduce", CLASS_COMMUNICATION},
        {"reduce", CLASS_COMMUNICATION},
        {"broadcast", CLASS_COMMUNICATION},
        {"scatter", CLASS_COMMUNICATION},
        {"exchange", CLASS_COMMUNICATION},
        {"shift", CLASS_COMMUNICATION},
        {"send", CLASS_COMMUNICATION},
        {"recv", CLASS_COMMUNICATION},
        {"host_sync", CLASS_NO_WORK},
        {"barrier", CLASS_NO_WORK},
        {"rope*", CLASS_ELEMENTWISE},
        {"swiglu*", CLASS_ELEMENTWISE},
        {"gelu*", CLASS_ELEMENTWISE},
        {"embedding*", CLASS_ELEMENTWISE},
        {"cross_entropy*", CLASS_ELEMENTWISE},
        {"add", CLASS_ELEMENTWISE},
        {"cast", CLASS_ELEMENTWISE},
        {"fill", CLASS_ELEMENTWISE},
        {"pack", CLASS_ELEMENTWISE},
        {"unpack", CLASS_ELEMENTWISE},
        {"head_*", CLASS_ELEMENTWISE},
        {"column_sum", CLASS_ELEMENTWISE},
        {"quantise", CLASS_ELEMENTWISE},
        {"dequantise", CLASS_ELEMENTWISE},
        {"latent_keys*", CLASS_ELEMENTWISE},
        {"route*", CLASS_ELEMENTWISE},
        {"permute*", CLASS_ELEMENTWISE},
        {"unpermute*", CLASS_ELEMENTWISE},
        {"take_rows", CLASS_ELEMENTWISE},
        {"add_rows", CLASS_ELEMENTWISE},
    };
    return class_of_name(patterns, ARRAY_LEN(patterns), kind);
}

bool kernel_class_is_message_preparation(const char *name)
{
    return strncmp(name, "c10d::", 6) == 0 || strcmp(name, "fsdp::all_gather_copy_in") == 0 ||
           strcmp(name, "fsdp::chunk_cat") == 0;
}

/* The names are those of torch/_C and of aten/src/ATen/native/native_functions.yaml in PyTorch. A batched product
 * ("aten::bmm") counts as attention: nothing else in a transformer multiplies activations by activations. */
enum kernel_class kernel_class_of_operator(const char *name)
{
    static const struct pattern patterns[] = {
        {"aten::mm", CLASS_MATMUL},
        {"aten::addmm*", CLASS_MATMUL},
        {"aten::_scaled_mm*", CLASS_MATMUL},
        {"aten::mv", CLASS_MATMUL},
        {"aten::addmv*", CLASS_MATMUL},
        {"*attention*", CLASS_ATTENTION},
        {"*flash_attn*", CLASS_ATTENTION},
        {"aten::bmm", CLASS_ATTENTION},
        {"aten::baddbmm*", CLASS_ATTENTION},
        {"aten::_softmax", CLASS_ATTENTION},
        {"aten::_softmax_backward_data", CLASS_ATTENTION},
        {"aten::*layer_norm*", CLASS_NORM},
        {"aten::*rms_norm*", CLASS_NORM},
        {"c10d::*", CLASS_COMMUNICATION},
        {"_c10d_functional::*", CLASS_COMMUNICATION},
        {"nccl:*", CLASS_COMMUNICATION},
        {"gloo:*", CLASS_COMMUNICATION},
        {"fsdp::*", CLASS_COMMUNICATION}, /* copies into and out of the buffers of collectives */
        {"aten::*adam*", CLASS_OPTIMIZER},
        {"aten::view*", CLASS_NO_WORK},
        {"aten::_unsafe_view", CLASS_NO_WORK},
        {"aten::reshape*", CLASS_NO_WORK},
        {"aten::_reshape_alias", CLASS_NO_WORK},
        {"aten::as_strided*", CLASS_NO_WORK},
        {"aten::t", CLASS_NO_WORK},
        {"aten::transpose", CLASS_NO_WORK},
        {"aten::permute", CLASS_NO_WORK},
        {"aten::expand*", CLASS_NO_WORK},
        {"aten::slice", CLASS_NO_WORK},
        {"aten::select", CLASS_NO_WORK},
        {"aten::narrow", CLASS_NO_WORK},
        {"aten::unbind", CLASS_NO_WORK},
        {"aten::unfold", CLASS_NO_WORK},
        {"aten::split*", CLASS_NO_WORK},
        {"aten::chunk", CLASS_NO_WORK},
        {"aten::flatten", CLASS_NO_WORK},
        {"aten::squeeze*", CLASS_NO_WORK},
        {"aten::unsqueeze*", CLASS_NO_WORK},
        {"*detach*", CLASS_NO_WORK},
        {"aten::alias", CLASS_NO_WORK},
        {"aten::empty*", CLASS_NO_WORK},
        {"aten::new_empty*", CLASS_NO_WORK},
        {"aten::resize_", CLASS_NO_WORK},
        {"aten::resolve_*", CLASS_NO_WORK},
        {"aten::result_type", CLASS_NO_WORK},
        {"aten::item", CLASS_NO_WORK},
        {"aten::_local_scalar_dense", CLASS_NO_WORK},
        {"aten::to", CLASS_NO_WORK},
        {"aten::_to_copy", CLASS_NO_WORK},
        {"aten::contiguous", CLASS_NO_WORK},
        {"aten::clone", CLASS_NO_WORK},
        {"aten::linear", CLASS_NO_WORK},
        {"aten::matmul", CLASS_NO_WORK},
        {"aten::einsum", CLASS_NO_WORK},
        {"aten::softmax", CLASS_NO_WORK},
        {"*::copy_*", CLASS_ELEMENTWISE},
        {"autograd::engine::evaluate_function: *", CLASS_NO_WORK},
        {"torch::autograd::*", CLASS_NO_WORK},
        {"*Backward*", CLASS_NO_WORK},
        {"ProfilerStep*", CLASS_NO_WORK},
        {"Optimizer.*", CLASS_NO_WORK},
        {"aten::*", CLASS_ELEMENTWISE},
    };
    return class_of_name(patterns, ARRAY_LEN(patterns), name);
}

/* The names are those that libraries give their kernels: cuBLAS and CUTLASS ("gemm", "nvjet"), FlashAttention and cuDNN
 * ("flash_fwd", "fmha", "sdpa"), NCCL ("ncclDevKernel_"), ATen ("at::native::"), Triton. */
enum kernel_class kernel_class_of_kernel(const char *name)
{
    static const struct pattern patterns[] = {
        {"*nccl*", CLASS_COMMUNICATION},
        {"*rccl*", CLASS_COMMUNICATION},
        {"*Memcpy DtoD*", CLASS_ELEMENTWISE},
        {"*Memcpy*", CLASS_COPY},
        {"*Memset*", CLASS_ELEMENTWISE},
        {"*flash_fwd*", CLASS_ATTENTION},
        {"*flash_bwd*", CLASS_ATTENTION},
        {"*flash*attention*", CLASS_ATTENTION},
        {"*fmha*", CLASS_ATTENTION},
        {"*sdpa*", CLASS_ATTENTION},
        {"*cudnn*attention*", CLASS_ATTENTION},
        {"*adam*", CLASS_OPTIMIZER},
        {"*layer_norm*", CLASS_NORM},
        {"*layernorm*", CLASS_NORM},
        {"*rms_norm*", CLASS_NORM},
        {"*rmsnorm*", CLASS_NORM},
        {"*GammaBeta*", CLASS_NORM},
        {"*gemm*", CLASS_MATMUL},
        {"*nvjet*", CLASS_MATMUL},
        {"*cutlass*", CLASS_MATMUL},
        {"*splitK*", CLASS_MATMUL},
        {"*cublas*", CLASS_MATMUL},
        {"*softmax_warp*", CLASS_ATTENTION},
        {"*at::native::*", CLASS_ELEMENTWISE},
        {"*elementwise*", CLASS_ELEMENTWISE},
        {"*reduce*", CLASS_ELEMENTWISE},
        {"triton_*", CLASS_ELEMENTWISE},
        {"*softmax*", CLASS_ELEMENTWISE},
        {"*embedding*", CLASS_ELEMENTWISE},
        {"*copy*", CLASS_ELEMENTWISE},
    };
    return class_of_name(patterns, ARRAY_LEN(patterns), name);
}

enum flops_formula_form operator_find_flops_form(const char *name)
{
    static const struct {
        const char *name;
        enum flops_formula_form form;
    } rows[] = {
        {"aten::mm", FLOPS_PRODUCT},
        {"aten::bmm", FLOPS_PRODUCT},
        {"aten::addmm", FLOPS_ADDED_PRODUCT},
        {"aten::addmm_", FLOPS_ADDED_PRODUCT},
        {"aten::baddbmm", FLOPS_ADDED_PRODUCT},
        {"aten::baddbmm_", FLOPS_ADDED_PRODUCT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].form;
    return FLOPS_UNKNOWN;
}
