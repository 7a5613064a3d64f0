/* tests/exec/test_cuda_emulated_plans.c: the cases of core_plan_cases.h by the CUDA backend on the emulated device:
 * rows that ranks send, hold and get back several times. */
#include "tests/exec/core_plan_cases.h"
#include "tests/exec/emulator/emulator.h"

static const struct check_case cases[] = {
    {"plans by hand", plans_receive_rows_counted_by_hand},
    {"random plans compute the reference", random_plans_compute_the_reference},
    {"changed plans compute the reference", changed_plans_compute_the_reference},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated plans", cases, ARRAY_LEN(cases), argc, argv);
}
