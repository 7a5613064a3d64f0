#include "schedule/core_plan/tile_rules.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tile_list {
    struct core_tile *tile;
    size_t count, capacity;
};

static void add_tile(struct tile_list *list, struct core_tile tile)
{
    list->tile = heap_grow(list->tile, &list->capacity, list->count + 1, sizeof *list->tile);
    list->tile[list->count++] = tile;
}

/* ---- rings ---- */

/* The rank that owns the queries, and the rank that owns the keys, of the tiles that one rank computes in one step. */
struct tile_owners {
    uint32_t queries, keys;
};
/* Returns the owners for one step of a rank in a ring of `ranks` ranks. window: the number of ranks of its inner
 * rings. */
typedef struct tile_owners ring_rule(uint32_t rank, uint32_t step, uint32_t ranks, uint32_t window);

static struct tile_owners tile_owners_if_keys_move(uint32_t rank, uint32_t step, uint32_t ranks,
                                                   uint32_t window)
{
    (void)window;
    return (struct tile_owners){rank, (rank + ranks - step) % ranks};
}

static struct tile_owners tile_owners_if_queries_move(uint32_t rank, uint32_t step, uint32_t ranks,
                                                      uint32_t window)
{
    (void)window;
    return (struct tile_owners){(rank + step) % ranks, rank};
}

static struct tile_owners tile_owners_if_windows_move(uint32_t rank, uint32_t step, uint32_t ranks,
                                                      uint32_t window)
{
    uint32_t outer = step / window, inner = step % window,
             lane = (rank % window + window - inner) % window;
    return (struct tile_owners){rank,
                                (rank / window * window + ranks - outer * window) % ranks + lane};
}

/* Adds a tile for each run of queries of rank of.queries with each run of keys of rank of.keys, unless all of these
 * keys come after all of these queries. tile: its other members are those of every added tile. */
static void add_tiles_of_owners(struct tile_list *list, const struct token_deal *deal,
                                struct tile_owners of, struct core_tile tile)
{
    for (uint32_t i = deal->first_run[of.queries]; i < deal->first_run[of.queries + 1]; i++)
        for (uint32_t j = deal->first_run[of.keys]; j < deal->first_run[of.keys + 1]; j++) {
            const struct token_run *q = &deal->run[i], *k = &deal->run[j];
            tile.first_query = q->first_position;
            tile.query_count = q->row_count;
            tile.first_key = k->first_position;
            tile.key_count = k->row_count;
            if (k->first_position < q->first_position + q->row_count)
                add_tile(list, tile);
        }
}

/* Adds the tiles of all ranks in all steps of a pass; adds none if `rule` is NULL. later_steps_are_one_round: all steps
 * after the first are one round; false: each step is a round. */
static void add_ring_tiles(struct tile_list *list, const struct token_deal *deal, ring_rule *rule,
                           uint32_t window, bool later_steps_are_one_round, bool backward)
{
    for (uint32_t rank = 0; rank < deal->rank_count && rule != NULL; rank++)
        for (uint32_t step = 0; step < deal->rank_count; step++) {
            const struct core_tile tile = {.rank = rank,
                                           .round = later_steps_are_one_round ? step > 0 : step,
                                           .is_backward_tile = backward};
            add_tiles_of_owners(list, deal, rule(rank, step, deal->rank_count, window), tile);
        }
}

/* The rules that are rings. backward NULL: the backward has the tiles of the forward. later_steps_are_one_round: as in
 * add_ring_tiles(). */
static const struct ring_row {
    enum deal_rule rule;
    ring_rule *forward, *backward;
    bool later_steps_are_one_round;
} ring_rows[] = {
    {DEAL_ZIGZAG_RING, tile_owners_if_keys_move, NULL, false},
    {DEAL_DOUBLE_RING, tile_owners_if_windows_move, NULL, false},
    {DEAL_ALL_GATHER_OF_KEYS, tile_owners_if_keys_move, NULL, true},
    {DEAL_RING_OF_QUERIES, tile_owners_if_queries_move, NULL, false},
    {DEAL_BURST, tile_owners_if_keys_move, tile_owners_if_queries_move, false},
};

/* ---- queries that move from loaded ranks to less loaded ones ---- */

enum {
    KEYS_OF_ROUND_FACTOR =
        16, /* a round brings a rank at most about 16 times as many keys as it owns */
    MOVES_PER_RANK_MAX = 16 /* at most 16 slices of queries move for each rank */
};

/* Queries [q, end) of one document that `rank` computes. They see keys from position first_key on. */
struct query_range {
    int64_t q, end, first_key;
    uint32_t rank;
};

/* The state while slices of queries move from ranks that compute many visible pairs to the rank that computes the
 * fewest. */
struct query_moving_state {
    const struct document_list *documents;
    const struct token_deal *deal;
    struct attention_windows_of_layers windows;
    struct row_bytes bytes;
    int64_t min_slice_tokens; /* the fewest tokens of a slice */
    /* queries move only while the pairs of the most loaded rank exceed the mean over ranks by more than this share of
     * the mean */
    double tolerance;
    /* [item_count] all queries of the sequence, in ranges that one rank computes; when a slice of a range moves, it
     * becomes a range of its own */
    struct query_range *item;
    size_t item_count, capacity;
    double *pairs_of_rank; /* [ranks] the visible pairs that each rank computes */
    double mean_pairs;     /* the mean of pairs_of_rank[] */
};

static double visible_pairs_of_queries(const struct query_moving_state *m, int64_t begin,
                                       int64_t end)
{
    return deal_count_pairs_seen_by_queries(m->documents, m->windows, begin, end);
}

static void add_query_range(struct query_moving_state *m, int64_t q, int64_t end, uint32_t rank)
{
    int64_t first = document_begin(m->documents, document_index_at_position(m->documents, q));
    if (m->windows.windowed_layer_share == 1 && q - m->windows.window + 1 > first)
        first = q - m->windows.window + 1;
    m->item = heap_grow(m->item, &m->capacity, m->item_count + 1, sizeof *m->item);
    m->item[m->item_count++] = (struct query_range){q, end, first, rank};
}

/* Makes query ranges of each rank's own queries, one for each run and document. Sets pairs_of_rank and mean_pairs. */
static void make_query_ranges(struct query_moving_state *m)
{
    for (uint32_t rank = 0; rank < m->deal->rank_count; rank++)
        for (uint32_t i = m->deal->first_run[rank]; i < m->deal->first_run[rank + 1]; i++) {
            const struct token_run *run = &m->deal->run[i];
            for (int64_t q = run->first_position, end = q + run->row_count; q < end;) {
                int64_t until =
                    m->documents->document_end[document_index_at_position(m->documents, q)];
                until = until < end ? until : end;
                add_query_range(m, q, until, rank);
                m->pairs_of_rank[rank] += visible_pairs_of_queries(m, q, until);
                m->mean_pairs += visible_pairs_of_queries(m, q, until) / m->deal->rank_count;
                q = until;
            }
        }
}

/* Returns the bytes of the rows of [begin, end) that the rank does not own. each: the bytes of a row. */
static double bytes_of_rows_not_owned(const struct query_moving_state *m, int64_t begin,
                                      int64_t end, uint32_t rank, double each)
{
    return each *
           (double)(end - begin -
                    (deal_rows_below(m->deal, rank, end) - deal_rows_below(m->deal, rank, begin)));
}

/* The first or the last queries [q, end) of an item, which might move to another rank. */
struct movable_queries {
    size_t item;
    int64_t q, end;
    double bytes_per_pair; /* bytes that the move would send, for each visible pair of the slice */
};

/* Returns the shortest slice from the beginning of an item, or with `tail` from its end, that has at least `pairs`
 * pairs and a multiple of min_slice_tokens tokens. The slice is the whole item if the item has fewer pairs, or if fewer
 * than min_slice_tokens tokens of it would be left. */
static struct movable_queries shortest_slice_with_pairs(const struct query_moving_state *m,
                                                        size_t number, double pairs, bool tail)
{
    const struct query_range *item = &m->item[number];
    int64_t low = 1, high = item->end - item->q;
    while (low < high) {
        int64_t rows = low + (high - low) / 2;
        double has = tail ? visible_pairs_of_queries(m, item->end - rows, item->end)
                          : visible_pairs_of_queries(m, item->q, item->q + rows);
        if (has >= pairs)
            high = rows;
        else
            low = rows + 1;
    }
    int64_t rows = (low + m->min_slice_tokens - 1) / m->min_slice_tokens * m->min_slice_tokens;
    if (rows + m->min_slice_tokens >
        item->end - item->q) /* the rest would be shorter than a slice may be */
        rows = item->end - item->q;
    return (struct movable_queries){number, tail ? item->end - rows : item->q,
                                    tail ? item->end : item->q + rows, 0};
}

/* Finds the slice that costs the fewest bytes for each pair if it moves to `rank`. To compare few items, it takes
 * slices only from ranks whose surplus over the mean is more than half that of `most`, the most loaded rank. After the
 * move `rank` must have fewer pairs than the giver had before. Returns false if there is no such slice. */
static bool find_cheapest_slice(const struct query_moving_state *m, uint32_t rank, uint32_t most,
                                struct movable_queries *best)
{
    const double need = m->mean_pairs - m->pairs_of_rank[rank],
                 least = (m->pairs_of_rank[most] - m->mean_pairs) / 2;
    bool found = false;
    for (size_t i = 0; i < m->item_count; i++) {
        const double surplus = m->pairs_of_rank[m->item[i].rank] - m->mean_pairs;
        if (surplus <= least)
            continue;
        for (int tail = 0; tail < 2; tail++) {
            struct movable_queries s =
                shortest_slice_with_pairs(m, i, need < surplus ? need : surplus, tail);
            double pairs = visible_pairs_of_queries(m, s.q, s.end);
            if (m->pairs_of_rank[rank] + pairs >= m->pairs_of_rank[m->item[i].rank])
                continue;
            s.bytes_per_pair =
                (bytes_of_rows_not_owned(m, s.q, s.end, rank, m->bytes.query + m->bytes.result) +
                 bytes_of_rows_not_owned(m, m->item[i].first_key, s.end, rank, m->bytes.key)) /
                pairs;
            if (!found || s.bytes_per_pair < best->bytes_per_pair)
                *best = s;
            found = true;
        }
    }
    return found;
}

static void move_slice(struct query_moving_state *m, const struct movable_queries *s, uint32_t rank)
{
    struct query_range *item = &m->item[s->item];
    const double pairs = visible_pairs_of_queries(m, s->q, s->end);
    m->pairs_of_rank[item->rank] -= pairs;
    m->pairs_of_rank[rank] += pairs;
    if (s->q == item->q && s->end == item->end) {
        item->rank = rank;
        return;
    }
    if (s->q == item->q)
        item->q = s->end;
    else
        item->end = s->q;
    add_query_range(m, s->q, s->end, rank);
}

/* Moves slices to the rank with the fewest pairs until no rank exceeds the mean by more than the tolerance, no slice is
 * fit to move, or MOVES_PER_RANK_MAX slices for each rank have moved. */
static void balance_visible_pairs(struct query_moving_state *m)
{
    const uint32_t ranks = m->deal->rank_count;
    for (uint32_t step = 0; step < MOVES_PER_RANK_MAX * ranks; step++) {
        uint32_t least = 0, most = 0;
        struct movable_queries slice;
        for (uint32_t r = 1; r < ranks; r++) {
            least = m->pairs_of_rank[r] < m->pairs_of_rank[least] ? r : least;
            most = m->pairs_of_rank[r] > m->pairs_of_rank[most] ? r : most;
        }
        if (m->pairs_of_rank[most] <= m->mean_pairs * (1 + m->tolerance) ||
            !find_cheapest_slice(m, least, most, &slice))
            break;
        move_slice(m, &slice, least);
    }
}

static int compare_tiles(const void *left, const void *right)
{
    const struct core_tile *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank > b->rank ? 1 : -1;
    if (a->first_key != b->first_key)
        return a->first_key > b->first_key ? 1 : -1;
    return (a->first_query > b->first_query) - (a->first_query < b->first_query);
}

/* Returns the number of different keys of tile[count], which is in ascending order of keys. */
static int64_t count_different_keys(const struct core_tile *tile, size_t count)
{
    int64_t keys = 0, next = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t end = tile[i].first_key + tile[i].key_count,
                begin = tile[i].first_key > next ? tile[i].first_key : next;
        keys += end > begin ? end - begin : 0;
        next = end > next ? end : next;
    }
    return keys;
}

/* Returns the end of the tiles of the rank to which tile `begin` belongs. */
static size_t end_of_tiles_of_rank(const struct tile_list *tiles, size_t begin)
{
    size_t end = begin;
    while (end < tiles->count && tiles->tile[end].rank == tiles->tile[begin].rank)
        end++;
    return end;
}

/* Returns the fewest rounds with which every rank reads, in each round, at most KEYS_OF_ROUND_FACTOR times as many keys
 * as own_rows, if its keys are evenly divided among rounds. The tiles are in the order of compare_tiles(). */
static int64_t round_count_of(const struct tile_list *tiles, int64_t own_rows)
{
    const int64_t room = KEYS_OF_ROUND_FACTOR * own_rows;
    int64_t rounds = 1;
    for (size_t i = 0, end; i < tiles->count; i = end) {
        end = end_of_tiles_of_rank(tiles, i);
        int64_t needs = (count_different_keys(&tiles->tile[i], end - i) + room - 1) / room;
        rounds = needs > rounds ? needs : rounds;
    }
    return rounds;
}

/* Sorts the tiles and adds them to *list. The tiles of each rank are put into rounds 1, 2, ... in ascending order of
 * their keys, with about equally many keys in each round. */
static void add_tiles_in_rounds(struct tile_list *list, struct tile_list *tiles, int64_t own_rows)
{
    if (tiles->count == 0)
        return;
    qsort(tiles->tile, tiles->count, sizeof *tiles->tile, compare_tiles);
    const int64_t rounds = round_count_of(tiles, own_rows);
    for (size_t i = 0, end; i < tiles->count; i = end) {
        int64_t keys = 0, before = 0;
        end = end_of_tiles_of_rank(tiles, i);
        for (size_t k = i; k < end; k++)
            keys += tiles->tile[k].key_count;
        for (size_t k = i; k < end; before += tiles->tile[k++].key_count) {
            tiles->tile[k].round = 1 + (uint32_t)(before * rounds / keys);
            add_tile(list, tiles->tile[k]);
        }
    }
}

/* Adds the tiles of all query ranges, one for each range and share of keys. A rank's own queries by its own keys are
 * round 0; the other tiles of a rank are put into later rounds. */
static void add_tiles_of_query_ranges(struct tile_list *list, const struct query_moving_state *m)
{
    uint32_t shares;
    struct token_share *share = deal_shares_of_runs(m->deal, &shares);
    struct tile_list others = {0};
    for (size_t i = 0; i < m->item_count; i++) {
        const struct query_range *item = &m->item[i];
        const bool own = bytes_of_rows_not_owned(m, item->q, item->end, item->rank, 1) == 0;
        int64_t begin = 0;
        for (uint32_t k = 0; k < shares && begin < item->end; begin += share[k++].row_count) {
            int64_t from = begin > item->first_key ? begin : item->first_key,
                    to = begin + share[k].row_count < item->end ? begin + share[k].row_count
                                                                : item->end;
            const struct core_tile tile = {
                item->q, item->end - item->q, from, to - from, item->rank, 0, false};
            if (from < to)
                add_tile(own && share[k].owner == item->rank ? list : &others, tile);
        }
    }
    add_tiles_in_rounds(list, &others, deal_rows_of_rank(m->deal, 0));
    free(others.tile);
    free(share);
}

static void add_moved_tiles(struct tile_list *list, struct query_moving_state *m)
{
    m->pairs_of_rank = heap_zalloc(m->deal->rank_count, sizeof *m->pairs_of_rank);
    make_query_ranges(m);
    balance_visible_pairs(m);
    add_tiles_of_query_ranges(list, m);
    free(m->pairs_of_rank);
    free(m->item);
}

/* ---- the tiles of any rule ---- */

double tile_rules_estimate_tiles(const struct deal_choice *choice, uint32_t ranks, int64_t tokens)
{
    const double square = (double)ranks * ranks;
    if (choice->rule == DEAL_MOVE_QUERIES)
        return square / 2;
    if (choice->rule == DEAL_CHUNKS_THEN_MOVE_QUERIES)
        return pow((double)tokens / (double)choice->parameter, 2) / 2;
    for (size_t i = 0; i < ARRAY_LEN(ring_rows); i++)
        if (ring_rows[i].rule == choice->rule)
            return (ring_rows[i].backward != NULL ? 2 : 1) * 2 * square;
    return 0;
}

/* Returns the fewest tokens of a slice that moves. With DEAL_MOVE_QUERIES it is at most a quarter of a rank's tokens: a
 * rank that consists of one slice could only give away all that it has. */
static int64_t min_slice_tokens_of(const struct deal_choice *choice, const struct token_deal *deal)
{
    const int64_t quarter = deal_rows_of_rank(deal, 0) / 4 > 1 ? deal_rows_of_rank(deal, 0) / 4 : 1;
    return choice->rule == DEAL_MOVE_QUERIES && quarter < choice->parameter ? quarter
                                                                            : choice->parameter;
}

struct tile_plan *tile_rules_plan(struct arena *arena, const struct deal_choice *choice,
                                  const struct document_list *documents,
                                  struct attention_windows_of_layers windows,
                                  const struct row_bytes *bytes)
{
    const int64_t window = windows.windowed_layer_share == 1 ? windows.window : 0;
    struct tile_list list = {0};
    struct query_moving_state moving = {
        .documents = documents,
        .deal = documents->deal,
        .windows = windows,
        .bytes = *bytes,
        .min_slice_tokens = min_slice_tokens_of(choice, documents->deal),
        .tolerance = choice->rule == DEAL_MOVE_QUERIES ? 0.02 : 0.2};
    if (choice->rule == DEAL_MOVE_QUERIES || choice->rule == DEAL_CHUNKS_THEN_MOVE_QUERIES)
        add_moved_tiles(&list, &moving);
    for (size_t i = 0; i < ARRAY_LEN(ring_rows); i++)
        if (ring_rows[i].rule == choice->rule) {
            const uint32_t inner = (uint32_t)choice->parameter;
            const struct ring_row *row = &ring_rows[i];
            add_ring_tiles(&list, documents->deal, row->forward, inner,
                           row->later_steps_are_one_round, false);
            add_ring_tiles(&list, documents->deal, row->backward, inner,
                           row->later_steps_are_one_round, true);
        }
    struct tile_plan *plan =
        list.count == 0
            ? NULL
            : tile_plan_make(arena, documents->deal, documents->document_end,
                             documents->document_count, list.tile, (uint32_t)list.count, window);
    free(list.tile);
    return plan;
}
