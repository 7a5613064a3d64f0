/* Tiles of attention as ops of a schedule beside the same plans of cuDNN called alone, one line of CSV
 * each: how much the statistics' transposition, events and everything else around it take.
 *
 *     attention_alone [small]     small: sizes for the emulated device
 *
 * Exit code 77, with the reason: no GPU, or built without cuDNN. */
#include "exec/backend.h"
#include "exec/cuda/fused.h"
#include "exec/microbench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

#ifdef HAVE_CUDNN
enum { REPEATS = 20, WARMUP = 3 };

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

/* Buffers of one plan called alone; all as large as the largest needs. */
struct buffers {
    void *q, *k, *v, *o, *d_o, *dq, *dk, *dv, *scratch;
    float *stats;
};

static bool allocate(struct buffers *b, const struct size *s, size_t scratch)
{
    size_t queries = (size_t)(2 * s->q * s->heads * s->dim);
    size_t keys = (size_t)(2 * s->kv * s->kv_heads * s->dim);
    const struct {
        void **to;
        size_t bytes;
    } rows[] = {
        {&b->q, queries},
        {&b->o, queries},
        {&b->d_o, queries},
        {&b->dq, queries},
        {&b->k, keys},
        {&b->v, keys},
        {&b->dk, keys},
        {&b->dv, keys},
        {&b->scratch, scratch + 1},
        {(void **)&b->stats, (size_t)(4 * s->q * s->heads)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (cudaMalloc(rows[i].to, rows[i].bytes) != cudaSuccess ||
            cudaMemset(*rows[i].to, 0x3e, rows[i].bytes) != cudaSuccess) /* bf16 0.186: no zeros */
            return false;
    return true;
}

static void release(struct buffers *b)
{
    void *all[] = {b->q, b->k, b->v, b->o, b->d_o, b->dq, b->dk, b->dv, b->scratch, b->stats};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cudaFree(all[i]);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Median seconds of the plan alone; words: what refused. */
static double alone_s(const struct cudnn *dnn, const struct size *s, bool backward,
                      const char **words)
{
    struct fused_shape shape = {
        s->q,        s->kv,  s->heads,
        s->kv_heads, s->dim, s->mask == MASK_CAUSAL ? FUSED_FROM_START : FUSED_ALL,
        backward,    false,  {0}};
    struct buffers b = {0};
    struct fused *fused = fused_new(dnn, &shape);
    static char why[512];
    cudaStream_t stream = NULL;
    cudaEvent_t begin = NULL, end = NULL;
    cudnnHandle_t handle = NULL;
    float ms[WARMUP + REPEATS];
    double median_s = 0;
    *words = "CUDA or cuDNN could not be set up";
    if (dnn->cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS)
        goto out;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaEventCreateWithFlags(&begin, cudaEventDefault) != cudaSuccess ||
        cudaEventCreateWithFlags(&end, cudaEventDefault) != cudaSuccess ||
        dnn->cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
        goto out;
    *words = why;
    if (!fused_build(fused, handle, NULL, why, sizeof why))
        goto out;
    *words = "out of memory";
    if (!allocate(&b, s, fused_scratch(fused)))
        goto out;
    *words = NULL;
    for (int i = 0; i < WARMUP + REPEATS && *words == NULL; i++) {
        cudaEventRecord(begin, stream);
        *words = backward ? fused_backward(fused, handle, b.q, b.k, b.v, b.o, b.d_o, b.stats, b.dq,
                                           b.dk, b.dv, b.scratch)
                          : fused_forward(fused, handle, b.q, b.k, b.v, b.o, b.stats, b.scratch);
        cudaEventRecord(end, stream);
        cudaError_t error = cudaEventSynchronize(end);
        if (error == cudaSuccess)
            error = cudaEventElapsedTime(&ms[i], begin, end);
        if (error != cudaSuccess && *words == NULL)
            *words = cudaGetErrorString(error);
    }
    if (*words == NULL) {
        qsort(ms + WARMUP, REPEATS, sizeof *ms, by_size);
        median_s = 1e-3 * ms[WARMUP + REPEATS / 2];
    }
out:
    release(&b);
    fused_free(fused);
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    if (handle != NULL)
        dnn->cudnnDestroy(handle);
    if (stream != NULL)
        cudaStreamDestroy(stream);
    return median_s;
}

static enum status op_s(const struct size *s, bool backward, double *seconds, struct diag *diag)
{
    const struct microbench_case wanted = {
        POINT_WORK,
        ATTENTION_CUDNN,
        {.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
         .attention = {s->q, s->kv, s->heads, s->kv_heads, s->dim, s->mask, 0, 0}},
    };
    const struct microbench_options options = {.backend = "cuda", .dtype = DTYPE_BF16};
    struct point point = {0};
    enum status status = microbench_run(&wanted, &options, &point, diag);
    *seconds = point.median_s;
    return status;
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
            const char *words;
            double whole_s = 0, plan_s = alone_s(dnn, s, backward, &words);
            enum status status = words == NULL ? op_s(s, backward, &whole_s, &diag) : STATUS_SYSTEM;
            if (status != STATUS_OK) {
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
