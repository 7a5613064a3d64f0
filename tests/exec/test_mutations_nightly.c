/* tests/exec/test_mutations_nightly.c: 2,300 broken schedules in f32 and 690 in bf16, where the check allows
 * for rounding. Each survivor and each equivalent mutant is listed. CHECK_SEED changes the schedules. */
#include "tests/exec/mutation_check.h"

static void broken_schedules_are_found(void)
{
    struct check_random random = check_random_make();
    check_mutants(2300, random.state, true);
}

static void broken_schedules_are_found_in_bf16(void)
{
    struct check_random random = check_random_make();
    mutation_dtype = DTYPE_BF16;
    check_mutants(690, random.state, true);
    mutation_dtype = DTYPE_F32;
}

static const struct check_case cases[] = {
    {"broken schedules are found", broken_schedules_are_found},
    {"broken schedules are found in bf16", broken_schedules_are_found_in_bf16},
};
CHECK_MAIN("mutations_nightly", cases)
