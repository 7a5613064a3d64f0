#include "schedule/verify/run.h"

#include <stdlib.h>
#include <string.h>

/* --- the lists of a role --- */

void lanes_make(struct lanes *l, const struct ir *ir)
{
    size_t lanes = (size_t)ir->role_count * ir->stream_count;
    l->begin = heap_zalloc(lanes + 1, sizeof *l->begin);
    l->op = heap_alloc(ir->op.count, sizeof *l->op);
    l->place = heap_alloc(ir->op.count, sizeof *l->place);
    l->blocker = heap_alloc(ir->op.count, sizeof *l->blocker);
    l->blocker_begin = heap_zalloc((size_t)ir->role_count + 1, sizeof *l->blocker_begin);
    uint32_t blockers = 0;
    for (uint32_t r = 0; r < ir->role_count; r++) {
        for (uint32_t op = ir->role[r].op_begin; op < ir->role[r].op_begin + ir->role[r].op_count;
             op++) {
            enum order_place place = order_place_of(ir, op);
            if (place != ORDER_STREAM)
                l->blocker[blockers++] = op;
            if (place == ORDER_STREAM || place == ORDER_BLOCKING)
                l->place[op] = l->begin[(size_t)r * ir->stream_count + ir->op.stream[op] + 1]++;
            else
                l->place[op] = IR_NONE;
        }
        l->blocker_begin[r + 1] = blockers;
    }
    for (size_t i = 0; i < lanes; i++)
        l->begin[i + 1] += l->begin[i];
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t op = ir->role[r].op_begin; op < ir->role[r].op_begin + ir->role[r].op_count;
             op++)
            if (l->place[op] != IR_NONE)
                l->op[l->begin[(size_t)r * ir->stream_count + ir->op.stream[op]] + l->place[op]] =
                    op;
}

void lanes_release(struct lanes *l)
{
    free(l->op);
    free(l->begin);
    free(l->place);
    free(l->blocker);
    free(l->blocker_begin);
}

/* --- the run --- */

uint32_t run_sequence_length(const struct untimed_run *r, uint32_t actor, uint32_t group)
{
    return sequence_of(r->ops, r->ir, r->actors->role[actor], group).count;
}

/* Makes the parties: actors that share an instance of the group form one. */
static void make_parties(struct untimed_run *r, uint32_t group)
{
    const struct ir *ir = r->ir;
    const struct actors *a = r->actors;
    uint32_t *party = r->party + (size_t)group * a->count;
    const struct group *g = &ir->group[group];
    uint32_t instances = group_instances(&ir->mesh, g);
    uint32_t *first = heap_alloc(instances, sizeof *first);
    uint32_t *parent = roots_of_all(a->count);
    memset(first, 0xff, instances * sizeof *first);
    for (uint32_t rank = 0; rank < a->ranks; rank++) {
        uint32_t instance, index, actor = a->of_rank[rank];
        if (actor == IR_NONE || run_sequence_length(r, actor, group) == 0 ||
            !group_locate(&ir->mesh, g, rank, &instance, &index))
            continue;
        if (first[instance] == IR_NONE)
            first[instance] = actor;
        join_roots(parent, actor, first[instance]);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (run_sequence_length(r, i, group) == 0)
            continue;
        uint32_t root = root_of(parent, i);
        party[i] = root == i ? r->parties++ : party[root];
    }
    free(first);
    free(parent);
}

static void make_rendezvous(struct untimed_run *r)
{
    const struct actors *a = r->actors;
    uint32_t groups = r->ir->group_count;
    size_t cells = (size_t)groups * a->count;
    r->party = heap_alloc(cells, sizeof *r->party);
    memset(r->party, 0xff, cells * sizeof *r->party);
    for (uint32_t g = 0; g < groups; g++)
        make_parties(r, g);
    r->party_begin = heap_zalloc((size_t)r->parties + 1, sizeof *r->party_begin);
    for (size_t cell = 0; cell < cells; cell++) {
        uint32_t party = r->party[cell];
        uint32_t length =
            run_sequence_length(r, (uint32_t)(cell % a->count), (uint32_t)(cell / a->count));
        if (party != IR_NONE && length > r->party_begin[party + 1])
            r->party_begin[party + 1] = length;
    }
    for (uint32_t p = 0; p < r->parties; p++)
        r->party_begin[p + 1] += r->party_begin[p];
    r->expected = heap_zalloc(r->party_begin[r->parties], sizeof *r->expected);
    r->arrived = heap_zalloc(r->party_begin[r->parties], sizeof *r->arrived);
    for (size_t cell = 0; cell < cells; cell++) {
        uint32_t length =
            run_sequence_length(r, (uint32_t)(cell % a->count), (uint32_t)(cell / a->count));
        for (uint32_t k = 0; r->party[cell] != IR_NONE && k < length; k++)
            r->expected[r->party_begin[r->party[cell]] + k]++;
    }
}

void run_begin(struct untimed_run *r, struct verifier *v, const struct exchange_ops *ops,
               const struct actors *actors, const struct lanes *lanes)
{
    *r = (struct untimed_run){.v = v, .ir = v->ir, .ops = ops, .actors = actors, .lanes = lanes};
    uint32_t streams = r->ir->stream_count, count = actors->count;
    r->host = heap_alloc(count, sizeof *r->host);
    r->head = heap_zalloc((size_t)count * streams, sizeof *r->head);
    r->at_head = heap_zalloc((size_t)count * (streams + 1), sizeof *r->at_head);
    r->has_arrived = heap_zalloc(actors->message_begin[count], sizeof *r->has_arrived);
    for (uint32_t i = 0; i < count; i++)
        r->host[i] = lanes->blocker_begin[actors->role[i]];
    make_rendezvous(r);
}

void run_release(struct untimed_run *r)
{
    free(r->host);
    free(r->head);
    free(r->at_head);
    free(r->party);
    free(r->party_begin);
    free(r->expected);
    free(r->arrived);
    free(r->has_arrived);
}

uint32_t run_host_op(const struct untimed_run *r, uint32_t actor)
{
    uint32_t at = r->host[actor];
    return at < r->lanes->blocker_begin[r->actors->role[actor] + 1] ? r->lanes->blocker[at]
                                                                    : IR_NONE;
}

static size_t lane_of(const struct untimed_run *r, uint32_t actor, uint32_t stream)
{
    return (size_t)r->actors->role[actor] * r->ir->stream_count + stream;
}

uint32_t run_head_op(const struct untimed_run *r, uint32_t actor, uint32_t stream)
{
    size_t lane = lane_of(r, actor, stream);
    uint32_t at = r->lanes->begin[lane] + r->head[(size_t)actor * r->ir->stream_count + stream];
    return at < r->lanes->begin[lane + 1] ? r->lanes->op[at] : IR_NONE;
}

static bool has_ended(const struct untimed_run *r, uint32_t actor, uint32_t op)
{
    uint32_t place = r->lanes->place[op];
    if (place == IR_NONE)
        return run_host_op(r, actor) > op;
    return r->head[(size_t)actor * r->ir->stream_count + r->ir->op.stream[op]] > place;
}

uint32_t run_unmet_wait(const struct untimed_run *r, uint32_t actor, uint32_t op)
{
    const struct role *role = &r->ir->role[r->actors->role[actor]];
    for (uint32_t k = 0; k < r->ir->op.wait_count[op]; k++) {
        uint32_t other = r->ir->wait[r->ir->op.wait_begin[op] + k].i;
        if (other < role->op_begin || other - role->op_begin >= role->op_count)
            continue;
        if (other == op || !has_ended(r, actor, other))
            return other;
    }
    return IR_NONE;
}

static uint64_t rendezvous_of(const struct untimed_run *r, uint32_t actor, uint32_t op)
{
    uint32_t group = (uint32_t)work_group(ir_work(r->ir, op));
    uint32_t party = r->party[(size_t)group * r->actors->count + actor];
    return r->party_begin[party] + r->ops->ordinal[op];
}

uint32_t run_message_of(const struct untimed_run *r, uint32_t actor, uint32_t op)
{
    return r->actors->message_begin[actor] + r->ops->ordinal[op];
}

/* Lets an op whose turn has come on its actor arrive at the rendezvous with the actors that it communicates with;
 * true if all have arrived. `place` is where the actor's arrival is noted: a stream, or, after the streams, the
 * host. */
static bool meet(struct untimed_run *r, uint32_t actor, uint32_t op, uint32_t place)
{
    enum work_kind kind = r->ir->op.kind[op];
    bool *here = &r->at_head[(size_t)actor * (r->ir->stream_count + 1) + place];
    if (is_message(kind)) {
        uint32_t m = run_message_of(r, actor, op), partner = r->actors->message[m].partner;
        if (partner == IR_NONE)
            return true;
        r->has_arrived[m] = true;
        return r->has_arrived[partner];
    }
    if (!is_collective(kind))
        return true;
    uint64_t rendezvous = rendezvous_of(r, actor, op);
    if (!*here)
        r->arrived[rendezvous]++;
    *here = true;
    if (r->arrived[rendezvous] < r->expected[rendezvous])
        return false;
    *here = false; /* for the next op there */
    return true;
}

/* Runs a stream as far as possible; true if an op has ended. */
static bool run_stream(struct untimed_run *r, uint32_t actor, uint32_t stream)
{
    uint32_t *head = &r->head[(size_t)actor * r->ir->stream_count + stream];
    bool moved = false;
    for (;;) {
        uint32_t op = run_head_op(r, actor, stream);
        if (op == IR_NONE || op > run_host_op(r, actor) ||
            run_unmet_wait(r, actor, op) != IR_NONE || !meet(r, actor, op, stream))
            return moved;
        ++*head;
        moved = true;
    }
}

/* True if what the op that holds the host waits for has ended. */
static bool host_may_go_on(struct untimed_run *r, uint32_t actor, uint32_t op)
{
    if (run_unmet_wait(r, actor, op) != IR_NONE)
        return false;
    switch (order_place_of(r->ir, op)) {
    case ORDER_SYNC:
        return run_head_op(r, actor, r->ir->op.stream[op]) > op;
    case ORDER_BLOCKING:
        return has_ended(r, actor, op);
    default:
        return meet(r, actor, op, r->ir->stream_count);
    }
}

/* Runs an actor as far as possible; true if an op has ended. */
static bool run_actor(struct untimed_run *r, uint32_t actor)
{
    bool moved = true, ever = false;
    for (; moved; ever |= moved) {
        moved = false;
        uint32_t op;
        while ((op = run_host_op(r, actor)) != IR_NONE && host_may_go_on(r, actor, op)) {
            r->host[actor]++;
            moved = true;
        }
        for (uint32_t s = 0; s < r->ir->stream_count; s++)
            moved |= run_stream(r, actor, s);
    }
    return ever;
}

uint32_t run_all(struct untimed_run *r)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < r->actors->count; i++)
            moved |= run_actor(r, i);
    }
    for (uint32_t i = 0; i < r->actors->count; i++) {
        if (run_host_op(r, i) != IR_NONE)
            return i;
        for (uint32_t s = 0; s < r->ir->stream_count; s++)
            if (run_head_op(r, i, s) != IR_NONE)
                return i;
    }
    return IR_NONE;
}
