#include "exec/backend.h"

#include <string.h>

extern const struct backend cpu_backend; /* exec/cpu/ */
/* from exec/cuda/; in a build without CUDA it is a backend that refuses to run */
extern const struct backend cuda_backend;

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
