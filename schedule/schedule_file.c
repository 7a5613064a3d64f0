#include "schedule/schedule_file.h"

#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/recorded/recorded.h"

#include <stdlib.h>
#include <string.h>

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

void schedule_recorded_release(struct schedule_recorded *recorded)
{
    step_recording_release(&recorded->recording);
    free(recorded->event_of);
    *recorded = (struct schedule_recorded){0};
}

static enum status make_recorded(struct ir *ir, const char *name, const struct text *text,
                                 struct schedule_recorded *kept, struct diag *diag)
{
    struct schedule_recorded recorded = {0};
    enum status status =
        step_recording_parse(&recorded.recording, name, text->data, text->size, diag);
    if (status == STATUS_OK)
        status = recorded_make(ir, &recorded.recording, name, &recorded.event_of, diag);
    if (kept != NULL)
        *kept = recorded;
    else
        schedule_recorded_release(&recorded);
    return status;
}

enum status schedule_parse(struct ir *ir, const char *name, const struct text *text,
                           struct schedule_recorded *recorded, struct diag *diag)
{
    /* whatever is JSON is no schedule's text */
    const bool json = text->size > 0 && text->data[0] == '{';
    enum status status = json ? make_recorded(ir, name, text, recorded, diag)
                              : ir_parse(ir, name, text->data, text->size, diag);
    if (status == STATUS_OK && !json && ir->op.count > 0 && !has_offsets(ir) && is_ordered(ir))
        offsets_plan(ir, NULL);
    return status;
}

enum status schedule_load(struct ir *ir, const char *path, struct schedule_recorded *recorded,
                          struct diag *diag)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = schedule_parse(ir, name, &text, recorded, diag);
    text_release(&text);
    return status;
}
