/* tests/cli/test_orderings_nightly.c: the order of SPPO's variants in Table 4 of its paper, for all models and sequence
 * lengths. */
#include "tests/cli/orderings.h"

static void all_lengths_of_7b_13b_and_65b_are_ordered_as_documented(void)
{
    for (size_t i = 0; i < ARRAY_LEN(shares); i++)
        check_orderings(i);
}

static const struct check_case cases[] = {
    {"all lengths of 7B, 13B and 65B are ordered as documented",
     all_lengths_of_7b_13b_and_65b_are_ordered_as_documented},
};
CHECK_MAIN("orderings_nightly", cases)
