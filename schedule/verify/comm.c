/* Rules about communication: collectives match by the order of issue, messages by queues. */
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <stdlib.h>

void check_guards(struct verifier *v)
{
    const struct ir *ir = v->ir;
    uint32_t guarded = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        if (ir->op.guard[op] == IR_NONE16)
            continue;
        guarded++;
        enum work_kind kind = ir->op.kind[op];
        if (is_collective(kind) || work_kind_info(kind)->stream == STREAM_SYNC)
            verify_fail(v, "%s is a collective or barrier and has a guard; every rank must run it",
                        op_text(v, op));
    }
    verify_set_what_was_checked_text(v, "%" PRIu32 " guarded ops", guarded);
}

/* ---- collectives ---- */

/* Returns in what two works differ: "kind", the name of the first parameter that differs, or "dtype". NULL: they are
 * equal. */
static const char *name_of_difference_of_works(const struct work *a, const struct work *b)
{
    const struct work_kind_info *info = work_kind_info(a->kind);
    if (a->kind != b->kind)
        return "kind";
    for (uint32_t i = 0; i < info->param_count; i++)
        if (a->p[i] != b->p[i])
            return info->param[i].name;
    return a->in != b->in || a->out != b->out ? "dtype" : NULL;
}

static void compare_collective_sequences(struct verifier *v,
                                         const struct communicating_ops_of_roles *ops,
                                         uint32_t group, uint32_t rank, uint32_t other_rank)
{
    const struct ir *ir = v->ir;
    uint16_t role = v->ranks.role[rank], other_role = v->ranks.role[other_rank];
    struct collectives_or_messages_of_role a = sequence_of(ops, ir, role, group);
    struct collectives_or_messages_of_role b = sequence_of(ops, ir, other_role, group);
    uint32_t common = a.count < b.count ? a.count : b.count;
    for (uint32_t k = 0; k < common; k++) {
        const struct work *x = ir_work(ir, a.op[k]), *y = ir_work(ir, b.op[k]);
        const char *what = name_of_difference_of_works(x, y);
        if (!what)
            continue;
        verify_fail(v,
                    "collective %" PRIu32 " of group %s is %s on %s and %s on %s: they differ "
                    "in %s",
                    k + 1, ir->group[group].name, op_text(v, a.op[k]), rank_text(v, rank),
                    op_text(v, b.op[k]), rank_text(v, other_rank), what);
        return;
    }
    if (a.count == b.count)
        return;
    bool longer_is_a = a.count > b.count;
    verify_fail(v, "%s issues %s in group %s, and %s issues only %" PRIu32 " there",
                rank_text(v, longer_is_a ? rank : other_rank),
                op_text(v, longer_is_a ? a.op[common] : b.op[common]), ir->group[group].name,
                rank_text(v, longer_is_a ? other_rank : rank), common);
}

static void check_collectives_of_group(struct verifier *v,
                                       const struct communicating_ops_of_roles *ops, uint32_t group)
{
    const struct ir *ir = v->ir;
    const struct group *g = &ir->group[group];
    uint32_t instances = group_instance_count(&ir->mesh, g), ranks = mesh_rank_count(&ir->mesh);
    uint32_t *first = ir_new_empty_ids(instances); /* the first rank of each instance */
    bool *compared = heap_zalloc((size_t)ir->role_count * ir->role_count, sizeof *compared);
    bool *outside = heap_zalloc(ir->role_count, sizeof *outside);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint16_t role = v->ranks.role[rank];
        uint32_t instance, index;
        if (role == IR_NONE16)
            continue;
        if (!group_find_member(&ir->mesh, g, rank, &instance, &index)) {
            struct collectives_or_messages_of_role s = sequence_of(ops, ir, role, group);
            if (s.count > 0 && !outside[role])
                verify_fail(v, "%s issues %s in group %s, of which it is not a member",
                            rank_text(v, rank), op_text(v, s.op[0]), g->name);
            outside[role] = true;
            continue;
        }
        if (first[instance] == IR_NONE) {
            first[instance] = rank;
            continue;
        }
        uint16_t other = v->ranks.role[first[instance]];
        bool *done = &compared[(size_t)other * ir->role_count + role];
        if (role != other && !*done)
            compare_collective_sequences(v, ops, group, first[instance], rank);
        *done = true;
    }
    free(first);
    free(compared);
    free(outside);
}

void check_collectives(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct communicating_ops_of_roles *ops = &verify_exchange(v)->ops;
    uint32_t groups = 0, collectives = 0;
    for (uint32_t group = 0; group < ir->group_count; group++) {
        uint32_t issued = 0;
        for (uint32_t role = 0; role < ir->role_count; role++)
            issued += sequence_of(ops, ir, role, group).count;
        if (issued == 0)
            continue;
        groups++;
        collectives += issued;
        check_collectives_of_group(v, ops, group);
    }
    verify_set_what_was_checked_text(v, "%" PRIu32 " ops in %" PRIu32 " groups, all instances",
                                     collectives, groups);
}

/* ---- messages ---- */

static void report_unmatched_message(struct verifier *v, const struct actors *a, uint32_t m)
{
    const struct ir *ir = v->ir;
    const struct message *message = &a->message[m];
    const struct work *work = ir_work(ir, message->op);
    const struct group *group = &ir->group[work->p2p.group];
    const char *op = op_text(v, message->op), *rank = rank_text(v, a->lowest_rank[message->actor]);
    bool sends = ir->op.kind[message->op] == WORK_SEND;
    uint32_t instance, index;
    if (!group_find_member(&ir->mesh, group, a->lowest_rank[message->actor], &instance, &index))
        verify_fail(v, "%s of %s is in group %s, of which the rank is not a member", op, rank,
                    group->name);
    else if (work->p2p.by == 0)
        verify_fail(v, "%s of %s has by=0: a message to itself", op, rank);
    else if (message->peer_actor == IR_NONE)
        verify_fail(
            v, "%s of %s has by=%" PRId64 ", which leads outside group %s of %" PRIu32 " ranks", op,
            rank, work->p2p.by, group->name, group_rank_count(&ir->mesh, group));
    else
        verify_fail(v, "%s of %s on channel %" PRId64 " has no %s on %s", op, rank,
                    work->p2p.channel, sends ? "receive" : "send",
                    rank_text(v, a->lowest_rank[message->peer_actor]));
}

static void compare_matched_messages(struct verifier *v, const struct actors *a,
                                     const struct message *send)
{
    const struct ir *ir = v->ir;
    const struct message *recv = &a->message[send->matching_message_row];
    const struct work *out = ir_work(ir, send->op), *in = ir_work(ir, recv->op);
    const char *what = NULL;
    if (out->p2p.bytes != in->p2p.bytes)
        what = "bytes";
    else if (out->in != in->out)
        what = "dtype";
    else if (out->p2p.group != in->p2p.group)
        what = "group (another channel would keep them apart)";
    if (what)
        verify_fail(v, "%s of %s meets %s of %s: they differ in %s", op_text(v, send->op),
                    rank_text(v, a->lowest_rank[send->actor]), op_text(v, recv->op),
                    rank_text(v, a->lowest_rank[recv->actor]), what);
}

void check_messages(struct verifier *v)
{
    const struct actors *a = &verify_exchange(v)->actors;
    if (a->has_too_many_messages_to_match) {
        verify_fail(v,
                    "there are more than %u messages between ranks that cannot be merged: they are "
                    "not checked",
                    VERIFIED_MESSAGES_MAX);
        return;
    }
    uint32_t count = a->first_message[a->actor_count], there = 0;
    for (uint32_t m = 0; m < count; m++) {
        const struct message *message = &a->message[m];
        if (message->is_left_out_by_guard)
            continue;
        there++;
        if (message->matching_message_row == IR_NONE)
            report_unmatched_message(v, a, m);
        else if (v->ir->op.kind[message->op] == WORK_SEND)
            compare_matched_messages(v, a, message);
    }
    verify_set_what_was_checked_text(
        v, "%" PRIu32 " messages of %" PRIu32 " ranks that stand for %" PRIu32, there,
        a->actor_count, a->rank_count);
}
