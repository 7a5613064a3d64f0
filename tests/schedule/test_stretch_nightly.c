/* As test_stretch.c, over many more random worlds. CHECK_SEED gives others. */
#include "tests/schedule/stretch_cases.h"

static void stretched_is_emitted(void)
{
    check_deep_worlds(400);
}

static void long_lists_are_packed_by_periods(void)
{
    check_long_worlds(48);
}

static void stretched_stages_are_emitted(void)
{
    check_stage_worlds(150);
}

static void stretched_units_are_emitted(void)
{
    check_unit_worlds(192);
}

static const struct check_case cases[] = {
    {"stretched is emitted", stretched_is_emitted},
    {"long lists are packed by periods", long_lists_are_packed_by_periods},
    {"stretched stages are emitted", stretched_stages_are_emitted},
    {"stretched units are emitted", stretched_units_are_emitted},
};
CHECK_MAIN("stretch, many worlds", cases)
