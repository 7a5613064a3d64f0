/* Messages between stages. A stage posts the receive for an action when the action before it starts, on a stream of its
 * own: it receives one message ahead, and needs memory for one message only. It sends the result of an action as soon
 * as it is complete. If the host waits for messages (pipeline_awaits_messages()), a stage posts the receive only after
 * the previous action has ended.
 *
 * In each pass and direction, sends and receives are in the same order on both sides, so one stream for each cannot
 * deadlock. A folded pipeline has both passes in both directions, and so needs two streams for each (lanes). Where
 * stages share subsequences, every two stages have streams of their own, and a stage receives messages in the order in
 * which the other stage sends them.
 *
 * If there are several tensor ranks, those of a stage divide its rows. There is then a seam between two chunks if
 * stages share the unit in one of them or in both: rows may also move to another tensor rank. The sending stage first
 * gathers its rows. To each stage that takes some of them, every tensor rank sends an equal part, to the rank with its
 * own index there. The receiving stage gathers the parts, and each rank takes its own rows. So few bytes are sent
 * between stages (as with Megatron-LM's scatter_gather_tensors_in_pipeline), and all tensor ranks run the same ops. */
#include "schedule/step/stage.h"

#include "schedule/choices/pieces.h"
#include "schedule/emit/emit.h"
#include "schedule/emit/process_groups.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/weights/remote_weights.h"

#include <assert.h>
#include <stdio.h>

/* The rows begin .. end - 1 of a unit, counted in the rows of one tensor rank. */
struct row_range {
    int64_t begin, end;
};

static struct stages_sharing_subsequence stages_sharing_unit_in_chunk(const struct stage *s,
                                                                      uint32_t chunk, uint32_t unit)
{
    return multiplex_stages_sharing_subsequence(s->choices, chunk, unit % s->choices->subsequences);
}

static struct row_range unit_rows_of_stage(const struct stage *s, uint32_t chunk, uint32_t unit,
                                           uint32_t stage)
{
    struct stages_sharing_subsequence share = stages_sharing_unit_in_chunk(s, chunk, unit);
    const struct choices *c = s->choices;
    uint32_t part = unit % c->subsequences;
    int64_t tokens = pipeline_tokens_before_subsequence(c, part + 1) -
                     pipeline_tokens_before_subsequence(c, part);
    int64_t rows = tokens / c->cp / c->hp / c->sequence_parallel_ranks * c->micro_batch;
    int64_t k = share.count, i = (int64_t)stage - share.first_stage;
    if (i < 0 || i >= k)
        return (struct row_range){0, 0};
    struct piece piece = piece_of_rows(rows, k, i);
    return (struct row_range){piece.begin, piece.begin + piece.rows};
}

static struct row_range intersect_row_ranges(struct row_range a, struct row_range b)
{
    struct row_range both = {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
    return both.begin < both.end ? both : (struct row_range){0, 0};
}

/* Returns the chunk from which `chunk` gets its input in a pass; -1: it gets none. With the opposite pass, it is the
 * chunk to which `chunk` sends. */
static int64_t input_chunk_of_pass(const struct stage *s, uint32_t chunk, enum pass pass)
{
    int64_t from = pass == PASS_FORWARD ? (int64_t)chunk - 1 : (int64_t)chunk + 1;
    return from < pipeline_chunk_count(s->choices) ? from : -1;
}

/* True if there is a seam between two chunks for this unit: there are several tensor ranks, and stages share the unit
 * in at least one of the chunks, so rows may change their tensor rank. */
static bool rows_change_tensor_rank(const struct stage *s, uint32_t chunk, uint32_t other,
                                    uint32_t unit)
{
    return s->choices->tp > 1 && (stages_sharing_unit_in_chunk(s, chunk, unit).count > 1 ||
                                  stages_sharing_unit_in_chunk(s, other, unit).count > 1);
}

static enum pass pass_of_action(const struct action *action)
{
    return action->kind == ACTION_FORWARD ? PASS_FORWARD : PASS_BACKWARD;
}

/* Returns the passage of a unit through a chunk, which must be one of this stage's chunks. */
static struct chunk_passage_of_unit *find_passage_of_own_chunk(struct stage *s, uint32_t chunk,
                                                               uint32_t unit)
{
    uint32_t v = 0;
    while (pipeline_chunk_of_stage(s->choices, s->e->stage, v) != chunk)
        v++;
    assert(v < s->chunk_count);
    return stage_passage(s, v, unit);
}

/* ---- the unit that is emitted ---- */

/* Returns the number of tokens for which this stage's caches of keys need room in a chunk: those of all subsequences;
 * on a stage after the chunk's owner only those of the first subsequences, which it shares. If stages may share
 * subsequences, the last one counts with its pieces rounded up. */
static int64_t kv_cache_tokens_of_chunk(const struct stage *s, uint32_t chunk)
{
    const struct choices *c = s->choices;
    bool shares = s->pipeline->is_multiplexed;
    uint32_t last = (shares && s->e->stage > chunk ? multiplex_front_subsequence_count(c, chunk)
                                                   : c->subsequences) -
                    1;
    int64_t begin = pipeline_tokens_before_subsequence(c, last),
            rows = (pipeline_tokens_before_subsequence(c, last + 1) - begin) /
                   c->sequence_parallel_ranks;
    int64_t most = rows;
    for (uint32_t k = 2; shares && k <= c->pp; k++) {
        int64_t all = piece_of_rows(rows, k, 0).rows * k;
        most = all > most ? all : most;
    }
    return begin + most * c->sequence_parallel_ranks;
}

void stage_set_unit(struct stage *s, uint32_t chunk, uint32_t unit, enum phase phase)
{
    struct emit *e = s->e;
    const struct choices *c = s->choices;
    uint32_t k = c->subsequences, part = unit % k;
    int64_t ranks = (int64_t)c->cp * c->hp,
            begin = pipeline_tokens_before_subsequence(c, part) / ranks;
    int64_t n = c->seq / ranks, end = pipeline_tokens_before_subsequence(c, part + 1) / ranks;
    struct stages_sharing_subsequence share = stages_sharing_unit_in_chunk(s, chunk, unit);
    e->unit.stages = remote_stages_sharing_pipeline_unit(e, chunk, unit);
    /* Stages share units only if a micro-batch is one sequence, which only tensor ranks divide: its rows are tokens. */
    if (share.count > 1) {
        struct row_range mine = unit_rows_of_stage(s, chunk, unit, e->stage);
        end = begin + mine.end * c->sequence_parallel_ranks;
        begin += mine.begin * c->sequence_parallel_ranks;
        e->unit.stages.group = multiplex_group_of_sharing_stages(e, "stages", share);
    }
    e->unit.subsequence = part;
    e->unit.first_sequence = (int64_t)(unit / k) * c->micro_batch;
    e->unit.kv_cache_capacity_tokens = kv_cache_tokens_of_chunk(s, chunk);
    if (s->prefix != NULL && s->prefix[unit / k] == NULL)
        s->prefix[unit / k] =
            arena_array(&e->arena, (size_t)(c->model->layers * c->micro_batch), sizeof *e->prefix);
    e->prefix = s->prefix != NULL ? s->prefix[unit / k] : NULL;
    e->unit.tokens = end - begin;
    e->unit.rows = e->unit.tokens * c->micro_batch;
    e->unit.own_tokens = e->unit.tokens / c->sequence_parallel_ranks;
    e->unit.own_rows = e->unit.own_tokens * c->micro_batch;
    e->unit.first_token = begin;
    e->unit.first_row = (int64_t)(unit / k) * n * c->micro_batch + begin;
    e->op_tags = (struct op_tags){(uint8_t)phase, REGION_NONE, IR_NONE16,
                                  IR_NONE16,      IR_NONE16,   (uint16_t)unit};
}

/* ---- messages between stages ---- */

static void append_inbound_message(struct stage *s, enum pass pass, const struct chunk_task *task,
                                   uint32_t micro)
{
    int64_t chunk =
        input_chunk_of_pass(s, task->chunk, pass == PASS_FORWARD ? PASS_BACKWARD : PASS_FORWARD);
    uint32_t unit = micro * s->choices->subsequences + task->subsequence;
    if (chunk < 0)
        return;
    struct row_range mine = unit_rows_of_stage(s, (uint32_t)chunk, unit, s->e->stage);
    for (uint32_t from = 0; from < s->choices->pp; from++) {
        struct row_range both =
            intersect_row_ranges(mine, unit_rows_of_stage(s, task->chunk, unit, from));
        if (from == s->e->stage || both.begin == both.end)
            continue;
        s->inbound_messages = heap_grow(s->inbound_messages, &s->inbound_capacity,
                                        s->inbound_count + 1u, sizeof *s->inbound_messages);
        s->inbound_messages[s->inbound_count++] =
            (struct inbound_message){(uint8_t)pass, false, (uint32_t)chunk, unit, from, {IR_NONE}};
    }
}

static void list_inbound_messages(struct stage *s)
{
    uint32_t all = s->choices->pp * s->choices->subsequences;
    struct chunk_task *task = arena_array(&s->e->arena, all, sizeof *task);
    multiplex_put_tasks_in_order(s->choices, task);
    for (uint32_t micro = 0; micro < s->choices->accumulation; micro++) {
        for (uint32_t i = 0; i < all; i++)
            append_inbound_message(s, PASS_FORWARD, &task[i], micro);
        for (uint32_t i = all; i-- > 0;)
            append_inbound_message(s, PASS_BACKWARD, &task[i], micro);
    }
}

static uint8_t find_or_add_pair_stream(struct stage *s, const char *stem, uint32_t peer)
{
    char name[MESH_NAME_MAX];
    snprintf(name, sizeof name, "%s%u", stem, peer);
    return ir_add_stream(s->e->ir, name, STREAM_COMM);
}

void stage_make_streams(struct stage *s)
{
    static const char *const names[PASS_COUNT][2][2] = {
        {{"comm.send", "comm.recv"}, {"comm.send_up", "comm.recv_up"}},
        {{"comm.send_back", "comm.recv_back"}, {"comm.send_back_up", "comm.recv_back_up"}},
    };
    if (s->pipeline->is_multiplexed) {
        s->e->stream.comm_stream_of_sharing_stages =
            ir_add_stream(s->e->ir, "comm.stages", STREAM_COMM);
        s->kv_to_stage_stream = ir_add_stream(s->e->ir, "comm.keys_out", STREAM_COMM);
        s->kv_from_stage_stream = ir_add_stream(s->e->ir, "comm.keys_in", STREAM_COMM);
        s->kv_grads_stream = ir_add_stream(s->e->ir, "comm.keys_back", STREAM_COMM);
        list_inbound_messages(s);
        return;
    }
    for (int pass = 0; s->choices->pp > 1 && pass < PASS_COUNT; pass++)
        for (int lane = 0; lane <= s->pipeline->is_folded; lane++) {
            s->send_stream[pass][lane] = ir_add_stream(s->e->ir, names[pass][lane][0], STREAM_COMM);
            s->recv_stream[pass][lane] = ir_add_stream(s->e->ir, names[pass][lane][1], STREAM_COMM);
        }
}

void stage_await_messages(struct stage *s)
{
    for (uint32_t i = 0; i < s->pending_stream_count; i++)
        emit_host_wait(s->e, s->pending_streams[i]);
    s->pending_stream_count = 0;
}

static void record_pending_stream(struct stage *s, uint8_t stream)
{
    for (uint32_t i = 0; i < s->pending_stream_count; i++)
        if (s->pending_streams[i] == stream)
            return;
    assert(s->pending_stream_count < ARRAY_LEN(s->pending_streams));
    s->pending_streams[s->pending_stream_count++] = stream;
}

/* Emits this stage's side, a send or a receive, of a message of a pass between chunk `low_chunk` and the next one. */
static op_id emit_message_op(struct stage *s, enum work_kind kind, enum pass pass,
                             uint32_t low_chunk, uint32_t peer, struct view x)
{
    struct emit *e = s->e;
    bool sends = kind == WORK_SEND;
    uint8_t lane = s->pipeline->is_folded && low_chunk >= s->choices->pp;
    uint8_t stream = sends ? s->send_stream[pass][lane] : s->recv_stream[pass][lane];
    int64_t channel = pass + PASS_COUNT * lane;
    if (s->pipeline->is_multiplexed) {
        uint8_t send = find_or_add_pair_stream(s, "comm.send", peer),
                recv = find_or_add_pair_stream(s, "comm.recv", peer);
        stream = sends ? send : recv;
        channel = 0;
    }
    if (pipeline_awaits_messages(s->choices))
        record_pending_stream(s, stream);
    return emit_message(e, kind, stream, (int64_t)peer - e->stage, x, channel);
}

/* Returns the rows `part` of the input of a passage in a pass. The first call for a passage makes the input's
 * buffer. */
static struct view input_rows_of_passage(struct stage *s, enum pass pass, uint32_t chunk,
                                         uint32_t unit, struct row_range part)
{
    struct row_range mine = unit_rows_of_stage(s, chunk, unit, s->e->stage);
    int64_t h = s->choices->model->hidden;
    buffer_id *in = &find_passage_of_own_chunk(s, chunk, unit)->input[pass];
    assert(mine.end - mine.begin == s->e->unit.own_rows);
    if (in->i == IR_NONE)
        *in = pass == PASS_FORWARD ? emit_new_residual_stream_tensor(s->e).buffer
                                   : emit_activation_buffer(s->e, "dx", mine.end - mine.begin, h);
    return view_rows(*in, part.begin - mine.begin, part.end - part.begin, h);
}

/* Emits the receive of the message from stage `from` for a passage. At a seam the message is received in a new buffer,
 * which *into is set to; else in the rows of the passage's input. */
static void emit_receive_of_message(struct stage *s, enum pass pass, uint32_t chunk, uint32_t unit,
                                    uint32_t from, buffer_id *into)
{
    struct emit *e = s->e;
    uint32_t before = (uint32_t)input_chunk_of_pass(s, chunk, pass);
    struct row_range part = intersect_row_ranges(unit_rows_of_stage(s, chunk, unit, e->stage),
                                                 unit_rows_of_stage(s, before, unit, from));
    stage_set_unit(s, chunk, unit, pass == PASS_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD);
    struct view x;
    if (rows_change_tensor_rank(s, chunk, before, unit)) {
        *into = emit_buffer(e, "part", CATEGORY_COMMUNICATION, e->choices->dtype,
                            part.end - part.begin, s->choices->model->hidden);
        x = view_whole(e, *into);
    } else {
        x = input_rows_of_passage(s, pass, chunk, unit, part);
    }
    op_id op = emit_message_op(s, WORK_RECV, pass, chunk < before ? chunk : before, from, x);
    if (e->last_compute.i != IR_NONE)
        emit_add_dependency(e, op, e->last_compute);
}

/* Posts the receive of the message from stage `from` for a passage. First posts the receives of earlier messages from
 * that stage that have not been posted yet. */
static void post_receives_up_to(struct stage *s, enum pass pass, uint32_t chunk, uint32_t unit,
                                uint32_t from)
{
    for (uint32_t i = 0; i < s->inbound_count; i++) {
        struct inbound_message *m = &s->inbound_messages[i];
        bool wanted = m->pass == pass && m->chunk == chunk && m->unit == unit;
        if (m->from_stage != from)
            continue;
        if (!m->is_receive_posted)
            emit_receive_of_message(s, (enum pass)m->pass, m->chunk, m->unit, from,
                                    &m->own_receive_buffer);
        m->is_receive_posted = true;
        if (wanted)
            return;
    }
}

void stage_post_receives_of_action(struct stage *s, const struct action *action)
{
    enum pass pass = pass_of_action(action);
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, s->e->stage, action->chunk);
    int64_t before = input_chunk_of_pass(s, chunk, pass);
    if ((action->kind != ACTION_FORWARD && action->kind != ACTION_BACKWARD) || before < 0)
        return;
    struct row_range mine = unit_rows_of_stage(s, chunk, action->unit, s->e->stage);
    struct stages_sharing_subsequence share =
        stages_sharing_unit_in_chunk(s, (uint32_t)before, action->unit);
    for (uint32_t from = share.first_stage; from < share.first_stage + share.count; from++) {
        struct row_range both =
            intersect_row_ranges(mine, unit_rows_of_stage(s, (uint32_t)before, action->unit, from));
        if (from == s->e->stage || both.begin == both.end)
            continue;
        if (s->pipeline->is_multiplexed)
            post_receives_up_to(s, pass, chunk, action->unit, from);
        else
            emit_receive_of_message(s, pass, chunk, action->unit, from, NULL);
    }
}

static void emit_copy_of_rows(struct stage *s, struct view x, struct view y)
{
    int64_t h = s->choices->model->hidden;
    emit_pack_or_unpack(s->e, WORK_PACK, x, y, (int64_t)x.count / h, 1, h);
}

/* Puts together a passage's input at a seam, from the rows that this stage computed and those that it received. Returns
 * this tensor rank's own rows of the input. */
static buffer_id assemble_input_of_exchanged_rows(struct stage *s, enum pass pass, uint32_t chunk,
                                                  uint32_t before, uint32_t unit)
{
    struct emit *e = s->e;
    int64_t h =
        s->choices->model->hidden * s->choices->tp; /* elements of a row of all tensor ranks */
    struct row_range mine = unit_rows_of_stage(s, chunk, unit, e->stage);
    struct row_range theirs = unit_rows_of_stage(s, before, unit, e->stage),
                     both = intersect_row_ranges(mine, theirs);
    int64_t rows = mine.end - mine.begin;
    buffer_id all = emit_buffer(e, "seam", CATEGORY_COMMUNICATION, e->choices->dtype, rows, h);
    if (both.begin < both.end) {
        struct view whole =
            find_passage_of_own_chunk(s, before, unit)->gathered_outputs_by_pass[pass];
        emit_copy_of_rows(
            s, view_slice(whole, (both.begin - theirs.begin) * h, (both.end - both.begin) * h),
            view_rows(all, both.begin - mine.begin, both.end - both.begin, h));
    }
    for (uint32_t i = 0; i < s->inbound_count; i++) {
        const struct inbound_message *m = &s->inbound_messages[i];
        if (m->pass != pass || m->chunk != chunk || m->unit != unit)
            continue;
        struct row_range part =
            intersect_row_ranges(mine, unit_rows_of_stage(s, before, unit, m->from_stage));
        tensor_gather_to(e, view_whole(e, m->own_receive_buffer),
                         view_rows(all, part.begin - mine.begin, part.end - part.begin, h));
    }
    struct view own = tensor_deliver_own_part(e, view_whole(e, all), "seam_own");
    emit_copy_of_rows(s, own, input_rows_of_passage(s, pass, chunk, unit, mine));
    return find_passage_of_own_chunk(s, chunk, unit)->input[pass];
}

buffer_id stage_input(struct stage *s, const struct action *action)
{
    enum pass pass = pass_of_action(action);
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, s->e->stage, action->chunk);
    struct chunk_passage_of_unit *here = stage_passage(s, action->chunk, action->unit);
    int64_t before = input_chunk_of_pass(s, chunk, pass);
    if (before < 0)
        return here->output[PASS_FORWARD]; /* the backward begins with the result of the forward */
    if (rows_change_tensor_rank(s, chunk, (uint32_t)before, action->unit))
        return assemble_input_of_exchanged_rows(s, pass, chunk, (uint32_t)before, action->unit);
    struct row_range mine = unit_rows_of_stage(s, chunk, action->unit, s->e->stage);
    struct row_range theirs = unit_rows_of_stage(s, (uint32_t)before, action->unit, s->e->stage);
    struct row_range both = intersect_row_ranges(mine, theirs);
    if (both.begin == both.end)
        return here->input[pass];
    buffer_id made = find_passage_of_own_chunk(s, (uint32_t)before, action->unit)->output[pass];
    if (mine.begin == theirs.begin && mine.end == theirs.end)
        return made;
    int64_t h = s->choices->model->hidden;
    emit_copy_of_rows(s, view_rows(made, both.begin - theirs.begin, both.end - both.begin, h),
                      input_rows_of_passage(s, pass, chunk, action->unit, both));
    return here->input[pass];
}

/* Returns the rows `part` of a passage's result as this rank sends them to another stage: the rows themselves or, at a
 * seam, an equal part of these rows of all tensor ranks. mine: the rows of the result. */
static struct view rows_of_result_to_send(struct stage *s, const struct chunk_passage_of_unit *made,
                                          enum pass pass, bool seam, struct row_range part,
                                          struct row_range mine)
{
    int64_t h = s->choices->model->hidden, begin = part.begin - mine.begin,
            rows = part.end - part.begin;
    if (!seam)
        return view_rows(made->output[pass], begin, rows, h);
    int64_t all = h * s->choices->tp;
    return tensor_deliver_own_part(
        s->e, view_slice(made->gathered_outputs_by_pass[pass], begin * all, rows * all),
        "seam_part");
}

void stage_send_result(struct stage *s, enum pass pass, const struct action *action, buffer_id x)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, e->stage, action->chunk);
    int64_t to = input_chunk_of_pass(s, chunk, pass == PASS_FORWARD ? PASS_BACKWARD : PASS_FORWARD);
    struct chunk_passage_of_unit *made = stage_passage(s, action->chunk, action->unit);
    made->output[pass] = x;
    if (to < 0)
        return;
    bool seam = rows_change_tensor_rank(s, chunk, (uint32_t)to, action->unit);
    struct row_range mine = unit_rows_of_stage(s, chunk, action->unit, e->stage);
    struct stages_sharing_subsequence share =
        stages_sharing_unit_in_chunk(s, (uint32_t)to, action->unit);
    e->op_tags.region = REGION_NONE;
    if (seam)
        made->gathered_outputs_by_pass[pass] =
            tensor_gather(e, view_of_residual(e, x), s->choices->model->hidden,
                          TENSOR_ROWS_BY_SEQUENCE, "seam_all", false);
    for (uint32_t peer = share.first_stage; peer < share.first_stage + share.count; peer++) {
        struct row_range both =
            intersect_row_ranges(mine, unit_rows_of_stage(s, (uint32_t)to, action->unit, peer));
        if (peer == e->stage || both.begin == both.end)
            continue;
        s->last_message =
            emit_message_op(s, WORK_SEND, pass, chunk < to ? chunk : (uint32_t)to, peer,
                            rows_of_result_to_send(s, made, pass, seam, both, mine));
    }
}
