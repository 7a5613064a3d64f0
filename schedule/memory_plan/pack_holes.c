#include "schedule/memory_plan/pack_holes.h"

#include <stdlib.h>
#include <string.h>

#define ANYBODY UINT32_MAX

struct hole {
    uint64_t begin, end;
    uint32_t last;  /* the live range that had them; ANYBODY: open to all */
    uint32_t until; /* from this op on they are open to all */
};

/* Holes lo .. hi, whether they are open or not. A chain is of neighbours without anything between. */
struct chains {
    uint64_t lo, hi;
    uint64_t first, last; /* bytes of the chain that begins at lo, and of the one that ends at hi */
    uint64_t most;        /* bytes of the longest; 0: there are no holes */
};

enum {
    BLOCK_ROWS = 128,
    CLASSES_MAX = 8, /* of which blocks know from when on all of their holes are open */
};

struct hole_block {
    uint32_t count;
    struct hole row[BLOCK_ROWS];
    uint32_t
        open_from[CLASSES_MAX]; /* no hole is closed to first uses of the class from this op on */

    /* where there are several blocks: */
    struct chains chains;
    uint32_t chain_count;
    uint8_t chain_row[BLOCK_ROWS]; /* the first of each */
    uint64_t chain_bytes[BLOCK_ROWS];
};

/* ---- what lies together ---- */

static bool is_one(const struct chains *c)
{
    return c->first == c->hi - c->lo;
}

static struct chains side_by_side(const struct chains *a, const struct chains *b)
{
    if (a->most == 0 || b->most == 0)
        return a->most == 0 ? *b : *a;
    uint64_t most = a->most > b->most ? a->most : b->most;
    if (a->hi != b->lo)
        return (struct chains){a->lo, b->hi, a->first, b->last, most};
    uint64_t joined = a->last + b->first;
    return (struct chains){a->lo, b->hi, is_one(a) ? joined : a->first,
                           is_one(b) ? joined : b->last, joined > most ? joined : most};
}

static void find_chains(struct hole_block *block)
{
    uint32_t chain = 0;
    uint64_t begin = block->row[0].begin, end = begin, most = 0;
    block->chain_row[0] = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        const struct hole *hole = &block->row[i];
        if (hole->begin != end) {
            block->chain_bytes[chain++] = end - begin;
            block->chain_row[chain] = (uint8_t)i;
            begin = hole->begin;
        }
        end = hole->end;
        most = end - begin > most ? end - begin : most;
    }
    block->chain_bytes[chain] = end - begin;
    block->chain_count = chain + 1;
    block->chains =
        (struct chains){block->row[0].begin, end, block->chain_bytes[0], end - begin, most};
}

static void sum_up(struct holes *h, uint32_t node)
{
    h->tree[node] = side_by_side(&h->tree[2 * node], &h->tree[2 * node + 1]);
}

/* A block's holes have changed. */
static void refresh(struct holes *h, uint32_t block)
{
    if (h->blocks < 2)
        return;
    find_chains(h->block[block]);
    h->tree[h->leaves + block] = h->block[block]->chains;
    for (uint32_t node = (h->leaves + block) / 2; node > 0; node /= 2)
        sum_up(h, node);
}

/* Blocks have come or gone from block `from` on. */
static void rebuild(struct holes *h, uint32_t from)
{
    if (h->blocks < 2) {
        h->leaves = 0; /* whatever comes next is built anew */
        return;
    }
    if (h->leaves < h->blocks) {
        for (h->leaves = 2; h->leaves < h->capacity; h->leaves *= 2) {
        }
        free(h->tree);
        h->tree = heap_zalloc((size_t)h->leaves * 2, sizeof *h->tree);
        from = 0;
    }
    for (uint32_t i = from; i < h->leaves; i++)
        h->tree[h->leaves + i] = i < h->blocks ? h->block[i]->chains : (struct chains){0};
    for (uint32_t low = (h->leaves + from) / 2, high = h->leaves; low > 0; low /= 2, high /= 2)
        for (uint32_t node = low; node < high; node++)
            sum_up(h, node);
}

/* The first block, `from` or one behind it, in which `size` bytes lie together that begin in or behind
 * `from`; `blocks`: there is none. */
static uint32_t block_with(const struct holes *h, uint32_t from, uint64_t size)
{
    struct chains before = {0};
    uint32_t node = h->leaves + from;
    for (;;) {
        struct chains with = side_by_side(&before, &h->tree[node]);
        if (with.most >= size && node >= h->leaves)
            return node - h->leaves;
        if (with.most >= size) {
            node *= 2;
            continue;
        }
        before = with;
        while (node % 2 == 1 && node > 1)
            node /= 2;
        if (node == 1)
            return h->blocks;
        node++;
    }
}

/* ---- blocks ---- */

static void add_block(struct holes *h, uint32_t at)
{
    if (h->blocks == h->capacity) {
        h->capacity = (uint32_t)heap_next_capacity(h->capacity, (size_t)h->blocks + 1);
        h->block = heap_realloc(h->block, h->capacity, sizeof(struct hole_block *));
    }
    memmove(h->block + at + 1, h->block + at, (h->blocks - at) * sizeof(struct hole_block *));
    h->block[at] = heap_zalloc(1, sizeof **h->block);
    h->blocks++;
}

static void remove_blocks(struct holes *h, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        free(h->block[i]);
    memmove(h->block + begin, h->block + end, (h->blocks - end) * sizeof(struct hole_block *));
    h->blocks -= end - begin;
}

void holes_release(struct holes *h)
{
    for (uint32_t i = 0; i < h->blocks; i++)
        free(h->block[i]);
    free(h->block);
    free(h->tree);
    *h = (struct holes){0};
}

static void note_ends(struct hole_block *block, const struct live_ranges *t, uint32_t live_range)
{
    const uint32_t *end = live_ranges_ends(t, live_range);
    for (uint32_t c = 0; c < t->classes && c < CLASSES_MAX; c++)
        block->open_from[c] = end[c] > block->open_from[c] ? end[c] : block->open_from[c];
}

/* Opens to all what every first use from now on may take, and joins neighbours. */
static void settle(struct hole_block *block, const struct live_ranges *t, uint32_t now)
{
    uint32_t kept = 0;
    memset(block->open_from, 0, sizeof block->open_from);
    for (uint32_t i = 0; i < block->count; i++) {
        struct hole hole = block->row[i];
        if (hole.until <= now)
            hole.last = ANYBODY;
        else
            note_ends(block, t, hole.last);
        struct hole *left = kept > 0 ? &block->row[kept - 1] : NULL;
        if (left && hole.last == ANYBODY && left->last == ANYBODY && left->end == hole.begin)
            left->end = hole.end;
        else
            block->row[kept++] = hole;
    }
    block->count = kept;
}

void holes_settle(struct holes *h, uint32_t now)
{
    if (h->blocks == 0)
        return;
    uint32_t at = h->settled++ % h->blocks;
    struct hole_block *block = h->block[at];
    settle(block, h->t, now);
    if (h->blocks > 1)
        find_chains(block);
    const struct hole_block *next = at + 1 < h->blocks ? h->block[at + 1] : NULL;
    if (next == NULL || block->count + next->count > BLOCK_ROWS / 2)
        return;
    memcpy(block->row + block->count, next->row, next->count * sizeof *next->row);
    block->count += next->count;
    for (uint32_t c = 0; c < CLASSES_MAX; c++)
        if (next->open_from[c] > block->open_from[c])
            block->open_from[c] = next->open_from[c];
    find_chains(block);
    remove_blocks(h, at + 1, at + 2);
    rebuild(h, at);
}

/* ---- giving ---- */

/* The block that holds what begins at an address. */
static uint32_t block_at(const struct holes *h, uint64_t begin)
{
    uint32_t low = 0, high = h->blocks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (h->tree[h->leaves + middle].lo <= begin)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint32_t row_at(const struct hole_block *block, uint64_t begin)
{
    uint32_t low = 0, high = block->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (block->row[middle].begin < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void split(struct holes *h, uint32_t at)
{
    add_block(h, at + 1);
    struct hole_block *left = h->block[at], *right = h->block[at + 1];
    right->count = left->count / 2;
    left->count -= right->count;
    memcpy(right->row, left->row + left->count, right->count * sizeof *right->row);
    memcpy(right->open_from, left->open_from, sizeof left->open_from);
    find_chains(left);
    find_chains(right);
    rebuild(h, at);
}

void holes_give(struct holes *h, uint32_t live_range)
{
    uint64_t begin = h->t->offset[live_range];
    if (h->blocks == 0)
        add_block(h, 0);
    uint32_t at = block_at(h, begin);
    if (h->block[at]->count == BLOCK_ROWS) {
        split(h, at);
        at = block_at(h, begin);
    }
    struct hole_block *block = h->block[at];
    uint32_t row = row_at(block, begin);
    memmove(block->row + row + 1, block->row + row, (block->count - row) * sizeof *block->row);
    block->row[row] = (struct hole){begin, begin + h->t->size[live_range], live_range,
                                    h->t->last_end[live_range]};
    block->count++;
    note_ends(block, h->t, live_range);
    refresh(h, at);
}

/* ---- taking ---- */

/* Neighbouring holes that are open to a first use. */
struct run {
    uint32_t block, row; /* of the first */
    uint64_t begin, end;
};

/* The first uses of a class from an op on: which holes are open to them? */
struct asker {
    const uint32_t *end; /* of the class: end[live_range * classes] */
    uint32_t classes, class, first_use;
};

static inline bool all_open(struct asker a, const struct hole_block *block)
{
    return a.class < CLASSES_MAX && block->open_from[a.class] <= a.first_use;
}

static inline bool is_open(struct asker a, const struct hole *hole)
{
    return hole->until <= a.first_use || a.end[(size_t)hole->last * a.classes] <= a.first_use;
}

/* Remembers a run that has fewer bytes than all before, and enough. */
static inline void prefer(struct run *best, uint64_t *best_bytes, const struct run *run,
                          uint64_t size)
{
    uint64_t bytes = run->end - run->begin;
    if (bytes - size >= *best_bytes - size) /* less than size wraps round to more */
        return;
    *best = *run;
    *best_bytes = bytes;
}

/* Goes through block `at`, whose holes are all open, and prefers the tightest; *run: what is open up to it, and then
 * at its end. Returns how many holes were looked at. */
static uint32_t go_through(const struct hole_block *block, uint32_t at, uint64_t size,
                           struct run *run, struct run *best, uint64_t *best_bytes)
{
    const uint64_t *bytes = block->chain_bytes;
    const uint8_t *row = block->chain_row;
    uint32_t last = block->chain_count - 1, chain = 0, tightest = 0;
    if (block->row[0].begin == run->end) {
        run->end += bytes[chain++];
        if (chain > last)
            return block->count;
    }
    prefer(best, best_bytes, run, size);
    if (*best_bytes <= size)
        return row[chain] + 1u;
    bool found = false;
    uint64_t least = *best_bytes;
    for (; chain < last && least > size; chain++)
        if (bytes[chain] - size < least - size) {
            least = bytes[chain];
            tightest = chain;
            found = true;
        }
    if (found) {
        uint64_t begin = block->row[row[tightest]].begin;
        *best = (struct run){at, row[tightest], begin, begin + least};
        *best_bytes = least;
    }
    if (least <= size)
        return row[tightest + 1] + 1u;
    uint64_t begin = block->row[row[last]].begin;
    *run = (struct run){at, row[last], begin, begin + bytes[last]};
    return block->count;
}

/* Where to look for a run of `size` bytes that begins in block `from` or behind it; `blocks`: nowhere.
 * *known: the block behind the one in which that many lie together; no run that ends before it is as long. */
static uint32_t look_from(const struct holes *h, uint32_t from, uint64_t size, uint32_t *known)
{
    const struct chains *leaf = h->tree + h->leaves;
    uint32_t at = block_with(h, from, size);
    *known = at + 1;
    bool begins = at == h->blocks;
    while (!begins && at > from && leaf[at - 1].hi == leaf[at].lo)
        begins = !is_one(&leaf[--at]);
    return at;
}

/* The lowest run of `size` bytes that are open, or the one of fewest bytes. False: there is none. Inlined
 * once for each fit. An empty run ends at 0, where nothing begins but the first hole. */
static inline bool find_run(struct holes *h, struct asker a, uint64_t size, enum pack_fit fit,
                            struct run *best)
{
    struct run run = {0};
    uint64_t best_bytes = UINT64_MAX;
    uint32_t known = h->blocks == 1 ? 1 : 0;
    for (uint32_t b = 0; b < h->blocks && best_bytes > size; b++) {
        if (b >= known && h->block[b]->row[0].begin != run.end)
            b = look_from(h, b, size, &known);
        if (b == h->blocks)
            break;
        if (fit == PACK_TIGHTEST && h->blocks > 1 && all_open(a, h->block[b])) {
            h->looked += go_through(h->block[b], b, size, &run, best, &best_bytes);
            continue;
        }
        const struct hole *hole = h->block[b]->row;
        uint32_t count = h->block[b]->count, i = 0;
        for (; i < count && best_bytes > size; i++) {
            bool open = is_open(a, &hole[i]);
            if (!open || hole[i].begin != run.end) {
                if (fit == PACK_TIGHTEST)
                    prefer(best, &best_bytes, &run, size);
                run = open ? (struct run){b, i, hole[i].begin, 0} : (struct run){0};
            }
            if (!open)
                continue;
            run.end = hole[i].end;
            if (fit == PACK_LOWEST && run.end - run.begin >= size) {
                *best = run;
                h->looked += i + 1;
                return true;
            }
        }
        h->looked += i;
    }
    if (fit == PACK_TIGHTEST)
        prefer(best, &best_bytes, &run, size);
    return best_bytes != UINT64_MAX;
}

/* What lies open below the top. */
static struct run below_top(const struct holes *h, struct asker a)
{
    struct run run = {h->blocks, 0, h->top, h->top};
    for (uint32_t b = h->blocks; b-- > 0;) {
        const struct hole *hole = h->block[b]->row;
        for (uint32_t i = h->block[b]->count; i-- > 0;) {
            if (hole[i].end != run.begin || !is_open(a, &hole[i]))
                return run;
            run = (struct run){b, i, hole[i].begin, h->top};
        }
    }
    return run;
}

/* Takes `size` bytes from the start of a run; what is missing is taken from the top. */
static void take_run(struct holes *h, struct run run, uint64_t size)
{
    uint64_t end = run.begin + size;
    uint32_t at = run.block, row = run.row, gone_from = UINT32_MAX, gone_to = 0;
    for (bool done = false; at < h->blocks && !done; at++, row = 0) {
        struct hole_block *block = h->block[at];
        uint32_t from = row;
        while (from < block->count && block->row[from].end <= end)
            from++;
        done = from < block->count;
        if (done && block->row[from].begin < end)
            block->row[from].begin = end;
        memmove(block->row + row, block->row + from, (block->count - from) * sizeof *block->row);
        block->count -= from - row;
        if (block->count > 0) {
            refresh(h, at);
            continue;
        }
        gone_from = gone_from < at ? gone_from : at;
        gone_to = at + 1;
    }
    if (gone_from < gone_to) {
        remove_blocks(h, gone_from, gone_to);
        rebuild(h, gone_from);
    }
    h->top = end > h->top ? end : h->top;
}

void holes_take(struct holes *h, uint32_t live_range, enum pack_fit fit)
{
    struct live_ranges *t = h->t;
    uint64_t size = t->size[live_range];
    struct asker a = {t->end + t->class_of[live_range], t->classes, t->class_of[live_range],
                      t->first_use[live_range]};
    struct run run;
    bool found = fit == PACK_LOWEST ? find_run(h, a, size, PACK_LOWEST, &run)
                                    : find_run(h, a, size, PACK_TIGHTEST, &run);
    if (!found)
        run = below_top(h, a);
    take_run(h, run, size);
    t->offset[live_range] = run.begin;
}
