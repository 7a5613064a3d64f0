/* base/arena.h: memory that lives as long as the phase that made it.
 *
 * An arena hands out memory and takes it back all at once. The heap functions
 * are for single large arrays that grow. This module is the only place that
 * meets out-of-memory: it prints one line and ends the program with code 2. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct arena_block;

struct arena {
    struct arena_block *head; /* newest block first */
    size_t used, capacity;    /* bytes in the newest block */
    size_t total;             /* bytes taken from the heap for all blocks */
};

/* Frees every block; the arena is empty and usable again. */
void arena_release(struct arena *arena);

/* size zeroed bytes, aligned for any type. size 0 gives a unique pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* Room for count elements of size bytes, zeroed; checks count * size for overflow. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* A NUL-terminated copy of text[0..size). */
char *arena_text(struct arena *arena, const char *text, size_t size);

/* printf into the arena. */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* malloc/calloc/realloc that end the program when memory is out (or count * size overflows). */
void *heap_alloc(size_t count, size_t size);
void *heap_zalloc(size_t count, size_t size);
void *heap_realloc(void *old, size_t count, size_t size);

/* Ends the program as these do, after a library was refused memory. */
void heap_out(void) __attribute__((noreturn));

/* Threads that begin from now on take from the heap that the process has: one of their own would be new pages for
 * each of them. For few threads that ask for memory, and large blocks. */
void heap_share(void);

/* Zeroed pages that are there from the start: for what a forked child writes. Of the heap that it has from its
 * parent, each page that it writes to is copied. */
void *pages_alloc(size_t bytes);
void pages_free(void *pages, size_t bytes); /* NULL: nothing happens */

/* Makes pages of a mapping that are about to be written be there, where the kernel can do so at once. */
void pages_touch(void *pages, size_t bytes);

/* The capacity an array of `capacity` elements should grow to so that it holds
 * at least `needed`: doubling, from a floor of 16. */
size_t heap_next_capacity(size_t capacity, size_t needed);

/* Makes the array `old` of *capacity elements of `size` bytes hold at least `needed`, and returns it. */
void *heap_grow(void *old, size_t *capacity, size_t needed, size_t size);

#ifdef __cplusplus
}
#endif

#endif
