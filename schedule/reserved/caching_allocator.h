/* schedule/reserved/caching_allocator.h: the memory that a caching allocator holds while tensors are allocated and
 * freed.
 *
 * A model of PyTorch's CUDA allocator (c10/cuda/CUDACachingAllocator.cpp, torch 2.1 to 2.5; Z. DeVito, "A guide to
 * PyTorch's CUDA Caching Allocator"). With default settings sizes are rounded to 512 bytes; up to 1 MiB they are cut
 * from segments of 2 MiB, below 10 MiB from segments of 20 MiB, and larger ones get a segment of their own in
 * multiples of 2 MiB; the smallest free block that is large enough is taken, and split when the rest is worth
 * keeping; freed neighbours merge; a segment is given back only when a new one would exceed the device, and only if
 * none of it is in use.
 *
 * With `is_expandable` (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) each pool has one segment of virtual
 * addresses, to whose end memory is added in pages, 2 MiB each in the small pool and 20 MiB in the large one. A
 * request that no free block holds gets the free end of the segment and the pages that are missing. When a new page
 * would exceed the device, the pages of all free blocks are given back. PyTorch may later use the addresses of such
 * pages again; the model begins another segment, which takes as much memory.
 *
 * Each stream has pools of its own, whose free blocks no other stream may take. The model has two streams: the
 * stream of computation, and one on which a framework allocates what it gathers. A freed block may be taken at once,
 * as if no other stream still used it. The model holds sizes, and no memory of the device. All-zero except for
 * `limit_bytes` and `is_expandable` is empty. */
#ifndef SCHEDULE_CACHING_ALLOCATOR_H
#define SCHEDULE_CACHING_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The stream on which a tensor is allocated. COMPUTE: that of computation. GATHER: the one for what a framework
 * gathers. */
enum caching_allocation_stream { CACHING_COMPUTE, CACHING_GATHER, CACHING_STREAM_COUNT };

/* Each stream has a pool of small blocks, with number 2 x stream, and a pool of large blocks, with the next number. */
enum { CACHING_POOL_COUNT = 2 * CACHING_STREAM_COUNT };

struct caching_block {
    uint64_t address, size;             /* size 0: the row holds no block */
    uint32_t block_before, block_after; /* neighbours in its segment */
    uint32_t owner; /* for a block in use, a number of the caller's; 0 until it is set */
    uint8_t pool;
    bool is_used;
};

struct caching_allocator {
    uint64_t limit_bytes; /* bytes of the device that segments may take; 0: not limited */
    bool is_expandable;   /* segments grow: expandable_segments:True */

    struct caching_block *block;
    uint32_t count; /* rows of `block`, with and without a block */
    /* 1 + the first row without a block, linked by block_after; 0: none */
    uint32_t first_unused_row_plus_1;
    size_t capacity;
    struct caching_free {
        uint32_t *row; /* the pool's free blocks, by falling size, then by falling address */
        uint32_t count;
        size_t capacity;
    } free[CACHING_POOL_COUNT];
    uint64_t next_address_by_pool[CACHING_POOL_COUNT];
    /* if is_expandable: by pool, 1 + the last block of the segment that grows; 0: the pool has no such segment */
    uint32_t end_block_by_pool_plus_1[CACHING_POOL_COUNT];

    uint64_t reserved_bytes, used_bytes;           /* bytes of all segments; of all blocks in use */
    uint64_t reserved_peak_bytes, used_peak_bytes; /* the largest value that each has had */
    /* bytes of free segments and pages that were given back because a new one would have exceeded the limit */
    uint64_t bytes_released_under_pressure;
    bool has_exceeded_limit; /* a segment was needed that the limit does not allow */
    /* the reserved bytes when the limit was exceeded for the first time, with the segment that exceeded it */
    uint64_t reserved_bytes_at_first_excess;
};

void caching_release(struct caching_allocator *allocator);

/* Allocates a block of at least `bytes` bytes (rounded up; 0 counts as 1) and returns its row. An allocation beyond the
 * limit is made, too, so that the peak says how much memory is needed, and sets `has_exceeded_limit`. */
uint32_t caching_alloc_on_stream(struct caching_allocator *allocator,
                                 enum caching_allocation_stream stream, uint64_t bytes);
/* Does what caching_alloc_on_stream() does, on the stream of computation. */
uint32_t caching_alloc(struct caching_allocator *allocator, uint64_t bytes);
/* Frees the block in row `block`, which caching_alloc_on_stream() or caching_alloc() returned, and merges it with free
 * neighbours. */
void caching_free(struct caching_allocator *allocator, uint32_t block);

/* caching_rounded_bytes() returns the size of the block for an allocation of `bytes` bytes. caching_segment_bytes()
 * returns the size of the segment that is made for such a block if no free block is large enough. */
uint64_t caching_rounded_bytes(uint64_t bytes);
uint64_t caching_segment_bytes(uint64_t rounded);

#endif
