#include "sim/memory/memory_changes.h"

#include "base/arena.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/liveness.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the buffers of a role ---- */

/* Returns on the heap the first op that writes each buffer, as a row of the role; IR_NONE: none does. */
static uint32_t *find_first_writers(const struct ir *ir, const struct role *role)
{
    uint32_t *first_writer_by_buffer = ir_new_empty_ids(ir->buffer.count);
    for (uint32_t row = role->op_count; row-- > 0;) {
        uint32_t op = role->op_begin + row, reads = ir->op.read_count[op];
        for (uint32_t k = reads; k < reads + ir->op.write_count[op]; k++)
            first_writer_by_buffer[ir_touched_buffer(ir, op, k)] = row;
    }
    return first_writer_by_buffer;
}

/* Sorts the buffers by their first writers with a counting sort: first writers are row numbers of the role. */
void live_buffers_init(struct live_buffers *l, const struct ir *ir, uint32_t role)
{
    const struct role *r = &ir->role[role];
    const struct buffer_table *b = &ir->buffer;
    uint32_t *writer = find_first_writers(ir, r);
    /* First next[w + 2] counts the buffers whose first writer is w, and next[1] those that are live from the start.
     * Once these are summed up, next[w + 1] is the row for the next buffer of writer w, and next[0] that for the next
     * buffer that is live from the start. */
    uint32_t *next = heap_zalloc(r->op_count + 2u, sizeof *next);
    *l = (struct live_buffers){.row = heap_alloc(b->count + 1u, sizeof *l->row)};
    for (uint32_t i = 0; i < b->count; i++) {
        bool persistent = liveness_is_persistent(ir, i);
        if (persistent || b->role[i] != role)
            next[1] += liveness_is_separate_persistent(ir, i) && b->role[i] == role;
        else if (writer[i] != IR_NONE)
            next[writer[i] + 2]++;
    }
    for (uint32_t i = 0; i <= r->op_count; i++)
        next[i + 1] += next[i];
    for (uint32_t i = 0; i < b->count; i++) {
        bool persistent = liveness_is_persistent(ir, i);
        if (b->role[i] != role ||
            (persistent ? !liveness_is_separate_persistent(ir, i) : writer[i] == IR_NONE))
            continue;
        l->row[next[persistent ? 0 : writer[i] + 1]++] = (struct live_buffer){
            .bytes = repeats_count_buffer_instances(ir, i) * ir_buffer_bytes(ir, (buffer_id){i}),
            .buffer = i,
            .writer = persistent ? IR_NONE : writer[i],
            .memory = b->memory[i],
            .category = b->category[i],
        };
        l->count++;
    }
    free(next);
    free(writer);
}

/* ---- the order of time ---- */

void memory_changes_reserve(struct memory_changes *c, size_t capacity)
{
    if (capacity <= c->capacity)
        return;
    c->capacity = heap_next_capacity(c->capacity, capacity);
    c->row = heap_realloc(c->row, c->capacity, sizeof *c->row);
}

static bool is_earlier_change(const struct memory_change *a, const struct memory_change *b)
{
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s;
    if (a->op == IR_NONE || b->op == IR_NONE)
        return a->op == IR_NONE && b->op != IR_NONE;
    if ((a->kind == MEMORY_CHANGE_ENDS) != (b->kind == MEMORY_CHANGE_ENDS))
        return a->kind == MEMORY_CHANGE_ENDS;
    return a->op < b->op;
}

static void merge_changes(const struct memory_change *a, const struct memory_change *a_end,
                          const struct memory_change *b, const struct memory_change *b_end,
                          struct memory_change *out)
{
    while (a < a_end && b < b_end)
        *out++ = is_earlier_change(b, a) ? *b++ : *a++;
    while (a < a_end)
        *out++ = *a++;
    while (b < b_end)
        *out++ = *b++;
}

/* Sorts the rows by a stable merge sort that starts from the runs that are already sorted. Returns the array that
 * holds the result: `row` or `room`. */
static struct memory_change *
merge_sorted_runs(struct memory_change *row, struct memory_change *room, size_t count, size_t *run)
{
    size_t runs = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || is_earlier_change(&row[i], &row[i - 1]))
            run[runs++] = i;
    run[runs] = count;
    while (runs > 1) {
        size_t merged = 0;
        for (size_t r = 0; r < runs; r += 2) {
            size_t begin = run[r], middle = run[r + 1];
            size_t end = r + 1 < runs ? run[r + 2] : middle;
            merge_changes(row + begin, row + middle, row + middle, row + end, room + begin);
            run[merged++] = begin;
        }
        runs = merged;
        run[runs] = count;
        struct memory_change *swap = row;
        row = room;
        room = swap;
    }
    return row;
}

double memory_changes_tolerance_s(const struct sim_result *result)
{
    return 1e-11 + 1e-11 * result->step_s;
}

void memory_changes_sort(struct memory_changes *c, const struct sim_result *result)
{
    struct memory_change *room = heap_alloc(c->count + 1, sizeof *room), *rows = c->row;
    size_t *run = heap_alloc(c->count + 2, sizeof *run);
    double same_s = memory_changes_tolerance_s(result), date_s = 0;
    c->row = merge_sorted_runs(rows, room, c->count, run);
    if (c->row == room)
        room = rows;
    c->capacity = c->count + 1;
    for (size_t i = 0, end; i < c->count; i = end) {
        double later_s = date_s + same_s;
        if (c->row[i].time_s > later_s) {
            date_s = c->row[i].time_s;
            later_s = date_s + same_s;
        }
        for (end = i; end < c->count && c->row[end].time_s <= later_s; end++)
            c->row[end].time_s = date_s;
        struct memory_change *row = c->row + i, *sorted = row;
        if (end - i > 1)
            sorted = merge_sorted_runs(row, room + i, end - i, run);
        if (sorted != row)
            memcpy(row, sorted, (end - i) * sizeof *row);
    }
    free(room);
    free(run);
}

/* ---- the changes of a class of ranks ---- */

/* Returns the date at which a buffer stops being live, and sets *op to the op of its free set that ends last; of
 * several that end within same_s seconds, the last in the list. A buffer without a free set stays live until the step
 * ends: then *op is IR_NONE, and -1 is returned. */
static double buffer_free_date_s(const struct ir *ir, const double *end_s, uint32_t buffer,
                                 double same_s, uint32_t *op)
{
    const op_id *set = ir_free_set(ir, buffer);
    uint32_t count = ir->buffer.free_count[buffer];
    double last_s = -1;
    for (uint32_t i = 0; i < count; i++)
        last_s = end_s[set[i].i] > last_s ? end_s[set[i].i] : last_s;
    *op = IR_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (end_s[set[i].i] >= last_s - same_s && (*op == IR_NONE || set[i].i > *op))
            *op = set[i].i;
    return count > 0 ? end_s[*op] : -1;
}

/* For each op, a list of the buffers that stop being live when it ends. */
struct buffers_listed_by_last_op {
    uint32_t *first_buffer_by_op; /* [op_count] a row of the live buffers; IR_NONE: none */
    /* [rows of the live buffers] the next row in the same list; IR_NONE: none */
    uint32_t *next_buffer_of_same_last_op;
};

static void add_change(struct memory_change *row, size_t *at, uint32_t i, double time_s,
                       uint32_t op, enum memory_change_kind kind)
{
    row[(*at)++] = (struct memory_change){
        .time_s = time_s, .op = op, .row = i & MEMORY_CHANGE_ROW_MAX, .kind = kind};
}

/* The changes of one stream's ops come sorted, since its ops start and end in list order. So there are two sorted runs
 * for each stream, one of starts and one of ends, and sorting merges these few runs. */
void memory_changes_of_class(struct memory_changes *c, const struct ir *ir,
                             const struct sim_result *result, const struct live_buffers *l,
                             const struct sim_class *class)
{
    double same_s = memory_changes_tolerance_s(result);
    uint32_t streams = ir->stream_count, persistent = 0;
    const double *start_s = result->start_s + class->first_row,
                 *end_s = result->end_s + class->first_row;
    const uint8_t *stream = ir->op.stream + class->op_begin;
    assert(l->count <= MEMORY_CHANGE_ROW_MAX);
    struct buffers_listed_by_last_op leaving = {
        ir_new_empty_ids(class->op_count + 1u),
        heap_alloc(l->count + 1u, sizeof *leaving.next_buffer_of_same_last_op)};
    while (persistent < l->count && l->row[persistent].writer == IR_NONE)
        persistent++;
    /* The rows list the buffers that live throughout, then the starts of each stream, then the ends of each stream. */
    size_t *begin = heap_zalloc(2 * (size_t)streams + 1, sizeof *begin), *start = begin,
           *end = begin + streams;
    /* [rows of the live buffers] the buffer stops being live at the date at which it starts */
    bool *brief = heap_zalloc(l->count + 1u, sizeof *brief);
    for (uint32_t i = l->count; i-- > persistent;) {
        const struct live_buffer *row = &l->row[i];
        start[stream[row->writer]]++;
        uint32_t op;
        double date_s = buffer_free_date_s(ir, end_s - class->op_begin, row->buffer, same_s, &op);
        if (op == IR_NONE)
            continue;
        if (date_s <= start_s[row->writer] + same_s) {
            brief[i] = true;
            continue;
        }
        op -= class->op_begin;
        leaving.next_buffer_of_same_last_op[i] = leaving.first_buffer_by_op[op];
        leaving.first_buffer_by_op[op] = i;
        end[stream[op]]++;
    }
    size_t at = persistent;
    for (uint32_t k = 0; k < 2 * streams; k++) {
        size_t count = begin[k];
        begin[k] = at;
        at += count;
    }
    memory_changes_reserve(c, at + 1);
    c->count = 0;
    for (uint32_t i = 0; i < persistent; i++)
        add_change(c->row, &c->count, i, 0, IR_NONE, MEMORY_CHANGE_STARTS);
    c->count = at;
    for (uint32_t i = persistent; i < l->count; i++) {
        uint32_t op = l->row[i].writer;
        add_change(c->row, &start[stream[op]], i, start_s[op], class->op_begin + op,
                   brief[i] ? MEMORY_CHANGE_STARTS_AND_ENDS : MEMORY_CHANGE_STARTS);
    }
    for (uint32_t op = 0; op < class->op_count; op++)
        for (uint32_t i = leaving.first_buffer_by_op[op]; i != IR_NONE;
             i = leaving.next_buffer_of_same_last_op[i])
            add_change(c->row, &end[stream[op]], i, end_s[op], class->op_begin + op,
                       MEMORY_CHANGE_ENDS);
    free(brief);
    free(begin);
    free(leaving.first_buffer_by_op);
    free(leaving.next_buffer_of_same_last_op);
    memory_changes_sort(c, result);
}
