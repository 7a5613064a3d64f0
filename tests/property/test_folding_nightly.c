/* tests/property/test_folding_nightly.c: folded predictions, predictions of replicas and short lists equal the whole
 * ones, over many random schedules. */
#include "tests/property/folding.h"
#include "tests/property/short_lists.h"

#include <stdlib.h>

/* Returns how many configurations check each law: WORLDS of the environment, or 150. */
static int configuration_count(void)
{
    const char *asked = getenv("WORLDS");
    return asked != NULL ? (int)strtol(asked, NULL, 10) : 150;
}

static void folded_equals_unfolded(void)
{
    check_folded_predictions(configuration_count(), world_make);
}

static void folded_stages_equal_unfolded(void)
{
    check_folded_predictions(configuration_count(), world_make_with_stages);
}

static void replicas_equal_all_ranks(void)
{
    int all = configuration_count(),
        replicated_worlds = check_folded_predictions(all, world_make_with_replicas);
    CHECK("half of them are planned in part", 2 * replicated_worlds >= all);
}

static void short_lists_represent_whole_lists(void)
{
    check_short_lists(getenv("WORLDS") != NULL ? configuration_count() : 500);
}

static const struct check_case cases[] = {
    {"folded equals unfolded", folded_equals_unfolded},
    {"folded stages equal unfolded", folded_stages_equal_unfolded},
    {"replicas equal all ranks", replicas_equal_all_ranks},
    {"samples stand for whole lists", short_lists_represent_whole_lists},
};
CHECK_MAIN("folding", cases)
