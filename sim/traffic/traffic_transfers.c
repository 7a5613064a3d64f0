/* Makes the transfers of each channel: a latency and flows per variant. */
#include "sim/traffic/traffic_parts.h"

#include "base/arena.h"
#include "schedule/ir/visible.h"
#include "sim/traffic/replicas.h"

#include <assert.h>
#include <stdlib.h>

/* Returns the number of ranks of the communicator that a shift, a send or a receive uses. */
static uint32_t communicator_size(const struct traffic *traffic, const struct comm_class *comm)
{
    const struct mesh *mesh = &traffic->ir->mesh;
    return comm->group == IR_NONE16 ? mesh_rank_count(mesh)
                                    : group_rank_count(mesh, &traffic->ir->group[comm->group]);
}

/* True if a rank of the schedule is planned itself, and not only a replica of a planned one. */
static bool is_planned(const struct traffic *traffic, uint32_t rank)
{
    const struct mesh *all = &traffic->ir->mesh;
    return traffic->schedule_rank_by_planned_rank[replicas_rank_in_planned_mesh(all, &traffic->mesh,
                                                                                rank)] == rank;
}

/* Returns on the heap the ranks of all members of a collective in the order of their index, replicas that are not
 * planned included, and fills *members with them. */
static uint32_t *find_collective_members(const struct traffic *traffic,
                                         const struct channel *channel, struct members *members)
{
    const struct mesh *mesh = &traffic->ir->mesh;
    const struct group *group = &traffic->ir->group[traffic->comm[channel->comm_class].group];
    uint32_t size = group_rank_count(mesh, group), instance, index;
    uint32_t *member_ranks = heap_alloc(size, sizeof *member_ranks);
    group_find_member(
        mesh, group,
        traffic->schedule_rank_by_planned_rank[traffic->participant[channel->participant_begin]],
        &instance, &index);
    for (uint32_t i = 0; i < size; i++)
        member_ranks[i] = group_global_rank_of_member(mesh, group, instance, i);
    members_init(members, &traffic->platform, member_ranks, size);
    for (uint32_t d = 0; d < members->domain_count; d++)
        members->domain[d].is_planned =
            is_planned(traffic, members->ranks_grouped_by_domain[members->domain[d].begin]);
    members_find_rings(members, &traffic->platform);
    return member_ranks;
}

/* The rows that the context ranks of a sequence need of each other. They are kept for the next channels and shapes,
 * which usually need the same: those of the same documents (`list`) and the same row_use. */
struct rows_exchanged_by_pair {
    const struct document_list *list;
    struct row_use row_use;
    /* [cp, cp] what row_use_rows_of_all_pairs() fills in, on the heap; NULL: not made yet */
    int64_t *rows;
};

/* Returns the bytes that each pair of members exchanges, on the heap; members have the order of context ranks. */
static double *exchanged_pair_bytes(const struct traffic *traffic, const struct work *work,
                                    const struct members *members,
                                    struct rows_exchanged_by_pair *known)
{
    const struct ir *ir = traffic->ir;
    const double row =
        (double)(work->exchange.parts * work->exchange.width) * (double)dtype_bytes(work->in);
    const size_t count = members->member_count;
    double *bytes_by_pair = heap_alloc(count * count, sizeof *bytes_by_pair);
    struct document_list whole;
    const struct document_list *list =
        ir_documents_of_rank(ir, members->ranks_by_group_index[0], work->exchange.sequence, &whole);
    struct row_use use;
    row_use_if_work_moves_rows(work, &use);
    assert(count == ir->layout.cp && "rule documents");
    if (known->rows == NULL || list == &whole || known->list != list ||
        known->row_use.window != use.window || known->row_use.round != use.round ||
        known->row_use.pass != use.pass || known->row_use.what != use.what) {
        known->rows = heap_realloc(known->rows, count * count, sizeof *known->rows);
        known->list = list;
        known->row_use = use;
        row_use_rows_of_all_pairs(ir, &use, members->ranks_by_group_index[0], known->rows);
    }
    for (size_t to = 0; to < count; to++)
        for (size_t from = 0; from < count; from++)
            bytes_by_pair[work->exchange.back ? to * count + from : from * count + to] =
                row * (double)known->rows[to * count + from];
    return bytes_by_pair;
}

/* Adds the flows of a collective of shape `shape`; returns its latency in seconds. */
static double add_collective_flows(struct traffic *traffic, uint32_t channel,
                                   const struct members *members, uint32_t shape,
                                   struct rows_exchanged_by_pair *known)
{
    const struct work *work = &traffic->ir->shape[shape];
    double *pair =
        work->kind == WORK_EXCHANGE ? exchanged_pair_bytes(traffic, work, members, known) : NULL;
    const struct exchange_bytes exchange = {pair, traffic->context_ranks_count_as_fullest};
    double latency_s = collective_add_flows(&traffic->platform, &traffic->flows, work, members,
                                            channel, pair != NULL ? &exchange : NULL);
    free(pair);
    if (work->kind == WORK_BARRIER) /* a barrier lasts until the hosts have issued it */
        return traffic->costs->issue_s ? traffic->costs->issue_s[shape] : 0;
    return members->member_count > 1 ? latency_s + traffic->costs->collective_launch_s : latency_s;
}

/* Adds the flows of a message, or of a copy, of host work or of a kernel of one rank; returns the
 * latency in seconds. variant: the number of the variant in the channel's comm class. */
static double add_transfer_flows(struct traffic *traffic, uint32_t channel, uint32_t variant)
{
    const struct channel *c = &traffic->channel[channel];
    const struct comm_class *comm = &traffic->comm[c->comm_class];
    uint32_t shape = comm->distinct_shapes[variant];
    const struct work *work = &traffic->ir->shape[shape];
    const uint32_t *participant = traffic->participant + c->participant_begin;
    uint32_t rank = traffic->schedule_rank_by_planned_rank[participant[0]], to;
    double bytes = (double)work_payload_bytes(work);
    double latency_s = 0;
    switch (comm->kind) {
    case COMM_SHIFT:
    case COMM_P2P:
        to = traffic->schedule_rank_by_planned_rank[participant[1]];
        latency_s = message_add_flows(&traffic->platform, &traffic->flows, rank, to, bytes,
                                      communicator_size(traffic, comm), channel, 0);
        if (rank != to)
            latency_s += traffic->costs->collective_launch_s;
        break;
    case COMM_COPY:
        latency_s = copy_add_flows(&traffic->platform, &traffic->flows, rank, bytes,
                                   comm->work_kind == WORK_H2D, comm->is_pageable);
        break;
    case COMM_HOST_WORK:
        host_work_add_flows(&traffic->platform, &traffic->flows, rank,
                            traffic->costs->host_memory_bytes_by_shape[shape],
                            traffic->host_duration_s[shape], channel, variant);
        break;
    case COMM_CONCURRENT_KERNEL:
        kernel_add_flows(&traffic->platform, &traffic->flows, rank,
                         traffic_kernel_duration_s(traffic, participant[0], shape),
                         !traffic_is_compute_bound(work));
        break;
    default:
        assert(!"a comm class of this kind");
    }
    return latency_s;
}

/* The number of times that the bytes which a rank sends and receives pass through its memory. NCCL's protocol Simple
 * moves them through a buffer of 512 KiB per channel, which is written back to memory, but read from the L2 cache. In a
 * step of a ring the rank also reads its own part, or writes the result. A message is also read from its source and
 * written to its destination. */
enum { RING_PASSES = 2, MESSAGE_PASSES = 3 };

/* Returns the shares of multiprocessors and memory bandwidth that a channel's transfers take from the kernels of each
 * of its ranks. members: the members of a collective; unused for other channels. */
static struct interference_share channel_interference(const struct traffic *traffic,
                                                      const struct channel *channel,
                                                      const struct members *members)
{
    const struct cluster *cluster = traffic->platform.cluster;
    const struct comm_class *comm = &traffic->comm[channel->comm_class];
    double sms = 0, bytes_per_s = 0;
    bool rings = false;
    bool shifts = comm->kind == COMM_COLLECTIVE &&
                  traffic->ir->shape[comm->distinct_shapes[0]].kind == WORK_SHIFT;
    if (comm->kind == COMM_COLLECTIVE && !shifts && comm->work_kind != WORK_BARRIER) {
        rings = true;
        double seconds = rings_transfer_s(&traffic->platform, members, 1);
        sms = rings_occupied_sms(&traffic->platform, members);
        bytes_per_s = seconds > 0 ? RING_PASSES / seconds : 0;
        const struct work *work = &traffic->ir->shape[comm->distinct_shapes[0]];
        if (work->kind == WORK_ALL_TO_ALL && work->all_to_all.once > 0 && sms > 0)
            sms = (double)work->all_to_all.channels; /* kernels of its own */
    } else if (shifts || comm->kind == COMM_P2P || comm->kind == COMM_SHIFT) {
        /* near: at the rate of the fabric, and not of NICs. All messages of a shift advance at the rate of the slowest,
         * so all members must be in one domain. */
        const uint32_t *end = traffic->participant + channel->participant_begin;
        bool near =
            shifts
                ? members->domain_count == 1
                : cluster_place_of_rank(cluster, traffic->schedule_rank_by_planned_rank[end[0]])
                          .domain ==
                      cluster_place_of_rank(cluster, traffic->schedule_rank_by_planned_rank[end[1]])
                          .domain;
        /* one kernel both sends and receives a shift, so each of its two channels counts half of it */
        double half = comm->kind == COMM_SHIFT ? 0.5 : 1;
        sms = half * cluster->device.message_sms;
        bytes_per_s = half * MESSAGE_PASSES *
                      (near ? cluster->fabric.peer_bytes_per_s : cluster->nic.peer_bytes_per_s);
    }
    return (struct interference_share){
        .sms_share = cluster->device.sm_count > 0 ? sms / (double)cluster->device.sm_count : 0,
        .memory_bandwidth_share = sms > 0 ? bytes_per_s / cluster->device.memory_bytes_per_s : 0,
        .holds_sms_from_start = rings};
}

static void add_channel_transfers(struct traffic *traffic, uint32_t channel,
                                  struct rows_exchanged_by_pair *known)
{
    struct channel *c = &traffic->channel[channel];
    const struct comm_class *comm = &traffic->comm[c->comm_class];
    struct members members = {0};
    uint32_t *member = NULL;
    if (comm->kind == COMM_COLLECTIVE)
        member = find_collective_members(traffic, c, &members);
    c->taken_resources = channel_interference(traffic, c, &members);
    c->first_transfer_of_channel = traffic->transfer_count;
    for (uint32_t v = 0; v < comm->distinct_shape_count; v++) {
        struct transfer *transfer = &traffic->transfer[traffic->transfer_count++];
        transfer->channel = channel;
        transfer->flow_begin = traffic->flows.flow_count;
        transfer->latency_s = member ? add_collective_flows(traffic, channel, &members,
                                                            comm->distinct_shapes[v], known)
                                     : add_transfer_flows(traffic, channel, v);
        transfer->flow_count = traffic->flows.flow_count - transfer->flow_begin;
    }
    members_release(&members);
    free(member);
}

void traffic_add_transfers(struct traffic *traffic)
{
    struct rows_exchanged_by_pair known = {0};
    uint32_t count = 0;
    for (uint32_t c = 0; c < traffic->channel_count; c++)
        count += traffic->comm[traffic->channel[c].comm_class].distinct_shape_count;
    traffic->transfer = arena_array(&traffic->arena, count, sizeof *traffic->transfer);
    for (uint32_t c = 0; c < traffic->channel_count; c++)
        add_channel_transfers(traffic, c, &known);
    free(known.rows);
}
