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
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&thief->stream, cudaStreamNonBlocking);
    return error == cudaSuccess ? STATUS_OK : cuda_refused(diag, "cudaHostAlloc", error);
}

void thief_begin(struct cuda *cuda)
{
    struct thief *thief = &cuda->thief;
    if (thief->stream == NULL)
        return;
    *(volatile int32_t *)thief->stop = 0;
    cudaError_t error = (cudaError_t)cuda_thief((char *)thief->memory + BYTES, thief->memory, BYTES,
                                                (int)cuda->run->options->rob_sms, LONGEST_NS,
                                                thief->stop, thief->stream);
    if (error != cudaSuccess)
        cuda_failed(&cuda->rank[cuda->run->first], IR_NONE, "launching the kernel beside the step",
                    error);
}

void thief_end(struct cuda *cuda)
{
    if (cuda->thief.stream == NULL)
        return;
    *(volatile int32_t *)cuda->thief.stop = 1;
    cudaStreamSynchronize(cuda->thief.stream);
}

void thief_close(struct cuda *cuda)
{
    struct thief *thief = &cuda->thief;
    thief_end(cuda);
    if (thief->stream != NULL)
        cudaStreamDestroy(thief->stream);
    if (thief->stop != NULL)
        cudaFreeHost(thief->stop);
    if (thief->memory != NULL)
        cudaFree(thief->memory);
}
