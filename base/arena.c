#define _DEFAULT_SOURCE /* madvise(), sbrk() */

#include "base/arena.h"

#include "base/c_locale.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct arena_block {
    struct arena_block *next;
    alignas(max_align_t) unsigned char bytes[];
};

/* Each block is about as large as all blocks before it together, from FIRST_BLOCK to LAST_BLOCK bytes (or more, if a
 * single allocation needs more), so that a small phase takes little memory and a large one asks the heap rarely. */
enum { FIRST_BLOCK = 1 << 14, LAST_BLOCK = 1 << 24 };

static _Noreturn void out_of_memory(size_t count, size_t size)
{
    if (size == 1)
        fprintf(stderr, "longhaul: error: out of memory: asked for %zu bytes\n", count);
    else
        fprintf(stderr, "longhaul: error: out of memory: asked for %zu x %zu bytes\n", count, size);
    /* _exit(), not exit(): a library whose allocation failed may be in no state to run its exit handlers */
    _exit(2);
}

void heap_out_of_memory(void)
{
    fputs("longhaul: error: out of memory: a library was refused what it asked for\n", stderr);
    _exit(2);
}

static size_t checked_product(size_t count, size_t size)
{
    if (size != 0 && count > PTRDIFF_MAX / size)
        out_of_memory(count, size);
    return count * size;
}

void arena_release(struct arena *arena)
{
    for (struct arena_block *block = arena->newest_block, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct arena){0};
}

static void add_block(struct arena *arena, size_t least)
{
    size_t capacity = arena->total_bytes;
    if (capacity < FIRST_BLOCK)
        capacity = FIRST_BLOCK;
    if (capacity > LAST_BLOCK)
        capacity = LAST_BLOCK;
    if (capacity < least)
        capacity = least;
    struct arena_block *block = heap_zalloc(1, sizeof(struct arena_block) + capacity);
    block->next = arena->newest_block;
    arena->newest_block = block;
    arena->block_used_bytes = 0;
    arena->block_bytes = capacity;
    arena->total_bytes += sizeof(struct arena_block) + capacity;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > PTRDIFF_MAX - 2 * sizeof(struct arena_block) - align)
        out_of_memory(size, 1);
    size_t rounded = size == 0 ? align : (size + align - 1) / align * align;
    if (rounded > arena->block_bytes - arena->block_used_bytes)
        add_block(arena, rounded);
    void *memory = arena->newest_block->bytes + arena->block_used_bytes;
    arena->block_used_bytes += rounded;
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    return arena_alloc(arena, checked_product(count, size));
}

char *arena_text(struct arena *arena, const char *text, size_t size)
{
    char *copy = arena_alloc(arena, size + 1);
    if (size != 0)
        memcpy(copy, text, size);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = c_vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    char *text = arena_alloc(arena, (size_t)size + 1);
    c_vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

/* ---- large pages ---- */

/* A large schedule fills some hundred blocks of arenas. With pages of 4 KiB, a fifth of a prediction's time would go to
 * page faults, and a fork would copy the entry of every page. So huge pages are requested for everything that is
 * allocated with at least LARGE_BLOCK_BYTES, which counts as a block here. Blocks of less than MAPPED_BLOCK_BYTES_MIN
 * bytes are next to each other in a heap, so that they share huge pages; larger blocks have mappings of their own. If
 * the kernel grants no huge pages, all this works without them. */
enum {
    /* 128 KiB: allocations of at least this many bytes get huge pages */
    LARGE_BLOCK_BYTES = 1 << 17,
    MAPPED_BLOCK_BYTES_MIN = 1 << 25,
    HEAP_GROWTH_BYTES = 1 << 25, /* bytes by which the heap grows */
    /* free bytes at the end of the heap: if there are more, they go back to the kernel */
    HEAP_FREE_BYTES_KEPT_MAX = 1 << 27
};

static void request_large_pages(uintptr_t begin, uintptr_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int saved = errno;
    begin = (begin + page - 1) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    errno = saved;
}

/* Before the first block of at least LARGE_BLOCK_BYTES, makes malloc() place large blocks in the heap and grow it
 * as the constants above say. Later calls, and calls for smaller blocks, do nothing. */
static void prepare_for_large_blocks(size_t bytes)
{
    static _Atomic bool is_set_up;
    if (bytes < LARGE_BLOCK_BYTES || is_set_up)
        return;
    is_set_up = true;
    mallopt(M_MMAP_THRESHOLD, MAPPED_BLOCK_BYTES_MIN);
    mallopt(M_TOP_PAD, HEAP_GROWTH_BYTES);
    mallopt(M_TRIM_THRESHOLD, HEAP_FREE_BYTES_KEPT_MAX);
}

/* Requests huge pages for a new block of at least LARGE_BLOCK_BYTES: for its mapping, or for the part of the heap
 * from the block on for which they were not requested yet. */
static void use_large_pages_for(const void *block, size_t bytes)
{
    static _Atomic uintptr_t known_end;
    uintptr_t begin = (uintptr_t)block, end;
    if (bytes < LARGE_BLOCK_BYTES)
        return;
    if (bytes >= MAPPED_BLOCK_BYTES_MIN) { /* the C library gives such a block its own mapping */
        request_large_pages(begin, begin + bytes);
        return;
    }
    end = (uintptr_t)sbrk(0);
    if (end > known_end && begin < end)
        request_large_pages(known_end > begin ? known_end : begin, end);
    known_end = end;
}

/* ---- pages ---- */

/* Uses one system call for all pages, which takes less time than a page fault for each of them. */
void pages_make_present(void *pages, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    int saved = errno;
    (void)madvise(pages, bytes, MADV_POPULATE_WRITE);
    errno = saved;
#else
    (void)pages;
    (void)bytes;
#endif
}

/* ---- the heap ---- */

void *heap_alloc(size_t count, size_t size)
{
    return heap_realloc(NULL, count, size);
}

void *heap_zalloc(size_t count, size_t size)
{
    size_t bytes = checked_product(count, size);
    prepare_for_large_blocks(bytes);
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory)
        out_of_memory(count, size);
    use_large_pages_for(memory, bytes);
    return memory;
}

void *heap_realloc(void *old, size_t count, size_t size)
{
    size_t bytes = checked_product(count, size);
    prepare_for_large_blocks(bytes);
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        out_of_memory(count, size);
    use_large_pages_for(memory, bytes);
    return memory;
}

size_t heap_next_capacity(size_t capacity, size_t needed)
{
    if (capacity < 16)
        capacity = 16;
    while (capacity < needed) {
        if (capacity > SIZE_MAX / 2)
            return needed; /* too large: heap_realloc() then ends the program with a message */
        capacity *= 2;
    }
    return capacity;
}

void *heap_grow(void *old, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return old;
    *capacity = heap_next_capacity(*capacity, needed);
    return heap_realloc(old, *capacity, size);
}
