/* tests/fuzz/fuzz_trace_csv.c: whatever the text, either a trace is read, which prints and reads back to the
 * same bytes, or there is exactly one message. The same bytes are read as op rows and as memory rows; a trace
 * also passes through the statistics and the Perfetto writer. */
#include "base/json.h"
#include "tests/fuzz/fuzz.h"
#include "traces/csv.h"
#include "traces/perfetto.h"
#include "traces/stats.h"

#include <assert.h>
#include <string.h>

struct csv_format_functions {
    enum status (*parse)(struct trace *trace, const char *name, const char *data, size_t size,
                         struct diag *diag);
    void (*print)(const struct trace *trace, struct text *out);
};

static void check_round_trip(const struct trace *trace, const struct csv_format_functions *table)
{
    struct trace again = {0};
    struct text first = {0}, second = {0};
    table->print(trace, &first);
    enum status status = table->parse(&again, "again.csv", first.data, first.size, NULL);
    assert(status == STATUS_OK);
    table->print(&again, &second);
    assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    text_release(&first);
    text_release(&second);
    trace_release(&again);
}

static void check_json_form(const struct trace *trace)
{
    struct text out = {0};
    struct json json = {0};
    if (perfetto_print(trace, &out, "fuzz.json", NULL) == STATUS_OK) {
        enum status status = json_parse(&json, "fuzz.json", out.data, out.size, NULL);
        assert(status == STATUS_OK);
        json_release(&json);
    }
    text_release(&out);
}

static void check_stats(const struct trace *trace)
{
    struct trace_stats stats;
    trace_stats_compute(&stats, trace);
    size_t ops = 0;
    for (size_t i = 0; i < stats.stream_count; i++)
        ops += stats.streams[i].op_count;
    assert(ops == trace->ops.count);
    for (size_t i = 0; i < stats.rank_count; i++) {
        const struct stats_rank *rank = &stats.ranks[i];
        assert(stats_find_rank(&stats, rank->rank) == rank);
        assert(rank->exposed_s[ROLE_COMM] <= rank->busy_s[ROLE_COMM]);
    }
    for (size_t i = 0; i < stats.memory_count; i++)
        assert(stats.memories[i].bytes_at_end <= stats.memories[i].peak_bytes);
    trace_stats_release(&stats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct csv_format_functions tables[] = {
        {trace_parse_ops, trace_print_ops},
        {trace_parse_memory, trace_print_memory},
    };
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct trace trace = {0};
        struct diag diag = {0};
        enum status status = tables[i].parse(&trace, "fuzz.csv", (const char *)data, size, &diag);
        assert(diag.error_count == (status != STATUS_OK));
        check_round_trip(&trace, &tables[i]);
        check_stats(&trace);
        check_json_form(&trace);
        diag_release(&diag);
        trace_release(&trace);
    }
    return 0;
}
