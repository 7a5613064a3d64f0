/* base/arena.h: memory that lives as long as the phase of work that allocated it.
 *
 * An arena hands out memory and takes it back all at once. The heap functions
 * are for single large arrays that grow. This module is the only place that
 * handles out-of-memory: it prints one line and ends the program with code 2. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct arena_block;

struct arena {
    struct arena_block *newest_block;     /* each block points to the one allocated before it */
    size_t block_used_bytes, block_bytes; /* bytes in the newest block */
    size_t total_bytes;                   /* bytes taken from the heap for all blocks */
};

/* Frees every block; the arena is empty and usable again. */
void arena_release(struct arena *arena);

/* Returns size zeroed bytes, aligned for any type. size 0 gives a unique pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* Returns zeroed room for `count` elements of `size` bytes each; if count * size overflows, the program ends. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Returns a NUL-terminated copy of text[0..size). */
char *arena_text(struct arena *arena, const char *text, size_t size);

/* Returns a text in the arena, formatted as by printf. */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* malloc(), calloc() and realloc() for `count` elements of `size` bytes. If memory runs out, or count * size overflows,
 * they end the program. */
void *heap_alloc(size_t count, size_t size);
void *heap_zalloc(size_t count, size_t size);
void *heap_realloc(void *old, size_t count, size_t size);

/* Ends the program as heap_alloc() does, with a message that a library's allocation failed. */
void heap_out_of_memory(void) __attribute__((noreturn));

/* With `on`, C++'s operator new calls heap_out_of_memory() from now on when memory runs out. Without `on`, restores the
 * handler that was set before the last call with it. */
void heap_guard_operator_new(bool on);

/* Makes all pages of a mapping present before they are written. Does nothing if the kernel lacks a call for this. */
void pages_make_present(void *pages, size_t bytes);

/* Returns the capacity to which an array of `capacity` elements should grow so that it holds
 * at least `needed`: it doubles, from 16 on. */
size_t heap_next_capacity(size_t capacity, size_t needed);

/* Grows an array of *capacity elements of `size` bytes, if it holds fewer than `needed`, and sets *capacity. Returns
 * the array, which may have another address than `old`. */
void *heap_grow(void *old, size_t *capacity, size_t needed, size_t size);

#ifdef __cplusplus
}
#endif

#endif
