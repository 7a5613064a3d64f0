#include "exec/stall.h"

#include "base/c_locale.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { CHAIN_MAX = 8 };

/* A link of the chain of waits: an op of a rank that has not ended. op IR_NONE: the chain ends here. */
struct wait_chain_op {
    uint32_t rank, op;
};

struct stall_report {
    struct exec_run *run;
    char *text;
    size_t size, used_bytes;
};

static void append_sentence(struct stall_report *story, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append_sentence(struct stall_report *story, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written =
        c_vsnprintf(story->text + story->used_bytes, story->size - story->used_bytes, format, args);
    va_end(args);
    if (written > 0)
        story->used_bytes += (size_t)written;
    if (story->used_bytes >= story->size)
        story->used_bytes = story->size - 1;
}

static const struct wait_chain_op END = {IR_NONE, IR_NONE};

static bool op_has_ended(struct exec_run *run, uint32_t rank, uint32_t op)
{
    return run->backend->state(run, rank, op) == OP_DONE;
}

/* Returns the op with this number among the collectives of a group in a rank's list or, with `barrier`, among its
 * barriers; IR_NONE: there is none. */
static uint32_t find_numbered_op(const struct exec_run *run, uint32_t rank, uint32_t group,
                                 uint32_t number, bool barrier)
{
    const struct assignment *assignment = &run->assignment;
    for (uint32_t k = 0; k < assignment_op_count(assignment, rank); k++) {
        uint32_t op = assignment_first_op(assignment, rank) + k;
        enum work_kind kind = run->ir->op.kind[op];
        if ((barrier ? kind == WORK_BARRIER : assignment_is_collective(kind)) &&
            work_comm_group(ir_work(run->ir, op)) == group &&
            assignment->collective_number_by_op[op] == number)
            return op;
    }
    return IR_NONE;
}

/* Appends the first member that has not arrived at a collective or barrier, and returns its op there; END if it has no
 * such op, if a guard leaves the op out, or if all members have arrived. */
static struct wait_chain_op explain_missing_member(struct stall_report *story,
                                                   struct wait_chain_op at)
{
    struct exec_run *run = story->run;
    const struct assignment *assignment = &run->assignment;
    uint32_t group = (uint32_t)work_comm_group(ir_work(run->ir, at.op));
    bool barrier = run->ir->op.kind[at.op] == WORK_BARRIER;
    uint32_t instance = assignment_group_instance(assignment, at.rank, group),
             number = assignment->collective_number_by_op[at.op];
    const char *name = run->ir->group[group].name;
    for (uint32_t i = 0; i < assignment->member_count_by_group[group]; i++) {
        uint32_t peer =
            group_global_rank_of_member(&run->ir->mesh, &run->ir->group[group], instance, i);
        uint32_t op = find_numbered_op(run, peer, group, number, barrier);
        if (op == IR_NONE) {
            append_sentence(story,
                            " waits for rank %" PRIu32 ", which has no %s number %" PRIu32
                            " of group %s",
                            peer, barrier ? "barrier" : "collective", number, name);
            return END;
        }
        if (run->backend->arrived(run, peer, op))
            continue;
        if (!assignment_op_works_on_rank(assignment, peer, op)) {
            append_sentence(story,
                            " waits for rank %" PRIu32 " in group %s, where op %" PRIu32
                            " is guarded out",
                            peer, name, op);
            return END;
        }
        append_sentence(story, " waits for rank %" PRIu32 " in group %s", peer, name);
        return (struct wait_chain_op){peer, op};
    }
    append_sentence(story, " has met all of group %s and is at work", name);
    return END;
}

static struct wait_chain_op explain_missing_peer(struct stall_report *story,
                                                 struct wait_chain_op at)
{
    const struct exec_run *run = story->run;
    const struct assignment_message *message =
        &run->assignment.messages[assignment_message_index(&run->assignment, at.rank, at.op)];
    bool send = run->ir->op.kind[at.op] == WORK_SEND;
    uint32_t peer = send ? message->destination : message->source;
    uint32_t op = send ? message->recv_op : message->send_op;
    if (op == IR_NONE) {
        append_sentence(story, " waits for rank %" PRIu32 ", which never %s it on channel %" PRIu32,
                        peer, send ? "receives" : "sends", message->channel);
        return END;
    }
    append_sentence(story, " waits for rank %" PRIu32 " to %s", peer, send ? "receive" : "send");
    return (struct wait_chain_op){peer, op};
}

/* Returns the first op of the stream, before `before`, that has not ended; IR_NONE: all have ended. */
static uint32_t first_pending_on_stream(struct exec_run *run, uint32_t rank, uint8_t stream,
                                        uint32_t before)
{
    for (uint32_t op = assignment_first_op(&run->assignment, rank); op < before; op++)
        if (run->ir->op.stream[op] == stream &&
            work_kind_info(run->ir->op.kind[op])->stream != STREAM_SYNC &&
            !op_has_ended(run, rank, op))
            return op;
    return IR_NONE;
}

/* Returns the first op that the op waits for and that has not ended; IR_NONE: there is none. */
static uint32_t first_unmet_wait(struct exec_run *run, uint32_t rank, uint32_t op)
{
    const struct ir *ir = run->ir;
    for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + k].i;
        if (!op_has_ended(run, rank, wait))
            return wait;
    }
    return IR_NONE;
}

/* Appends why the host has not issued the op `at` yet, and returns the op for which the host waits; END: it waits for
 * none. */
static struct wait_chain_op explain_waiting_host(struct stall_report *story,
                                                 struct wait_chain_op at)
{
    struct exec_run *run = story->run;
    uint32_t host = atomic_load(&run->host_op[at.rank]), held = IR_NONE;
    char text[96];
    run_op_to_text(run->ir, host, text, sizeof text);
    if (host != at.op)
        append_sentence(story, " is not issued: the host is at %s, which", text);
    switch ((enum work_kind)run->ir->op.kind[host]) {
    case WORK_BARRIER:
        if (run->backend->arrived(run, at.rank, host))
            return explain_missing_member(story, (struct wait_chain_op){at.rank, host});
        held = first_unmet_wait(run, at.rank, host);
        break;
    case WORK_HOST_SYNC:
        held = first_unmet_wait(run, at.rank, host);
        if (held == IR_NONE)
            held = first_pending_on_stream(run, at.rank, run->ir->op.stream[host], host);
        break;
    default:
        held = ir_blocks_host(run->ir, host) && host != at.op ? host : IR_NONE;
    }
    if (held == IR_NONE) {
        append_sentence(story, " is where the host has stopped");
        return END;
    }
    append_sentence(story, " holds %s until op %" PRIu32 " has ended",
                    host != at.op ? "it" : "the host", held);
    return (struct wait_chain_op){at.rank, held};
}

/* Appends which op `at` waits for, and returns that op. If it waits for none, appends the reason and returns END. */
static struct wait_chain_op explain_wait(struct stall_report *story, struct wait_chain_op at)
{
    struct exec_run *run = story->run;
    const struct ir *ir = run->ir;
    enum work_kind kind = ir->op.kind[at.op];
    if (!run_has_rank(run, at.rank)) {
        append_sentence(story, " is another process's, which says more");
        return END;
    }
    switch (run->backend->state(run, at.rank, at.op)) {
    case OP_NOT_ISSUED:
        return explain_waiting_host(story, at);
    case OP_QUEUED: {
        uint32_t before = first_pending_on_stream(run, at.rank, ir->op.stream[at.op], at.op);
        if (before != IR_NONE) {
            append_sentence(story, " comes behind op %" PRIu32 " on its stream", before);
            return (struct wait_chain_op){at.rank, before};
        }
        uint32_t wait = first_unmet_wait(run, at.rank, at.op);
        if (wait != IR_NONE) {
            append_sentence(story, " waits for op %" PRIu32, wait);
            return (struct wait_chain_op){at.rank, wait};
        }
        append_sentence(story, " is about to start");
        return END;
    }
    case OP_AT_RENDEZVOUS:
        return kind == WORK_SEND || kind == WORK_RECV ? explain_missing_peer(story, at)
                                                      : explain_missing_member(story, at);
    case OP_RUNNING:
        append_sentence(story, " is at work");
        return END;
    case OP_DONE:
        break;
    }
    append_sentence(story, " has just ended");
    return END;
}

/* Returns the first op of this process that has not ended, by rank and then by list order; END: there is none. */
static struct wait_chain_op first_pending_op(struct exec_run *run)
{
    for (uint32_t rank = run->first_rank; rank < run->first_rank + run->rank_count; rank++)
        for (uint32_t k = 0; k < assignment_op_count(&run->assignment, rank); k++) {
            uint32_t op = assignment_first_op(&run->assignment, rank) + k;
            if (!op_has_ended(run, rank, op))
                return (struct wait_chain_op){rank, op};
        }
    return END;
}

void stall_explain(struct exec_run *run, char *text, size_t size)
{
    struct stall_report story = {.run = run, .text = text, .size = size};
    struct wait_chain_op chain[CHAIN_MAX], at = first_pending_op(run);
    text[0] = '\0';
    if (at.op == IR_NONE)
        append_sentence(&story, "all ops have ended");
    for (uint32_t length = 0; at.op != IR_NONE && length < CHAIN_MAX; length++) {
        char op[96];
        run_op_to_text(run->ir, at.op, op, sizeof op);
        append_sentence(&story, "%srank %" PRIu32 ": %s", length > 0 ? "; " : "", at.rank, op);
        for (uint32_t i = 0; i < length; i++)
            if (chain[i].rank == at.rank && chain[i].op == at.op) {
                append_sentence(&story, " again: they wait in a circle");
                return;
            }
        chain[length] = at;
        at = explain_wait(&story, at);
    }
}
