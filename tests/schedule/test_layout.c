/* tests/schedule/test_layout.c: every layout of tokens over ranks that depends neither on documents nor on a deal is a
 * permutation, with the owners and order that its definition gives. */
#include "schedule/ir/layout.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* These return positions in layouts that do not depend on documents. */
static int64_t global_position_of(const struct token_layout *layout, uint32_t c, uint32_t h,
                                  int64_t p)
{
    return layout_position_of_own_row(layout, NULL, c, h, p);
}

static int64_t gathered(const struct token_layout *layout, uint32_t c, int64_t p)
{
    return layout_position_of_gathered_row(layout, NULL, c, p);
}

static const struct token_layout layouts[] = {
    /* kind, cp, hp, chunk_count, sequence_tokens, chunk_tokens, tokens_by_chunk */
    {LAYOUT_CONTIGUOUS, 1, 1, 1, 7, 0, NULL},
    {LAYOUT_CONTIGUOUS, 4, 2, 1, 64, 0, NULL},
    {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 3, 96, 0, NULL},
    {LAYOUT_FPDT_RANK_ORDINAL, 2, 4, 3, 96, 0, NULL},
    {LAYOUT_STRIPED, 4, 1, 1, 64, 0, NULL},
    {LAYOUT_STRIPED, 3, 2, 1, 60, 0, NULL},
    {LAYOUT_ZIGZAG, 4, 1, 1, 64, 0, NULL},
    {LAYOUT_ZIGZAG, 4, 3, 1, 120, 0, NULL},
    {LAYOUT_ZIGZAG_2D, 4, 1, 1, 64, 0, NULL},
    {LAYOUT_ZIGZAG_2D, 4, 2, 1, 64, 0, NULL},
    {LAYOUT_ZIGZAG_2D, 3, 4, 1, 96, 0, NULL},
    {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 3, 80, 32, NULL},
    {LAYOUT_FPDT_RANK_ORDINAL, 2, 2, 2, 40, 12, NULL},
    {LAYOUT_ZIGZAG_2D, 1, 8, 1, 64, 0, NULL},
};

static const char *label(const struct token_layout *layout)
{
    static char text[128];
    snprintf(text, sizeof text, "%s cp %u hp %u", layout_names[layout->kind], layout->cp,
             layout->hp);
    return text;
}

static void every_layout_is_a_permutation(void)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        const struct token_layout *layout = &layouts[i];
        struct diag diag = {0};
        CHECK(label(layout), layout_check(layout, (struct loc){0}, &diag) == STATUS_OK);
        char *owned = heap_zalloc((size_t)layout->sequence_tokens, 1);
        int64_t n = layout->sequence_tokens / layout->cp / layout->hp;
        for (uint32_t c = 0; c < layout->cp; c++)
            for (uint32_t h = 0; h < layout->hp; h++)
                for (int64_t p = 0; p < n; p++) {
                    int64_t token = global_position_of(layout, c, h, p);
                    if (CHECK(label(layout), token >= 0 && token < layout->sequence_tokens))
                        CHECK(label(layout), !owned[token]++);
                }
        free(owned);
        diag_release(&diag);
    }
}

/* After an all-to-all a head group has its members' parts (of every chunk) in index order;
 * layout_position_of_gathered_row() must return the same. */
static void the_head_group_gathers_what_a_context_rank_owns(void)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        const struct token_layout *layout = &layouts[i];
        int64_t n = layout->sequence_tokens / layout->cp / layout->hp,
                piece = n / layout->chunk_count;
        if (layout->chunk_tokens > 0)
            piece = layout->chunk_tokens / layout->hp;
        for (uint32_t c = 0; c < layout->cp; c++) {
            int64_t p = 0;
            for (int64_t chunk = 0; chunk < layout->chunk_count; chunk++)
                for (uint32_t h = 0; h < layout->hp; h++)
                    for (int64_t k = 0; k < piece && chunk * piece + k < n; k++, p++)
                        CHECK_INT(label(layout),
                                  global_position_of(layout, c, h, chunk * piece + k),
                                  gathered(layout, c, p));
        }
    }
}

/* Causal masks compare local positions, so gathered tokens must ascend within each slice of a zigzag pair, and the
 * second slice must come after the first. */
static void gathered_tokens_ascend_within_slices(void)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        const struct token_layout *layout = &layouts[i];
        for (uint32_t c = 0; c < layout->cp; c++)
            for (int64_t p = 1; p < layout->sequence_tokens / layout->cp; p++)
                CHECK(label(layout), gathered(layout, c, p) > gathered(layout, c, p - 1));
    }
}

static void rank_ordinal_chunks_are_the_sequence_in_order(void)
{
    const struct token_layout layout = {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 3, 96, 0, NULL};
    for (int64_t p = 0; p < layout.sequence_tokens; p++)
        CHECK_INT("gathered", gathered(&layout, 0, p), p);
    /* Piece i P + r is rank r's i-th chunk: pieces of 8 tokens, P = 4. */
    CHECK_INT("rank 2, chunk 1", global_position_of(&layout, 0, 2, 8), (1 * 4 + 2) * 8);
    /* 80 tokens in chunks of 32: the last one has pieces of 4. */
    const struct token_layout shorter = {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 3, 80, 32, NULL};
    CHECK_INT("rank 3, the last chunk", global_position_of(&shorter, 0, 3, 17), 64 + 3 * 4 + 1);
}

static void zigzag_gives_the_slice_pair(void)
{
    const struct token_layout layout = {LAYOUT_ZIGZAG, 4, 1, 1, 64, 0, NULL};
    for (uint32_t c = 0; c < 4; c++) {
        CHECK_INT("first slice", global_position_of(&layout, c, 0, 0), 8 * c);
        CHECK_INT("second slice", global_position_of(&layout, c, 0, 8), 8 * (7 - c));
    }
}

/* LoongTrain's formula (InternEvo): of 2 dsp slices, rank (h, c) takes k and k + 1. */
static void the_two_dimensional_zigzag_is_loongtrain_s(void)
{
    for (uint32_t hp = 2; hp <= 8; hp += 2)
        for (uint32_t cp = 1; cp <= 5; cp++) {
            int64_t dsp = (int64_t)hp * cp, slice = 3;
            const struct token_layout layout = {LAYOUT_ZIGZAG_2D, cp, hp,  1,
                                                2 * dsp * slice,  0,  NULL};
            for (int64_t c = 0; c < cp; c++)
                for (int64_t h = 0; h < hp; h++) {
                    int64_t k =
                        h < hp / 2 ? 2 * h + c * hp : 2 * dsp - 2 - 2 * (hp - 1 - h) - c * hp;
                    for (int64_t p = 0; p < 2 * slice; p++)
                        CHECK_INT(label(&layout),
                                  global_position_of(&layout, (uint32_t)c, (uint32_t)h, p),
                                  k * slice + p);
                }
        }
}

/* A layout is {kind, cp, hp, chunk_count, sequence_tokens, chunk_tokens, tokens_by_chunk}. */
static const struct {
    const char *label;
    struct token_layout layout;
    const char *message;
} wrong[] = {
    {"does not divide",
     {LAYOUT_CONTIGUOUS, 4, 2, 1, 100, 0, NULL},
     "f:3: error: a sequence of 100 tokens does not divide over layout contiguous, which needs a "
     "multiple of 8: 96 or 104 would do\n"},
    {"shorter than that",
     {LAYOUT_ZIGZAG, 4, 1, 1, 5, 0, NULL},
     "f:3: error: a sequence of 5 tokens does not divide over layout zigzag, which needs a "
     "multiple "
     "of 8: 8 would do\n"},
    {"odd head ranks",
     {LAYOUT_ZIGZAG_2D, 4, 3, 1, 96, 0, NULL},
     "f:3: error: layout zigzag_2d needs an even number of head ranks (or one), not 3: 2 or 4 "
     "would do\n"},
    {"chunks",
     {LAYOUT_STRIPED, 4, 1, 2, 96, 0, NULL},
     "f:3: error: layout striped has no chunks: only rank_ordinal does\n"},
    {"chunks of a size that is cut unevenly",
     {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 3, 80, 30, NULL},
     "f:3: error: chunks of 30 tokens do not divide over 4 head ranks\n"},
    {"another number of chunks",
     {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 4, 80, 32, NULL},
     "f:3: error: 80 tokens in chunks of 32 make 3 chunks, not 4\n"},
    {"nobody",
     {LAYOUT_STRIPED, 0, 1, 1, 96, 0, NULL},
     "f:3: error: a token layout needs at least one context rank, head rank and chunk\n"},
    {"nothing",
     {LAYOUT_STRIPED, 1, 1, 1, 0, 0, NULL},
     "f:3: error: the sequence has 0 tokens; it needs at least 1\n"},
    {"too much",
     {LAYOUT_FPDT_RANK_ORDINAL, 1u << 16, 1u << 15, 2, INT64_MAX, 0, NULL},
     "f:3: error: the token layout has more than 4294967295 pieces\n"},
};

static void messages_name_lengths_that_would_do(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct diag diag = {0};
        CHECK(wrong[i].label,
              layout_check(&wrong[i].layout, (struct loc){"f", 3, 0}, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_release(&diag);
    }
}

/* Chunks of 12, 4 and 8 tokens over 2 head ranks: rank 1 has 6..11, 14..15, 20..23. */
static void chunks_of_given_lengths_cut_over_the_ranks(void)
{
    static const int64_t length[] = {12, 4, 8}, rank_1[] = {6, 7, 8, 9, 10, 11, 14, 15, 20, 23};
    static const int64_t at[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 11};
    const struct token_layout layout = {LAYOUT_FPDT_RANK_ORDINAL, 1, 2, 3, 24, 0, length};
    const struct token_layout longer = {LAYOUT_FPDT_RANK_ORDINAL, 1, 2, 3, 26, 0, length};
    const struct token_layout odd = {LAYOUT_FPDT_RANK_ORDINAL, 1, 4, 3, 24, 0,
                                     (int64_t[]){12, 6, 6}};
    struct diag diag = {0};
    CHECK("fits", layout_check(&layout, (struct loc){0}, &diag) == STATUS_OK);
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        CHECK_INT("rank 1", global_position_of(&layout, 0, 1, at[i]), rank_1[i]);
    for (int64_t p = 0; p < layout.sequence_tokens; p++)
        CHECK_INT("gathered", gathered(&layout, 0, p), p);
    CHECK("too few", layout_check(&longer, (struct loc){0}, &diag) != STATUS_OK);
    CHECK_TEXT("too few", diag.text, "error: the chunks have 24 tokens, the sequence 26\n");
    diag_clear(&diag);
    CHECK("odd", layout_check(&odd, (struct loc){0}, &diag) != STATUS_OK);
    CHECK_TEXT("odd", diag.text, "error: a chunk of 6 tokens does not divide over 4 ranks\n");
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"every layout is a permutation", every_layout_is_a_permutation},
    {"the head group gathers what a context rank owns",
     the_head_group_gathers_what_a_context_rank_owns},
    {"gathered tokens ascend", gathered_tokens_ascend_within_slices},
    {"rank-ordinal chunks are the sequence in order",
     rank_ordinal_chunks_are_the_sequence_in_order},
    {"zigzag gives the slice pair", zigzag_gives_the_slice_pair},
    {"the two-dimensional zigzag is LoongTrain's", the_two_dimensional_zigzag_is_loongtrain_s},
    {"chunks of given lengths cut over the ranks", chunks_of_given_lengths_cut_over_the_ranks},
    {"messages name lengths that would do", messages_name_lengths_that_would_do},
};
CHECK_MAIN("layout", cases)
