/* Finds the bound buffers that a schedule reads before it writes them. */
#include "exec/assignment.h"

#include <stdlib.h>

/* The ranges of elements that have been written; no two overlap or touch. */
struct written_ranges {
    struct ir_element_extent *ranges; /* their `count` is a number of elements */
    uint32_t range_count, capacity;
};

static bool is_written(const struct written_ranges *w, uint64_t begin, uint64_t end)
{
    for (uint32_t i = 0; i < w->range_count; i++)
        if (w->ranges[i].begin <= begin && end <= w->ranges[i].begin + w->ranges[i].count)
            return true;
    return begin == end;
}

static void add_written_range(struct written_ranges *w, uint64_t begin, uint64_t end)
{
    for (uint32_t i = 0; i < w->range_count;) { /* ranges that touch the new one are joined to it */
        uint64_t first = w->ranges[i].begin, last = first + w->ranges[i].count;
        if (last < begin || end < first) {
            i++;
            continue;
        }
        begin = first < begin ? first : begin;
        end = last > end ? last : end;
        w->ranges[i] = w->ranges[--w->range_count];
    }
    if (w->range_count == w->capacity) {
        w->capacity = (uint32_t)heap_next_capacity(w->capacity, w->range_count + 1);
        w->ranges = heap_realloc(w->ranges, w->capacity, sizeof *w->ranges);
    }
    w->ranges[w->range_count++] = (struct ir_element_extent){begin, end - begin};
}

bool *assignment_find_reads_before_writes(const struct ir *ir, uint32_t kinds)
{
    bool *reads_before_writes_by_buffer =
        heap_zalloc((size_t)ir->buffer.count + 1, sizeof *reads_before_writes_by_buffer);
    struct written_ranges *written_ranges =
        heap_zalloc((size_t)ir->buffer.count + 1, sizeof *written_ranges);
    for (uint32_t op = 0; op < ir->op.count; op++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++) {
            struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
            uint32_t b = view.buffer.i;
            uint16_t binding = ir->buffer.binding[b];
            if (binding == IR_NONE16 || !(kinds >> ir->binding[binding].kind & 1))
                continue;
            if (k < ir->op.read_count[op])
                reads_before_writes_by_buffer[b] =
                    reads_before_writes_by_buffer[b] ||
                    !is_written(&written_ranges[b], view.begin, view.begin + view.count);
            else if (ir->op.guard[op] == IR_NONE16) /* where a guard fails, a rank does not write */
                add_written_range(&written_ranges[b], view.begin, view.begin + view.count);
        }
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        free(written_ranges[b].ranges);
    free(written_ranges);
    return reads_before_writes_by_buffer;
}
