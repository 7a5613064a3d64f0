/* tests/exec/test_mutations.c: the verifier or the numeric check finds broken schedules, three of each kind; every
 * third day has the same ones. test_mutations_nightly.c makes 2,300 of them. */
#include "tests/exec/mutation_check.h"

static void broken_schedules_are_found(void)
{
    check_mutants(3 * MUTATIONS, 1 + check_day_number_of_sample() % 3, false);
}

static const struct check_case cases[] = {
    {"broken schedules are found", broken_schedules_are_found},
};
CHECK_MAIN("mutations", cases)
