#include "sim/memory/memory.h"
#include "sim/sim.h"

#include "base/arena.h"
#include "schedule/ir/ir_trace.h"

#include <stdlib.h>

/* Rows of the trace, before they are sorted. */
struct instance {
    double start_s, end_s;
    uint32_t rank, op;
};

static int compare_instances(const void *left, const void *right)
{
    const struct instance *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

void sim_trace(const struct ir *ir, const struct sim_result *result, uint32_t rank_begin,
               uint32_t rank_end, bool memory, struct trace *trace)
{
    size_t count = 0, filled = 0;
    for (uint32_t r = rank_begin; r < rank_end; r++)
        count += result->classes[result->class_of_rank[r]].op_count;
    struct instance *instance = heap_alloc(count + 1, sizeof *instance);
    for (uint32_t r = rank_begin; r < rank_end; r++) {
        const struct sim_class *class = &result->classes[result->class_of_rank[r]];
        for (uint32_t k = 0; k < class->op_count; k++)
            if (sim_runs(ir, result, r, class->op_begin + k))
                instance[filled++] =
                    (struct instance){result->start_s[class->row + k],
                                      result->end_s[class->row + k], r, class->op_begin + k};
    }
    if (filled > 0)
        qsort(instance, filled, sizeof *instance, compare_instances);
    for (size_t i = 0; i < filled; i++)
        ir_trace_op(ir, instance[i].rank, instance[i].op, instance[i].start_s, instance[i].end_s,
                    trace);
    free(instance);
    for (uint32_t r = rank_begin; memory && r < rank_end; r++)
        memory_trace(ir, result, r, trace);
}
