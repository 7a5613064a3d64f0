/* tests/cli/orderings.h: what SPPO's paper says is faster than what, in the configurations of its Table 4, as
 * far as it is predicted. docs/accuracy.md, "SPPO", says why. Included by test files only. */
#ifndef TESTS_CLI_ORDERINGS_H
#define TESTS_CLI_ORDERINGS_H

#include "cli/sppo_row.h"
#include "tests/check.h"

#include <stdio.h>

/* Cells where stages that share subsequences take longer than the same stages alone. */
static const bool multiplexing_loses[15] = {
    false, false, false, false, false, /* 7B: 512, 640, 768, 896, 1024K */
    false, false, false, false, true,  /* 13B: 512, 640, 768, 1024, 1280K */
    false, true,  true,  true,  true,  /* 65B: 512, 600, 640, 768, 1024K */
};

static inline void check_orderings(size_t i)
{
    struct sppo_cell cell;
    double s[SPPO_SYSTEM_COUNT] = {0};
    char label[96];
    if (!CHECK("a cell of Table 4", sppo_cell(&cell, i)))
        return;
    snprintf(label, sizeof label, "%s %lldK", cell.model, (long long)cell.tokens / 1024);
    for (int system = 0; system < SPPO_SYSTEM_COUNT; system++) {
        struct diag diag = {0};
        struct verdict verdict;
        CHECK_INT(label, sppo_time(&s[system], &verdict, i, (enum sppo_system)system, &diag),
                  STATUS_OK);
        diag_release(&diag);
    }
    printf("%s: none %.3f, full %.3f, adaptive %.3f, multiplexed %.3f s\n", label, s[SPPO_NONE],
           s[SPPO_FULL], s[SPPO_ADAPTIVE], s[SPPO_MULTIPLEXED]);
    CHECK(label, s[SPPO_NONE] < s[SPPO_FULL]);
    CHECK(label, s[SPPO_ADAPTIVE] <= s[SPPO_FULL]);
    CHECK_INT(label, s[SPPO_MULTIPLEXED] > s[SPPO_ADAPTIVE], multiplexing_loses[i]);
}

#endif
