/* tests/schedule/test_caching_allocator.c: the model of PyTorch's caching allocator rounds, splits, merges and frees
 * blocks as PyTorch does. */
#include "schedule/reserved/caching_allocator.h"

#include "tests/check.h"

#define MIB ((uint64_t)1 << 20)

static const struct {
    uint64_t bytes, rounded, segment;
} sizes[] = {
    {0, 512, 2 * MIB},
    {1, 512, 2 * MIB},
    {513, 1024, 2 * MIB},
    {MIB, MIB, 2 * MIB},
    {MIB + 1, MIB + 512, 20 * MIB},
    {10 * MIB - 1, 10 * MIB, 10 * MIB},
    {10 * MIB, 10 * MIB, 10 * MIB},
    {11 * MIB, 11 * MIB, 12 * MIB},
    {1025 * MIB, 1025 * MIB, 1026 * MIB},
};

static void sizes_are_rounded_as_pytorch_does(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        CHECK_INT("rounded", (int64_t)caching_rounded_bytes(sizes[i].bytes),
                  (int64_t)sizes[i].rounded);
        CHECK_INT("segment", (int64_t)caching_segment_bytes(caching_rounded_bytes(sizes[i].bytes)),
                  (int64_t)sizes[i].segment);
    }
}

static void freed_blocks_are_reused(void)
{
    struct caching_allocator a = {0};
    uint32_t x = caching_alloc(&a, 100 * MIB);
    caching_free(&a, x);
    caching_alloc(&a, 60 * MIB);
    caching_alloc(&a, 40 * MIB); /* the rest of the same segment */
    CHECK_INT("reserved", (int64_t)a.reserved_bytes, (int64_t)(100 * MIB));
    caching_alloc(&a, 2 * MIB); /* a new segment of 20 MiB */
    CHECK_INT("reserved", (int64_t)a.reserved_bytes, (int64_t)(120 * MIB));
    CHECK_INT("used", (int64_t)a.used_bytes, (int64_t)(102 * MIB));
    caching_release(&a);
}

/* A segment of 100 MiB is cut into halves; the free half of 50 MiB cannot serve 51, so it stays reserved and
 * unused. */
static void fragmented_holes_stay_reserved(void)
{
    struct caching_allocator a = {0};
    caching_free(&a, caching_alloc(&a, 100 * MIB));
    uint32_t low = caching_alloc(&a, 50 * MIB);
    caching_alloc(&a, 50 * MIB);
    caching_free(&a, low);
    caching_alloc(&a, 51 * MIB);
    CHECK_INT("reserved", (int64_t)a.reserved_peak_bytes, (int64_t)(152 * MIB));
    /* the remaining 1 MiB is too small to be split off */
    CHECK_INT("used", (int64_t)a.used_peak_bytes, (int64_t)(102 * MIB));
    caching_release(&a);
}

static void freed_neighbours_merge(void)
{
    struct caching_allocator a = {0};
    uint32_t block[4];
    caching_free(&a, caching_alloc(&a, 40 * MIB));
    for (int i = 0; i < 4; i++)
        block[i] = caching_alloc(&a, 10 * MIB);
    caching_free(&a, block[0]);
    caching_free(&a, block[2]);
    caching_free(&a, block[1]);
    caching_free(&a, block[3]);
    caching_alloc(&a, 40 * MIB);
    CHECK_INT("reserved", (int64_t)a.reserved_peak_bytes, (int64_t)(40 * MIB));
    caching_release(&a);
}

/* A remainder of 1 MiB or less stays with its block. */
static void small_rests_are_not_split_off(void)
{
    struct caching_allocator a = {0};
    caching_free(&a, caching_alloc(&a, 40 * MIB));
    caching_alloc(&a, 39 * MIB);
    CHECK_INT("used", (int64_t)a.used_bytes, (int64_t)(40 * MIB));
    caching_release(&a);
}

static void cached_segments_go_back_before_a_device_is_full(void)
{
    struct caching_allocator a = {.limit_bytes = 100 * MIB};
    caching_free(&a, caching_alloc(&a, 60 * MIB));
    caching_alloc(&a, 80 * MIB);
    CHECK("fits", !a.has_exceeded_limit);
    CHECK_INT("reserved", (int64_t)a.reserved_bytes, (int64_t)(80 * MIB));
    CHECK_INT("released", (int64_t)a.bytes_released_under_pressure, (int64_t)(60 * MIB));
    caching_alloc(&a, 30 * MIB);
    CHECK("full", a.has_exceeded_limit);
    CHECK_INT("needed", (int64_t)a.reserved_bytes_at_first_excess, (int64_t)(110 * MIB));
    CHECK_INT("goes on", (int64_t)a.reserved_peak_bytes, (int64_t)(110 * MIB));
    caching_release(&a);
}

/* With segments that grow (expandable segments), a large tensor takes the free end of the segment and only the pages
 * that are missing, where the default settings would make a segment of its size. */
static void a_segment_that_grows_reuses_its_free_end(void)
{
    static const int64_t reserved[] = {100 + 112, 120}; /* MiB */
    for (int expandable = 0; expandable <= 1; expandable++) {
        struct caching_allocator a = {.is_expandable = expandable};
        caching_free(&a, caching_alloc(&a, 100 * MIB));
        caching_alloc(&a, 110 * MIB + 1);
        CHECK_INT("reserved", (int64_t)a.reserved_bytes, reserved[expandable] * (int64_t)MIB);
        caching_release(&a);
    }
}

/* When the device is full, the whole pages of free blocks are given back: of a free block from 15 to 85 MiB those from
 * 20 to 80 MiB. */
static void pages_of_holes_go_back_before_a_device_is_full(void)
{
    struct caching_allocator a = {.limit_bytes = 160 * MIB, .is_expandable = true};
    caching_alloc(&a, 15 * MIB);
    uint32_t hole = caching_alloc(&a, 70 * MIB);
    caching_alloc(&a, 15 * MIB);
    CHECK_INT("one segment", (int64_t)a.reserved_bytes, (int64_t)(100 * MIB));
    caching_free(&a, hole);
    caching_alloc(&a, 100 * MIB);
    CHECK("fits", !a.has_exceeded_limit);
    CHECK_INT("given back", (int64_t)a.bytes_released_under_pressure, (int64_t)(60 * MIB));
    CHECK_INT("reserved", (int64_t)a.reserved_bytes, (int64_t)(140 * MIB));
    caching_alloc(&a, 21 * MIB);
    CHECK("full", a.has_exceeded_limit);
    CHECK_INT("needed", (int64_t)a.reserved_bytes_at_first_excess, (int64_t)(180 * MIB));
    caching_release(&a);
}

/* A block that was freed on one stream serves no other stream. */
static void streams_share_no_blocks(void)
{
    struct caching_allocator a = {0};
    caching_free(&a, caching_alloc(&a, 40 * MIB));
    uint32_t gathered = caching_alloc_on_stream(&a, CACHING_GATHER, 40 * MIB);
    CHECK_INT("two segments", (int64_t)a.reserved_bytes, (int64_t)(80 * MIB));
    caching_free(&a, gathered);
    caching_alloc_on_stream(&a, CACHING_GATHER, 30 * MIB);
    caching_alloc(&a, 30 * MIB);
    CHECK_INT("each takes its own", (int64_t)a.reserved_bytes, (int64_t)(80 * MIB));
    caching_release(&a);
}

/* Checks that free blocks are listed by falling size, then falling address. Returns their bytes, and raises *most to
 * the number of free blocks of a pool. */
static uint64_t check_free_blocks_in_order(const struct caching_allocator *a, uint32_t *most)
{
    uint64_t bytes = 0;
    for (int pool = 0; pool < CACHING_POOL_COUNT; pool++) {
        const struct caching_free *list = &a->free[pool];
        *most = list->count > *most ? list->count : *most;
        for (uint32_t i = 0; i < list->count; i++) {
            const struct caching_block *b = &a->block[list->row[i]],
                                       *last = i > 0 ? &a->block[list->row[i - 1]] : NULL;
            CHECK("free and in order",
                  !b->is_used && (last == NULL || last->size > b->size ||
                                  (last->size == b->size && last->address > b->address)));
            bytes += b->size;
        }
    }
    return bytes;
}

/* Checks over random allocations that blocks in use never exceed segments, and that all bytes are returned at
 * the end. Phases of growth and of shrinking alternate, so that there are many free blocks. */
static void check_sums(uint64_t limit, bool expandable)
{
    enum { LIVE = 3000, STEPS = 40000, TURN = 5000 };
    struct check_random random = check_random_make();
    struct caching_allocator a = {.limit_bytes = limit, .is_expandable = expandable};
    static uint32_t live[LIVE];
    static uint64_t size[LIVE];
    uint64_t sum = 0;
    uint32_t most = 0;
    int count = 0;
    for (int step = 0; step < STEPS; step++) {
        bool more = check_random_i64(&random, 0, 9) < (step / TURN % 2 == 0 ? 9 : 2);
        if (count < LIVE && (count == 0 || more)) {
            uint64_t bytes =
                check_random_i64(&random, 0, 1) == 0
                    ? 12 * MIB /* all of one size, and never split */
                    : (uint64_t)check_random_i64(&random, 1, 1 << check_random_i64(&random, 1, 26));
            size[count] = bytes;
            sum += caching_rounded_bytes(bytes);
            live[count++] = caching_alloc(&a, bytes);
        } else {
            int i = (int)check_random_i64(&random, 0, count - 1);
            caching_free(&a, live[i]);
            sum -= caching_rounded_bytes(size[i]);
            live[i] = live[--count];
            size[i] = size[count];
        }
        if (!CHECK("used", a.used_bytes >= sum) ||
            !CHECK("reserved", a.reserved_bytes >= a.used_bytes))
            break;
        if (step % 100 == 0)
            CHECK_INT("free", (int64_t)check_free_blocks_in_order(&a, &most),
                      (int64_t)(a.reserved_bytes - a.used_bytes));
    }
    while (count > 0)
        caching_free(&a, live[--count]);
    CHECK_INT("used", (int64_t)a.used_bytes, 0);
    CHECK_INT("free", (int64_t)check_free_blocks_in_order(&a, &most), (int64_t)a.reserved_bytes);
    CHECK("lists were long", expandable || most > 500);
    CHECK("segments went back where there is a limit",
          (a.bytes_released_under_pressure > 0) == (limit > 0));
    caching_release(&a);
}

static void random_allocations_keep_sums(void)
{
    check_sums(0, false);
    check_sums(1024 * MIB, false);
    check_sums(0, true);
    check_sums(1024 * MIB, true);
}

static const struct check_case cases[] = {
    {"sizes are rounded as PyTorch does", sizes_are_rounded_as_pytorch_does},
    {"a freed block serves again", freed_blocks_are_reused},
    {"holes are held and not used", fragmented_holes_stay_reserved},
    {"freed neighbours merge", freed_neighbours_merge},
    {"small rests are not split off", small_rests_are_not_split_off},
    {"cached segments go back before a device is full",
     cached_segments_go_back_before_a_device_is_full},
    {"a segment that grows reuses its free end", a_segment_that_grows_reuses_its_free_end},
    {"pages of holes go back before a device is full",
     pages_of_holes_go_back_before_a_device_is_full},
    {"streams share no blocks", streams_share_no_blocks},
    {"sums hold for any order", random_allocations_keep_sums},
};
CHECK_MAIN("caching_allocator", cases)
