/* The streams of a recorded program become streams of a schedule, and get ops. */
#include "schedule/recorded/recorded_streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct program_stream *recorded_find_or_add_program_stream(struct recorded_schedule_builder *m,
                                                           int64_t handle, uint32_t queue_of)
{
    struct recorded_streams *s = m->streams;
    uint32_t number = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->row[i].handle == handle && s->row[i].group_of_queue == queue_of)
            return &s->row[i];
        number += s->row[i].group_of_queue == queue_of;
    }
    s->row = heap_grow(s->row, &s->capacity, (size_t)s->count + 1, sizeof *s->row);
    struct program_stream *row = &s->row[s->count++];
    *row = (struct program_stream){
        .handle = handle, .group_of_queue = queue_of, .earlier_used_stream_count = number};
    memset(row->stream, 0xff, sizeof row->stream);
    return row;
}

int16_t recorded_find_or_add_schedule_stream(struct recorded_schedule_builder *m,
                                             struct program_stream *row, enum stream_class class)
{
    char name[64]; /* shorter than MESH_NAME_MAX: ranks and groups have at most 7 and 5 digits */
    if (row->stream[class] >= 0)
        return row->stream[class];
    if (m->ir->stream_count == IR_STREAMS_MAX)
        return -1;
    const char *what = stream_class_name(class);
    if (row->group_of_queue != UINT32_MAX && row->handle != 0)
        snprintf(name, sizeof name, "queue%" PRIu32 ".%s%" PRId64, row->group_of_queue,
                 row->handle % QUEUES == QUEUE_SENDS ? "to" : "from", row->handle / QUEUES);
    else if (row->group_of_queue != UINT32_MAX)
        snprintf(name, sizeof name, "queue%" PRIu32, row->group_of_queue);
    else if (row->handle == 0)
        snprintf(name, sizeof name, "%s", what);
    else
        snprintf(name, sizeof name, "%s.%" PRIu32, what, row->earlier_used_stream_count);
    row->stream[class] = ir_add_stream(m->ir, name, class);
    return row->stream[class];
}

uint32_t recorded_add_op(struct recorded_schedule_builder *m, uint8_t stream,
                         const struct work *work, struct recorded_operands operands,
                         struct op_tags tags, const struct recorded_clock *clock)
{
    op_id wait[IR_STREAMS_MAX];
    uint16_t waits = 0;
    struct recorded_clock *waited = &m->streams->waited_clock_by_stream[stream];
    for (uint32_t i = 0; i < m->ir->stream_count; i++) {
        if (i == stream || clock->op[i] <= waited->op[i])
            continue;
        wait[waits++] = (op_id){clock->op[i] - 1};
        waited->op[i] = clock->op[i];
    }
    m->event_of_op = heap_grow(m->event_of_op, &m->event_capacity, (size_t)m->ir->op.count + 1,
                               sizeof *m->event_of_op);
    m->event_of_op[m->ir->op.count] = m->event;
    return ir_add_op(m->ir, &(struct op_desc){.work = *work,
                                              .stream = stream,
                                              .read_count = operands.read_count,
                                              .write_count = operands.write_count,
                                              .guard = IR_NONE16,
                                              .wait_count = waits,
                                              .tags = tags,
                                              .read = operands.read,
                                              .write = operands.write,
                                              .wait = wait})
        .i;
}

uint32_t recorded_add_first_writing_op(struct recorded_schedule_builder *m,
                                       const struct recorded_first_written_storages *first_writes)
{
    struct program_stream *stream = recorded_find_or_add_program_stream(m, 0, UINT32_MAX);
    const struct work work = {.kind = WORK_OPAQUE};
    const struct op_tags none = {PHASE_FORWARD, REGION_NONE, IR_NONE16,
                                 IR_NONE16,     IR_NONE16,   IR_NONE16};
    const int16_t on = recorded_find_or_add_schedule_stream(m, stream, STREAM_COMPUTE);
    static const struct recorded_clock no_clock;
    const uint32_t now = m->event;
    m->event = IR_NONE;
    const uint32_t op = recorded_add_op(
        m, (uint8_t)on, &work,
        (struct recorded_operands){NULL, first_writes->view, 0, first_writes->count}, none,
        &no_clock);
    m->event = now;
    return op;
}
