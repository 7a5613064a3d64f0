/* tests/fuzz/fuzz_external.c: whatever the text, either rows of measured runs are read, which print and read
 * back to the same bytes, or there is exactly one message. The args of a row are split into words, or there is
 * one message. */
#include "cli/common/options.h"
#include "tests/fuzz/fuzz.h"
#include "traces/external.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_row(const struct external_run *row)
{
    struct arena arena = {0};
    struct diag diag = {0};
    char **word;
    int count;
    const struct measurement_metric_info *info = &measurement_metrics[row->metric];
    assert(row->step_s == 0 || (row->gpus > 0 && row->seq_len > 0 && row->global_batch > 0));
    assert(row->gpus >= 0 && row->seq_len >= 0 && row->si_factor > 0 && isfinite(row->value));
    assert(row->is_number || info->score != SCORE_RELATIVE);
    assert((row->second_value > 0) == (row->second_metric != EXTERNAL_NO_SECOND_METRIC));
    enum status status =
        options_split_words(&word, &count, &arena, row->cells[EXTERNAL_ARGS], row->place, &diag);
    assert(diag.error_count == (status != STATUS_OK));
    for (int i = 0; i < count; i++)
        assert(strlen(word[i]) <= strlen(row->cells[EXTERNAL_ARGS]));
    diag_release(&diag);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct external_runs all = {0}, again = {0};
    struct diag diag = {0};
    struct text first = {0}, second = {0};
    enum status status = external_parse(&all, "fuzz.csv", (const char *)data, size, &diag);
    assert(diag.error_count == (status != STATUS_OK));
    struct external_prediction *result = heap_zalloc(all.row_count + 1, sizeof *result);
    for (size_t i = 0; i < all.row_count; i++) {
        check_row(&all.rows[i]);
        result[i] = external_make_unknown_prediction();
        result[i].status_reason = all.rows[i].cells[EXTERNAL_NOTE];
    }
    if (status == STATUS_OK) {
        external_print_columns(&first);
        external_print(&all, result, &first);
        status = external_parse(&again, "again.csv", first.data, first.size, NULL);
        assert(status == STATUS_OK && again.row_count == all.row_count);
        external_print_columns(&second);
        external_print(&again, result, &second);
        assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    }
    free(result);
    text_release(&first);
    text_release(&second);
    external_release(&all);
    external_release(&again);
    diag_release(&diag);
    return 0;
}
