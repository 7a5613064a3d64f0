/* sim/memory/memory.c: finds the peaks of live bytes, of each class of ranks and of the host memory of nodes, and lists
 * the changes of one rank. memory_changes.h makes the changes that are read here. */
#include "sim/memory/memory.h"
#include "sim/memory/memory_changes.h"
#include "sim/memory/memory_gaps.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* ---- peaks ---- */

static void insert_top_buffer(struct sim_peak *peak, struct sim_live_buffer live)
{
    uint32_t at = peak->top_buffer_count;
    while (at > 0 && (peak->top_buffer[at - 1].bytes < live.bytes ||
                      (peak->top_buffer[at - 1].bytes == live.bytes &&
                       peak->top_buffer[at - 1].buffer > live.buffer)))
        at--;
    if (at == SIM_TOP_BUFFERS)
        return;
    if (peak->top_buffer_count < SIM_TOP_BUFFERS)
        peak->top_buffer_count++;
    for (uint32_t i = peak->top_buffer_count - 1; i > at; i--)
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

/* Raises peak[] to the most live bytes in each memory, of one rank or summed over the ranks of a
 * node. The changes are sorted by time. gap[gap_count]: the periods that a short list leaves out,
 * in the order of their next_change_row. After a gap, live bytes and dates include those that the
 * left-out copies add. Live bytes are compared with the peak only when a buffer starts, since its
 * end cannot raise them. */
static void find_peaks(const struct memory_changes *c, const struct live_buffers *live_buffers,
                       const struct memory_gap *gap, uint32_t gap_count,
                       struct sim_peak peak[MEMORY_COUNT])
{
    uint64_t live[MEMORY_COUNT] = {0}, category[MEMORY_COUNT][CATEGORY_COUNT] = {{0}};
    size_t change_of_peak[MEMORY_COUNT] = {0};
    double shift_s = 0;
    for (size_t i = 0; i < c->count; i++) {
        for (; gap_count > 0 && gap->next_change_row == i; gap++, gap_count--) {
            add_gap_growth(gap, live, category);
            shift_s += gap->left_out_copies_s;
        }
        const struct memory_change *change = &c->row[i];
        const struct live_buffer *buffer = &live_buffers->row[change->row];
        int64_t bytes = memory_change_bytes(change, live_buffers);
        uint8_t m = buffer->memory;
        live[m] += (uint64_t)bytes;
        category[m][buffer->category] += (uint64_t)bytes;
        if (live[m] <= peak[m].bytes || bytes <= 0)
            continue;
        peak[m].bytes = live[m];
        peak[m].time_s = change->time_s + shift_s;
        peak[m].op = change->op;
        memcpy(peak[m].category_bytes, category[m], sizeof category[m]);
        change_of_peak[m] = i;
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (peak[m].bytes > 0)
            find_top_buffers(c, live_buffers, change_of_peak[m], (uint8_t)m, &peak[m]);
}

/* ---- host memory over the ranks of a node ---- */

/* The host buffers and their changes, by class of ranks, until they are summed over the ranks of each node. */
struct host_memory_changes_by_class {
    struct live_buffers *live_buffers;
    struct memory_changes *memory_changes_by_class;
};

/* Appends the changes and the buffers of a class to those of its node. The ranks of a class change their memory at the
 * same times, so one change with the bytes of all `ranks` ranks represents them. */
static void add_class_changes(struct memory_changes *node_changes,
                              struct live_buffers *node_buffers,
                              const struct memory_changes *changes,
                              const struct live_buffers *buffers, uint32_t ranks)
{
    uint32_t first = node_buffers->count;
    memory_changes_reserve(node_changes, node_changes->count + changes->count);
    node_buffers->row =
        heap_realloc(node_buffers->row, first + buffers->count + 1u, sizeof *node_buffers->row);
    for (size_t i = 0; i < changes->count; i++) {
        struct memory_change *change = &node_changes->row[node_changes->count++];
        *change = changes->row[i];
        change->row = (change->row + first) & MEMORY_CHANGE_ROW_MAX;
    }
    for (uint32_t i = 0; i < buffers->count; i++) {
        node_buffers->row[node_buffers->count] = buffers->row[i];
        node_buffers->row[node_buffers->count++].bytes *= ranks;
    }
}

static struct live_buffers select_host_buffers(const struct live_buffers *all)
{
    struct live_buffers host = {.row = heap_alloc(all->count + 1u, sizeof *host.row)};
    for (uint32_t i = 0; i < all->count; i++)
        if (all->row[i].memory != MEMORY_HBM)
            host.row[host.count++] = all->row[i];
    return host;
}

/* Returns the number of ranks on a node, which may be less than a node's GPUs on the last one, and sets *first to the
 * lowest of them. */
static uint32_t node_rank_count(const struct cluster *cluster, const struct sim_result *result,
                                uint32_t node, uint32_t *first)
{
    uint64_t per_node = (uint64_t)cluster->gpus_per_node, begin = node * per_node;
    *first = (uint32_t)begin;
    uint64_t left = result->rank_count - begin;
    return (uint32_t)(left < per_node ? left : per_node);
}

/* True if the ranks of two nodes, taken in order, are of the same classes: then the nodes hold the same bytes. */
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

/* Finds the peaks of the host memory of one node, summed over its ranks, and raises result->highest_node_peak_by_memory
 * to them. Returns false, with the peaks unchanged, if the changes do not repeat around the periods that a short list
 * leaves out. */
static bool find_host_memory_peaks_of_node(const struct ir *ir, const struct cluster *cluster,
                                           struct sim_result *result, uint32_t node,
                                           const struct host_memory_changes_by_class *host)
{
    const struct sim_class *timed_class = NULL; /* the class whose times say where the gaps are */
    uint32_t first, ranks = node_rank_count(cluster, result, node, &first);
    uint32_t *ranks_of_class = heap_zalloc(result->class_count + 1u, sizeof *ranks_of_class);
    struct memory_changes changes = {0};
    struct live_buffers buffers = {0};
    for (uint32_t r = first; r < first + ranks; r++)
        ranks_of_class[result->class_of_rank[r]]++;
    for (uint32_t c = 0; c < result->class_count; c++) {
        const struct memory_changes *class_changes = &host->memory_changes_by_class[c];
        if (ranks_of_class[c] == 0 || class_changes->count == 0)
            continue;
        timed_class = &result->classes[c];
        add_class_changes(&changes, &buffers, class_changes, &host->live_buffers[c],
                          ranks_of_class[c]);
    }
    memory_changes_sort(&changes, result);
    struct memory_gap *gap = NULL;
    uint32_t gap_count = 0;
    bool repeats = timed_class == NULL ||
                   memory_gaps_find(&changes, &buffers, ir, result, timed_class, &gap, &gap_count);
    struct sim_peak peak[MEMORY_COUNT] = {{0}};
    if (repeats)
        find_peaks(&changes, &buffers, gap, gap_count, peak);
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (m != MEMORY_HBM && peak[m].bytes > result->highest_node_peak_by_memory[m].bytes)
            result->highest_node_peak_by_memory[m] =
                (struct sim_node_peak){peak[m].bytes, peak[m].time_s, node};
    free(gap);
    free(changes.row);
    free(buffers.row);
    free(ranks_of_class);
    return repeats;
}

/* Fills result->highest_node_peak_by_memory with the highest peaks of any node. A node with the classes of an earlier
 * one is skipped, since its peaks are the same. Returns false if find_host_memory_peaks_of_node() does. */
static bool find_host_memory_peaks_of_any_node(const struct ir *ir, const struct cluster *cluster,
                                               const struct live_buffers *buffers_of_role,
                                               struct sim_result *result)
{
    struct host_memory_changes_by_class host = {
        heap_zalloc(result->class_count + 1u, sizeof *host.live_buffers),
        heap_zalloc(result->class_count + 1u, sizeof *host.memory_changes_by_class)};
    memset(result->highest_node_peak_by_memory, 0, sizeof result->highest_node_peak_by_memory);
    for (uint32_t c = 0; c < result->class_count; c++) {
        const struct sim_class *class = &result->classes[c];
        if (class->role == IR_NONE)
            continue;
        host.live_buffers[c] = select_host_buffers(&buffers_of_role[class->role]);
        if (host.live_buffers[c].count > 0)
            memory_changes_of_class(&host.memory_changes_by_class[c], ir, result,
                                    &host.live_buffers[c], class);
    }
    bool repeats = true;
    for (uint32_t n = 0; repeats && n < result->node_count; n++) {
        bool seen = false;
        for (uint32_t other = 0; other < n && !seen; other++)
            seen = nodes_have_same_classes(cluster, result, n, other);
        if (!seen)
            repeats = find_host_memory_peaks_of_node(ir, cluster, result, n, &host);
    }
    for (uint32_t c = 0; c < result->class_count; c++) {
        free(host.live_buffers[c].row);
        free(host.memory_changes_by_class[c].row);
    }
    free(host.live_buffers);
    free(host.memory_changes_by_class);
    return repeats;
}

/* ---- peaks of all classes, and the changes of one rank ---- */

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
        uint32_t gap_count;
        for (int m = 0; m < MEMORY_COUNT; m++)
            result->peak[c][m] = (struct sim_peak){.op = IR_NONE};
        if (class->role == IR_NONE)
            continue;
        const struct live_buffers *buffers = &live_buffers[class->role];
        memory_changes_of_class(&changes, ir, result, buffers, class);
        repeats = memory_gaps_find(&changes, buffers, ir, result, class, &gap, &gap_count);
        if (repeats)
            find_peaks(&changes, buffers, gap, gap_count, result->peak[c]);
        free(gap);
    }
    repeats = repeats && find_host_memory_peaks_of_any_node(ir, cluster, live_buffers, result);
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
    bool has_changed[MEMORY_COUNT][CATEGORY_COUNT] = {{false}};
    for (size_t i = 0; i < changes.count; i++) {
        const struct memory_change *change = &changes.row[i];
        const struct live_buffer *buffer = &live_buffers.row[change->row];
        live[buffer->memory][buffer->category] +=
            (uint64_t)memory_change_bytes(change, &live_buffers);
        has_changed[buffer->memory][buffer->category] = true;
        if (i + 1 < changes.count && changes.row[i + 1].time_s == change->time_s)
            continue; /* the trace has one row per date */
        for (int m = 0; m < MEMORY_COUNT; m++)
            for (int k = 0; k < CATEGORY_COUNT; k++) {
                if (!has_changed[m][k])
                    continue;
                size_t row = trace_add_memory(trace);
                trace->memory.time_s[row] = change->time_s;
                trace->memory.rank[row] = rank;
                trace->memory.memory[row] = trace_intern_label(trace, memory_names[m]);
                trace->memory.category[row] = trace_intern_label(trace, category_names[k]);
                trace->memory.bytes[row] = (double)live[m][k];
                has_changed[m][k] = false;
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
