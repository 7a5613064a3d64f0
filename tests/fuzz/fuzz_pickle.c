/* tests/fuzz/fuzz_pickle.c: whatever the bytes, either a pickle is read as plain data in an arena, or there is
 * one message. */
#include "tests/fuzz/fuzz.h"
#include "traces/pickle.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct diag diag = {0};
    struct pickle_value *root = NULL;
    if (pickle_parse(&root, &arena, "fuzz", (const char *)data, size, &diag) == STATUS_OK)
        assert(root != NULL && diag.error_count == 0);
    else
        assert(diag.error_count == 1);
    diag_release(&diag);
    arena_release(&arena);
    return 0;
}
