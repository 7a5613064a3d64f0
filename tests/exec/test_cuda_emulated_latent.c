/* tests/exec/test_cuda_emulated_latent.c: the cases of latent_cases.h by the CUDA backend on the emulated device:
 * heads of v of another size, rotated parts of heads, and products by a part of a weight. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/latent_cases.h"

static const struct check_case cases[] = {LATENT_CASES};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated latent", cases, ARRAY_LEN(cases), argc, argv);
}
