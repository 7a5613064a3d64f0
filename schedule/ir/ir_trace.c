#include "schedule/ir/ir_trace.h"

#include "schedule/ir/visible.h"

#include <stdio.h>

static int32_t tag_or_none(uint16_t value)
{
    return value == IR_NONE16 ? -1 : value;
}

void ir_trace_append_row_of_op(const struct ir *ir, uint32_t rank, uint32_t op, double start_s,
                               double end_s, struct trace *trace)
{
    const struct work *work = ir_work(ir, op);
    const double payload = (double)work_payload_bytes(work);
    const size_t row = trace_add_op(trace);
    struct trace_ops *t = &trace->ops;
    t->rank[row] = rank;
    t->op[row] = op;
    t->stream[row] = trace_intern_label(trace, ir->stream[ir->op.stream[op]].name);
    t->kind[row] = trace_intern_label(trace, work_kind_info(work->kind)->name);
    t->phase[row] = trace_intern_label(trace, phase_names[ir->op.phase[op]]);
    t->region[row] = trace_intern_label(trace, region_names[ir->op.region[op]]);
    t->layer[row] = tag_or_none(ir->op.layer[op]);
    t->chunk[row] = tag_or_none(ir->op.chunk[op]);
    t->step[row] = tag_or_none(ir->op.step[op]);
    t->micro[row] = tag_or_none(ir->op.micro[op]);
    t->start_s[row] = start_s;
    t->end_s[row] = end_s;
    t->bytes[row] = payload > 0 ? payload : work_memory_bytes(work);
    t->flops[row] = ir_work_flops_on_rank(ir, work, rank);
}

void ir_trace_set_stage_header_keys(const struct ir *ir, struct trace *trace)
{
    const int axis = mesh_find_axis(&ir->mesh, "pp");
    char key[32], value[16];
    if (axis < 0 || ir->mesh.axis[axis].size < 2)
        return;
    snprintf(value, sizeof value, "%u", (unsigned)ir->mesh.axis[axis].size);
    trace_set_key(trace, "stages", value);
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < trace->ops.count; i++) {
        const uint32_t rank = trace->ops.rank[i];
        uint32_t coordinate[MESH_AXES_MAX];
        snprintf(key, sizeof key, "stage_of.%u", (unsigned)rank);
        if (rank == last || trace_get_key(trace, key) != NULL)
            continue;
        mesh_coordinates(&ir->mesh, rank, coordinate);
        snprintf(value, sizeof value, "%u", (unsigned)coordinate[axis]);
        trace_set_key(trace, key, value);
        last = rank;
    }
}
