#include "schedule/reserved/caching_allocator.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define NONE UINT32_MAX

/* Constants of c10/cuda/CUDACachingAllocator.cpp, in the order kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
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

/* True if the block is a whole segment. */
static bool is_segment(const struct caching_block *b)
{
    return b->before == NONE && b->after == NONE;
}

/* ---- free blocks, by size, then address ---- */

static void free_size(struct caching_size *size)
{
    for (uint32_t i = 0; i < size->count; i++)
        free(size->part[i]);
    free(size->part);
    free(size);
}

/* Returns the row of a size in the list, or the row where it would be inserted. The search has no branches, because
 * the processor could not predict which half the size lies in. */
static uint32_t rank_of(const struct caching_free *list, uint64_t bytes)
{
    const uint64_t *low = list->bytes;
    uint32_t left = list->count;
    while (left > 0) {
        uint32_t half = (left + 1) / 2;
        low += low[half - 1] < bytes ? half : 0;
        left /= 2;
    }
    return (uint32_t)(low - list->bytes);
}

/* Moves sizes without free blocks to the spare rows: the remainders of large blocks often have sizes that occur only
 * once. */
static void forget_empty_sizes(struct caching_free *list)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct caching_size *size = list->size[i];
        if (size->blocks == 0)
            continue;
        list->size[i] = list->size[kept];
        list->size[kept] = size;
        list->bytes[kept++] = size->bytes;
    }
    list->spare += list->count - kept;
    list->count = kept;
    memset(list->recent, 0, sizeof list->recent);
}

static void make_room(struct caching_free *list)
{
    forget_empty_sizes(list);
    if (list->count <= list->capacity / 2 && list->spare > 0)
        return;
    uint32_t old = list->capacity;
    list->capacity = (uint32_t)heap_next_capacity(old, (size_t)old + 1);
    list->size = heap_realloc(list->size, list->capacity, sizeof(struct caching_size *));
    list->bytes = heap_realloc(list->bytes, list->capacity, sizeof *list->bytes);
    for (; list->count + list->spare < list->capacity; list->spare++)
        list->size[list->count + list->spare] = heap_zalloc(1, sizeof **list->size);
}

/* Finds or adds the free blocks of a size. It is rarely called; inlined, it would make size_of() save registers in
 * every call. */
__attribute__((noinline)) static struct caching_size *find_size(struct caching_free *list,
                                                                uint64_t bytes)
{
    uint32_t at = rank_of(list, bytes);
    if (at < list->count && list->bytes[at] == bytes)
        return list->size[at];
    if (list->spare == 0) {
        make_room(list);
        at = rank_of(list, bytes);
    }
    struct caching_size *size = list->size[list->count];
    memmove(list->size + at + 1, list->size + at,
            (list->count - at) * sizeof(struct caching_size *));
    memmove(list->bytes + at + 1, list->bytes + at, (list->count - at) * sizeof *list->bytes);
    list->size[at] = size;
    list->bytes[at] = bytes;
    list->count++;
    list->spare--;
    size->bytes = bytes;
    return size;
}

/* Returns the free blocks of a size, of which there may be none. Valid until the next call. */
static inline struct caching_size *size_of(struct caching_free *list, uint64_t bytes)
{
    struct caching_size **recent =
        &list->recent[bytes / MIN_BLOCK * UINT64_C(0x9e3779b97f4a7c15) >> 58];
    if (!*recent || (*recent)->bytes != bytes)
        *recent = find_size(list, bytes);
    return *recent;
}

/* Where a block is or belongs among those of its size: in the last part that begins below it. */
struct position {
    uint32_t part, row;
};

/* Returns the position of the first block that is not below an address; it may be the end of a part. */
static struct position place(const struct caching_allocator *a, const struct caching_size *size,
                             uint64_t address)
{
    uint32_t part = 0, end = size->count;
    while (end - part > 1) {
        uint32_t middle = part + (end - part) / 2;
        if (a->block[size->part[middle]->block[0]].address < address)
            part = middle;
        else
            end = middle;
    }
    const uint32_t *low = size->part[part]->block;
    for (uint32_t left = size->part[part]->count; left > 0; left /= 2) {
        uint32_t half = (left + 1) / 2;
        low += a->block[low[half - 1]].address < address ? half : 0;
    }
    return (struct position){part, (uint32_t)(low - size->part[part]->block)};
}

/* As place(), for a block that is there: the end of a part is the start of the next. */
static struct position place_of_free(const struct caching_allocator *a,
                                     const struct caching_size *size, uint64_t address)
{
    struct position at = place(a, size, address);
    bool end = at.row == size->part[at.part]->count;
    return end ? (struct position){at.part + 1, 0} : at;
}

static struct caching_part *add_part(struct caching_size *size, uint32_t at)
{
    if (size->count == size->capacity) {
        size->capacity =
            size->capacity == 0
                ? 1
                : (uint32_t)heap_next_capacity(size->capacity, (size_t)size->count + 1);
        size->part = heap_realloc(size->part, size->capacity, sizeof(struct caching_part *));
    }
    memmove(size->part + at + 1, size->part + at,
            (size->count - at) * sizeof(struct caching_part *));
    size->part[at] = heap_alloc(1, sizeof **size->part);
    size->part[at]->count = 0;
    size->count++;
    return size->part[at];
}

/* Removes an empty part; the last part stays, for the next block of that size. */
static void remove_if_empty(struct caching_size *size, uint32_t at)
{
    if (size->part[at]->count > 0 || size->count == 1)
        return;
    free(size->part[at]);
    size->count--;
    memmove(size->part + at, size->part + at + 1,
            (size->count - at) * sizeof(struct caching_part *));
}

static void halve_part(struct caching_size *size, uint32_t at)
{
    struct caching_part *high = add_part(size, at + 1), *low = size->part[at];
    low->count = CACHING_PART_ROWS / 2;
    high->count = CACHING_PART_ROWS - low->count;
    memcpy(high->block, low->block + low->count, high->count * sizeof *high->block);
}

static void add_free(struct caching_allocator *a, uint32_t row)
{
    struct caching_block *b = &a->block[row];
    struct caching_size *size = size_of(&a->free[b->pool], b->size);
    b->used = false;
    if (size->count == 0)
        add_part(size, 0);
    struct position at = size->blocks == 0 ? (struct position){0, 0} : place(a, size, b->address);
    if (size->part[at.part]->count == CACHING_PART_ROWS) {
        halve_part(size, at.part);
        at = place(a, size, b->address);
    }
    struct caching_part *part = size->part[at.part];
    for (uint32_t i = part->count++; i > at.row; i--)
        part->block[i] = part->block[i - 1];
    part->block[at.row] = row;
    size->blocks++;
    a->cached += is_segment(b);
}

static void remove_at(struct caching_allocator *a, struct caching_size *size, struct position at)
{
    struct caching_part *part = size->part[at.part];
    a->cached -= is_segment(&a->block[part->block[at.row]]);
    part->count--;
    size->blocks--;
    if (at.row < part->count)
        memmove(part->block + at.row, part->block + at.row + 1,
                (part->count - at.row) * sizeof *part->block);
    remove_if_empty(size, at.part);
}

static void remove_free(struct caching_allocator *a, uint32_t row)
{
    struct caching_block *b = &a->block[row];
    struct caching_size *size = size_of(&a->free[b->pool], b->size);
    struct position at =
        size->blocks == 1 ? (struct position){0, 0} : place_of_free(a, size, b->address);
    assert(at.part < size->count && size->part[at.part]->block[at.row] == row);
    remove_at(a, size, at);
}

/* Takes the first of the smallest free blocks that are large enough; NONE: there are none. */
static uint32_t take_free(struct caching_allocator *a, int pool, uint64_t rounded)
{
    struct caching_free *list = &a->free[pool];
    struct caching_size *size = size_of(list, rounded);
    if (size->blocks == 0) {
        uint32_t rank = rank_of(list, rounded) + 1;
        while (rank < list->count && list->size[rank]->blocks == 0)
            rank++;
        if (rank == list->count)
            return NONE;
        size = list->size[rank];
    }
    uint32_t row = size->part[0]->block[0];
    remove_at(a, size, (struct position){0, 0});
    return row;
}

static void release_of_part(struct caching_allocator *a, struct caching_size *size,
                            struct caching_part *part)
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
        size->blocks--;
        drop_row(a, row);
    }
    part->count = kept;
}

/* Gives back every segment of which nothing is in use. */
static void release_cached(struct caching_allocator *a)
{
    for (int pool = 0; a->cached > 0 && pool < CACHING_POOL_COUNT; pool++)
        for (uint32_t i = 0; i < a->free[pool].count; i++) {
            struct caching_size *size = a->free[pool].size[i];
            for (uint32_t k = size->count; k-- > 0;) {
                release_of_part(a, size, size->part[k]);
                remove_if_empty(size, k);
            }
        }
}

void caching_release(struct caching_allocator *a)
{
    free(a->block);
    for (int i = 0; i < CACHING_POOL_COUNT; i++) {
        for (uint32_t k = 0; k < a->free[i].count + a->free[i].spare; k++)
            free_size(a->free[i].size[k]);
        free(a->free[i].size);
        free(a->free[i].bytes);
    }
    *a = (struct caching_allocator){0};
}

/* ---- segments and blocks ---- */

static int pool_of(enum caching_stream stream, uint64_t rounded)
{
    return 2 * (int)stream + (rounded > SMALL_SIZE);
}

static bool is_small(int pool)
{
    return pool % 2 == 0;
}

/* True if more bytes would exceed the device. */
static bool lacks_room(const struct caching_allocator *a, uint64_t bytes)
{
    return a->limit > 0 && a->reserved + bytes > a->limit;
}

/* Adds bytes of the device to what is reserved, and notes the first time that they exceed it. */
static void reserve(struct caching_allocator *a, uint64_t bytes)
{
    if (lacks_room(a, bytes) && !a->exceeded) {
        a->exceeded = true;
        a->exceeded_at = a->reserved + bytes;
    }
    a->reserved += bytes;
}

/* Adds a block of new memory after the last address of its pool. */
static uint32_t new_block(struct caching_allocator *a, int pool, uint64_t bytes)
{
    uint32_t row = new_row(a);
    a->block[row] = (struct caching_block){
        .address = a->next_address[pool],
        .size = bytes,
        .before = NONE,
        .after = NONE,
        .pool = (uint8_t)pool,
        .live = true,
    };
    a->next_address[pool] += bytes;
    return row;
}

static uint32_t new_segment(struct caching_allocator *a, int pool, uint64_t rounded)
{
    uint64_t size = caching_segment_bytes(rounded);
    if (lacks_room(a, size))
        release_cached(a);
    reserve(a, size);
    return new_block(a, pool, size);
}

static uint64_t page_of(int pool)
{
    return is_small(pool) ? SMALL_BUFFER : LARGE_BUFFER;
}

/* Adds a free block from `begin` to `end` between two neighbours, either of which may be NONE, and returns its row;
 * NONE: the block would be empty. */
static uint32_t add_rest(struct caching_allocator *a, int pool, uint64_t begin, uint64_t end,
                         uint32_t before, uint32_t after)
{
    uint32_t row = NONE;
    if (begin < end) {
        row = new_row(a);
        a->block[row] = (struct caching_block){.address = begin,
                                               .size = end - begin,
                                               .before = before,
                                               .after = after,
                                               .pool = (uint8_t)pool,
                                               .live = true};
        add_free(a, row);
    }
    if (before != NONE)
        a->block[before].after = row;
    if (after != NONE)
        a->block[after].before = row;
    return row;
}

/* Gives back the pages that lie wholly in a free block. What is before and after them stays free, in two blocks that
 * are no longer neighbours. */
static void give_back_pages(struct caching_allocator *a, uint32_t row)
{
    struct caching_block b = a->block[row];
    int pool = b.pool;
    uint64_t begin = round_up(b.address, page_of(pool));
    uint64_t end = (b.address + b.size) / page_of(pool) * page_of(pool);
    bool is_end = a->end[pool] == row + 1;
    if (begin >= end)
        return;
    remove_free(a, row);
    drop_row(a, row);
    add_rest(a, pool, b.address, begin, b.before, NONE);
    uint32_t tail = add_rest(a, pool, end, b.address + b.size, NONE, b.after);
    if (is_end)
        a->end[pool] = tail == NONE ? 0 : tail + 1;
    a->reserved -= end - begin;
    a->released += end - begin;
}

static void give_back_all_pages(struct caching_allocator *a)
{
    uint32_t rows = a->count;
    for (uint32_t row = 0; row < rows; row++)
        if (a->block[row].live && !a->block[row].used)
            give_back_pages(a, row);
}

/* Returns a block of at least `rounded` bytes, in no list, at the end of the segment that grows. */
static uint32_t grow_segment(struct caching_allocator *a, int pool, uint64_t rounded)
{
    for (bool tried = false;; tried = true) {
        uint32_t last = a->end[pool] > 0 ? a->end[pool] - 1 : NONE;
        bool extends = last != NONE && !a->block[last].used;
        uint64_t bytes = round_up(rounded - (extends ? a->block[last].size : 0), page_of(pool));
        if (lacks_room(a, bytes) && !tried) {
            give_back_all_pages(a);
            continue;
        }
        reserve(a, bytes);
        if (extends) {
            remove_free(a, last);
            a->block[last].size += bytes;
            a->next_address[pool] += bytes;
            return last;
        }
        uint32_t row = new_block(a, pool, bytes);
        a->block[row].before = last;
        if (last != NONE)
            a->block[last].after = row;
        a->end[pool] = row + 1;
        return row;
    }
}

/* Cuts what is beyond `rounded` off a block, where the rest is worth keeping. */
static void split(struct caching_allocator *a, uint32_t row, uint64_t rounded)
{
    uint64_t rest = a->block[row].size - rounded;
    bool worth = is_small(a->block[row].pool) ? rest >= MIN_BLOCK : rest > SMALL_SIZE;
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
    if (a->end[b->pool] == row + 1)
        a->end[b->pool] = tail + 1;
    b->after = tail;
    b->size = rounded;
    add_free(a, tail);
}

uint32_t caching_alloc(struct caching_allocator *a, uint64_t bytes)
{
    return caching_alloc_on(a, CACHING_COMPUTE, bytes);
}

uint32_t caching_alloc_on(struct caching_allocator *a, enum caching_stream stream, uint64_t bytes)
{
    uint64_t rounded = caching_round(bytes);
    int pool = pool_of(stream, rounded);
    uint32_t row = take_free(a, pool, rounded);
    if (row == NONE)
        row = a->expandable ? grow_segment(a, pool, rounded) : new_segment(a, pool, rounded);
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
    if (a->end[b->pool] == high + 1)
        a->end[b->pool] = low + 1;
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
