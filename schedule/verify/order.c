/* Rules on order: waits, and deadlock. A deadlock is found by running the schedule without time (run.h): ops that
 * have not ended then wait for each other in a cycle.
 *
 * An actor is a set of merged ranks. If the run with actors ends, the real one does: a cycle of ranks would be a cycle
 * of their actors. If it does not end, the cycle may be an artefact of merging; the schedule is then run again with
 * every rank as an actor. If that run would be too large, the cycle of actors is reported. */
#include "schedule/verify/run.h"

#include <assert.h>
#include <inttypes.h>

void check_waits(struct verifier *v)
{
    const struct ir *ir = v->ir;
    for (uint32_t role = 0; role < ir->role_count; role++) {
        uint32_t begin = ir->role[role].op_begin, end = begin + ir->role[role].op_count;
        for (uint32_t op = begin; op < end; op++)
            for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
                uint32_t other = ir->wait[ir->op.wait_begin[op] + k].i;
                if (other >= begin && other < op)
                    continue;
                v->has_forward_waits = true;
                const char *what = other == op                 ? "itself"
                                   : other >= ir->op.count     ? "an op that is not there"
                                   : other > op && other < end ? "an op that comes later"
                                                               : "an op of another role";
                verify_fail(v, "%s waits for op %" PRIu32 ", %s", op_text(v, op), other, what);
            }
    }
    verify_set_what_was_checked_text(v, "%" PRIu32 " waits", ir->wait_count);
}

/* ---- the counterexample ---- */

struct deadlock_cycle_step {
    uint32_t actor, op;
};

/* Returns an actor that has not arrived at the rendezvous of a collective, with the op by which it takes part. `actor`
 * waits there with `op`. */
static struct deadlock_cycle_step
find_actor_absent_at_rendezvous(const struct untimed_schedule_run *r, uint32_t actor, uint32_t op)
{
    uint32_t group = (uint32_t)work_comm_group(ir_work(r->ir, op)),
             k = r->ops->index_in_list_of_op[op];
    const uint64_t *party = r->first_rendezvous + (size_t)group * r->actors->actor_count;
    for (uint32_t i = 0; i < r->actors->actor_count; i++) {
        struct collectives_or_messages_of_role sequence =
            sequence_of(r->ops, r->ir, r->actors->role[i], group);
        if (party[i] != party[actor] || sequence.count <= k)
            continue;
        uint32_t other = sequence.op[k], place = run_find_list_of_op(r->ir, other);
        if (run_get_head_op_of_stream(r, i, place) != other ||
            !r->next_collective_has_arrived[(size_t)i * (r->ir->stream_count + 1) + place])
            return (struct deadlock_cycle_step){.actor = i, .op = other};
    }
    assert(!"somebody is missing");
    return (struct deadlock_cycle_step){.actor = actor, .op = op};
}

/* Returns an op that has not ended and for which the op of `at`, which has not ended either, waits. Sets *why to the
 * reason as a text. */
static struct deadlock_cycle_step find_op_that_blocks(const struct untimed_schedule_run *r,
                                                      struct deadlock_cycle_step at,
                                                      const char **why)
{
    const struct ir *ir = r->ir;
    uint32_t host = run_get_op_that_blocks_host(r, at.actor), stream = ir->op.stream[at.op];
    bool on_host = run_find_list_of_op(ir, at.op) == ir->stream_count;
    struct deadlock_cycle_step next = {.actor = at.actor};
    if (at.op > host) {
        *why = "is issued after";
        next.op = host;
        return next;
    }
    if (!on_host && run_get_head_op_of_stream(r, at.actor, stream) != at.op) {
        *why = "comes on its stream after";
        next.op = run_get_head_op_of_stream(r, at.actor, stream);
        return next;
    }
    *why = "waits for";
    next.op = run_find_unmet_wait(r, at.actor, at.op);
    if (next.op != IR_NONE)
        return next;
    if (ir->op.kind[at.op] == WORK_HOST_SYNC) {
        next.op = run_get_head_op_of_stream(r, at.actor, stream);
        return next;
    }
    *why = "must meet";
    if (is_message(ir->op.kind[at.op])) {
        const struct message *m = &r->actors->message[run_get_message_row(r, at.actor, at.op)];
        const struct message *partner = &r->actors->message[m->matching_message_row];
        return (struct deadlock_cycle_step){.actor = partner->actor, .op = partner->op};
    }
    return find_actor_absent_at_rendezvous(r, at.actor, at.op);
}

static bool deadlock_steps_are_equal(struct deadlock_cycle_step a, struct deadlock_cycle_step b)
{
    return a.actor == b.actor && a.op == b.op;
}

static void report_cycle(struct untimed_schedule_run *r, uint32_t actor)
{
    struct deadlock_cycle_step at = {.actor = actor, .op = run_get_op_that_blocks_host(r, actor)};
    for (uint32_t s = 0; at.op == IR_NONE; s++)
        at.op = run_get_head_op_of_stream(r, actor, s);
    /* Finds the cycle by two walks along the waits, one of which is twice as fast: they meet on the cycle. */
    const char *why;
    struct deadlock_cycle_step slow = at, fast = at;
    do {
        slow = find_op_that_blocks(r, slow, &why);
        fast = find_op_that_blocks(r, find_op_that_blocks(r, fast, &why), &why);
    } while (!deadlock_steps_are_equal(slow, fast));

    enum { STEPS_SHOWN = 12 };
    struct arena *arena = &r->v->arena;
    const char *text = arena_printf(arena, "%s of %s", op_text(r->v, slow.op),
                                    rank_text(r->v, r->actors->lowest_rank[slow.actor]));
    struct deadlock_cycle_step step = slow;
    for (int shown = 1;; shown++) {
        step = find_op_that_blocks(r, step, &why);
        if (deadlock_steps_are_equal(step, slow)) {
            text = arena_printf(arena, "%s, which %s the first", text, why);
            break;
        }
        if (shown == STEPS_SHOWN) {
            text = arena_printf(arena, "%s, and so on round to the first", text);
            break;
        }
        text = arena_printf(arena, "%s%s %s %s of %s", text, shown == 1 ? "" : ", which", why,
                            op_text(r->v, step.op),
                            rank_text(r->v, r->actors->lowest_rank[step.actor]));
    }
    verify_fail(r->v, "%s", text);
}

/* ---- the check for deadlocks ---- */

/* True if no deadlock is possible: ops wait only for earlier ops, there are no messages, and there are either no
 * collectives or only one role. Then only an earlier op of its own list can delay an op. */
static bool deadlock_is_impossible(const struct verifier *v, const struct exchange *exchange)
{
    const struct ir *ir = v->ir;
    if (v->has_forward_waits)
        return false;
    for (uint32_t role = 0; role < ir->role_count; role++)
        if (sequence_of(&exchange->ops, ir, role, ir->group_count).count > 0)
            return false;
    return ir->role_count <= 1 ||
           exchange->ops.begin[(size_t)ir->role_count * (ir->group_count + 1)] == 0;
}

/* The most ops that a run with every rank as an actor may execute. */
#define OPS_RUN_WITH_ACTOR_PER_RANK_MAX 20000000u

/* True if the schedule may be run again with every rank as an actor of its own. */
static bool may_rerun_with_actor_per_rank(struct verifier *v, const struct actors *actors)
{
    uint64_t ops = 0;
    const struct rank_sets *ranks = verifier_rank_sets(v);
    for (uint32_t rank = 0; rank < actors->rank_count; rank++)
        if (ranks->role[rank] != IR_NONE16)
            ops += v->ir->role[ranks->role[rank]].op_count;
    return actors->actor_count < actors->rank_count && ops <= OPS_RUN_WITH_ACTOR_PER_RANK_MAX;
}

void check_deadlock(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct exchange *exchange = verify_exchange(v);
    if (deadlock_is_impossible(v, exchange)) {
        verify_set_what_was_checked_text(
            v, "every op only waits for earlier ones, on all ranks alike");
        return;
    }
    if (exchange->actors.has_too_many_messages_to_match) {
        verify_fail(v, "deadlock is not checked: there are too many messages between ranks that "
                       "cannot be merged");
        return;
    }
    struct op_lists_by_stream lanes = {0};
    op_lists_make_by_stream(&lanes, ir);
    struct untimed_schedule_run run;
    run_begin(&run, v, &exchange->ops, &exchange->actors, &lanes);
    uint32_t stuck = run_until_blocked(&run);
    verify_set_what_was_checked_text(v, "run of %" PRIu32 " ranks that stand for %" PRIu32,
                                     exchange->actors.actor_count, exchange->actors.rank_count);
    struct actors apart = {0};
    if (stuck != IR_NONE && may_rerun_with_actor_per_rank(v, &exchange->actors)) {
        actors_make(&apart, v, &exchange->ops, false);
        if (!apart.has_too_many_messages_to_match) {
            run_release(&run);
            run_begin(&run, v, &exchange->ops, &apart, &lanes);
            stuck = run_until_blocked(&run);
            verify_set_what_was_checked_text(v, "run of all %" PRIu32 " ranks", apart.actor_count);
        }
    }
    if (stuck != IR_NONE)
        report_cycle(&run, stuck);
    run_release(&run);
    actors_release(&apart);
    op_lists_release(&lanes);
}
