#include "exec/measure.h"

#include "schedule/analysis/liveness.h"
#include "schedule/ir/ir_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of ops ---- */

struct instance {
    double start_s;
    uint32_t rank, op;
};

static int compare_by_start(const void *a, const void *b)
{
    const struct instance *x = a, *y = b;
    if (x->start_s != y->start_s)
        return x->start_s < y->start_s ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static struct op_time time_of_op(const struct exec_run *run, const struct op_time *time,
                                 uint32_t rank, uint32_t op)
{
    return time[(size_t)rank * run->assignment.max_op_count_of_role +
                (op - assignment_first_op(&run->assignment, rank))];
}

static void add_op_rows(const struct exec_run *run, const struct op_time *time, struct trace *trace)
{
    const struct assignment *assignment = &run->assignment;
    struct instance *instance = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t rank = 0; rank < assignment->ranks; rank++) {
        double stream_end_s[IR_STREAMS_MAX] = {0};
        for (uint32_t k = 0; k < assignment_op_count(assignment, rank); k++) {
            uint32_t op = assignment_first_op(assignment, rank) + k;
            if (!assignment_op_works_on_rank(assignment, rank, op))
                continue;
            struct op_time t = time_of_op(run, time, rank, op);
            double *before_s = &stream_end_s[run->ir->op.stream[op]];
            if (isnan(t.end_s))
                continue;
            /* As in a prediction, a HOST_SYNC begins no earlier than the op before it on its stream ends. */
            if (run->ir->op.kind[op] == WORK_HOST_SYNC)
                t.start_s = fmin(fmax(t.start_s, *before_s), t.end_s);
            *before_s = t.end_s;
            if (count == capacity) {
                capacity = heap_next_capacity(capacity, count + 1);
                instance = heap_realloc(instance, capacity, sizeof *instance);
            }
            instance[count++] = (struct instance){t.start_s, rank, op};
        }
    }
    if (count > 0)
        qsort(instance, count, sizeof *instance, compare_by_start);
    for (size_t i = 0; i < count; i++)
        ir_trace_append_row_of_op(run->ir, instance[i].rank, instance[i].op, instance[i].start_s,
                                  time_of_op(run, time, instance[i].rank, instance[i].op).end_s,
                                  trace);
    free(instance);
}

/* ---- rows of live bytes ---- */

struct buffer_event {
    double time_s;
    uint8_t memory, category;
    int64_t bytes;
};

/* At equal times frees, whose bytes are negative, come before first uses, because a stream-ordered allocator reuses
 * freed memory at once. */
static int compare_by_time(const void *a, const void *b)
{
    const struct buffer_event *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return x->category < y->category ? -1 : x->category > y->category;
}

/* Sets first_use_s[buffer] to the earliest start of the rank's ops that use the buffer; to a negative number if none
 * does, or if none of them has known times. */
static void find_first_use_times(const struct exec_run *run, const struct op_time *time,
                                 uint32_t rank, double *first_use_s)
{
    const struct ir *ir = run->ir;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        first_use_s[b] = -1;
    for (uint32_t k = 0; k < assignment_op_count(&run->assignment, rank); k++) {
        uint32_t op = assignment_first_op(&run->assignment, rank) + k;
        double start_s = time_of_op(run, time, rank, op).start_s;
        if (isnan(start_s))
            continue;
        for (uint32_t i = 0; i < ir->op.read_count[op] + (uint32_t)ir->op.write_count[op]; i++) {
            uint32_t buffer = ir_touched_buffer(ir, op, i);
            if (first_use_s[buffer] < 0 || start_s < first_use_s[buffer])
                first_use_s[buffer] = start_s;
        }
    }
}

static double buffer_free_time_s(const struct exec_run *run, const struct op_time *time,
                                 uint32_t rank, uint32_t buffer)
{
    const struct ir *ir = run->ir;
    double free_time_s = 0;
    const op_id *set = ir_free_set(ir, buffer);
    for (uint32_t k = 0; k < ir->buffer.free_count[buffer]; k++) {
        uint32_t op = set[k].i;
        double end_s = time_of_op(run, time, rank, op).end_s;
        free_time_s = end_s > free_time_s ? end_s : free_time_s;
    }
    return free_time_s;
}

static size_t list_memory_changes(const struct exec_run *run, const struct op_time *time,
                                  uint32_t rank, const double *first_use_s,
                                  struct buffer_event *change)
{
    const struct ir *ir = run->ir;
    size_t count = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        bool persistent = liveness_is_persistent(ir, b);
        if (ir->buffer.role[b] != run->assignment.role_of_rank[rank] ||
            (persistent ? !liveness_is_separate_persistent(ir, b) : first_use_s[b] < 0))
            continue;
        struct buffer_event event = {persistent ? 0 : first_use_s[b], ir->buffer.memory[b],
                                     ir->buffer.category[b],
                                     (int64_t)ir_buffer_bytes(ir, (buffer_id){b})};
        double free_s = persistent ? INFINITY : buffer_free_time_s(run, time, rank, b);
        if (free_s <= event.time_s) /* on this rank, guards leave out all ops that use the buffer */
            continue;
        change[count++] = event;
        if (persistent)
            continue;
        event.time_s = free_s;
        event.bytes = -event.bytes;
        change[count++] = event;
    }
    if (count > 0)
        qsort(change, count, sizeof *change, compare_by_time);
    return count;
}

static void add_memory_rows(uint32_t rank, const struct buffer_event *change, size_t count,
                            struct trace *trace, uint64_t peak[MEMORY_COUNT])
{
    int64_t live[MEMORY_COUNT][CATEGORY_COUNT] = {{0}}, all[MEMORY_COUNT] = {0};
    for (size_t i = 0; i < count; i++) {
        const struct buffer_event *c = &change[i];
        live[c->memory][c->category] += c->bytes;
        all[c->memory] += c->bytes;
        if ((uint64_t)all[c->memory] > peak[c->memory])
            peak[c->memory] = (uint64_t)all[c->memory];
        size_t row = trace_add_memory(trace);
        trace->memory.time_s[row] = c->time_s;
        trace->memory.rank[row] = rank;
        trace->memory.memory[row] = trace_intern_label(trace, memory_names[c->memory]);
        trace->memory.category[row] = trace_intern_label(trace, category_names[c->category]);
        trace->memory.bytes[row] = (double)live[c->memory][c->category];
    }
}

void measure_fill_trace(const struct exec_run *run, const struct op_time *time, struct trace *trace,
                        uint64_t peak[MEMORY_COUNT])
{
    uint32_t buffers = run->ir->buffer.count;
    double *first_use_s = heap_alloc((size_t)buffers + 1, sizeof *first_use_s);
    struct buffer_event *change = heap_alloc(2 * (size_t)buffers + 1, sizeof *change);
    memset(peak, 0, MEMORY_COUNT * sizeof *peak);
    add_op_rows(run, time, trace);
    for (uint32_t rank = 0; rank < run->assignment.ranks; rank++) {
        find_first_use_times(run, time, rank, first_use_s);
        size_t count = list_memory_changes(run, time, rank, first_use_s, change);
        add_memory_rows(rank, change, count, trace, peak);
    }
    free(first_use_s);
    free(change);
}
