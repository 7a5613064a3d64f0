#include "traces/stats.h"

#include "traces/kernel_class.h"
#include "traces/row_order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_names[ROLE_COUNT] = {
    [ROLE_COMPUTE] = "compute", [ROLE_COMM] = "comm", [ROLE_H2D] = "h2d",     [ROLE_D2H] = "d2h",
    [ROLE_OFFLOAD] = "offload", [ROLE_HOST] = "host", [ROLE_OTHER] = "other",
};

enum stream_role stream_role_of(const char *name)
{
    for (int role = 0; role < ROLE_OTHER; role++) {
        size_t size = strlen(role_names[role]);
        char next = strncmp(name, role_names[role], size) == 0 ? name[size] : 'x';
        if (next == '\0' || next == '.' || (next >= '0' && next <= '9'))
            return (enum stream_role)role;
    }
    return ROLE_OTHER;
}

const char *stream_role_name(enum stream_role role)
{
    assert(role < ROLE_COUNT);
    return role_names[role];
}

/* Returns the number of different keys of the order; with shift 16, the number of different ranks in them. */
static size_t count_distinct_keys(const struct row_order *order, unsigned shift)
{
    size_t groups = order->row_count > 0;
    for (size_t i = 1; i < order->row_count; i++)
        groups += order->keys[i] >> shift != order->keys[i - 1] >> shift;
    return groups;
}

/* ---- busy time ---- */

/* The intervals in which a stream or a set of streams is busy: disjoint, ascending, none of them empty. */
struct busy_intervals {
    struct busy_interval {
        double start_s, end_s;
    } * intervals;
    size_t count, capacity;
};

/* Adds an interval that starts no earlier than any interval of the list. It is joined with the last one if they overlap
 * or touch; an empty one is dropped. */
static void append_busy_interval(struct busy_intervals *list, double start_s, double end_s)
{
    struct busy_interval *last = list->count > 0 ? &list->intervals[list->count - 1] : NULL;
    if (end_s <= start_s)
        return;
    if (last && start_s <= last->end_s) {
        if (end_s > last->end_s)
            last->end_s = end_s;
        return;
    }
    if (list->count == list->capacity) {
        list->capacity = heap_next_capacity(list->capacity, list->count + 1);
        list->intervals = heap_realloc(list->intervals, list->capacity, sizeof *list->intervals);
    }
    list->intervals[list->count++] = (struct busy_interval){start_s, end_s};
}

/* Sets *list to the union of *list and *other. */
static void unite_busy_intervals(struct busy_intervals *list, const struct busy_intervals *other)
{
    struct busy_intervals sum = {0};
    size_t i = 0, j = 0;
    while (i < list->count || j < other->count) {
        bool first = j == other->count ||
                     (i < list->count && list->intervals[i].start_s <= other->intervals[j].start_s);
        const struct busy_interval *next = first ? &list->intervals[i++] : &other->intervals[j++];
        append_busy_interval(&sum, next->start_s, next->end_s);
    }
    free(list->intervals);
    *list = sum;
}

/* Returns the sum of the lengths of the intervals, which do not overlap. */
static double total_s(const struct busy_intervals *list)
{
    double sum = 0;
    for (size_t i = 0; i < list->count; i++)
        sum += list->intervals[i].end_s - list->intervals[i].start_s;
    return sum;
}

/* Returns the seconds that lie in an interval of both lists. */
static double overlap_s(const struct busy_intervals *a, const struct busy_intervals *b)
{
    double sum = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const struct busy_interval *x = &a->intervals[i], *y = &b->intervals[j];
        double start = x->start_s > y->start_s ? x->start_s : y->start_s;
        double end = x->end_s < y->end_s ? x->end_s : y->end_s;
        if (end > start)
            sum += end - start;
        if (x->end_s < y->end_s)
            i++;
        else
            j++;
    }
    return sum;
}

/* Computes the statistics of one stream of one rank from rows row[0..count) in order of start. waits[label]: the
 * label is a kind that only waits and does no work. */
static void measure_stream(struct stats_stream *stream, struct busy_intervals *busy,
                           const struct trace *trace, const bool *waits, const uint32_t *row,
                           size_t count)
{
    const struct trace_ops *ops = &trace->ops;
    *stream = (struct stats_stream){
        .rank = ops->rank[row[0]],
        .stream = ops->stream[row[0]],
        .role = stream_role_of(trace->labels[ops->stream[row[0]]]),
        .op_count = count,
        .start_s = ops->start_s[row[0]],
        .end_s = ops->end_s[row[0]],
    };
    busy->count = 0;
    for (size_t i = 0; i < count; i++) {
        double end_s = ops->end_s[row[i]];
        if (!waits[ops->kind[row[i]]])
            append_busy_interval(busy, ops->start_s[row[i]], end_s);
        if (end_s > stream->end_s)
            stream->end_s = end_s;
        stream->bytes += ops->bytes[row[i]];
        stream->flops += ops->flops[row[i]];
    }
    stream->busy_s = total_s(busy);
}

/* Sets busy_s, exposed_s and idle_s of a rank. busy[role]: the intervals in which any of the rank's streams of that
 * role is busy. */
static void measure_rank(struct stats_rank *rank, struct busy_intervals *busy)
{
    struct busy_intervals any = {0};
    for (int role = 0; role < ROLE_COUNT; role++) {
        rank->busy_s[role] = total_s(&busy[role]);
        if (role != ROLE_COMPUTE)
            rank->exposed_s[role] =
                rank->busy_s[role] - overlap_s(&busy[role], &busy[ROLE_COMPUTE]);
        /* The two terms may be equal but for rounding: then nothing is exposed. */
        if (rank->exposed_s[role] < 1e-12 * rank->busy_s[role])
            rank->exposed_s[role] = 0;
        unite_busy_intervals(&any, &busy[role]);
    }
    rank->idle_s = rank->end_s - rank->start_s - total_s(&any);
    if (rank->idle_s < 1e-12 * (rank->end_s - rank->start_s))
        rank->idle_s = 0;
    free(any.intervals);
}

static void measure_ops(struct trace_stats *stats, const struct trace *trace)
{
    const struct trace_ops *ops = &trace->ops;
    struct row_order order;
    bool *waits = heap_alloc(trace->label_count + 1, sizeof *waits);
    for (size_t label = 0; label < trace->label_count; label++)
        waits[label] = kernel_class_of_kind(trace->labels[label]) == CLASS_NO_WORK;
    row_order_init(&order, ops->count, ops->rank, ops->stream, ops->start_s);
    stats->ranks =
        arena_array(&stats->arena, count_distinct_keys(&order, 16), sizeof *stats->ranks);
    stats->streams =
        arena_array(&stats->arena, count_distinct_keys(&order, 0), sizeof *stats->streams);
    struct busy_intervals one = {0}, busy[ROLE_COUNT] = {{0}};
    for (size_t begin = 0, end; begin < order.row_count; begin = end) {
        end = row_order_end_of_equal_keys(&order, begin);
        struct stats_stream *stream = &stats->streams[stats->stream_count];
        measure_stream(stream, &one, trace, waits, order.rows + begin, end - begin);
        struct stats_rank *rank =
            stats->rank_count > 0 ? &stats->ranks[stats->rank_count - 1] : NULL;
        if (!rank || rank->rank != stream->rank) {
            rank = &stats->ranks[stats->rank_count++];
            *rank = (struct stats_rank){.rank = stream->rank,
                                        .first_stream = stats->stream_count,
                                        .start_s = stream->start_s,
                                        .end_s = stream->end_s};
            for (int role = 0; role < ROLE_COUNT; role++)
                busy[role].count = 0;
        }
        rank->stream_count++;
        stats->stream_count++;
        if (stream->start_s < rank->start_s)
            rank->start_s = stream->start_s;
        if (stream->end_s > rank->end_s)
            rank->end_s = stream->end_s;
        unite_busy_intervals(&busy[stream->role], &one);
        if (end == order.row_count || order.keys[end] >> 16 != rank->rank)
            measure_rank(rank, busy);
    }
    for (size_t i = 0; i < stats->rank_count; i++) {
        const struct stats_rank *rank = &stats->ranks[i];
        if (i == 0 || rank->start_s < stats->start_s)
            stats->start_s = rank->start_s;
        if (i == 0 || rank->end_s > stats->end_s)
            stats->end_s = rank->end_s;
    }
    free(waits);
    free(one.intervals);
    for (int role = 0; role < ROLE_COUNT; role++)
        free(busy[role].intervals);
    row_order_release(&order);
}

double stats_overlapped_comm_share(const struct stats_rank *rank)
{
    double busy = rank->busy_s[ROLE_COMM];
    return busy > 0 ? 1 - rank->exposed_s[ROLE_COMM] / busy : 1;
}

/* ---- memory ---- */

/* Computes the statistics of one memory of one rank from rows row[0..count) in order of time. slot[] has room for
 * every label and is all zero before and after. */
static void measure_memory(struct trace_stats *stats, const struct trace *trace,
                           const uint32_t *row, size_t count, uint32_t *slot)
{
    const struct trace_memory *table = &trace->memory;
    struct stats_memory *memory = &stats->memories[stats->memory_count++];
    struct stats_category *category = &stats->categories[stats->category_count];
    *memory = (struct stats_memory){.rank = table->rank[row[0]],
                                    .memory = table->memory[row[0]],
                                    .first_category = stats->category_count};
    /* The categories come in the order of their labels, so that the result does not depend on the order of rows. */
    for (size_t i = 0; i < count; i++)
        slot[table->category[row[i]]] = 1;
    for (size_t label = 0; label < trace->label_count; label++)
        if (slot[label]) {
            slot[label] = (uint32_t)memory->category_count;
            category[memory->category_count++] = (struct stats_category){
                .category = (uint16_t)label, .peak_time_s = table->time_s[row[0]]};
        }
    memory->peak_time_s = table->time_s[row[0]];
    for (size_t i = 0; i < count; i++) {
        struct stats_category *changed = &category[slot[table->category[row[i]]]];
        changed->bytes_at_end = table->bytes[row[i]];
        if (changed->bytes_at_end > changed->peak_bytes) {
            changed->peak_bytes = changed->bytes_at_end;
            changed->peak_time_s = table->time_s[row[i]];
        }
        /* The total is summed over all categories after each change: a running sum would accumulate rounding errors. */
        double total = 0;
        for (size_t c = 0; c < memory->category_count; c++)
            total += category[c].bytes_at_end;
        if (total > memory->peak_bytes) {
            memory->peak_bytes = total;
            memory->peak_time_s = table->time_s[row[i]];
            for (size_t c = 0; c < memory->category_count; c++)
                category[c].bytes_at_peak = category[c].bytes_at_end;
        }
        memory->bytes_at_end = total;
    }
    for (size_t c = 0; c < memory->category_count; c++)
        slot[category[c].category] = 0;
    stats->category_count += memory->category_count;
}

/* Returns the number of different (rank, memory, category). */
static size_t count_categories(const struct trace *trace, const struct row_order *order)
{
    const struct trace_memory *table = &trace->memory;
    size_t *seen = heap_zalloc(trace->label_count + 1, sizeof *seen), sum = 0;
    for (size_t begin = 0, end; begin < order->row_count; begin = end) {
        end = row_order_end_of_equal_keys(order, begin);
        for (size_t i = begin; i < end; i++) {
            size_t *last = &seen[table->category[order->rows[i]]];
            sum += *last != begin + 1;
            *last = begin + 1;
        }
    }
    free(seen);
    return sum;
}

static void measure_memories(struct trace_stats *stats, const struct trace *trace)
{
    const struct trace_memory *table = &trace->memory;
    struct row_order order;
    row_order_init(&order, table->count, table->rank, table->memory, table->time_s);
    stats->memories =
        arena_array(&stats->arena, count_distinct_keys(&order, 0), sizeof *stats->memories);
    stats->categories =
        arena_array(&stats->arena, count_categories(trace, &order), sizeof *stats->categories);
    uint32_t *slot = heap_zalloc(trace->label_count + 1, sizeof *slot);
    for (size_t begin = 0, end; begin < order.row_count; begin = end) {
        end = row_order_end_of_equal_keys(&order, begin);
        measure_memory(stats, trace, order.rows + begin, end - begin, slot);
    }
    free(slot);
    row_order_release(&order);
}

/* ---- the statistics of a trace ---- */

void trace_stats_compute(struct trace_stats *stats, const struct trace *trace)
{
    *stats = (struct trace_stats){0};
    measure_ops(stats, trace);
    measure_memories(stats, trace);
}

void trace_stats_release(struct trace_stats *stats)
{
    arena_release(&stats->arena);
    *stats = (struct trace_stats){0};
}

const struct stats_rank *stats_find_rank(const struct trace_stats *stats, uint32_t rank)
{
    size_t low = 0, high = stats->rank_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stats->ranks[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stats->rank_count && stats->ranks[low].rank == rank ? &stats->ranks[low] : NULL;
}

const struct stats_memory *stats_find_memory(const struct trace_stats *stats, uint32_t rank,
                                             uint16_t memory)
{
    uint64_t key = (uint64_t)rank << 16 | memory;
    size_t low = 0, high = stats->memory_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stats_memory *at = &stats->memories[middle];
        if (((uint64_t)at->rank << 16 | at->memory) < key)
            low = middle + 1;
        else
            high = middle;
    }
    const struct stats_memory *found = low < stats->memory_count ? &stats->memories[low] : NULL;
    return found && found->rank == rank && found->memory == memory ? found : NULL;
}
