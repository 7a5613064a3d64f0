/* tests/cli/no_memory.c: a library that tests/cli/no_memory.sh preloads into the program. From main() on it refuses
 * the FAIL_AT-th allocation and all later ones, whichever code makes them. Without FAIL_AT it refuses none and prints
 * the number of allocations to standard error. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void),
                           void (*)(void), void *);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
start_function __libc_start_main;

static bool counts;
static _Atomic long asked;
static long refused_from;
static main_function *real_main;

static bool refused(void)
{
    if (!counts || ++asked < refused_from || refused_from == 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return refused() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return refused() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **memory, size_t align, size_t size)
{
    *memory = aligned_alloc(align, size);
    return *memory != NULL ? 0 : ENOMEM;
}

static int main_that_counts_allocations(int argc, char **argv, char **environment)
{
    const char *from = getenv("FAIL_AT");
    refused_from = from != NULL ? strtol(from, NULL, 10) : 0;
    counts = true;
    int code = real_main(argc, argv, environment);
    counts = false;
    if (refused_from == 0)
        fprintf(stderr, "%ld allocations\n", (long)asked);
    return code;
}

int __libc_start_main(main_function *begin, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    real_main = begin;
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    return start(main_that_counts_allocations, argc, argv, init, fini, loader_fini, stack_end);
}
