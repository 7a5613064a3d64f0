#include "schedule/reserved/caching_allocator.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define NO_ROW UINT32_MAX

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

uint64_t caching_rounded_bytes(uint64_t bytes)
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

static uint32_t take_unused_block_row(struct caching_allocator *a)
{
    if (a->first_unused_row_plus_1 > 0) {
        uint32_t row = a->first_unused_row_plus_1 - 1;
        a->first_unused_row_plus_1 = a->block[row].block_after;
        return row;
    }
    a->block = heap_grow(a->block, &a->capacity, a->count + (size_t)1, sizeof *a->block);
    return a->count++;
}

static void release_block_row(struct caching_allocator *a, uint32_t row)
{
    a->block[row] = (struct caching_block){.block_after = a->first_unused_row_plus_1};
    a->first_unused_row_plus_1 = row + 1;
}

/* ---- free blocks, sorted by size and then by address, both falling ---- */

/* Returns the number of a pool's free blocks that come before (size, address) in the list, which is sorted by falling
 * size: most free blocks are large in steps with many units, and in a list of rising sizes each small block that is
 * added or removed would move all of them. */
static uint32_t find_free_position(const struct caching_allocator *a,
                                   const struct caching_free *list, uint64_t size, uint64_t address)
{
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct caching_block *b = &a->block[list->row[middle]];
        if (b->size != size ? b->size > size : b->address > address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_free_block(struct caching_allocator *a, uint32_t row)
{
    struct caching_block *b = &a->block[row];
    struct caching_free *list = &a->free[b->pool];
    uint32_t at = find_free_position(a, list, b->size, b->address);
    b->is_used = false;
    list->row = heap_grow(list->row, &list->capacity, list->count + (size_t)1, sizeof *list->row);
    /* This is a loop because the address sanitizer's memmove() copies byte by byte, which takes a quarter of a search's
     * time. */
    for (uint32_t i = list->count; i > at; i--)
        list->row[i] = list->row[i - 1];
    list->row[at] = row;
    list->count++;
}

static void remove_free_block_at(struct caching_free *list, uint32_t at)
{
    list->count--;
    for (uint32_t i = at; i < list->count; i++)
        list->row[i] = list->row[i + 1];
}

static void remove_free_block(struct caching_allocator *a, uint32_t row)
{
    const struct caching_block *b = &a->block[row];
    struct caching_free *list = &a->free[b->pool];
    uint32_t at = find_free_position(a, list, b->size, b->address);
    assert(at < list->count && list->row[at] == row);
    remove_free_block_at(list, at);
}

/* Removes the smallest free block that is large enough, of several the one with the lowest address, and returns it;
 * NO_ROW if there is none. */
static uint32_t take_smallest_free_block(struct caching_allocator *a, int pool, uint64_t rounded)
{
    struct caching_free *list = &a->free[pool];
    /* number of blocks that are large enough */
    uint32_t enough = find_free_position(a, list, rounded - 1, UINT64_MAX);
    if (enough == 0)
        return NO_ROW;
    uint32_t row = list->row[enough - 1];
    remove_free_block_at(list, enough - 1);
    return row;
}

/* Returns to the device every segment of which no block is in use. */
static void release_unused_segments(struct caching_allocator *a)
{
    for (int pool = 0; pool < CACHING_POOL_COUNT; pool++) {
        struct caching_free *list = &a->free[pool];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < list->count; i++) {
            uint32_t row = list->row[i];
            const struct caching_block *b = &a->block[row];
            if (b->block_before != NO_ROW ||
                b->block_after != NO_ROW) { /* the block is only a part of a segment */
                list->row[kept++] = row;
                continue;
            }
            a->reserved_bytes -= b->size;
            a->bytes_released_under_pressure += b->size;
            release_block_row(a, row);
        }
        list->count = kept;
    }
}

void caching_release(struct caching_allocator *a)
{
    free(a->block);
    for (int i = 0; i < CACHING_POOL_COUNT; i++)
        free(a->free[i].row);
    *a = (struct caching_allocator){0};
}

/* ---- segments and blocks ---- */

static int pool_of_request(enum caching_allocation_stream stream, uint64_t rounded)
{
    return 2 * (int)stream + (rounded > SMALL_SIZE);
}

static bool is_small_pool(int pool)
{
    return pool % 2 == 0;
}

/* True if `bytes` more reserved bytes would exceed the limit; false if there is no limit. */
static bool would_exceed_limit(const struct caching_allocator *a, uint64_t bytes)
{
    return a->limit_bytes > 0 && a->reserved_bytes + bytes > a->limit_bytes;
}

/* Adds bytes to the reserved memory, and records the first time that it exceeds the limit. */
static void add_reserved_bytes(struct caching_allocator *a, uint64_t bytes)
{
    if (would_exceed_limit(a, bytes) && !a->has_exceeded_limit) {
        a->has_exceeded_limit = true;
        a->reserved_bytes_at_first_excess = a->reserved_bytes + bytes;
    }
    a->reserved_bytes += bytes;
}

/* Adds a block of a pool between two neighbours in its segment, either of which may be NO_ROW. The block is in no list
 * yet. */
static uint32_t add_block(struct caching_allocator *a, int pool, uint64_t address, uint64_t size,
                          uint32_t before, uint32_t after)
{
    uint32_t row = take_unused_block_row(a);
    a->block[row] = (struct caching_block){.address = address,
                                           .size = size,
                                           .block_before = before,
                                           .block_after = after,
                                           .pool = (uint8_t)pool};
    if (before != NO_ROW)
        a->block[before].block_after = row;
    if (after != NO_ROW)
        a->block[after].block_before = row;
    return row;
}

/* Adds a block of `bytes` new bytes, at the next unused address of its pool, and returns its row. */
static uint32_t add_new_block(struct caching_allocator *a, int pool, uint64_t bytes,
                              uint32_t before)
{
    uint64_t address = a->next_address_by_pool[pool];
    a->next_address_by_pool[pool] += bytes;
    return add_block(a, pool, address, bytes, before, NO_ROW);
}

static uint32_t new_segment(struct caching_allocator *a, int pool, uint64_t rounded)
{
    uint64_t size = caching_segment_bytes(rounded);
    if (would_exceed_limit(a, size))
        release_unused_segments(a);
    add_reserved_bytes(a, size);
    return add_new_block(a, pool, size, NO_ROW);
}

static uint64_t page_bytes_of_pool(int pool)
{
    return is_small_pool(pool) ? SMALL_BUFFER : LARGE_BUFFER;
}

/* Cuts a block off after `size` bytes and returns the rest, as a block that is in no list. */
static uint32_t split_off_rest(struct caching_allocator *a, uint32_t row, uint64_t size)
{
    struct caching_block b = a->block[row];
    uint32_t rest = add_block(a, b.pool, b.address + size, b.size - size, row, b.block_after);
    if (a->end_block_by_pool_plus_1[b.pool] == row + 1)
        a->end_block_by_pool_plus_1[b.pool] = rest + 1;
    a->block[row].size = size;
    return rest;
}

/* Returns to the device those pages that lie completely inside a free block. The bytes before and after them stay free
 * as two blocks, which are no longer neighbours. */
static void release_free_pages(struct caching_allocator *a, uint32_t row)
{
    struct caching_block b = a->block[row];
    uint64_t page = page_bytes_of_pool(b.pool), begin = round_up(b.address, page);
    uint64_t end = (b.address + b.size) / page * page;
    if (begin >= end)
        return;
    remove_free_block(a, row);
    uint32_t pages = b.address < begin ? split_off_rest(a, row, begin - b.address) : row;
    uint32_t tail = end < b.address + b.size ? split_off_rest(a, pages, end - begin) : NO_ROW;
    uint32_t before = a->block[pages].block_before, after = a->block[pages].block_after;
    if (before != NO_ROW)
        a->block[before].block_after = NO_ROW;
    if (after != NO_ROW)
        a->block[after].block_before = NO_ROW;
    if (a->end_block_by_pool_plus_1[b.pool] == pages + 1)
        a->end_block_by_pool_plus_1[b.pool] = 0;
    release_block_row(a, pages);
    if (pages != row)
        add_free_block(a, row);
    if (tail != NO_ROW)
        add_free_block(a, tail);
    a->reserved_bytes -= end - begin;
    a->bytes_released_under_pressure += end - begin;
}

static void release_all_free_pages(struct caching_allocator *a)
{
    uint32_t rows = a->count;
    for (uint32_t row = 0; row < rows; row++)
        if (a->block[row].size > 0 && !a->block[row].is_used)
            release_free_pages(a, row);
}

/* Returns a block of at least `rounded` bytes at the end of the growing segment, to which it adds the pages that are
 * missing. The block is in no list. */
static uint32_t grow_segment(struct caching_allocator *a, int pool, uint64_t rounded)
{
    for (bool tried = false;; tried = true) {
        uint32_t last =
            a->end_block_by_pool_plus_1[pool] > 0 ? a->end_block_by_pool_plus_1[pool] - 1 : NO_ROW;
        bool extends = last != NO_ROW && !a->block[last].is_used;
        uint64_t bytes =
            round_up(rounded - (extends ? a->block[last].size : 0), page_bytes_of_pool(pool));
        if (would_exceed_limit(a, bytes) && !tried) {
            release_all_free_pages(a);
            continue;
        }
        add_reserved_bytes(a, bytes);
        if (extends) {
            remove_free_block(a, last);
            a->block[last].size += bytes;
            a->next_address_by_pool[pool] += bytes;
            return last;
        }
        uint32_t row = add_new_block(a, pool, bytes, last);
        a->end_block_by_pool_plus_1[pool] = row + 1;
        return row;
    }
}

/* Cuts a block off after `rounded` bytes if the rest is worth keeping. */
static void split_block(struct caching_allocator *a, uint32_t row, uint64_t rounded)
{
    uint64_t rest = a->block[row].size - rounded;
    if (is_small_pool(a->block[row].pool) ? rest >= MIN_BLOCK : rest > SMALL_SIZE)
        add_free_block(a, split_off_rest(a, row, rounded));
}

uint32_t caching_alloc(struct caching_allocator *a, uint64_t bytes)
{
    return caching_alloc_on_stream(a, CACHING_COMPUTE, bytes);
}

uint32_t caching_alloc_on_stream(struct caching_allocator *a, enum caching_allocation_stream stream,
                                 uint64_t bytes)
{
    uint64_t rounded = caching_rounded_bytes(bytes);
    int pool = pool_of_request(stream, rounded);
    uint32_t row = take_smallest_free_block(a, pool, rounded);
    if (row == NO_ROW)
        row = a->is_expandable ? grow_segment(a, pool, rounded) : new_segment(a, pool, rounded);
    split_block(a, row, rounded);
    a->block[row].is_used = true;
    a->used_bytes += a->block[row].size;
    if (a->used_bytes > a->used_peak_bytes)
        a->used_peak_bytes = a->used_bytes;
    if (a->reserved_bytes > a->reserved_peak_bytes)
        a->reserved_peak_bytes = a->reserved_bytes;
    return row;
}

/* Merges two neighbouring blocks, `low` before `high`, neither of which is in a list. */
static void merge_blocks(struct caching_allocator *a, uint32_t low, uint32_t high)
{
    struct caching_block *b = &a->block[low], *c = &a->block[high];
    b->size += c->size;
    b->block_after = c->block_after;
    if (b->block_after != NO_ROW)
        a->block[b->block_after].block_before = low;
    if (a->end_block_by_pool_plus_1[b->pool] == high + 1)
        a->end_block_by_pool_plus_1[b->pool] = low + 1;
    release_block_row(a, high);
}

void caching_free(struct caching_allocator *a, uint32_t row)
{
    assert(row < a->count && a->block[row].is_used);
    a->used_bytes -= a->block[row].size;
    a->block[row].is_used = false;
    uint32_t before = a->block[row].block_before, after = a->block[row].block_after;
    if (after != NO_ROW && !a->block[after].is_used) {
        remove_free_block(a, after);
        merge_blocks(a, row, after);
    }
    if (before != NO_ROW && !a->block[before].is_used) {
        remove_free_block(a, before);
        merge_blocks(a, before, row);
        row = before;
    }
    add_free_block(a, row);
}
