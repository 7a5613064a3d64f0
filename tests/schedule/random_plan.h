/* tests/schedule/random_plan.h: random core plans as text, and plans of which one field is changed. */
#ifndef TESTS_SCHEDULE_RANDOM_PLAN_H
#define TESTS_SCHEDULE_RANDOM_PLAN_H

#include "schedule/core_plan/core_plan.h"
#include "tests/check.h"

enum { PLAN_TOKENS_MAX = 48, PLAN_RANKS_MAX = 4 };

/* Cuts a tile at random, and writes a row for each part with a random rank and round. tile: first query, number of
 * queries, first key, number of keys. what: the kind of the rows, "tile" or "btile". */
static inline void plan_write_cut_tiles(struct text *text, struct check_random *random,
                                        int sequence, const char *what, uint32_t ranks,
                                        const int64_t tile[4])
{
    const int64_t rows = tile[1], keys = tile[3];
    for (int axis = 0; axis < 2; axis++) {
        const int64_t size = axis ? keys : rows;
        if (size < 2 || check_random_i64(random, 0, axis ? 2 : 3) == 0)
            continue;
        const int64_t cut = check_random_i64(random, 1, size - 1);
        const int64_t of_queries[2][4] = {{tile[0], cut, tile[2], keys},
                                          {tile[0] + cut, rows - cut, tile[2], keys}};
        const int64_t of_keys[2][4] = {{tile[0], rows, tile[2], cut},
                                       {tile[0], rows, tile[2] + cut, keys - cut}};
        for (int part = 0; part < 2; part++)
            plan_write_cut_tiles(text, random, sequence, what, ranks,
                                 axis ? of_keys[part] : of_queries[part]);
        return;
    }
    text_printf(text, "%d,%s,%d,%d,%d,%d,%d,%d\n", sequence, what, (int)tile[0], (int)tile[1],
                (int)tile[2], (int)tile[3], (int)check_random_i64(random, 0, ranks - 1),
                (int)check_random_i64(random, 0, 2));
}

/* Writes the rows of a sequence of ranks * own tokens, of which each rank owns `own`. Its documents, owners and tiles
 * are random, and legal. */
static inline void plan_write_sequence(struct text *text, struct check_random *random, int sequence,
                                       uint32_t ranks, int64_t own)
{
    const int64_t tokens = own * ranks, all[4] = {0, tokens, 0, tokens};
    int64_t unassigned_tokens[PLAN_RANKS_MAX];
    for (int64_t at = 0, rows; at < tokens; at += rows) {
        rows = check_random_i64(random, 1, tokens - at);
        text_printf(text, "%d,document,%d,%d,,,,\n", sequence, (int)at, (int)rows);
    }
    for (uint32_t r = 0; r < ranks; r++)
        unassigned_tokens[r] = own;
    for (int64_t at = 0, rows; at < tokens; at += rows) {
        uint32_t owner = (uint32_t)check_random_i64(random, 0, ranks - 1);
        while (unassigned_tokens[owner] == 0)
            owner = (owner + 1) % ranks;
        rows = check_random_i64(random, 1, unassigned_tokens[owner]);
        unassigned_tokens[owner] -= rows;
        text_printf(text, "%d,own,%d,%d,,,%d,\n", sequence, (int)at, (int)rows, (int)owner);
    }
    if (check_random_i64(random, 0, 4) == 0)
        return;
    plan_write_cut_tiles(text, random, sequence, "tile", ranks, all);
    if (check_random_i64(random, 0, 2) == 0)
        plan_write_cut_tiles(text, random, sequence, "btile", ranks, all);
}

/* Writes the first lines of a plan, and its first sequence. window: the window that the first line states; 0: none. */
static inline void plan_write_random(struct text *text, struct check_random *random, uint32_t ranks,
                                     int64_t own, int64_t window)
{
    text_printf(text, "core plan 1 ranks=%d", (int)ranks);
    if (window > 0)
        text_printf(text, " window=%d", (int)window);
    text_puts(text, "\nsequence,what,begin,rows,key,keys,rank,round\n");
    plan_write_sequence(text, random, 0, ranks, own);
}

/* Changes one field of one run or tile of the plan's first sequence. */
static inline void plan_change_one_field(struct core_plan *plan, struct check_random *random)
{
    struct core_sequence *s = &plan->sequence[0];
    int64_t by = check_random_i64(random, 0, 1) ? 1 : -1;
    if (s->tile_count == 0 || check_random_i64(random, 0, 3) == 0) {
        struct core_token_run *run =
            &s->run[check_random_i64(random, 0, (int64_t)s->run_count - 1)];
        switch (check_random_i64(random, 0, 2)) {
        case 0:
            run->begin += run->begin + by < 0 ? 1 : by;
            break;
        case 1:
            run->rows += run->rows + by < 1 ? 1 : by;
            break;
        default:
            run->owner = (run->owner + 1) % plan->rank_count;
        }
        return;
    }
    struct core_tile *tile = &s->tile[check_random_i64(random, 0, (int64_t)s->tile_count - 1)];
    switch (check_random_i64(random, 0, 5)) {
    case 0:
        tile->first_query += tile->first_query + by < 0 ? 1 : by;
        break;
    case 1:
        tile->query_count += tile->query_count + by < 1 ? 1 : by;
        break;
    case 2:
        tile->first_key += tile->first_key + by < 0 ? 1 : by;
        break;
    case 3:
        tile->key_count += tile->key_count + by < 1 ? 1 : by;
        break;
    case 4:
        tile->rank = (tile->rank + 1) % plan->rank_count;
        break;
    default:
        tile->round++;
    }
}

#endif
