#include "schedule/schedule_file.h"

#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"

static bool has_offsets(const struct ir *ir)
{
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.offset[b] != UINT64_MAX)
            return true;
    return false;
}

/* Returns whether ops wait only for earlier ops of their role, and buffers are freed only by ops of their role. */
static bool is_ordered(const struct ir *ir)
{
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t op = ir->role[r].op_begin; role_has_op(&ir->role[r], op); op++)
            for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
                if (ir_waits(ir, op)[w].i >= op ||
                    !role_has_op(&ir->role[r], ir_waits(ir, op)[w].i))
                    return false;
    for (uint32_t b = 0; b < ir->buffer.count && ir->role_count > 0; b++)
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++)
            if (!role_has_op(&ir->role[ir->buffer.role[b]], ir_free_set(ir, b)[k].i))
                return false;
    return true;
}

enum status schedule_load(struct ir *ir, const char *path, struct diag *diag)
{
    enum status status = ir_load(ir, path, diag);
    if (status == STATUS_OK && ir->op.count > 0 && !has_offsets(ir) && is_ordered(ir))
        offsets_plan(ir, NULL);
    return status;
}
