/* tests/property/test_plans.c: no configuration is better than the plan that a search finds, over a few random
 * requests. */
#include "tests/property/plans.h"

static void nothing_is_better_than_a_plan(void)
{
    check_plans(4, 2, true);
}

static const struct check_case cases[] = {
    {"nothing is better than a plan", nothing_is_better_than_a_plan},
};
CHECK_MAIN("plans", cases)
