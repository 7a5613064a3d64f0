/* Makes the channels of the comm classes, and their participants. */
#include "sim/traffic/traffic_parts.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

static uint32_t add_channel(struct traffic *traffic, uint32_t comm)
{
    traffic->channel = heap_grow(traffic->channel, &traffic->channel_capacity,
                                 traffic->channel_count + 1u, sizeof *traffic->channel);
    traffic->channel[traffic->channel_count] =
        (struct channel){.comm_class = comm, .participant_begin = traffic->participant_count};
    return traffic->channel_count++;
}

static void add_participant(struct traffic *traffic, uint32_t rank)
{
    traffic->participant = heap_grow(traffic->participant, &traffic->participant_capacity,
                                     traffic->participant_count + 1u, sizeof *traffic->participant);
    traffic->participant[traffic->participant_count++] = rank;
    traffic->channel[traffic->channel_count - 1].participant_count++;
}

static bool rank_has_ops_of_comm(const struct traffic *traffic, uint32_t rank, uint32_t comm)
{
    uint32_t role = traffic->role_of_rank[rank];
    return role != IR_NONE && traffic->comm[comm].op_count[role] > 0;
}

static uint32_t *channel_slot_of_rank_and_comm(struct traffic *traffic, uint32_t rank,
                                               uint32_t comm)
{
    return &traffic->channel_by_rank_and_comm[(size_t)rank * traffic->comm_class_count + comm];
}

static void add_collective_channels(struct traffic *traffic, uint32_t l)
{
    const struct ir *ir = traffic->ir;
    const struct group *group = &ir->group[traffic->comm[l].group];
    uint32_t size = group_rank_count(&traffic->mesh, group),
             instances = group_instance_count(&traffic->mesh, group);
    for (uint32_t i = 0; i < instances; i++) {
        if (!rank_has_ops_of_comm(traffic, group_global_rank_of_member(&traffic->mesh, group, i, 0),
                                  l))
            continue; /* then no member has ops: traffic_check_groups() makes sure of it */
        uint32_t channel = add_channel(traffic, l);
        for (uint32_t k = 0; k < size; k++) {
            uint32_t rank = group_global_rank_of_member(&traffic->mesh, group, i, k);
            add_participant(traffic, rank);
            *channel_slot_of_rank_and_comm(traffic, rank, l) = channel;
        }
    }
}

static void add_shift_channels(struct traffic *traffic, uint32_t l)
{
    const struct ir *ir = traffic->ir;
    const struct group *group = &ir->group[traffic->comm[l].group];
    uint32_t size = group_rank_count(&traffic->mesh, group),
             instances = group_instance_count(&traffic->mesh, group);
    for (uint32_t i = 0; i < instances; i++)
        for (uint32_t k = 0; k < size; k++) {
            uint32_t from = group_global_rank_of_member(&traffic->mesh, group, i, k);
            if (!rank_has_ops_of_comm(traffic, from, l))
                break;
            uint32_t by = (uint32_t)traffic->comm[l].distance;
            uint32_t to = group_global_rank_of_member(&traffic->mesh, group, i, (k + by) % size);
            uint32_t channel = add_channel(traffic, l);
            add_participant(traffic, from);
            add_participant(traffic, to);
            *channel_slot_of_rank_and_comm(traffic, from, l) = channel;
            traffic->receive_channel_by_rank_and_comm[(size_t)to * traffic->comm_class_count + l] =
                channel;
        }
}

static void add_channel_for_each_rank(struct traffic *traffic, uint32_t l)
{
    for (uint32_t r = 0; r < traffic->rank_count; r++)
        if (rank_has_ops_of_comm(traffic, r, l)) {
            *channel_slot_of_rank_and_comm(traffic, r, l) = add_channel(traffic, l);
            add_participant(traffic, r);
        }
}

/* Returns an error if a rank that has no peer in the comm class runs an op of the class. It runs none if guards leave
 * all of these ops out. */
static enum status check_no_op_without_peer(const struct traffic *traffic, uint32_t l,
                                            uint32_t rank, const char *name, struct diag *diag)
{
    const struct ir *ir = traffic->ir;
    const struct comm_class *comm = &traffic->comm[l];
    uint32_t role = traffic->role_of_rank[rank];
    for (uint32_t i = 0; i < comm->op_count[role]; i++) {
        uint32_t op = traffic->ops_by_comm_class[comm->op_begin_by_role[role] + i];
        if (traffic_rank_runs_op(traffic, rank, op))
            return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                              "op %u (%s) on rank %u: there is no member of group %s at "
                              "distance %lld",
                              op, traffic_work_kind_name(ir, op),
                              traffic->schedule_rank_by_planned_rank[rank],
                              ir->group[comm->group].name, (long long)comm->distance);
    }
    return STATUS_OK;
}

/* A comm class of sends or receives on one rank, with the source, the destination and the channel number of its
 * messages. Those that agree in these three share a channel. */
struct p2p_channel_key {
    uint32_t from, to;
    int64_t channel_number;
    uint32_t comm, rank;
};

static int compare_p2p_channel_keys(const void *left, const void *right)
{
    const struct p2p_channel_key *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->channel_number != b->channel_number)
        return a->channel_number < b->channel_number ? -1 : 1;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool is_same_p2p_channel(const struct p2p_channel_key *a, const struct p2p_channel_key *b)
{
    return a->from == b->from && a->to == b->to && a->channel_number == b->channel_number;
}

static enum status add_p2p_channels(struct traffic *traffic, const char *name, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct p2p_channel_key *key = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t l = 0; l < traffic->comm_class_count; l++) {
        const struct comm_class *comm = &traffic->comm[l];
        for (uint32_t r = 0; comm->kind == COMM_P2P && r < traffic->rank_count; r++) {
            uint32_t peer;
            if (!rank_has_ops_of_comm(traffic, r, l))
                continue;
            if (!group_peer(&traffic->mesh, &traffic->ir->group[comm->group], r, comm->distance,
                            &peer)) {
                status = check_no_op_without_peer(traffic, l, r, name, diag);
                if (status != STATUS_OK)
                    goto out;
                continue;
            }
            key = heap_grow(key, &capacity, count + 1, sizeof *key);
            bool send = comm->work_kind == WORK_SEND;
            key[count++] = (struct p2p_channel_key){send ? r : peer, send ? peer : r,
                                                    comm->channel_number, l, r};
        }
    }
    if (count > 0)
        qsort(key, count, sizeof *key, compare_p2p_channel_keys);
    for (size_t k = 0; k < count; k++) {
        if (k == 0 || !is_same_p2p_channel(&key[k], &key[k - 1])) {
            add_channel(traffic, key[k].comm);
            add_participant(traffic, key[k].from);
            add_participant(traffic, key[k].to);
        }
        *channel_slot_of_rank_and_comm(traffic, key[k].rank, key[k].comm) =
            traffic->channel_count - 1;
    }
out:
    free(key);
    return status;
}

enum status traffic_add_channels(struct traffic *traffic, const char *name, struct diag *diag)
{
    size_t count = (size_t)traffic->rank_count * traffic->comm_class_count;
    traffic->channel_by_rank_and_comm =
        arena_array(&traffic->arena, count, sizeof *traffic->channel_by_rank_and_comm);
    traffic->receive_channel_by_rank_and_comm =
        arena_array(&traffic->arena, count, sizeof *traffic->receive_channel_by_rank_and_comm);
    memset(traffic->channel_by_rank_and_comm, 0xff,
           count * sizeof *traffic->channel_by_rank_and_comm);
    memset(traffic->receive_channel_by_rank_and_comm, 0xff,
           count * sizeof *traffic->receive_channel_by_rank_and_comm);
    static void (*const add[COMM_KIND_COUNT])(struct traffic *, uint32_t) = {
        [COMM_COLLECTIVE] = add_collective_channels,
        [COMM_SHIFT] = add_shift_channels,
        [COMM_COPY] = add_channel_for_each_rank,
        [COMM_HOST_WORK] = add_channel_for_each_rank,
        [COMM_CONCURRENT_KERNEL] = add_channel_for_each_rank,
    };
    for (uint32_t l = 0; l < traffic->comm_class_count; l++)
        if (add[traffic->comm[l].kind])
            add[traffic->comm[l].kind](traffic, l);
    return add_p2p_channels(traffic, name, diag);
}
