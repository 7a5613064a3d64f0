/* tests/cli/orderings.h: checks, in the configurations of Table 4 of SPPO's paper, the order of SPPO's variants by
 * predicted speed, which of them fit into memory, and how many subsequences stages share. docs/accuracy/sppo.md has
 * the figures. Included by test files only. */
#ifndef TESTS_CLI_ORDERINGS_H
#define TESTS_CLI_ORDERINGS_H

#include "predict/validate/sppo_row.h"
#include "tests/check.h"

#include <stdio.h>

/* The numbers of first and last subsequences that stages share, by configuration: as many as are predicted to be
 * faster and to fit. */
static const struct shared_units shares[15] = {
    {1, 2}, {1, 3}, {1, 0}, {1, 0}, {1, 0}, /* 7B: 512, 640, 768, 896, 1024K */
    {5, 7}, {2, 0}, {2, 0}, {2, 0}, {2, 0}, /* 13B: 512, 640, 768, 1024, 1280K */
    {2, 0}, {2, 0}, {2, 0}, {2, 0}, {0, 0}, /* 65B: 512, 600, 640, 768, 1024K */
};
/* By configuration, true if the step fits into device memory when no activations are offloaded. */
static const bool none_fits[15] = {[5] = true};

static inline void check_orderings(size_t i)
{
    struct sppo_cell cell;
    struct sppo_time t[SPPO_SYSTEM_COUNT] = {0};
    char label[96];
    if (!CHECK("a cell of Table 4", sppo_cell(&cell, i)))
        return;
    snprintf(label, sizeof label, "%s %lldK", cell.layout->model, (long long)cell.tokens / 1024);
    for (int system = 0; system < SPPO_SYSTEM_COUNT; system++) {
        struct diag diag = {0};
        CHECK_INT(label, sppo_time(&t[system], &cell, (enum sppo_system)system, &diag), STATUS_OK);
        diag_release(&diag);
    }
    const struct shared_units *shared = &t[SPPO_MULTIPLEXED].shared;
    printf("%s:", label);
    for (int system = 0; system < SPPO_SYSTEM_COUNT; system++)
        printf(" %s %.3f s %.1f GiB,", sppo_system_names[system], t[system].step_s,
               (double)t[system].verdict.needed[LIMIT_DEVICE] / (1 << 30));
    printf(" shared %u first, %u last\n", shared->first, shared->last);
    CHECK(label, t[SPPO_NONE].step_s < t[SPPO_FULL].step_s);
    CHECK(label, t[SPPO_ADAPTIVE].step_s <= t[SPPO_FULL].step_s);
    CHECK(label, t[SPPO_MULTIPLEXED].step_s <= t[SPPO_ADAPTIVE].step_s);
    CHECK_INT(label, t[SPPO_NONE].verdict.fits, none_fits[i]);
    CHECK_INT(label, t[SPPO_ADAPTIVE].verdict.fits, true);
    CHECK_INT(label, t[SPPO_MULTIPLEXED].verdict.fits, true);
    CHECK_INT(label, shared->first, shares[i].first);
    CHECK_INT(label, shared->last, shares[i].last);
}

#endif
