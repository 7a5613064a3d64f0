/* tests/schedule/test_routing.c: experts get copies of tokens by their shares, within their
 * capacities, and the tokens of a rank reach as many ranks as they should. */
#include "schedule/ir/routing.h"
#include "tests/check.h"

#include <string.h>

enum { EXPERTS = 4, COPIES = 2 };

/* Worked by hand: copies are rounded by largest remainders, no expert gets more copies than there
 * are tokens, and what is left over goes to other experts, also to those without a share. */
static void counts_are_shares_rounded(void)
{
    static const struct {
        int64_t rows, share[EXPERTS], want[EXPERTS];
    } cases[] = {
        {10, {1, 1, 1, 1}, {5, 5, 5, 5}},
        {5, {1, 1, 1, 1}, {3, 3, 2, 2}},
        /* 20 x 1/10, 2/10, 3/10, 4/10 */
        {10, {1, 2, 3, 4}, {2, 4, 6, 8}},
        /* 14 copies x 1/9 = 1.56, 2/9 = 3.11 twice, 4/9 = 6.22 */
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
        routing_set_shares(&r, &arena, 0, cases[i].share);
        routing_rows_of_experts(&r, 0, cases[i].rows, count);
        for (int e = 0; e < EXPERTS; e++)
            CHECK_INT("copies", count[e], cases[i].want[e]);
        arena_release(&arena);
    }
}

/* Whatever the shares, all copies are dealt, and no token twice to one expert. */
static void all_token_copies_are_dealt(void)
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
        routing_set_shares(&r, &arena, 0, share);
        routing_rows_of_experts(&r, 0, rows, count);
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
    routing_set_shares(&r, &arena, 0, share[0]);
    routing_set_shares(&r, &arena, 1, share[1]);
    routing_set_shares(&r, &arena, 2, share[0]);
    CHECK_INT("equal lists are one", r.list_count, 2);
    CHECK_INT("layer 2", r.share_list_by_layer[2], 0);
    struct routing_fullest_rank fullest = routing_find_fullest_rank(&r, 0, 10, 2);
    CHECK_INT("rank", fullest.rank, 1);
    CHECK_INT("copies", fullest.copies, 14);
    fullest = routing_find_fullest_rank(&r, 1, 10, 2);
    CHECK_INT("rank", fullest.rank, 0);
    CHECK_INT("copies", fullest.copies, 16);
    fullest = routing_find_fullest_rank(&r, 0, 10, 4);
    CHECK_INT("median", fullest.median, 6);
    arena_release(&arena);
}

/* 64 tokens have 2 copies each, so the mean of four experts is 32, and one keeps at most ceil(32
 * factor). */
static void capacities_bound_what_experts_keep(void)
{
    static const struct {
        const char *label;
        struct expert_capacity capacity;
        int64_t shares[4], count[4];
    } rows[] = {
        /* label, capacity {factor in millionths, pads, rule of dropping}, shares, rows that experts keep */
        {"none", {0}, {1, 1, 1, 5}, {22, 21, 21, 64}},
        {"no limit is reached", {2000000, 0, 0}, {1, 1, 1, 5}, {22, 21, 21, 64}},
        {"the mean", {1000000, 0, 0}, {1, 1, 1, 5}, {22, 21, 21, 32}},
        {"less than all get, rounded up",
         {500001, 0, TOKEN_DROP_POSITION},
         {1, 1, 1, 1},
         {17, 17, 17, 17}},
        {"padded", {1250000, 1, 0}, {1, 1, 1, 5}, {40, 40, 40, 40}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        struct routing routing;
        int64_t count[4], dealt[4], first[4];
        routing_init(&routing, &arena, 4, 2, 1);
        routing_set_shares(&routing, &arena, 0, rows[i].shares);
        routing.capacity = rows[i].capacity;
        routing_rows_of_experts(&routing, 0, 64, count);
        routing_deal_copies(&routing, 0, 64, dealt, first);
        for (int e = 0; e < 4; e++) {
            int64_t kept = 0, least = rows[i].capacity.pads ? dealt[e] : rows[i].count[e];
            CHECK_INT(rows[i].label, count[e], rows[i].count[e]);
            for (int64_t k = 0; k < dealt[e]; k++)
                kept += routing_keeps_copy(&routing, 64, dealt[e], first[e], k);
            CHECK_INT(rows[i].label, kept, least < count[e] ? least : count[e]);
        }
        arena_release(&arena);
    }
}

/* By position the first tokens are kept, wherever the slots of an expert begin. */
static void the_last_tokens_are_dropped(void)
{
    const struct routing routing = {
        .expert_count = 4, .copies_per_token = 2, .capacity = {250000, 0, TOKEN_DROP_POSITION}};
    /* 10 tokens: an expert has room for 2 copies; its slots 7 to 13 are those of tokens 7, 8, 9, 0, 1, 2, 3 */
    static const bool kept[7] = {false, false, false, true, true, false, false};
    for (int64_t k = 0; k < 7; k++)
        CHECK_INT("slot", routing_keeps_copy(&routing, 10, 7, 7, k), kept[k]);
}

/* In the order of experts, dealing spreads the experts of a token over as many ranks as there are
 * copies; shuffled, over as many as chance does, on average over shares: 8 (1 - C(112, 8) / C(128,
 * 8)) = 5.339 of 8 ranks with 128 experts, and 64 (1 - C(252, 8) / C(256, 8)) = 7.676 of 64 with
 * 256. One shuffle serves all shares, and with 128 experts the tokens have only 16 sets of them, so
 * its own mean, 5.60, is 5 % higher. */
static void spread_tokens_reach_ranks_as_by_chance(void)
{
    static const struct {
        const char *label;
        uint32_t experts, ranks;
        double reached;
    } rows[] = {{"128 experts, 8 ranks", 128, 8, 5.339}, {"256 experts, 64 ranks", 256, 64, 7.676}};
    enum { TOKENS = 4096, DRAWS = 20 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double reached = 0, in_order = 0;
        int64_t tokens[64], share[256];
        for (int draw = 0; draw < DRAWS; draw++) {
            struct arena arena = {0};
            struct routing routing;
            /* nearly even: other sets of experts each time */
            for (uint32_t e = 0; e < rows[i].experts; e++)
                share[e] = 1000 + (e * (unsigned)(draw + 7)) % 97;
            routing_init(&routing, &arena, rows[i].experts, 8, 1);
            routing_set_shares(&routing, &arena, 0, share);
            for (int spread = 0; spread < 2; spread++) {
                routing.deals_experts_in_shuffled_order = spread;
                routing_count_arrived_tokens(&routing, 0, TOKENS, rows[i].ranks, tokens);
                for (uint32_t k = 0; k < rows[i].ranks; k++)
                    *(spread ? &reached : &in_order) += (double)tokens[k] / TOKENS / DRAWS;
            }
            arena_release(&arena);
        }
        CHECK(rows[i].label, in_order > 7.8);
        CHECK_CLOSE(rows[i].label, reached, rows[i].reached, 0.05);
    }
}

/* 10 tokens of 2 copies on each of 2 ranks. */
static void work_that_does_not_suit_the_shares_is_refused(void)
{
    static const struct {
        const char *label;
        struct work work;
        const char *want; /* NULL: it suits */
    } rows[] = {
        {"a permutation of own rows",
         {.kind = WORK_PERMUTE,
          .permute = {.rows = 10, .to = 20, .cols = 8, .dealt = 20, .route = 1}},
         NULL},
        {"weights",
         {.kind = WORK_PERMUTE,
          .permute = {.rows = 10, .to = 20, .cols = 8, .dealt = 20, .route = 1, .weights = 1}},
         "rows are multiplied by their weights before experts only where routing is even"},
        {"another list",
         {.kind = WORK_PERMUTE,
          .permute = {.rows = 10, .to = 20, .cols = 8, .dealt = 20, .route = 2}},
         "its route is no list of a routing line"},
        {"half a token",
         {.kind = WORK_PERMUTE,
          .permute = {.rows = 10, .to = 21, .cols = 8, .dealt = 21, .route = 1}},
         "its dealt copies are no multiple of those of a token"},
        {"fewer rows",
         {.kind = WORK_PERMUTE,
          .permute = {.rows = 9, .to = 20, .cols = 8, .dealt = 20, .route = 1}},
         "its rows are not those that a rank deals"},
        {"no room",
         {.kind = WORK_PERMUTE,
          .permute = {.rows = 10, .to = 19, .cols = 8, .dealt = 20, .route = 1}},
         "its rows are not those that a rank deals"},
        {"experts of all ranks",
         {.kind = WORK_MATMUL, .matmul = {.groups = 4, .dealt = 20, .route = 1}},
         "its groups are not the experts of a rank"},
        {"even routing",
         {.kind = WORK_PERMUTE, .permute = {.rows = 10, .to = 20, .cols = 8, .weights = 1}},
         NULL},
    };
    static const int64_t shares[EXPERTS] = {1, 2, 3, 4};
    struct arena arena = {0};
    struct routing r;
    routing_init(&r, &arena, EXPERTS, COPIES, 1);
    routing_set_shares(&r, &arena, 0, shares);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *why = routing_why_work_unfit(&r, &rows[i].work, 0, 2);
        CHECK_TEXT(rows[i].label, why != NULL ? why : "", rows[i].want != NULL ? rows[i].want : "");
    }
    arena_release(&arena);
}

static const struct check_case cases[] = {
    {"work that does not suit the shares is refused",
     work_that_does_not_suit_the_shares_is_refused},
    {"capacities bound what experts keep", capacities_bound_what_experts_keep},
    {"the last tokens are dropped", the_last_tokens_are_dropped},
    {"spread tokens reach ranks as by chance", spread_tokens_reach_ranks_as_by_chance},
    {"counts are shares rounded", counts_are_shares_rounded},
    {"all copies are dealt", all_token_copies_are_dealt},
    {"the fullest rank is found", the_fullest_rank_is_found},
};

CHECK_MAIN("routing", cases)
