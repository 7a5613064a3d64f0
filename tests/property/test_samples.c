#include "tests/property/samples.h"

static void samples_stand_for_whole_lists(void)
{
    check_samples(30);
}

static const struct check_case cases[] = {
    {"samples stand for whole lists", samples_stand_for_whole_lists},
};
CHECK_MAIN("samples", cases)
