/* The longest lives first. Bytes that are taken for long stand below those that come and go. */
#include "schedule/passes/pack.h"

#include <stdlib.h>
#include <string.h>

/* ---- when nobody conflicts any more ---- */

enum { WORD = 64 };

/* Ops with births of a class, as bits, and the last one before each word. */
struct birth_bits {
    uint64_t *bit;    /* (classes, words) */
    uint32_t *before; /* (classes, words): how many ops of the list end with it; 0: there is none */
    uint32_t words;
};

static struct birth_bits births_as_bits(const struct tenants *t)
{
    struct birth_bits b = {.words = t->ops / WORD + 1};
    b.bit = heap_zalloc((size_t)b.words * t->classes, sizeof *b.bit);
    b.before = heap_alloc((size_t)b.words * t->classes, sizeof *b.before);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t op = t->birth[i] - t->begin;
        b.bit[(size_t)t->class_of[i] * b.words + op / WORD] |= UINT64_C(1) << op % WORD;
    }
    for (uint32_t c = 0; c < t->classes; c++) {
        uint32_t last = 0;
        for (uint32_t w = 0; w < b.words; w++) {
            uint64_t bits = b.bit[(size_t)c * b.words + w];
            b.before[(size_t)c * b.words + w] = last;
            if (bits != 0)
                last = w * WORD + WORD - (uint32_t)__builtin_clzll(bits);
        }
    }
    return b;
}

/* How many ops of the list end with the last birth of a class before op `end`. */
static uint32_t last_birth(const struct birth_bits *b, uint32_t c, uint32_t end)
{
    size_t word = (size_t)c * b->words + end / WORD;
    uint64_t bits = b->bit[word] & ((UINT64_C(1) << end % WORD) - 1);
    return bits != 0 ? end / WORD * WORD + WORD - (uint32_t)__builtin_clzll(bits) : b->before[word];
}

/* Classes of few births say little about when they may take bytes: hardly anything is ordered before
 * them. Their tenants are in everybody's way, and the lives of others do not ask for them. */
enum { FEW_PARTS = 128 };

static void find_rare(const struct tenants *t, bool *rare)
{
    uint32_t *births = heap_zalloc(t->classes, sizeof *births);
    for (uint32_t i = 0; i < t->count; i++)
        births[t->class_of[i]]++;
    for (uint32_t c = 0; c < t->classes; c++)
        rare[c] = births[c] < t->count / FEW_PARTS;
    free(births);
}

/* A life ends behind the last conflict with a later birth, which is sooner than the last end where births
 * of a class are far between. */
static struct life life_of(const struct tenants *t, const struct birth_bits *bits, uint32_t i,
                           const bool *rare)
{
    const uint32_t *end = tenants_ends(t, i);
    uint32_t last = t->birth[i] + 1;
    for (uint32_t c = 0; c < t->classes; c++) {
        if (end[c] <= last || (rare && rare[c]))
            continue;
        uint32_t behind = end[c] - t->begin < t->ops ? end[c] - t->begin : t->ops;
        uint32_t op = t->begin + last_birth(bits, c, behind);
        last = op > last ? op : last;
    }
    return (struct life){t->birth[i], last};
}

struct life *pack_lives_of(const struct tenants *t)
{
    struct life *life = heap_alloc(t->count, sizeof *life);
    struct birth_bits bits = births_as_bits(t);
    for (uint32_t i = 0; i < t->count; i++)
        life[i] = life_of(t, &bits, i, NULL);
    free(bits.bit);
    free(bits.before);
    return life;
}

/* The same, but for those of rare classes. */
static struct life *lives_of_most(const struct tenants *t)
{
    struct life *life = heap_alloc(t->count, sizeof *life);
    struct birth_bits bits = births_as_bits(t);
    bool *rare = heap_alloc(t->classes, sizeof *rare);
    find_rare(t, rare);
    for (uint32_t i = 0; i < t->count; i++)
        life[i] = rare[t->class_of[i]] ? (struct life){t->begin, t->begin + t->ops}
                                       : life_of(t, &bits, i, rare);
    free(rare);
    free(bits.bit);
    free(bits.before);
    return life;
}

/* ---- who is placed ---- */

/* Tenants that live for at most `stride` ops, in windows: window i has those that live during the ops
 * i * stride .. (i + 2) * stride, by address. Who is born in stride i and lives no longer than that
 * finds all of these that it conflicts with in window i. */
struct lives {
    uint32_t stride;
    uint32_t *first; /* per window, and behind the last: its room in `row` */
    uint32_t *count; /* per window: rows that are there */
    struct placed_life {
        uint64_t begin, end;
        uint32_t tenant;
        struct life life;
    } * row;
};

enum { LENGTHS = 5, BIRTHS_PER_STRIDE = 16 };
static const uint32_t longer[] = {
    [PACK_COARSE] = 8, [PACK_FINE] = 4}; /* from one length to the next */

struct board {
    const struct tenants *t;
    const struct life *life;
    struct lives lives[LENGTHS];  /* the last ones as long as the list; */
    struct lives longest;         /* these again, in windows for whoever lives shorter */
    struct lives firsts[LENGTHS]; /* of any length, in windows for askers of each */
};

static uint8_t length_of(const struct board *b, uint32_t tenant)
{
    uint8_t c = 0;
    while (c + 1 < LENGTHS && b->life[tenant].until - b->life[tenant].from > b->lives[c].stride)
        c++;
    return c;
}

struct windows {
    uint32_t low, high;
};

static struct windows windows_of(const struct board *b, const struct lives *lives, uint32_t tenant)
{
    uint32_t first = (b->life[tenant].from - b->t->begin) / lives->stride;
    return (struct windows){first > 0 ? first - 1 : 0,
                            (b->life[tenant].until - 1 - b->t->begin) / lives->stride};
}

/* Makes room for those of a length, or (LENGTHS) for those that are first. */
static void make_room(const struct board *b, struct lives *lives, const uint8_t *length, uint8_t of)
{
    const struct tenants *t = b->t;
    uint32_t windows = t->ops / lives->stride + 2;
    lives->first = heap_zalloc((size_t)windows + 1, sizeof *lives->first);
    lives->count = heap_zalloc(windows, sizeof *lives->count);
    for (uint32_t i = 0; i < t->count; i++) {
        if (length[i] != of)
            continue;
        struct windows in = windows_of(b, lives, i);
        for (uint32_t w = in.low; w <= in.high; w++)
            lives->first[w + 1]++;
    }
    for (uint32_t w = 0; w < windows; w++)
        lives->first[w + 1] += lives->first[w];
    lives->row = heap_alloc(lives->first[windows], sizeof *lives->row);
}

static void insert(struct lives *lives, uint32_t window, const struct placed_life *life)
{
    struct placed_life *row = lives->row + lives->first[window];
    uint32_t low = 0, high = lives->count[window];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row[middle].begin < life->begin)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(row + low + 1, row + low, (lives->count[window] - low) * sizeof *row);
    row[low] = *life;
    lives->count[window]++;
}

static void put_in(const struct board *b, struct lives *lives, uint32_t tenant)
{
    const struct tenants *t = b->t;
    struct placed_life life = {t->offset[tenant], t->offset[tenant] + t->size[tenant], tenant,
                               b->life[tenant]};
    struct windows of = windows_of(b, lives, tenant);
    for (uint32_t w = of.low; w <= of.high; w++)
        insert(lives, w, &life);
}

static void put(struct board *b, uint32_t tenant, uint8_t length)
{
    if (length < LENGTHS)
        put_in(b, &b->lives[length], tenant);
    if (length == LENGTHS - 1)
        put_in(b, &b->longest, tenant);
    for (uint32_t c = 0; length == LENGTHS && c < LENGTHS; c++)
        put_in(b, &b->firsts[c], tenant);
}

/* ---- one after the other ---- */

/* A window, by address, as far as it may still be in a tenant's way. */
struct obstacles {
    const struct placed_life *row, *end;
    uint32_t tenant;
};

static uint32_t add_window(const struct board *b, const struct lives *lives, uint32_t tenant,
                           struct obstacles *in_way)
{
    uint32_t w = (b->life[tenant].from - b->t->begin) / lives->stride;
    const struct placed_life *row = lives->row + lives->first[w];
    *in_way = (struct obstacles){row, row + lives->count[w], tenant};
    return lives->count[w] > 0;
}

/* Appends those of a tenant: whoever lives shorter, and is not first, is not placed yet. */
static uint32_t obstacles_of(const struct board *b, uint32_t tenant, struct obstacles *in_way)
{
    uint8_t length = length_of(b, tenant);
    uint32_t count = add_window(b, &b->firsts[length], tenant, in_way);
    for (uint32_t c = length; c < LENGTHS - 1; c++)
        count += add_window(b, &b->lives[c], tenant, in_way + count);
    return count + add_window(b, length < LENGTHS - 1 ? &b->longest : &b->lives[LENGTHS - 1],
                              tenant, in_way + count);
}

/* The lowest place that nobody has who conflicts. */
static uint64_t lowest(const struct board *b, struct obstacles *in_way, uint32_t count,
                       uint64_t size)
{
    const struct tenants *t = b->t;
    uint64_t at = 0;
    for (uint32_t still = 0, v = 0; still < count; v = v + 1 < count ? v + 1 : 0) {
        const struct placed_life *row = in_way[v].row, *end = in_way[v].end;
        uint32_t tenant = in_way[v].tenant;
        struct life life = b->life[tenant];
        uint64_t was = at;
        for (; row < end && row->begin < at + size; row++)
            if (row->end > at && row->life.until > life.from && row->life.from < life.until &&
                tenants_conflict(t, tenant, row->tenant))
                at = row->end;
        in_way[v].row = row;
        still = at == was ? still + 1 : 1;
    }
    return at;
}

/* The longest first, and before them those that are first. */
enum { RANKS = 2 * LENGTHS };

static uint8_t rank_of(uint8_t length, uint8_t own, enum pack_grain grain)
{
    if (length < LENGTHS)
        return RANKS - 1 - length;
    return grain == PACK_FINE ? LENGTHS - 1 - own : 0;
}

/* Sizes to within a sixteenth: few enough to be counted. */
enum { SIZE_BITS = 4, SIZES = 64 << SIZE_BITS };

static uint32_t rounded_size(uint64_t size)
{
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(size);
    uint64_t part = bits >= SIZE_BITS ? size >> (bits - SIZE_BITS) : size << (SIZE_BITS - bits);
    return bits << SIZE_BITS | ((uint32_t)part & ((1u << SIZE_BITS) - 1));
}

/* Tenants by rank, size and birth. */
static uint32_t *by_rank(const struct tenants *t, const uint8_t *rank)
{
    uint32_t *begin = heap_zalloc((size_t)RANKS * SIZES + 1, sizeof *begin);
    uint32_t *order = heap_alloc(t->count, sizeof *order);
    uint16_t *key = heap_alloc(t->count, sizeof *key);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t size = rounded_size(t->size[i]);
        key[i] = (uint16_t)(rank[i] * SIZES + SIZES - 1 - size);
        begin[key[i] + 1]++;
    }
    for (uint32_t k = 0; k < RANKS * SIZES; k++)
        begin[k + 1] += begin[k];
    for (uint32_t i = 0; i < t->count; i++)
        order[begin[key[i]]++] = i;
    free(begin);
    free(key);
    return order;
}

static void lives_release(struct lives *lives)
{
    free(lives->first);
    free(lives->count);
    free(lives->row);
}

/* Places a tenant, and its twin with it. Returns where it ends. */
static uint64_t place(struct board *b, struct tenants *t, uint32_t i, uint32_t twin, uint8_t length)
{
    struct obstacles in_way[2 * (LENGTHS + 1)];
    uint32_t count = obstacles_of(b, i, in_way);
    if (twin != TENANTS_NEVER)
        count += obstacles_of(b, twin, in_way + count);
    t->offset[i] = lowest(b, in_way, count, t->size[i]);
    put(b, i, length);
    if (twin != TENANTS_NEVER) {
        t->offset[twin] = t->offset[i];
        put(b, twin, length);
    }
    return t->offset[i] + t->size[i];
}

/* Twins are as long as the longer one. */
static void raise_to_twins(uint8_t *length, const uint32_t *twin, uint32_t count)
{
    for (uint32_t i = 0; twin && i < count; i++)
        if (twin[i] != TENANTS_NEVER && length[twin[i]] > length[i])
            length[i] = length[twin[i]];
}

uint64_t pack_by_life(struct tenants *t, const uint32_t *twin, const bool *first,
                      enum pack_grain grain, uint64_t most)
{
    struct life *life = lives_of_most(t);
    struct board b = {.t = t, .life = life};
    uint32_t stride = (uint32_t)((uint64_t)BIRTHS_PER_STRIDE * t->ops / t->count) + 1;
    for (uint32_t c = 0; c < LENGTHS; c++) {
        b.lives[c].stride = c + 1 < LENGTHS && stride <= t->ops ? stride : t->ops + 1;
        b.firsts[c].stride = b.lives[c].stride;
        stride = stride <= t->ops ? stride * longer[grain] : stride;
    }
    uint8_t *length = heap_alloc(t->count, sizeof *length);
    uint8_t *rank = heap_alloc(t->count, sizeof *rank); /* until then: the length of its own life */
    for (uint32_t i = 0; i < t->count; i++) {
        length[i] = rank[i] = length_of(&b, i);
        if (first && first[i] && life[i].until - life[i].from < t->ops)
            length[i] = LENGTHS;
    }
    raise_to_twins(length, twin, t->count);
    raise_to_twins(rank, twin, t->count);
    for (uint32_t c = 0; c < LENGTHS; c++) {
        make_room(&b, &b.lives[c], length, (uint8_t)c);
        make_room(&b, &b.firsts[c], length, LENGTHS);
    }
    b.longest.stride = b.lives[LENGTHS - 2].stride;
    make_room(&b, &b.longest, length, LENGTHS - 1);
    for (uint32_t i = 0; i < t->count; i++)
        rank[i] = rank_of(length[i], rank[i], grain);
    uint32_t *order = by_rank(t, rank);
    uint64_t top = 0;
    for (uint32_t i = 0; i < t->count; i++)
        t->offset[i] = UINT64_MAX;
    for (uint32_t k = 0; k < t->count && top <= most; k++) {
        if (t->offset[order[k]] != UINT64_MAX)
            continue; /* has been placed with its twin */
        uint32_t i = order[k];
        uint64_t end = place(&b, t, i, twin ? twin[i] : TENANTS_NEVER, length[i]);
        top = end > top ? end : top;
    }
    for (uint32_t c = 0; c < LENGTHS; c++) {
        lives_release(&b.lives[c]);
        lives_release(&b.firsts[c]);
    }
    lives_release(&b.longest);
    free(order);
    free(length);
    free(rank);
    free(life);
    return top;
}
