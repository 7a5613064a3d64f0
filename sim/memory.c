#include "sim/memory.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the buffers of a role ---- */

struct lifetimes {
    uint32_t count;
    struct lifetime {
        uint64_t bytes;
        uint32_t buffer;
        uint32_t writer; /* row of the first writer in the role; IR_NONE: live from the start */
        uint8_t memory, category;
    } * row; /* by writer, persistent ones first */
};

static int compare_lifetimes(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    uint32_t first = a->writer + 1, second = b->writer + 1; /* IR_NONE comes first */
    if (first != second)
        return first < second ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static void lifetimes_init(struct lifetimes *l, const struct ir *ir, uint32_t role)
{
    const struct role *r = &ir->role[role];
    const struct buffer_table *b = &ir->buffer;
    uint32_t *writer = heap_alloc(b->count + 1u, sizeof *writer);
    memset(writer, 0xff, (b->count + 1u) * sizeof *writer);
    for (uint32_t row = r->op_count; row-- > 0;)
        for (uint32_t w = 0; w < ir->op.writes[r->op_begin + row]; w++)
            writer[ir_write(ir, r->op_begin + row, w).buffer.i] = row;
    *l = (struct lifetimes){.row = heap_alloc(b->count + 1u, sizeof *l->row)};
    for (uint32_t i = 0; i < b->count; i++) {
        bool persistent = (b->flags[i] & BUFFER_PERSISTENT) || b->binding[i] != IR_NONE16;
        if (b->role[i] != role || (!persistent && writer[i] == IR_NONE))
            continue;
        l->row[l->count++] = (struct lifetime){
            .bytes = ir_buffer_bytes(ir, (buffer_id){i}),
            .buffer = i,
            .writer = persistent ? IR_NONE : writer[i],
            .memory = b->memory[i],
            .category = b->category[i],
        };
    }
    qsort(l->row, l->count, sizeof *l->row, compare_lifetimes);
    free(writer);
}

/* ---- changes in the order of time ---- */

struct change {
    double time_s;
    uint32_t op;    /* that starts, or that ended last; IR_NONE: the start of the step */
    uint32_t row;   /* of the role's lifetimes; of node sums: unused */
    int64_t bytes;  /* > 0: from now on; < 0: no longer */
    uint8_t memory; /* of the buffer */
};

struct changes {
    size_t count, capacity;
    struct change *row;
};

static void add_change(struct changes *c, struct change change)
{
    if (c->count == c->capacity) {
        c->capacity = heap_next_capacity(c->capacity, c->count + 1);
        c->row = heap_realloc(c->row, c->capacity, sizeof *c->row);
    }
    c->row[c->count++] = change;
}

static bool comes_before(const struct change *a, const struct change *b)
{
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s;
    if (a->op == IR_NONE || b->op == IR_NONE)
        return a->op == IR_NONE && b->op != IR_NONE;
    if ((a->bytes < 0) != (b->bytes < 0))
        return a->bytes < 0;
    return a->op < b->op;
}

static void merge(const struct change *a, const struct change *a_end, const struct change *b,
                  const struct change *b_end, struct change *out)
{
    while (a < a_end && b < b_end)
        *out++ = comes_before(b, a) ? *b++ : *a++;
    while (a < a_end)
        *out++ = *a++;
    while (b < b_end)
        *out++ = *b++;
}

/* Stable merge sort of the runs that are there: ops of one stream start and end in list order, so
 * the changes come as few long runs. */
static void merge_runs(struct changes *c)
{
    struct change *from = c->row, *to = heap_alloc(c->count + 1, sizeof *to);
    size_t *run = heap_alloc(c->count + 2, sizeof *run), runs = 0;
    for (size_t i = 0; i < c->count; i++)
        if (i == 0 || comes_before(&from[i], &from[i - 1]))
            run[runs++] = i;
    run[runs] = c->count;
    while (runs > 1) {
        size_t merged = 0;
        for (size_t r = 0; r < runs; r += 2) {
            size_t begin = run[r], middle = run[r + 1];
            size_t end = r + 1 < runs ? run[r + 2] : middle;
            merge(from + begin, from + middle, from + middle, from + end, to + begin);
            run[merged++] = begin;
        }
        runs = merged;
        run[runs] = c->count;
        struct change *swap = from;
        from = to;
        to = swap;
    }
    c->row = from;
    c->capacity = c->count + 1;
    free(to);
    free(run);
}

/* Dates that rounding alone tells apart are one date, else it would be luck whether memory is given
 * back before it is taken. */
static double same_date_s(const struct sim_result *result)
{
    return 1e-11 + 1e-11 * result->step_s;
}

/* In the order of time. */
static void sort_changes(struct changes *c, double same_s)
{
    double date_s = 0;
    merge_runs(c);
    for (size_t i = 0; i < c->count; i++) {
        if (c->row[i].time_s > date_s + same_s)
            date_s = c->row[i].time_s;
        c->row[i].time_s = date_s;
    }
    merge_runs(c);
}

/* The last end of a buffer's free set; infinite when it has none. */
static double free_date_s(const struct ir *ir, const struct sim_class *class, const double *end_s,
                          uint32_t buffer, uint32_t *op)
{
    double date_s = -1;
    for (uint32_t i = 0; i < ir->buffer.free_count[buffer]; i++) {
        uint32_t id = ir->free_op[ir->buffer.free_begin[buffer] + i].i;
        double end = end_s[class->row + (id - class->op_begin)];
        if (end > date_s) {
            date_s = end;
            *op = id;
        }
    }
    return date_s;
}

static void add_class_changes(struct changes *c, const struct ir *ir,
                              const struct sim_result *result, const struct lifetimes *lifetimes,
                              const struct sim_class *class)
{
    double same_s = same_date_s(result);
    c->count = 0;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const struct lifetime *l = &lifetimes->row[i];
        bool persistent = l->writer == IR_NONE;
        add_change(
            c, (struct change){.time_s = persistent ? 0 : result->start_s[class->row + l->writer],
                               .op = persistent ? IR_NONE : class->op_begin + l->writer,
                               .row = i,
                               .bytes = (int64_t)l->bytes,
                               .memory = l->memory});
    }
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const struct lifetime *l = &lifetimes->row[i];
        if (l->writer == IR_NONE || ir->buffer.free_count[l->buffer] == 0)
            continue;
        uint32_t op = 0;
        double date_s = free_date_s(ir, class, result->end_s, l->buffer, &op);
        if (date_s <= c->row[i].time_s + same_s) /* gone at the date it came */
            c->row[i].bytes = 0;
        else
            add_change(c, (struct change){.time_s = date_s,
                                          .op = op,
                                          .row = i,
                                          .bytes = -(int64_t)l->bytes,
                                          .memory = l->memory});
    }
    sort_changes(c, same_s);
}

/* ---- peaks ---- */

/* Keeps the list of largest buffers in order; of equal ones, the lower id stands first. */
static void keep_top(struct sim_peak *peak, struct sim_live live)
{
    uint32_t at = peak->top_count;
    while (at > 0 &&
           (peak->top[at - 1].bytes < live.bytes ||
            (peak->top[at - 1].bytes == live.bytes && peak->top[at - 1].buffer > live.buffer)))
        at--;
    if (at == SIM_TOP_BUFFERS)
        return;
    if (peak->top_count < SIM_TOP_BUFFERS)
        peak->top_count++;
    for (uint32_t i = peak->top_count - 1; i > at; i--)
        peak->top[i] = peak->top[i - 1];
    peak->top[at] = live;
}

/* The buffers live after changes [0, upto], of one memory. */
static void find_top(const struct changes *c, const struct lifetimes *lifetimes, size_t upto,
                     uint8_t memory, struct sim_peak *peak)
{
    bool *live = heap_zalloc(lifetimes->count + 1u, sizeof *live);
    for (size_t i = 0; i <= upto; i++)
        live[c->row[i].row] = c->row[i].bytes > 0;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (live[i] && lifetimes->row[i].memory == memory)
            keep_top(peak, (struct sim_live){lifetimes->row[i].buffer, lifetimes->row[i].bytes});
    free(live);
}

static void find_peaks(const struct changes *c, const struct lifetimes *lifetimes,
                       struct sim_peak peak[MEMORY_COUNT])
{
    uint64_t live[MEMORY_COUNT] = {0}, category[MEMORY_COUNT][CATEGORY_COUNT] = {{0}};
    size_t at[MEMORY_COUNT] = {0};
    for (size_t i = 0; i < c->count; i++) {
        const struct change *change = &c->row[i];
        uint8_t m = change->memory;
        live[m] += (uint64_t)change->bytes;
        category[m][lifetimes->row[change->row].category] += (uint64_t)change->bytes;
        if (live[m] <= peak[m].bytes || change->bytes <= 0)
            continue;
        peak[m].bytes = live[m];
        peak[m].time_s = change->time_s;
        peak[m].op = change->op;
        memcpy(peak[m].category_bytes, category[m], sizeof category[m]);
        at[m] = i;
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (peak[m].bytes > 0)
            find_top(c, lifetimes, at[m], (uint8_t)m, &peak[m]);
}

/* ---- host memory over the ranks of a node ---- */

/* Changes of host memory of each class, kept until the nodes are added up. */
struct host_changes {
    struct changes *of_class;
};

static void keep_host_changes(struct changes *out, const struct changes *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->row[i].memory != MEMORY_HBM)
            add_change(out, c->row[i]);
}

static uint32_t ranks_of_node(const struct cluster *cluster, const struct sim_result *result,
                              uint32_t node, uint32_t *first)
{
    uint64_t per_node = (uint64_t)cluster->gpus_per_node, begin = node * per_node;
    *first = (uint32_t)begin;
    uint64_t left = result->rank_count - begin;
    return (uint32_t)(left < per_node ? left : per_node);
}

/* Do two nodes hold the same classes at the same places? Then they hold the same bytes. */
static bool same_node(const struct cluster *cluster, const struct sim_result *result, uint32_t a,
                      uint32_t b)
{
    uint32_t first_a, first_b;
    uint32_t ranks_a = ranks_of_node(cluster, result, a, &first_a);
    uint32_t ranks_b = ranks_of_node(cluster, result, b, &first_b);
    return ranks_a == ranks_b &&
           memcmp(result->class_of_rank + first_a, result->class_of_rank + first_b,
                  ranks_a * sizeof *result->class_of_rank) == 0;
}

static void add_up_node(const struct cluster *cluster, struct sim_result *result, uint32_t node,
                        const struct host_changes *host)
{
    uint32_t first, ranks = ranks_of_node(cluster, result, node, &first);
    uint32_t *times = heap_zalloc(result->class_count + 1u, sizeof *times);
    struct changes sum = {0};
    for (uint32_t r = first; r < first + ranks; r++)
        times[result->class_of_rank[r]]++;
    for (uint32_t c = 0; c < result->class_count; c++)
        for (size_t i = 0; times[c] > 0 && i < host->of_class[c].count; i++) {
            struct change change = host->of_class[c].row[i];
            change.bytes *= times[c];
            add_change(&sum, change);
        }
    sort_changes(&sum, same_date_s(result));
    int64_t live[MEMORY_COUNT] = {0};
    for (size_t i = 0; i < sum.count; i++) {
        uint8_t m = sum.row[i].memory;
        live[m] += sum.row[i].bytes;
        if (live[m] > (int64_t)result->host[m].bytes)
            result->host[m] = (struct sim_node_peak){(uint64_t)live[m], sum.row[i].time_s, node};
    }
    free(sum.row);
    free(times);
}

void memory_peaks(const struct ir *ir, const struct cluster *cluster, struct sim_result *result)
{
    struct host_changes host = {heap_zalloc(result->class_count + 1u, sizeof *host.of_class)};
    struct lifetimes *lifetimes = heap_zalloc(ir->role_count + 1u, sizeof *lifetimes);
    struct changes changes = {0};
    for (uint32_t r = 0; r < ir->role_count; r++)
        lifetimes_init(&lifetimes[r], ir, r);
    for (uint32_t c = 0; c < result->class_count; c++) {
        const struct sim_class *class = &result->classes[c];
        for (int m = 0; m < MEMORY_COUNT; m++)
            result->peak[c][m] = (struct sim_peak){.op = IR_NONE};
        if (class->role == IR_NONE)
            continue;
        add_class_changes(&changes, ir, result, &lifetimes[class->role], class);
        find_peaks(&changes, &lifetimes[class->role], result->peak[c]);
        keep_host_changes(&host.of_class[c], &changes);
    }
    for (uint32_t n = 0; n < result->node_count; n++) {
        bool seen = false;
        for (uint32_t other = 0; other < n && !seen; other++)
            seen = same_node(cluster, result, n, other);
        if (!seen)
            add_up_node(cluster, result, n, &host);
    }
    for (uint32_t r = 0; r < ir->role_count; r++)
        free(lifetimes[r].row);
    for (uint32_t c = 0; c < result->class_count; c++)
        free(host.of_class[c].row);
    free(host.of_class);
    free(lifetimes);
    free(changes.row);
}

void memory_trace(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                  struct trace *trace)
{
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    if (class->role == IR_NONE)
        return;
    struct lifetimes lifetimes;
    struct changes changes = {0};
    lifetimes_init(&lifetimes, ir, class->role);
    add_class_changes(&changes, ir, result, &lifetimes, class);
    uint64_t live[MEMORY_COUNT][CATEGORY_COUNT] = {{0}};
    bool touched[MEMORY_COUNT][CATEGORY_COUNT] = {{false}};
    for (size_t i = 0; i < changes.count; i++) {
        const struct change *change = &changes.row[i];
        uint8_t category = lifetimes.row[change->row].category;
        live[change->memory][category] += (uint64_t)change->bytes;
        touched[change->memory][category] = true;
        if (i + 1 < changes.count && changes.row[i + 1].time_s == change->time_s)
            continue; /* one row per date */
        for (int m = 0; m < MEMORY_COUNT; m++)
            for (int k = 0; k < CATEGORY_COUNT; k++) {
                if (!touched[m][k])
                    continue;
                size_t row = trace_add_memory(trace);
                trace->memory.time_s[row] = change->time_s;
                trace->memory.rank[row] = rank;
                trace->memory.memory[row] = trace_label(trace, memory_name((enum memory)m));
                trace->memory.category[row] = trace_label(trace, category_name((enum category)k));
                trace->memory.bytes[row] = (double)live[m][k];
                touched[m][k] = false;
            }
    }
    free(changes.row);
    free(lifetimes.row);
}

size_t memory_events(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                     struct memory_event **events)
{
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    struct lifetimes lifetimes = {0};
    struct changes changes = {0};
    size_t count = 0;
    *events = NULL;
    if (class->role == IR_NONE)
        return 0;
    lifetimes_init(&lifetimes, ir, class->role);
    add_class_changes(&changes, ir, result, &lifetimes, class);
    *events = heap_alloc(changes.count + 1, sizeof **events);
    for (size_t i = 0; i < changes.count; i++)
        if (changes.row[i].bytes != 0)
            (*events)[count++] = (struct memory_event){
                .time_s = changes.row[i].time_s,
                .buffer = lifetimes.row[changes.row[i].row].buffer,
                .bytes = changes.row[i].bytes,
            };
    free(changes.row);
    free(lifetimes.row);
    return count;
}
