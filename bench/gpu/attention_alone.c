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

/* Operands of one call on the device. Calls rotate through `set_count` of these, as the op's calls do, so that no
 * operand is still in a cache. */
struct call_buffers {
    void *q, *k, *v, *o, *d_o, *dq, *dk, *dv;
    float *stats;
};

/* A plan of cuDNN that is called directly, and everything that its calls need. */
struct direct_plan {
    size_t set_count, call_count;
    size_t measured_call_count; /* the last ones; the calls before them warm up */
    struct call_buffers *buffers_by_set;
    void *scratch;
    cudaEvent_t *begin, *end;
    cudaStream_t stream;
    cudnnHandle_t handle;
    struct fused *fused;
};

/* Returns a new buffer on the device, filled with the random numbers that bench gives to operands; NULL: it could not
 * be allocated or filled. */
static void *new_filled_buffer(enum dtype dtype, size_t elements, uint64_t seed)
{
    size_t bytes = elements * dtype_bytes(dtype);
    void *gpu_buffer = NULL, *host = heap_alloc(elements, dtype_bytes(dtype));
    microbench_fill(host, dtype, elements, seed);
    if (cudaMalloc(&gpu_buffer, bytes) == cudaSuccess &&
        cudaMemcpy(gpu_buffer, host, bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
        cudaFree(gpu_buffer);
        gpu_buffer = NULL;
    }
    free(host);
    return gpu_buffer;
}

static bool allocate_sets(struct direct_plan *a, const struct size *s, bool backward)
{
    size_t queries = (size_t)(s->q * s->heads * s->dim);
    size_t keys = (size_t)(s->kv * s->kv_heads * s->dim), rows = (size_t)(s->q * s->heads);
    size_t bytes = backward ? 8 * queries + 8 * keys : 4 * queries + 4 * keys;
    a->set_count = MICROBENCH_ROTATE_GPU / (bytes + 4 * rows) + 1;
    a->set_count = a->set_count < a->call_count ? a->set_count : a->call_count;
    a->buffers_by_set = heap_zalloc(a->set_count, sizeof *a->buffers_by_set);
    for (size_t i = 0; i < a->set_count; i++) {
        struct call_buffers *b = &a->buffers_by_set[i];
        const struct {
            void **to;
            size_t elements;
            bool wanted;
        } kernel_array_of_rows[] = {
            {&b->q, queries, true},   {&b->k, keys, true},          {&b->v, keys, true},
            {&b->o, queries, true},   {&b->d_o, queries, backward}, {&b->dq, queries, backward},
            {&b->dk, keys, backward}, {&b->dv, keys, backward},
        };
        for (size_t k = 0; k < ARRAY_LEN(kernel_array_of_rows); k++)
            if (kernel_array_of_rows[k].wanted &&
                (*kernel_array_of_rows[k].to = new_filled_buffer(
                     DTYPE_BF16, kernel_array_of_rows[k].elements, 16 * i + k)) == NULL)
                return false;
        if ((b->stats = new_filled_buffer(DTYPE_F32, rows, 16 * i + 8)) == NULL)
            return false;
    }
    return cudaMalloc(&a->scratch, fused_scratch_bytes(a->fused) + 1) == cudaSuccess;
}

static void release_plan(struct direct_plan *a, const struct cudnn *dnn)
{
    for (size_t i = 0; a->buffers_by_set != NULL && i < a->set_count; i++) {
        const struct call_buffers *b = &a->buffers_by_set[i];
        void *all[] = {b->q, b->k, b->v, b->o, b->d_o, b->dq, b->dk, b->dv, b->stats};
        for (size_t k = 0; k < ARRAY_LEN(all); k++)
            cudaFree(all[k]);
    }
    cudaFree(a->scratch);
    fused_free(a->fused);
    for (size_t i = 0; i < a->call_count; i++) {
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
    free(a->buffers_by_set);
}

static bool open_plan(struct direct_plan *a, const struct cudnn *dnn)
{
    a->begin = heap_zalloc(a->call_count, sizeof(cudaEvent_t));
    a->end = heap_zalloc(a->call_count, sizeof(cudaEvent_t));
    for (size_t i = 0; i < a->call_count; i++)
        if (cudaEventCreateWithFlags(&a->begin[i], cudaEventDefault) != cudaSuccess ||
            cudaEventCreateWithFlags(&a->end[i], cudaEventDefault) != cudaSuccess)
            return false;
    return dnn->cudnnCreate(&a->handle) == CUDNN_STATUS_SUCCESS &&
           cudaStreamCreateWithFlags(&a->stream, cudaStreamNonBlocking) == cudaSuccess &&
           dnn->cudnnSetStream(a->handle, a->stream) == CUDNN_STATUS_SUCCESS;
}

/* Queues all calls one after the other, with an event before and after each. The host waits only after the last call,
 * so that the stream is as full as in the op's schedule. Returns NULL, or words that say what failed. */
static const char *time_all_calls(const struct direct_plan *a, bool backward)
{
    const char *words = NULL;
    for (size_t i = 0; i < a->call_count && words == NULL; i++) {
        const struct call_buffers *b = &a->buffers_by_set[i % a->set_count];
        cudaEventRecord(a->begin[i], a->stream);
        words = backward ? fused_backward(a->fused, a->handle, b->q, b->k, b->v, b->o, b->d_o,
                                          b->stats, b->dq, b->dk, b->dv, a->scratch, NULL)
                         : fused_forward(a->fused, a->handle, b->q, b->k, b->v, b->o, b->stats,
                                         a->scratch, NULL);
        cudaEventRecord(a->end[i], a->stream);
    }
    cudaError_t error = cudaStreamSynchronize(a->stream);
    return words != NULL || error == cudaSuccess ? words : cudaGetErrorString(error);
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static const char *find_median_s(const struct direct_plan *a, double *median_s)
{
    float *ms = heap_alloc(a->measured_call_count, sizeof *ms);
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < a->measured_call_count && error == cudaSuccess; i++) {
        size_t call = a->call_count - a->measured_call_count + i;
        error = cudaEventElapsedTime(&ms[i], a->begin[call], a->end[call]);
    }
    if (error == cudaSuccess) {
        qsort(ms, a->measured_call_count, sizeof *ms, compare_floats);
        *median_s = 1e-3 * ms[a->measured_call_count / 2];
    }
    free(ms);
    return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}

/* Returns the median seconds of the plan, called directly as often as the op was. If it fails,
 * returns 0 and sets *words to what failed. */
static double direct_call_s(const struct cudnn *dnn, const struct size *s, bool backward,
                            size_t repeats, const char **words)
{
    static char why[512];
    struct fused_shape shape = {
        .q = s->q,
        .kv = s->kv,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .dim = s->dim,
        .vdim = s->dim,
        .mask = s->mask == MASK_CAUSAL ? FUSED_MASK_CAUSAL_FROM_START : FUSED_MASK_NONE,
        .is_backward = backward,
    };
    struct direct_plan a = {.measured_call_count = repeats,
                            .call_count = microbench_warmup_runs((uint32_t)repeats) + repeats,
                            .fused = fused_new(dnn, &shape)};
    double median_s = 0;
    if (!open_plan(&a, dnn))
        *words = "CUDA or cuDNN could not be set up";
    else if (!fused_build(a.fused, a.handle, NULL, why, sizeof why))
        *words = why;
    else if (!allocate_sets(&a, s, backward))
        *words = "out of memory";
    else if ((*words = time_all_calls(&a, backward)) == NULL)
        *words = find_median_s(&a, &median_s);
    release_plan(&a, dnn);
    return median_s;
}

/* Measures attention as an op of a schedule. seconds: of work per round (microbench_options.round_s). */
static enum status measure_op(const struct size *s, bool backward, double seconds,
                              struct point *point, struct diag *diag)
{
    const struct microbench_case wanted = {
        POINT_WORK,
        ATTENTION_CUDNN,
        {.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
         .attention = {s->q, s->kv, s->heads, s->kv_heads, s->dim, s->mask, 0, 0}},
    };
    const struct microbench_options options = {
        .backend = "cuda", .dtype = DTYPE_BF16, .round_s = seconds};
    return microbench_measure_case(&wanted, &options, point, diag);
}

/* Returns the flops: 4 forward, 10 backward, for each dimension of each pair of a query and a key that it sees. */
static double flops_of(const struct size *s, bool backward)
{
    double pairs = (double)s->q * (double)s->kv * (s->mask == MASK_CAUSAL ? 0.5 : 1);
    return (backward ? 10 : 4) * pairs * (double)(s->heads * s->dim);
}

static void print_header_key(void *user, const char *key, const char *value)
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
    if (backend_find("cuda")->describe(print_header_key, NULL, &diag) == STATUS_OK)
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
            enum status status = measure_op(s, backward, is_small ? 1e-4 : 0, &point, &diag);
            if (status == STATUS_OK)
                plan_s = direct_call_s(dnn, s, backward, (size_t)point.repeats, &words);
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
