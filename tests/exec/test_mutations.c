/* Broken schedules are found: by the verifier, or by the numbers. 2,300 of them run at night. */
#include "tests/exec/mutation_check.h"

static void broken_schedules_are_found(void)
{
    check_mutants(230, 1, false);
}

static const struct check_case cases[] = {
    {"broken schedules are found", broken_schedules_are_found},
};
CHECK_MAIN("mutations", cases)
