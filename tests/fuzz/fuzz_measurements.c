/* tests/fuzz/fuzz_measurements.c: whatever the text, either measurements are read, which print and read back to
 * the same bytes, or there is exactly one message. */
#include "tests/fuzz/fuzz.h"
#include "traces/measurements.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void hold_row(const struct measurement *row)
{
    assert(row->metric < METRIC_COUNT && isfinite(row->value) && row->scale > 0);
    assert(row->gpus >= 0 && row->seq_len >= 0);
    for (size_t i = 0; i < row->option_count; i++)
        assert(measurement_option(row, row->option[i].key) == row->option[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct measurements all = {0}, again = {0};
    struct diag diag = {0};
    struct text first = {0}, second = {0};
    enum status status = measurements_parse(&all, "fuzz.csv", (const char *)data, size, &diag);
    assert(diag.errors == (status != STATUS_OK));
    struct measurement_result *result = heap_zalloc(all.count + 1, sizeof *result);
    for (size_t i = 0; i < all.count; i++) {
        hold_row(&all.row[i]);
        result[i].why = all.row[i].text[MEASUREMENT_NOTE];
        result[i].predicted_text = all.row[i].text[MEASUREMENT_TABLE];
    }
    measurements_print(&all, result, &first);
    status = measurements_parse(&again, "again.csv", first.data, first.size, NULL);
    assert(status == STATUS_OK && again.count == all.count);
    measurements_print(&again, result, &second);
    assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    free(result);
    text_release(&first);
    text_release(&second);
    measurements_release(&all);
    measurements_release(&again);
    diag_release(&diag);
    return 0;
}
