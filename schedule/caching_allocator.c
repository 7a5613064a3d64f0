#include "schedule/caching_allocator.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define NONE UINT32_MAX

/* c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
 * kMinLargeAlloc, kRoundLarge. */
#define MIN_BLOCK ((uint64_t)512)
#define SMALL_SIZE MIB
#define SMALL_BUFFER (2 * MIB)
#define LARGE_BUFFER (20 * MIB)
#define MIN_LARGE_ALLOC (10 * MIB)
#define ROUND_LARGE (2 * MIB)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

uint64_t caching_round(uint64_t bytes)
{
    return bytes < MIN_BLOCK ? MIN_BLOCK : round_up(bytes, MIN_BLOCK);
}

uint64_t caching_segment_bytes(uint64_t rounded)
{
    if (rounded <= SMALL_SIZE)
        return SMALL_BUFFER;
    if (rounded < MIN_LARGE_ALLOC)
        return LARGE_BUFFER;
    return round_up(rounded, ROUND_LARGE);
}

void caching_release(struct caching_allocator *a)
{
    free(a->block);
    for (int i = 0; i < CACHING_POOL_COUNT; i++) {
        for (uint32_t k = 0; k < a->free[i].count; k++)
            free(a->free[i].part[k]);
        free(a->free[i].part);
    }
    *a = (struct caching_allocator){0};
}

static uint32_t new_row(struct caching_allocator *a)
{
    if (a->spare > 0) {
        uint32_t row = a->spare - 1;
        a->spare = a->block[row].after;
        return row;
    }
    if (a->count == a->capacity) {
        a->capacity = (uint32_t)heap_next_capacity(a->capacity, (size_t)a->count + 1);
        a->block = heap_realloc(a->block, a->capacity, sizeof *a->block);
    }
    return a->count++;
}

static void drop_row(struct caching_allocator *a, uint32_t row)
{
    a->block[row] = (struct caching_block){.after = a->spare};
    a->spare = row + 1;
}

/* Is the block a segment of which nothing else is left? */
static bool is_segment(const struct caching_block *b)
{
    return b->before == NONE && b->after == NONE;
}

static bool is_below(const struct caching_block *b, uint64_t size, uint64_t address)
{
    return b->size < size || (b->size == size && b->address < address);
}

/* Where in a list a block is or goes: in the last part that begins below it. */
struct spot {
    uint32_t part, row;
};

/* The spot of the first free block that is not below (size, address); it may be the end of a part. */
static struct spot place(const struct caching_allocator *a, const struct caching_free *list,
                         uint64_t size, uint64_t address)
{
    uint32_t part = 0, behind = list->count;
    while (behind - part > 1) {
        uint32_t middle = part + (behind - part) / 2;
        if (is_below(&a->block[list->part[middle]->block[0]], size, address))
            part = middle;
        else
            behind = middle;
    }
    uint32_t low = 0, high = list->count > 0 ? list->part[part]->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_below(&a->block[list->part[part]->block[middle]], size, address))
            low = middle + 1;
        else
            high = middle;
    }
    return (struct spot){part, low};
}

/* The same, but for a block that is there: the end of a part is the start of the next. */
static struct spot place_of_free(const struct caching_allocator *a, const struct caching_free *list,
                                 uint64_t size, uint64_t address)
{
    struct spot at = place(a, list, size, address);
    bool end = at.part < list->count && at.row == list->part[at.part]->count;
    return end ? (struct spot){at.part + 1, 0} : at;
}

static struct caching_part *add_part(struct caching_free *list, uint32_t at)
{
    if (list->count == list->capacity) {
        list->capacity = (uint32_t)heap_next_capacity(list->capacity, (size_t)list->count + 1);
        list->part = heap_realloc(list->part, list->capacity, sizeof(struct caching_part *));
    }
    memmove(list->part + at + 1, list->part + at,
            (list->count - at) * sizeof(struct caching_part *));
    list->part[at] = heap_alloc(1, sizeof **list->part);
    list->part[at]->count = 0;
    list->count++;
    return list->part[at];
}

static void remove_part(struct caching_free *list, uint32_t at)
{
    free(list->part[at]);
    list->count--;
    memmove(list->part + at, list->part + at + 1,
            (list->count - at) * sizeof(struct caching_part *));
}

static void halve_part(struct caching_free *list, uint32_t at)
{
    struct caching_part *high = add_part(list, at + 1), *low = list->part[at];
    low->count = CACHING_PART_ROWS / 2;
    high->count = CACHING_PART_ROWS - low->count;
    memcpy(high->block, low->block + low->count, high->count * sizeof *high->block);
}

static void add_free(struct caching_allocator *a, uint32_t row)
{
    struct caching_block *b = &a->block[row];
    struct caching_free *list = &a->free[b->pool];
    b->used = false;
    if (list->count == 0)
        add_part(list, 0);
    struct spot at = place(a, list, b->size, b->address);
    if (list->part[at.part]->count == CACHING_PART_ROWS) {
        halve_part(list, at.part);
        at = place(a, list, b->size, b->address);
    }
    struct caching_part *part = list->part[at.part];
    memmove(part->block + at.row + 1, part->block + at.row,
            (part->count - at.row) * sizeof *part->block);
    part->block[at.row] = row;
    part->count++;
    a->cached += is_segment(b);
}

static void remove_at(struct caching_allocator *a, struct caching_free *list, struct spot at)
{
    struct caching_part *part = list->part[at.part];
    a->cached -= is_segment(&a->block[part->block[at.row]]);
    part->count--;
    memmove(part->block + at.row, part->block + at.row + 1,
            (part->count - at.row) * sizeof *part->block);
    if (part->count == 0)
        remove_part(list, at.part);
}

static void remove_free(struct caching_allocator *a, uint32_t row)
{
    struct caching_block *b = &a->block[row];
    struct caching_free *list = &a->free[b->pool];
    struct spot at = place_of_free(a, list, b->size, b->address);
    assert(at.part < list->count && list->part[at.part]->block[at.row] == row);
    remove_at(a, list, at);
}

static void release_of_part(struct caching_allocator *a, struct caching_part *part)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t row = part->block[i];
        struct caching_block *b = &a->block[row];
        if (!is_segment(b)) {
            part->block[kept++] = row;
            continue;
        }
        a->reserved -= b->size;
        a->released += b->size;
        a->cached--;
        drop_row(a, row);
    }
    part->count = kept;
}

/* Gives back every segment of which nothing is in use. */
static void release_cached(struct caching_allocator *a)
{
    for (int pool = 0; a->cached > 0 && pool < CACHING_POOL_COUNT; pool++) {
        struct caching_free *list = &a->free[pool];
        for (uint32_t i = list->count; i-- > 0;) {
            release_of_part(a, list->part[i]);
            if (list->part[i]->count == 0)
                remove_part(list, i);
        }
    }
}

static uint32_t new_segment(struct caching_allocator *a, uint64_t rounded)
{
    uint64_t size = caching_segment_bytes(rounded);
    if (a->limit > 0 && a->reserved + size > a->limit) {
        release_cached(a);
        if (a->reserved + size > a->limit && !a->exceeded) {
            a->exceeded = true;
            a->exceeded_at = a->reserved + size;
        }
    }
    uint32_t row = new_row(a);
    a->block[row] = (struct caching_block){
        .address = a->next_address,
        .size = size,
        .before = NONE,
        .after = NONE,
        .pool = rounded <= SMALL_SIZE ? CACHING_SMALL : CACHING_LARGE,
        .live = true,
    };
    a->next_address += size;
    a->reserved += size;
    return row;
}

/* Cuts what is beyond `rounded` off a block, where the rest is worth keeping. */
static void split(struct caching_allocator *a, uint32_t row, uint64_t rounded)
{
    uint64_t rest = a->block[row].size - rounded;
    bool worth = a->block[row].pool == CACHING_SMALL ? rest >= MIN_BLOCK : rest > SMALL_SIZE;
    if (!worth)
        return;
    uint32_t tail = new_row(a);
    struct caching_block *b = &a->block[row];
    a->block[tail] = (struct caching_block){
        .address = b->address + rounded,
        .size = rest,
        .before = row,
        .after = b->after,
        .pool = b->pool,
        .live = true,
    };
    if (b->after != NONE)
        a->block[b->after].before = tail;
    b->after = tail;
    b->size = rounded;
    add_free(a, tail);
}

uint32_t caching_alloc(struct caching_allocator *a, uint64_t bytes)
{
    uint64_t rounded = caching_round(bytes);
    struct caching_free *list = &a->free[rounded <= SMALL_SIZE ? CACHING_SMALL : CACHING_LARGE];
    struct spot at = place_of_free(a, list, rounded, 0);
    uint32_t row;
    if (at.part < list->count) {
        row = list->part[at.part]->block[at.row];
        remove_at(a, list, at);
    } else {
        row = new_segment(a, rounded);
    }
    split(a, row, rounded);
    a->block[row].used = true;
    a->used += a->block[row].size;
    if (a->used > a->used_peak)
        a->used_peak = a->used;
    if (a->reserved > a->reserved_peak)
        a->reserved_peak = a->reserved;
    return row;
}

/* Makes one block of two neighbours, `low` before `high`, neither in a list. */
static void merge(struct caching_allocator *a, uint32_t low, uint32_t high)
{
    struct caching_block *b = &a->block[low], *c = &a->block[high];
    b->size += c->size;
    b->after = c->after;
    if (b->after != NONE)
        a->block[b->after].before = low;
    drop_row(a, high);
}

void caching_free(struct caching_allocator *a, uint32_t row)
{
    assert(row < a->count && a->block[row].live && a->block[row].used);
    a->used -= a->block[row].size;
    a->block[row].used = false;
    uint32_t before = a->block[row].before, after = a->block[row].after;
    if (after != NONE && !a->block[after].used) {
        remove_free(a, after);
        merge(a, row, after);
    }
    if (before != NONE && !a->block[before].used) {
        remove_free(a, before);
        merge(a, before, row);
        row = before;
    }
    add_free(a, row);
}
