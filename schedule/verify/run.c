#include "schedule/verify/run.h"

#include "schedule/ir/disjoint_sets.h"

#include <stdlib.h>
#include <string.h>

/* ---- the lists of a role ---- */

uint32_t run_find_list_of_op(const struct ir *ir, uint32_t op)
{
    enum order_op_kind place = order_kind_of_op(ir, op);
    bool in_stream = place == ORDER_RUNS_ON_STREAM || place == ORDER_BLOCKS_HOST_UNTIL_DONE;
    return in_stream ? ir->op.stream[op] : ir->stream_count;
}

void op_lists_make_by_stream(struct op_lists_by_stream *l, const struct ir *ir)
{
    uint32_t host = ir->stream_count;
    size_t lanes = (size_t)ir->role_count * (host + 1);
    l->first = ir_new_empty_ids(lanes);
    l->next = heap_alloc(ir->op.count, sizeof *l->next);
    l->next_op_that_blocks_host = heap_alloc(ir->op.count, sizeof *l->next_op_that_blocks_host);
    for (uint32_t r = 0; r < ir->role_count; r++) {
        uint32_t *first = l->first + (size_t)r * (host + 1), begin = ir->role[r].op_begin;
        for (uint32_t op = begin + ir->role[r].op_count; op-- > begin;) {
            uint32_t place = run_find_list_of_op(ir, op);
            if (place != host) {
                l->next[op] = first[place];
                first[place] = op;
            }
            if (order_kind_of_op(ir, op) != ORDER_RUNS_ON_STREAM) {
                l->next_op_that_blocks_host[op] = first[host];
                first[host] = op;
            }
        }
    }
}

void op_lists_release(struct op_lists_by_stream *l)
{
    free(l->first);
    free(l->next);
    free(l->next_op_that_blocks_host);
}

/* ---- the run ---- */

/* Returns how many collectives an actor has in a group. */
static uint32_t collective_count_of_actor_in_group(const struct untimed_schedule_run *r,
                                                   uint32_t actor, uint32_t group)
{
    return sequence_of(r->ops, r->ir, r->actors->role[actor], group).count;
}

/* Finds the parties of a group, and numbers the rendezvous of each. A party is a set of actors whose ranks share
 * instances of the group, directly or through other actors of the party. */
static void find_rendezvous_parties(struct untimed_schedule_run *r, uint32_t group)
{
    const struct ir *ir = r->ir;
    const struct actors *a = r->actors;
    uint64_t *party = r->first_rendezvous + (size_t)group * a->actor_count;
    uint32_t longest = 0;
    const struct group *g = &ir->group[group];
    uint32_t instances = group_instance_count(&ir->mesh, g);
    uint32_t *first = ir_new_empty_ids(instances);
    uint32_t *parent = roots_make(a->actor_count);
    for (uint32_t rank = 0; rank < a->rank_count; rank++) {
        uint32_t instance, index, actor = a->actor_of_rank[rank];
        if (actor == IR_NONE || collective_count_of_actor_in_group(r, actor, group) == 0 ||
            !group_find_member(&ir->mesh, g, rank, &instance, &index))
            continue;
        if (first[instance] == IR_NONE)
            first[instance] = actor;
        join_sets_of_two(parent, actor, first[instance]);
    }
    for (uint32_t i = 0; i < a->actor_count; i++) {
        uint32_t length = collective_count_of_actor_in_group(r, i, group);
        longest = length > longest ? length : longest;
    }
    for (uint32_t i = 0; i < a->actor_count; i++) {
        if (collective_count_of_actor_in_group(r, i, group) == 0)
            continue;
        uint32_t root = root_of(parent, i);
        party[i] = root == i ? r->rendezvous_count : party[root];
        r->rendezvous_count += root == i ? longest : 0;
    }
    free(first);
    free(parent);
}

static void number_all_rendezvous(struct untimed_schedule_run *r)
{
    uint32_t groups = r->ir->group_count, actors = r->actors->actor_count;
    size_t cells = (size_t)groups * actors;
    r->first_rendezvous = heap_alloc(cells, sizeof *r->first_rendezvous);
    memset(r->first_rendezvous, 0xff, cells * sizeof *r->first_rendezvous);
    for (uint32_t g = 0; g < groups; g++)
        find_rendezvous_parties(r, g);
    r->expected_actors = heap_zalloc(r->rendezvous_count, sizeof *r->expected_actors);
    r->arrived_actors = heap_zalloc(r->rendezvous_count, sizeof *r->arrived_actors);
    for (size_t cell = 0; cell < cells; cell++) {
        uint32_t length = collective_count_of_actor_in_group(r, (uint32_t)(cell % actors),
                                                             (uint32_t)(cell / actors));
        for (uint32_t k = 0; k < length; k++)
            r->expected_actors[r->first_rendezvous[cell] + k]++;
    }
}

void run_begin(struct untimed_schedule_run *r, struct verifier *v,
               const struct communicating_ops_of_roles *ops, const struct actors *actors,
               const struct op_lists_by_stream *lanes)
{
    *r = (struct untimed_schedule_run){
        .v = v, .ir = v->ir, .ops = ops, .actors = actors, .op_lists = lanes};
    uint32_t count = actors->actor_count;
    size_t places = (size_t)r->ir->stream_count + 1;
    r->next_op = heap_alloc(count * places, sizeof *r->next_op);
    r->next_collective_has_arrived =
        heap_zalloc(count * places, sizeof *r->next_collective_has_arrived);
    r->message_has_arrived =
        heap_zalloc(actors->first_message[count], sizeof *r->message_has_arrived);
    for (uint32_t i = 0; i < count; i++)
        memcpy(r->next_op + i * places, lanes->first + actors->role[i] * places,
               places * sizeof *r->next_op);
    number_all_rendezvous(r);
}

void run_release(struct untimed_schedule_run *r)
{
    free(r->next_op);
    free(r->next_collective_has_arrived);
    free(r->first_rendezvous);
    free(r->expected_actors);
    free(r->arrived_actors);
    free(r->message_has_arrived);
}

uint32_t run_get_head_op_of_stream(const struct untimed_schedule_run *r, uint32_t actor,
                                   uint32_t stream)
{
    return r->next_op[(size_t)actor * (r->ir->stream_count + 1) + stream];
}

uint32_t run_get_op_that_blocks_host(const struct untimed_schedule_run *r, uint32_t actor)
{
    return run_get_head_op_of_stream(r, actor, r->ir->stream_count);
}

static bool has_ended(const struct untimed_schedule_run *r, uint32_t actor, uint32_t op)
{
    return run_get_head_op_of_stream(r, actor, run_find_list_of_op(r->ir, op)) > op;
}

uint32_t run_find_unmet_wait(const struct untimed_schedule_run *r, uint32_t actor, uint32_t op)
{
    const struct role *role = &r->ir->role[r->actors->role[actor]];
    for (uint32_t k = 0; k < r->ir->op.wait_count[op]; k++) {
        uint32_t other = r->ir->wait[r->ir->op.wait_begin[op] + k].i;
        if (role_has_op(role, other) && (other == op || !has_ended(r, actor, other)))
            return other;
    }
    return IR_NONE;
}

static uint64_t rendezvous_number_of_op(const struct untimed_schedule_run *r, uint32_t actor,
                                        uint32_t op)
{
    uint32_t group = (uint32_t)work_comm_group(ir_work(r->ir, op));
    return r->first_rendezvous[(size_t)group * r->actors->actor_count + actor] +
           r->ops->index_in_list_of_op[op];
}

uint32_t run_get_message_row(const struct untimed_schedule_run *r, uint32_t actor, uint32_t op)
{
    return r->actors->first_message[actor] + r->ops->index_in_list_of_op[op];
}

/* Lets an actor arrive with its next op at the rendezvous with the actors with which it communicates. Returns true if
 * all have arrived, or if the op has no rendezvous: it does not communicate, or it is a message without a partner.
 * list: the one that has the op at its head. */
static bool arrive_at_rendezvous(struct untimed_schedule_run *r, uint32_t actor, uint32_t op,
                                 uint32_t list)
{
    enum work_kind kind = r->ir->op.kind[op];
    bool *here = &r->next_collective_has_arrived[(size_t)actor * (r->ir->stream_count + 1) + list];
    if (is_message(kind)) {
        uint32_t m = run_get_message_row(r, actor, op),
                 partner = r->actors->message[m].matching_message_row;
        if (partner == IR_NONE)
            return true;
        r->message_has_arrived[m] = true;
        return r->message_has_arrived[partner];
    }
    if (!is_collective(kind))
        return true;
    uint64_t rendezvous = rendezvous_number_of_op(r, actor, op);
    if (!*here)
        r->arrived_actors[rendezvous]++;
    *here = true;
    if (r->arrived_actors[rendezvous] < r->expected_actors[rendezvous])
        return false;
    *here = false; /* cleared for the next op of this list */
    return true;
}

/* Runs a stream as far as possible; returns true if an op has ended. */
static bool run_stream_until_blocked(struct untimed_schedule_run *r, uint32_t actor,
                                     uint32_t stream)
{
    uint32_t *head = &r->next_op[(size_t)actor * (r->ir->stream_count + 1) + stream];
    bool moved = false;
    for (;;) {
        uint32_t op = *head;
        if (op == IR_NONE || op > run_get_op_that_blocks_host(r, actor) ||
            run_find_unmet_wait(r, actor, op) != IR_NONE ||
            !arrive_at_rendezvous(r, actor, op, stream))
            return moved;
        *head = r->op_lists->next[op];
        moved = true;
    }
}

/* True if everything has ended for which the op that blocks the host waits. */
static bool host_is_unblocked(struct untimed_schedule_run *r, uint32_t actor, uint32_t op)
{
    if (run_find_unmet_wait(r, actor, op) != IR_NONE)
        return false;
    switch (order_kind_of_op(r->ir, op)) {
    case ORDER_HOST_WAITS_FOR_STREAM:
        return run_get_head_op_of_stream(r, actor, r->ir->op.stream[op]) > op;
    case ORDER_BLOCKS_HOST_UNTIL_DONE:
        return has_ended(r, actor, op);
    default:
        return arrive_at_rendezvous(r, actor, op, r->ir->stream_count);
    }
}

/* Runs an actor as far as possible; returns true if an op has ended. */
static bool run_actor_until_blocked(struct untimed_schedule_run *r, uint32_t actor)
{
    uint32_t streams = r->ir->stream_count;
    uint32_t *host = &r->next_op[(size_t)actor * (streams + 1) + streams];
    bool moved = true, has_ended_an_op = false;
    for (; moved; has_ended_an_op |= moved) {
        moved = false;
        for (; *host != IR_NONE && host_is_unblocked(r, actor, *host); moved = true)
            *host = r->op_lists->next_op_that_blocks_host[*host];
        for (uint32_t s = 0; s < streams; s++)
            moved |= run_stream_until_blocked(r, actor, s);
    }
    return has_ended_an_op;
}

uint32_t run_until_blocked(struct untimed_schedule_run *r)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < r->actors->actor_count; i++)
            moved |= run_actor_until_blocked(r, i);
    }
    for (uint32_t i = 0; i < r->actors->actor_count; i++)
        for (uint32_t place = 0; place <= r->ir->stream_count; place++)
            if (run_get_head_op_of_stream(r, i, place) != IR_NONE)
                return i;
    return IR_NONE;
}
