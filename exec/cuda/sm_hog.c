/* A kernel that runs during every measured step. It occupies multiprocessors and moves memory, as a library's
 * communication between GPUs does, so it can stand for such communication in measurements on one GPU
 * (options.hogged_sm_count). */
#include "exec/cuda/cuda.h"
#include "exec/cuda/kernels.h"

enum { COPIED_BYTES = 64 << 20 };

/* The longest time for which the kernel runs, also if the step hangs. */
static const uint64_t LONGEST_NS = 20000000000u;

enum status sm_hog_open(struct cuda *cuda, struct diag *diag)
{
    struct sm_hog *sm_hog = &cuda->sm_hog;
    if (cuda->run->options->hogged_sm_count == 0)
        return STATUS_OK;
    cudaError_t error = cudaMalloc(&sm_hog->memory, 2 * (size_t)COPIED_BYTES);
    if (error != cudaSuccess)
        return cuda_report_error(diag, "cudaMalloc (of the kernel beside the step)", error);
    error = cudaHostAlloc((void **)&sm_hog->stop_flag, sizeof *sm_hog->stop_flag,
                          cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess)
        return cuda_report_error(diag, "cudaHostAlloc (of the kernel beside the step)", error);
    error = cudaStreamCreateWithFlags(&sm_hog->stream, cudaStreamNonBlocking);
    return error == cudaSuccess
               ? STATUS_OK
               : cuda_report_error(
                     diag, "cudaStreamCreateWithFlags (of the kernel beside the step)", error);
}

static void set_stop_flag(struct sm_hog *sm_hog, int32_t stop)
{
    __atomic_store_n(sm_hog->stop_flag, stop, __ATOMIC_RELEASE);
}

void sm_hog_begin(struct cuda *cuda)
{
    struct sm_hog *sm_hog = &cuda->sm_hog;
    sm_hog->is_running =
        sm_hog->stream != NULL && cuda->run->step_number >= cuda->run->options->warmup_steps;
    if (!sm_hog->is_running)
        return;
    set_stop_flag(sm_hog, 0);
    cudaError_t error = (cudaError_t)cuda_sm_hog(
        (char *)sm_hog->memory + COPIED_BYTES, sm_hog->memory, COPIED_BYTES,
        (int)cuda->run->options->hogged_sm_count, LONGEST_NS, sm_hog->stop_flag, sm_hog->stream);
    if (error != cudaSuccess)
        cuda_record_failure(&cuda->rank_states[cuda->run->first_rank], IR_NONE,
                            "launching the kernel beside the step", error);
}

void sm_hog_end(struct cuda *cuda)
{
    struct sm_hog *sm_hog = &cuda->sm_hog;
    if (!sm_hog->is_running)
        return;
    cudaError_t query_result = cudaStreamQuery(sm_hog->stream);
    set_stop_flag(sm_hog, 1);
    cudaError_t error = cudaStreamSynchronize(sm_hog->stream);
    if (error != cudaSuccess)
        cuda_record_failure(&cuda->rank_states[cuda->run->first_rank], IR_NONE,
                            "cudaStreamSynchronize (of the kernel beside the step)", error);
    else if (query_result != cudaErrorNotReady)
        run_record_system_failure(
            cuda->run,
            "the kernel beside the step ended before it did: it keeps the multiprocessors "
            "for %.0f s at most",
            1e-9 * (double)LONGEST_NS);
}

void sm_hog_close(struct cuda *cuda)
{
    struct sm_hog *sm_hog = &cuda->sm_hog;
    if (sm_hog->stream != NULL) {
        set_stop_flag(sm_hog, 1);
        cudaStreamSynchronize(sm_hog->stream); /* its kernel reads the memory that is freed below */
        cudaStreamDestroy(sm_hog->stream);
    }
    if (sm_hog->stop_flag != NULL)
        cudaFreeHost(sm_hog->stop_flag);
    if (sm_hog->memory != NULL)
        cudaFree(sm_hog->memory);
}
