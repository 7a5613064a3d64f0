/* Makes the channels, one per line and place, and their participants. */
#include "sim/plan/plan_parts.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

static uint32_t add_channel(struct sim_plan *plan, uint32_t line)
{
    plan->channel = heap_grow(plan->channel, &plan->channel_capacity, plan->channel_count + 1u,
                              sizeof *plan->channel);
    plan->channel[plan->channel_count] =
        (struct channel){.line = line, .participant_begin = plan->participant_count};
    return plan->channel_count++;
}

static void add_participant(struct sim_plan *plan, uint32_t rank)
{
    plan->participant = heap_grow(plan->participant, &plan->participant_capacity,
                                  plan->participant_count + 1u, sizeof *plan->participant);
    plan->participant[plan->participant_count++] = rank;
    plan->channel[plan->channel_count - 1].participant_count++;
}

static bool has_ops(const struct sim_plan *plan, uint32_t rank, uint32_t line)
{
    uint32_t role = plan->role_of_rank[rank];
    return role != IR_NONE && plan->line[line].op_count[role] > 0;
}

static uint32_t *endpoint(struct sim_plan *plan, uint32_t rank, uint32_t line)
{
    return &plan->endpoint[(size_t)rank * plan->line_count + line];
}

static void add_collective_channels(struct sim_plan *plan, uint32_t l)
{
    const struct ir *ir = plan->ir;
    const struct group *group = &ir->group[plan->line[l].group];
    uint32_t size = group_size(&plan->mesh, group), instances = group_instances(&plan->mesh, group);
    for (uint32_t i = 0; i < instances; i++) {
        if (!has_ops(plan, group_member(&plan->mesh, group, i, 0), l))
            continue; /* then no member has: plan_check_groups() */
        uint32_t channel = add_channel(plan, l);
        for (uint32_t k = 0; k < size; k++) {
            uint32_t rank = group_member(&plan->mesh, group, i, k);
            add_participant(plan, rank);
            *endpoint(plan, rank, l) = channel;
        }
    }
}

static void add_shift_channels(struct sim_plan *plan, uint32_t l)
{
    const struct ir *ir = plan->ir;
    const struct group *group = &ir->group[plan->line[l].group];
    uint32_t size = group_size(&plan->mesh, group), instances = group_instances(&plan->mesh, group);
    for (uint32_t i = 0; i < instances; i++)
        for (uint32_t k = 0; k < size; k++) {
            uint32_t from = group_member(&plan->mesh, group, i, k);
            if (!has_ops(plan, from, l))
                break;
            uint32_t by = (uint32_t)plan->line[l].by;
            uint32_t to = group_member(&plan->mesh, group, i, (k + by) % size);
            uint32_t channel = add_channel(plan, l);
            add_participant(plan, from);
            add_participant(plan, to);
            *endpoint(plan, from, l) = channel;
            plan->receive[(size_t)to * plan->line_count + l] = channel;
        }
}

static void add_rank_channels(struct sim_plan *plan, uint32_t l)
{
    for (uint32_t r = 0; r < plan->rank_count; r++)
        if (has_ops(plan, r, l)) {
            *endpoint(plan, r, l) = add_channel(plan, l);
            add_participant(plan, r);
        }
}

/* A rank may lack a peer where guards leave it none of the line's ops. */
static enum status check_no_peer(const struct sim_plan *plan, uint32_t l, uint32_t rank,
                                 const char *name, struct diag *diag)
{
    const struct ir *ir = plan->ir;
    const struct line *line = &plan->line[l];
    uint32_t role = plan->role_of_rank[rank];
    for (uint32_t i = 0; i < line->op_count[role]; i++) {
        uint32_t op = plan->line_op[line->op_begin[role] + i];
        if (plan_runs(plan, rank, op))
            return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                              "op %u (%s) on rank %u: there is no member of group %s at "
                              "distance %lld",
                              op, plan_kind_name(ir, op), plan->rank[rank],
                              ir->group[line->group].name, (long long)line->by);
    }
    return STATUS_OK;
}

/* Channels of sends and receives by (source, destination, number). */
struct p2p_key {
    uint32_t from, to;
    int64_t number;
    uint32_t line, rank;
};

static int compare_p2p(const void *left, const void *right)
{
    const struct p2p_key *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool same_p2p(const struct p2p_key *a, const struct p2p_key *b)
{
    return a->from == b->from && a->to == b->to && a->number == b->number;
}

static enum status add_p2p_channels(struct sim_plan *plan, const char *name, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct p2p_key *key = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t l = 0; l < plan->line_count; l++) {
        const struct line *line = &plan->line[l];
        for (uint32_t r = 0; line->kind == LINE_P2P && r < plan->rank_count; r++) {
            uint32_t peer;
            if (!has_ops(plan, r, l))
                continue;
            if (!group_peer(&plan->mesh, &plan->ir->group[line->group], r, line->by, &peer)) {
                status = check_no_peer(plan, l, r, name, diag);
                if (status != STATUS_OK)
                    goto out;
                continue;
            }
            key = heap_grow(key, &capacity, count + 1, sizeof *key);
            bool send = line->work == WORK_SEND;
            key[count++] = (struct p2p_key){send ? r : peer, send ? peer : r, line->number, l, r};
        }
    }
    if (count > 0)
        qsort(key, count, sizeof *key, compare_p2p);
    for (size_t k = 0; k < count; k++) {
        if (k == 0 || !same_p2p(&key[k], &key[k - 1])) {
            add_channel(plan, key[k].line);
            add_participant(plan, key[k].from);
            add_participant(plan, key[k].to);
        }
        *endpoint(plan, key[k].rank, key[k].line) = plan->channel_count - 1;
    }
out:
    free(key);
    return status;
}

enum status plan_add_channels(struct sim_plan *plan, const char *name, struct diag *diag)
{
    size_t count = (size_t)plan->rank_count * plan->line_count;
    plan->endpoint = arena_array(&plan->arena, count, sizeof *plan->endpoint);
    plan->receive = arena_array(&plan->arena, count, sizeof *plan->receive);
    memset(plan->endpoint, 0xff, count * sizeof *plan->endpoint);
    memset(plan->receive, 0xff, count * sizeof *plan->receive);
    static void (*const add[LINE_KIND_COUNT])(struct sim_plan *, uint32_t) = {
        [LINE_COLLECTIVE] = add_collective_channels,
        [LINE_SHIFT] = add_shift_channels,
        [LINE_COPY] = add_rank_channels,
        [LINE_HOST_WORK] = add_rank_channels,
        [LINE_KERNEL] = add_rank_channels,
    };
    for (uint32_t l = 0; l < plan->line_count; l++)
        if (add[plan->line[l].kind])
            add[plan->line[l].kind](plan, l);
    return add_p2p_channels(plan, name, diag);
}
