/* tests/schedule/test_deal_rules.c: the rules that deal the tokens of a sequence to ranks: owners by hand, equal
 * shares, and tiles that cover every pair. */
#include "schedule/core_plan/coverage.h"
#include "schedule/core_plan/tile_rules.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the owners of all tokens, a digit each. */
static void write_owner_of_each_token(char *text, const struct token_deal *deal)
{
    for (uint32_t rank = 0; rank < deal->rank_count; rank++)
        for (uint32_t i = deal->first_run[rank]; i < deal->first_run[rank + 1]; i++)
            for (int64_t k = 0; k < deal->run[i].row_count; k++)
                text[deal->run[i].first_position + k] = (char)('0' + rank);
}

static struct token_deal *dealt(struct arena *arena, const char *rule, uint32_t ranks,
                                const struct document_list *documents,
                                struct attention_windows_of_layers windows)
{
    struct deal_choice choice;
    struct diag diag = {0};
    CHECK_INT(rule, deal_choice_parse(&choice, rule, &diag), STATUS_OK);
    diag_release(&diag);
    return deal_by_rule(arena, &choice, ranks, documents, windows);
}

/* In the row chunks:3, chunks of 3 tokens see 6, 6, 15, 6, 6 and 15 pairs: those of 15 go first,
 * one to each rank, then the others in turn. */
static void owners_by_hand(void)
{
    static const int64_t three[] = {8, 12, 16}, odd[] = {7, 12}, even[] = {3, 9, 12, 18},
                         sixteen[] = {16}, six[] = {6, 11, 12};
    static const struct {
        const char *rule;
        struct document_list documents;
        const char *owners;
        struct attention_windows_of_layers windows;
        uint32_t ranks;
    } rows[] = {
        /* rule, documents, owners, windows, ranks */
        {"contiguous", {.document_count = 3, .document_end = three}, "0000000011111111", {0, 0}, 2},
        {"striped", {.document_count = 3, .document_end = three}, "0101010101010101", {0, 0}, 2},
        {"zigzag", {.document_count = 3, .document_end = three}, "0000111111110000", {0, 0}, 2},
        /* slices of 2, 1 and 1 tokens */
        {"per-document",
         {.document_count = 3, .document_end = three},
         "0011110001100110",
         {0, 0},
         2},
        /* slices of 1 token; of the 3 and 1 tokens beyond them each rank has 2 */
        {"per-document", {.document_count = 2, .document_end = odd}, "011000101101", {0, 0}, 2},
        {"degree", {.document_count = 3, .document_end = three}, "0000000011111111", {0, 0}, 2},
        /* 7 tokens on both ranks, slices of 2, 2, 2 and 1; then 5, slices of 2, 1, 1 and 1, which fill them */
        {"degree", {.document_count = 2, .document_end = odd}, "001111000110", {0, 0}, 2},
        /* of 3 ranks two have the first 6 tokens; no set has room for 5 more, so they go where most room is */
        {"degree", {.document_count = 3, .document_end = six}, "001110222201", {0, 0}, 3},
        /* on all of 3 ranks, in slices of 3 and of 2 tokens */
        {"degree",
         {.document_count = 1, .document_end = &even[3]},
         "000111222222111000",
         {0, 0},
         3},
        {"degree", {.document_count = 1, .document_end = odd + 1}, "001122221100", {0, 0}, 3},
        {"chunks:8", {.document_count = 3, .document_end = three}, "0000000011111111", {0, 0}, 2},
        {"chunks:3", {.document_count = 4, .document_end = even}, "000111000000111111", {0, 0}, 2},
        /* four chunks of 4 tokens: 10, 26, 42 and 58 pairs; with a window of 2 keys 7, 8, 8 and 8; half and half 8.5 to
         * 33 */
        {"chunks:4", {.document_count = 1, .document_end = sixteen}, "0000111111110000", {0, 0}, 2},
        {"chunks:4", {.document_count = 1, .document_end = sixteen}, "1111000011110000", {2, 1}, 2},
        {"chunks:4",
         {.document_count = 1, .document_end = sixteen},
         "0000111111110000",
         {2, 0.5},
         2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        char text[20] = {0};
        write_owner_of_each_token(
            text, dealt(&arena, rows[i].rule, rows[i].ranks, &rows[i].documents, rows[i].windows));
        CHECK_TEXT(rows[i].rule, text, rows[i].owners);
        arena_release(&arena);
    }
}

/* Over random documents every rank owns equally many tokens, and shares and deal say the same. */
static void rules_deal_equally(void)
{
    static const char *const rules[] = {"contiguous", "striped",  "zigzag", "per-document",
                                        "chunks:1",   "chunks:5", "degree"};
    const struct attention_windows_of_layers none = {0, 0};
    struct check_random random = check_random_make();
    for (int trial = 0; trial < 200; trial++) {
        const char *rule = rules[check_random_i64(&random, 0, ARRAY_LEN(rules) - 1)];
        uint32_t ranks = (uint32_t)check_random_i64(&random, 1, 7), count = 0, shares;
        int64_t tokens = 10 * (int64_t)ranks * check_random_i64(&random, 1, 12), end[1000], at = 0;
        struct arena arena = {0};
        while (at < tokens)
            end[count++] = at += check_random_i64(&random, 1, tokens - at);
        const struct document_list documents = {.document_count = count, .document_end = end};
        struct token_deal *deal = dealt(&arena, rule, ranks, &documents, none);
        struct token_share *share = deal_shares_of_runs(deal, &shares);
        CHECK(rule, deal_is_even(deal) && deal_rows_of_rank(deal, 0) == tokens / ranks);
        CHECK(rule, deal_is_equal(deal, deal_make_from_shares(&arena, ranks, share, shares)));
        free(share);
        arena_release(&arena);
    }
}

/* The tiles of each rule hold every visible pair once, over random documents and windows. Rules that move queries leave
 * no rank with much more than the mean where slices may be as short as a token. */
static void tiles_cover_every_pair(void)
{
    static const struct {
        const char *rule;
        /* limit of the fullest rank's pairs over the mean, where pairs are many; 0: none */
        double most;
    } rules[] = {{"zigzag-ring", 0}, {"gather", 0},    {"token-ring", 0},
                 {"burst", 0},       {"move:1", 1.05}, {"double-ring:2", 0},
                 {"move:7", 0},      {"blocks:5", 0},  {"blocks:1", 1.25}};
    const struct row_bytes bytes = {4096, 8192, 8320};
    struct check_random random = check_random_make();
    size_t compared[ARRAY_LEN(rules)] = {0};
    for (size_t trial = 0; trial < 300; trial++) {
        const size_t i = trial % ARRAY_LEN(rules);
        const uint32_t ranks = 2 * (uint32_t)check_random_i64(&random, 1, 3);
        int64_t tokens = 20 * (int64_t)ranks * check_random_i64(&random, 1, 12), end[2000], at = 0;
        struct attention_windows_of_layers windows = {0};
        struct arena arena = {0};
        struct core_plan plan = {0};
        struct coverage_rank_load load[6];
        struct deal_choice choice;
        struct diag diag = {0};
        uint32_t count = 0;
        if (check_random_i64(&random, 0, 2) == 0)
            windows = (struct attention_windows_of_layers){check_random_i64(&random, 1, tokens), 1};
        while (at < tokens)
            end[count++] = at += check_random_i64(&random, 1, tokens - at);
        struct document_list documents = {.document_count = count, .document_end = end};
        documents.deal = dealt(&arena, rules[i].rule, ranks, &documents, windows);
        CHECK_INT("rule", deal_choice_parse(&choice, rules[i].rule, &diag), STATUS_OK);
        CHECK(rules[i].rule, deal_choice_has_tiles(&choice));
        documents.tiles = tile_rules_plan(&arena, &choice, &documents, windows, &bytes);
        core_plan_add_sequence(&plan, &documents);
        plan.window_tokens = windows.window;
        CHECK_INT(rules[i].rule, core_plan_check(&plan, rules[i].rule, &diag), STATUS_OK);
        CHECK_TEXT(rules[i].rule, diag.text != NULL ? diag.text : "", "");
        coverage_find_rank_loads(&plan, 0, load);
        double pairs = 0, most = 0;
        for (uint32_t r = 0; r < ranks; r++) {
            pairs += load[r].visible_pairs;
            most = load[r].visible_pairs > most ? load[r].visible_pairs : most;
        }
        /* with fewer pairs one query may be more than what a rank lacks */
        if (rules[i].most > 0 && pairs / ranks > 50 * (double)tokens) {
            CHECK(rules[i].rule, most * ranks / pairs < rules[i].most);
            compared[i]++;
        }
        diag_release(&diag);
        core_plan_release(&plan);
        arena_release(&arena);
    }
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        CHECK(rules[i].rule, rules[i].most == 0 || compared[i] > 0);
}

static void unknown_rules_are_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"zigzags", "--core-plan: error: 'zigzags' is no rule, and no file of a plan: contiguous, "
                    "striped, zigzag, per-document, chunks[:NUMBER], degree, zigzag-ring, "
                    "double-ring[:NUMBER], "
                    "gather, token-ring, burst, move[:NUMBER] or blocks[:NUMBER] would do\n"},
        {"zigzag:4", "--core-plan: error: rule 'zigzag' takes no parameter, but has '4'\n"},
        {"move:x", "--core-plan: error: 'x' is not a number of tokens of a slice, such as "
                   "move:2048\n"},
        {"double-ring:0", "--core-plan: error: '0' is not a number of ranks of an inner ring, such "
                          "as double-ring:8\n"},
        {"chunks:", "--core-plan: error: '' is not a number of tokens of a chunk, such as "
                    "chunks:2048\n"},
        {"chunks:0", "--core-plan: error: '0' is not a number of tokens of a chunk, such as "
                     "chunks:2048\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct deal_choice choice;
        struct diag diag = {0};
        CHECK_INT(rows[i].text, deal_choice_parse(&choice, rows[i].text, &diag), STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].text, diag.text, rows[i].message);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"owners by hand", owners_by_hand},
    {"rules deal equally", rules_deal_equally},
    {"tiles cover every pair", tiles_cover_every_pair},
    {"rules that are none", unknown_rules_are_refused},
};
CHECK_MAIN("deal rules", cases)
