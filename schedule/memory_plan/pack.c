#include "schedule/memory_plan/pack.h"

#include "schedule/analysis/op_marks.h"
#include "schedule/memory_plan/pack_holes.h"

#include <stdlib.h>
#include <string.h>

/* ---- in the order of first uses ---- */

enum {
    SETTLE_EVERY = 32, /* first uses between two times that a block of holes is settled */
    AHEAD_PARTS = 16,  /* looks may be 1 part in so many of all ahead of the first uses */
};

#define NOBODY UINT32_MAX

/* Whether `looks` are more than the first `first_uses` of all may take. Holes only become more until the list is
 * in full swing: who is ahead of its share early takes too many at the end. */
static bool too_many(uint64_t looks, const uint64_t *most, uint32_t first_uses, uint32_t all)
{
    return most && (looks > *most || looks > *most / AHEAD_PARTS + *most / all * first_uses);
}

uint64_t pack_in_order(struct live_ranges *t, enum pack_fit fit, uint64_t most, uint64_t *looks)
{
    struct holes holes = {.t = t};
    struct op_marks ends = op_marks_none(t->begin, t->ops);
    uint32_t *head = heap_alloc((size_t)t->ops + 1, sizeof *head); /* who ends with a marked op */
    uint32_t *next = heap_alloc(t->count, sizeof *next);
    uint32_t now = UINT32_MAX; /* the first of the ends to come */
    bool given_up = false;
    for (uint32_t i = 0; i < t->count && holes.top <= most && !given_up; i++) {
        for (; now <= t->first_use[i]; now = op_marks_next(&ends, now + 1))
            for (uint32_t k = head[now - t->begin]; k != NOBODY; k = next[k])
                holes_give(&holes, k);
        if (i % SETTLE_EVERY == 0)
            holes_settle(&holes, t->first_use[i]);
        holes_take(&holes, i, fit);
        given_up = too_many(holes.looked, looks, i + 1, t->count);
        uint32_t end = t->first_end[i];
        if (end == LIVE_RANGES_NEVER)
            continue;
        next[i] = op_marks_add(&ends, end) ? NOBODY : head[end - t->begin];
        head[end - t->begin] = i;
        now = end < now ? end : now;
    }
    uint64_t top = given_up ? UINT64_MAX : holes.top;
    if (looks)
        *looks = holes.looked;
    holes_release(&holes);
    free(ends.bit);
    free(head);
    free(next);
    return top;
}

/* ---- the heaviest first ---- */

/* By weight, then by number: digit by digit, for the bits of what is not negative are in its order. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct weighed {
    uint64_t bits; /* of the weight, inverted */
    uint32_t live_range;
};

static void sort_by_digit(struct weighed *to, const struct weighed *from, uint32_t count,
                          uint32_t shift)
{
    uint32_t begin[DIGITS + 1] = {0};
    for (uint32_t i = 0; i < count; i++)
        begin[(from[i].bits >> shift) % DIGITS + 1]++;
    for (uint32_t d = 0; d < DIGITS; d++)
        begin[d + 1] += begin[d];
    for (uint32_t i = 0; i < count; i++)
        to[begin[(from[i].bits >> shift) % DIGITS]++] = from[i];
}

/* Heap. */
static struct weighed *heaviest_first(const double *weight, uint32_t count)
{
    struct weighed *row = heap_alloc(count, sizeof *row), *to = heap_alloc(count, sizeof *to);
    uint64_t unlike = 0;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&row[i].bits, &weight[i], sizeof row[i].bits);
        row[i].bits = ~row[i].bits;
        row[i].live_range = i;
        unlike |= row[i].bits ^ row[0].bits;
    }
    for (uint32_t shift = 0; shift < 64; shift += DIGIT_BITS) {
        if ((unlike >> shift) % DIGITS == 0)
            continue; /* low digits of sizes, most of the time */
        struct weighed *from = row;
        sort_by_digit(to, from, count, shift);
        row = to;
        to = from;
    }
    free(to);
    return row;
}

/* The placed live ranges within one part of the list, sorted by address except for the last ones. */
struct placed {
    uint32_t count, sorted;
    struct placed_row {
        uint64_t begin, end;
        uint32_t live_range;
        struct life life;
    } * row; /* room for all that will come */
};

/* All of them, and once more window by window: window i has those that live during the ops
 * i * stride .. (i + 2) * stride of the role. Who lives within a window need be compared with those in it
 * alone; most do within a small one. */
enum {
    LEVELS = 3,
    LIVE_RANGES_PER_WINDOW = 32,
    WINDOWS_MIN = 16,
    WINDOWS_MAX = 256,
    FEW = 8, /* late rows that are put in place one by one, or sorted so before they are merged */
};

struct level {
    struct placed *window;
    struct placed_row *row;
    uint32_t windows, stride; /* so many strides are the list, whose end is an end too */
};

struct all_placed {
    const struct life *life;    /* per live range */
    struct level level[LEVELS]; /* small windows first; the last one is the list */
    struct placed_row *spare;   /* as many as there are live ranges */
};

/* Puts a row in its place among those before it, which are sorted. */
static void settle_one(struct placed_row *row, uint32_t sorted)
{
    struct placed_row late = row[sorted];
    uint32_t low = 0, high = sorted;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row[middle].begin < late.begin)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(row + low + 1, row + low, (sorted - low) * sizeof late);
    row[low] = late;
}

/* Sorts rows of which the first are, and the others are. */
static void merge(struct placed_row *row, uint32_t first, uint32_t count, struct placed_row *spare)
{
    uint32_t others = count - first;
    memcpy(spare, row + first, others * sizeof *spare);
    while (others > 0) {
        if (first > 0 && row[first - 1].begin > spare[others - 1].begin)
            row[--count] = row[--first];
        else
            row[--count] = spare[--others];
    }
}

/* Puts the late rows in their places: one by one if they are few, else so many at a time. */
static void settle(struct placed *p, struct placed_row *spare)
{
    struct placed_row *late = p->row + p->sorted;
    uint32_t count = p->count - p->sorted;
    for (; count <= FEW && p->sorted < p->count; p->sorted++)
        settle_one(p->row, p->sorted);
    if (p->sorted == p->count)
        return;
    for (uint32_t i = 0; i < count; i++)
        settle_one(late + i / FEW * FEW, i % FEW);
    for (uint32_t size = FEW; size < count; size *= 2)
        for (uint32_t i = 0; i + size < count; i += 2 * size)
            merge(late + i, size, i + 2 * size < count ? 2 * size : count - i, spare);
    merge(p->row, p->sorted, p->count, spare);
    p->sorted = p->count;
}

/* The windows that a live range is in. */
struct windows {
    uint32_t low, high;
};

static struct windows windows_of(const struct level *level, const struct live_ranges *t,
                                 struct life life)
{
    uint32_t first = (life.from - t->begin) / level->stride;
    uint32_t last = (life.until - 1 - t->begin) / level->stride;
    return (struct windows){first > 0 ? first - 1 : 0,
                            last < level->windows ? last : level->windows - 1};
}

static void put(struct all_placed *all, const struct live_ranges *t, uint32_t live_range)
{
    struct placed_row row = {t->offset[live_range], t->offset[live_range] + t->size[live_range],
                             live_range, all->life[live_range]};
    for (int l = 0; l < LEVELS; l++) {
        struct windows in = windows_of(&all->level[l], t, row.life);
        for (uint32_t i = in.low; i <= in.high; i++) {
            struct placed *p = &all->level[l].window[i];
            p->row[p->count++] = row;
        }
    }
}

/* All whom it may conflict with, and some more. */
static const struct placed *placed_beside(const struct all_placed *all, const struct live_ranges *t,
                                          struct life life)
{
    struct placed *p = NULL;
    for (int l = 0; l < LEVELS && p == NULL; l++) {
        const struct level *level = &all->level[l];
        uint32_t first = (life.from - t->begin) / level->stride;
        if ((life.until - 1 - t->begin) / level->stride <= first + 1)
            p = &level->window[first];
    }
    settle(p, all->spare);
    return p;
}

/* The lowest place that no live range has who conflicts. */
static uint64_t lowest(const struct all_placed *all, const struct live_ranges *t,
                       uint32_t live_range)
{
    struct life life = all->life[live_range];
    const struct placed *p = placed_beside(all, t, life);
    uint64_t at = 0, size = t->size[live_range];
    for (const struct placed_row *row = p->row, *end = row + p->count; row < end; row++) {
        if (row->begin >= at + size)
            break; /* as are all that follow */
        if (row->end > at && row->life.until > life.from && row->life.from < life.until &&
            live_ranges_conflict(t, live_range, row->live_range))
            at = row->end;
    }
    return at;
}

static struct level level_of(const struct live_ranges *t, const struct life *life, uint32_t windows)
{
    struct level level = {heap_zalloc(windows, sizeof *level.window), NULL, windows,
                          t->ops / windows + 1};
    size_t rows = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        struct windows in = windows_of(&level, t, life[i]);
        rows += in.high - in.low + 1;
        for (uint32_t w = in.low; w <= in.high; w++)
            level.window[w].count++;
    }
    level.row = heap_alloc(rows, sizeof *level.row);
    for (uint32_t w = 0, begin = 0; w < windows; w++) {
        level.window[w].row = level.row + begin;
        begin += level.window[w].count;
        level.window[w].count = 0;
    }
    return level;
}

uint64_t pack_by_weight(struct live_ranges *t, const double *weight, uint64_t most)
{
    struct weighed *row = heaviest_first(weight, t->count);
    uint32_t small = t->count / LIVE_RANGES_PER_WINDOW;
    small = small < WINDOWS_MIN ? WINDOWS_MIN : small > WINDOWS_MAX ? WINDOWS_MAX : small;
    struct life *life = pack_lives_of(t);
    struct all_placed all = {
        .life = life,
        .level = {level_of(t, life, small), level_of(t, life, WINDOWS_MIN), level_of(t, life, 1)},
        .spare = heap_alloc(t->count, sizeof *all.spare)};
    uint64_t top = 0;
    for (uint32_t i = 0; i < t->count && top <= most; i++) {
        uint32_t live_range = row[i].live_range;
        t->offset[live_range] = lowest(&all, t, live_range);
        uint64_t end = t->offset[live_range] + t->size[live_range];
        top = end > top ? end : top;
        put(&all, t, live_range);
    }
    for (int l = 0; l < LEVELS; l++) {
        free(all.level[l].window);
        free(all.level[l].row);
    }
    free(all.spare);
    free(row);
    free(life);
    return top;
}
