/* tests/traces/test_stats.c: busy, exposed and peak figures of a trace's ranks, each worked by hand. */
#include "tests/check.h"
#include "traces/stats.h"

#include <string.h>

static void add_op(struct trace *trace, uint32_t rank, const char *stream, double start_s,
                   double end_s)
{
    size_t row = trace_add_op(trace);
    trace->ops.rank[row] = rank;
    trace->ops.stream[row] = trace_intern_label(trace, stream);
    trace->ops.start_s[row] = start_s;
    trace->ops.end_s[row] = end_s;
    trace->ops.bytes[row] = 10;
    trace->ops.flops[row] = 100;
}

static void add_change(struct trace *trace, double time_s, uint32_t rank, const char *memory,
                       const char *category, double bytes)
{
    size_t row = trace_add_memory(trace);
    trace->memory.time_s[row] = time_s;
    trace->memory.rank[row] = rank;
    trace->memory.memory[row] = trace_intern_label(trace, memory);
    trace->memory.category[row] = trace_intern_label(trace, category);
    trace->memory.bytes[row] = bytes;
}

/* time     1    2    3    4    5    6    7    8    9   10
 * compute  [---------]         [---------]    [----]          1-3, 5-7, 8-9
 * comm.cp       [---------]                                   2-4
 * comm.hp            [---------]                   [----]     3-5, 9-10
 * h2d                     [--------------]                    4-7
 * Communication 2-5 and 9-10 (4 s), of it 3-5 and 9-10 exposed (3 s); copies 4-7, of it 4-5 exposed. */
static void add_ops_of_timeline_in_comment(struct trace *trace, uint32_t rank)
{
    add_op(trace, rank, "compute", 1, 3);
    add_op(trace, rank, "compute", 5, 7);
    add_op(trace, rank, "compute", 8, 9);
    add_op(trace, rank, "comm.cp", 2, 4);
    add_op(trace, rank, "comm.hp", 3, 5);
    add_op(trace, rank, "comm.hp", 9, 10);
    add_op(trace, rank, "h2d", 4, 7);
}

static void check_stats_of_timeline_in_comment(const char *label, const struct stats_rank *rank)
{
    if (!CHECK(label, rank != NULL))
        return;
    CHECK_CLOSE(label, rank->start_s, 1, 0);
    CHECK_CLOSE(label, rank->end_s, 10, 0);
    CHECK_CLOSE(label, rank->busy_s[ROLE_COMPUTE], 5, 1e-15);
    CHECK_CLOSE(label, rank->busy_s[ROLE_COMM], 4, 1e-15);
    CHECK_CLOSE(label, rank->exposed_s[ROLE_COMM], 3, 1e-15);
    CHECK_CLOSE(label, stats_overlapped_comm_share(rank), 0.25, 1e-15);
    CHECK_CLOSE(label, rank->busy_s[ROLE_H2D], 3, 1e-15);
    CHECK_CLOSE(label, rank->exposed_s[ROLE_H2D], 1, 1e-15);
    CHECK_CLOSE(label, rank->busy_s[ROLE_D2H], 0, 0);
    CHECK_CLOSE(label, rank->exposed_s[ROLE_COMPUTE], 0, 0);
    CHECK_CLOSE(label, rank->idle_s, 1, 1e-15); /* 7-8 */
}

static void exposed_communication_is_that_without_compute(void)
{
    struct trace trace = {0};
    struct trace_stats stats;
    add_ops_of_timeline_in_comment(&trace, 3);
    trace_stats_compute(&stats, &trace);
    check_stats_of_timeline_in_comment("as drawn", stats_find_rank(&stats, 3));
    CHECK("no such rank", stats_find_rank(&stats, 0) == NULL);
    CHECK_INT("streams", (int64_t)stats.stream_count, 4);
    const struct stats_stream *hp = NULL;
    for (size_t i = 0; i < stats.stream_count; i++)
        if (strcmp(trace.labels[stats.streams[i].stream], "comm.hp") == 0)
            hp = &stats.streams[i];
    if (CHECK("comm.hp", hp != NULL)) {
        CHECK_INT("ops", (int64_t)hp->op_count, 2);
        CHECK_INT("role", hp->role, ROLE_COMM);
        CHECK_CLOSE("busy", hp->busy_s, 3, 0);
        CHECK_CLOSE("start", hp->start_s, 3, 0);
        CHECK_CLOSE("end", hp->end_s, 10, 0);
        CHECK_CLOSE("bytes", hp->bytes, 20, 0);
        CHECK_CLOSE("flops", hp->flops, 200, 0);
    }
    trace_stats_release(&stats);
    trace_release(&trace);
}

/* Statistics of two ranks do not depend on the order of rows in the table. */
static void the_order_of_rows_does_not_matter(void)
{
    struct check_random random = check_random_make();
    for (int round = 0; round < 20; round++) {
        struct trace drawn = {0}, trace = {0};
        struct trace_stats stats;
        add_ops_of_timeline_in_comment(&drawn, 70000);
        add_ops_of_timeline_in_comment(&drawn, 2);
        uint32_t row[14];
        for (uint32_t i = 0; i < 14; i++) {
            int64_t j = check_random_i64(&random, 0, i);
            row[i] = row[j];
            row[j] = i;
        }
        for (size_t i = 0; i < 14; i++)
            add_op(&trace, drawn.ops.rank[row[i]], drawn.labels[drawn.ops.stream[row[i]]],
                   drawn.ops.start_s[row[i]], drawn.ops.end_s[row[i]]);
        trace_stats_compute(&stats, &trace);
        CHECK_INT("ranks", (int64_t)stats.rank_count, 2);
        CHECK_INT("in order", stats.ranks[0].rank, 2);
        check_stats_of_timeline_in_comment("rank 2", stats_find_rank(&stats, 2));
        check_stats_of_timeline_in_comment("rank 70000", stats_find_rank(&stats, 70000));
        CHECK_CLOSE("start", stats.start_s, 1, 0);
        CHECK_CLOSE("end", stats.end_s, 10, 0);
        trace_stats_release(&stats);
        trace_release(&trace);
        trace_release(&drawn);
    }
}

static void ops_that_overlap_on_a_stream_count_once(void)
{
    struct trace trace = {0};
    struct trace_stats stats;
    add_op(&trace, 0, "comm.cp", 0, 10);
    add_op(&trace, 0, "comm.cp", 2, 3);
    add_op(&trace, 0, "comm.cp", 9, 12);
    add_op(&trace, 0, "comm.cp", 20, 20); /* a guarded-out op ends at its start */
    add_op(&trace, 0, "compute", 0, 1);
    add_op(&trace, 0, "compute2", 1, 6);
    trace_stats_compute(&stats, &trace);
    CHECK_CLOSE("busy", stats.ranks[0].busy_s[ROLE_COMM], 12, 0);
    CHECK_CLOSE("two compute streams", stats.ranks[0].busy_s[ROLE_COMPUTE], 6, 0);
    CHECK_CLOSE("exposed", stats.ranks[0].exposed_s[ROLE_COMM], 6, 0);
    CHECK_CLOSE("end", stats.ranks[0].end_s, 20, 0);
    CHECK_CLOSE("idle", stats.ranks[0].idle_s, 8, 0);
    trace_stats_release(&stats);
    trace_release(&trace);
}

static void waits_of_the_host_hide_nothing(void)
{
    struct trace trace = {0};
    struct trace_stats stats;
    add_op(&trace, 0, "compute", 0, 2);
    add_op(&trace, 0, "compute", 2, 6);
    trace.ops.kind[1] = trace_intern_label(&trace, "host_sync");
    add_op(&trace, 0, "offload", 1, 5);
    trace_stats_compute(&stats, &trace);
    CHECK_CLOSE("busy", stats.ranks[0].busy_s[ROLE_COMPUTE], 2, 0);
    CHECK_CLOSE("exposed", stats.ranks[0].exposed_s[ROLE_OFFLOAD], 3, 0);
    CHECK_CLOSE("the step ends with the wait", stats.ranks[0].end_s, 6, 0);
    trace_stats_release(&stats);
    trace_release(&trace);
}

static void stream_roles_follow_from_names(void)
{
    static const struct {
        const char *name;
        enum stream_role role;
    } names[] = {
        {"compute", ROLE_COMPUTE}, {"compute2", ROLE_COMPUTE}, {"comm", ROLE_COMM},
        {"comm.hp", ROLE_COMM},    {"communist", ROLE_OTHER},  {"h2d", ROLE_H2D},
        {"d2h.1", ROLE_D2H},       {"host", ROLE_HOST},        {"comp", ROLE_OTHER},
        {"", ROLE_OTHER},          {"offload", ROLE_OFFLOAD},  {"offload.aside", ROLE_OFFLOAD},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK_INT(names[i].name, stream_role_of(names[i].name), names[i].role);
    for (int role = 0; role < ROLE_COUNT; role++)
        CHECK_INT("a role's own name", stream_role_of(stream_role_name((enum stream_role)role)),
                  role);
}

/* hbm of rank 0:   t=0   1    2    3    4
 * parameter          10                        10
 * activation          5   20        2    0     20, at 1
 * kv                           4   30          30, at 3
 * sum                15   30  34   42   40     42 at 3, of it 10 + 2 + 30
 * The peaks of the categories sum to 60 bytes. But at 3 the activation falls before the kv rises, so 60 bytes are never
 * live. */
static void the_peak_is_of_the_sum_not_the_sum_of_peaks(void)
{
    struct trace trace = {0};
    struct trace_stats stats;
    add_change(&trace, 0, 0, "hbm", "parameter", 10);
    add_change(&trace, 0, 0, "hbm", "activation", 5);
    add_change(&trace, 0, 1, "hbm", "parameter", 11);
    add_change(&trace, 0, 0, "pinned", "kv", 7);
    add_change(&trace, 1, 0, "hbm", "activation", 20);
    add_change(&trace, 2, 0, "hbm", "kv", 4);
    add_change(&trace, 3, 0, "hbm", "activation", 2);
    add_change(&trace, 3, 0, "hbm", "kv", 30);
    add_change(&trace, 4, 0, "pinned", "kv", 0);
    add_change(&trace, 4, 0, "hbm", "activation", 0);
    trace_stats_compute(&stats, &trace);
    CHECK_INT("memories", (int64_t)stats.memory_count, 3);
    const struct stats_memory *hbm =
        stats_find_memory(&stats, 0, trace_intern_label(&trace, "hbm"));
    if (CHECK("hbm", hbm != NULL) && CHECK_INT("categories", (int64_t)hbm->category_count, 3)) {
        static const struct {
            const char *name;
            double peak, time, at_peak, last;
        } want[] = {
            /* name, peak, time, at_peak, last */
            {"parameter", 10, 0, 10, 10},
            {"activation", 20, 1, 2, 0},
            {"kv", 30, 3, 30, 30},
        };
        CHECK_CLOSE("peak", hbm->peak_bytes, 42, 0);
        CHECK_CLOSE("time", hbm->peak_time_s, 3, 0);
        CHECK_CLOSE("last", hbm->bytes_at_end, 40, 0);
        double sum = 0;
        for (size_t i = 0; i < 3; i++) {
            const struct stats_category *category = &stats.categories[hbm->first_category + i];
            CHECK_TEXT("in order of label", trace.labels[category->category], want[i].name);
            CHECK_CLOSE(want[i].name, category->peak_bytes, want[i].peak, 0);
            CHECK_CLOSE(want[i].name, category->peak_time_s, want[i].time, 0);
            CHECK_CLOSE(want[i].name, category->bytes_at_peak, want[i].at_peak, 0);
            CHECK_CLOSE(want[i].name, category->bytes_at_end, want[i].last, 0);
            sum += category->bytes_at_peak;
        }
        CHECK_CLOSE("parts sum to the peak", sum, hbm->peak_bytes, 0);
    }
    const struct stats_memory *pinned =
        stats_find_memory(&stats, 0, trace_intern_label(&trace, "pinned"));
    CHECK_CLOSE("pinned", pinned ? pinned->peak_bytes : -1, 7, 0);
    const struct stats_memory *other =
        stats_find_memory(&stats, 1, trace_intern_label(&trace, "hbm"));
    CHECK_CLOSE("rank 1", other ? other->peak_bytes : -1, 11, 0);
    CHECK("none", stats_find_memory(&stats, 1, trace_intern_label(&trace, "pinned")) == NULL);
    trace_stats_release(&stats);
    trace_release(&trace);
}

static void an_empty_trace_has_empty_stats(void)
{
    struct trace trace = {0};
    struct trace_stats stats;
    trace_stats_compute(&stats, &trace);
    CHECK_INT("ranks", (int64_t)stats.rank_count, 0);
    CHECK_INT("memories", (int64_t)stats.memory_count, 0);
    struct stats_rank silent = {0};
    CHECK_CLOSE("no communication: none exposed", stats_overlapped_comm_share(&silent), 1, 0);
    trace_stats_release(&stats);
    trace_release(&trace);
}

static const struct check_case cases[] = {
    {"exposed communication is that without compute",
     exposed_communication_is_that_without_compute},
    {"the order of rows does not matter", the_order_of_rows_does_not_matter},
    {"ops that overlap on a stream count once", ops_that_overlap_on_a_stream_count_once},
    {"waits of the host hide nothing", waits_of_the_host_hide_nothing},
    {"roles follow from names", stream_roles_follow_from_names},
    {"the peak is of the sum, not the sum of peaks", the_peak_is_of_the_sum_not_the_sum_of_peaks},
    {"an empty trace has empty stats", an_empty_trace_has_empty_stats},
};
CHECK_MAIN("stats", cases)
