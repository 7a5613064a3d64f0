/* tests/exec/gpu.h: helpers of tests that need a GPU. On a machine without one such a test is skipped and
 * prints the reason. Included by test files only. */
#ifndef TESTS_EXEC_GPU_H
#define TESTS_EXEC_GPU_H

#include "exec/backend.h"
#include "tests/check.h"

#include <stdio.h>

enum { GPU_SKIPPED = 77 };

static inline void gpu_print_key_value(void *user, const char *key, const char *value)
{
    (void)user;
    printf("# %s=%s\n", key, value);
}

/* Returns true if there is a GPU; otherwise prints why the test is skipped and returns false. */
static inline bool gpu_is_there(void)
{
    const struct backend *cuda = backend_find("cuda");
    struct diag diag = {0};
    bool there = cuda->describe(gpu_print_key_value, NULL, &diag) == STATUS_OK;
    if (!there)
        printf("skipped: %s", diag.text);
    diag_release(&diag);
    return there;
}

#endif
