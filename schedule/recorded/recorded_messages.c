/* Sends and receives. If one recording represents both ranks, a message is part of a shift around a ring. If both ranks
 * are recorded, as stages of a pipeline are, the n-th send of a queue meets the n-th receive. A queue has the messages
 * from one rank to another in one group, as in NCCL. */
#include "schedule/recorded/recorded_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool recorded_is_send(const struct step_event *event)
{
    return strstr(event->op_name, "c10d.send") != NULL;
}

bool recorded_is_message(const struct step_event *event)
{
    return event->kind == STEP_COLLECTIVE &&
           (recorded_is_send(event) || strstr(event->op_name, "c10d.recv") != NULL);
}

int64_t recorded_index_of_rank_in_group(const struct step_group *group, int64_t rank)
{
    for (uint32_t i = 0; i < group->rank_count; i++)
        if (group->ranks[i] == rank)
            return i;
    return -1;
}

/* ---- rings ---- */

/* Returns by how many ranks a message goes around the ring of its group: 1 to rank_count - 1; 0 if one of the two ranks
 * is not in the group, or if the event has no group. */
static int64_t ring_distance_of(const struct recorded_schedule_builder *m,
                                const struct step_event *event)
{
    if (event->group == UINT32_MAX)
        return 0;
    const struct step_group *group = &m->recording->group[event->group];
    const int64_t own = recorded_index_of_rank_in_group(group, m->recording->rank),
                  peer = recorded_index_of_rank_in_group(group, event->peer_rank);
    if (own < 0 || peer < 0)
        return 0;
    const int64_t by = recorded_is_send(event) ? peer - own : own - peer;
    return (by + group->rank_count) % group->rank_count;
}

uint32_t recorded_other_half_of_ring_shift(const struct recorded_schedule_builder *m,
                                           uint32_t number)
{
    enum { WITHIN = 64 }; /* messages of a batch are issued one after the other */
    const struct step_event *event = &m->recording->event[number];
    const uint32_t first = number < WITHIN ? 0 : number - WITHIN;
    if (!recorded_is_message(event) || event->batch_number < 0 ||
        recorded_is_between_stages(m, event))
        return IR_NONE;
    const int64_t by = ring_distance_of(m, event);
    for (uint32_t i = first; by > 0 && i < m->recording->event_count && i < number + WITHIN; i++) {
        const struct step_event *other = &m->recording->event[i];
        if (recorded_is_message(other) && other->batch_number == event->batch_number &&
            other->group == event->group && recorded_is_send(other) != recorded_is_send(event) &&
            ring_distance_of(m, other) == by &&
            fabs(other->full_tensor_bytes - event->full_tensor_bytes) < 1)
            return i;
    }
    return IR_NONE;
}

/* ---- stages ---- */

/* Returns the recording of a rank; NULL: there is none. */
static const struct step_recording *recording_of_rank(const struct recorded_schedule_builder *m,
                                                      int64_t rank)
{
    for (uint32_t i = 0; i < m->recording_count; i++)
        if (m->recordings[i].rank == rank)
            return &m->recordings[i];
    return NULL;
}

bool recorded_is_between_stages(const struct recorded_schedule_builder *m,
                                const struct step_event *event)
{
    return event->group != UINT32_MAX && event->peer_rank != m->recording->rank &&
           recording_of_rank(m, event->peer_rank) != NULL;
}

static enum status check_recorded_ranks_differ(const struct recorded_schedule_builder *m)
{
    for (uint32_t i = 1; i < m->recording_count; i++) {
        const struct step_recording *r = &m->recordings[i];
        const struct loc at = {.name = r->name};
        if (r->world_size != m->recordings[0].world_size)
            return diag_error(m->diag, at, STATUS_BAD_INPUT,
                              "was recorded with %" PRIu32 " rank%s, and %s with %" PRIu32
                              ": record every stage with the same --world-size",
                              r->world_size, r->world_size == 1 ? "" : "s", m->recordings[0].name,
                              m->recordings[0].world_size);
        for (uint32_t k = 0; k < i; k++)
            if (m->recordings[k].rank == r->rank)
                return diag_error(m->diag, at, STATUS_BAD_INPUT,
                                  "is of rank %" PRIu32 ", as %s is: give one recording of each "
                                  "stage, recorded with its --rank",
                                  r->rank, m->recordings[k].name);
    }
    return STATUS_OK;
}

static bool same_group(const struct step_group *a, const struct step_group *b)
{
    return a->rank_count == b->rank_count && strcmp(a->name, b->name) == 0 &&
           memcmp(a->ranks, b->ranks, a->rank_count * sizeof *a->ranks) == 0;
}

/* Returns the next event, from `from` on, that is a send to rank `peer` in a group (sends false: a receive from it);
 * r->event_count if there is none. */
static uint32_t find_next_message_with_peer(const struct step_recording *r, uint32_t from,
                                            bool sends, uint32_t peer,
                                            const struct step_group *group)
{
    uint32_t i = from;
    for (; i < r->event_count; i++) {
        const struct step_event *event = &r->event[i];
        if (recorded_is_message(event) && recorded_is_send(event) == sends &&
            event->peer_rank == peer && event->group != UINT32_MAX &&
            same_group(&r->group[event->group], group))
            break;
    }
    return i;
}

/* Let `sender` be the rank of the current recording and `receiver` that of *to. Matches the sends to the receiver with
 * the receiver's receives from the sender, in one group. It is an error if one is left over, or if sizes differ. */
static enum status match_messages_of_pair(struct recorded_schedule_builder *m,
                                          const struct step_recording *to, uint32_t group)
{
    const struct step_recording *from = m->recording;
    const struct step_group *of = &from->group[group];
    uint32_t send = 0, receive = 0, matched = 0;
    for (;; send++, receive++, matched++) {
        send = find_next_message_with_peer(from, send, true, to->rank, of);
        receive = find_next_message_with_peer(to, receive, false, from->rank, of);
        if (send == from->event_count && receive == to->event_count)
            return STATUS_OK;
        if (receive == to->event_count)
            return recorded_report_event_error(
                m, send,
                "is send %" PRIu32 " to rank %" PRIu32 " in group '%s', and %s "
                "has %" PRIu32 " receive%s from rank %" PRIu32 " there",
                matched + 1, to->rank, of->name, to->name, matched, matched == 1 ? "" : "s",
                from->rank);
        if (send == from->event_count) {
            m->recording = to;
            return recorded_report_event_error(
                m, receive,
                "is receive %" PRIu32 " from rank %" PRIu32 " in group '%s', and "
                "%s has %" PRIu32 " send%s to rank %" PRIu32 " there",
                matched + 1, from->rank, of->name, from->name, matched, matched == 1 ? "" : "s",
                to->rank);
        }
        const double sent = from->event[send].full_tensor_bytes,
                     received = to->event[receive].full_tensor_bytes;
        if (fabs(sent - received) >= 1)
            return recorded_report_event_error(m, send,
                                               "sends %.0f bytes to rank %" PRIu32
                                               ", and its receive, event "
                                               "%" PRIu32 " of %s, is of %.0f bytes",
                                               sent, to->rank, receive, to->name, received);
    }
}

static bool recording_has_group(const struct step_recording *r, uint32_t count,
                                const struct step_group *group)
{
    for (uint32_t i = 0; i < count; i++)
        if (same_group(&r->group[i], group))
            return true;
    return false;
}

/* Reports an error if a receive from the current recording's rank is in a group that this rank does not have. */
static enum status check_groups_of_receives(struct recorded_schedule_builder *m,
                                            const struct step_recording *to)
{
    const struct step_recording *from = m->recording;
    for (uint32_t g = 0; g < to->group_count; g++) {
        const struct step_group *group = &to->group[g];
        if (recorded_index_of_rank_in_group(group, from->rank) < 0 ||
            recording_has_group(from, from->group_count, group))
            continue;
        const uint32_t receive = find_next_message_with_peer(to, 0, false, from->rank, group);
        if (receive == to->event_count)
            continue;
        m->recording = to;
        return recorded_report_event_error(m, receive,
                                           "is receive 1 from rank %" PRIu32
                                           " in group '%s', and %s has no such group",
                                           from->rank, group->name, from->name);
    }
    return STATUS_OK;
}

/* Does what match_messages_of_pair() does for all groups of the two ranks. It is an error if the receiver receives in a
 * group that the sender does not have. */
static enum status match_sends_with_receives_of_ranks(struct recorded_schedule_builder *m,
                                                      const struct step_recording *to)
{
    const struct step_recording *from = m->recording;
    enum status status = STATUS_OK;
    for (uint32_t g = 0; g < from->group_count && status == STATUS_OK; g++) {
        const struct step_group *group = &from->group[g];
        if (recorded_index_of_rank_in_group(group, to->rank) >= 0 &&
            !recording_has_group(from, g, group))
            status = match_messages_of_pair(m, to, g);
    }
    return status == STATUS_OK ? check_groups_of_receives(m, to) : status;
}

enum status recorded_match_messages(struct recorded_schedule_builder *m)
{
    enum status status = check_recorded_ranks_differ(m);
    for (uint32_t i = 0; i < m->recording_count; i++)
        for (uint32_t k = 0; k < m->recording_count && status == STATUS_OK; k++) {
            m->recording = &m->recordings[i];
            if (i != k)
                status = match_sends_with_receives_of_ranks(m, &m->recordings[k]);
        }
    return status;
}

/* ---- the work of a message ---- */

enum status recorded_set_work_of_message(const struct recorded_schedule_builder *m, uint32_t number,
                                         struct work *work)
{
    const struct step_event *event = &m->recording->event[number];
    const bool sends = recorded_is_send(event);
    const int64_t bytes = llround(fmax(event->full_tensor_bytes, 1));
    if (recorded_is_between_stages(m, event)) {
        const struct step_group *group = &m->recording->group[event->group];
        *work = (struct work){.kind = sends ? WORK_SEND : WORK_RECV};
        work->p2p.group = m->schedule_group_by_program_group[event->group];
        work->p2p.by = recorded_index_of_rank_in_group(group, event->peer_rank) -
                       recorded_index_of_rank_in_group(group, m->recording->rank);
        work->p2p.bytes = bytes;
        work->p2p.channel = m->schedule_group_by_program_group
                                [event->group]; /* two groups may connect the same ranks */
        return STATUS_OK;
    }
    if (recorded_other_half_of_ring_shift(m, number) == IR_NONE)
        return recorded_report_event_error(
            m, number,
            "a message %s rank %lld, whose step is not given: of a pipeline give one recording of "
            "each stage, as in predict stage-*.json.gz, each recorded with its --rank; without "
            "them only sends and receives of a ring, in one batch, are predicted",
            sends ? "to" : "from", (long long)event->peer_rank);
    *work = (struct work){.kind = WORK_SHIFT};
    work->p2p.group = m->schedule_group_by_program_group[event->group];
    work->p2p.by = ring_distance_of(m, event);
    work->p2p.bytes = bytes;
    return STATUS_OK;
}
