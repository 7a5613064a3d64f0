#include "exec/cpu/comm.h"
#include "exec/assignment.h"

#include "exec/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The operands of one member of a collective. */
struct collective_part {
    bool has_arrived;
    enum work_kind kind;
    struct operand send, recv;
};

/* One instance of a group: its collectives and barriers by number. */
struct group_instance {
    pthread_mutex_t lock;
    pthread_cond_t state_changed;
    uint32_t size;
    uint32_t calls, barriers;
    uint32_t *passed_members; /* (calls) members that have passed a phase, all phases together */
    struct collective_part *part; /* (calls, size) */
    uint32_t *barrier_count;      /* (barriers) */
    bool *at_barrier;             /* (barriers, size) */
};

/* One message between two ranks. */
struct comm_message {
    struct collective_part end[2]; /* of the sender, of the receiver */
    uint32_t passed_members;
};

struct comm {
    struct exec_run *run;
    uint32_t *instance_begin; /* (groups) row of the group's first instance */
    uint32_t instance_count;
    struct group_instance *instance;
    pthread_mutex_t lock; /* of the messages */
    pthread_cond_t state_changed;
    struct comm_message *message;
    struct arena arena;
};

struct comm *comm_new(struct exec_run *run)
{
    const struct assignment *assignment = &run->assignment;
    uint32_t groups = run->ir->group_count;
    struct comm *comm = heap_zalloc(1, sizeof *comm);
    comm->run = run;
    comm->instance_begin = arena_array(&comm->arena, groups, sizeof *comm->instance_begin);
    for (uint32_t g = 0; g < groups; g++) {
        comm->instance_begin[g] = comm->instance_count;
        comm->instance_count += assignment->instance_count[g];
    }
    comm->instance = arena_array(&comm->arena, comm->instance_count, sizeof *comm->instance);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t i = 0; i < assignment->instance_count[g]; i++) {
            struct group_instance *c = &comm->instance[comm->instance_begin[g] + i];
            pthread_mutex_init(&c->lock, NULL);
            pthread_cond_init(&c->state_changed, NULL);
            c->size = assignment->group_size[g];
            c->calls = assignment->most_calls[g];
            c->barriers = assignment->most_barriers[g];
            c->passed_members = arena_array(&comm->arena, c->calls, sizeof *c->passed_members);
            c->part = arena_array(&comm->arena, (size_t)c->calls * c->size, sizeof *c->part);
            c->barrier_count = arena_array(&comm->arena, c->barriers, sizeof *c->barrier_count);
            c->at_barrier =
                arena_array(&comm->arena, (size_t)c->barriers * c->size, sizeof *c->at_barrier);
        }
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->state_changed, NULL);
    comm->message = arena_array(&comm->arena, assignment->message_count, sizeof *comm->message);
    return comm;
}

void comm_free(struct comm *comm)
{
    if (comm == NULL)
        return;
    for (uint32_t i = 0; i < comm->instance_count; i++) {
        pthread_mutex_destroy(&comm->instance[i].lock);
        pthread_cond_destroy(&comm->instance[i].state_changed);
    }
    pthread_mutex_destroy(&comm->lock);
    pthread_cond_destroy(&comm->state_changed);
    arena_release(&comm->arena);
    free(comm);
}

void comm_begin_step(struct comm *comm)
{
    for (uint32_t i = 0; i < comm->instance_count; i++) {
        struct group_instance *c = &comm->instance[i];
        pthread_mutex_lock(&c->lock);
        memset(c->passed_members, 0, c->calls * sizeof *c->passed_members);
        memset(c->part, 0, (size_t)c->calls * c->size * sizeof *c->part);
        memset(c->barrier_count, 0, c->barriers * sizeof *c->barrier_count);
        memset(c->at_barrier, 0, (size_t)c->barriers * c->size * sizeof *c->at_barrier);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_lock(&comm->lock);
    memset(comm->message, 0, comm->run->assignment.message_count * sizeof *comm->message);
    pthread_mutex_unlock(&comm->lock);
}

void comm_stop(struct comm *comm)
{
    for (uint32_t i = 0; i < comm->instance_count; i++) {
        pthread_mutex_lock(&comm->instance[i].lock);
        pthread_cond_broadcast(&comm->instance[i].state_changed);
        pthread_mutex_unlock(&comm->instance[i].lock);
    }
    pthread_mutex_lock(&comm->lock);
    pthread_cond_broadcast(&comm->state_changed);
    pthread_mutex_unlock(&comm->lock);
}

static struct group_instance *instance_of(const struct comm *comm, uint32_t rank, uint32_t group)
{
    return &comm->instance[comm->instance_begin[group] +
                           assignment_group_instance(&comm->run->assignment, rank, group)];
}

bool comm_arrived(struct comm *comm, uint32_t rank, uint32_t op)
{
    const struct assignment *assignment = &comm->run->assignment;
    const struct work *work = ir_work(comm->run->ir, op);
    uint32_t group = (uint32_t)work_comm_group(work);
    bool here;
    if (work->kind == WORK_SEND || work->kind == WORK_RECV) {
        pthread_mutex_lock(&comm->lock);
        here = comm->message[assignment_message_number(assignment, rank, op)]
                   .end[work->kind == WORK_RECV]
                   .has_arrived;
        pthread_mutex_unlock(&comm->lock);
        return here;
    }
    if (assignment_group_instance(assignment, rank, group) == IR_NONE)
        return false;
    struct group_instance *c = instance_of(comm, rank, group);
    size_t at = (size_t)assignment->call_number[op] * c->size +
                assignment_group_index(assignment, rank, group);
    pthread_mutex_lock(&c->lock);
    here = work->kind == WORK_BARRIER ? c->at_barrier[at] : c->part[at].has_arrived;
    pthread_mutex_unlock(&c->lock);
    return here;
}

bool comm_barrier(struct comm *comm, uint32_t rank, uint32_t op)
{
    const struct assignment *assignment = &comm->run->assignment;
    uint32_t group = (uint32_t)ir_work(comm->run->ir, op)->barrier.group,
             call = assignment->call_number[op];
    struct group_instance *c = instance_of(comm, rank, group);
    pthread_mutex_lock(&c->lock);
    c->at_barrier[(size_t)call * c->size + assignment_group_index(assignment, rank, group)] = true;
    if (++c->barrier_count[call] == c->size)
        pthread_cond_broadcast(&c->state_changed);
    while (c->barrier_count[call] < c->size && !run_must_stop(comm->run))
        pthread_cond_wait(&c->state_changed, &c->lock);
    bool met = c->barrier_count[call] == c->size;
    pthread_mutex_unlock(&c->lock);
    return met;
}

/* ---- collectives ---- */

/* One member at work on one collective. */
struct comm_member {
    struct cpu_worker *worker;
    struct exec_run *run;
    struct group_instance *instance;
    const struct call *call;
    uint32_t number; /* of the collective */
    uint32_t index;
    struct collective_part *part; /* (size) of all members */
};

/* Waits until all members have passed phase `phase`, counted from 1. */
static bool pass_phase(const struct comm_member *m, uint32_t phase)
{
    struct group_instance *c = m->instance;
    uint32_t *passed = &c->passed_members[m->number], want = phase * c->size;
    atomic_fetch_sub(&m->run->running_ops, 1);
    pthread_mutex_lock(&c->lock);
    if (++*passed == want)
        pthread_cond_broadcast(&c->state_changed);
    while (*passed < want && !run_must_stop(m->run))
        pthread_cond_wait(&c->state_changed, &c->lock);
    bool met = *passed >= want;
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&m->run->running_ops, 1);
    return met;
}

static void part_of(const struct call *call, struct collective_part *part)
{
    *part = (struct collective_part){.has_arrived = true, .kind = call->work->kind};
    if (call->read_count > 0)
        part->send = call->read[0];
    if (call->write_count > 0)
        part->recv = call->write[0];
}

static void *element_of(struct operand operand, uint64_t i)
{
    return (char *)operand.data + i * dtype_bytes(operand.dtype);
}

/* Copies elements, unless the two addresses are equal, as they often are. */
static void move_elements(void *to, const void *from, uint64_t count, enum dtype dtype)
{
    if (to != from)
        memmove(to, from, count * dtype_bytes(dtype));
}

/* Returns where this member's slice of `count` elements begins in the send buffer of member k: usually at `begin`.
 * With relative slices it depends on k, since slice j is for the member j places before its sender. */
static uint64_t slice_begin(const struct comm_member *m, uint32_t k, uint64_t begin, uint64_t count)
{
    const struct work *work = m->call->work;
    uint32_t size = m->instance->size;
    bool relative = work->kind == WORK_REDUCE_SCATTER && work->collective.relative != 0;
    return relative ? (k + size - m->index) % size * count : begin;
}

/* Computes to = sum or maximum over members of their slices of `count` send elements. */
static void reduce_elements(const struct comm_member *m, void *to, uint64_t begin, uint64_t count,
                            enum reduce_op reduction)
{
    enum { BLOCK = 1024 };
    enum dtype dtype = m->part[0].send.dtype;
    float sum[BLOCK], term[BLOCK];
    for (uint64_t done = 0; done < count; done += BLOCK) {
        size_t n = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        uint64_t from = slice_begin(m, 0, begin, count) + done;
        number_to_f32(sum, element_of(m->part[0].send, from), dtype, n);
        for (uint32_t k = 1; k < m->instance->size; k++) {
            from = slice_begin(m, k, begin, count) + done;
            number_to_f32(term, element_of(m->part[k].send, from), dtype, n);
            if (reduction == REDUCE_MAX)
                for (size_t i = 0; i < n; i++)
                    sum[i] = term[i] > sum[i] ? term[i] : sum[i];
            else
                for (size_t i = 0; i < n; i++)
                    sum[i] += term[i];
        }
        number_from_f32((char *)to + done * dtype_bytes(dtype), dtype, sum, n);
    }
}

/* Computes an all-reduce: each member reduces its slice into its own result, and then all fetch the other slices. In
 * place this is safe: before the second phase only its owner touches a slice. */
static bool all_reduce(const struct comm_member *m)
{
    struct operand recv = m->part[m->index].recv;
    uint64_t size = m->instance->size, each = (recv.element_count + size - 1) / size;
    for (uint64_t k = 0; k < size; k++) {
        uint64_t slice = (m->index + k) % size, begin = slice * each;
        uint64_t end = begin + each < recv.element_count ? begin + each : recv.element_count;
        if (begin < end && k == 0)
            reduce_elements(m, element_of(recv, begin), begin, end - begin,
                            (enum reduce_op)m->call->work->all_reduce.op);
        if (k == 0 && !pass_phase(m, 2))
            return false;
        if (begin < end && k > 0)
            move_elements(element_of(recv, begin), element_of(m->part[slice].recv, begin),
                          end - begin, recv.dtype);
    }
    return true;
}

/* Returns the rows of the shape on another member of the group. */
static const struct assignment_rows *rows_of_member(const struct comm_member *m, uint32_t k)
{
    const struct assignment *assignment = &m->run->assignment;
    const struct ir *ir = m->run->ir;
    uint32_t group = (uint32_t)work_comm_group(m->call->work);
    uint32_t rank = group_member(&ir->mesh, &ir->group[group],
                                 assignment_group_instance(assignment, m->call->rank, group), k);
    return &assignment
                ->needed_rows[(size_t)assignment->needed_row_of_shape[ir->op.shape[m->call->op]] *
                                  assignment->ranks +
                              rank];
}

/* Fetches the rows of an exchange: those that this member needs of each other, or, back, those that it sent to each.
 * The rest of the room is zeroed. */
static void fetch_rows(const struct comm_member *m)
{
    const struct work *work = m->call->work;
    const struct operand *recv = &m->part[m->index].recv;
    const int64_t width = work->exchange.width;
    const struct assignment_rows *own = m->call->needed_rows;
    memset(recv->data, 0, recv->element_count * dtype_bytes(recv->dtype));
    for (uint32_t k = 0; k < m->instance->size; k++) {
        const struct assignment_rows *other = rows_of_member(m, k);
        const int64_t *into = work->exchange.back ? own->sent.first : own->received.first;
        const int64_t *from = work->exchange.back ? other->received.first : other->sent.first;
        for (int64_t p = 0; p < work->exchange.parts; p++)
            move_elements(
                element_of(*recv, (uint64_t)((p * work->exchange.to + into[k]) * width)),
                element_of(m->part[k].send,
                           (uint64_t)((p * work->exchange.rows + from[m->index]) * width)),
                (uint64_t)((into[k + 1] - into[k]) * width), recv->dtype);
    }
}

/* Fetches rows of experts: ahead, those that each rank has dealt to the rank's own experts; back, those that it
 * dealt. */
static void fetch_dealt(const struct comm_member *m)
{
    const struct routed_rows *dealt = m->call->routed_rows;
    const struct operand recv = m->part[m->index].recv;
    const int64_t cols = m->call->work->all_to_all.cols;
    const bool ahead = m->call->work->all_to_all.ahead > 0;
    const uint32_t index = dealt->first_expert / (dealt->experts / dealt->ranks);
    uint64_t to = 0, before = 0;
    for (uint32_t k = 0; k < index; k++)
        before += (uint64_t)(assignment_copies_for_member(dealt, k) * cols);
    for (uint32_t k = 0; k < dealt->ranks; k++) {
        const uint64_t rows = (uint64_t)assignment_copies_for_member(dealt, ahead ? index : k);
        const uint64_t from = ahead ? before : index * rows * (uint64_t)cols;
        move_elements(element_of(recv, to), element_of(m->part[k].send, from),
                      rows * (uint64_t)cols, recv.dtype);
        to += rows * (uint64_t)cols;
    }
}

/* Adds `count` elements to others of the same type. */
static void add_row(void *to, const void *from, uint64_t count, enum dtype dtype)
{
    enum { BLOCK = 1024 };
    float sum[BLOCK], term[BLOCK];
    const size_t size = dtype_bytes(dtype);
    for (uint64_t done = 0; done < count; done += BLOCK) {
        const size_t n = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        number_to_f32(sum, (char *)to + done * size, dtype, n);
        number_to_f32(term, (const char *)from + done * size, dtype, n);
        for (size_t i = 0; i < n; i++)
            sum[i] += term[i];
        number_from_f32((char *)to + done * size, dtype, sum, n);
    }
}

/* Ahead, fetches the tokens that have experts on this member, each once. Back, adds up what the members' experts
 * computed of this member's tokens. */
static void fetch_once(const struct comm_member *m)
{
    const struct routed_rows *dealt = m->call->routed_rows;
    const struct operand recv = m->part[m->index].recv;
    const int64_t cols = m->call->work->all_to_all.cols;
    const bool ahead = m->call->work->all_to_all.ahead > 0;
    uint64_t to = 0;
    if (!ahead)
        memset(recv.data, 0, recv.element_count * dtype_bytes(recv.dtype));
    for (uint32_t k = 0; k < dealt->ranks; k++) {
        const uint32_t member = ahead ? m->index : k;
        const int64_t first = dealt->first_sent_token[member],
                      end = dealt->first_sent_token[member + 1];
        for (int64_t i = first; i < end; i++, to++) {
            const uint64_t own = (uint64_t)(dealt->sent_token[i] * cols);
            if (ahead)
                move_elements(element_of(recv, to * (uint64_t)cols),
                              element_of(m->part[k].send, own), (uint64_t)cols, recv.dtype);
            else
                add_row(element_of(recv, own),
                        element_of(m->part[k].send,
                                   (uint64_t)((m->index * (end - first) + i - first) * cols)),
                        (uint64_t)cols, recv.dtype);
        }
    }
}

static void fetch_parts(const struct comm_member *m)
{
    const struct work *work = m->call->work;
    struct operand recv = m->part[m->index].recv;
    uint64_t size = m->instance->size, each = recv.element_count / size;
    uint32_t from = m->index;
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_TO_ALL:
        if (m->call->routed_rows != NULL) {
            if (work->all_to_all.once > 0)
                fetch_once(m);
            else
                fetch_dealt(m);
            break;
        }
        for (uint32_t k = 0; k < size; k++)
            move_elements(element_of(recv, k * each), element_of(m->part[k].send, m->index * each),
                          each, recv.dtype);
        break;
    case WORK_ALL_GATHER:
        for (uint32_t k = 0; k < size; k++) {
            from = work->collective.relative ? (m->index + (uint32_t)size - k) % (uint32_t)size : k;
            move_elements(element_of(recv, k * each), m->part[from].send.data, each, recv.dtype);
        }
        break;
    case WORK_REDUCE_SCATTER:
        reduce_elements(m, recv.data, m->index * recv.element_count, recv.element_count,
                        REDUCE_SUM);
        break;
    case WORK_REDUCE:
        if (m->index == (uint32_t)work->broadcast.root)
            reduce_elements(m, recv.data, 0, recv.element_count, REDUCE_SUM);
        break;
    case WORK_BROADCAST:
        from = (uint32_t)work->broadcast.root;
        move_elements(recv.data, m->part[from].send.data, recv.element_count, recv.dtype);
        break;
    case WORK_SCATTER:
        from = (uint32_t)work->broadcast.root;
        move_elements(recv.data, element_of(m->part[from].send, m->index * recv.element_count),
                      recv.element_count, recv.dtype);
        break;
    case WORK_EXCHANGE:
        fetch_rows(m);
        break;
    case WORK_SHIFT: {
        int64_t by = work->p2p.by % (int64_t)size;
        from = (uint32_t)(((int64_t)m->index - by + (int64_t)size) % (int64_t)size);
        move_elements(recv.data, m->part[from].send.data, recv.element_count, recv.dtype);
        break;
    }
    default:
        assert(!"a collective that fetches");
    }
}

/* Returns the bytes that a member sends to others, by an algorithm that wastes none. */
static double sent_bytes(const struct work *work, uint32_t size)
{
    double bytes = (double)work_payload_bytes(work), others = (double)size - 1;
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_TO_ALL:
    case WORK_REDUCE_SCATTER:
        return bytes * others / size;
    case WORK_ALL_GATHER:
        return bytes * others;
    case WORK_SCATTER: /* only the root's work, but the others wait for it */
        return bytes * others / size;
    case WORK_ALL_REDUCE:
        return 2 * bytes * others / size;
    default:
        return size > 1 ? bytes : 0;
    }
}

/* Checks that all members call the same kind with equal counts of the same type. */
static bool members_agree(const struct comm_member *m)
{
    const struct collective_part *own = &m->part[m->index];
    for (uint32_t k = 0; k < m->instance->size; k++) {
        const struct collective_part *other = &m->part[k];
        const struct operand *a = own->send.data ? &own->send : &own->recv;
        const struct operand *b = other->send.data ? &other->send : &other->recv;
        const bool equal = a->element_count == b->element_count || m->call->routed_rows != NULL;
        if (other->kind == own->kind && equal && a->dtype == b->dtype)
            continue;
        run_record_failure(
            m->run, m->call->rank, m->call->op,
            "has %" PRIu64 " elements of %s where member %" PRIu32 " of its group calls %s "
            "with %" PRIu64 " of %s",
            a->element_count, dtype_name(a->dtype), k, work_kind_info(other->kind)->name,
            b->element_count, dtype_name(b->dtype));
        return false;
    }
    return true;
}

static void sleep_for(struct cpu_worker *worker, double ready_s, double bytes)
{
    const struct exec_run *run = worker->run;
    cpu_sleep_until(cpu_link_arrival(&worker->rank->send, ready_s, bytes), &run->must_stop);
}

bool cpu_collective(void *context, struct call *call)
{
    struct cpu_worker *worker = context;
    struct exec_run *run = worker->run;
    const struct assignment *assignment = &run->assignment;
    uint32_t group = (uint32_t)work_comm_group(call->work);
    struct comm_member m = {
        .worker = worker,
        .run = run,
        .instance = instance_of(cpu_of(run)->comm, call->rank, group),
        .call = call,
        .number = assignment->call_number[call->op],
        .index = assignment_group_index(assignment, call->rank, group),
    };
    m.part = m.instance->part + (size_t)m.number * m.instance->size;
    pthread_mutex_lock(&m.instance->lock);
    part_of(call, &m.part[m.index]);
    pthread_mutex_unlock(&m.instance->lock);

    atomic_store(&worker->rendezvous, true);
    bool met = pass_phase(&m, 1);
    atomic_store(&worker->rendezvous, false);
    if (!met || !members_agree(&m))
        return false;
    double ready_s = run_now_s();
    uint32_t phase = 2;
    if (call->work->kind == WORK_ALL_REDUCE) {
        if (!all_reduce(&m))
            return false;
        phase = 3;
    } else {
        fetch_parts(&m);
    }
    sleep_for(worker, ready_s, sent_bytes(call->work, m.instance->size));
    return pass_phase(&m, phase);
}

/* ---- sends and receives ---- */

static bool pass_message(struct comm *comm, struct comm_message *message, uint32_t phase)
{
    uint32_t want = 2 * phase;
    atomic_fetch_sub(&comm->run->running_ops, 1);
    pthread_mutex_lock(&comm->lock);
    if (++message->passed_members == want)
        pthread_cond_broadcast(&comm->state_changed);
    while (message->passed_members < want && !run_must_stop(comm->run))
        pthread_cond_wait(&comm->state_changed, &comm->lock);
    bool met = message->passed_members >= want;
    pthread_mutex_unlock(&comm->lock);
    atomic_fetch_add(&comm->run->running_ops, 1);
    return met;
}

static bool carry_message(struct cpu_worker *worker, const struct call *call, bool receives)
{
    struct exec_run *run = worker->run;
    struct comm *comm = cpu_of(run)->comm;
    struct comm_message *message =
        &comm->message[assignment_message_number(&run->assignment, call->rank, call->op)];
    pthread_mutex_lock(&comm->lock);
    part_of(call, &message->end[receives]);
    pthread_mutex_unlock(&comm->lock);
    atomic_store(&worker->rendezvous, true);
    bool met = pass_message(comm, message, 1);
    atomic_store(&worker->rendezvous, false);
    if (!met)
        return false;
    double ready_s = run_now_s();
    const struct operand *from = &message->end[0].send, *to = &message->end[1].recv;
    if (from->element_count != to->element_count || from->dtype != to->dtype) {
        run_record_failure(run, call->rank, call->op,
                           "the two ends of the message differ in size: %" PRIu64
                           " elements of %s are sent, %" PRIu64 " of %s received",
                           from->element_count, dtype_name(from->dtype), to->element_count,
                           dtype_name(to->dtype));
        return false;
    }
    if (receives)
        move_elements(to->data, from->data, to->element_count, to->dtype);
    else
        sleep_for(worker, ready_s, (double)work_payload_bytes(call->work));
    return pass_message(comm, message, 2);
}

bool cpu_send(void *context, struct call *call)
{
    return carry_message(context, call, false);
}

bool cpu_recv(void *context, struct call *call)
{
    return carry_message(context, call, true);
}
