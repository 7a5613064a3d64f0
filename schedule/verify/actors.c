#include "schedule/verify/exchange.h"

#include "schedule/ir/disjoint_sets.h"
#include "schedule/ir/id_map.h"
#include "schedule/verify/rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool is_collective(enum work_kind kind)
{
    const struct work_kind_info *info = work_kind_info(kind);
    return info->param_count > 0 && info->param[0].is_value_group_id && !is_message(kind);
}

/* ---- ops ---- */

static void make_running_sums(uint32_t *begin, size_t count)
{
    for (size_t i = 0; i < count; i++)
        begin[i + 1] += begin[i];
}

/* Returns the element of e->begin for the list to which an op belongs: its role's messages, or its role's collectives
 * in its group. NULL: the op does not communicate. */
static uint32_t *find_list_begin_of_comm_op(const struct communicating_ops_of_roles *e,
                                            const struct ir *ir, uint32_t role, uint32_t op)
{
    enum work_kind kind = ir->op.kind[op];
    if (!is_message(kind) && !is_collective(kind))
        return NULL;
    uint32_t group =
        is_message(kind) ? ir->group_count : (uint32_t)work_comm_group(ir_work(ir, op));
    assert(is_message(kind) || group < ir->group_count);
    return &e->begin[(size_t)role * (ir->group_count + 1) + group];
}

static void list_communicating_ops_of_roles(struct communicating_ops_of_roles *e,
                                            const struct ir *ir)
{
    size_t lists = (size_t)ir->role_count * (ir->group_count + 1);
    e->begin = heap_zalloc(lists + 1, sizeof *e->begin);
    e->index_in_list_of_op = heap_alloc(ir->op.count, sizeof *e->index_in_list_of_op);
    /* the index of an op is the number of earlier ops in its list */
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t op = ir->role[r].op_begin; role_has_op(&ir->role[r], op); op++) {
            uint32_t *list = find_list_begin_of_comm_op(e, ir, r, op);
            if (list)
                e->index_in_list_of_op[op] = list[1]++;
        }
    make_running_sums(e->begin, lists);
    e->op = heap_alloc(e->begin[lists], sizeof *e->op);
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t op = ir->role[r].op_begin; role_has_op(&ir->role[r], op); op++) {
            const uint32_t *list = find_list_begin_of_comm_op(e, ir, r, op);
            if (list)
                e->op[*list + e->index_in_list_of_op[op]] = op;
        }
}

/* ---- peers ---- */

static uint32_t find_peer_rank(const struct ir *ir, uint32_t rank, int64_t group, int64_t by)
{
    uint32_t peer;
    bool found = by != 0 && group_peer(&ir->mesh, &ir->group[group], rank, by, &peer);
    return found ? peer : IR_NONE;
}

static bool rank_passes_guard(const struct rank_sets *ranks, uint16_t guard, uint32_t rank)
{
    return guard == IR_NONE16 ||
           (ranks->ranks_of_guard[(size_t)guard * ranks->words_per_set + rank / 64] >> rank % 64 &
            1);
}

/* ---- ranks that messages connect, directly or indirectly: components ---- */

/* Says to which rank an op of a role sends, or from which it receives: the one `by` places further in the group. */
struct message_peer_offset {
    int64_t group, by;
    uint16_t guard;
};

/* The peer offsets (routes) of each role's messages: every one that occurs, with its guard, once. Role r has the rows
 * begin[r] to begin[r + 1] - 1. Ranks of a role may have peers of different roles on the same route, or none. */
struct message_peer_offsets_of_roles {
    struct message_peer_offset *peer_offset_rows;
    uint32_t *begin; /* (roles + 1) */
    size_t capacity;
    uint32_t count;
};

static void add_message_peer_offset(struct message_peer_offsets_of_roles *s, uint32_t role,
                                    struct message_peer_offset route)
{
    for (uint32_t i = s->begin[role]; i < s->count; i++)
        if (s->peer_offset_rows[i].group == route.group && s->peer_offset_rows[i].by == route.by &&
            s->peer_offset_rows[i].guard == route.guard)
            return;
    s->peer_offset_rows = heap_grow(s->peer_offset_rows, &s->capacity, (size_t)s->count + 1,
                                    sizeof *s->peer_offset_rows);
    s->peer_offset_rows[s->count++] = route;
}

static void find_message_peer_offsets_of_roles(struct message_peer_offsets_of_roles *s,
                                               const struct ir *ir,
                                               const struct communicating_ops_of_roles *ops)
{
    s->begin = heap_zalloc((size_t)ir->role_count + 1, sizeof *s->begin);
    for (uint32_t r = 0; r < ir->role_count; r++) {
        s->begin[r] = s->count;
        struct collectives_or_messages_of_role messages = sequence_of(ops, ir, r, ir->group_count);
        for (uint32_t k = 0; k < messages.count; k++) {
            const struct work *work = ir_work(ir, messages.op[k]);
            add_message_peer_offset(s, r,
                                    (struct message_peer_offset){work->p2p.group, work->p2p.by,
                                                                 ir->op.guard[messages.op[k]]});
        }
    }
    s->begin[ir->role_count] = s->count;
}

struct components_of_ranks {
    uint32_t count;
    uint32_t *begin;                      /* (count + 1) */
    uint32_t *ranks_by_component;         /* ranks, ascending inside a component */
    uint32_t *index_of_rank_in_component; /* [ranks] the rank's index in its component */
};

static void find_communicating_components(struct components_of_ranks *c, const struct ir *ir,
                                          const struct rank_sets *ranks,
                                          const struct message_peer_offsets_of_roles *peer_offsets,
                                          uint32_t rank_count)
{
    uint32_t *parent = roots_make(rank_count);
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        uint16_t role = ranks->role[rank];
        if (role == IR_NONE16)
            continue;
        for (uint32_t i = peer_offsets->begin[role]; i < peer_offsets->begin[role + 1]; i++) {
            uint32_t peer = find_peer_rank(ir, rank, peer_offsets->peer_offset_rows[i].group,
                                           peer_offsets->peer_offset_rows[i].by);
            if (peer != IR_NONE && ranks->role[peer] != IR_NONE16)
                join_sets_of_two(parent, rank, peer);
        }
    }
    /* A component is named by its root, the lowest of its ranks, and components are in the order of their roots. */
    uint32_t *component = heap_alloc(rank_count, sizeof *component);
    c->begin = heap_zalloc((size_t)rank_count + 1, sizeof *c->begin);
    c->index_of_rank_in_component = heap_alloc(rank_count, sizeof *c->index_of_rank_in_component);
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        if (ranks->role[rank] == IR_NONE16)
            continue;
        uint32_t root = root_of(parent, rank);
        component[rank] = root == rank ? c->count++ : component[root];
        c->index_of_rank_in_component[rank] = c->begin[component[rank] + 1]++;
    }
    make_running_sums(c->begin, c->count);
    c->ranks_by_component = heap_alloc(c->begin[c->count], sizeof *c->ranks_by_component);
    for (uint32_t rank = 0; rank < rank_count; rank++)
        if (ranks->role[rank] != IR_NONE16)
            c->ranks_by_component[c->begin[component[rank]] + c->index_of_rank_in_component[rank]] =
                rank;
    free(parent);
    free(component);
}

/* ---- signatures of components ---- */

/* The words by which components are compared, one component after the other. A component's signature has for each of
 * its ranks the role and, for each route of that role, whether the rank passes the guard, and the index of its peer in
 * the component. Components with equal signatures communicate alike. */
struct component_signatures {
    uint32_t *word;
    size_t count, capacity;
};

static void append_word(struct component_signatures *signatures, uint32_t word)
{
    signatures->word = heap_grow(signatures->word, &signatures->capacity, signatures->count + 1,
                                 sizeof *signatures->word);
    signatures->word[signatures->count++] = word;
}

static void append_component_signature(struct component_signatures *signatures, const struct ir *ir,
                                       const struct rank_sets *ranks,
                                       const struct message_peer_offsets_of_roles *peer_offsets,
                                       const struct components_of_ranks *c, uint32_t component)
{
    for (uint32_t m = c->begin[component]; m < c->begin[component + 1]; m++) {
        uint32_t rank = c->ranks_by_component[m];
        uint16_t role = ranks->role[rank];
        append_word(signatures, role);
        for (uint32_t i = peer_offsets->begin[role]; i < peer_offsets->begin[role + 1]; i++) {
            uint32_t peer = find_peer_rank(ir, rank, peer_offsets->peer_offset_rows[i].group,
                                           peer_offsets->peer_offset_rows[i].by);
            bool known = peer != IR_NONE && ranks->role[peer] != IR_NONE16;
            append_word(signatures,
                        rank_passes_guard(ranks, peer_offsets->peer_offset_rows[i].guard, rank));
            append_word(signatures, known ? c->index_of_rank_in_component[peer] : IR_NONE);
        }
    }
}

/* ---- actors ---- */

/* A set of components (ranks that communicate) with equal signatures. They share the actors of the one that was seen
 * first: one actor for each of its ranks, from first_actor_of_equal_components on. */
struct components_with_equal_signatures {
    size_t begin, end; /* where the signature of the component begins and ends in signatures.word */
    uint32_t first_actor_of_equal_components;
};

static bool has_same_signature(const struct component_signatures *signatures,
                               const struct components_with_equal_signatures *a,
                               const struct components_with_equal_signatures *b)
{
    return a->end - a->begin == b->end - b->begin &&
           memcmp(signatures->word + a->begin, signatures->word + b->begin,
                  (a->end - a->begin) * sizeof *signatures->word) == 0;
}

static void assign_actors_to_ranks(struct actors *a, const struct ir *ir,
                                   const struct rank_sets *ranks,
                                   const struct message_peer_offsets_of_roles *peer_offsets,
                                   bool fold)
{
    struct components_of_ranks c = {0};
    find_communicating_components(&c, ir, ranks, peer_offsets, a->rank_count);

    struct components_with_equal_signatures *kind = heap_alloc(c.count, sizeof *kind);
    uint32_t kinds = 0;
    struct component_signatures signatures = {0};
    for (uint32_t i = 0; i < c.count; i++) {
        uint32_t size = c.begin[i + 1] - c.begin[i], found = fold ? 0 : kinds;
        struct components_with_equal_signatures new = {
            .begin = signatures.count, .first_actor_of_equal_components = a->actor_count};
        if (fold)
            append_component_signature(&signatures, ir, ranks, peer_offsets, &c, i);
        new.end = signatures.count;
        while (found < kinds && !has_same_signature(&signatures, &kind[found], &new))
            found++;
        if (found < kinds) {
            signatures.count = new.begin;
        } else {
            kind[kinds++] = new;
            for (uint32_t k = 0; k < size; k++) {
                uint32_t rank = c.ranks_by_component[c.begin[i] + k];
                a->lowest_rank[a->actor_count] = rank;
                a->role[a->actor_count++] = ranks->role[rank];
            }
        }
        for (uint32_t k = 0; k < size; k++)
            a->actor_of_rank[c.ranks_by_component[c.begin[i] + k]] =
                kind[found].first_actor_of_equal_components + k;
    }
    free(signatures.word);
    free(kind);
    free(c.begin);
    free(c.ranks_by_component);
    free(c.index_of_rank_in_component);
}

static void fill_messages_of_actors(struct actors *a, const struct ir *ir,
                                    const struct rank_sets *ranks,
                                    const struct communicating_ops_of_roles *ops)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < a->actor_count; i++)
        total += sequence_of(ops, ir, a->role[i], ir->group_count).count;
    a->has_too_many_messages_to_match = total > VERIFIED_MESSAGES_MAX;
    a->first_message = heap_zalloc((size_t)a->actor_count + 1, sizeof *a->first_message);
    if (a->has_too_many_messages_to_match)
        return;
    a->message = heap_alloc(total, sizeof *a->message);
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->actor_count; i++) {
        struct collectives_or_messages_of_role messages =
            sequence_of(ops, ir, a->role[i], ir->group_count);
        for (uint32_t k = 0; k < messages.count; k++) {
            uint32_t op = messages.op[k];
            const struct work *work = ir_work(ir, op);
            struct message new = {
                .op = op, .actor = i, .peer_actor = IR_NONE, .matching_message_row = IR_NONE};
            new.is_left_out_by_guard =
                !rank_passes_guard(ranks, ir->op.guard[op], a->lowest_rank[i]);
            uint32_t peer = find_peer_rank(ir, a->lowest_rank[i], work->p2p.group, work->p2p.by);
            if (!new.is_left_out_by_guard && peer != IR_NONE)
                new.peer_actor = a->actor_of_rank[peer];
            a->message[count++] = new;
        }
        a->first_message[i + 1] = count;
    }
}

/* Matches sends with receives. Sends queue up per (source, destination, channel); receives take from the front. A
 * message without a partner keeps matching_message_row IR_NONE. */
static void match_messages(struct actors *a, const struct ir *ir)
{
    struct message_queue {
        uint32_t source, destination, head, tail;
        int64_t channel;
    } *queue = NULL;
    uint32_t count = a->first_message[a->actor_count], queues = 0;
    size_t capacity = 0;
    uint32_t *next = heap_alloc(count, sizeof *next);
    struct id_map map = {0};
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t m = 0; m < count; m++) {
            struct message *message = &a->message[m];
            bool sends = ir->op.kind[message->op] == WORK_SEND;
            if (message->peer_actor == IR_NONE || sends != (pass == 0))
                continue;
            uint32_t source = sends ? message->actor : message->peer_actor;
            uint32_t destination = sends ? message->peer_actor : message->actor;
            int64_t channel = ir_work(ir, message->op)->p2p.channel;
            uint64_t hash = hash_word(hash_word(source, destination), (uint64_t)channel);
            struct message_queue *q = NULL;
            for (struct id_probe p = id_map_begin_probe(&map, hash);
                 !q && id_map_next_row_with_hash(&map, &p);)
                if (queue[p.row].source == source && queue[p.row].destination == destination &&
                    queue[p.row].channel == channel)
                    q = &queue[p.row];
            next[m] = IR_NONE;
            if (sends && !q) {
                queue = heap_grow(queue, &capacity, (size_t)queues + 1, sizeof *queue);
                id_map_add(&map, hash, queues);
                queue[queues++] = (struct message_queue){source, destination, m, m, channel};
            } else if (sends) {
                next[q->tail] = m;
                q->tail = m;
            } else if (q && q->head != IR_NONE) {
                message->matching_message_row = q->head;
                a->message[q->head].matching_message_row = m;
                q->head = next[q->head];
            }
        }
    id_map_release(&map);
    free(queue);
    free(next);
}

void actors_make(struct actors *a, struct verifier *v, const struct communicating_ops_of_roles *ops,
                 bool fold)
{
    const struct ir *ir = v->ir;
    const struct rank_sets *ranks = verifier_rank_sets(v);
    *a = (struct actors){.rank_count = mesh_rank_count(&ir->mesh)};
    a->actor_of_rank = ir_new_empty_ids(a->rank_count);
    a->lowest_rank = heap_alloc(a->rank_count, sizeof *a->lowest_rank);
    a->role = heap_alloc(a->rank_count, sizeof *a->role);
    struct message_peer_offsets_of_roles peer_offsets = {0};
    find_message_peer_offsets_of_roles(&peer_offsets, ir, ops);
    assign_actors_to_ranks(a, ir, ranks, &peer_offsets, fold);
    free(peer_offsets.peer_offset_rows);
    free(peer_offsets.begin);
    fill_messages_of_actors(a, ir, ranks, ops);
    if (!a->has_too_many_messages_to_match)
        match_messages(a, ir);
}

void actors_release(struct actors *a)
{
    free(a->actor_of_rank);
    free(a->lowest_rank);
    free(a->role);
    free(a->first_message);
    free(a->message);
    *a = (struct actors){0};
}

const struct exchange *verify_exchange(struct verifier *v)
{
    if (!v->exchange.is_made) {
        list_communicating_ops_of_roles(&v->exchange.ops, v->ir);
        actors_make(&v->exchange.actors, v, &v->exchange.ops, true);
        v->exchange.is_made = true;
    }
    return &v->exchange;
}

void exchange_release(struct exchange *exchange)
{
    free(exchange->ops.op);
    free(exchange->ops.begin);
    free(exchange->ops.index_in_list_of_op);
    actors_release(&exchange->actors);
    *exchange = (struct exchange){0};
}
