#include "schedule/core_plan/coverage.h"

#include "base/ascending.h"
#include "base/c_locale.h"
#include "models/work.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- owners ---- */

static int compare_runs(const void *left, const void *right)
{
    const struct core_token_run *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Returns the runs of a sequence in ascending order, on the heap. */
static struct core_token_run *sorted_copy_of_core_runs(const struct core_sequence *s)
{
    struct core_token_run *run = heap_alloc(s->run_count + 1, sizeof *run);
    if (s->run_count > 0)
        memcpy(run, s->run, s->run_count * sizeof *run);
    qsort(run, s->run_count, sizeof *run, compare_runs);
    return run;
}

/* The place of a fault, for messages: the name of the plan, the sequence and the pass. */
struct fault_place {
    const char *name;
    size_t sequence;
    bool is_in_backward_pass;
    struct diag *diag;
};

static bool report_plan_error(const struct fault_place *at, const char *what, ...)
    __attribute__((format(printf, 2, 3)));
static bool report_plan_error(const struct fault_place *at, const char *what, ...)
{
    struct text text = {0};
    char line[400];
    va_list args;
    va_start(args, what);
    c_vsnprintf(line, sizeof line, what, args);
    va_end(args);
    text_printf(&text, "coverage: sequence %zu: %s%s", at->sequence, line,
                at->is_in_backward_pass ? " (backward)" : "");
    diag_error(at->diag, (struct loc){.name = at->name}, STATUS_NO, "%s", text.data);
    text_release(&text);
    return false;
}

static bool check_each_token_has_one_owner(const struct core_plan *plan,
                                           const struct core_sequence *s,
                                           const struct fault_place *at)
{
    struct core_token_run *run = sorted_copy_of_core_runs(s);
    int64_t *rows = heap_zalloc(plan->rank_count, sizeof *rows), next = 0;
    bool is_correct = true;
    for (size_t i = 0; i < s->run_count && is_correct; i++) {
        if (run[i].begin > next && next < s->tokens)
            break;
        if (run[i].begin < next)
            is_correct = report_plan_error(
                at, "token %" PRId64 " has two owners: ranks %" PRIu32 " and %" PRIu32,
                run[i].begin, run[i - 1].owner, run[i].owner);
        rows[run[i].owner] += run[i].rows;
        next = run[i].begin + run[i].rows;
        if (next > s->tokens)
            is_correct = report_plan_error(
                at, "token %" PRId64 " has an owner, but the documents end at token %" PRId64,
                s->tokens > run[i].begin ? s->tokens : run[i].begin, s->tokens);
    }
    if (is_correct && next < s->tokens)
        is_correct = report_plan_error(at, "token %" PRId64 " has no owner", next);
    if (s->tokens == 0)
        is_correct = report_plan_error(at, "it has no tokens");
    for (uint32_t r = 0; is_correct && r < plan->rank_count; r++)
        if (rows[r] * plan->rank_count != s->tokens)
            is_correct = report_plan_error(
                at,
                "rank %" PRIu32 " owns %" PRId64 " tokens; each of %" PRIu32
                " ranks owns as many, %g of %" PRId64,
                r, rows[r], plan->rank_count, (double)s->tokens / plan->rank_count, s->tokens);
    free(rows);
    free(run);
    return is_correct;
}

/* ---- tiles ---- */

/* The mask of a sequence. Which keys a query sees is computed here without schedule/ir/visible.c, so that a fault of
 * that file is found. */
struct core_plan_mask {
    struct document_list documents;
    int64_t window;
};

/* Returns the first key that a query sees. */
static int64_t first_visible_key(const struct core_plan_mask *s, int64_t query)
{
    int64_t begin = document_begin(&s->documents, document_index_at_position(&s->documents, query));
    return s->window > 0 && query - s->window + 1 > begin ? query - s->window + 1 : begin;
}

/* Finds the first query of [q, q_end) that sees a key of [k, k_end), and the first such key. Returns false if there is
 * none. This needs no search: the first key that a query sees never comes before that of the query before it. */
static bool find_visible_pair(const struct core_plan_mask *s, int64_t q, int64_t q_end, int64_t k,
                              int64_t k_end, int64_t *query, int64_t *key)
{
    *query = q > k ? q : k;
    if (*query >= q_end || k >= k_end)
        return false;
    int64_t first = first_visible_key(s, *query);
    *key = first > k ? first : k;
    return *key < k_end;
}

static int compare_tiles_by_first_query(const void *left, const void *right)
{
    const struct core_tile *a = left, *b = right;
    return (a->first_query > b->first_query) - (a->first_query < b->first_query);
}

static int compare_keys(const void *left, const void *right)
{
    const struct core_tile *a = *(const struct core_tile *const *)left,
                           *b = *(const struct core_tile *const *)right;
    return (a->first_key > b->first_key) - (a->first_key < b->first_key);
}

/* Checks the queries [q, end), all of which lie in each of tile[count]; the tiles are in ascending order of keys.
 * Reports the first key that such a query sees and that lies in no tile or in two, and then returns false. */
static bool check_queries_see_each_key_once(const struct core_sequence *s,
                                            const struct core_plan_mask *sight, int64_t q,
                                            int64_t end, const struct core_tile *const *tile,
                                            size_t count, const struct fault_place *at)
{
    int64_t next = 0, query, key;
    const struct core_tile *before = NULL;
    for (size_t i = 0; i <= count; i++) {
        int64_t k = i < count ? tile[i]->first_key : s->tokens;
        if (k > next && find_visible_pair(sight, q, end, next, k, &query, &key))
            return report_plan_error(
                at, "query %" PRId64 " sees key %" PRId64 ", which no tile has", query, key);
        if (i == count)
            break;
        int64_t until = k + tile[i]->key_count;
        if (before != NULL &&
            find_visible_pair(sight, q, end, k, until < next ? until : next, &query, &key))
            return report_plan_error(
                at,
                "query %" PRId64 ", key %" PRId64 " are in two tiles: rank %" PRIu32
                " round %" PRIu32 ", rank %" PRIu32 " round %" PRIu32,
                query, key, before->rank, before->round, tile[i]->rank, tile[i]->round);
        if (until > next) {
            next = until;
            before = tile[i];
        }
    }
    return true;
}

/* Returns the ascending edges of the tiles' queries, from 0 to the end of the sequence, on the heap. */
static int64_t *query_edges_of_tiles(const struct core_tile *tile, size_t tiles, int64_t tokens,
                                     size_t *count)
{
    int64_t *query_edges = heap_alloc(2 * tiles + 2, sizeof *query_edges);
    query_edges[0] = 0;
    query_edges[1] = tokens;
    for (size_t i = 0; i < tiles; i++) {
        query_edges[2 + 2 * i] = tile[i].first_query;
        query_edges[3 + 2 * i] = tile[i].first_query + tile[i].query_count;
    }
    qsort(query_edges, 2 * tiles + 2, sizeof *query_edges, ascending_i64);
    *count = 0;
    for (size_t i = 0; i < 2 * tiles + 2; i++)
        if (query_edges[i] <= tokens && (*count == 0 || query_edges[*count - 1] != query_edges[i]))
            query_edges[(*count)++] = query_edges[i];
    return query_edges;
}

static bool check_tiles(const struct core_sequence *s, const struct core_plan_mask *sight,
                        const struct fault_place *at)
{
    struct core_tile *tile = heap_alloc(s->tile_count, sizeof *tile);
    const struct core_tile **open = heap_alloc(s->tile_count, sizeof(struct core_tile *));
    size_t edges, next = 0, count = 0, tiles = 0;
    bool is_correct = true;
    for (size_t i = 0; i < s->tile_count; i++)
        if (s->tile[i].is_backward_tile == at->is_in_backward_pass)
            tile[tiles++] = s->tile[i];
    qsort(tile, tiles, sizeof *tile, compare_tiles_by_first_query);
    int64_t *edge = query_edges_of_tiles(tile, tiles, s->tokens, &edges);
    for (size_t e = 0; e + 1 < edges && is_correct; e++) {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++)
            if (open[i]->first_query + open[i]->query_count > edge[e])
                open[kept++] = open[i];
        for (count = kept; next < tiles && tile[next].first_query == edge[e]; next++)
            open[count++] = &tile[next];
        qsort((void *)open, count, sizeof(struct core_tile *), compare_keys);
        is_correct =
            check_queries_see_each_key_once(s, sight, edge[e], edge[e + 1], open, count, at);
    }
    free(edge);
    free((void *)open);
    free(tile);
    return is_correct;
}

static bool check_sequence_bounds(const struct core_sequence *s, const struct fault_place *at)
{
    for (size_t i = 0; i < s->tile_count; i++) {
        const struct core_tile *tile = &s->tile[i];
        bool queries = tile->first_query + tile->query_count <= s->tokens;
        if (!queries || tile->first_key + tile->key_count > s->tokens)
            return report_plan_error(at,
                                     "the tile of query %" PRId64 ", key %" PRId64
                                     " ends at %s %" PRId64 ", and the sequence at token %" PRId64,
                                     tile->first_query, tile->first_key, queries ? "key" : "query",
                                     queries ? tile->first_key + tile->key_count
                                             : tile->first_query + tile->query_count,
                                     s->tokens);
    }
    return true;
}

/* ---- the whole plan ---- */

static bool has_backward(const struct core_sequence *s)
{
    for (size_t i = 0; i < s->tile_count; i++)
        if (s->tile[i].is_backward_tile)
            return true;
    return false;
}

enum status core_plan_check(const struct core_plan *plan, const char *name, struct diag *diag)
{
    /* the most sequences with a message; a plan whose sequence numbers have a gap may have a million wrong ones */
    enum { SHOWN = 10 };
    size_t wrong_sequences = 0;
    for (size_t i = 0; i < plan->sequence_count && wrong_sequences < SHOWN; i++) {
        const struct core_sequence *s = &plan->sequence[i];
        const struct fault_place at = {name, i, false, diag}, backward = {name, i, true, diag};
        const struct core_plan_mask sight = {core_plan_document_list(s), plan->window_tokens};
        wrong_sequences +=
            !(check_each_token_has_one_owner(plan, s, &at) && check_sequence_bounds(s, &at) &&
              (s->tile_count == 0 || check_tiles(s, &sight, &at)) &&
              (!has_backward(s) || check_tiles(s, &sight, &backward)));
    }
    return wrong_sequences == 0 ? STATUS_OK : STATUS_NO;
}

/* ---- loads and bounds ---- */

/* Tokens begin .. end - 1 of a sequence. */
struct token_range {
    int64_t begin, end;
};
struct token_ranges {
    struct token_range *range;
    size_t count, capacity;
};

static void add_token_range(struct token_ranges *r, int64_t begin, int64_t end)
{
    if (begin >= end)
        return;
    /* a range that continues the last one extends it, so that the list stays short */
    if (r->count > 0 && r->range[r->count - 1].end == begin) {
        r->range[r->count - 1].end = end;
        return;
    }
    r->range = heap_grow(r->range, &r->capacity, r->count + 1, sizeof *r->range);
    r->range[r->count++] = (struct token_range){begin, end};
}

static int compare_ranges(const void *left, const void *right)
{
    const struct token_range *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Returns how many tokens of the union of the ranges are owned by ranks other than `rank`. Sorts the ranges. run[runs]:
 * the runs of the sequence, ascending. */
static int64_t count_rows_owned_by_others(struct token_ranges *r, const struct core_token_run *run,
                                          size_t runs, uint32_t rank)
{
    int64_t count = 0, next = 0;
    size_t k = 0;
    if (r->count > 0)
        qsort(r->range, r->count, sizeof *r->range, compare_ranges);
    for (size_t i = 0; i < r->count; i++) {
        int64_t begin = r->range[i].begin > next ? r->range[i].begin : next, end = r->range[i].end;
        while (begin < end) {
            while (k + 1 < runs && run[k].begin + run[k].rows <= begin)
                k++;
            int64_t until = run[k].begin + run[k].rows < end ? run[k].begin + run[k].rows : end;
            count += run[k].owner != rank ? until - begin : 0;
            begin = until;
        }
        next = end > next ? end : next;
    }
    return count;
}

/* Adds to load->visible_pairs the visible pairs of queries [q, q_end) and keys [k, k_end). Adds to *queries and *keys
 * the rows that have such a pair. */
static void add_tile(struct coverage_rank_load *load, struct token_ranges *queries,
                     struct token_ranges *keys, const struct core_plan_mask *s, int64_t q,
                     int64_t q_end, int64_t k, int64_t k_end)
{
    while (q < q_end) {
        uint32_t document = document_index_at_position(&s->documents, q);
        int64_t begin = document_begin(&s->documents, document),
                end = s->documents.document_end[document];
        int64_t last = end < q_end ? end : q_end; /* queries [q, last) of this document */
        int64_t low = k > begin ? k : begin, high = k_end < last ? k_end : last;
        int64_t from = q > low ? q : low; /* the first query that sees a key at `low` or later */
        int64_t to = s->window > 0 && high - 1 + s->window < last ? high - 1 + s->window : last;
        if (low < high && from < to && first_visible_key(s, from) < high) {
            int64_t first = first_visible_key(s, from);
            struct attention_piece piece = {.query_count = to - from,
                                            .key_count = high - low,
                                            .offset = from - low,
                                            .window = s->window};
            load->visible_pairs += attention_piece_pairs(&piece);
            add_token_range(queries, from, to);
            add_token_range(keys, first > low ? first : low, high < to ? high : to);
        }
        q = last;
    }
}

void coverage_find_rank_loads(const struct core_plan *plan, size_t sequence,
                              struct coverage_rank_load *load)
{
    const struct core_sequence *s = &plan->sequence[sequence];
    const struct core_plan_mask sight = {core_plan_document_list(s), plan->window_tokens};
    struct core_token_run *run = sorted_copy_of_core_runs(s);
    for (uint32_t rank = 0; rank < plan->rank_count; rank++) {
        struct token_ranges queries = {0}, keys = {0};
        load[rank] = (struct coverage_rank_load){0};
        for (size_t i = 0; i < s->run_count; i++) {
            int64_t end = run[i].begin + run[i].rows;
            if (run[i].owner != rank)
                continue;
            load[rank].own_tokens += run[i].rows;
            if (s->tile_count == 0)
                add_tile(&load[rank], &queries, &keys, &sight, run[i].begin, end, 0, end);
        }
        for (size_t i = 0; i < s->tile_count; i++)
            if (s->tile[i].rank == rank && !s->tile[i].is_backward_tile)
                add_tile(&load[rank], &queries, &keys, &sight, s->tile[i].first_query,
                         s->tile[i].first_query + s->tile[i].query_count, s->tile[i].first_key,
                         s->tile[i].first_key + s->tile[i].key_count);
        load[rank].received_queries = count_rows_owned_by_others(&queries, run, s->run_count, rank);
        load[rank].received_keys = count_rows_owned_by_others(&keys, run, s->run_count, rank);
        free(queries.range);
        free(keys.range);
    }
    free(run);
}

struct received_keys_lower_bound
coverage_bound_of_received_keys(const struct document_list *documents, int64_t window,
                                uint32_t ranks, double pairs)
{
    const int64_t tokens = documents->document_end[documents->document_count - 1];
    const double own = (double)tokens / ranks;
    struct received_keys_lower_bound least = {0, 0};
    for (uint32_t i = 0; i < documents->document_count && window == 0; i++) {
        double length = (double)(documents->document_end[i] - document_begin(documents, i)),
               before = ceil(length / own) - 1, first = length - before * own;
        least.all_ranks += before * first + own * before * (before - 1) / 2;
        least.fullest_rank = fmax(least.fullest_rank, length - own);
    }
    least.all_ranks = fmax(least.all_ranks, pairs / own - (double)tokens);
    least.fullest_rank = fmax(least.fullest_rank, least.all_ranks / ranks);
    return least;
}

double coverage_bound_of_busiest_rank_bytes(double pairs, uint32_t ranks, double own,
                                            const struct row_bytes *bytes, bool moves)
{
    double area = pairs / ranks, query = bytes->query + bytes->result, q = own;
    if (area <= own * own)
        return 0;
    if (moves)
        q = fmin(fmax(sqrt(bytes->key * area / query), own), area / own);
    return query * (q - own) + bytes->key * fmax(area / q - own, 0);
}
