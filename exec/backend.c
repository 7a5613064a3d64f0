#include "exec/backend.h"

#include <string.h>

extern const struct backend cpu_backend; /* exec/cpu/ */
/* exec/cuda/; without CUDA in the build, one that refuses to run */
extern const struct backend cuda_backend;

/* The first is the default. */
static const struct backend *const backends[] = {&cpu_backend, &cuda_backend};

const struct backend *const *backend_all(size_t *count)
{
    *count = ARRAY_LEN(backends);
    return backends;
}

const struct backend *backend_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(backends); i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}
