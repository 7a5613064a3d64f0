#include "tests/property/folding.h"

#include <stdlib.h>

/* WORLDS in the environment: how many configurations of each law; 500 in all. */
static int worlds(void)
{
    const char *asked = getenv("WORLDS");
    return asked != NULL ? (int)strtol(asked, NULL, 10) : 167;
}

static void folded_equals_unfolded(void)
{
    check_folded(worlds());
}

static void folded_stages_equal_unfolded(void)
{
    check_folded_stages(worlds());
}

static void layers_left_out_change_nothing(void)
{
    check_layers_left_out(worlds());
}

static const struct check_case cases[] = {
    {"folded equals unfolded", folded_equals_unfolded},
    {"folded stages equal unfolded", folded_stages_equal_unfolded},
    {"layers left out change nothing", layers_left_out_change_nothing},
};
CHECK_MAIN("folding", cases)
