/* A kernel beside every step that keeps multiprocessors and moves memory, as a library's communication
 * between GPUs does: options.rob_sms, for measurements on one GPU. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/kernels.h"

enum { BYTES = 64 << 20 };

/* A step that hangs must not keep it for ever. */
static const uint64_t LONGEST_NS = 20000000000u;

enum status thief_open(struct cuda *cuda, struct diag *diag)
{
    struct thief *thief = &cuda->thief;
    if (cuda->run->options->rob_sms == 0)
        return STATUS_OK;
    cudaError_t error = cudaMalloc(&thief->memory, 2 * (size_t)BYTES);
    if (error != cudaSuccess)
        return cuda_refused(diag, "cudaMalloc (of the kernel beside the step)", error);
    error = cudaHostAlloc((void **)&thief->stop, sizeof *thief->stop,
                          cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess)
        return cuda_refused(diag, "cudaHostAlloc (of the kernel beside the step)", error);
    error = cudaStreamCreateWithFlags(&thief->stream, cudaStreamNonBlocking);
    return error == cudaSuccess
               ? STATUS_OK
               : cuda_refused(diag, "cudaStreamCreateWithFlags (of the kernel beside the step)",
                              error);
}

static void tell(struct thief *thief, int32_t stop)
{
    __atomic_store_n(thief->stop, stop, __ATOMIC_RELEASE);
}

void thief_begin(struct cuda *cuda)
{
    struct thief *thief = &cuda->thief;
    if (thief->stream == NULL)
        return;
    tell(thief, 0);
    cudaError_t error = (cudaError_t)cuda_thief((char *)thief->memory + BYTES, thief->memory, BYTES,
                                                (int)cuda->run->options->rob_sms, LONGEST_NS,
                                                thief->stop, thief->stream);
    if (error != cudaSuccess)
        cuda_failed(&cuda->rank[cuda->run->first], IR_NONE, "launching the kernel beside the step",
                    error);
}

void thief_end(struct cuda *cuda)
{
    struct thief *thief = &cuda->thief;
    if (thief->stream == NULL)
        return;
    cudaError_t there = cudaStreamQuery(thief->stream);
    tell(thief, 1);
    cudaError_t error = cudaStreamSynchronize(thief->stream);
    if (error != cudaSuccess)
        cuda_failed(&cuda->rank[cuda->run->first], IR_NONE,
                    "cudaStreamSynchronize (of the kernel beside the step)", error);
    else if (there != cudaErrorNotReady)
        run_refused(cuda->run,
                    "the kernel beside the step ended before it did: it keeps the multiprocessors "
                    "for %.0f s at most",
                    1e-9 * (double)LONGEST_NS);
}

void thief_close(struct cuda *cuda)
{
    struct thief *thief = &cuda->thief;
    if (thief->stream != NULL) {
        tell(thief, 1);
        cudaStreamSynchronize(thief->stream); /* it reads what is freed below */
        cudaStreamDestroy(thief->stream);
    }
    if (thief->stop != NULL)
        cudaFreeHost(thief->stop);
    if (thief->memory != NULL)
        cudaFree(thief->memory);
}
