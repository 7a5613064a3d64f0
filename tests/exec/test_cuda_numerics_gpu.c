/* tests/exec/test_cuda_numerics_gpu.c: compares what the CUDA backend computes on a GPU with the CPU backend
 * (numerics_cases.h). */
#include "tests/exec/gpu.h"
#include "tests/exec/numerics_cases.h"

int main(int argc, char **argv)
{
    if (!gpu_is_there())
        return GPU_SKIPPED;
    numerics_scale = 8;
    return check_run("cuda numerics", numerics_cases, ARRAY_LEN(numerics_cases), argc, argv);
}
