/* tests/schedule/test_routing.c: the copies that experts get of shares. */
#include "schedule/ir/routing.h"
#include "tests/check.h"

#include <string.h>

enum { EXPERTS = 4, COPIES = 2 };

/* Worked by hand: largest remainders, no expert more than all tokens, and what is over goes to experts without a
 * share. */
static void counts_are_shares_rounded(void)
{
    static const struct {
        int64_t rows, share[EXPERTS], want[EXPERTS];
    } cases[] = {
        {10, {1, 1, 1, 1}, {5, 5, 5, 5}},
        {5, {1, 1, 1, 1}, {3, 3, 2, 2}},
        /* 20 x 1/10, 2/10, 3/10, 4/10 */
        {10, {1, 2, 3, 4}, {2, 4, 6, 8}},
        /* 14 x 1/9 = 1.56, 2 x 3.11, 6.22 */
        {7, {1, 2, 2, 4}, {2, 3, 3, 6}},
        /* the last would get 16 of 20, but there are 10 tokens; the others share 10 by 1, 1, 2 */
        {10, {1, 1, 2, 16}, {3, 2, 5, 10}},
        {6, {0, 0, 7, 0}, {2, 2, 6, 2}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena arena = {0};
        struct routing r;
        int64_t count[EXPERTS];
        routing_init(&r, &arena, EXPERTS, COPIES, 1);
        routing_set(&r, &arena, 0, cases[i].share);
        routing_counts(&r, 0, cases[i].rows, count);
        for (int e = 0; e < EXPERTS; e++)
            CHECK_INT("copies", count[e], cases[i].want[e]);
        arena_release(&arena);
    }
}

/* Whatever the shares, all copies are dealt, and no token twice to one expert. */
static void all_copies_are_dealt(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 2000; i++) {
        struct arena arena = {0};
        struct routing r;
        int64_t share[13], count[13], sum = 0, positive = 0;
        const uint32_t experts = (uint32_t)check_random_i64(&random, 1, 13);
        const uint32_t copies = (uint32_t)check_random_i64(&random, 1, experts);
        const int64_t rows = check_random_i64(&random, 1, 5000);
        for (uint32_t e = 0; e < experts; e++)
            positive += share[e] = check_random_i64(&random, 0, 3) == 0
                                       ? 0
                                       : check_random_i64(&random, 0, ROUTING_SHARE_MAX);
        share[0] += positive == 0;
        routing_init(&r, &arena, experts, copies, 1);
        routing_set(&r, &arena, 0, share);
        routing_counts(&r, 0, rows, count);
        for (uint32_t e = 0; e < experts; e++) {
            CHECK("no expert has more copies than tokens", count[e] >= 0 && count[e] <= rows);
            sum += count[e];
        }
        CHECK_INT("all copies", sum, rows * copies);
        arena_release(&arena);
    }
}

static void the_fullest_rank_is_found(void)
{
    static const int64_t share[2][EXPERTS] = {{1, 2, 3, 4}, {4, 4, 1, 1}};
    struct arena arena = {0};
    struct routing r;
    routing_init(&r, &arena, EXPERTS, COPIES, 3);
    routing_set(&r, &arena, 0, share[0]);
    routing_set(&r, &arena, 1, share[1]);
    routing_set(&r, &arena, 2, share[0]);
    CHECK_INT("equal lists are one", r.list_count, 2);
    CHECK_INT("layer 2", r.list_of[2], 0);
    struct routing_fullest fullest = routing_find_fullest(&r, 0, 10, 2);
    CHECK_INT("rank", fullest.rank, 1);
    CHECK_INT("copies", fullest.copies, 14);
    fullest = routing_find_fullest(&r, 1, 10, 2);
    CHECK_INT("rank", fullest.rank, 0);
    CHECK_INT("copies", fullest.copies, 16);
    fullest = routing_find_fullest(&r, 0, 10, 4);
    CHECK_INT("median", fullest.median, 6);
    arena_release(&arena);
}

static const struct check_case cases[] = {
    {"counts are shares rounded", counts_are_shares_rounded},
    {"all copies are dealt", all_copies_are_dealt},
    {"the fullest rank is found", the_fullest_rank_is_found},
};

CHECK_MAIN("routing", cases)
