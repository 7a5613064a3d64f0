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

/* The ranks that own the queries and the keys of the tiles that a rank computes in a step. */
struct owners {
    uint32_t queries, keys;
};
/* Returns the owners for one step of a ring of `ranks` ranks, which consists of inner rings of `window` ranks. */
typedef struct owners ring_rule(uint32_t rank, uint32_t step, uint32_t ranks, uint32_t window);

static struct owners keys_move(uint32_t rank, uint32_t step, uint32_t ranks, uint32_t window)
{
    (void)window;
    return (struct owners){rank, (rank + ranks - step) % ranks};
}

static struct owners queries_move(uint32_t rank, uint32_t step, uint32_t ranks, uint32_t window)
{
    (void)window;
    return (struct owners){(rank + step) % ranks, rank};
}

static struct owners windows_move(uint32_t rank, uint32_t step, uint32_t ranks, uint32_t window)
{
    uint32_t outer = step / window, inner = step % window,
             lane = (rank % window + window - inner) % window;
    return (struct owners){rank, (rank / window * window + ranks - outer * window) % ranks + lane};
}

/* Adds tiles of each run of queries by each run of keys, as far as keys lie before queries. */
static void add_owners(struct tile_list *list, const struct token_deal *deal, struct owners of,
                       struct core_tile tile)
{
    for (uint32_t i = deal->first[of.queries]; i < deal->first[of.queries + 1]; i++)
        for (uint32_t j = deal->first[of.keys]; j < deal->first[of.keys + 1]; j++) {
            const struct token_run *q = &deal->run[i], *k = &deal->run[j];
            tile.q = q->begin;
            tile.rows = q->rows;
            tile.k = k->begin;
            tile.keys = k->rows;
            if (k->begin < q->begin + q->rows)
                add_tile(list, tile);
        }
}

/* Adds the tiles of all steps of a pass. gathers: all steps after the first are one round. */
static void add_ring(struct tile_list *list, const struct token_deal *deal, ring_rule *rule,
                     uint32_t window, bool gathers, bool backward)
{
    for (uint32_t rank = 0; rank < deal->ranks && rule != NULL; rank++)
        for (uint32_t step = 0; step < deal->ranks; step++) {
            const struct core_tile tile = {
                .rank = rank, .round = gathers ? step > 0 : step, .backward = backward};
            add_owners(list, deal, rule(rank, step, deal->ranks, window), tile);
        }
}

/* The rules that are rings. backward NULL: the backward has the tiles of the forward. */
static const struct ring_row {
    enum deal_rule rule;
    ring_rule *forward, *backward;
    bool gathers;
} ring_rows[] = {
    {DEAL_ZIGZAG_RING, keys_move, NULL, false},   {DEAL_DOUBLE_RING, windows_move, NULL, false},
    {DEAL_GATHER, keys_move, NULL, true},         {DEAL_TOKEN_RING, queries_move, NULL, false},
    {DEAL_BURST, keys_move, queries_move, false},
};

/* ---- queries that move to less loaded ranks ---- */

enum {
    ROUND_SHARES = 16, /* a round brings a rank at most about 16 times as many keys as it owns */
    MOVES_A_RANK = 16  /* at most 16 slices of queries move for each rank */
};

/* Queries of one document that a rank computes; they see keys from `first` on. */
struct item {
    int64_t q, end, first;
    uint32_t rank;
};

struct move_state {
    const struct document_list *documents;
    const struct token_deal *deal;
    struct deal_windows windows;
    struct row_bytes bytes;
    int64_t grain;    /* the fewest tokens of a slice */
    double tolerance; /* ranks that exceed the mean by no more than this share of it give nothing */
    struct item *item;
    size_t items, capacity;
    double *load, mean;
};

static double pairs_of(const struct move_state *m, int64_t begin, int64_t end)
{
    return deal_pairs(m->documents, m->windows, begin, end);
}

static void add_item(struct move_state *m, int64_t q, int64_t end, uint32_t rank)
{
    int64_t first = document_begin(m->documents, document_at(m->documents, q));
    if (m->windows.share == 1 && q - m->windows.window + 1 > first)
        first = q - m->windows.window + 1;
    m->item = heap_grow(m->item, &m->capacity, m->items + 1, sizeof *m->item);
    m->item[m->items++] = (struct item){q, end, first, rank};
}

/* Makes items of each rank's own queries, one for each run and document. */
static void find_items(struct move_state *m)
{
    for (uint32_t rank = 0; rank < m->deal->ranks; rank++)
        for (uint32_t i = m->deal->first[rank]; i < m->deal->first[rank + 1]; i++) {
            const struct token_run *run = &m->deal->run[i];
            for (int64_t q = run->begin, end = q + run->rows; q < end;) {
                int64_t until = m->documents->end[document_at(m->documents, q)];
                until = until < end ? until : end;
                add_item(m, q, until, rank);
                m->load[rank] += pairs_of(m, q, until);
                m->mean += pairs_of(m, q, until) / m->deal->ranks;
                q = until;
            }
        }
}

/* Returns the bytes of rows [begin, end) that the rank does not own. */
static double foreign_pairs(const struct move_state *m, int64_t begin, int64_t end, uint32_t rank,
                            double each)
{
    return each *
           (double)(end - begin -
                    (deal_rows_below(m->deal, rank, end) - deal_rows_below(m->deal, rank, begin)));
}

/* A slice of an item that might move: its first or its last queries. */
struct slice {
    size_t item;
    int64_t q, end;
    double cost; /* bytes for each pair */
};

/* Returns the shortest slice with at least `pairs` pairs from the beginning or the end of an item, in whole grains. If
 * less than a grain would be left of the item, the slice is the whole item. */
static struct slice slice_of(const struct move_state *m, size_t number, double pairs, bool tail)
{
    const struct item *item = &m->item[number];
    int64_t low = 1, high = item->end - item->q;
    while (low < high) {
        int64_t rows = low + (high - low) / 2;
        double has =
            tail ? pairs_of(m, item->end - rows, item->end) : pairs_of(m, item->q, item->q + rows);
        if (has >= pairs)
            high = rows;
        else
            low = rows + 1;
    }
    int64_t rows = (low + m->grain - 1) / m->grain * m->grain;
    if (rows + m->grain > item->end - item->q) /* no slice shorter than a grain is left */
        rows = item->end - item->q;
    return (struct slice){number, tail ? item->end - rows : item->q,
                          tail ? item->end : item->q + rows, 0};
}

/* Finds the slice that costs a rank the fewest bytes for each pair. Its giver exceeds the mean by at least half of what
 * the most loaded rank does, so that few items are compared, and moving it makes neither rank more loaded than the
 * giver was. Returns false if there is none. */
static bool find_slice(const struct move_state *m, uint32_t rank, uint32_t most, struct slice *best)
{
    const double need = m->mean - m->load[rank], least = (m->load[most] - m->mean) / 2;
    bool found = false;
    for (size_t i = 0; i < m->items; i++) {
        const double surplus = m->load[m->item[i].rank] - m->mean;
        if (surplus <= least)
            continue;
        for (int tail = 0; tail < 2; tail++) {
            struct slice s = slice_of(m, i, need < surplus ? need : surplus, tail);
            double pairs = pairs_of(m, s.q, s.end);
            if (m->load[rank] + pairs >= m->load[m->item[i].rank])
                continue;
            s.cost = (foreign_pairs(m, s.q, s.end, rank, m->bytes.query + m->bytes.result) +
                      foreign_pairs(m, m->item[i].first, s.end, rank, m->bytes.key)) /
                     pairs;
            if (!found || s.cost < best->cost)
                *best = s;
            found = true;
        }
    }
    return found;
}

static void move_slice(struct move_state *m, const struct slice *s, uint32_t rank)
{
    struct item *item = &m->item[s->item];
    const double pairs = pairs_of(m, s->q, s->end);
    m->load[item->rank] -= pairs;
    m->load[rank] += pairs;
    if (s->q == item->q && s->end == item->end) {
        item->rank = rank;
        return;
    }
    if (s->q == item->q)
        item->q = s->end;
    else
        item->end = s->q;
    add_item(m, s->q, s->end, rank);
}

/* Moves slices to the rank with the fewest pairs until no rank exceeds the mean by more than the tolerance. */
static void balance_pairs(struct move_state *m)
{
    const uint32_t ranks = m->deal->ranks;
    for (uint32_t step = 0; step < MOVES_A_RANK * ranks; step++) {
        uint32_t least = 0, most = 0;
        struct slice slice;
        for (uint32_t r = 1; r < ranks; r++) {
            least = m->load[r] < m->load[least] ? r : least;
            most = m->load[r] > m->load[most] ? r : most;
        }
        if (m->load[most] <= m->mean * (1 + m->tolerance) || !find_slice(m, least, most, &slice))
            break;
        move_slice(m, &slice, least);
    }
}

static int compare_tiles(const void *left, const void *right)
{
    const struct core_tile *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank > b->rank ? 1 : -1;
    if (a->k != b->k)
        return a->k > b->k ? 1 : -1;
    return (a->q > b->q) - (a->q < b->q);
}

/* Returns the tokens of a union of ranges of keys; tile[count]: ascending in k. */
static int64_t count_keys(const struct core_tile *tile, size_t count)
{
    int64_t keys = 0, next = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t end = tile[i].k + tile[i].keys, begin = tile[i].k > next ? tile[i].k : next;
        keys += end > begin ? end - begin : 0;
        next = end > next ? end : next;
    }
    return keys;
}

/* Returns the end of the tiles of the rank to which tile `begin` belongs. */
static size_t end_of_rank(const struct tile_list *tiles, size_t begin)
{
    size_t end = begin;
    while (end < tiles->count && tiles->tile[end].rank == tiles->tile[begin].rank)
        end++;
    return end;
}

/* Returns the number of rounds in which the rank with the most keys reads about ROUND_SHARES times its own rows. The
 * tiles are in the order of compare_tiles(). */
static int64_t rounds_of(const struct tile_list *tiles, int64_t own_rows)
{
    const int64_t room = ROUND_SHARES * own_rows;
    int64_t rounds = 1;
    for (size_t i = 0, end; i < tiles->count; i = end) {
        end = end_of_rank(tiles, i);
        int64_t needs = (count_keys(&tiles->tile[i], end - i) + room - 1) / room;
        rounds = needs > rounds ? needs : rounds;
    }
    return rounds;
}

/* Adds the tiles of each rank to a list, by their keys in rounds 1, 2, ... of about equally many keys. */
static void add_in_rounds(struct tile_list *list, struct tile_list *tiles, int64_t own_rows)
{
    if (tiles->count == 0)
        return;
    qsort(tiles->tile, tiles->count, sizeof *tiles->tile, compare_tiles);
    const int64_t rounds = rounds_of(tiles, own_rows);
    for (size_t i = 0, end; i < tiles->count; i = end) {
        int64_t keys = 0, before = 0;
        end = end_of_rank(tiles, i);
        for (size_t k = i; k < end; k++)
            keys += tiles->tile[k].keys;
        for (size_t k = i; k < end; before += tiles->tile[k++].keys) {
            tiles->tile[k].round = 1 + (uint32_t)(before * rounds / keys);
            add_tile(list, tiles->tile[k]);
        }
    }
}

/* Cuts items by the owners of their keys. Own queries by own keys are round 0; the other tiles of a rank follow. */
static void add_items(struct tile_list *list, const struct move_state *m)
{
    uint32_t shares;
    struct token_share *share = deal_shares(m->deal, &shares);
    struct tile_list others = {0};
    for (size_t i = 0; i < m->items; i++) {
        const struct item *item = &m->item[i];
        const bool own = foreign_pairs(m, item->q, item->end, item->rank, 1) == 0;
        int64_t begin = 0;
        for (uint32_t k = 0; k < shares && begin < item->end; begin += share[k++].rows) {
            int64_t from = begin > item->first ? begin : item->first,
                    to = begin + share[k].rows < item->end ? begin + share[k].rows : item->end;
            const struct core_tile tile = {
                item->q, item->end - item->q, from, to - from, item->rank, 0, false};
            if (from < to)
                add_tile(own && share[k].owner == item->rank ? list : &others, tile);
        }
    }
    add_in_rounds(list, &others, deal_rows(m->deal, 0));
    free(others.tile);
    free(share);
}

static void add_moved(struct tile_list *list, struct move_state *m)
{
    m->load = heap_zalloc(m->deal->ranks, sizeof *m->load);
    find_items(m);
    balance_pairs(m);
    add_items(list, m);
    free(m->load);
    free(m->item);
}

double tile_rules_count(const struct deal_choice *choice, uint32_t ranks, int64_t tokens)
{
    const double square = (double)ranks * ranks;
    if (choice->rule == DEAL_MOVE)
        return square / 2;
    if (choice->rule == DEAL_BLOCKS)
        return pow((double)tokens / (double)choice->parameter, 2) / 2;
    for (size_t i = 0; i < ARRAY_LEN(ring_rows); i++)
        if (ring_rows[i].rule == choice->rule)
            return (ring_rows[i].backward != NULL ? 2 : 1) * 2 * square;
    return 0;
}

/* Returns the fewest tokens of a slice that moves. A rank must have several slices, or it can only give all it has. */
static int64_t grain_of(const struct deal_choice *choice, const struct token_deal *deal)
{
    const int64_t quarter = deal_rows(deal, 0) / 4 > 1 ? deal_rows(deal, 0) / 4 : 1;
    return choice->rule == DEAL_MOVE && quarter < choice->parameter ? quarter : choice->parameter;
}

struct tile_plan *tile_rules_plan(struct arena *arena, const struct deal_choice *choice,
                                  const struct document_list *documents,
                                  struct deal_windows windows, const struct row_bytes *bytes)
{
    const int64_t window = windows.share == 1 ? windows.window : 0;
    struct tile_list list = {0};
    struct move_state moving = {.documents = documents,
                                .deal = documents->deal,
                                .windows = windows,
                                .bytes = *bytes,
                                .grain = grain_of(choice, documents->deal),
                                .tolerance = choice->rule == DEAL_MOVE ? 0.02 : 0.2};
    if (choice->rule == DEAL_MOVE || choice->rule == DEAL_BLOCKS)
        add_moved(&list, &moving);
    for (size_t i = 0; i < ARRAY_LEN(ring_rows); i++)
        if (ring_rows[i].rule == choice->rule) {
            const uint32_t inner = (uint32_t)choice->parameter;
            const struct ring_row *row = &ring_rows[i];
            add_ring(&list, documents->deal, row->forward, inner, row->gathers, false);
            add_ring(&list, documents->deal, row->backward, inner, row->gathers, true);
        }
    struct tile_plan *plan =
        list.count == 0 ? NULL
                        : tile_plan_make(arena, documents->deal, documents->end, documents->count,
                                         list.tile, (uint32_t)list.count, window);
    free(list.tile);
    return plan;
}
