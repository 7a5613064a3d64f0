#include "sim/scheduler/scheduler_state.h"

static const char *kind_name_of_op(const struct scheduler *s, uint32_t id)
{
    return work_kind_info(s->traffic->ir->op.kind[id])->name;
}

/* Returns the rank of the schedule that a rank state simulates. */
static uint32_t schedule_rank_of(const struct scheduler *s, const struct rank_state *r)
{
    return s->traffic->schedule_rank_by_planned_rank[r->rank];
}

void mismatch_explain_send_and_receive(const struct scheduler *s, uint32_t channel, uint32_t place,
                                       struct text *why)
{
    const struct channel_side *side = &s->side[s->channel[channel].side_begin];
    uint32_t send = side[0].ops[place], receive = side[1].ops[place];
    const struct ir *ir = s->traffic->ir;
    text_printf(
        why,
        "op %u (%s) of rank %u sends %lld bytes and meets op %u (%s) of rank %u, which "
        "receives %lld",
        send, kind_name_of_op(s, send), schedule_rank_of(s, &s->rank_state[side[0].rank_index]),
        (long long)work_payload_bytes(ir_work(ir, send)), receive, kind_name_of_op(s, receive),
        schedule_rank_of(s, &s->rank_state[side[1].rank_index]),
        (long long)work_payload_bytes(ir_work(ir, receive)));
}

/* Sets *op to the first op in which a rank waits for other ranks: the rank has arrived at it, and
 * an event of the op has not ended. Returns false if there is none. */
static bool find_waiting_op(const struct scheduler *s, uint32_t rank_index, uint32_t *op)
{
    const struct rank_state *r = &s->rank_state[rank_index];
    for (uint32_t row = 0; row < s->program_by_role[r->role].op_count; row++) {
        uint16_t left = s->unended_dependencies_by_op[r->first_row + row];
        if (left > OP_ARRIVED && left < OP_ENDED) {
            *op = row;
            return true;
        }
    }
    return false;
}

/* Sets *missing to the side of the first rank that has not arrived at an event for which the op waits, and *place to
 * the op's number on its channel. Returns false if all have arrived. */
static bool find_side_that_has_not_arrived(const struct scheduler *s, uint32_t rank_index,
                                           uint32_t op, const struct channel_side **missing,
                                           uint32_t *place)
{
    const struct rank_state *r = &s->rank_state[rank_index];
    uint32_t id = s->program_by_role[r->role].op_begin + op;
    uint16_t comm = s->traffic->comm_class_by_op[id];
    uint32_t channel[2] = {r->send_channel_by_comm[comm], r->receive_channel_by_comm[comm]};
    *place = scheduler_op_number_in_channel(s, r, op);
    for (int c = 0; c < 2; c++) {
        if (channel[c] == IR_NONE)
            continue;
        const struct channel_state *state = &s->channel[channel[c]];
        for (uint32_t i = 0; i < state->channel_side_count; i++) {
            const struct channel_side *side = &s->side[state->side_begin + i];
            const struct rank_state *other = &s->rank_state[side->rank_index];
            if (*place < side->op_count &&
                s->unended_dependencies_by_op[other->first_row + side->ops[*place] -
                                              s->program_by_role[other->role].op_begin] >=
                    OP_ARRIVED)
                continue;
            *missing = side;
            return true;
        }
    }
    return false;
}

/* Appends the chain of ranks that wait for each other, from rank_index on: HOPS_MAX ranks at most,
 * until the first rank comes up again or a rank waits for no other. */
static void explain_wait_chain(const struct scheduler *s, uint32_t rank_index, uint32_t op,
                               struct text *why)
{
    enum { HOPS_MAX = 4 };
    uint32_t first = rank_index;
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        const struct rank_state *r = &s->rank_state[rank_index];
        uint32_t id = s->program_by_role[r->role].op_begin + op, place;
        const struct channel_side *missing;
        text_printf(why, "%srank %u waits in op %u (%s)", hop ? "; " : "", schedule_rank_of(s, r),
                    id, kind_name_of_op(s, id));
        if (!find_side_that_has_not_arrived(s, rank_index, op, &missing, &place))
            return;
        const struct rank_state *other = &s->rank_state[missing->rank_index];
        if (place >= missing->op_count) {
            text_printf(why, " for rank %u, which has no op that meets it",
                        schedule_rank_of(s, other));
            return;
        }
        text_printf(why, " for rank %u to reach op %u (%s)", schedule_rank_of(s, other),
                    missing->ops[place], kind_name_of_op(s, missing->ops[place]));
        rank_index = missing->rank_index;
        if (rank_index == first || !find_waiting_op(s, rank_index, &op))
            return;
    }
}

/* Explains a deadlock in which no rank waits for another rank: an op waits for an op that comes later in the list. */
static void explain_wait_for_later_op(const struct scheduler *s, struct text *why)
{
    for (uint32_t c = 0; c < s->rank_state_count; c++) {
        const struct rank_state *r = &s->rank_state[c];
        for (uint32_t row = 0; row < s->program_by_role[r->role].op_count; row++)
            if (s->unended_dependencies_by_op[r->first_row + row] != OP_ENDED) {
                uint32_t id = s->program_by_role[r->role].op_begin + row;
                text_printf(why,
                            "rank %u never starts op %u (%s): it waits for an op that comes later",
                            schedule_rank_of(s, r), id, kind_name_of_op(s, id));
                return;
            }
    }
}

void deadlock_explain(const struct scheduler *s, struct text *why)
{
    text_puts(why, "deadlock: ");
    for (uint32_t c = 0; c < s->rank_state_count; c++) {
        uint32_t op;
        if (find_waiting_op(s, c, &op)) {
            explain_wait_chain(s, c, op, why);
            return;
        }
    }
    explain_wait_for_later_op(s, why);
}
