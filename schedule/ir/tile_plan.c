#include "schedule/ir/tile_plan.h"

#include "base/ascending.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the runs of packed rows ---- */

/* The state while a plan is made. run, strip: the runs of the operand, and the strips of the part, that are being
 * filled. */
struct tile_plan_builder {
    const struct token_deal *deal;
    const int64_t *end; /* of each document */
    uint32_t documents;
    int64_t window;
    struct owned_run *owned_runs; /* ascending */
    uint32_t owned_run_count;
    struct plan_run *runs_being_filled;
    size_t run_count, run_capacity;
    struct plan_query_strip *strips_being_filled;
    size_t strip_count, strip_capacity;
};

/* Appends the runs of the tokens [begin, end), which are packed from `packed_row` on: one for each run of the deal that
 * has some of them. */
static void add_packed_runs(struct tile_plan_builder *m, int64_t begin, int64_t end,
                            int64_t packed_row)
{
    uint32_t low = 0, high = m->owned_run_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (m->owned_runs[middle].run->first_position <= begin)
            low = middle;
        else
            high = middle;
    }
    for (; begin < end; low++) {
        const struct token_run *o = m->owned_runs[low].run;
        int64_t o_end = o->first_position + o->row_count, until = o_end < end ? o_end : end;
        m->runs_being_filled = heap_grow(m->runs_being_filled, &m->run_capacity, m->run_count + 1,
                                         sizeof *m->runs_being_filled);
        m->runs_being_filled[m->run_count++] =
            (struct plan_run){begin, until - begin, packed_row,
                              o->first_row + (begin - o->first_position), m->owned_runs[low].owner};
        packed_row += until - begin;
        begin = until;
    }
}

/* ---- what one rank reads in one round ---- */

/* A cut: a block of queries by keys of one document, in which each query sees at least one of the keys, and each key is
 * seen by at least one of the queries. */
struct visible_block {
    int64_t query_begin, query_end, key_begin, key_end;
};
struct visible_block_list {
    struct visible_block *visible_blocks;
    size_t count, capacity;
};

/* Appends the cuts of a tile, the parts of it that the mask shows: at most one for each document. */
static void add_tile(struct visible_block_list *cuts, const struct tile_plan_builder *m,
                     const struct core_tile *tile)
{
    int64_t q = tile->first_query, q_end = tile->first_query + tile->query_count,
            k_end = tile->first_key + tile->key_count;
    uint32_t document = 0, high_document = m->documents - 1;
    while (document < high_document) { /* the document of the first query */
        uint32_t middle = document + (high_document - document) / 2;
        if (m->end[middle] > q)
            high_document = middle;
        else
            document = middle + 1;
    }
    for (; q < q_end; document++) {
        int64_t begin = document > 0 ? m->end[document - 1] : 0, last = m->end[document];
        if (last > q_end)
            last = q_end;
        int64_t low = tile->first_key > begin ? tile->first_key : begin,
                high = k_end < last ? k_end : last;
        int64_t from = q > low ? q : low, to = last, first = begin;
        if (m->window > 0 && high - 1 + m->window < to)
            to = high - 1 + m->window;
        if (m->window > 0 && from - m->window + 1 > begin)
            first = from - m->window + 1;
        if (low < first)
            low = first;
        if (high > to)
            high = to;
        if (low < high && from < to) {
            cuts->visible_blocks = heap_grow(cuts->visible_blocks, &cuts->capacity, cuts->count + 1,
                                             sizeof *cuts->visible_blocks);
            cuts->visible_blocks[cuts->count++] = (struct visible_block){from, to, low, high};
        }
        q = last;
    }
}

static int compare_queries(const void *left, const void *right)
{
    const struct visible_block *a = left, *b = right;
    return (a->query_begin > b->query_begin) - (a->query_begin < b->query_begin);
}

static int compare_keys(const void *left, const void *right)
{
    const struct visible_block *a = left, *b = right;
    return (a->key_begin > b->key_begin) - (a->key_begin < b->key_begin);
}

/* Appends the runs of the keys of all cuts, each key once, in packed order. Returns the number of keys. */
static int64_t append_key_runs_in_packed_order(struct tile_plan_builder *m,
                                               const struct visible_block_list *cuts)
{
    struct visible_block *cut = heap_alloc(cuts->count + 1, sizeof *cut);
    int64_t rows = 0, next = 0;
    if (cuts->count > 0)
        memcpy(cut, cuts->visible_blocks, cuts->count * sizeof *cut);
    qsort(cut, cuts->count, sizeof *cut, compare_keys);
    for (size_t i = 0; i < cuts->count; i++) {
        int64_t begin = cut[i].key_begin > next ? cut[i].key_begin : next;
        if (begin >= cut[i].key_end)
            continue;
        add_packed_runs(m, begin, cut[i].key_end, rows);
        rows += cut[i].key_end - begin;
        next = cut[i].key_end;
    }
    free(cut);
    return rows;
}

/* A strip that has no packed row yet. layer: the number of strips before it with the same queries. */
struct query_strip_without_packed_row {
    struct plan_query_strip strip;
    size_t layer;
};
struct strip_list {
    struct query_strip_without_packed_row *strips;
    size_t count, capacity, layer_count;
};

/* Adds the strips of the queries [q, end): one for each range of packed keys that follow each other. Each cut in
 * open[] has all of these queries. Sorts open[] by keys. */
static void add_strips(struct strip_list *strips, const struct plan_round_data_of_rank *keys,
                       struct visible_block *open, size_t count, int64_t q, int64_t end)
{
    size_t layer = 0;
    qsort(open, count, sizeof *open, compare_keys);
    for (size_t i = 0; i < count; layer++) {
        struct plan_query_strip strip = {q, end - q, 0, open[i].key_begin, open[i].key_end};
        for (i++; i < count && tile_plan_key_count_below(keys, open[i].key_begin) ==
                                   tile_plan_key_count_below(keys, strip.key_end);
             i++)
            strip.key_end = open[i].key_end;
        strips->strips =
            heap_grow(strips->strips, &strips->capacity, strips->count + 1, sizeof *strips->strips);
        strips->strips[strips->count++] = (struct query_strip_without_packed_row){strip, layer};
    }
    strips->layer_count = layer > strips->layer_count ? layer : strips->layer_count;
}

/* Finds the strips of all cuts, which are ascending in their queries. */
static void find_strips(struct strip_list *strips, const struct plan_round_data_of_rank *keys,
                        const struct visible_block_list *cuts)
{
    int64_t *edge = heap_alloc(2 * cuts->count + 1, sizeof *edge);
    struct visible_block *open = heap_alloc(cuts->count + 1, sizeof *open),
                         *now = heap_alloc(cuts->count + 1, sizeof *now);
    size_t count = 0, next = 0;
    for (size_t i = 0; i < cuts->count; i++) {
        edge[2 * i] = cuts->visible_blocks[i].query_begin;
        edge[2 * i + 1] = cuts->visible_blocks[i].query_end;
    }
    qsort(edge, 2 * cuts->count, sizeof *edge, ascending_i64);
    for (size_t e = 0; e + 1 < 2 * cuts->count; e++) {
        size_t kept = 0;
        if (edge[e] == edge[e + 1])
            continue;
        for (size_t i = 0; i < count; i++)
            if (open[i].query_end > edge[e])
                open[kept++] = open[i];
        for (count = kept; next < cuts->count && cuts->visible_blocks[next].query_begin <= edge[e];
             next++)
            open[count++] = cuts->visible_blocks[next];
        memcpy(now, open, count * sizeof *now);
        add_strips(strips, keys, now, count, edge[e], edge[e + 1]);
    }
    free(edge);
    free(open);
    free(now);
}

/* Gives the queries of the strips their packed rows, one layer of strips after another, and returns the number of
 * rows. */
static int64_t assign_packed_query_rows(struct tile_plan_builder *m,
                                        const struct strip_list *strips)
{
    int64_t rows = 0;
    for (size_t layer = 0; layer < strips->layer_count; layer++)
        for (size_t i = 0; i < strips->count; i++) {
            struct plan_query_strip strip = strips->strips[i].strip;
            if (strips->strips[i].layer != layer)
                continue;
            strip.packed_row = rows;
            m->strips_being_filled = heap_grow(m->strips_being_filled, &m->strip_capacity,
                                               m->strip_count + 1, sizeof *m->strips_being_filled);
            m->strips_being_filled[m->strip_count++] = strip;
            add_packed_runs(m, strip.first_query, strip.first_query + strip.query_count, rows);
            rows += strip.query_count;
        }
    return rows;
}

/* Fills *part for a rank that has tile[tiles] in a round. */
static void fill_plan_part(struct arena *arena, struct tile_plan_builder *m,
                           struct plan_round_data_of_rank *part, const struct core_tile *tile,
                           size_t tiles)
{
    struct visible_block_list cuts = {0};
    struct strip_list strips = {0};
    for (size_t i = 0; i < tiles; i++)
        add_tile(&cuts, m, &tile[i]);
    if (cuts.count > 0)
        qsort(cuts.visible_blocks, cuts.count, sizeof *cuts.visible_blocks, compare_queries);
    m->strip_count = 0;
    for (int what = 0; what < PLAN_OPERANDS && cuts.count > 0; what++) {
        m->run_count = 0;
        if (what == PLAN_QUERIES)
            find_strips(&strips, part, &cuts);
        part->of[what].rows = what == PLAN_KEYS ? append_key_runs_in_packed_order(m, &cuts)
                                                : assign_packed_query_rows(m, &strips);
        struct plan_run *run = arena_array(arena, m->run_count, sizeof *run);
        memcpy(run, m->runs_being_filled, m->run_count * sizeof *run);
        part->of[what].run = run;
        part->of[what].run_count = (uint32_t)m->run_count;
    }
    struct plan_query_strip *strip = arena_array(arena, m->strip_count, sizeof *strip);
    if (m->strip_count > 0)
        memcpy(strip, m->strips_being_filled, m->strip_count * sizeof *strip);
    part->strip = strip;
    part->strip_count = (uint32_t)m->strip_count;
    free(strips.strips);
    free(cuts.visible_blocks);
}

/* ---- the plan ---- */

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Sets room[what] for each operand of a round: the most rows that any of the ranks has, from their parts,
 * part[ranks]. */
static void fill_max_rows_of_round(struct max_rows_of_any_rank_in_round *room,
                                   const struct plan_round_data_of_rank *part, uint32_t ranks)
{
    int64_t *sent = heap_alloc(ranks, sizeof *sent);
    for (int what = 0; what < PLAN_OPERANDS; what++) {
        memset(sent, 0, ranks * sizeof *sent);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            int64_t received = 0;
            for (uint32_t i = 0; i < part[rank].of[what].run_count; i++) {
                const struct plan_run *run = &part[rank].of[what].run[i];
                if (run->owner == rank)
                    continue;
                received += run->row_count;
                sent[run->owner] += run->row_count;
            }
            room[what].received_rows = max_i64(room[what].received_rows, received);
            room[what].packed_rows = max_i64(room[what].packed_rows, part[rank].of[what].rows);
        }
        for (uint32_t rank = 0; rank < ranks; rank++)
            room[what].sent_rows = max_i64(room[what].sent_rows, sent[rank]);
    }
    free(sent);
}

static int compare_tiles(const void *left, const void *right)
{
    const struct core_tile *a = left, *b = right;
    if (a->is_backward_tile != b->is_backward_tile)
        return a->is_backward_tile ? 1 : -1;
    if (a->round != b->round)
        return a->round > b->round ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

struct tile_plan *tile_plan_make(struct arena *arena, const struct token_deal *deal,
                                 const int64_t *end, uint32_t documents,
                                 const struct core_tile *tile, uint32_t tiles, int64_t window)
{
    struct tile_plan *plan = arena_array(arena, 1, sizeof *plan);
    struct core_tile *copy = arena_array(arena, tiles, sizeof *copy),
                     *sorted = heap_alloc(tiles + (size_t)1, sizeof *sorted);
    struct tile_plan_builder making = {
        .deal = deal, .end = end, .documents = documents, .window = window};
    const uint32_t ranks = deal->rank_count;
    if (window >= end[documents - 1]) /* it hides nothing */
        window = making.window = 0;
    memcpy(copy, tile, tiles * sizeof *copy);
    memcpy(sorted, tile, tiles * sizeof *sorted);
    qsort(sorted, tiles, sizeof *sorted, compare_tiles);
    *plan = (struct tile_plan){
        .tile = copy, .tile_count = tiles, .window = window, .rank_count = ranks};
    for (uint32_t i = 0; i < tiles; i++) {
        uint32_t *rounds = &plan->round_count[tile[i].is_backward_tile];
        *rounds = tile[i].round + 1 > *rounds ? tile[i].round + 1 : *rounds;
        plan->has_backward_tiles |= tile[i].is_backward_tile;
    }
    const size_t rounds =
        (size_t)plan->round_count[PLAN_FORWARD] + plan->round_count[PLAN_BACKWARD];
    struct plan_round_data_of_rank *part = arena_array(arena, rounds * ranks, sizeof *part);
    struct max_rows_of_any_rank_in_round *room =
        arena_array(arena, rounds * PLAN_OPERANDS, sizeof *room);
    making.owned_runs = deal_runs_sorted_by_position(deal);
    making.owned_run_count = deal->first_run[deal->rank_count];
    for (uint32_t i = 0, next; i < tiles; i = next) {
        for (next = i + 1; next < tiles && compare_tiles(&sorted[i], &sorted[next]) == 0;)
            next++;
        size_t round =
            sorted[i].round + (sorted[i].is_backward_tile ? plan->round_count[PLAN_FORWARD] : 0);
        fill_plan_part(arena, &making, &part[round * ranks + sorted[i].rank], &sorted[i], next - i);
    }
    for (size_t round = 0; round < rounds; round++)
        fill_max_rows_of_round(&room[round * PLAN_OPERANDS], &part[round * ranks], ranks);
    plan->part = part;
    plan->max_rows_by_round = room;
    if (!plan->has_backward_tiles)
        plan->round_count[PLAN_BACKWARD] = plan->round_count[PLAN_FORWARD];
    free(making.owned_runs);
    free(making.runs_being_filled);
    free(making.strips_being_filled);
    free(sorted);
    return plan;
}

static bool tiles_are_equal(const struct core_tile *a, const struct core_tile *b)
{
    return a->first_query == b->first_query && a->query_count == b->query_count &&
           a->first_key == b->first_key && a->key_count == b->key_count && a->rank == b->rank &&
           a->round == b->round && a->is_backward_tile == b->is_backward_tile;
}

bool tile_plan_is_equal(const struct tile_plan *a, const struct tile_plan *b)
{
    if (a == NULL || b == NULL || a == b)
        return a == b;
    bool equal = a->tile_count == b->tile_count && a->window == b->window;
    for (uint32_t i = 0; equal && i < a->tile_count; i++)
        equal = tiles_are_equal(&a->tile[i], &b->tile[i]);
    return equal;
}

/* Returns the index of a round in plan->part and plan->capacity, which have the rounds of the forward and then the
 * backward's own, if it has any. */
static size_t index_of_round_and_pass(const struct tile_plan *plan, enum plan_pass pass,
                                      uint32_t round)
{
    return round + (pass == PLAN_BACKWARD && plan->has_backward_tiles
                        ? plan->round_count[PLAN_FORWARD]
                        : 0);
}

const struct plan_round_data_of_rank *
tile_plan_part(const struct tile_plan *plan, enum plan_pass pass, uint32_t round, uint32_t rank)
{
    assert(round < plan->round_count[pass] && rank < plan->rank_count);
    return &plan->part[index_of_round_and_pass(plan, pass, round) * plan->rank_count + rank];
}

struct max_rows_of_any_rank_in_round tile_plan_max_rows_of_any_rank(const struct tile_plan *plan,
                                                                    enum plan_pass pass,
                                                                    uint32_t round,
                                                                    enum plan_keys_or_queries what)
{
    if (round >= plan->round_count[pass])
        return (struct max_rows_of_any_rank_in_round){0};
    return plan
        ->max_rows_by_round[index_of_round_and_pass(plan, pass, round) * PLAN_OPERANDS + what];
}

int64_t tile_plan_key_count_below(const struct plan_round_data_of_rank *part, int64_t position)
{
    const struct plan_run *run = part->of[PLAN_KEYS].run;
    uint32_t low = 0, high = part->of[PLAN_KEYS].run_count;
    while (low < high) { /* the first run that begins at the position or later */
        uint32_t middle = low + (high - low) / 2;
        if (run[middle].first_position < position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    int64_t in_run = position - run[low - 1].first_position;
    return run[low - 1].packed_row +
           (in_run < run[low - 1].row_count ? in_run : run[low - 1].row_count);
}

int64_t tile_plan_row_count_of_owner(const struct plan_round_data_of_rank *part,
                                     enum plan_keys_or_queries what, uint32_t owner)
{
    int64_t rows = 0;
    for (uint32_t i = 0; i < part->of[what].run_count; i++)
        rows += part->of[what].run[i].owner == owner ? part->of[what].run[i].row_count : 0;
    return rows;
}
