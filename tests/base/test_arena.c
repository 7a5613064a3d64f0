/* tests/base/test_arena.c: memory of arenas and of the heap is aligned, zeroed where that is promised, and keeps what
 * it holds; an impossible size ends the program. */
#include "base/arena.h"
#include "tests/check.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool all_zero(const unsigned char *memory, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (memory[i] != 0)
            return false;
    }
    return true;
}

static void memory_is_aligned_zeroed_and_apart(void)
{
    struct arena arena = {0};
    unsigned char *last = NULL;
    size_t last_size = 0;
    for (size_t i = 0; i < 3000; i++) {
        size_t size = i % 97 == 0 ? 40000 : i % 61;
        unsigned char *memory = arena_alloc(&arena, size);
        CU_ASSERT((uintptr_t)memory % alignof(max_align_t) == 0);
        CU_ASSERT(memory != last);
        CU_ASSERT(all_zero(memory, size));
        memset(memory, 0xff, size);
        if (last && last_size > 0)
            CU_ASSERT(last[last_size - 1] == 0xff);
        last = memory;
        last_size = size;
    }
    CHECK("total covers what is used", arena.total_bytes > 3000 / 97 * 40000);
    arena_release(&arena);
    CHECK("empty again", arena.newest_block == NULL && arena.total_bytes == 0);
    CHECK("and usable", arena_alloc(&arena, 1) != NULL);
    arena_release(&arena);
    arena_release(&arena);
}

static void texts_are_terminated_copies(void)
{
    struct arena arena = {0};
    CHECK_TEXT("part", arena_text(&arena, "abcdef", 3), "abc");
    CHECK_TEXT("empty", arena_text(&arena, NULL, 0), "");
    CHECK_TEXT("printed", arena_printf(&arena, "%s[%d]", "nodes", 3), "nodes[3]");
    arena_release(&arena);
}

static void capacities_double_from_sixteen(void)
{
    static const struct {
        size_t capacity, needed, want;
    } rows[] = {
        {0, 1, 16},
        {16, 16, 16},
        {16, 17, 32},
        {32, 100, 128},
        {SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX - 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK("capacity", heap_next_capacity(rows[i].capacity, rows[i].needed) == rows[i].want);
    size_t capacity = 0;
    int *row = heap_grow(NULL, &capacity, 1, sizeof *row);
    CHECK("an array grows to its next capacity", row != NULL && capacity == 16);
    row[15] = 7;
    CHECK("it stays where it has room", heap_grow(row, &capacity, 16, sizeof *row) == row);
    row = heap_grow(row, &capacity, 17, sizeof *row);
    CHECK("it keeps what it holds", row[15] == 7 && capacity == 32);
    free(row);
}

/* The sizes grow and shrink over three kinds of blocks: small ones, those of at least 128 KiB,
 * which share huge pages of the heap, and those of at least 32 MiB, which have mappings of their
 * own. */
static void heap_blocks_of_all_sizes_keep_what_they_hold(void)
{
    static const size_t sizes[] = {4000,     131072, 3000000, 33554432, 70000000,
                                   33554431, 131071, 5000000, 64};
    unsigned char *block = NULL;
    size_t had = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        block = heap_realloc(block, sizes[i], 1);
        size_t kept = had < sizes[i] ? had : sizes[i];
        for (size_t k = 0; k < kept; k += 4093)
            CHECK("kept", block[k] == (unsigned char)(k >> 4));
        for (size_t k = 0; k < sizes[i]; k++)
            block[k] = (unsigned char)(k >> 4);
        had = sizes[i];
        unsigned char *zeroed = heap_zalloc(sizes[i], 1);
        size_t zeros = 0;
        while (zeros < sizes[i] && zeroed[zeros] == 0)
            zeros++;
        CHECK("zeroed", zeros == sizes[i]);
        memset(zeroed, 0xff, sizes[i]); /* a later block may get this memory */
        free(zeroed);
    }
    free(block);
}

static void pages_made_present_keep_their_bytes(void)
{
    static unsigned char pages[100000];
    memset(pages, 0x5a, sizeof pages);
    pages_make_present(pages, sizeof pages);
    for (size_t k = 0; k < sizeof pages; k++)
        CHECK_INT("kept", pages[k], 0x5a);
    pages_make_present(NULL, 0);
}

/* Returns the exit code of a child process that runs f; the child's messages are dropped. */
static int exit_code_of_child_running(void (*f)(void))
{
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        f();
        _exit(0);
    }
    int state = 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static void allocate_overflowing_arena_array(void)
{
    struct arena arena = {0};
    (void)arena_array(&arena, SIZE_MAX / 2, 4);
}

static void allocate_overflowing_heap_array(void)
{
    (void)heap_alloc(SIZE_MAX / 4, 8);
}

static void allocate_largest_arena_block(void)
{
    struct arena arena = {0};
    (void)arena_alloc(&arena, SIZE_MAX - 8);
}

static void impossible_sizes_end_the_program_with_code_2(void)
{
    CHECK_INT("array", exit_code_of_child_running(allocate_overflowing_arena_array), 2);
    CHECK_INT("heap", exit_code_of_child_running(allocate_overflowing_heap_array), 2);
    CHECK_INT("block", exit_code_of_child_running(allocate_largest_arena_block), 2);
}

static const struct check_case cases[] = {
    {"memory is aligned, zeroed and apart", memory_is_aligned_zeroed_and_apart},
    {"texts are terminated copies", texts_are_terminated_copies},
    {"capacities double from sixteen", capacities_double_from_sixteen},
    {"heap blocks of all sizes keep what they hold", heap_blocks_of_all_sizes_keep_what_they_hold},
    {"touched pages keep what they hold", pages_made_present_keep_their_bytes},
    {"impossible sizes end the program with code 2", impossible_sizes_end_the_program_with_code_2},
};
CHECK_MAIN("arena", cases)
