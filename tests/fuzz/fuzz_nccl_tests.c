/* tests/fuzz/fuzz_nccl_tests.c: whatever the text, either the output of nccl-tests is read into points, which
 * print and read back, or there is exactly one message. */
#include "models/nccl_tests.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct points points = {0}, again = {0};
    struct diag diag = {0};
    struct text out = {0};
    const char *test = size > 0 && data[0] == '!' ? "all_gather_perf" : NULL;
    nccl_tests_recognise((const char *)data, size);
    enum status status =
        nccl_tests_parse(&points, "fuzz.txt", (const char *)data, size, test, 8, &diag);
    assert(diag.error_count == (status != STATUS_OK));
    points_print(&points, &out);
    status = points_parse(&again, "again.csv", out.data, out.size, NULL);
    assert(status == STATUS_OK && again.count == points.count);
    text_release(&out);
    diag_release(&diag);
    points_release(&points);
    points_release(&again);
    return 0;
}
