#include "exec/cpu/comm.h"
#include "exec/assignment.h"

#include "exec/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The operands with which one member takes part in a collective, or one end in a message. */
struct member_call {
    bool has_arrived;
    enum work_kind kind;
    struct operand send, recv;
};

/* The state of the collectives and barriers of one instance of a group. The collectives of a step are numbered from 0
 * in each instance, and so are the barriers. A member passes a collective in phases: after phase 1 all have published
 * their operands; in an all-reduce, after phase 2 all have reduced their slices; after the last phase all have their
 * results. */
struct group_instance {
    pthread_mutex_t lock;
    pthread_cond_t state_changed;
    uint32_t member_count;
    uint32_t collectives_per_step, barriers_per_step;
    /* (collectives_per_step) how often a member has passed a phase, summed over the members */
    uint32_t *phase_passes_by_collective;
    struct member_call *parts;  /* (collectives_per_step, member_count) */
    uint32_t *barrier_arrivals; /* (barriers_per_step) members that have arrived */
    bool *has_reached_barrier;  /* (barriers_per_step, member_count) */
};

/* One message between two ranks. */
struct comm_message {
    struct member_call operands_of_sender_and_receiver[2]; /* of the sender, of the receiver */
    /* how often the two ranks together have passed a phase: 2 once both have given their operands, and 4 once the bytes
     * have moved */
    uint32_t phase_passes;
};

struct comm {
    struct exec_run *run;
    /* (groups) row in instances[] of the group's first instance */
    uint32_t *first_instance_by_group;
    uint32_t instance_count;
    struct group_instance *instances;
    pthread_mutex_t message_lock; /* guards the messages */
    pthread_cond_t message_changed;
    struct comm_message *messages;
    struct arena arena;
};

struct comm *comm_new(struct exec_run *run)
{
    const struct assignment *assignment = &run->assignment;
    uint32_t groups = run->ir->group_count;
    struct comm *comm = heap_zalloc(1, sizeof *comm);
    comm->run = run;
    comm->first_instance_by_group =
        arena_array(&comm->arena, groups, sizeof *comm->first_instance_by_group);
    for (uint32_t g = 0; g < groups; g++) {
        comm->first_instance_by_group[g] = comm->instance_count;
        comm->instance_count += assignment->instance_count_by_group[g];
    }
    comm->instances = arena_array(&comm->arena, comm->instance_count, sizeof *comm->instances);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t i = 0; i < assignment->instance_count_by_group[g]; i++) {
            struct group_instance *c = &comm->instances[comm->first_instance_by_group[g] + i];
            pthread_mutex_init(&c->lock, NULL);
            pthread_cond_init(&c->state_changed, NULL);
            c->member_count = assignment->member_count_by_group[g];
            c->collectives_per_step = assignment->max_collectives_of_role_by_group[g];
            c->barriers_per_step = assignment->max_barriers_of_role_by_group[g];
            c->phase_passes_by_collective = arena_array(&comm->arena, c->collectives_per_step,
                                                        sizeof *c->phase_passes_by_collective);
            c->parts = arena_array(&comm->arena, (size_t)c->collectives_per_step * c->member_count,
                                   sizeof *c->parts);
            c->barrier_arrivals =
                arena_array(&comm->arena, c->barriers_per_step, sizeof *c->barrier_arrivals);
            c->has_reached_barrier =
                arena_array(&comm->arena, (size_t)c->barriers_per_step * c->member_count,
                            sizeof *c->has_reached_barrier);
        }
    pthread_mutex_init(&comm->message_lock, NULL);
    pthread_cond_init(&comm->message_changed, NULL);
    comm->messages = arena_array(&comm->arena, assignment->message_count, sizeof *comm->messages);
    return comm;
}

void comm_free(struct comm *comm)
{
    if (comm == NULL)
        return;
    for (uint32_t i = 0; i < comm->instance_count; i++) {
        pthread_mutex_destroy(&comm->instances[i].lock);
        pthread_cond_destroy(&comm->instances[i].state_changed);
    }
    pthread_mutex_destroy(&comm->message_lock);
    pthread_cond_destroy(&comm->message_changed);
    arena_release(&comm->arena);
    free(comm);
}

void comm_begin_step(struct comm *comm)
{
    for (uint32_t i = 0; i < comm->instance_count; i++) {
        struct group_instance *c = &comm->instances[i];
        pthread_mutex_lock(&c->lock);
        memset(c->phase_passes_by_collective, 0,
               c->collectives_per_step * sizeof *c->phase_passes_by_collective);
        memset(c->parts, 0, (size_t)c->collectives_per_step * c->member_count * sizeof *c->parts);
        memset(c->barrier_arrivals, 0, c->barriers_per_step * sizeof *c->barrier_arrivals);
        memset(c->has_reached_barrier, 0,
               (size_t)c->barriers_per_step * c->member_count * sizeof *c->has_reached_barrier);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_lock(&comm->message_lock);
    memset(comm->messages, 0, comm->run->assignment.message_count * sizeof *comm->messages);
    pthread_mutex_unlock(&comm->message_lock);
}

void comm_stop(struct comm *comm)
{
    for (uint32_t i = 0; i < comm->instance_count; i++) {
        pthread_mutex_lock(&comm->instances[i].lock);
        pthread_cond_broadcast(&comm->instances[i].state_changed);
        pthread_mutex_unlock(&comm->instances[i].lock);
    }
    pthread_mutex_lock(&comm->message_lock);
    pthread_cond_broadcast(&comm->message_changed);
    pthread_mutex_unlock(&comm->message_lock);
}

static struct group_instance *instance_of_rank(const struct comm *comm, uint32_t rank,
                                               uint32_t group)
{
    return &comm->instances[comm->first_instance_by_group[group] +
                            assignment_group_instance(&comm->run->assignment, rank, group)];
}

bool comm_rank_has_arrived(struct comm *comm, uint32_t rank, uint32_t op)
{
    const struct assignment *assignment = &comm->run->assignment;
    const struct work *work = ir_work(comm->run->ir, op);
    uint32_t group = (uint32_t)work_comm_group(work);
    bool has_arrived;
    if (work->kind == WORK_SEND || work->kind == WORK_RECV) {
        pthread_mutex_lock(&comm->message_lock);
        has_arrived = comm->messages[assignment_message_index(assignment, rank, op)]
                          .operands_of_sender_and_receiver[work->kind == WORK_RECV]
                          .has_arrived;
        pthread_mutex_unlock(&comm->message_lock);
        return has_arrived;
    }
    if (assignment_group_instance(assignment, rank, group) == IR_NONE)
        return false;
    struct group_instance *c = instance_of_rank(comm, rank, group);
    size_t at = (size_t)assignment->collective_number_by_op[op] * c->member_count +
                assignment_group_index(assignment, rank, group);
    pthread_mutex_lock(&c->lock);
    has_arrived =
        work->kind == WORK_BARRIER ? c->has_reached_barrier[at] : c->parts[at].has_arrived;
    pthread_mutex_unlock(&c->lock);
    return has_arrived;
}

bool comm_wait_at_barrier(struct comm *comm, uint32_t rank, uint32_t op)
{
    const struct assignment *assignment = &comm->run->assignment;
    uint32_t group = (uint32_t)ir_work(comm->run->ir, op)->barrier.group,
             number = assignment->collective_number_by_op[op];
    struct group_instance *c = instance_of_rank(comm, rank, group);
    pthread_mutex_lock(&c->lock);
    c->has_reached_barrier[(size_t)number * c->member_count +
                           assignment_group_index(assignment, rank, group)] = true;
    if (++c->barrier_arrivals[number] == c->member_count)
        pthread_cond_broadcast(&c->state_changed);
    while (c->barrier_arrivals[number] < c->member_count && !run_must_stop(comm->run))
        pthread_cond_wait(&c->state_changed, &c->lock);
    bool all_have_arrived = c->barrier_arrivals[number] == c->member_count;
    pthread_mutex_unlock(&c->lock);
    return all_have_arrived;
}

/* ---- collectives ---- */

/* One member of a group while it takes part in one collective. */
struct collective_member {
    struct cpu_worker *worker;
    struct exec_run *run;
    struct group_instance *instance;
    const struct call *call;
    /* number of the collective among those of its group in the step */
    uint32_t collective_number;
    uint32_t member_index;
    struct member_call *parts; /* (member_count) the operands of all members */
};

/* Counts this member as having passed phase `phase`, from 1, and waits until all members have. Returns false if the run
 * has failed. */
static bool wait_for_phase(const struct collective_member *m, uint32_t phase)
{
    struct group_instance *c = m->instance;
    uint32_t *passed = &c->phase_passes_by_collective[m->collective_number],
             want = phase * c->member_count;
    atomic_fetch_sub(&m->run->running_op_count, 1);
    pthread_mutex_lock(&c->lock);
    if (++*passed == want)
        pthread_cond_broadcast(&c->state_changed);
    while (*passed < want && !run_must_stop(m->run))
        pthread_cond_wait(&c->state_changed, &c->lock);
    bool all_have_arrived = *passed >= want;
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&m->run->running_op_count, 1);
    return all_have_arrived;
}

static void publish_member_call(const struct call *call, struct member_call *part)
{
    *part = (struct member_call){.has_arrived = true, .kind = call->work->kind};
    if (call->read_count > 0)
        part->send = call->read[0];
    if (call->write_count > 0)
        part->recv = call->write[0];
}

static void *element_address(struct operand operand, uint64_t i)
{
    return (char *)operand.data + i * dtype_bytes(operand.dtype);
}

/* Copies elements. Does nothing if the two addresses are equal, as they are for a collective in place. */
static void copy_elements(void *to, const void *from, uint64_t count, enum dtype dtype)
{
    if (to != from)
        memmove(to, from, count * dtype_bytes(dtype));
}

/* Returns where, in the send buffer of member k, the slice of `count` elements for this member begins. It is `begin`,
 * but in a relative reduce-scatter it depends on k: there slice j of a member is for the member j ranks before it. */
static uint64_t slice_begin(const struct collective_member *m, uint32_t k, uint64_t begin,
                            uint64_t count)
{
    const struct work *work = m->call->work;
    uint32_t size = m->instance->member_count;
    bool relative = work->kind == WORK_REDUCE_SCATTER && work->collective.relative != 0;
    return relative ? (k + size - m->member_index) % size * count : begin;
}

/* Sets `count` elements of `to` to the sum or the maximum, over all members, of their slices for this member
 * (slice_begin()). */
static void reduce_elements(const struct collective_member *m, void *to, uint64_t begin,
                            uint64_t count, enum reduce_op reduction)
{
    enum { BLOCK = 1024 };
    enum dtype dtype = m->parts[0].send.dtype;
    float sum[BLOCK], term[BLOCK];
    for (uint64_t done = 0; done < count; done += BLOCK) {
        size_t n = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        uint64_t from = slice_begin(m, 0, begin, count) + done;
        number_to_f32(sum, element_address(m->parts[0].send, from), dtype, n);
        for (uint32_t k = 1; k < m->instance->member_count; k++) {
            from = slice_begin(m, k, begin, count) + done;
            number_to_f32(term, element_address(m->parts[k].send, from), dtype, n);
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

/* Computes an all-reduce. Each member reduces its own slice into its result; after phase 2 it fetches the other slices
 * from their members. It may run in place: before the end of phase 2 only its own member reads or writes a slice.
 * Returns false if the run has failed. */
static bool all_reduce(const struct collective_member *m)
{
    struct operand recv = m->parts[m->member_index].recv;
    uint64_t size = m->instance->member_count, each = (recv.element_count + size - 1) / size;
    for (uint64_t k = 0; k < size; k++) {
        uint64_t slice = (m->member_index + k) % size, begin = slice * each;
        uint64_t end = begin + each < recv.element_count ? begin + each : recv.element_count;
        if (begin < end && k == 0)
            reduce_elements(m, element_address(recv, begin), begin, end - begin,
                            (enum reduce_op)m->call->work->all_reduce.op);
        if (k == 0 && !wait_for_phase(m, 2))
            return false;
        if (begin < end && k > 0)
            copy_elements(element_address(recv, begin),
                          element_address(m->parts[slice].recv, begin), end - begin, recv.dtype);
    }
    return true;
}

/* Returns the rows that member k of the group sends and receives in this EXCHANGE. */
static const struct assignment_exchanged_rows *
exchanged_rows_of_member(const struct collective_member *m, uint32_t k)
{
    const struct assignment *assignment = &m->run->assignment;
    const struct ir *ir = m->run->ir;
    uint32_t group = (uint32_t)work_comm_group(m->call->work);
    uint32_t rank =
        group_global_rank_of_member(&ir->mesh, &ir->group[group],
                                    assignment_group_instance(assignment, m->call->rank, group), k);
    return &assignment->exchanged_rows
                [(size_t)assignment->exchanged_rows_index_by_shape[ir->op.shape[m->call->op]] *
                     assignment->ranks +
                 rank];
}

/* Fetches rows of an EXCHANGE from each member: the rows that this member needs of it or, with exchange.back, what it
 * has made of the rows that this member had sent. The rest of the result becomes zero. */
static void fetch_exchanged_rows(const struct collective_member *m)
{
    const struct work *work = m->call->work;
    const struct operand *recv = &m->parts[m->member_index].recv;
    const int64_t width = work->exchange.width;
    const struct assignment_exchanged_rows *own = m->call->exchanged_rows;
    memset(recv->data, 0, recv->element_count * dtype_bytes(recv->dtype));
    for (uint32_t k = 0; k < m->instance->member_count; k++) {
        const struct assignment_exchanged_rows *other = exchanged_rows_of_member(m, k);
        const int64_t *into =
            work->exchange.back ? own->sent.first_row_by_peer : own->received.first_row_by_peer;
        const int64_t *from =
            work->exchange.back ? other->received.first_row_by_peer : other->sent.first_row_by_peer;
        for (int64_t p = 0; p < work->exchange.parts; p++)
            copy_elements(
                element_address(*recv, (uint64_t)((p * work->exchange.to + into[k]) * width)),
                element_address(
                    m->parts[k].send,
                    (uint64_t)((p * work->exchange.rows + from[m->member_index]) * width)),
                (uint64_t)((into[k + 1] - into[k]) * width), recv->dtype);
    }
}

/* Fetches rows of experts in an all-to-all: with all_to_all.ahead, the rows that each rank sends to this rank's
 * experts; else the results for the rows that this rank had sent. */
static void fetch_routed_rows(const struct collective_member *m)
{
    const struct routed_rows *routed = m->call->routed_rows;
    const struct operand recv = m->parts[m->member_index].recv;
    const int64_t cols = m->call->work->all_to_all.cols;
    const bool ahead = m->call->work->all_to_all.ahead > 0;
    const uint32_t index = routed->first_expert / (routed->experts / routed->ranks);
    uint64_t to = 0, before = 0;
    for (uint32_t k = 0; k < index; k++)
        before += (uint64_t)(assignment_rows_per_rank_of_member(routed, k) * cols);
    for (uint32_t k = 0; k < routed->ranks; k++) {
        const uint64_t rows =
            (uint64_t)assignment_rows_per_rank_of_member(routed, ahead ? index : k);
        const uint64_t from = ahead ? before : index * rows * (uint64_t)cols;
        copy_elements(element_address(recv, to), element_address(m->parts[k].send, from),
                      rows * (uint64_t)cols, recv.dtype);
        to += rows * (uint64_t)cols;
    }
}

/* Adds `count` elements of `from` to those of `to`, which have the same type. */
static void add_elements(void *to, const void *from, uint64_t count, enum dtype dtype)
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

/* Runs an all-to-all that moves each token once. With all_to_all.ahead it fetches the tokens that have an expert on
 * this member. Else it sums, for each of this member's tokens, what the members with its experts have computed. */
static void exchange_each_token_once(const struct collective_member *m)
{
    const struct routed_rows *routed = m->call->routed_rows;
    const struct operand recv = m->parts[m->member_index].recv;
    const int64_t cols = m->call->work->all_to_all.cols;
    const bool ahead = m->call->work->all_to_all.ahead > 0;
    uint64_t to = 0;
    if (!ahead)
        memset(recv.data, 0, recv.element_count * dtype_bytes(recv.dtype));
    for (uint32_t k = 0; k < routed->ranks; k++) {
        const uint32_t member = ahead ? m->member_index : k;
        const int64_t first = routed->first_sent_token[member],
                      end = routed->first_sent_token[member + 1];
        for (int64_t i = first; i < end; i++, to++) {
            const uint64_t own = (uint64_t)(routed->sent_token[i] * cols);
            if (ahead)
                copy_elements(element_address(recv, to * (uint64_t)cols),
                              element_address(m->parts[k].send, own), (uint64_t)cols, recv.dtype);
            else
                add_elements(element_address(recv, own),
                             element_address(
                                 m->parts[k].send,
                                 (uint64_t)((m->member_index * (end - first) + i - first) * cols)),
                             (uint64_t)cols, recv.dtype);
        }
    }
}

static void compute_member_result(const struct collective_member *m)
{
    const struct work *work = m->call->work;
    struct operand recv = m->parts[m->member_index].recv;
    uint64_t size = m->instance->member_count, each = recv.element_count / size;
    uint32_t from = m->member_index;
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_TO_ALL:
        if (m->call->routed_rows != NULL) {
            if (work->all_to_all.once > 0)
                exchange_each_token_once(m);
            else
                fetch_routed_rows(m);
            break;
        }
        for (uint32_t k = 0; k < size; k++)
            copy_elements(element_address(recv, k * each),
                          element_address(m->parts[k].send, m->member_index * each), each,
                          recv.dtype);
        break;
    case WORK_ALL_GATHER:
        for (uint32_t k = 0; k < size; k++) {
            from = work->collective.relative
                       ? (m->member_index + (uint32_t)size - k) % (uint32_t)size
                       : k;
            copy_elements(element_address(recv, k * each), m->parts[from].send.data, each,
                          recv.dtype);
        }
        break;
    case WORK_REDUCE_SCATTER:
        reduce_elements(m, recv.data, m->member_index * recv.element_count, recv.element_count,
                        REDUCE_SUM);
        break;
    case WORK_REDUCE:
        if (m->member_index == (uint32_t)work->broadcast.root)
            reduce_elements(m, recv.data, 0, recv.element_count, REDUCE_SUM);
        break;
    case WORK_BROADCAST:
        from = (uint32_t)work->broadcast.root;
        copy_elements(recv.data, m->parts[from].send.data, recv.element_count, recv.dtype);
        break;
    case WORK_SCATTER:
        from = (uint32_t)work->broadcast.root;
        copy_elements(recv.data,
                      element_address(m->parts[from].send, m->member_index * recv.element_count),
                      recv.element_count, recv.dtype);
        break;
    case WORK_EXCHANGE:
        fetch_exchanged_rows(m);
        break;
    case WORK_SHIFT: {
        int64_t by = work->p2p.by % (int64_t)size;
        from = (uint32_t)(((int64_t)m->member_index - by + (int64_t)size) % (int64_t)size);
        copy_elements(recv.data, m->parts[from].send.data, recv.element_count, recv.dtype);
        break;
    }
    default:
        assert(!"a collective that fetches");
    }
}

/* Returns the bytes with which a collective keeps the emulated link of each member of a group of `size` busy. In an
 * all-to-all, reduce-scatter, all-gather or all-reduce these are the fewest that a member can send. In other kinds they
 * are the payload, in a scatter without the root's own part. */
static double least_sent_bytes(const struct work *work, uint32_t size)
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

/* Checks that all members call the same kind of collective with the same dtype and, unless it moves rows of experts,
 * with equally many elements. If they do not, records a failure of the run and returns false. */
static bool check_members_call_same_collective(const struct collective_member *m)
{
    const struct member_call *own = &m->parts[m->member_index];
    for (uint32_t k = 0; k < m->instance->member_count; k++) {
        const struct member_call *other = &m->parts[k];
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

static void sleep_while_sending(struct cpu_worker *worker, double ready_s, double bytes)
{
    const struct exec_run *run = worker->run;
    cpu_sleep_until(cpu_link_send_and_get_arrival_s(&worker->rank->send_link, ready_s, bytes),
                    &run->must_stop);
}

bool cpu_collective(void *context, struct call *call)
{
    struct cpu_worker *worker = context;
    struct exec_run *run = worker->run;
    const struct assignment *assignment = &run->assignment;
    uint32_t group = (uint32_t)work_comm_group(call->work);
    struct collective_member m = {
        .worker = worker,
        .run = run,
        .instance = instance_of_rank(cpu_of_run(run)->comm, call->rank, group),
        .call = call,
        .collective_number = assignment->collective_number_by_op[call->op],
        .member_index = assignment_group_index(assignment, call->rank, group),
    };
    m.parts = m.instance->parts + (size_t)m.collective_number * m.instance->member_count;
    pthread_mutex_lock(&m.instance->lock);
    publish_member_call(call, &m.parts[m.member_index]);
    pthread_mutex_unlock(&m.instance->lock);

    atomic_store(&worker->waits_for_ranks, true);
    bool all_have_arrived = wait_for_phase(&m, 1);
    atomic_store(&worker->waits_for_ranks, false);
    if (!all_have_arrived || !check_members_call_same_collective(&m))
        return false;
    double ready_s = run_now_s();
    uint32_t phase = 2;
    if (call->work->kind == WORK_ALL_REDUCE) {
        if (!all_reduce(&m))
            return false;
        phase = 3;
    } else {
        compute_member_result(&m);
    }
    sleep_while_sending(worker, ready_s, least_sent_bytes(call->work, m.instance->member_count));
    return wait_for_phase(&m, phase);
}

/* ---- sends and receives ---- */

static bool wait_for_message_phase(struct comm *comm, struct comm_message *message, uint32_t phase)
{
    uint32_t want = 2 * phase;
    atomic_fetch_sub(&comm->run->running_op_count, 1);
    pthread_mutex_lock(&comm->message_lock);
    if (++message->phase_passes == want)
        pthread_cond_broadcast(&comm->message_changed);
    while (message->phase_passes < want && !run_must_stop(comm->run))
        pthread_cond_wait(&comm->message_changed, &comm->message_lock);
    bool all_have_arrived = message->phase_passes >= want;
    pthread_mutex_unlock(&comm->message_lock);
    atomic_fetch_add(&comm->run->running_op_count, 1);
    return all_have_arrived;
}

static bool exchange_message(struct cpu_worker *worker, const struct call *call, bool receives)
{
    struct exec_run *run = worker->run;
    struct comm *comm = cpu_of_run(run)->comm;
    struct comm_message *message =
        &comm->messages[assignment_message_index(&run->assignment, call->rank, call->op)];
    pthread_mutex_lock(&comm->message_lock);
    publish_member_call(call, &message->operands_of_sender_and_receiver[receives]);
    pthread_mutex_unlock(&comm->message_lock);
    atomic_store(&worker->waits_for_ranks, true);
    bool all_have_arrived = wait_for_message_phase(comm, message, 1);
    atomic_store(&worker->waits_for_ranks, false);
    if (!all_have_arrived)
        return false;
    double ready_s = run_now_s();
    const struct operand *from = &message->operands_of_sender_and_receiver[0].send,
                         *to = &message->operands_of_sender_and_receiver[1].recv;
    if (from->element_count != to->element_count || from->dtype != to->dtype) {
        run_record_failure(run, call->rank, call->op,
                           "the two ends of the message differ in size: %" PRIu64
                           " elements of %s are sent, %" PRIu64 " of %s received",
                           from->element_count, dtype_name(from->dtype), to->element_count,
                           dtype_name(to->dtype));
        return false;
    }
    if (receives)
        copy_elements(to->data, from->data, to->element_count, to->dtype);
    else
        sleep_while_sending(worker, ready_s, (double)work_payload_bytes(call->work));
    return wait_for_message_phase(comm, message, 2);
}

bool cpu_send(void *context, struct call *call)
{
    return exchange_message(context, call, false);
}

bool cpu_recv(void *context, struct call *call)
{
    return exchange_message(context, call, true);
}
