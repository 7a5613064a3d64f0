#include "exec/cuda/cuda.h"

bool cuda_record_failure(struct cuda_rank *rank, uint32_t op, const char *call, cudaError_t error)
{
    run_record_failure(rank->run, rank->rank, op, "%s: %s", call, cudaGetErrorString(error));
    return false;
}

bool cuda_record_library_failure(const struct cuda_stream *stream, uint32_t op, const char *words)
{
    run_record_failure(stream->rank->run, stream->rank->rank, op, "%s", words);
    return false;
}

enum status cuda_report_error(struct diag *diag, const char *call, cudaError_t error)
{
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM, "%s",
                      cudaGetErrorString(error));
}
