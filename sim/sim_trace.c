#include "sim/memory/memory.h"
#include "sim/sim.h"

#include "base/arena.h"
#include "schedule/ir/visible.h"

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

static int32_t tag(uint16_t value)
{
    return value == IR_NONE16 ? -1 : value;
}

static void add_row(struct trace *trace, const struct ir *ir, const struct instance *i)
{
    const struct work *work = ir_work(ir, i->op);
    int64_t payload = work_payload_bytes(work);
    size_t row = trace_add_op(trace);
    struct trace_ops *t = &trace->ops;
    t->rank[row] = i->rank;
    t->op[row] = i->op;
    t->stream[row] = trace_label(trace, ir->stream[ir->op.stream[i->op]].name);
    t->kind[row] = trace_label(trace, work_kind_info(work->kind)->name);
    t->phase[row] = trace_label(trace, phase_names[ir->op.phase[i->op]]);
    t->region[row] = trace_label(trace, region_names[ir->op.region[i->op]]);
    t->layer[row] = tag(ir->op.layer[i->op]);
    t->chunk[row] = tag(ir->op.chunk[i->op]);
    t->step[row] = tag(ir->op.step[i->op]);
    t->start_s[row] = i->start_s;
    t->end_s[row] = i->end_s;
    t->bytes[row] = payload > 0 ? (double)payload : work_memory_bytes(work);
    t->flops[row] = ir_op_flops(ir, work, i->rank);
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
        add_row(trace, ir, &instance[i]);
    free(instance);
    for (uint32_t r = rank_begin; memory && r < rank_end; r++)
        memory_trace(ir, result, r, trace);
}
