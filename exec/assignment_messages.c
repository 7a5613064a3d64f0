/* Matches the sends of a schedule with the receives that take their messages. */
#include "exec/assignment.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_message(enum work_kind kind)
{
    return kind == WORK_SEND || kind == WORK_RECV;
}

struct message_endpoint {
    uint32_t source, destination, channel;
    uint32_t rank, op;
};

static int compare_by_channel(const void *a, const void *b)
{
    const struct message_endpoint *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->destination != y->destination)
        return x->destination < y->destination ? -1 : 1;
    if (x->channel != y->channel)
        return x->channel < y->channel ? -1 : 1;
    if (x->op != y->op) /* the ids of a rank's ops ascend in list order */
        return x->op < y->op ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static bool same_channel(const struct message_endpoint *a, const struct message_endpoint *b)
{
    return a->source == b->source && a->destination == b->destination && a->channel == b->channel;
}

/* Sets *peer to the rank at the other end of a send or receive. Returns false if the group has no member with that
 * index. */
static bool find_message_peer(const struct assignment *assignment, uint32_t rank, uint32_t op,
                              uint32_t *peer)
{
    const struct work *work = ir_work(assignment->ir, op);
    uint32_t group = (uint32_t)work->p2p.group;
    int64_t index = (int64_t)assignment_group_index(assignment, rank, group) + work->p2p.by;
    if (index < 0 || index >= assignment->member_count_by_group[group])
        return false;
    *peer = group_global_rank_of_member(&assignment->ir->mesh, &assignment->ir->group[group],
                                        assignment_group_instance(assignment, rank, group),
                                        (uint32_t)index);
    return true;
}

/* Makes the messages of one channel from the endpoints end[begin..stop): the n-th send and the n-th receive get one row
 * of messages[]. */
static void match_messages(struct assignment *assignment, const struct message_endpoint *end,
                           uint32_t begin, uint32_t stop)
{
    uint32_t sends = 0, receives = 0, base = assignment->message_count;
    for (uint32_t i = begin; i < stop; i++) {
        bool send = assignment->ir->op.kind[end[i].op] == WORK_SEND;
        uint32_t id = base + (send ? sends++ : receives++);
        while (assignment->message_count <= id)
            assignment->messages[assignment->message_count++] = (struct assignment_message){
                end[begin].source, end[begin].destination, end[begin].channel, IR_NONE, IR_NONE};
        if (send)
            assignment->messages[id].send_op = end[i].op;
        else
            assignment->messages[id].recv_op = end[i].op;
        assignment
            ->message_index_by_rank_and_op[(size_t)end[i].rank * assignment->max_op_count_of_role +
                                           (end[i].op -
                                            assignment_first_op(assignment, end[i].rank))] = id;
    }
}

enum status assignment_match_messages(struct assignment *assignment, const char *name,
                                      struct diag *diag)
{
    const struct ir *ir = assignment->ir;
    struct message_endpoint *end = NULL;
    size_t count = 0, capacity = 0;
    enum status status = STATUS_OK;
    for (uint32_t rank = 0; rank < assignment->ranks; rank++)
        for (uint32_t k = 0; k < assignment_op_count(assignment, rank); k++) {
            uint32_t op = assignment_first_op(assignment, rank) + k, peer;
            if (!is_message(ir->op.kind[op]) || !assignment_op_works_on_rank(assignment, rank, op))
                continue;
            if (!find_message_peer(assignment, rank, op, &peer)) {
                status = diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                                    "op %" PRIu32 " (%s) on rank %" PRIu32
                                    " reaches past the end of group %s",
                                    op, work_kind_info(ir->op.kind[op])->name, rank,
                                    ir->group[ir_work(ir, op)->p2p.group].name);
                goto out;
            }
            if (count == capacity) {
                capacity = heap_next_capacity(capacity, count + 1);
                end = heap_realloc(end, capacity, sizeof *end);
            }
            bool send = ir->op.kind[op] == WORK_SEND;
            end[count++] =
                (struct message_endpoint){send ? rank : peer, send ? peer : rank,
                                          (uint32_t)ir_work(ir, op)->p2p.channel, rank, op};
        }
    if (count == 0)
        goto out;
    qsort(end, count, sizeof *end, compare_by_channel);
    assignment->messages = arena_array(&assignment->arena, count, sizeof *assignment->messages);
    assignment->message_index_by_rank_and_op = arena_array(
        &assignment->arena, (size_t)assignment->ranks * assignment->max_op_count_of_role,
        sizeof *assignment->message_index_by_rank_and_op);
    for (uint32_t begin = 0, i = 1; i <= count; i++)
        if (i == count || !same_channel(&end[begin], &end[i])) {
            match_messages(assignment, end, begin, i);
            begin = i;
        }
out:
    free(end);
    return status;
}
