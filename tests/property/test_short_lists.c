/* tests/property/test_short_lists.c: a short list of ops stands for the whole list, over a few random schedules. */
#include "tests/property/short_lists.h"

static void short_lists_represent_whole_lists(void)
{
    check_short_lists(30);
}

static const struct check_case cases[] = {
    {"samples stand for whole lists", short_lists_represent_whole_lists},
};
CHECK_MAIN("samples", cases)
