#include "schedule/ir/deal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct token_deal *deal_make_from_shares(struct arena *arena, uint32_t ranks,
                                         const struct token_share *share, uint32_t count)
{
    struct token_deal *deal = arena_array(arena, 1, sizeof *deal);
    uint32_t *first = arena_array(arena, (size_t)ranks + 1, sizeof *first);
    uint32_t *next = heap_zalloc((size_t)ranks + 1, sizeof *next);
    int64_t *rows = heap_zalloc(ranks, sizeof *rows), position = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert(share[i].owner < ranks && share[i].row_count > 0);
        next[share[i].owner + 1] += i == 0 || share[i].owner != share[i - 1].owner;
    }
    for (uint32_t r = 0; r < ranks; r++)
        next[r + 1] += next[r];
    memcpy(first, next, ((size_t)ranks + 1) * sizeof *first);
    struct token_run *run = arena_array(arena, first[ranks], sizeof *run);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t owner = share[i].owner;
        if (i > 0 && owner == share[i - 1].owner)
            run[next[owner] - 1].row_count += share[i].row_count;
        else
            run[next[owner]++] = (struct token_run){position, rows[owner], share[i].row_count};
        rows[owner] += share[i].row_count;
        position += share[i].row_count;
    }
    free(next);
    free(rows);
    *deal = (struct token_deal){ranks, run, first};
    return deal;
}

static int compare_runs_by_position(const void *left, const void *right)
{
    int64_t a = ((const struct owned_run *)left)->run->first_position,
            b = ((const struct owned_run *)right)->run->first_position;
    return (a > b) - (a < b);
}

struct owned_run *deal_runs_sorted_by_position(const struct token_deal *deal)
{
    struct owned_run *owned_runs =
        heap_alloc(deal->first_run[deal->rank_count] + (size_t)1, sizeof *owned_runs);
    for (uint32_t rank = 0; rank < deal->rank_count; rank++)
        for (uint32_t i = deal->first_run[rank]; i < deal->first_run[rank + 1]; i++)
            owned_runs[i] = (struct owned_run){&deal->run[i], rank};
    qsort(owned_runs, deal->first_run[deal->rank_count], sizeof *owned_runs,
          compare_runs_by_position);
    return owned_runs;
}

struct token_share *deal_shares_of_runs(const struct token_deal *deal, uint32_t *count)
{
    uint32_t runs = *count = deal->first_run[deal->rank_count];
    struct owned_run *owned_runs = deal_runs_sorted_by_position(deal);
    struct token_share *share = heap_alloc(runs + (size_t)1, sizeof *share);
    for (uint32_t i = 0; i < runs; i++)
        share[i] = (struct token_share){owned_runs[i].run->row_count, owned_runs[i].owner};
    free(owned_runs);
    return share;
}

bool deal_is_equal(const struct token_deal *a, const struct token_deal *b)
{
    if (a == NULL || b == NULL || a == b)
        return a == b;
    return a->rank_count == b->rank_count &&
           memcmp(a->first_run, b->first_run, ((size_t)a->rank_count + 1) * sizeof *a->first_run) ==
               0 &&
           memcmp(a->run, b->run, a->first_run[a->rank_count] * sizeof *a->run) == 0;
}

int64_t deal_rows_of_rank(const struct token_deal *deal, uint32_t rank)
{
    if (deal->first_run[rank] == deal->first_run[rank + 1])
        return 0;
    const struct token_run *last = &deal->run[deal->first_run[rank + 1] - 1];
    return last->first_row + last->row_count;
}

bool deal_is_even(const struct token_deal *deal)
{
    for (uint32_t rank = 1; rank < deal->rank_count; rank++)
        if (deal_rows_of_rank(deal, rank) != deal_rows_of_rank(deal, 0))
            return false;
    return true;
}

const struct token_run *deal_run_of_row(const struct token_deal *deal, uint32_t rank, int64_t row)
{
    uint32_t low = deal->first_run[rank], high = deal->first_run[rank + 1];
    assert(row >= 0 && row < deal_rows_of_rank(deal, rank));
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (deal->run[middle].first_row <= row)
            low = middle;
        else
            high = middle;
    }
    return &deal->run[low];
}

int64_t deal_rows_below(const struct token_deal *deal, uint32_t rank, int64_t position)
{
    uint32_t low = deal->first_run[rank], high = deal->first_run[rank + 1];
    if (low == high || position <= deal->run[low].first_position)
        return 0;
    while (high - low > 1) { /* run[low] begins before the position */
        uint32_t middle = low + (high - low) / 2;
        if (deal->run[middle].first_position < position)
            low = middle;
        else
            high = middle;
    }
    const struct token_run *run = &deal->run[low];
    int64_t in_run = position - run->first_position;
    return run->first_row + (in_run < run->row_count ? in_run : run->row_count);
}
