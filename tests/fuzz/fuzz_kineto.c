/* tests/fuzz/fuzz_kineto.c: whatever the text, either a recording is read whose rows our CSV reader accepts, or
 * there is exactly one message and no row. A recording is also aligned with itself as if it were a prediction;
 * at most all its rows are matched. The times of its kernels are read, or there is one message; each is found by its
 * own key. */
#include "tests/fuzz/fuzz.h"
#include "traces/compare.h"
#include "traces/csv.h"
#include "traces/kernel_times.h"
#include "traces/kineto.h"

#include <assert.h>

static void check_rows(const struct trace *trace)
{
    struct text out = {0};
    struct trace again = {0};
    trace_print_ops(trace, &out);
    enum status status = trace_parse_ops(&again, "again.csv", out.data, out.size, NULL);
    assert(status == STATUS_OK && again.ops.count == trace->ops.count);
    trace_release(&again);
    text_release(&out);
}

static void check_alignment(const struct trace *trace)
{
    struct comparison comparison = {0};
    struct diag diag = {0};
    enum status status = compare_with_profiler_trace(&comparison, trace, trace, "fuzz.json", &diag);
    assert(diag.error_count == (status != STATUS_OK));
    if (status == STATUS_OK) {
        assert(comparison.matched_time_share >= 0 && comparison.matched_time_share <= 1);
        assert(comparison.measured.unmatched_rows <= comparison.measured.rows);
        assert(comparison.predicted.unmatched_rows <= comparison.predicted.rows);
    }
    diag_release(&diag);
    comparison_release(&comparison);
}

static void check_kineto_host_calls(const struct kineto_host_calls *issue)
{
    for (size_t i = 0; i < issue->step_count; i++)
        for (int kind = 0; kind < CALL_COUNT; kind++) {
            const struct kineto_call_sums *calls = &issue->steps[i].issue_calls_by_kind[kind];
            assert(calls->operator_count <= calls->call_count);
            assert(calls->total_call_s >= 0 && calls->total_gap_before_calls_s >= 0);
        }
}

static void check_kernel_times(const uint8_t *data, size_t size)
{
    static const char *const wanted[] = {"mm", "_to_copy"};
    struct kernel_times times = {0};
    struct diag diag = {0};
    enum status status = kernel_times_read(&times, "fuzz.json", (const char *)data, size, wanted,
                                           sizeof wanted / sizeof *wanted, &diag);
    assert(diag.error_count == (status != STATUS_OK));
    for (size_t i = 0; i < times.row_count; i++) {
        const struct operator_kernel_time *row = &times.rows[i];
        assert(row->call_count > 0 && row->median_s > 0 && row->total_s >= row->median_s);
        assert(kernel_times_find(&times, &row->key) != NULL);
    }
    diag_release(&diag);
    kernel_times_release(&times);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace trace = {0};
    struct diag diag = {0};
    struct kineto_host_calls issue = {0};
    enum status status =
        kineto_parse_with_host_calls(&trace, &issue, "fuzz.json", (const char *)data, size, &diag);
    assert(diag.error_count == (status != STATUS_OK));
    assert((trace.ops.count > 0) == (status == STATUS_OK));
    if (status == STATUS_OK) {
        assert(kineto_recognise((const char *)data, size));
        check_rows(&trace);
        check_kineto_host_calls(&issue);
        check_alignment(&trace);
    }
    check_kernel_times(data, size);
    diag_release(&diag);
    kineto_host_calls_release(&issue);
    trace_release(&trace);
    return 0;
}
