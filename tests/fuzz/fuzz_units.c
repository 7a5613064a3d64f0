/* tests/fuzz/fuzz_units.c: whatever the text, either a quantity is read, which is finite and not negative, or there is
 * one message. A number of tokens that is read prints as a text that gives it again. */
#include "base/units.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct loc at = {.name = "fuzz"};
    for (enum unit_kind kind = 0; kind < UNIT_KIND_COUNT; kind++) {
        struct diag diag = {0};
        struct text out = {0};
        double value;
        if (units_parse(text, size, kind, &value, at, &diag) == STATUS_OK) {
            assert(isfinite(value) && value >= 0 && diag.error_count == 0);
            units_put(&out, kind, value);
            units_put_gib(&out, value);
        } else {
            assert(diag.error_count == 1);
        }
        text_release(&out);
        diag_release(&diag);
    }
    int64_t tokens;
    if (units_parse_tokens(text, size, &tokens, at, NULL) == STATUS_OK) {
        /* A printed count reads back as the same count. */
        struct text out = {0};
        int64_t again;
        assert(tokens >= 1);
        units_put_tokens(&out, tokens);
        assert(units_parse_tokens(out.data, out.size, &again, at, NULL) == STATUS_OK);
        assert(again == tokens);
        text_release(&out);
    }
    return 0;
}
