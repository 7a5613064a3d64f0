/* Times tiles of attention as ops of a schedule, and the same cuDNN plans called directly, and prints one line of CSV
 * for each. The difference is the time of the transposition of the statistics, of events and of all other work around
 * the call. Both use the same numbers, sets of operands and number of calls, queued one after the other.
 *
 *     attention_alone [small]     small: sizes for the emulated device
 *
 * Exit code 77, after a line with the reason: there is no GPU, cuDNN cannot be opened, or the build has no cuDNN. */
#include "exec/backend.h"
#include "exec/cuda/fused.h"
#include "exec/microbench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

#ifdef HAVE_CUDNN
static const struct size {
    int64_t q, kv, heads, kv_heads, dim;
    uint8_t mask; /* enum mask of the op */
} large[] =
    {
        {32768, 32768, 20, 20, 128, MASK_CAUSAL}, {8192, 8192, 32, 8, 128, MASK_CAUSAL},
        {4096, 16384, 32, 8, 128, MASK_FULL},     {8192, 8192, 32, 8, 128, MASK_FULL},
        {16384, 16384, 16, 16, 64, MASK_CAUSAL},
},
  small[] = {{64, 64, 2, 1, 16, MASK_CAUSAL}, {32, 64, 2, 2, 16, MASK_FULL}};

/* Operands of one call; the calls take turns with `sets` of them, as the op does, so that none is in a cache. */
struct buffers {
    void *q, *k, *v, *o, *d_o, *dq, *dk, *dv;
    float *stats;
};

/* Everything that a direct call of a plan needs. */
struct alone {
    size_t sets, calls, repeats; /* repeats: the last of the calls, which count */
    struct buffers *set;
    void *scratch;
    cudaEvent_t *begin, *end;
    cudaStream_t stream;
    cudnnHandle_t handle;
    struct fused *fused;
};

/* A buffer on the device with the numbers that bench gives to operands. */
static void *filled(enum dtype dtype, size_t elements, uint64_t seed)
{
    size_t bytes = elements * dtype_bytes(dtype);
    void *device = NULL, *host = heap_alloc(elements, dtype_bytes(dtype));
    microbench_fill(host, dtype, elements, seed);
    if (cudaMalloc(&device, bytes) == cudaSuccess &&
        cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
        cudaFree(device);
        device = NULL;
    }
    free(host);
    return device;
}

static bool allocate(struct alone *a, const struct size *s, bool backward)
{
    size_t queries = (size_t)(s->q * s->heads * s->dim);
    size_t keys = (size_t)(s->kv * s->kv_heads * s->dim), rows = (size_t)(s->q * s->heads);
    size_t bytes = backward ? 8 * queries + 8 * keys : 4 * queries + 4 * keys;
    a->sets = MICROBENCH_ROTATE_GPU / (bytes + 4 * rows) + 1;
    a->sets = a->sets < a->calls ? a->sets : a->calls;
    a->set = heap_zalloc(a->sets, sizeof *a->set);
    for (size_t i = 0; i < a->sets; i++) {
        struct buffers *b = &a->set[i];
        const struct {
            void **to;
            size_t elements;
            bool wanted;
        } rows_of[] = {
            {&b->q, queries, true},   {&b->k, keys, true},          {&b->v, keys, true},
            {&b->o, queries, true},   {&b->d_o, queries, backward}, {&b->dq, queries, backward},
            {&b->dk, keys, backward}, {&b->dv, keys, backward},
        };
        for (size_t k = 0; k < ARRAY_LEN(rows_of); k++)
            if (rows_of[k].wanted &&
                (*rows_of[k].to = filled(DTYPE_BF16, rows_of[k].elements, 16 * i + k)) == NULL)
                return false;
        if ((b->stats = filled(DTYPE_F32, rows, 16 * i + 8)) == NULL)
            return false;
    }
    return cudaMalloc(&a->scratch, fused_scratch(a->fused) + 1) == cudaSuccess;
}

static void release(struct alone *a, const struct cudnn *dnn)
{
    for (size_t i = 0; a->set != NULL && i < a->sets; i++) {
        const struct buffers *b = &a->set[i];
        void *all[] = {b->q, b->k, b->v, b->o, b->d_o, b->dq, b->dk, b->dv, b->stats};
        for (size_t k = 0; k < ARRAY_LEN(all); k++)
            cudaFree(all[k]);
    }
    cudaFree(a->scratch);
    fused_free(a->fused);
    for (size_t i = 0; i < a->calls; i++) {
        if (a->begin[i] != NULL)
            cudaEventDestroy(a->begin[i]);
        if (a->end[i] != NULL)
            cudaEventDestroy(a->end[i]);
    }
    if (a->handle != NULL)
        dnn->cudnnDestroy(a->handle);
    if (a->stream != NULL)
        cudaStreamDestroy(a->stream);
    free(a->begin);
    free(a->end);
    free(a->set);
}

static bool set_up(struct alone *a, const struct cudnn *dnn)
{
    a->begin = heap_zalloc(a->calls, sizeof(cudaEvent_t));
    a->end = heap_zalloc(a->calls, sizeof(cudaEvent_t));
    for (size_t i = 0; i < a->calls; i++)
        if (cudaEventCreateWithFlags(&a->begin[i], cudaEventDefault) != cudaSuccess ||
            cudaEventCreateWithFlags(&a->end[i], cudaEventDefault) != cudaSuccess)
            return false;
    return dnn->cudnnCreate(&a->handle) == CUDNN_STATUS_SUCCESS &&
           cudaStreamCreateWithFlags(&a->stream, cudaStreamNonBlocking) == cudaSuccess &&
           dnn->cudnnSetStream(a->handle, a->stream) == CUDNN_STATUS_SUCCESS;
}

/* Queues all calls one after the other, with an event before and after each. The host waits only after the last call,
 * so that the stream is as full as in the op's schedule. Returns NULL, or the name of the call that failed. */
static const char *call_all(const struct alone *a, bool backward)
{
    const char *words = NULL;
    for (size_t i = 0; i < a->calls && words == NULL; i++) {
        const struct buffers *b = &a->set[i % a->sets];
        cudaEventRecord(a->begin[i], a->stream);
        words = backward ? fused_backward(a->fused, a->handle, b->q, b->k, b->v, b->o, b->d_o,
                                          b->stats, b->dq, b->dk, b->dv, a->scratch)
                         : fused_forward(a->fused, a->handle, b->q, b->k, b->v, b->o, b->stats,
                                         a->scratch);
        cudaEventRecord(a->end[i], a->stream);
    }
    cudaError_t error = cudaStreamSynchronize(a->stream);
    return words != NULL || error == cudaSuccess ? words : cudaGetErrorString(error);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static const char *find_median(const struct alone *a, double *median_s)
{
    float *ms = heap_alloc(a->repeats, sizeof *ms);
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < a->repeats && error == cudaSuccess; i++) {
        size_t call = a->calls - a->repeats + i;
        error = cudaEventElapsedTime(&ms[i], a->begin[call], a->end[call]);
    }
    if (error == cudaSuccess) {
        qsort(ms, a->repeats, sizeof *ms, by_size);
        *median_s = 1e-3 * ms[a->repeats / 2];
    }
    free(ms);
    return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}

/* Returns the median seconds of the plan, called directly as often as the op was; words: what failed. */
static double alone_s(const struct cudnn *dnn, const struct size *s, bool backward, size_t repeats,
                      const char **words)
{
    static char why[512];
    struct fused_shape shape = {
        .q = s->q,
        .kv = s->kv,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .dim = s->dim,
        .vdim = s->dim,
        .mask = s->mask == MASK_CAUSAL ? FUSED_FROM_START : FUSED_ALL,
        .backward = backward,
    };
    struct alone a = {.repeats = repeats,
                      .calls = microbench_warmup((uint32_t)repeats) + repeats,
                      .fused = fused_new(dnn, &shape)};
    double median_s = 0;
    if (!set_up(&a, dnn))
        *words = "CUDA or cuDNN could not be set up";
    else if (!fused_build(a.fused, a.handle, NULL, why, sizeof why))
        *words = why;
    else if (!allocate(&a, s, backward))
        *words = "out of memory";
    else if ((*words = call_all(&a, backward)) == NULL)
        *words = find_median(&a, &median_s);
    release(&a, dnn);
    return median_s;
}

/* seconds of work, as in struct microbench_options. */
static enum status op_s(const struct size *s, bool backward, double seconds, struct point *point,
                        struct diag *diag)
{
    const struct microbench_case wanted = {
        POINT_WORK,
        ATTENTION_CUDNN,
        {.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
         .attention = {s->q, s->kv, s->heads, s->kv_heads, s->dim, s->mask, 0, 0}},
    };
    const struct microbench_options options = {
        .backend = "cuda", .dtype = DTYPE_BF16, .seconds = seconds};
    return microbench_run(&wanted, &options, point, diag);
}

/* Pairs of a query and a key, 4 flops per dimension forward and 10 backward. */
static double flops_of(const struct size *s, bool backward)
{
    double pairs = (double)s->q * (double)s->kv * (s->mask == MASK_CAUSAL ? 0.5 : 1);
    return (backward ? 10 : 4) * pairs * (double)(s->heads * s->dim);
}

static void say(void *user, const char *key, const char *value)
{
    (void)user;
    printf("# %s=%s\n", key, value);
}

int main(int argc, char **argv)
{
    bool is_small = argc > 1 && strcmp(argv[1], "small") == 0;
    const struct size *rows = is_small ? small : large;
    size_t count = is_small ? ARRAY_LEN(small) : ARRAY_LEN(large);
    struct diag diag = {0};
    const struct cudnn *dnn = NULL;
    int code = 0;
    if (backend_find("cuda")->describe(say, NULL, &diag) == STATUS_OK)
        dnn = cudnn_open(&diag);
    if (dnn == NULL) {
        printf("skipped: %s", diag.text);
        diag_release(&diag);
        return SKIPPED;
    }
    puts("direction,q,kv,heads,kv_heads,dim,mask,alone_s,op_s,alone_over_op,op_tflop_per_s");
    for (size_t i = 0; i < count; i++)
        for (int backward = 0; backward < 2; backward++) {
            const struct size *s = &rows[i];
            const char *words = NULL;
            struct point point = {0};
            double plan_s = 0;
            enum status status = op_s(s, backward, is_small ? 1e-4 : 0, &point, &diag);
            if (status == STATUS_OK)
                plan_s = alone_s(dnn, s, backward, (size_t)point.repeats, &words);
            double whole_s = point.median_s;
            if (status != STATUS_OK || words != NULL) {
                fprintf(stderr, "%lld x %lld%s: %s\n", (long long)s->q, (long long)s->kv,
                        backward ? " backward" : "", words != NULL ? words : diag.text);
                code = 1;
                continue;
            }
            printf("%s,%lld,%lld,%lld,%lld,%lld,%s,%.6g,%.6g,%.4f,%.4g\n",
                   backward ? "backward" : "forward", (long long)s->q, (long long)s->kv,
                   (long long)s->heads, (long long)s->kv_heads, (long long)s->dim,
                   s->mask == MASK_CAUSAL ? "causal" : "full", plan_s, whole_s, plan_s / whole_s,
                   flops_of(s, backward) / whole_s / 1e12);
            fflush(stdout);
        }
    diag_release(&diag);
    return code;
}
#else
int main(void)
{
    puts("skipped: built without cuDNN");
    return SKIPPED;
}
#endif
