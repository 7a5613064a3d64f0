/* tests/cli/test_orderings.c: the order of SPPO's variants in Table 4 of its paper, for the shortest sequence of the 7B
 * model. */
#include "tests/cli/orderings.h"

static void the_shortest_length_of_7b_is_ordered_as_published(void)
{
    check_orderings(0);
}

static const struct check_case cases[] = {
    {"the shortest length of 7B is ordered as published",
     the_shortest_length_of_7b_is_ordered_as_published},
};
CHECK_MAIN("orderings", cases)
