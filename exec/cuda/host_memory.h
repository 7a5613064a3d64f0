/* exec/cuda/host_memory.h: host memory that a GPU copies from and to. Needs no CUDA. */
#ifndef EXEC_CUDA_HOST_MEMORY_H
#define EXEC_CUDA_HOST_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory whose pages are all mapped, or NULL with errno set. node: the NUMA node; -1: the system
 * chooses. Memory of 2 MiB or more begins at a multiple of 2 MiB and asks for huge pages, which are allocated, zeroed
 * and page-locked several times as fast as pages of 4 KiB. Several threads write the pages first. */
void *host_memory_new(size_t bytes, int node);
/* Frees memory of that many bytes; does nothing for NULL. */
void host_memory_free(void *memory, size_t bytes);

#endif
