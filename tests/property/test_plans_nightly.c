#include "tests/property/plans.h"

/* PLANS in the environment is the number of requests. */
static void nothing_is_better_than_a_plan(void)
{
    const char *worlds = getenv("PLANS");
    check_plans(worlds != NULL ? (int)strtol(worlds, NULL, 10) : 60, 12, false);
}

static const struct check_case cases[] = {
    {"nothing is better than a plan", nothing_is_better_than_a_plan},
};
CHECK_MAIN("plans", cases)
