#include "schedule/ir/needed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int64_t own_rows_below(const struct needed_tokens *n, int64_t position)
{
    return layout_rows_below(n->layout, n->documents, n->context_rank, position);
}

/* Adds the positions begin .. end - 1, which a run of queries sees, to the ranges. `begin` must not be lower than in
 * the call before. */
static void add_range(struct needed_tokens *n, int64_t begin, int64_t end)
{
    struct seen_position_range *last = n->range_count > 0 ? &n->range[n->range_count - 1] : NULL;
    if (last != NULL && begin <= last->end_position) {
        last->end_position = end > last->end_position ? end : last->end_position;
        return;
    }
    n->range = heap_grow(n->range, &n->capacity, n->range_count + 1, sizeof *n->range);
    n->range[n->range_count++] = (struct seen_position_range){begin, end, 0};
}

void needed_find_tokens(struct needed_tokens *n, const struct token_layout *layout,
                        const struct document_list *documents, uint32_t context, int64_t window)
{
    int64_t row = 0, own = layout->sequence_tokens / layout->cp;
    n->layout = layout;
    n->documents = documents;
    n->context_rank = context;
    n->range_count = 0;
    n->row_count = 0;
    while (row < own) {
        int64_t first = layout_position_of_gathered_row(layout, documents, context, row);
        uint32_t document = document_index_at_position(documents, first);
        int64_t begin = document_begin(documents, document),
                end = layout_rows_below(layout, documents, context,
                                        documents->document_end[document]),
                run = layout_run_end_row(layout, documents, context, row);
        if (window > 0) { /* each run of neighbours has a window of its own */
            if (layout->kind == LAYOUT_STRIPED)
                run = row + 1;
            if (run < end)
                end = run;
            if (first - window + 1 > begin)
                begin = first - window + 1;
        }
        add_range(n, begin,
                  layout_position_of_gathered_row(layout, documents, context, end - 1) + 1);
        row = end;
    }
    for (size_t i = 0; i < n->range_count; i++) {
        struct seen_position_range *r = &n->range[i];
        r->needed_rows_before = n->row_count;
        n->row_count += r->end_position - r->begin_position -
                        (own_rows_below(n, r->end_position) - own_rows_below(n, r->begin_position));
    }
}

void needed_release(struct needed_tokens *n)
{
    free(n->range);
    *n = (struct needed_tokens){0};
}

int64_t needed_rows_below(const struct needed_tokens *n, int64_t position)
{
    size_t low = 0, high = n->range_count;
    while (low < high) { /* the first range that begins at the position or later */
        size_t middle = low + (high - low) / 2;
        if (n->range[middle].begin_position < position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const struct seen_position_range *r = &n->range[low - 1];
    int64_t end = position < r->end_position ? position : r->end_position;
    return r->needed_rows_before + end - r->begin_position -
           (own_rows_below(n, end) - own_rows_below(n, r->begin_position));
}

int64_t needed_row_count_of_owner(const struct needed_tokens *n, uint32_t owner)
{
    int64_t rows = 0;
    for (size_t i = 0; i < n->range_count && owner != n->context_rank; i++)
        rows += layout_rows_below(n->layout, n->documents, owner, n->range[i].end_position) -
                layout_rows_below(n->layout, n->documents, owner, n->range[i].begin_position);
    return rows;
}

/* One end of a range of positions that queries of a context rank see (struct seen_position_range). sign: -1 at its
 * begin, 1 at its end. */
struct seen_range_end {
    int64_t position, sign;
    uint32_t context;
};

static int compare_range_ends_by_position(const void *left, const void *right)
{
    const struct seen_range_end *a = left, *b = right;
    return (a->position > b->position) - (a->position < b->position);
}

/* Returns what layout_rows_below() returns, for positions that ascend from call to call. *passed: the number of the
 * rank's runs before the position, which the function updates; 0 before the first call. */
static int64_t rows_below_ascending_position(const struct token_layout *layout,
                                             const struct document_list *documents, uint32_t owner,
                                             int64_t position, uint32_t *passed)
{
    if (layout->kind != LAYOUT_DEALT)
        return layout_rows_below(layout, documents, owner, position);
    const struct token_deal *deal = documents->deal;
    uint32_t run = deal->first_run[owner] + *passed, end = deal->first_run[owner + 1];
    while (run < end && deal->run[run].first_position + deal->run[run].row_count <= position)
        run++;
    *passed = run - deal->first_run[owner];
    if (run == end)
        return deal_rows_of_rank(deal, owner);
    int64_t in_run = position - deal->run[run].first_position;
    return deal->run[run].first_row + (in_run > 0 ? in_run : 0);
}

void needed_rows_of_all_pairs(int64_t *rows, const struct token_layout *layout,
                              const struct document_list *documents, int64_t window)
{
    struct needed_tokens needed = {0};
    struct seen_range_end *bound = NULL;
    int64_t *below = heap_zalloc(layout->cp, sizeof *below); /* rows of each rank before a bound */
    uint32_t *passed = heap_zalloc(layout->cp, sizeof *passed);
    size_t count = 0, capacity = 0;
    for (uint32_t c = 0; c < layout->cp; c++) {
        needed_find_tokens(&needed, layout, documents, c, window);
        bound = heap_grow(bound, &capacity, count + 2 * needed.range_count, sizeof *bound);
        for (size_t i = 0; i < needed.range_count; i++) {
            bound[count++] = (struct seen_range_end){needed.range[i].begin_position, -1, c};
            bound[count++] = (struct seen_range_end){needed.range[i].end_position, 1, c};
        }
    }
    if (count > 0)
        qsort(bound, count, sizeof *bound, compare_range_ends_by_position);
    memset(rows, 0, (size_t)layout->cp * layout->cp * sizeof *rows);
    for (size_t i = 0; i < count; i++) {
        int64_t *of = rows + (size_t)bound[i].context * layout->cp, sign = bound[i].sign;
        for (uint32_t owner = 0;
             owner < layout->cp && (i == 0 || bound[i].position != bound[i - 1].position); owner++)
            below[owner] = rows_below_ascending_position(layout, documents, owner,
                                                         bound[i].position, &passed[owner]);
        for (uint32_t owner = 0; owner < layout->cp; owner++)
            of[owner] += sign * below[owner];
    }
    for (uint32_t c = 0; c < layout->cp; c++)
        rows[(size_t)c * layout->cp + c] = 0;
    needed_release(&needed);
    free(passed);
    free(below);
    free(bound);
}

/* Each of the tokens from `position` to the position of the next element is read by reading_ranks ranks; before
 * sort_and_count_reads(), reading_ranks is the change of that number at `position`. reads_before: the number of reads
 * of all tokens before `position`, where each rank that reads a token counts once. */
struct token_read_counts {
    int64_t position, reading_ranks, reads_before;
};

static int compare_reads_by_position(const void *left, const void *right)
{
    const struct token_read_counts *a = left, *b = right;
    return (a->position > b->position) - (a->position < b->position);
}

/* Sorts r[] by position. On entry reading_ranks is the change at the position, +1 or -1; the function replaces it by
 * the number of ranks that read the tokens from the position on, and fills reads_before. */
static void sort_and_count_reads(struct token_read_counts *r, size_t count)
{
    qsort(r, count, sizeof *r, compare_reads_by_position);
    for (size_t i = 1; i < count; i++) {
        r[i].reads_before =
            r[i - 1].reads_before + r[i - 1].reading_ranks * (r[i].position - r[i - 1].position);
        r[i].reading_ranks += r[i - 1].reading_ranks;
    }
}

/* Returns the number of reads of all tokens before a position (token_read_counts.reads_before). */
static int64_t reads_before_position(const struct token_read_counts *r, size_t count,
                                     int64_t position)
{
    size_t low = 0, high = count;
    while (low < high) { /* the first entry beyond the position */
        size_t middle = low + (high - low) / 2;
        if (r[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? r[low - 1].reads_before +
                         r[low - 1].reading_ranks * (position - r[low - 1].position)
                   : 0;
}

/* Returns the number of reads of one rank's rows by all ranks; a rank reads each of its own rows once. */
static int64_t count_reads_of_owned_rows(const struct token_read_counts *r, size_t count,
                                         const struct token_layout *layout,
                                         const struct document_list *documents, uint32_t owner)
{
    int64_t reads_of_owned_rows = 0, row = 0, own = layout->sequence_tokens / layout->cp;
    while (row < own) {
        int64_t begin = layout_position_of_gathered_row(layout, documents, owner, row),
                end = layout->kind == LAYOUT_STRIPED
                          ? row + 1
                          : layout_run_end_row(layout, documents, owner, row);
        reads_of_owned_rows += reads_before_position(r, count, begin + end - row) -
                               reads_before_position(r, count, begin);
        row = end;
    }
    return reads_of_owned_rows;
}

struct needed_max_rows needed_max_rows(const struct token_layout *layout,
                                       const struct document_list *documents, int64_t window)
{
    struct needed_max_rows most = {0};
    struct needed_tokens needed = {0};
    struct token_read_counts *reads = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t c = 0; c < layout->cp; c++) {
        needed_find_tokens(&needed, layout, documents, c, window);
        most.received_rows =
            needed.row_count > most.received_rows ? needed.row_count : most.received_rows;
        reads = heap_grow(reads, &capacity, count + 2 * needed.range_count, sizeof *reads);
        for (size_t i = 0; i < needed.range_count; i++) {
            reads[count++] = (struct token_read_counts){needed.range[i].begin_position, 1, 0};
            reads[count++] = (struct token_read_counts){needed.range[i].end_position, -1, 0};
        }
    }
    sort_and_count_reads(reads, count);
    for (uint32_t c = 0; c < layout->cp; c++) {
        int64_t sent = count_reads_of_owned_rows(reads, count, layout, documents, c) -
                       layout->sequence_tokens / layout->cp;
        most.sent_rows = sent > most.sent_rows ? sent : most.sent_rows;
    }
    needed_release(&needed);
    free(reads);
    return most;
}

/* Lists in `out` the rows of rank `owner` that the rank of `n` needs, in the order of positions. An element is the
 * row's number among the owner's rows or, with `places`, its index among all rows that the rank needs. Returns the
 * number of elements. */
static int64_t list_needed_rows(const struct needed_tokens *n, uint32_t owner, bool places,
                                int64_t *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < n->range_count && owner != n->context_rank; i++) {
        int64_t row = layout_rows_below(n->layout, n->documents, owner, n->range[i].begin_position),
                end = layout_rows_below(n->layout, n->documents, owner, n->range[i].end_position);
        for (; row < end; row++)
            out[count++] = places ? needed_rows_below(n, layout_position_of_gathered_row(
                                                             n->layout, n->documents, owner, row))
                                  : row;
    }
    return count;
}

void needed_list_sent(struct needed_rows *rows, const struct token_layout *layout,
                      const struct document_list *documents, uint32_t context, int64_t window)
{
    struct needed_tokens needed = {0};
    *rows = (struct needed_rows){
        heap_zalloc(layout->cp + (size_t)1, sizeof *rows->first_row_by_peer), NULL};
    for (uint32_t to = 0; to < layout->cp; to++) {
        needed_find_tokens(&needed, layout, documents, to, window);
        rows->first_row_by_peer[to + 1] =
            rows->first_row_by_peer[to] + needed_row_count_of_owner(&needed, context);
        rows->row =
            heap_realloc(rows->row, (size_t)rows->first_row_by_peer[to + 1] + 1, sizeof *rows->row);
        list_needed_rows(&needed, context, false, rows->row + rows->first_row_by_peer[to]);
    }
    needed_release(&needed);
}

void needed_list_received(struct needed_rows *rows, const struct token_layout *layout,
                          const struct document_list *documents, uint32_t context, int64_t window)
{
    struct needed_tokens needed = {0};
    needed_find_tokens(&needed, layout, documents, context, window);
    *rows =
        (struct needed_rows){heap_zalloc(layout->cp + (size_t)1, sizeof *rows->first_row_by_peer),
                             heap_alloc((size_t)needed.row_count + 1, sizeof *rows->row)};
    for (uint32_t from = 0; from < layout->cp; from++)
        rows->first_row_by_peer[from + 1] =
            rows->first_row_by_peer[from] +
            list_needed_rows(&needed, from, true, rows->row + rows->first_row_by_peer[from]);
    assert(rows->first_row_by_peer[layout->cp] == needed.row_count);
    needed_release(&needed);
}

void needed_rows_release(struct needed_rows *rows)
{
    free(rows->first_row_by_peer);
    free(rows->row);
    *rows = (struct needed_rows){0};
}
