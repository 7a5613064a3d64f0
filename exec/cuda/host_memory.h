/* exec/cuda/host_memory.h: memory of the host from which a GPU copies and to which it copies. Needs no CUDA. */
#ifndef EXEC_CUDA_HOST_MEMORY_H
#define EXEC_CUDA_HOST_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory whose pages are all mapped, or NULL with errno set. node: the NUMA node; -1: the system
 * chooses. Memory of 2 MiB or more begins at a multiple of 2 MiB and asks for huge pages, which are allocated, zeroed
 * and page-locked several times as fast as pages of 4 KiB. Several threads map the pages by writing to them. */
void *host_memory_new(size_t bytes, int node);
/* Frees memory of `bytes` bytes; does nothing for NULL. */
void host_memory_free(void *memory, size_t bytes);

#endif
