/* tests/exec/test_cuda_emulated_experts.c: the cases of expert_cases.h by the CUDA backend on the emulated device:
 * groups of products whose rows differ between ranks, and exchanges of unequal pieces. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/expert_cases.h"

static const struct check_case cases[] = {EXPERT_CASES};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated experts", cases, ARRAY_LEN(cases), argc, argv);
}
