/* tests/exec/gpu.h: tests that need a GPU: without one they are skipped, and say why. Included by
 * test files only. */
#ifndef TESTS_EXEC_GPU_H
#define TESTS_EXEC_GPU_H

#include "exec/backend.h"
#include "tests/check.h"

#include <stdio.h>

enum { GPU_SKIPPED = 77 };

static inline void gpu_say(void *user, const char *key, const char *value)
{
    (void)user;
    printf("# %s=%s\n", key, value);
}

/* Whether there is one; else the reason is printed. */
static inline bool gpu_is_there(void)
{
    const struct backend *cuda = backend_find("cuda");
    struct diag diag = {0};
    bool there = cuda->describe(gpu_say, NULL, &diag) == STATUS_OK;
    if (!there)
        printf("skipped: %s", diag.text);
    diag_release(&diag);
    return there;
}

#endif
