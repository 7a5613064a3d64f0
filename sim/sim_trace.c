#include "sim/memory/memory.h"
#include "sim/sim.h"

#include "base/arena.h"
#include "schedule/ir/ir_trace.h"

#include <stdlib.h>

/* The start and end of one op on one rank: a row of the trace before rows are sorted. */
struct op_start_and_end {
    double start_s, end_s;
    uint32_t rank, op;
};

static int compare_op_starts(const void *left, const void *right)
{
    const struct op_start_and_end *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

void sim_make_trace(const struct ir *ir, const struct sim_result *result, uint32_t rank_begin,
                    uint32_t rank_end, bool memory, struct trace *trace)
{
    size_t count = 0, filled = 0;
    for (uint32_t r = rank_begin; r < rank_end; r++)
        count += result->classes[result->class_of_rank[r]].op_count;
    struct op_start_and_end *instance = heap_alloc(count + 1, sizeof *instance);
    for (uint32_t r = rank_begin; r < rank_end; r++) {
        const struct sim_class *class = &result->classes[result->class_of_rank[r]];
        for (uint32_t k = 0; k < class->op_count; k++)
            if (sim_rank_runs_op(ir, result, r, class->op_begin + k))
                instance[filled++] = (struct op_start_and_end){
                    result->start_s[class->first_row + k], result->end_s[class->first_row + k], r,
                    class->op_begin + k};
    }
    if (filled > 0)
        qsort(instance, filled, sizeof *instance, compare_op_starts);
    for (size_t i = 0; i < filled; i++)
        ir_trace_append_row_of_op(ir, instance[i].rank, instance[i].op, instance[i].start_s,
                                  instance[i].end_s, trace);
    free(instance);
    for (uint32_t r = rank_begin; memory && r < rank_end; r++)
        memory_add_trace_rows(ir, result, r, trace);
}
