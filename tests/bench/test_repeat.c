/* tests/bench/test_repeat.c: a measurement is repeated until its median is stable, or its rounds or its 20 s are used
 * up; outliers do not count. */
#include "bench/repeat.h"
#include "tests/check.h"

/* Adds values while the repetition asks for another round; returns how many it added. */
static size_t add_values_while_asked(struct repeat *repeat, const double *value, size_t count)
{
    size_t added = 0;
    for (; added < count && repeat_needs_more(repeat); added++)
        repeat_add(repeat, value[added]);
    return added;
}

static void equal_times_end_after_five_rounds(void)
{
    static const double value[] = {2, 2, 2, 2, 2, 2};
    struct repeat repeat = {0};
    CHECK_INT("rounds", (int64_t)add_values_while_asked(&repeat, value, 6), 5);
    CHECK_CLOSE("median", repeat_median_s(&repeat), 2, 0);
    CHECK_CLOSE("spread", repeat_spread(&repeat), 0, 0);
}

/* Values of 1 and 1.1 s alternate: the interval of the median reaches from 1 to 1.1, so it is never
 * narrow enough to end early. */
static void varying_times_use_all_rounds(void)
{
    struct repeat repeat = {0};
    size_t rounds = 0;
    for (; repeat_needs_more(&repeat); rounds++)
        repeat_add(&repeat, rounds % 2 ? 1.1 : 1);
    /* no round begins once the rounds took 20 s: 19 rounds take 19.9 s, 20 rounds (10 of 1 s, 10 of
     * 1.1 s) take 21 s */
    CHECK_INT("rounds", (int64_t)rounds, 20);
    CHECK_CLOSE("median", repeat_median_s(&repeat), 1.05, 1e-12);
    CHECK_CLOSE("spread", repeat_spread(&repeat), 0.05 / 1.05, 1e-12);

    struct repeat short_rounds = {0};
    for (rounds = 0; repeat_needs_more(&short_rounds); rounds++)
        repeat_add(&short_rounds, rounds % 2 ? 0.11 : 0.1);
    CHECK_INT("short rounds", (int64_t)rounds, REPEAT_MAX);
}

/* The interval of the median of 16 values leaves out floor((16 - 1.96 x 4) / 2) = 4 at either
 * end. */
static void median_interval_ignores_outliers(void)
{
    struct repeat repeat = {0};
    for (int i = 0; i < 16; i++)
        repeat_add(&repeat, i == 3 ? 0.001 : i % 4 == 0 ? 1.5 - 0.025 * i : 0.1);
    CHECK_CLOSE("median", repeat_median_s(&repeat), 0.1, 1e-12);
    CHECK_CLOSE("spread", repeat_spread(&repeat), 0, 1e-12);
    CHECK("holds", !repeat_needs_more(&repeat));
    CHECK_CLOSE("in order", repeat.seconds[0], 0.001, 0);
    CHECK_CLOSE("in order", repeat.seconds[15], 1.5, 1e-12);
}

static void long_rounds_run_only_twice(void)
{
    static const double value[] = {10, 12, 14, 10};
    struct repeat repeat = {0};
    CHECK_INT("rounds", (int64_t)add_values_while_asked(&repeat, value, 4), 2);
    CHECK_CLOSE("median", repeat_median_s(&repeat), 11, 0);
    CHECK_CLOSE("spread", repeat_spread(&repeat), 1.0 / 11, 1e-12);
}

static const struct check_case cases[] = {
    {"equal values hold after five rounds", equal_times_end_after_five_rounds},
    {"values that differ go on to the last round", varying_times_use_all_rounds},
    {"outliers do not count", median_interval_ignores_outliers},
    {"long rounds are two", long_rounds_run_only_twice},
};
CHECK_MAIN("repeat", cases)
