/* Communication of ranks that share a GPU: copies on the device, ordered by events.
 *
 * An op that has reached the head of its stream records its `begin` and waits here. The last member to arrive launches
 * the communication for all. Each member's stream waits for the `begin` of its peers, fetches its own part from their
 * buffers, and records `copies_end_event`. Before it continues it waits for the `copies_end_event` of its peers, so
 * that no buffer is reused while another member reads it. Streams wait only for events that have been recorded. Members
 * are added in their order, so a sum has the same bits on every rank and in every run. */
#include "exec/cuda/cuda.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The part of one member in a rendezvous: its stream, its op and its operands. */
struct loopback_member {
    struct cuda_stream *stream; /* NULL: the member has not arrived */
    uint32_t op;
    struct call call;
};

/* A rendezvous: one collective of a group instance, or one message between two ranks, for which its members arrive. */
struct rendezvous {
    struct loopback_member *parts; /* (member_count) */
    uint32_t member_count, arrived_members;
};

/* All rendezvous of a step. Those of collectives are ordered by group, then by instance, then by the collective's
 * number. */
struct loopback_rendezvous_list {
    struct arena arena;
    /* (groups) the index in rendezvous[] of the group's first one */
    uint32_t *first_rendezvous_by_group;
    struct rendezvous *rendezvous;
    uint32_t rendezvous_count;
    /* (assignment.message_count) the rendezvous of messages, each of its sender and its receiver */
    struct rendezvous *message_rendezvous;
    /* (CUDA_REDUCE_MEMBERS_MAX) the addresses of the members' send buffers, while a reduction is launched */
    const void **send_addresses;
};

static struct rendezvous *rendezvous_new(struct loopback_rendezvous_list *l, uint32_t count,
                                         uint32_t size)
{
    struct rendezvous *rendezvous = arena_array(&l->arena, count, sizeof *rendezvous);
    for (uint32_t i = 0; i < count; i++)
        rendezvous[i] = (struct rendezvous){
            arena_array(&l->arena, size, sizeof(struct loopback_member)), size, 0};
    return rendezvous;
}

enum status loopback_open(struct cuda *cuda, struct diag *diag)
{
    const struct ir *ir = cuda->run->ir;
    const struct assignment *assignment = &cuda->run->assignment;
    struct loopback_rendezvous_list *l = heap_zalloc(1, sizeof *l);
    cuda->loopback = l;
    l->first_rendezvous_by_group =
        arena_array(&l->arena, ir->group_count, sizeof *l->first_rendezvous_by_group);
    for (uint32_t g = 0; g < ir->group_count; g++) {
        l->first_rendezvous_by_group[g] = l->rendezvous_count;
        l->rendezvous_count += assignment->instance_count_by_group[g] *
                               assignment->max_collectives_of_role_by_group[g];
        if (assignment->max_collectives_of_role_by_group[g] > 0 &&
            assignment->member_count_by_group[g] > CUDA_REDUCE_MEMBERS_MAX)
            return diag_error(diag, (struct loc){cuda->run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                              "group %s has %" PRIu32 " members; at most %d ranks of a group can "
                              "share one GPU",
                              ir->group[g].name, assignment->member_count_by_group[g],
                              CUDA_REDUCE_MEMBERS_MAX);
    }
    l->rendezvous = arena_array(&l->arena, l->rendezvous_count, sizeof *l->rendezvous);
    for (uint32_t g = 0; g < ir->group_count; g++) {
        uint32_t count = assignment->instance_count_by_group[g] *
                         assignment->max_collectives_of_role_by_group[g];
        struct rendezvous *made = rendezvous_new(l, count, assignment->member_count_by_group[g]);
        if (count > 0)
            memcpy(&l->rendezvous[l->first_rendezvous_by_group[g]], made, count * sizeof *made);
    }
    l->message_rendezvous = rendezvous_new(l, assignment->message_count, 2);
    l->send_addresses =
        (const void **)arena_array(&l->arena, CUDA_REDUCE_MEMBERS_MAX, sizeof *l->send_addresses);
    return STATUS_OK;
}

void loopback_close(struct cuda *cuda)
{
    if (cuda->loopback == NULL)
        return;
    arena_release(&cuda->loopback->arena);
    free(cuda->loopback);
}

static void clear_arrivals(struct rendezvous *rendezvous, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rendezvous[i].arrived_members = 0;
        memset(rendezvous[i].parts, 0, rendezvous[i].member_count * sizeof *rendezvous[i].parts);
    }
}

void loopback_begin_step(struct cuda *cuda)
{
    clear_arrivals(cuda->loopback->rendezvous, cuda->loopback->rendezvous_count);
    clear_arrivals(cuda->loopback->message_rendezvous, cuda->run->assignment.message_count);
}

/* ---- the members of a rendezvous, and their copies ---- */

static cudaEvent_t begin_event_of_member(const struct loopback_member *part)
{
    return cuda_events_of(part->stream->rank, part->op)->begin;
}

static cudaEvent_t copies_end_event_of_member(const struct loopback_member *part)
{
    return cuda_events_of(part->stream->rank, part->op)->copies_end_event;
}

/* Makes a member's stream wait for an event of every other member. Returns false if the run has failed. */
static bool wait_for_peers_event(const struct rendezvous *m, uint32_t own,
                                 cudaEvent_t (*event)(const struct loopback_member *part))
{
    for (uint32_t k = 0; k < m->member_count; k++)
        if (k != own &&
            !cuda_wait_event(m->parts[own].stream, m->parts[own].op, event(&m->parts[k])))
            return false;
    return true;
}

static bool record_copies_ended(const struct loopback_member *part)
{
    return cuda_record_event(part->stream, part->op, copies_end_event_of_member(part));
}

static void *element_address(struct operand operand, uint64_t i)
{
    return (char *)operand.data + i * dtype_bytes((enum dtype)operand.dtype);
}

/* Enqueues a copy of elements. Does nothing if the two addresses are equal, as they are for a collective in place. */
static bool copy_elements(const struct loopback_member *part, void *to, const void *from,
                          uint64_t count)
{
    const struct operand *any =
        part->call.write_count > 0 ? &part->call.write[0] : &part->call.read[0];
    if (to == from || count == 0)
        return true;
    cuda_begin_cupti_range_of_op(part->stream->rank, part->op);
    cudaError_t error = cudaMemcpyAsync(to, from, count * dtype_bytes((enum dtype)any->dtype),
                                        cudaMemcpyDeviceToDevice, part->stream->handle);
    cuda_end_cupti_range();
    return error == cudaSuccess ||
           cuda_record_failure(part->stream->rank, part->op, "cudaMemcpyAsync", error);
}

/* Returns where, in the send buffer of member k, the slice of `count` elements for this member begins. It is `begin`,
 * but in a relative reduce-scatter it depends on k: there slice j of a member is for the member j ranks before it. */
static uint64_t slice_begin(const struct rendezvous *m, const struct loopback_member *part,
                            uint32_t k, uint64_t begin, uint64_t count)
{
    const struct work *work = part->call.work;
    uint32_t own = (uint32_t)(part - m->parts);
    bool relative = work->kind == WORK_REDUCE_SCATTER && work->collective.relative != 0;
    return relative ? (k + m->member_count - own) % m->member_count * count : begin;
}

/* Enqueues a kernel that sets `count` elements of `to` to the sum or the maximum, over all members, of their slices for
 * this member (slice_begin()). */
static bool reduce_parts(struct loopback_rendezvous_list *l, const struct rendezvous *m,
                         const struct loopback_member *part, void *to, uint64_t begin,
                         uint64_t count, enum reduce_op reduction)
{
    if (count == 0)
        return true;
    for (uint32_t k = 0; k < m->member_count; k++)
        l->send_addresses[k] =
            element_address(m->parts[k].call.read[0], slice_begin(m, part, k, begin, count));
    struct cuda_array array = {to, part->call.write[0].dtype};
    cuda_begin_cupti_range_of_op(part->stream->rank, part->op);
    cudaError_t error =
        (cudaError_t)cuda_reduce(array, l->send_addresses, (int)m->member_count,
                                 reduction == REDUCE_MAX, (int64_t)count, part->stream->handle);
    cuda_end_cupti_range();
    return error == cudaSuccess ||
           cuda_record_failure(part->stream->rank, part->op, "launching a reduction", error);
}

/* Fetches rows of an EXCHANGE from each member: the rows that this member needs of it or, with exchange.back, what it
 * has made of the rows that this member had sent. The rest of the result becomes zero. */
static bool fetch_needed_rows(const struct rendezvous *m, uint32_t own)
{
    const struct loopback_member *part = &m->parts[own];
    const struct operand *to = &part->call.write[0];
    const struct work *work = part->call.work;
    const bool back = work->exchange.back != 0;
    const int64_t width = work->exchange.width;
    const int64_t *into = back ? part->call.exchanged_rows->sent.first_row_by_peer
                               : part->call.exchanged_rows->received.first_row_by_peer;
    cuda_begin_cupti_range_of_op(part->stream->rank, part->op);
    cudaError_t error = cudaMemsetAsync(
        to->data, 0, to->element_count * dtype_bytes((enum dtype)to->dtype), part->stream->handle);
    cuda_end_cupti_range();
    if (error != cudaSuccess)
        return cuda_record_failure(part->stream->rank, part->op, "cudaMemsetAsync", error);
    for (uint32_t k = 0; k < m->member_count; k++) {
        const struct call *other = &m->parts[k].call;
        const int64_t *from = back ? other->exchanged_rows->received.first_row_by_peer
                                   : other->exchanged_rows->sent.first_row_by_peer;
        for (int64_t p = 0; p < work->exchange.parts; p++)
            if (!copy_elements(
                    part,
                    element_address(*to, (uint64_t)((p * work->exchange.to + into[k]) * width)),
                    element_address(other->read[0],
                                    (uint64_t)((p * work->exchange.rows + from[own]) * width)),
                    (uint64_t)((into[k + 1] - into[k]) * width)))
                return false;
    }
    return true;
}

/* Fetches rows of experts in an all-to-all: with all_to_all.ahead, the rows that each member sends to this member's
 * experts; else the results for the rows that this member had sent. */
static bool fetch_routed_rows(const struct rendezvous *m, uint32_t own)
{
    const struct loopback_member *part = &m->parts[own];
    const struct work *work = part->call.work;
    const uint64_t cols = (uint64_t)work->all_to_all.cols;
    const bool ahead = work->all_to_all.ahead > 0;
    const uint64_t mine =
        (uint64_t)assignment_rows_per_rank_of_member(part->call.routed_rows, own) * cols;
    uint64_t before = 0, first = 0;
    for (uint32_t k = 0; k < own; k++)
        first += (uint64_t)assignment_rows_per_rank_of_member(part->call.routed_rows, k) * cols;
    for (uint32_t k = 0; k < m->member_count; k++) {
        const uint64_t theirs =
            (uint64_t)assignment_rows_per_rank_of_member(part->call.routed_rows, k) * cols;
        if (!copy_elements(part, element_address(part->call.write[0], ahead ? k * mine : before),
                           element_address(m->parts[k].call.read[0], ahead ? first : own * theirs),
                           ahead ? mine : theirs))
            return false;
        before += theirs;
    }
    return true;
}

static bool compute_member_result(struct loopback_rendezvous_list *l, const struct rendezvous *m,
                                  uint32_t own)
{
    const struct loopback_member *part = &m->parts[own];
    const struct work *work = part->call.work;
    struct operand to = part->call.write[0];
    uint64_t each = to.element_count / m->member_count;
    uint32_t from = own;
    bool succeeded = true;
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_TO_ALL:
        if (part->call.routed_rows != NULL)
            return fetch_routed_rows(m, own);
        for (uint32_t k = 0; k < m->member_count && succeeded; k++)
            succeeded = copy_elements(part, element_address(to, k * each),
                                      element_address(m->parts[k].call.read[0], own * each), each);
        return succeeded;
    case WORK_ALL_GATHER:
        for (uint32_t k = 0; k < m->member_count && succeeded; k++) {
            from = work->collective.relative ? (own + m->member_count - k) % m->member_count : k;
            succeeded = copy_elements(part, element_address(to, k * each),
                                      m->parts[from].call.read[0].data, each);
        }
        return succeeded;
    case WORK_REDUCE_SCATTER:
        return reduce_parts(l, m, part, to.data, own * to.element_count, to.element_count,
                            REDUCE_SUM);
    case WORK_REDUCE: /* only the root computes the result */
        return own != (uint32_t)work->broadcast.root ||
               reduce_parts(l, m, part, to.data, 0, to.element_count, REDUCE_SUM);
    case WORK_BROADCAST:
        from = (uint32_t)work->broadcast.root;
        return copy_elements(part, to.data, m->parts[from].call.read[0].data, to.element_count);
    case WORK_SCATTER:
        from = (uint32_t)work->broadcast.root;
        return copy_elements(part, to.data,
                             element_address(m->parts[from].call.read[0], own * to.element_count),
                             to.element_count);
    case WORK_EXCHANGE:
        return fetch_needed_rows(m, own);
    default: { /* WORK_SHIFT */
        int64_t by = work->p2p.by % (int64_t)m->member_count;
        from =
            (uint32_t)(((int64_t)own - by + (int64_t)m->member_count) % (int64_t)m->member_count);
        return copy_elements(part, to.data, m->parts[from].call.read[0].data, to.element_count);
    }
    }
}

/* Launches an all-reduce. Each member reduces its own slice into its result, and after that all fetch the other slices.
 * It may run in place: until all slices are reduced, a slice is read and written only for its own member. */
static bool all_reduce(struct loopback_rendezvous_list *l, const struct rendezvous *m)
{
    uint64_t count = m->parts[0].call.write[0].element_count,
             each = (count + m->member_count - 1) / m->member_count;
    enum reduce_op reduction = (enum reduce_op)m->parts[0].call.work->all_reduce.op;
    bool succeeded = true;
    for (uint32_t i = 0; i < m->member_count && succeeded; i++) {
        const struct loopback_member *part = &m->parts[i];
        uint64_t begin = i * each < count ? i * each : count;
        uint64_t end = begin + each < count ? begin + each : count;
        succeeded = wait_for_peers_event(m, i, begin_event_of_member) &&
                    reduce_parts(l, m, part, element_address(part->call.write[0], begin), begin,
                                 end - begin, reduction) &&
                    record_copies_ended(part);
    }
    for (uint32_t i = 0; i < m->member_count && succeeded; i++) {
        const struct loopback_member *part = &m->parts[i];
        succeeded = wait_for_peers_event(m, i, copies_end_event_of_member);
        for (uint32_t k = 0; k < m->member_count && succeeded; k++) {
            uint64_t begin = k * each < count ? k * each : count;
            uint64_t end = begin + each < count ? begin + each : count;
            succeeded = k == i || copy_elements(part, element_address(part->call.write[0], begin),
                                                element_address(m->parts[k].call.write[0], begin),
                                                end - begin);
        }
    }
    /* copies_end_event is recorded once more after the slices have been fetched, since peers wait for it before their
     * buffers are reused */
    for (uint32_t i = 0; i < m->member_count && succeeded; i++)
        succeeded = record_copies_ended(&m->parts[i]);
    return succeeded;
}

static bool run_collective(struct loopback_rendezvous_list *l, const struct rendezvous *m)
{
    bool succeeded = true;
    if (m->parts[0].call.work->kind == WORK_ALL_REDUCE) {
        succeeded = all_reduce(l, m);
    } else {
        for (uint32_t i = 0; i < m->member_count && succeeded; i++)
            succeeded = wait_for_peers_event(m, i, begin_event_of_member) &&
                        compute_member_result(l, m, i) && record_copies_ended(&m->parts[i]);
    }
    for (uint32_t i = 0; i < m->member_count && succeeded; i++)
        succeeded = wait_for_peers_event(m, i, copies_end_event_of_member) &&
                    cuda_record_end(m->parts[i].stream, m->parts[i].op);
    return succeeded;
}

static bool exchange_message(const struct rendezvous *m)
{
    const struct loopback_member *sender = &m->parts[0], *receiver = &m->parts[1];
    const struct operand *from = &sender->call.read[0], *to = &receiver->call.write[0];
    if (from->element_count != to->element_count || from->dtype != to->dtype) {
        run_record_failure(sender->stream->rank->run, sender->stream->rank->rank, sender->op,
                           "the two ends of the message differ in size: %" PRIu64
                           " elements of %s are sent, %" PRIu64 " of %s received",
                           from->element_count, dtype_name((enum dtype)from->dtype),
                           to->element_count, dtype_name((enum dtype)to->dtype));
        return false;
    }
    return cuda_wait_event(receiver->stream, receiver->op, begin_event_of_member(sender)) &&
           copy_elements(receiver, to->data, from->data, to->element_count) &&
           record_copies_ended(receiver) &&
           cuda_wait_event(sender->stream, sender->op, copies_end_event_of_member(receiver)) &&
           cuda_record_end(receiver->stream, receiver->op) &&
           cuda_record_end(sender->stream, sender->op);
}

/* True if all members call the same kind of collective with the same dtype and, unless it moves rows of experts, with
 * equally many elements. If they do not, it records a failure of the run. */
static bool check_members_call_same_collective(const struct rendezvous *m)
{
    for (uint32_t k = 1; k < m->member_count; k++) {
        const struct loopback_member *one = &m->parts[0], *other = &m->parts[k];
        const struct operand *a =
            one->call.read_count > 0 ? &one->call.read[0] : &one->call.write[0];
        const struct operand *b =
            other->call.read_count > 0 ? &other->call.read[0] : &other->call.write[0];
        const bool equal = a->element_count == b->element_count || one->call.routed_rows != NULL;
        if (one->call.work->kind == other->call.work->kind && equal && a->dtype == b->dtype)
            continue;
        run_record_failure(one->stream->rank->run, one->stream->rank->rank, one->op,
                           "has %" PRIu64 " elements of %s where member %" PRIu32
                           " of its group calls %s "
                           "with %" PRIu64 " of %s",
                           a->element_count, dtype_name((enum dtype)a->dtype), k,
                           work_kind_info((enum work_kind)other->call.work->kind)->name,
                           b->element_count, dtype_name((enum dtype)b->dtype));
        return false;
    }
    return true;
}

bool loopback_arrive(struct cuda_stream *stream, uint32_t op)
{
    struct exec_run *run = stream->rank->run;
    const struct assignment *assignment = &run->assignment;
    struct loopback_rendezvous_list *l = cuda_of_run(run)->loopback;
    uint32_t rank = stream->rank->rank, index;
    enum work_kind kind = (enum work_kind)run->ir->op.kind[op];
    struct rendezvous *m;
    if (kind == WORK_SEND || kind == WORK_RECV) {
        m = &l->message_rendezvous[assignment_message_index(assignment, rank, op)];
        index = kind == WORK_RECV;
    } else {
        uint32_t group = (uint32_t)work_comm_group(ir_work(run->ir, op));
        m = &l->rendezvous[l->first_rendezvous_by_group[group] +
                           assignment_group_instance(assignment, rank, group) *
                               assignment->max_collectives_of_role_by_group[group] +
                           assignment->collective_number_by_op[op]];
        index = assignment_group_index(assignment, rank, group);
    }
    struct loopback_member *part = &m->parts[index];
    part->stream = stream;
    part->op = op;
    run_fill_call(run, rank, op, &part->call);
    if (!cuda_record_event(stream, op, begin_event_of_member(part)) ||
        ++m->arrived_members < m->member_count)
        return false;
    bool succeeded = kind == WORK_SEND || kind == WORK_RECV
                         ? exchange_message(m)
                         : check_members_call_same_collective(m) && run_collective(l, m);
    for (uint32_t k = 0; k < m->member_count && succeeded; k++) {
        m->parts[k].stream->waits_for_peers = false;
        m->parts[k].stream->launched_ops++;
    }
    return succeeded;
}
