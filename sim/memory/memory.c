#include "sim/memory/memory.h"
#include "sim/memory/memory_changes.h"
#include "sim/memory/memory_gaps.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* ---- peaks ---- */

static void insert_top_buffer(struct sim_peak *peak, struct sim_live_buffer live)
{
    uint32_t at = peak->top_count;
    while (at > 0 && (peak->top_buffer[at - 1].bytes < live.bytes ||
                      (peak->top_buffer[at - 1].bytes == live.bytes &&
                       peak->top_buffer[at - 1].buffer > live.buffer)))
        at--;
    if (at == SIM_TOP_BUFFERS)
        return;
    if (peak->top_count < SIM_TOP_BUFFERS)
        peak->top_count++;
    for (uint32_t i = peak->top_count - 1; i > at; i--)
        peak->top_buffer[i] = peak->top_buffer[i - 1];
    peak->top_buffer[at] = live;
}

/* Finds the largest of the buffers of one memory that are live after changes [0, upto]. */
static void find_top_buffers(const struct memory_changes *c,
                             const struct live_buffers *live_buffers, size_t upto, uint8_t memory,
                             struct sim_peak *peak)
{
    bool *live = heap_zalloc(live_buffers->count + 1u, sizeof *live);
    for (size_t i = 0; i <= upto; i++)
        live[c->row[i].row] = c->row[i].kind == MEMORY_CHANGE_STARTS;
    for (uint32_t i = 0; i < live_buffers->count; i++)
        if (live[i] && live_buffers->row[i].memory == memory)
            insert_top_buffer(peak, (struct sim_live_buffer){live_buffers->row[i].buffer,
                                                             live_buffers->row[i].bytes});
    free(live);
}

/* Adds to the live bytes the growth of all copies that a gap leaves out. */
static void add_gap_growth(const struct memory_gap *gap, uint64_t live[MEMORY_COUNT],
                           uint64_t category[MEMORY_COUNT][CATEGORY_COUNT])
{
    for (int m = 0; m < MEMORY_COUNT; m++)
        for (int k = 0; k < CATEGORY_COUNT; k++) {
            live[m] += (uint64_t)gap->growth_bytes[m][k];
            category[m][k] += (uint64_t)gap->growth_bytes[m][k];
        }
}

/* Finds the peaks of one rank, or of the sum over the ranks of a node, from its changes of live bytes in order of time, and
 * from the gaps of a short list. */
static void find_peaks(const struct memory_changes *c, const struct live_buffers *live_buffers,
                       const struct memory_gap *gap, uint32_t gaps,
                       struct sim_peak peak[MEMORY_COUNT])
{
    uint64_t live[MEMORY_COUNT] = {0}, category[MEMORY_COUNT][CATEGORY_COUNT] = {{0}};
    size_t at[MEMORY_COUNT] = {0};
    double shift_s = 0;
    for (size_t i = 0; i < c->count; i++) {
        for (; gaps > 0 && gap->change_row == i; gap++, gaps--) {
            add_gap_growth(gap, live, category);
            shift_s += gap->shift_s;
        }
        const struct memory_change *change = &c->row[i];
        const struct live_buffer *of = &live_buffers->row[change->row];
        int64_t bytes = memory_change_bytes(change, live_buffers);
        uint8_t m = of->memory;
        live[m] += (uint64_t)bytes;
        category[m][of->category] += (uint64_t)bytes;
        if (live[m] <= peak[m].bytes || bytes <= 0)
            continue;
        peak[m].bytes = live[m];
        peak[m].time_s = change->time_s + shift_s;
        peak[m].op = change->op;
        memcpy(peak[m].category_bytes, category[m], sizeof category[m]);
        at[m] = i;
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (peak[m].bytes > 0)
            find_top_buffers(c, live_buffers, at[m], (uint8_t)m, &peak[m]);
}

/* ---- host memory over the ranks of a node ---- */

/* The host buffers and their changes, by class of ranks, until they are summed over the ranks of each node. */
struct host_changes {
    struct live_buffers *live_buffers;
    struct memory_changes *changes_of_class;
};

/* Adds the changes and the buffers of a class to *sum and *all, once for each of `times` ranks. */
static void add_rank_changes(struct memory_changes *sum, struct live_buffers *all,
                             const struct memory_changes *of, const struct live_buffers *own,
                             uint32_t times)
{
    uint32_t first = all->count;
    memory_changes_reserve(sum, sum->count + of->count);
    all->row = heap_realloc(all->row, first + own->count + 1u, sizeof *all->row);
    for (size_t i = 0; i < of->count; i++) {
        struct memory_change *change = &sum->row[sum->count++];
        *change = of->row[i];
        change->row = (change->row + first) & MEMORY_CHANGE_ROW_MAX;
    }
    for (uint32_t i = 0; i < own->count; i++) {
        all->row[all->count] = own->row[i];
        all->row[all->count++].bytes *= times;
    }
}

static struct live_buffers select_host_buffers(const struct live_buffers *all)
{
    struct live_buffers own = {.row = heap_alloc(all->count + 1u, sizeof *own.row)};
    for (uint32_t i = 0; i < all->count; i++)
        if (all->row[i].memory != MEMORY_HBM)
            own.row[own.count++] = all->row[i];
    return own;
}

static uint32_t node_rank_count(const struct cluster *cluster, const struct sim_result *result,
                                uint32_t node, uint32_t *first)
{
    uint64_t per_node = (uint64_t)cluster->gpus_per_node, begin = node * per_node;
    *first = (uint32_t)begin;
    uint64_t left = result->rank_count - begin;
    return (uint32_t)(left < per_node ? left : per_node);
}

/* True if two nodes have ranks of the same classes at the same places: then they hold the same bytes. */
static bool nodes_have_same_classes(const struct cluster *cluster, const struct sim_result *result,
                                    uint32_t a, uint32_t b)
{
    uint32_t first_a, first_b;
    uint32_t ranks_a = node_rank_count(cluster, result, a, &first_a);
    uint32_t ranks_b = node_rank_count(cluster, result, b, &first_b);
    return ranks_a == ranks_b &&
           memcmp(result->class_of_rank + first_a, result->class_of_rank + first_b,
                  ranks_a * sizeof *result->class_of_rank) == 0;
}

/* Returns false if the changes of a node do not repeat around the periods that a short list leaves out. */
static bool find_node_peaks(const struct ir *ir, const struct cluster *cluster,
                            struct sim_result *result, uint32_t node,
                            const struct host_changes *host)
{
    const struct sim_class *any = NULL;
    uint32_t first, ranks = node_rank_count(cluster, result, node, &first);
    uint32_t *times = heap_zalloc(result->class_count + 1u, sizeof *times);
    struct memory_changes sum = {0};
    struct live_buffers all = {0};
    for (uint32_t r = first; r < first + ranks; r++)
        times[result->class_of_rank[r]]++;
    for (uint32_t c = 0; c < result->class_count; c++) {
        const struct memory_changes *of = &host->changes_of_class[c];
        if (times[c] == 0 || of->count == 0)
            continue;
        any = &result->classes[c];
        add_rank_changes(&sum, &all, of, &host->live_buffers[c], times[c]);
    }
    memory_changes_sort(&sum, result);
    struct memory_gap *gap = NULL;
    uint32_t gaps = 0;
    bool repeats = any == NULL || memory_gaps_find(&sum, &all, ir, result, any, &gap, &gaps);
    struct sim_peak peak[MEMORY_COUNT] = {{0}};
    if (repeats)
        find_peaks(&sum, &all, gap, gaps, peak);
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (m != MEMORY_HBM && peak[m].bytes > result->host_peak[m].bytes)
            result->host_peak[m] = (struct sim_node_peak){peak[m].bytes, peak[m].time_s, node};
    free(gap);
    free(sum.row);
    free(all.row);
    free(times);
    return repeats;
}

/* Finds the peaks of the memory of each host; false as of find_node_peaks(). */
static bool find_host_peaks(const struct ir *ir, const struct cluster *cluster,
                            const struct live_buffers *of_role, struct sim_result *result)
{
    struct host_changes host = {
        heap_zalloc(result->class_count + 1u, sizeof *host.live_buffers),
        heap_zalloc(result->class_count + 1u, sizeof *host.changes_of_class)};
    memset(result->host_peak, 0, sizeof result->host_peak);
    for (uint32_t c = 0; c < result->class_count; c++) {
        const struct sim_class *class = &result->classes[c];
        if (class->role == IR_NONE)
            continue;
        host.live_buffers[c] = select_host_buffers(&of_role[class->role]);
        if (host.live_buffers[c].count > 0)
            memory_changes_of_class(&host.changes_of_class[c], ir, result, &host.live_buffers[c],
                                    class);
    }
    bool repeats = true;
    for (uint32_t n = 0; repeats && n < result->node_count; n++) {
        bool seen = false;
        for (uint32_t other = 0; other < n && !seen; other++)
            seen = nodes_have_same_classes(cluster, result, n, other);
        if (!seen)
            repeats = find_node_peaks(ir, cluster, result, n, &host);
    }
    for (uint32_t c = 0; c < result->class_count; c++) {
        free(host.live_buffers[c].row);
        free(host.changes_of_class[c].row);
    }
    free(host.live_buffers);
    free(host.changes_of_class);
    return repeats;
}

bool memory_fill_peaks(const struct ir *ir, const struct cluster *cluster,
                       struct sim_result *result)
{
    struct live_buffers *live_buffers = heap_zalloc(ir->role_count + 1u, sizeof *live_buffers);
    struct memory_changes changes = {0};
    bool repeats = true;
    for (uint32_t r = 0; r < ir->role_count; r++)
        live_buffers_init(&live_buffers[r], ir, r);
    for (uint32_t c = 0; repeats && c < result->class_count; c++) {
        const struct sim_class *class = &result->classes[c];
        struct memory_gap *gap;
        uint32_t gaps;
        for (int m = 0; m < MEMORY_COUNT; m++)
            result->peak[c][m] = (struct sim_peak){.op = IR_NONE};
        if (class->role == IR_NONE)
            continue;
        const struct live_buffers *of = &live_buffers[class->role];
        memory_changes_of_class(&changes, ir, result, of, class);
        repeats = memory_gaps_find(&changes, of, ir, result, class, &gap, &gaps);
        if (repeats)
            find_peaks(&changes, of, gap, gaps, result->peak[c]);
        free(gap);
    }
    repeats = repeats && find_host_peaks(ir, cluster, live_buffers, result);
    for (uint32_t r = 0; r < ir->role_count; r++)
        free(live_buffers[r].row);
    free(live_buffers);
    free(changes.row);
    return repeats;
}

void memory_add_trace_rows(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                           struct trace *trace)
{
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    if (class->role == IR_NONE)
        return;
    struct live_buffers live_buffers;
    struct memory_changes changes = {0};
    live_buffers_init(&live_buffers, ir, class->role);
    memory_changes_of_class(&changes, ir, result, &live_buffers, class);
    uint64_t live[MEMORY_COUNT][CATEGORY_COUNT] = {{0}};
    bool touched[MEMORY_COUNT][CATEGORY_COUNT] = {{false}};
    for (size_t i = 0; i < changes.count; i++) {
        const struct memory_change *change = &changes.row[i];
        const struct live_buffer *of = &live_buffers.row[change->row];
        live[of->memory][of->category] += (uint64_t)memory_change_bytes(change, &live_buffers);
        touched[of->memory][of->category] = true;
        if (i + 1 < changes.count && changes.row[i + 1].time_s == change->time_s)
            continue; /* the trace has one row per date */
        for (int m = 0; m < MEMORY_COUNT; m++)
            for (int k = 0; k < CATEGORY_COUNT; k++) {
                if (!touched[m][k])
                    continue;
                size_t row = trace_add_memory(trace);
                trace->memory.time_s[row] = change->time_s;
                trace->memory.rank[row] = rank;
                trace->memory.memory[row] = trace_label_id(trace, memory_names[m]);
                trace->memory.category[row] = trace_label_id(trace, category_names[k]);
                trace->memory.bytes[row] = (double)live[m][k];
                touched[m][k] = false;
            }
    }
    free(changes.row);
    free(live_buffers.row);
}

size_t memory_list_events(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                          struct memory_event **events)
{
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    struct live_buffers live_buffers = {0};
    struct memory_changes changes = {0};
    size_t count = 0;
    *events = NULL;
    if (class->role == IR_NONE)
        return 0;
    live_buffers_init(&live_buffers, ir, class->role);
    memory_changes_of_class(&changes, ir, result, &live_buffers, class);
    *events = heap_alloc(changes.count + 1, sizeof **events);
    for (size_t i = 0; i < changes.count; i++)
        if (changes.row[i].kind != MEMORY_CHANGE_STARTS_AND_ENDS)
            (*events)[count++] = (struct memory_event){
                .time_s = changes.row[i].time_s,
                .buffer = live_buffers.row[changes.row[i].row].buffer,
                .added_bytes = memory_change_bytes(&changes.row[i], &live_buffers),
            };
    free(changes.row);
    free(live_buffers.row);
    return count;
}
