#include "sim/scheduler/scheduler_state.h"
#include "sim/scheduler/uncontended.h"

#include <stdlib.h>
#include <string.h>

/* ---- the ops that depend on each op of a role ---- */

/* Returns the op before this one on its stream, in the order of issue; IR_NONE if it is the first,
 * and for BARRIER. For HOST_SYNC, which is on no stream, it is the last op of the stream for which
 * it waits. */
static uint32_t find_stream_predecessor(const struct ir *ir, uint32_t id, uint32_t row,
                                        uint32_t *last)
{
    if (ir->op.kind[id] == WORK_BARRIER)
        return IR_NONE;
    uint8_t stream = ir->op.stream[id];
    uint32_t before = last[stream];
    if (ir->op.kind[id] != WORK_HOST_SYNC)
        last[stream] = row;
    return before;
}

static void build_role_program(struct scheduler *s, uint32_t role)
{
    const struct ir *ir = s->traffic->ir;
    struct role_program *p = &s->program_by_role[role];
    p->op_begin = ir->role[role].op_begin;
    p->op_count = ir->role[role].op_count;
    p->dependency_count_by_op =
        arena_array(&s->arena, p->op_count, sizeof *p->dependency_count_by_op);
    uint32_t pairs = 0, most = p->op_count;
    for (uint32_t row = 0; row < p->op_count; row++)
        most += ir->op.wait_count[p->op_begin + row];
    uint32_t *other = heap_alloc(most + 1u, sizeof *other), *of = heap_alloc(most + 1u, sizeof *of);
    uint32_t *last = ir_new_empty_ids(ir->stream_count + 1u);
    for (uint32_t row = 0; row < p->op_count; row++) {
        uint32_t id = p->op_begin + row, begin = pairs;
        other[pairs] = find_stream_predecessor(ir, id, row, last);
        pairs += other[pairs] != IR_NONE;
        for (uint32_t w = 0; w < ir->op.wait_count[id]; w++)
            other[pairs++] = ir_waits(ir, id)[w].i - p->op_begin;
        p->dependency_count_by_op[row] = (uint16_t)(1 + pairs - begin);
        for (uint32_t i = begin; i < pairs; i++)
            of[i] = row;
    }
    index_init(&p->successors, other, of, pairs, p->op_count);
    free(last);
    free(other);
    free(of);
}

/* ---- the state of one rank for each class ---- */

static uint32_t channel_class_or_none(const struct fold *fold, uint32_t channel)
{
    return channel == IR_NONE ? IR_NONE : fold->class_by_channel[channel];
}

static void build_rank_states(struct scheduler *s)
{
    const struct traffic *traffic = s->traffic;
    const struct fold *fold = s->fold;
    uint32_t comms = traffic->comm_class_count;
    s->rank_state_count = fold->class_count;
    s->rank_state = arena_array(&s->arena, s->rank_state_count, sizeof *s->rank_state);
    s->rank_heap_by_kernel_end =
        arena_array(&s->arena, s->rank_state_count, sizeof *s->rank_heap_by_kernel_end);
    for (uint32_t c = 0; c < fold->class_count; c++) {
        uint32_t rank = fold->lowest_rank_by_class[c], role = traffic->role_of_rank[rank];
        struct rank_state *r = &s->rank_state[c];
        *r = (struct rank_state){.rank = rank,
                                 .role = role,
                                 .first_row = fold->first_op_row_by_class[c],
                                 .blocking_op = IR_NONE,
                                 .kernel_overlap = {.op = IR_NONE}};
        r->send_channel_by_comm = arena_array(&s->arena, comms, sizeof *r->send_channel_by_comm);
        r->receive_channel_by_comm =
            arena_array(&s->arena, comms, sizeof *r->receive_channel_by_comm);
        for (uint32_t l = 0; l < comms; l++) {
            r->send_channel_by_comm[l] = channel_class_or_none(
                fold, traffic->channel_by_rank_and_comm[(size_t)rank * comms + l]);
            r->receive_channel_by_comm[l] = channel_class_or_none(
                fold, traffic->receive_channel_by_rank_and_comm[(size_t)rank * comms + l]);
        }
        if (role == IR_NONE) /* a rank outside all roles does nothing */
            r->role = traffic->ir->role_count;
    }
}

/* ---- sides of channels ---- */

static void add_channel_side(struct scheduler *s, uint32_t rank_index, uint32_t comm)
{
    const struct comm_class *l = &s->traffic->comm[comm];
    uint32_t role = s->rank_state[rank_index].role;
    struct channel_side side = {.rank_index = rank_index};
    if (l->kind != COMM_P2P) {
        side.op_count = l->op_count[role];
        side.ops = s->traffic->ops_by_comm_class + l->op_begin_by_role[role];
    }
    s->side[s->channel_side_count++] = side;
}

/* Numbers the sends that one rank runs on each of its channels, in list order, and lists them. Does the same for its
 * receives. Send n of a channel matches receive n. An op whose guard fails on the rank gets no number, so ranks of one
 * role may number their ops differently. */
static void list_p2p_ops(struct scheduler *s, struct rank_state *r)
{
    const struct traffic *traffic = s->traffic;
    const struct role_program *p = &s->program_by_role[r->role];
    /* the first pass counts the ops of each channel, the second lists them */
    for (int filling = 0; filling < 2; filling++)
        for (uint32_t row = 0; row < p->op_count; row++) {
            uint32_t id = p->op_begin + row, comm = traffic->comm_class_by_op[id];
            if (comm == IR_NONE16 || traffic->comm[comm].kind != COMM_P2P ||
                !traffic_rank_runs_op(traffic, r->rank, id))
                continue;
            struct channel_side *side =
                &s->side[s->channel[r->send_channel_by_comm[comm]].side_begin +
                         (traffic->comm[comm].work_kind == WORK_RECV)];
            if (!r->p2p_number_in_channel_by_op)
                r->p2p_number_in_channel_by_op =
                    arena_array(&s->arena, p->op_count, sizeof *r->p2p_number_in_channel_by_op);
            if (!filling)
                r->p2p_number_in_channel_by_op[row] = side->op_count++;
            else if (!side->ops)
                side->ops = arena_array(&s->arena, side->op_count, sizeof *side->ops);
            if (filling)
                side->ops[r->p2p_number_in_channel_by_op[row]] = id;
        }
}

static void build_channel_states(struct scheduler *s)
{
    const struct traffic *traffic = s->traffic;
    const struct fold *fold = s->fold;
    s->channel = arena_array(&s->arena, fold->channel_class_count, sizeof *s->channel);
    s->side = arena_array(&s->arena, traffic->participant_count + 1u, sizeof *s->side);
    uint32_t *seen = heap_zalloc(s->rank_state_count + 1u, sizeof *seen); /* 1 + channel class */
    for (uint32_t k = 0; k < fold->channel_class_count; k++) {
        const struct channel *channel = &traffic->channel[fold->lowest_channel_by_class[k]];
        const struct comm_class *comm = &traffic->comm[channel->comm_class];
        s->channel[k].side_begin = s->channel_side_count;
        s->channel[k].taken_resources = channel->taken_resources;
        for (uint32_t i = 0; i < channel->participant_count; i++) {
            uint32_t c = fold->class_of_rank[traffic->participant[channel->participant_begin + i]];
            if (comm->kind == COMM_COLLECTIVE && seen[c] == k + 1)
                continue;
            seen[c] = k + 1;
            add_channel_side(s, c, channel->comm_class);
        }
        s->channel[k].channel_side_count = s->channel_side_count - s->channel[k].side_begin;
    }
    free(seen);
    for (uint32_t r = 0; r < s->rank_state_count; r++)
        list_p2p_ops(s, &s->rank_state[r]);
    for (uint32_t k = 0; k < fold->channel_class_count; k++) {
        uint32_t most = 0;
        for (uint32_t i = 0; i < s->channel[k].channel_side_count; i++)
            if (s->side[s->channel[k].side_begin + i].op_count > most)
                most = s->side[s->channel[k].side_begin + i].op_count;
        s->channel[k].first_event_of_class = s->event_count;
        s->event_count += most;
    }
}

/* ---- the scheduler ---- */

struct scheduler *scheduler_new(const struct traffic *traffic, const struct fold *fold)
{
    struct scheduler *s = heap_zalloc(1, sizeof *s);
    uint32_t roles = traffic->ir->role_count;
    s->traffic = traffic;
    s->fold = fold;
    s->has_engine_flows = fold->flow_begin_by_transfer[traffic->transfer_count] > 0;
    /* one for each role, and after them an empty one for ranks without a role */
    s->program_by_role = arena_array(&s->arena, roles + 1u, sizeof *s->program_by_role);
    for (uint32_t r = 0; r < roles; r++)
        build_role_program(s, r);
    build_rank_states(s);
    build_channel_states(s);
    if (s->has_engine_flows)
        uncontended_init(s);
    return s;
}

void scheduler_free(struct scheduler *s)
{
    if (s == NULL)
        return;
    free(s->event);
    free(s->unended_dependencies_by_op);
    for (uint32_t r = 0; r < s->traffic->ir->role_count; r++)
        index_release(&s->program_by_role[r].successors);
    free(s->ready_ops);
    free(s->event_queue.row);
    arena_release(&s->arena);
    free(s);
}

/* Sets events and ops to their state before the run. */
void scheduler_reset(struct scheduler *s)
{
    s->event = heap_zalloc(s->event_count + 1, sizeof *s->event);
    s->unended_dependencies_by_op =
        heap_alloc(s->fold->first_op_row_by_class[s->fold->class_count] + 1,
                   sizeof *s->unended_dependencies_by_op);
    for (size_t e = 0; e < s->event_count; e++)
        s->event[e].transfer = IR_NONE;
    for (uint32_t r = 0; r < s->rank_state_count; r++) {
        const struct role_program *program = &s->program_by_role[s->rank_state[r].role];
        if (program->op_count > 0)
            memcpy(s->unended_dependencies_by_op + s->rank_state[r].first_row,
                   program->dependency_count_by_op,
                   program->op_count * sizeof *s->unended_dependencies_by_op);
    }
}
