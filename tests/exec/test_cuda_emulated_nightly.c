/* All schedules that hold every legal pair of choices, by the CUDA backend on the emulated device. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/matrix.h"

static void every_pair_of_choices_computes_the_reference(void)
{
    const struct factors factors = factors_all();
    struct rows *rows = rows_covering_pairs(&factors, 1);
    check_rows(rows, false);
    rows_free(rows);
}

static const struct check_case cases[] = {
    {"every pair of choices computes the reference", every_pair_of_choices_computes_the_reference},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated", cases, ARRAY_LEN(cases), argc, argv);
}
