/* Makes the transfers of each channel: a latency and flows per variant. */
#include "sim/plan/plan_parts.h"

#include "base/arena.h"
#include "sim/plan/replicas.h"

#include <assert.h>
#include <stdlib.h>

/* Returns the number of ranks of the communicator that a shift, a send or a receive uses. */
static uint32_t ranks_of(const struct sim_plan *plan, const struct line *line)
{
    const struct mesh *mesh = &plan->ir->mesh;
    return line->group == IR_NONE16 ? mesh_ranks(mesh)
                                    : group_size(mesh, &plan->ir->group[line->group]);
}

/* True if a rank of the schedule is planned itself, and not only a replica of a planned one. */
static bool is_planned(const struct sim_plan *plan, uint32_t rank)
{
    const struct mesh *all = &plan->ir->mesh;
    return plan->rank[replicas_row(all, &plan->mesh, rank)] == rank;
}

/* Returns all members of a collective in the order of their index, with those of replicas that are not planned. */
static uint32_t *find_members(const struct sim_plan *plan, const struct channel *channel,
                              struct members *members)
{
    const struct mesh *mesh = &plan->ir->mesh;
    const struct group *group = &plan->ir->group[plan->line[channel->line].group];
    uint32_t size = group_size(mesh, group), instance, index;
    uint32_t *member = heap_alloc(size, sizeof *member);
    group_locate(mesh, group, plan->rank[plan->participant[channel->participant_begin]], &instance,
                 &index);
    for (uint32_t i = 0; i < size; i++)
        member[i] = group_member(mesh, group, instance, i);
    members_init(members, &plan->platform, member, size);
    for (uint32_t d = 0; d < members->domain_count; d++)
        members->domain[d].planned = is_planned(plan, members->rank[members->domain[d].begin]);
    members_find_rings(members, &plan->platform);
    return member;
}

static double make_collective(struct sim_plan *plan, uint32_t channel,
                              const struct members *members, uint32_t shape)
{
    const struct work *work = &plan->ir->shape[shape];
    double latency_s = collective_make(&plan->platform, &plan->flows, work, members, channel);
    if (work->kind == WORK_BARRIER) /* until the hosts go on */
        return plan->costs->issue_s ? plan->costs->issue_s[shape] : 0;
    return members->count > 1 ? latency_s + plan->costs->collective_launch_s : latency_s;
}

/* Adds the flows of a message, copy or kernel of one rank; returns the latency. */
static double make_transfer(struct sim_plan *plan, uint32_t channel, uint32_t v)
{
    const struct channel *c = &plan->channel[channel];
    const struct line *line = &plan->line[c->line];
    uint32_t shape = line->variant[v];
    const struct work *work = &plan->ir->shape[shape];
    const uint32_t *participant = plan->participant + c->participant_begin;
    uint32_t rank = plan->rank[participant[0]], to;
    double bytes = (double)work_payload_bytes(work);
    double latency_s = 0;
    switch (line->kind) {
    case LINE_SHIFT:
    case LINE_P2P:
        to = plan->rank[participant[1]];
        latency_s = message_make(&plan->platform, &plan->flows, rank, to, bytes,
                                 ranks_of(plan, line), channel, 0);
        if (rank != to)
            latency_s += plan->costs->collective_launch_s;
        break;
    case LINE_COPY:
        latency_s = copy_make(&plan->platform, &plan->flows, rank, bytes, line->work == WORK_H2D,
                              line->pageable);
        break;
    case LINE_HOST_WORK:
        host_work_make(&plan->platform, &plan->flows, rank, plan->costs->host_bytes[shape],
                       plan->host_s[shape], channel, v);
        break;
    case LINE_KERNEL:
        kernel_make(&plan->platform, &plan->flows, rank,
                    plan_duration_s(plan, participant[0], shape), !plan_computes(work));
        break;
    default:
        assert(!"a line of this kind");
    }
    return latency_s;
}

/* How often the bytes that a rank sends and receives pass through its memory. NCCL's protocol Simple moves them
 * through a buffer of 512 KiB for each channel, which is written back to memory but read again from the L2 cache. In
 * a step of a ring, a rank also reads its own part or writes the result; a message is also read where it comes from
 * and written where it goes. */
enum { RING_PASSES = 2, MESSAGE_PASSES = 3 };

/* Returns what a channel's transfers take from the kernels of each rank. members: of a collective. */
static struct taken taken_by(const struct sim_plan *plan, const struct channel *channel,
                             const struct members *members)
{
    const struct cluster *cluster = plan->platform.cluster;
    const struct line *line = &plan->line[channel->line];
    double sms = 0, bytes_per_s = 0;
    bool rings = false;
    bool shifts =
        line->kind == LINE_COLLECTIVE && plan->ir->shape[line->variant[0]].kind == WORK_SHIFT;
    if (line->kind == LINE_COLLECTIVE && !shifts && line->work != WORK_BARRIER) {
        rings = true;
        double seconds = rings_bytes_s(&plan->platform, members, 1);
        sms = rings_sms(&plan->platform, members);
        bytes_per_s = seconds > 0 ? RING_PASSES / seconds : 0;
    } else if (shifts || line->kind == LINE_P2P || line->kind == LINE_SHIFT) {
        /* Shifts of a whole group advance together, at the rate of the slowest. */
        const uint32_t *end = plan->participant + channel->participant_begin;
        bool near = shifts ? members->domain_count == 1
                           : cluster_place(cluster, plan->rank[end[0]]).domain ==
                                 cluster_place(cluster, plan->rank[end[1]]).domain;
        /* One kernel of a shift sends and receives: half for each of its two channels. */
        double half = line->kind == LINE_SHIFT ? 0.5 : 1;
        sms = half * cluster->device.message_sms;
        bytes_per_s = half * MESSAGE_PASSES *
                      (near ? cluster->fabric.peer_bytes_per_s : cluster->nic.peer_bytes_per_s);
    }
    return (struct taken){
        .sms = cluster->device.sm_count > 0 ? sms / (double)cluster->device.sm_count : 0,
        .memory = sms > 0 ? bytes_per_s / cluster->device.memory_bytes_per_s : 0,
        .early = rings};
}

static void add_channel_transfers(struct sim_plan *plan, uint32_t channel)
{
    struct channel *c = &plan->channel[channel];
    const struct line *line = &plan->line[c->line];
    struct members members = {0};
    uint32_t *member = NULL;
    if (line->kind == LINE_COLLECTIVE)
        member = find_members(plan, c, &members);
    c->taken = taken_by(plan, c, &members);
    c->transfer_begin = plan->transfer_count;
    for (uint32_t v = 0; v < line->variants; v++) {
        struct transfer *transfer = &plan->transfer[plan->transfer_count++];
        transfer->channel = channel;
        transfer->flow_begin = plan->flows.count;
        transfer->latency_s = member ? make_collective(plan, channel, &members, line->variant[v])
                                     : make_transfer(plan, channel, v);
        transfer->flow_count = plan->flows.count - transfer->flow_begin;
    }
    members_release(&members);
    free(member);
}

void plan_add_transfers(struct sim_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < plan->channel_count; c++)
        count += plan->line[plan->channel[c].line].variants;
    plan->transfer = arena_array(&plan->arena, count, sizeof *plan->transfer);
    for (uint32_t c = 0; c < plan->channel_count; c++)
        add_channel_transfers(plan, c);
}
