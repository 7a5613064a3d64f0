/* 1,600 broken schedules, each survivor listed. CHECK_SEED gives others. */
#include "tests/exec/mutation_check.h"

static void broken_schedules_are_found(void)
{
    struct check_random random = check_random_make();
    check_mutants(1600, random.state, true);
}

static const struct check_case cases[] = {
    {"broken schedules are found", broken_schedules_are_found},
};
CHECK_MAIN("mutations_nightly", cases)
