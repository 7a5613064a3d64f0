#include "sim/plan/plan_channels.h"

#include "base/arena.h"
#include "sim/plan/replicas.h"
#include "sim/platform/rings.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- do the members agree? ---- */

/* Does an op take part in the order of issue on its group's communicator? */
static bool on_group(const struct plan *plan, uint32_t op, uint32_t group)
{
    uint16_t line = plan->op_line[op];
    return line != IR_NONE16 && plan->line[line].group == group &&
           plan->line[line].kind != LINE_P2P;
}

/* The next op of a role on the group, from op *i of the role on. */
static bool next_on_group(const struct plan *plan, const struct role *role, uint32_t group,
                          uint32_t *i)
{
    while (*i < role->op_count && !on_group(plan, role->op_begin + *i, group))
        ++*i;
    return *i < role->op_count;
}

static const char *kind_name(const struct ir *ir, uint32_t op)
{
    return work_kind_info(ir->op.kind[op])->name;
}

static enum status check_pair(const struct plan *plan, uint32_t group, uint32_t a, uint32_t b,
                              const char *name, struct diag *diag)
{
    const struct ir *ir = plan->ir;
    const struct role *role_a = &ir->role[a], *role_b = &ir->role[b];
    struct loc at = {.name = name};
    for (uint32_t i = 0, j = 0;; i++, j++) {
        bool more_a = next_on_group(plan, role_a, group, &i);
        bool more_b = next_on_group(plan, role_b, group, &j);
        if (!more_a && !more_b)
            return STATUS_OK;
        uint32_t op_a = role_a->op_begin + i, op_b = role_b->op_begin + j;
        if (more_a != more_b)
            return diag_error(
                diag, at, STATUS_BAD_INPUT,
                "op %u (%s) of role %s meets nothing in role %s, which shares group %s",
                more_a ? op_a : op_b, kind_name(ir, more_a ? op_a : op_b),
                more_a ? role_a->name : role_b->name, more_a ? role_b->name : role_a->name,
                ir->group[group].name);
        const struct work *work_a = ir_work(ir, op_a), *work_b = ir_work(ir, op_b);
        if (work_a->kind != work_b->kind || memcmp(work_a->p, work_b->p, sizeof work_a->p) != 0)
            return diag_error(
                diag, at, STATUS_BAD_INPUT,
                "op %u (%s, %lld bytes) of role %s meets op %u (%s, %lld bytes) of role %s on "
                "group %s",
                op_a, kind_name(ir, op_a), (long long)work_payload_bytes(work_a), role_a->name,
                op_b, kind_name(ir, op_b), (long long)work_payload_bytes(work_b), role_b->name,
                ir->group[group].name);
    }
}

static enum status check_instance(const struct plan *plan, uint32_t group, uint32_t instance,
                                  uint32_t size, uint8_t *checked, const char *name,
                                  struct diag *diag)
{
    const struct ir *ir = plan->ir;
    uint32_t first_rank = group_member(&plan->mesh, &ir->group[group], instance, 0);
    uint32_t first = plan->role_of_rank[first_rank];
    for (uint32_t k = 1; k < size; k++) {
        uint32_t rank = group_member(&plan->mesh, &ir->group[group], instance, k);
        uint32_t role = plan->role_of_rank[rank];
        if (role == first)
            continue;
        uint32_t outside = role == IR_NONE ? rank : first_rank;
        uint32_t other = role == IR_NONE ? first : role;
        if (role == IR_NONE || first == IR_NONE) {
            uint32_t i = 0;
            if (next_on_group(plan, &ir->role[other], group, &i))
                return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                  "op %u (%s) of role %s needs rank %u, which is in no role",
                                  ir->role[other].op_begin + i,
                                  kind_name(ir, ir->role[other].op_begin + i), ir->role[other].name,
                                  plan->rank[outside]);
            continue;
        }
        uint8_t *done = &checked[(size_t)first * ir->role_count + role];
        if (*done)
            continue;
        *done = 1;
        enum status status = check_pair(plan, group, first, role, name, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status plan_check_groups(const struct plan *plan, const char *name, struct diag *diag)
{
    const struct ir *ir = plan->ir;
    enum status status = STATUS_OK;
    size_t pairs = (size_t)ir->role_count * ir->role_count;
    uint8_t *used = heap_zalloc(ir->group_count + 1u, 1);
    uint8_t *checked = heap_alloc(pairs + 1, 1);
    bool whole = ir->role_count < 2;
    for (uint32_t r = 0; r < plan->rank_count; r++)
        whole = whole && plan->role_of_rank[r] != IR_NONE;
    for (uint32_t l = 0; l < plan->line_count; l++)
        if (plan->line[l].group != IR_NONE16 && plan->line[l].kind != LINE_P2P)
            used[plan->line[l].group] = 1;
    for (uint32_t g = 0; g < ir->group_count && !whole && status == STATUS_OK; g++) {
        uint32_t size = group_size(&plan->mesh, &ir->group[g]);
        uint32_t instances = group_instances(&plan->mesh, &ir->group[g]);
        memset(checked, 0, pairs + 1);
        for (uint32_t i = 0; used[g] && i < instances && status == STATUS_OK; i++)
            status = check_instance(plan, g, i, size, checked, name, diag);
    }
    free(used);
    free(checked);
    return status;
}

/* ---- channels ---- */

static uint32_t add_channel(struct plan *plan, uint32_t line)
{
    if (plan->channel_count == plan->channel_capacity) {
        plan->channel_capacity =
            (uint32_t)heap_next_capacity(plan->channel_capacity, plan->channel_count + 1);
        plan->channel = heap_realloc(plan->channel, plan->channel_capacity, sizeof *plan->channel);
    }
    plan->channel[plan->channel_count] =
        (struct channel){.line = line, .participant_begin = plan->participant_count};
    return plan->channel_count++;
}

static void add_participant(struct plan *plan, uint32_t rank)
{
    if (plan->participant_count == plan->participant_capacity) {
        plan->participant_capacity =
            (uint32_t)heap_next_capacity(plan->participant_capacity, plan->participant_count + 1);
        plan->participant =
            heap_realloc(plan->participant, plan->participant_capacity, sizeof *plan->participant);
    }
    plan->participant[plan->participant_count++] = rank;
    plan->channel[plan->channel_count - 1].participant_count++;
}

static bool has_ops(const struct plan *plan, uint32_t rank, uint32_t line)
{
    uint32_t role = plan->role_of_rank[rank];
    return role != IR_NONE && plan->line[line].op_count[role] > 0;
}

static uint32_t *endpoint(struct plan *plan, uint32_t rank, uint32_t line)
{
    return &plan->endpoint[(size_t)rank * plan->line_count + line];
}

static void add_collective_channels(struct plan *plan, uint32_t l)
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

static void add_shift_channels(struct plan *plan, uint32_t l)
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

static void add_rank_channels(struct plan *plan, uint32_t l)
{
    for (uint32_t r = 0; r < plan->rank_count; r++)
        if (has_ops(plan, r, l)) {
            *endpoint(plan, r, l) = add_channel(plan, l);
            add_participant(plan, r);
        }
}

/* The rank that a send goes to, or a receive comes from: `by` further in the group, no wrap. */
static bool find_peer(const struct plan *plan, const struct line *line, uint32_t rank,
                      uint32_t *peer)
{
    const struct ir *ir = plan->ir;
    const struct group *group = &ir->group[line->group];
    uint32_t instance, index;
    if (!group_locate(&plan->mesh, group, rank, &instance, &index))
        return false;
    int64_t other = index + line->by;
    if (other < 0 || other >= group_size(&plan->mesh, group))
        return false;
    *peer = group_member(&plan->mesh, group, instance, (uint32_t)other);
    return true;
}

/* A rank may lack a peer where guards leave it none of the line's ops. */
static enum status check_no_peer(const struct plan *plan, uint32_t l, uint32_t rank,
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
                              op, kind_name(ir, op), plan->rank[rank], ir->group[line->group].name,
                              (long long)line->by);
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

static enum status add_p2p_channels(struct plan *plan, const char *name, struct diag *diag)
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
            if (!find_peer(plan, line, r, &peer)) {
                status = check_no_peer(plan, l, r, name, diag);
                if (status != STATUS_OK)
                    goto out;
                continue;
            }
            if (count == capacity) {
                capacity = heap_next_capacity(capacity, count + 1);
                key = heap_realloc(key, capacity, sizeof *key);
            }
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

/* ---- transfers ---- */

/* The number of ranks of the communicator that a shift, a send or a receive uses. */
static uint32_t ranks_of(const struct plan *plan, const struct line *line)
{
    const struct mesh *mesh = &plan->ir->mesh;
    return line->group == IR_NONE16 ? mesh_ranks(mesh)
                                    : group_size(mesh, &plan->ir->group[line->group]);
}

/* Whether a rank of the schedule is planned, or does what a planned one does. */
static bool is_planned(const struct plan *plan, uint32_t rank)
{
    const struct mesh *all = &plan->ir->mesh;
    return plan->rank[replicas_row(all, &plan->mesh, rank)] == rank;
}

/* All members of a collective, of replicas that are not planned too. Returns them in the order of their index. */
static uint32_t *find_members(const struct plan *plan, const struct channel *channel,
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
    return member;
}

static struct transfer make_collective(struct plan *plan, uint32_t channel,
                                       const struct members *members, uint32_t shape)
{
    const struct work *work = &plan->ir->shape[shape];
    struct transfer transfer =
        collective_make(&plan->platform, &plan->flows, work, members, channel);
    if (work->kind == WORK_BARRIER) /* until the hosts go on */
        transfer.latency_s = plan->costs->issue_s ? plan->costs->issue_s[shape] : 0;
    else if (members->count > 1)
        transfer.latency_s += plan->costs->collective_launch_s;
    return transfer;
}

/* What one rank sends, copies or computes. */
static struct transfer make_transfer(struct plan *plan, uint32_t channel, uint32_t v)
{
    const struct channel *c = &plan->channel[channel];
    const struct line *line = &plan->line[c->line];
    uint32_t shape = plan->variant[line->variant_begin + v];
    const struct work *work = &plan->ir->shape[shape];
    const uint32_t *participant = plan->participant + c->participant_begin;
    uint32_t rank = plan->rank[participant[0]], to;
    double bytes = (double)work_payload_bytes(work);
    struct transfer transfer = {0};
    switch (line->kind) {
    case LINE_SHIFT:
    case LINE_P2P:
        to = plan->rank[participant[1]];
        transfer = message_make(&plan->platform, &plan->flows, rank, to, bytes,
                                ranks_of(plan, line), channel, 0);
        if (rank != to)
            transfer.latency_s += plan->costs->collective_launch_s;
        break;
    case LINE_COPY:
        transfer = copy_make(&plan->platform, &plan->flows, rank, bytes, line->work == WORK_H2D,
                             line->pageable);
        break;
    case LINE_HOST_WORK:
        transfer = host_work_make(&plan->platform, &plan->flows, rank,
                                  plan->costs->host_bytes[shape], plan->host_s[shape], channel, v);
        break;
    case LINE_KERNEL:
        transfer = kernel_make(&plan->platform, &plan->flows, rank, plan->duration_s[shape],
                               !plan_computes(work));
        break;
    default:
        assert(!"a line of this kind");
    }
    return transfer;
}

static void add_channel_transfers(struct plan *plan, uint32_t channel)
{
    struct channel *c = &plan->channel[channel];
    const struct line *line = &plan->line[c->line];
    struct members members = {0};
    uint32_t *member = NULL;
    if (line->kind == LINE_COLLECTIVE)
        member = find_members(plan, c, &members);
    c->transfer_begin = plan->transfer_count;
    for (uint32_t v = 0; v < line->variants; v++)
        plan->transfer[plan->transfer_count++] =
            member
                ? make_collective(plan, channel, &members, plan->variant[line->variant_begin + v])
                : make_transfer(plan, channel, v);
    members_release(&members);
    free(member);
}

static void add_transfers(struct plan *plan)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < plan->channel_count; c++)
        count += plan->line[plan->channel[c].line].variants;
    plan->transfer = heap_alloc(count + 1, sizeof *plan->transfer);
    for (uint32_t c = 0; c < plan->channel_count; c++)
        add_channel_transfers(plan, c);
}

enum status plan_add_channels(struct plan *plan, const char *name, struct diag *diag)
{
    size_t count = (size_t)plan->rank_count * plan->line_count;
    plan->endpoint = heap_alloc(count + 1, sizeof *plan->endpoint);
    plan->receive = heap_alloc(count + 1, sizeof *plan->receive);
    memset(plan->endpoint, 0xff, (count + 1) * sizeof *plan->endpoint);
    memset(plan->receive, 0xff, (count + 1) * sizeof *plan->receive);
    static void (*const add[LINE_KIND_COUNT])(struct plan *, uint32_t) = {
        [LINE_COLLECTIVE] = add_collective_channels,
        [LINE_SHIFT] = add_shift_channels,
        [LINE_COPY] = add_rank_channels,
        [LINE_HOST_WORK] = add_rank_channels,
        [LINE_KERNEL] = add_rank_channels,
    };
    for (uint32_t l = 0; l < plan->line_count; l++)
        if (add[plan->line[l].kind])
            add[plan->line[l].kind](plan, l);
    enum status status = add_p2p_channels(plan, name, diag);
    if (status == STATUS_OK)
        add_transfers(plan);
    return status;
}
