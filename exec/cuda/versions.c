#include "exec/cuda/versions.h"

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stdio.h>

#if CUDART_VERSION >= 13000
#define CUDA_RUNTIME_MAJOR "13"
#define LEAST_DRIVER_VERSION "580"
#else
#define CUDA_RUNTIME_MAJOR "12"
#define LEAST_DRIVER_VERSION "525.60"
#endif

#define CUDNN_FRONTEND_SOURCE "github.com/NVIDIA/cudnn-frontend, include/cudnn_frontend/node/"

const struct version_rule version_rules[] = {
    {NVIDIA_DRIVER, VERSION_REFUSED, 1, CUDART_VERSION / 1000 * 1000 - 1,
     "does not take programs of CUDA " CUDA_RUNTIME_MAJOR ", which this one is",
     "driver " LEAST_DRIVER_VERSION " or later, or a program built with the driver's CUDA,",
     "CUDA Toolkit release notes, minimum driver versions"},
    {NVIDIA_CUBLASLT, VERSION_SPLIT_K_NEEDS_WHOLE_PARTS, 0, INT_MAX,
     "drops the last values of k when it splits a k that is no multiple of 64", "a whole k",
     "github.com/facebookexperimental/triton, pull request 2767: 12.8.5 and 13.1.1 on H100"},
    {NVIDIA_CUDNN, VERSION_REFUSED, 0, 90599, "adds attention's dQ to whatever is in its workspace",
     "9.10.2 or later", CUDNN_FRONTEND_SOURCE "scaled_dot_product_flash_attention.h"},
    {NVIDIA_CUDNN, VERSION_REFUSED, 90600, 90699,
     "has no attention whose causal mask is aligned at its end", "9.10.2 or later",
     CUDNN_FRONTEND_SOURCE "sdpa_support_surface.h"},
    {NVIDIA_CUDNN, VERSION_REFUSED, 90700, 90999,
     "takes no scores of minus infinity, by which attention is masked", "9.10.2 or later",
     CUDNN_FRONTEND_SOURCE "scaled_dot_product_flash_attention.h"},
    {NVIDIA_CUDNN, VERSION_REFUSED, 91000, 91001,
     "computes attention wrongly, forward and backward", "9.10.2 or later",
     CUDNN_FRONTEND_SOURCE "sdpa_support_surface.h"},
    {NVIDIA_CUDNN, VERSION_BACKWARD_NEEDS_WHOLE_TILES, 91002, 91500,
     "touches memory that is not its own in attention's backward when the keys are no multiple of "
     "128",
     "9.15.1 or later", "github.com/NVIDIA/cudnn-frontend, release notes of 1.16.0"},
    {NVIDIA_NCCL, VERSION_REFUSED, 0, 21802,
     "may corrupt data on nodes where a NIC shares its PCI switch with one GPU, as H100s do",
     "2.18.3 or later", "NCCL release notes: known issues of 2.18.1"},
    {NVIDIA_CUPTI, VERSION_REFUSED, 0, 18,
     "is older than CUDA 12, and its records of kernels are not those that this program reads",
     "CUPTI of CUDA 12.0 or later", "cupti_version.h and cupti_activity_deprecated.h"},
};
const size_t version_rule_count = sizeof version_rules / sizeof *version_rules;

const char *version_library_name(enum nvidia_library library)
{
    static const char *const names[NVIDIA_LIBRARY_COUNT] = {
        [NVIDIA_DRIVER] = "NVIDIA driver", [NVIDIA_CUBLASLT] = "cuBLASLt",
        [NVIDIA_CUDNN] = "cuDNN",          [NVIDIA_NCCL] = "NCCL",
        [NVIDIA_CUPTI] = "CUPTI",
    };
    return names[library];
}

void version_to_text(enum nvidia_library library, int version, char *text, size_t size)
{
    if (library == NVIDIA_DRIVER)
        snprintf(text, size, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    else if (library == NVIDIA_CUPTI && version < 10000)
        snprintf(text, size, "API %d", version);
    else if (version < 10000) /* the encoding of cuDNN up to 8 and of NCCL up to 2.8 */
        snprintf(text, size, "%d.%d.%d", version / 1000, version % 1000 / 100, version % 100);
    else
        snprintf(text, size, "%d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
}

const struct version_rule *version_find_rule(enum nvidia_library library,
                                             enum version_rule_effect effect, int version)
{
    for (size_t i = 0; i < version_rule_count; i++) {
        const struct version_rule *rule = &version_rules[i];
        if (rule->library == library && rule->effect == effect && version >= rule->first_version &&
            version <= rule->last_version)
            return rule;
    }
    return NULL;
}

enum status version_check(enum nvidia_library library, int version, struct diag *diag)
{
    const struct version_rule *rule = version_find_rule(library, VERSION_REFUSED, version);
    char text[32];
    if (rule == NULL)
        return STATUS_OK;
    version_to_text(library, version, text, sizeof text);
    return diag_error(diag, (struct loc){.name = version_library_name(library)}, STATUS_SYSTEM,
                      "version %s cannot be used: it %s (%s); use %s", text, rule->fault,
                      rule->source, rule->remedy);
}
