#include "schedule/core_plan/deal_rules.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the owners of all tokens, a digit each. */
static void put_owners(char *text, const struct token_deal *deal)
{
    for (uint32_t rank = 0; rank < deal->ranks; rank++)
        for (uint32_t i = deal->first[rank]; i < deal->first[rank + 1]; i++)
            for (int64_t k = 0; k < deal->run[i].rows; k++)
                text[deal->run[i].begin + k] = (char)('0' + rank);
}

static struct token_deal *dealt(struct arena *arena, const char *rule, uint32_t ranks,
                                const struct document_list *documents, struct deal_windows windows)
{
    struct deal_choice choice;
    struct diag diag = {0};
    CHECK_INT(rule, deal_choice_parse(&choice, rule, &diag), STATUS_OK);
    diag_release(&diag);
    return deal_by_rule(arena, &choice, ranks, documents, windows);
}

/* The last row's chunks of 3 tokens see 6, 6, 15, 6, 6 and 15 pairs: those of 15 go first, one to each rank, then the others in
 * turn. */
static void owners_by_hand(void)
{
    static const int64_t three[] = {8, 12, 16}, odd[] = {7, 12}, even[] = {3, 9, 12, 18},
                         sixteen[] = {16};
    static const struct {
        const char *rule;
        struct document_list documents;
        const char *owners;
        struct deal_windows windows;
    } rows[] = {
        {"contiguous", {.count = 3, .end = three}, "0000000011111111", {0, 0}},
        {"striped", {.count = 3, .end = three}, "0101010101010101", {0, 0}},
        {"zigzag", {.count = 3, .end = three}, "0000111111110000", {0, 0}},
        /* slices of 2, 1 and 1 tokens */
        {"per-document", {.count = 3, .end = three}, "0011110001100110", {0, 0}},
        /* slices of 1 token; of the 3 and 1 tokens beyond them each rank has 2 */
        {"per-document", {.count = 2, .end = odd}, "011000101101", {0, 0}},
        {"chunks:8", {.count = 3, .end = three}, "0000000011111111", {0, 0}},
        {"chunks:3", {.count = 4, .end = even}, "000111000000111111", {0, 0}},
        /* four chunks of 4 tokens: 10, 26, 42 and 58 pairs; with a window of 2 keys 7, 8, 8 and 8; half and half 8.5 to 33 */
        {"chunks:4", {.count = 1, .end = sixteen}, "0000111111110000", {0, 0}},
        {"chunks:4", {.count = 1, .end = sixteen}, "1111000011110000", {2, 1}},
        {"chunks:4", {.count = 1, .end = sixteen}, "0000111111110000", {2, 0.5}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        char text[20] = {0};
        put_owners(text, dealt(&arena, rows[i].rule, 2, &rows[i].documents, rows[i].windows));
        CHECK_TEXT(rows[i].rule, text, rows[i].owners);
        arena_release(&arena);
    }
}

/* Over random documents every rank owns equally many tokens, and shares and deal say the same. */
static void rules_deal_equally(void)
{
    static const char *const rules[] = {"contiguous",   "striped",  "zigzag",
                                        "per-document", "chunks:1", "chunks:5"};
    const struct deal_windows none = {0, 0};
    struct check_random random = check_random_make();
    for (int trial = 0; trial < 200; trial++) {
        const char *rule = rules[check_random_i64(&random, 0, ARRAY_LEN(rules) - 1)];
        uint32_t ranks = (uint32_t)check_random_i64(&random, 1, 7), count = 0, shares;
        int64_t tokens = 10 * (int64_t)ranks * check_random_i64(&random, 1, 12), end[1000], at = 0;
        struct arena arena = {0};
        while (at < tokens)
            end[count++] = at += check_random_i64(&random, 1, tokens - at);
        const struct document_list documents = {.count = count, .end = end};
        struct token_deal *deal = dealt(&arena, rule, ranks, &documents, none);
        struct token_share *share = deal_shares(deal, &shares);
        CHECK(rule, deal_is_even(deal) && deal_rows(deal, 0) == tokens / ranks);
        CHECK(rule, deal_is_equal(deal, deal_make(&arena, ranks, share, shares)));
        free(share);
        arena_release(&arena);
    }
}

static void rules_that_are_none(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"zigzags", "--core-plan: error: 'zigzags' is no rule, and no file of a plan: contiguous, "
                    "striped, zigzag, per-document or chunks:TOKENS would do\n"},
        {"zigzag:4", "--core-plan: error: rule 'zigzag' takes no parameter, but has '4'\n"},
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
    {"rules that are none", rules_that_are_none},
};
CHECK_MAIN("deal rules", cases)
