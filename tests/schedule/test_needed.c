/* tests/schedule/test_needed.c: the rows that context ranks need, send and receive are those that their queries see,
 * compared token by token. */
#include "schedule/ir/needed.h"

#include "tests/check.h"

#include <stdlib.h>

enum { TOKENS_MAX = 64, RANKS_MAX = 4 };

/* Sets owner[token] to the rank that owns the token, from the layout itself. */
static void find_owner_of_each_token(const struct token_layout *layout,
                                     const struct document_list *list, uint32_t *owner)
{
    for (uint32_t c = 0; c < layout->cp; c++)
        for (int64_t p = 0; p < layout->sequence_tokens / layout->cp; p++)
            owner[layout_position_of_gathered_row(layout, list, c, p)] = c;
}

/* True if rank c needs a token: another rank owns it, and a query of rank c sees it. */
static bool rank_needs_token(const struct token_layout *layout, const struct document_list *list,
                             const uint32_t *owner, uint32_t c, int64_t token, int64_t window)
{
    for (int64_t q = token; owner[token] != c && q < layout->sequence_tokens; q++)
        if (owner[q] == c &&
            document_index_at_position(list, q) == document_index_at_position(list, token) &&
            (window == 0 || token > q - window))
            return true;
    return false;
}

/* Checks what each rank needs, sends and receives against every token. */
static void check_ranks(const struct token_layout *layout, const struct document_list *list,
                        int64_t window, const char *label)
{
    uint32_t owner[TOKENS_MAX];
    int64_t pairs[RANKS_MAX * RANKS_MAX];
    struct needed_max_rows most = needed_max_rows(layout, list, window);
    int64_t most_needed = 0, most_sent = 0;
    find_owner_of_each_token(layout, list, owner);
    needed_rows_of_all_pairs(pairs, layout, list, window);
    for (uint32_t c = 0; c < layout->cp; c++) {
        struct needed_tokens needed = {0};
        struct needed_rows received, sent;
        int64_t rows = 0, of[RANKS_MAX] = {0};
        needed_find_tokens(&needed, layout, list, c, window);
        needed_list_received(&received, layout, list, c, window);
        needed_list_sent(&sent, layout, list, c, window);
        for (int64_t t = 0; t < layout->sequence_tokens; t++) {
            CHECK_INT(label, needed_rows_below(&needed, t), rows);
            if (!rank_needs_token(layout, list, owner, c, t, window))
                continue;
            int64_t place = received.first_row_by_peer[owner[t]] + of[owner[t]]++;
            CHECK_INT(label, received.row[place], rows);
            rows++;
        }
        CHECK_INT(label, needed.row_count, rows);
        for (uint32_t other = 0; other < layout->cp; other++) {
            int64_t k = sent.first_row_by_peer[other];
            CHECK_INT(label, needed_row_count_of_owner(&needed, other), of[other]);
            CHECK_INT(label, pairs[c * layout->cp + other], of[other]);
            CHECK_INT(label,
                      received.first_row_by_peer[other + 1] - received.first_row_by_peer[other],
                      of[other]);
            for (int64_t p = 0; p < layout->sequence_tokens / layout->cp; p++) {
                int64_t t = layout_position_of_gathered_row(layout, list, c, p);
                if (rank_needs_token(layout, list, owner, other, t, window))
                    CHECK_INT(label, sent.row[k++], p);
            }
            CHECK_INT(label, sent.first_row_by_peer[other + 1], k);
        }
        most_needed = rows > most_needed ? rows : most_needed;
        most_sent = sent.first_row_by_peer[layout->cp] > most_sent
                        ? sent.first_row_by_peer[layout->cp]
                        : most_sent;
        needed_rows_release(&received);
        needed_rows_release(&sent);
        needed_release(&needed);
    }
    CHECK_INT(label, most.received_rows, most_needed);
    CHECK_INT(label, most.sent_rows, most_sent);
}

static void rows_are_those_that_queries_see(void)
{
    static const uint8_t kinds[] = {LAYOUT_CONTIGUOUS, LAYOUT_STRIPED, LAYOUT_ZIGZAG, LAYOUT_DEALT};
    struct check_random random = check_random_make();
    for (int trial = 0; trial < 400; trial++) {
        struct arena arena = {0};
        uint32_t cp = (uint32_t)check_random_i64(&random, 1, RANKS_MAX), count = 0, shares = 0;
        int64_t tokens = 2 * cp * check_random_i64(&random, 1, TOKENS_MAX / 8), end[TOKENS_MAX];
        int64_t left[RANKS_MAX], at = 0;
        int64_t window = check_random_i64(&random, 0, 1) * check_random_i64(&random, 1, tokens);
        struct token_share share[TOKENS_MAX];
        struct token_layout layout = {.kind = kinds[check_random_i64(&random, 0, 3)],
                                      .cp = cp,
                                      .hp = 1,
                                      .chunk_count = 1,
                                      .sequence_tokens = tokens};
        while (at < tokens)
            end[count++] = at += check_random_i64(&random, 1, tokens - at);
        for (uint32_t c = 0; c < cp; c++)
            left[c] = tokens / cp;
        for (at = 0; at < tokens; at += share[shares++].row_count) {
            uint32_t owner = (uint32_t)check_random_i64(&random, 0, cp - 1);
            while (left[owner] == 0)
                owner = (owner + 1) % cp;
            share[shares] = (struct token_share){check_random_i64(&random, 1, left[owner]), owner};
            left[owner] -= share[shares].row_count;
        }
        const struct document_list list = {count, end,
                                           deal_make_from_shares(&arena, cp, share, shares), NULL};
        check_ranks(&layout, &list, window, layout_names[layout.kind]);
        arena_release(&arena);
    }
}

static const struct check_case cases[] = {
    {"rows are those that queries see", rows_are_those_that_queries_see},
};
CHECK_MAIN("needed", cases)
