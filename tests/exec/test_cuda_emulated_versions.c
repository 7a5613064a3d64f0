/* tests/exec/test_cuda_emulated_versions.c: versions of NVIDIA's libraries that are known to be wrong are refused, or
 * not asked for what they do wrong (exec/cuda/versions.h). */
#include "exec/cuda/cuda.h"
#include "exec/cuda/versions.h"
#include "tests/check.h"
#include "tests/exec/emulator/emulator.h"

#include <stdio.h>
#include <string.h>

static bool library_opens(enum nvidia_library library, struct diag *diag)
{
    int count;
    switch (library) {
    case NVIDIA_DRIVER:
        return cuda_count_devices(&count, diag) == STATUS_OK;
    case NVIDIA_CUBLASLT:
        return cublaslt_open(diag) != NULL;
#ifdef HAVE_CUDNN
    case NVIDIA_CUDNN:
        return cudnn_open(diag) != NULL;
#endif
#ifdef HAVE_NCCL
    case NVIDIA_NCCL:
        return nccl_open(diag) != NULL;
#endif
#ifdef HAVE_CUPTI
    case NVIDIA_CUPTI:
        return cupti_open_library(diag) != NULL;
#endif
    default:
        return false;
    }
}

/* True if this program was built with the headers of a library, and so can open it. */
static bool is_built_with_headers_of(enum nvidia_library library)
{
#ifndef HAVE_CUDNN
    if (library == NVIDIA_CUDNN)
        return false;
#endif
#ifndef HAVE_NCCL
    if (library == NVIDIA_NCCL)
        return false;
#endif
#ifndef HAVE_CUPTI
    if (library == NVIDIA_CUPTI)
        return false;
#endif
    return library < NVIDIA_LIBRARY_COUNT;
}

static void check_library_version_rule(const struct version_rule *rule, int version)
{
    int *const numbers[NVIDIA_LIBRARY_COUNT] = {
        [NVIDIA_DRIVER] = &emulator_versions.driver,
        [NVIDIA_CUBLASLT] = &emulator_versions.cublaslt,
        [NVIDIA_CUDNN] = &emulator_versions.cudnn,
        [NVIDIA_NCCL] = &emulator_versions.nccl,
        [NVIDIA_CUPTI] = &emulator_versions.cupti,
    };
    const enum nvidia_library library = (enum nvidia_library)rule->library;
    const struct emulator_versions before = emulator_versions;
    const struct version_rule *wanted = version_find_rule(library, VERSION_REFUSED, version);
    struct diag diag = {0};
    char printed[32];
    *numbers[library] = version;
    if (library == NVIDIA_DRIVER)
        emulator_devices = wanted != NULL ? -1 : 1; /* the runtime finds the old driver as well */
    version_to_text(library, version, printed, sizeof printed);
    CHECK_INT(printed, library_opens(library, &diag), wanted == NULL);
    if (wanted != NULL) {
        CHECK(printed, strstr(diag.text, version_library_name(library)) == diag.text);
        CHECK(printed, strstr(diag.text, printed) != NULL);
        CHECK(printed, strstr(diag.text, wanted->fault) != NULL);
        CHECK(printed, strstr(diag.text, wanted->remedy) != NULL);
    }
    emulator_versions = before;
    emulator_devices = 1;
    diag_release(&diag);
}

static void wrong_versions_are_refused(void)
{
    char text[32];
    for (size_t i = 0; i < version_rule_count; i++) {
        const struct version_rule *rule = &version_rules[i];
        CHECK(rule->fault, rule->first_version <= rule->last_version && rule->source[0] != '\0');
        if (rule->effect != VERSION_REFUSED ||
            !is_built_with_headers_of((enum nvidia_library)rule->library))
            continue;
        CHECK_INT(rule->fault,
                  version_find_rule((enum nvidia_library)rule->library, VERSION_REFUSED,
                                    rule->first_version) == rule,
                  true);
        check_library_version_rule(rule, rule->first_version);
        check_library_version_rule(rule, rule->last_version);
        check_library_version_rule(rule, rule->last_version + 1);
    }
    version_to_text(NVIDIA_CUDNN, 91900, text, sizeof text);
    CHECK_TEXT("cuDNN 9", text, "9.19.0");
    version_to_text(NVIDIA_CUDNN, 8907, text, sizeof text);
    CHECK_TEXT("cuDNN 8", text, "8.9.7");
    version_to_text(NVIDIA_CUPTI, 26, text, sizeof text);
    CHECK_TEXT("CUPTI of CUDA 12", text, "API 26");
}

#ifdef HAVE_CUDNN
/* Checks whether cuDNN or tiles compute the attention, and the reason given for tiles. */
static void check_attention_implementation(const char *label, int version, struct work work,
                                           const char *wanted)
{
    static float memory[1024];
    struct diag diag = {0};
    struct call call = {.work = &work, .op = 7, .read_count = 3, .write_count = 2};
    char text[1024];
    if (work.kind == WORK_ATTENTION_BACKWARD) {
        call.read_count = 6;
        call.write_count = 3;
    }
    for (uint32_t k = 0; k < CALL_OPERANDS_MAX; k++)
        call.read[k] = call.write[k] = (struct operand){memory, 1, DTYPE_BF16};
    emulator_versions.cudnn = version;
    struct products *products = products_new(cublaslt_open(&diag), &diag);
    struct attentions *all = attentions_new(products, EXEC_ATTENTION_AUTO, &diag);
    CHECK(label, attention_new(all, &call, NULL, &diag) != NULL);
    CHECK_INT(label, attentions_build(all, &diag), STATUS_OK);
    attentions_describe(all, text, sizeof text);
    CHECK_TEXT(label, text, wanted);
    attentions_free(all);
    products_free(products);
    emulator_versions.cudnn = CUDNN_VERSION;
    diag_release(&diag);
}

static void cudnn_is_asked_for_what_it_does_right(void)
{
    const struct work forward = {.kind = WORK_ATTENTION,
                                 .attention = {96, 96, 4, 2, 64, MASK_CAUSAL, 0, 0}};
    struct work backward = forward, whole = forward, one = forward;
    backward.kind = whole.kind = one.kind = WORK_ATTENTION_BACKWARD;
    whole.attention.kv = whole.attention.q = 256;
    one.attention.kv = one.attention.q = 1;
    check_attention_implementation("9.15.0, forward", 91500, forward, "cudnn");
    check_attention_implementation(
        "9.15.0, backward of 96 keys", 91500, backward,
        "tiles (op 7: touches memory that is not its own in attention's backward when the keys "
        "are no multiple of 128)");
    check_attention_implementation("9.15.0, backward of 256 keys", 91500, whole, "cudnn");
    check_attention_implementation("9.15.1, backward of 96 keys", 91501, backward, "cudnn");
    check_attention_implementation("one query and one key", 91900, one,
                                   "tiles (op 7: cuDNN has no backward of one query and one key)");
    check_attention_implementation(
        "9.5.1", 90501, forward,
        "tiles (cuDNN: version 9.5.1 cannot be used: it adds attention's dQ to whatever is "
        "in its workspace "
        "(github.com/NVIDIA/cudnn-frontend, include/cudnn_frontend/node/"
        "scaled_dot_product_flash_attention.h); use 9.10.2 or later)");
}
#endif

static const struct check_case cases[] = {
    {"wrong versions are refused", wrong_versions_are_refused},
#ifdef HAVE_CUDNN
    {"cuDNN is asked for what it does right", cudnn_is_asked_for_what_it_does_right},
#endif
};

int main(int argc, char **argv)
{
    emulator_use();
    return check_run("cuda emulated versions", cases, ARRAY_LEN(cases), argc, argv);
}
