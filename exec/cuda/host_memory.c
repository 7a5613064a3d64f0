#define _DEFAULT_SOURCE /* madvise(), syscall() */
#include "exec/cuda/host_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE_PAGE = 2 << 20, MPOL_BIND_ = 2, THREADS_MAX = 16 };

/* The bytes for each thread. A thread maps as many in about the time that another one takes to start. */
static const size_t BYTES_OF_A_THREAD = 64 << 20;

/* Reserves address space, which begins at a multiple of LARGE_PAGE if it is at least that large. Returns NULL if the
 * system refused. */
static char *reserve_pages(size_t bytes)
{
    size_t spare = bytes >= LARGE_PAGE ? LARGE_PAGE : 0;
    char *all =
        mmap(NULL, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t head = spare == 0 ? 0 : (LARGE_PAGE - (uintptr_t)all % LARGE_PAGE) % LARGE_PAGE;
    if (head > 0)
        munmap(all, head);
    if (spare > head)
        munmap(all + head + bytes, spare - head);
    return all + head;
}

/* Binds memory to a NUMA node from 0 to 63; does nothing for other numbers. It must come before any access to the
 * memory, since a page is placed at its first access. A system that refuses places the pages itself. */
static void bind_to_numa_node(void *memory, size_t bytes, int node)
{
#ifdef SYS_mbind
    if (node >= 0 && node < 64) {
        unsigned long mask = 1ul << node;
        (void)syscall(SYS_mbind, memory, bytes, MPOL_BIND_, &mask, 65ul, 0u);
    }
#else
    (void)memory;
    (void)bytes;
    (void)node;
#endif
}

struct page_slice {
    char *begin, *end;
};

static void *touch_pages(void *argument)
{
    const struct page_slice *slice = argument;
    for (volatile char *page = slice->begin; page < slice->end; page += PAGE)
        *page = 0;
    return NULL;
}

static void touch_all_pages(char *memory, size_t bytes)
{
    pthread_t thread[THREADS_MAX];
    struct page_slice slice[THREADS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t slices = bytes / BYTES_OF_A_THREAD + 1, started = 0;
    if (processors > 0 && slices > (size_t)processors)
        slices = (size_t)processors;
    if (slices > THREADS_MAX)
        slices = THREADS_MAX;
    size_t each = (bytes / slices + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    for (size_t i = 0; i < slices; i++) {
        size_t begin = i * each < bytes ? i * each : bytes;
        size_t end = begin + each < bytes ? begin + each : bytes;
        slice[i] = (struct page_slice){memory + begin, memory + end};
    }
    while (started + 1 < slices &&
           pthread_create(&thread[started], NULL, touch_pages, &slice[started]) == 0)
        started++;
    /* this thread's slice, and those that got no thread */
    for (size_t i = started; i < slices; i++)
        touch_pages(&slice[i]);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

void *host_memory_new(size_t bytes, int node)
{
    char *memory = reserve_pages(bytes);
    if (memory == NULL)
        return NULL;
    if (bytes >= LARGE_PAGE)
        /* a system without huge pages uses small ones */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    bind_to_numa_node(memory, bytes, node);
    touch_all_pages(memory, bytes);
    return memory;
}

void host_memory_free(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}
