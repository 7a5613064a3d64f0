/* tests/exec/test_cuda_cudnn.c: cuDNN accepts our graphs of attention for A100 and H200, except those backwards that
 * it lacks on A100, and needs the expected scratch. The test needs neither GPU: cuDNN gets a description of the device
 * and a stand-in for the driver (mock_driver/). It shows that cuDNN has a kernel for each graph; a test on a GPU shows
 * what the kernels compute (test_cuda_numerics_gpu.c). */
#include "exec/cuda/fused.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDNN

enum { SKIPPED = 77 };

/* The format is cuDNN's own and undocumented; cuDNN 9.8 and later read it. */
#define CUDNN_DEVICE_JSON(name, version, l2, shared, sms, clock, memory)                           \
    "{\"cudaDeviceId\":0,\"deviceName\":\"" name "\",\"deviceVer\":" version                       \
    ",\"driverVer\":13000,\"isTccDriver\":0,\"l2CacheSize\":" l2                                   \
    ",\"maxBlockSize\":[1024,1024,64],\"maxCtasPerSM\":32,"                                        \
    "\"maxGridSize\":[2147483647,65535,65535],\"maxRegistersPerSM\":65536,"                        \
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":" shared                   \
    ",\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"memClockRateKHz\":1593000,"           \
    "\"multiProcessorCount\":" sms ",\"pciDeviceId\":0,\"regsPerBlock\":65536,"                    \
    "\"reservedSharedMemoryPerBlock\":1024,\"smClockRateKHz\":" clock                              \
    ",\"supportCoopLaunch\":1,\"totalGlobalMem\":" memory ",\"warpSize\":32}"

static const struct {
    const char *name, *json;
    int sm;
} devices[] = {
    {"sm_90",
     CUDNN_DEVICE_JSON("NVIDIA H200", "900", "62914560", "232448", "132", "1980000",
                       "150000000000"),
     90},
    {"sm_80",
     CUDNN_DEVICE_JSON("NVIDIA A100-SXM4-80GB", "800", "41943040", "166912", "108", "1410000",
                       "85000000000"),
     80},
};

/* Shapes of attention: {q, kv, heads, kv_heads, dim, vdim, and other members by name}. */
static const struct {
    const char *label;
    struct fused_shape shape;
    int least_sm_for_backward; /* the least sm for which cuDNN accepts the backward */
} rows[] = {
    {"square causal", {1024, 1024, 8, 8, 128, 128, .mask = FUSED_MASK_CAUSAL_FROM_START}, 80},
    {"full, dim 64, f16", {1024, 1024, 8, 8, 64, 64, .mask = FUSED_MASK_NONE, .is_f16 = 1}, 80},
    {"grouped causal", {4096, 4096, 32, 8, 128, 128, .mask = FUSED_MASK_CAUSAL_FROM_START}, 80},
    {"grouped, more keys than queries",
     {4096, 16384, 32, 8, 128, 128, .mask = FUSED_MASK_NONE},
     80},
    {"causal to the end", {4096, 16384, 32, 8, 128, 128, .mask = FUSED_MASK_CAUSAL_TO_END}, 80},
    {"more queries than keys", {16384, 4096, 32, 8, 128, 128, .mask = FUSED_MASK_NONE}, 80},
    {"odd sizes", {1000, 1500, 8, 2, 128, 128, .mask = FUSED_MASK_NONE}, 80},
    {"a window",
     {4096, 4096, 32, 8, 128, 128, .window = 1024, .mask = FUSED_MASK_CAUSAL_FROM_START},
     80},
    {"a window to the end",
     {4096, 16384, 32, 8, 128, 128, .window = 1000, .mask = FUSED_MASK_CAUSAL_TO_END},
     80},
    {"heads of two sizes", {2048, 4096, 8, 8, 192, 128, .mask = FUSED_MASK_CAUSAL_TO_END}, 90},
    {"documents",
     {2048, 2048, 8, 8, 128, 128, .mask = FUSED_MASK_CAUSAL_FROM_START, .documents = 5,
      .all_q = 4096, .all_kv = 4096},
     80},
    {"grouped documents",
     {1000, 1000, 32, 8, 128, 128, .mask = FUSED_MASK_CAUSAL_FROM_START, .documents = 7,
      .all_q = 4096, .all_kv = 4096},
     80},
    {"documents to the end",
     {512, 2048, 32, 8, 128, 128, .mask = FUSED_MASK_CAUSAL_TO_END, .documents = 3, .all_q = 1024,
      .all_kv = 4096},
     80},
    {"whole documents",
     {512, 2048, 8, 8, 64, 64, .mask = FUSED_MASK_NONE, .is_f16 = 1, .documents = 3, .all_q = 1024,
      .all_kv = 4096},
     80},
    {"dim 192", {2048, 2048, 8, 8, 192, 192, .mask = FUSED_MASK_NONE}, 90},
};

static const struct cudnn *dnn;
static cudnnBackendDescriptor_t described[ARRAY_LEN(devices)];

/* Makes described[device], cuDNN's description of the device. */
static bool make_cudnn_device_descriptor(size_t device)
{
    const char *json = devices[device].json;
    cudnnBackendDescriptor_t *d = &described[device];
    return dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, d) ==
               CUDNN_STATUS_SUCCESS &&
           dnn->cudnnBackendSetAttribute(*d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                         CUDNN_TYPE_CHAR, (int64_t)strlen(json),
                                         json) == CUDNN_STATUS_SUCCESS &&
           dnn->cudnnBackendFinalize(*d) == CUDNN_STATUS_SUCCESS;
}

/* Returns the bytes that a plan of the backward needs besides its operands (docs/execution.md). */
static double wanted_backward_scratch_bytes(const struct fused_shape *s, int sm)
{
    if (s->documents > 0) {
        double all_q = (double)s->heads * (double)s->all_q,
               keys = (double)s->heads * (double)s->all_kv;
        return 4 * all_q * (double)(s->dim + 1) +
               (s->heads > s->kv_heads ? 4 * keys * (double)(s->dim + s->vdim) : 0);
    }
    double queries = (double)s->heads * (double)s->q, keys = (double)s->kv * (double)s->dim;
    double wanted = 4 * queries * (double)s->dim * (sm == 80 ? 2 : 1) + 4 * queries;
    return wanted + (s->heads > s->kv_heads ? 4 * (double)s->heads * keys : 0);
}

/* Checks whether cuDNN accepts the forward or the backward of a row on a device, and the scratch of the backward. */
static void check_cudnn_takes_shape(size_t device, size_t row, bool backward)
{
    struct fused_shape shape = rows[row].shape;
    char label[96], words[512] = "";
    shape.is_backward = backward;
    bool wanted = !backward || devices[device].sm >= rows[row].least_sm_for_backward;
    snprintf(label, sizeof label, "%s, %s%s", devices[device].name, rows[row].label,
             backward ? ", backward" : "");
    struct fused *fused = fused_new(dnn, &shape);
    bool taken = fused_build(fused, NULL, described[device], words, sizeof words);
    if (!CHECK_INT(label, taken, wanted))
        printf("  %s\n", words);
    /* documents are not given to cuDNN on sm_80, which needs other scratch for them (exec/cuda/attention.c) */
    if (taken && backward && (shape.documents == 0 || devices[device].sm == 90)) {
        double scratch = (double)fused_scratch_bytes(fused);
        CHECK_CLOSE(label, scratch, wanted_backward_scratch_bytes(&shape, devices[device].sm),
                    1e-3);
    }
    fused_free(fused);
}

static void cudnn_supports_our_graphs(void)
{
    for (size_t d = 0; d < ARRAY_LEN(devices); d++)
        for (size_t r = 0; r < ARRAY_LEN(rows); r++)
            for (int backward = 0; backward < 2; backward++)
                if (check_is_sampled_today(r, ARRAY_LEN(rows), 4)) /* 0.5 s each */
                    check_cudnn_takes_shape(d, r, backward);
}

static const struct check_case cases[] = {
    {"cuDNN takes the graphs", cudnn_supports_our_graphs},
};

int main(int argc, char **argv)
{
    struct diag diag = {0};
    dnn = cudnn_open(&diag);
    if (dnn == NULL) {
        printf("skipped: %s", diag.text);
        return SKIPPED;
    }
    for (size_t d = 0; d < ARRAY_LEN(devices); d++)
        if (!make_cudnn_device_descriptor(d)) {
            printf("skipped: cuDNN %zu takes no description of a device\n", dnn->cudnnGetVersion());
            return SKIPPED;
        }
    diag_release(&diag);
    return check_run("cudnn", cases, ARRAY_LEN(cases), argc, argv);
}
#else
int main(void)
{
    puts("skipped: built without cuDNN");
    return 77;
}
#endif
