/* Makes a schedule of a recording: a pass over its events in the order of issue.
 *
 * A stream of the program becomes up to four streams of the schedule, one for each class of work; an op waits for the
 * op before it on its stream of the program. Each stream of the program has a clock: the ops that its next op has to
 * wait for, which are the last one of each stream of the schedule. A record copies the clock of its stream; a wait adds
 * the copy to the clock of another stream.
 *
 * NCCL runs sends and receives between two ranks in the order of issue, on a stream for these two ranks, and batches of
 * messages on the stream of their group. The messages of one batch run at the same time. So messages to a rank and
 * messages from it are two queues with streams of their own in the schedule, and the clock of a queue makes messages
 * that are in no batch wait for each other, and a batch for the batch before it. */
#include "schedule/recorded/recorded.h"

#include "base/c_locale.h"
#include "schedule/recorded/recorded_parts.h"
#include "schedule/recorded/recorded_streams.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- streams ---- */

static void raise_clock_to(struct recorded_clock *to, const struct recorded_clock *from)
{
    for (int i = 0; i < IR_STREAMS_MAX; i++)
        if (from->op[i] > to->op[i])
            to->op[i] = from->op[i];
}

static void add_op_to_clock(struct recorded_schedule_builder *m, struct recorded_clock *clock,
                            uint32_t op)
{
    const uint8_t stream = m->ir->op.stream[op];
    if (op + 1 > clock->op[stream])
        clock->op[stream] = op + 1;
}

/* ---- labels ---- */

static bool is_in_module(const struct recorded_schedule_builder *m, const struct step_event *event,
                         const char *word)
{
    return strstr(m->recording->module[event->module], word) != NULL;
}

/* Returns the part of the model to which an event belongs. Collectives of c10d, except messages, are taken for those of
 * parameters and gradients; functional collectives, which DTensor issues, for those of activations (REGION_NONE). */
static enum region region_of_event(const struct recorded_schedule_builder *m,
                                   const struct step_event *event)
{
    if (event->phase == STEP_OPTIMIZER)
        return REGION_OPTIMIZER;
    switch ((enum step_event_kind)event->kind) {
    case STEP_COLLECTIVE:
        return strncmp(event->op_name, "c10d.", 5) == 0 && !recorded_is_message(event)
                   ? REGION_WEIGHT_COLLECTIVES
                   : REGION_NONE;
    case STEP_ATTENTION:
        return REGION_ATTENTION;
    case STEP_PRODUCT:
        return REGION_LINEAR;
    default:
        if (strncmp(event->op_name, "fsdp.", 5) == 0)
            return REGION_WEIGHT_COLLECTIVES;
        if (is_in_module(m, event, "norm"))
            return REGION_NORM;
        return strncmp(event->op_name, "embedding", 9) == 0 ? REGION_EMBEDDING : REGION_NONE;
    }
}

static struct op_tags op_tags_of_event(const struct recorded_schedule_builder *m, uint32_t event)
{
    static const uint8_t phases[] = {[STEP_FORWARD] = PHASE_FORWARD,
                                     [STEP_BACKWARD] = PHASE_BACKWARD,
                                     [STEP_RECOMPUTE] = PHASE_RECOMPUTE,
                                     [STEP_OPTIMIZER] = PHASE_OPTIMIZER};
    const struct step_event *e = &m->recording->event[event];
    return (struct op_tags){phases[e->phase],
                            (uint8_t)region_of_event(m, e),
                            recorded_layer_of_event(m, event),
                            IR_NONE16,
                            IR_NONE16,
                            IR_NONE16};
}

/* ---- ops ---- */

/* Adds the op of an event to stream `on` of the schedule, and returns its id. The op waits for the clock of its stream
 * of the program, which then is the clock of this op only. */
static uint32_t add_op_after_stream_clock(struct recorded_schedule_builder *m, uint32_t number,
                                          uint8_t on, const struct work *work,
                                          struct recorded_operands operands)
{
    struct program_stream *stream =
        recorded_find_or_add_program_stream(m, m->recording->event[number].stream, UINT32_MAX);
    const uint32_t op =
        recorded_add_op(m, on, work, operands, op_tags_of_event(m, number), &stream->clock);
    stream->clock = (struct recorded_clock){{0}};
    add_op_to_clock(m, &stream->clock, op);
    recorded_set_last_op_of_storages(m, number, op);
    return op;
}

/* Sets *on to the stream of the schedule for an event's work of one class; an error if there are too many streams. */
static enum status find_schedule_stream(struct recorded_schedule_builder *m, uint32_t number,
                                        enum stream_class class, uint8_t *on)
{
    struct program_stream *stream =
        recorded_find_or_add_program_stream(m, m->recording->event[number].stream, UINT32_MAX);
    const int16_t found = recorded_find_or_add_schedule_stream(m, stream, class);
    *on = (uint8_t)found;
    return found >= 0 ? STATUS_OK
                      : recorded_report_event_error(
                            m, number, "the program has more than %d streams", IR_STREAMS_MAX);
}

/* Returns the kind of a copy between the device and its host; WORK_OPAQUE if the event is no such copy. */
static enum work_kind copy_kind_of_event(const struct recorded_schedule_builder *m,
                                         const struct step_event *event)
{
    const struct step_tensor *to = recorded_tensor_written_by_event(m, event, 0);
    bool from_host = false;
    if (event->kind != STEP_COPY || to == NULL)
        return WORK_OPAQUE;
    for (uint32_t i = 0; i < event->in_count; i++)
        from_host |= recorded_tensor_read_by_event(m, event, i)->storage < 0;
    return to->storage < 0 ? WORK_D2H : from_host ? WORK_H2D : WORK_OPAQUE;
}

/* ---- collectives and copies ---- */

/* Makes the stream of a wait_tensor event wait for the collective that writes what the event reads; does nothing if
 * none is pending. */
static void wait_for_pending_collective(struct recorded_schedule_builder *m,
                                        const struct step_event *event)
{
    const struct step_tensor *x = recorded_tensor_read_by_event(m, event, 0);
    if (x == NULL || x->storage < 0 || m->streams->pending_collective_op_plus_1[x->storage] == 0)
        return;
    add_op_to_clock(m, &recorded_find_or_add_program_stream(m, event->stream, UINT32_MAX)->clock,
                    m->streams->pending_collective_op_plus_1[x->storage] - 1);
}

/* A collective or copy of the program: its work, and its stream in the schedule. */
struct collective_or_copy {
    struct work work;
    uint8_t stream;
    /* it runs in a queue, and its stream of the program does not wait for it */
    bool runs_in_communication_queue;
};

static struct program_stream *message_queue_of_event(struct recorded_schedule_builder *m,
                                                     const struct step_event *event,
                                                     enum recorded_queue_kind queue)
{
    const int64_t peer = queue == QUEUE_OF_BATCHES ? 0 : event->peer_rank;
    return recorded_find_or_add_program_stream(m, peer * QUEUES + queue, event->group);
}

static bool is_message_of_stages(const struct work *work)
{
    return work->kind == WORK_SEND || work->kind == WORK_RECV;
}

/* Adds to *clock the ops for which a message between stages waits because of its queue: the message before it or, for a
 * message of a batch, all messages of earlier batches. */
static void add_waits_of_message_queue(struct recorded_schedule_builder *m,
                                       const struct step_event *event, struct recorded_clock *clock)
{
    struct program_stream *order = message_queue_of_event(
        m, event, event->batch_number >= 0 ? QUEUE_OF_BATCHES : QUEUE_UNBATCHED);
    if (event->batch_number < 0 || order->batch != event->batch_number + 1) {
        order->clock_before_last_batch = order->clock;
        order->batch = event->batch_number + 1;
    }
    raise_clock_to(clock, &order->clock_before_last_batch);
}

static bool is_collective_or_copy(const struct recorded_schedule_builder *m, uint32_t number)
{
    const struct step_event *event = &m->recording->event[number];
    return event->kind == STEP_COLLECTIVE ? !recorded_only_joins_collective(event)
                                          : copy_kind_of_event(m, event) != WORK_OPAQUE;
}

/* Sets *move to the work and the stream of event `number`, a collective or a copy. Copies, barriers and the synchronous
 * collectives of c10d run in their stream; other collectives are queued. */
static enum status find_work_of_collective_or_copy(struct recorded_schedule_builder *m,
                                                   uint32_t number, struct collective_or_copy *move)
{
    const struct step_event *event = &m->recording->event[number];
    *move = (struct collective_or_copy){.runs_in_communication_queue = false};
    if (event->kind == STEP_COPY) {
        const enum work_kind kind = copy_kind_of_event(m, event);
        move->work = (struct work){.kind = (uint8_t)kind,
                                   .copy = {.bytes = (int64_t)fmax(event->written_bytes, 1),
                                            .blocking = kind == WORK_D2H}};
        return find_schedule_stream(m, number, kind == WORK_D2H ? STREAM_D2H : STREAM_H2D,
                                    &move->stream);
    }
    enum status status = recorded_set_work_of_collective(m, number, &move->work);
    if (status != STATUS_OK)
        return status;
    move->runs_in_communication_queue =
        move->work.kind != WORK_BARRIER &&
        (event->is_async || strncmp(event->op_name, "c10d.", 5) != 0);
    if (!move->runs_in_communication_queue)
        return find_schedule_stream(m, number, STREAM_COMM, &move->stream);
    struct program_stream *queue =
        is_message_of_stages(&move->work)
            ? message_queue_of_event(m, event,
                                     move->work.kind == WORK_SEND ? QUEUE_SENDS : QUEUE_RECEIVES)
            : recorded_find_or_add_program_stream(m, 0, event->group);
    const int16_t on = recorded_find_or_add_schedule_stream(m, queue, STREAM_COMM);
    move->stream = (uint8_t)on;
    return on >= 0 ? STATUS_OK
                   : recorded_report_event_error(m, number, "the program has more than %d streams",
                                                 IR_STREAMS_MAX);
}

/* Returns the operands of a collective or a copy, and makes their buffers. view[]: memory for the views to which the
 * result points. */
static struct recorded_operands
operands_of_collective_or_copy(struct recorded_schedule_builder *m, uint32_t number,
                               const struct collective_or_copy *move, struct view view[2])
{
    const struct work *work = &move->work;
    const enum work_kind kind = (enum work_kind)work->kind;
    const bool up = kind == WORK_H2D, down = kind == WORK_D2H;
    struct recorded_transfer_buffer transfer_buffer = {
        .stem = up ? "host" : "sent",
        .bytes = (uint64_t)work_payload_bytes(work),
        .stream = move->stream,
        .memory = up ? MEMORY_PINNED : MEMORY_HBM,
        .category = up ? CATEGORY_INPUT : CATEGORY_COMMUNICATION,
        .dtype = (uint8_t)(up || down ? DTYPE_U8
                                      : recorded_dtype_of_collective(
                                            m, &m->recording->event[number], kind)),
    };
    if (kind == WORK_BARRIER)
        return (struct recorded_operands){0};
    if (kind == WORK_RECV) {
        transfer_buffer.stem = "received";
        view[0] = recorded_make_transfer_buffer(m, &transfer_buffer);
        return (struct recorded_operands){NULL, &view[0], 0, 1};
    }
    view[0] = recorded_make_transfer_buffer(m, &transfer_buffer);
    if (kind == WORK_SEND)
        return (struct recorded_operands){&view[0], NULL, 1, 0};
    transfer_buffer.stem = down ? "host" : "received";
    transfer_buffer.category = CATEGORY_COMMUNICATION;
    transfer_buffer.memory = down ? MEMORY_PINNED : MEMORY_HBM;
    if (kind == WORK_ALL_GATHER)
        transfer_buffer.bytes *= m->recording->group[m->recording->event[number].group].rank_count;
    if (kind == WORK_REDUCE_SCATTER)
        transfer_buffer.bytes /= m->recording->group[m->recording->event[number].group].rank_count;
    view[1] = recorded_make_transfer_buffer(m, &transfer_buffer);
    return (struct recorded_operands){&view[0], &view[1], 1, 1};
}

/* Makes the buffers for the bytes that collectives and copies move. For each buffer that one of them reads, adds an op
 * without cost that writes it before all other ops; buffers on the host, from which copies read, need none. */
static enum status add_transfer_buffers(struct recorded_schedule_builder *m)
{
    enum status status = STATUS_OK;
    struct collective_or_copy work_and_stream;
    struct view view[2];
    for (uint32_t i = 0; i < m->recording->event_count && status == STATUS_OK; i++) {
        if (!is_collective_or_copy(m, i))
            continue;
        const uint32_t before = m->ir->buffer.count;
        status = find_work_of_collective_or_copy(m, i, &work_and_stream);
        if (status != STATUS_OK ||
            operands_of_collective_or_copy(m, i, &work_and_stream, view).read_count == 0)
            continue;
        if (view[0].buffer.i >= before && work_and_stream.work.kind != WORK_H2D) {
            const struct recorded_first_written_storages first_writes = {.view = {view[0]},
                                                                         .count = 1};
            m->streams->last_source_fill_op_plus_1 =
                recorded_add_first_writing_op(m, &first_writes) + 1;
        }
    }
    return status;
}

/* Adds the op of a collective or a copy. A send and a receive that together are one shift get one op, which is added
 * for the earlier event. */
static enum status add_collective_or_copy(struct recorded_schedule_builder *m, uint32_t number)
{
    const struct step_event *event = &m->recording->event[number];
    struct recorded_first_written_storages none;
    struct collective_or_copy work_and_stream;
    struct view view[2];
    recorded_make_buffers_up_to_event(m, number, &none, 0);
    const uint32_t partner = recorded_other_half_of_ring_shift(m, number);
    if (partner < number) { /* the shift has been added with the other half of it */
        m->streams->collective_op_of_event_plus_1[number] =
            m->streams->collective_op_of_event_plus_1[partner];
        return STATUS_OK;
    }
    enum status status = find_work_of_collective_or_copy(m, number, &work_and_stream);
    if (status != STATUS_OK)
        return status;
    const struct recorded_operands operands =
        operands_of_collective_or_copy(m, number, &work_and_stream, view);
    struct recorded_clock clock =
        recorded_find_or_add_program_stream(m, event->stream, UINT32_MAX)->clock;
    if (m->streams->last_source_fill_op_plus_1 > 0)
        add_op_to_clock(m, &clock, m->streams->last_source_fill_op_plus_1 - 1);
    const bool queued = is_message_of_stages(&work_and_stream.work);
    if (queued)
        add_waits_of_message_queue(m, event, &clock);
    const uint32_t op = recorded_add_op(m, work_and_stream.stream, &work_and_stream.work, operands,
                                        op_tags_of_event(m, number), &clock);
    recorded_set_last_op_of_storages(m, number, op);
    m->streams->collective_op_of_event_plus_1[number] = op + 1;
    if (queued)
        add_op_to_clock(
            m,
            &message_queue_of_event(m, event,
                                    event->batch_number >= 0 ? QUEUE_OF_BATCHES : QUEUE_UNBATCHED)
                 ->clock,
            op);
    if (!work_and_stream.runs_in_communication_queue) {
        struct recorded_clock *own =
            &recorded_find_or_add_program_stream(m, event->stream, UINT32_MAX)->clock;
        *own = (struct recorded_clock){{0}};
        add_op_to_clock(m, own, op);
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < event->out_count; i++)
        if (recorded_tensor_written_by_event(m, event, i)->storage >= 0)
            m->streams->pending_collective_op_plus_1[recorded_tensor_written_by_event(m, event, i)
                                                         ->storage] = op + 1;
    return STATUS_OK;
}

/* ---- kernels ---- */

static enum status add_kernel(struct recorded_schedule_builder *m, uint32_t number)
{
    struct recorded_first_written_storages first_writes;
    struct work work;
    uint8_t on;
    enum status status = recorded_set_work_of_operator(m, number, &work);
    if (status == STATUS_OK)
        status = find_schedule_stream(m, number, STREAM_COMPUTE, &on);
    if (status != STATUS_OK)
        return status;
    recorded_make_buffers_up_to_event(m, number, &first_writes, RECORDED_WRITES_MAX);
    recorded_set_first_writing_op(
        m, &first_writes,
        add_op_after_stream_clock(
            m, number, on, &work,
            (struct recorded_operands){NULL, first_writes.view, 0, first_writes.count}));
    return STATUS_OK;
}

/* ---- what orders streams ---- */

static const struct recorded_stream_state_at_event *
find_recorded_event(const struct recorded_streams *s, int64_t event)
{
    for (uint32_t i = s->stream_state_count; i-- > 0;)
        if (s->stream_state[i].event == event)
            return &s->stream_state[i];
    return NULL;
}

static void add_record(struct recorded_schedule_builder *m, const struct step_event *event)
{
    struct recorded_streams *s = m->streams;
    const struct recorded_clock clock =
        recorded_find_or_add_program_stream(m, event->stream, UINT32_MAX)->clock;
    struct recorded_stream_state_at_event *mark =
        (struct recorded_stream_state_at_event *)find_recorded_event(s, event->cuda_event);
    if (mark == NULL) {
        s->stream_state = heap_grow(s->stream_state, &s->stream_state_capacity,
                                    (size_t)s->stream_state_count + 1, sizeof *s->stream_state);
        mark = &s->stream_state[s->stream_state_count++];
    }
    *mark = (struct recorded_stream_state_at_event){event->cuda_event, clock};
}

/* Adds an op in which the host waits for the ops that a clock names. */
static enum status add_host_wait(struct recorded_schedule_builder *m, uint32_t number,
                                 const struct recorded_clock *clock)
{
    static const struct work work = {.kind = WORK_HOST_SYNC};
    if (m->streams->host_wait_stream < 0 && m->ir->stream_count == IR_STREAMS_MAX)
        return recorded_report_event_error(m, number, "the program has more than %d streams",
                                           IR_STREAMS_MAX);
    if (m->streams->host_wait_stream <
        0) /* no work runs there; the op's waits say what the host waits for */
        m->streams->host_wait_stream = ir_add_stream(m->ir, "host_waits", STREAM_COMM);
    recorded_add_op(m, (uint8_t)m->streams->host_wait_stream, &work, (struct recorded_operands){0},
                    op_tags_of_event(m, number), clock);
    return STATUS_OK;
}

/* ---- any event ---- */

static enum status add_ops_of_event(struct recorded_schedule_builder *m, uint32_t number)
{
    const struct step_event *event = &m->recording->event[number];
    struct recorded_first_written_storages none;
    const struct recorded_stream_state_at_event *mark;
    if (is_collective_or_copy(m, number))
        return add_collective_or_copy(m, number);
    if (event->kind < STEP_RECORD_CUDA_EVENT && event->kind != STEP_COLLECTIVE)
        return add_kernel(m, number);
    recorded_make_buffers_up_to_event(m, number, &none, 0);
    struct recorded_clock *clock =
        &recorded_find_or_add_program_stream(m, event->stream, UINT32_MAX)->clock;
    switch ((enum step_event_kind)event->kind) {
    case STEP_COLLECTIVE:
        wait_for_pending_collective(m, event);
        return STATUS_OK;
    case STEP_RECORD_CUDA_EVENT:
        add_record(m, event);
        return STATUS_OK;
    case STEP_STREAM_WAIT_FOR_EVENT: /* an event recorded before the step is not found, and needs no wait */
        mark = find_recorded_event(m->streams, event->cuda_event);
        if (mark != NULL)
            raise_clock_to(clock, &mark->clock);
        return STATUS_OK;
    case STEP_WAIT_FOR_COLLECTIVE:
        if (event->index_of_awaited_collective >= 0 &&
            m->streams->collective_op_of_event_plus_1[event->index_of_awaited_collective] > 0)
            add_op_to_clock(
                m, clock,
                m->streams->collective_op_of_event_plus_1[event->index_of_awaited_collective] - 1);
        return STATUS_OK;
    default: /* STEP_HOST_WAIT_FOR_EVENT and STEP_HOST_READS_VALUE */
        mark = event->cuda_event >= 0 ? find_recorded_event(m->streams, event->cuda_event) : NULL;
        return add_host_wait(m, number, mark != NULL ? &mark->clock : clock);
    }
}

/* ---- the whole ---- */

static enum status add_ops_of_all_events(struct recorded_schedule_builder *m)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < m->recording->event_count && status == STATUS_OK; i++) {
        m->ops_before[i] = m->ir->op.count;
        m->event = i;
        status = add_ops_of_event(m, i);
    }
    m->ops_before[m->recording->event_count] = m->ir->op.count;
    return status;
}

/* Adds the role of recording m->recording, its groups, ops and buffers. */
static enum status make_role_of_recording(struct recorded_schedule_builder *m)
{
    const struct step_recording *r = m->recording;
    struct recorded_streams *streams = heap_zalloc(1, sizeof *streams);
    m->streams = streams;
    m->event = IR_NONE;
    m->written_storage_count = 0;
    m->schedule_group_by_program_group =
        heap_alloc((size_t)r->group_count + 1, sizeof *m->schedule_group_by_program_group);
    streams->pending_collective_op_plus_1 =
        heap_zalloc((size_t)r->storage_count + 1, sizeof *streams->pending_collective_op_plus_1);
    streams->collective_op_of_event_plus_1 =
        heap_zalloc((size_t)r->event_count + 1, sizeof *streams->collective_op_of_event_plus_1);
    streams->host_wait_stream = -1;
    recorded_make_storage_tables(m);
    recorded_add_groups(m);
    recorded_add_role(m);
    enum status status = add_transfer_buffers(m);
    if (status == STATUS_OK)
        status = add_ops_of_all_events(m);
    if (status == STATUS_OK)
        recorded_set_free_sets(m);
    recorded_release_storage_tables(m);
    free(m->schedule_group_by_program_group);
    free(streams->row);
    free(streams->stream_state);
    free(streams->pending_collective_op_plus_1);
    free(streams->collective_op_of_event_plus_1);
    free(streams);
    return status;
}

enum status recorded_make_schedule(struct ir *ir, const struct step_recording *recording,
                                   uint32_t count, uint32_t **event_of_op, struct diag *diag)
{
    struct recorded_schedule_builder m = {
        .ir = ir, .recordings = recording, .recording_count = count, .diag = diag};
    enum status status = recorded_match_messages(&m);
    if (status == STATUS_OK)
        status = recorded_make_mesh(&m);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        m.recording = &recording[i];
        status = make_role_of_recording(&m);
    }
    if (event_of_op != NULL)
        *event_of_op = m.event_of_op;
    else
        free(m.event_of_op);
    return status;
}
