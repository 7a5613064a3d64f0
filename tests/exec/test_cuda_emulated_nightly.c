/* tests/exec/test_cuda_emulated_nightly.c: runs all schedules that cover the legal pairs of choices (matrix.h), and
 * mutants, by the CUDA backend on the emulated device. There is no shadow memory, so only NaNs reveal what is read too
 * early. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/matrix.h"
#include "tests/exec/mutation_check.h"

static void every_pair_of_choices_computes_the_reference(void)
{
    const struct factor_level_counts factors = factors_with_all_levels();
    struct matrix_rows *rows = rows_covering_pairs(&factors, 1);
    check_rows(rows, true, 0);
    rows_free(rows);
}

static void broken_schedules_are_found(void)
{
    check_mutants(200, 1, false);
}

static const struct check_case cases[] = {
    {"every pair of choices computes the reference", every_pair_of_choices_computes_the_reference},
    {"broken schedules are found", broken_schedules_are_found},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = mutation_backend = "cuda";
    return check_run("cuda emulated", cases, ARRAY_LEN(cases), argc, argv);
}
