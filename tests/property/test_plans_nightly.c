/* tests/property/test_plans_nightly.c: no configuration is better than the plan that a search
 * finds, over many random requests and some requests of real models. */
#include "tests/property/plans.h"

/* PLANS in the environment is the number of requests; 60 without it. */
static void nothing_is_better_than_a_plan(void)
{
    const char *worlds = getenv("PLANS");
    check_plans(worlds != NULL ? (int)strtol(worlds, NULL, 10) : 60, 12, false);
}

static const struct plan_case questions[] = {
    {"llama3-8b", NULL, "dgx-h100", NULL, 8, 131072, 0},
    {"llama3-8b", NULL, "dgx-h100", NULL, 8, 524288, 1},
    {"gpt-7b", NULL, "sppo-a100", "sppo", 16, 262144, 2},
    {"gpt-13b", "layers=8", "dgx-a100", NULL, 8, 65536, 8},
    {"llama3-70b", "layers=16", "dgx-h100", NULL, 16, 65536, 8},
    {"gpt-30b", "layers=24", "dgx-a100", "megatron-sp", 16, 32768, 16},
};

static void small_plans_equal_a_sweep(void)
{
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        check_plan_case(&questions[i]);
}

static const struct check_case cases[] = {
    {"nothing is better than a plan", nothing_is_better_than_a_plan},
    {"small questions are answered as by a sweep", small_plans_equal_a_sweep},
};
CHECK_MAIN("plans", cases)
