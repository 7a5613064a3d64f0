/* Rules on accesses: races, reads of unwritten data, copies of pageable memory, accesses outside a buffer's live range,
 * double frees and leaks.
 *
 * Races are found in one walk over a role's ops. For each slot of a buffer (rules.h) the walk keeps the accesses that a
 * later op could still race with. An access is dropped when a later access is ordered after it and would race with
 * every op that it would race with: a write replaces everything before it, a read replaces earlier reads. A write also
 * replaces accesses with which it races, once these races are reported. So a slot holds about one write, and one read
 * per stream, and the walk is linear in the operands.
 *
 * Guards: each access is kept with the set of ranks that run it and on which no later access has replaced it. Two ops
 * race only if some rank runs both. With guards, the ranks of a ring may have read a slot last in different steps, so
 * several accesses of a stream are kept; an op that is ordered after one of them is ordered after all earlier ones of
 * that stream, so a new op is compared with only the latest few of each stream. */
#include "schedule/analysis/liveness.h"
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <stdlib.h>

static bool views_overlap(struct view a, struct view b)
{
    return a.buffer.i == b.buffer.i && a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

static struct view views_intersection(struct view a, struct view b)
{
    uint64_t begin = a.begin > b.begin ? a.begin : b.begin;
    uint64_t a_end = a.begin + a.count, b_end = b.begin + b.count;
    uint64_t end = a_end < b_end ? a_end : b_end;
    return (struct view){.buffer = a.buffer, .begin = begin, .count = end - begin};
}

/* ---- race ---- */

/* A read or write of a slot with which a later op could still race. */
struct access {
    uint32_t op;
    uint32_t ranks; /* the set of ranks for which the access is kept */
    /* the next older access in the same pile; a pile has the reads, or the writes, of a slot on one stream */
    uint32_t next_older_access;
    uint32_t next; /* for the top of a pile: the top of the slot's next pile */
    bool is_write;
};

struct race_check {
    struct verifier *v;
    const struct order *order;
    uint32_t all_ranks;              /* the set of all ranks of the role */
    uint32_t *newest_access_by_slot; /* [slots] the top of each slot's first pile */
    struct access *access;
    size_t capacity;
    uint32_t count, spare_access;
    /* the two ops of the last message: other slots on which the same two race are not reported */
    uint32_t reported_op, reported_other_op;
};

static uint32_t new_access_row(struct race_check *w)
{
    uint32_t a = w->spare_access;
    if (a != IR_NONE) {
        w->spare_access = w->access[a].next_older_access;
        return a;
    }
    w->access = heap_grow(w->access, &w->capacity, (size_t)w->count + 1, sizeof *w->access);
    return w->count++;
}

/* Returns the elements that a view has in common with the first operand of `other` that overlaps it: of its writes if
 * other_writes, else of its reads. Returns the whole view if none overlaps. */
static struct view elements_common_with_operand(const struct ir *ir, struct view view,
                                                uint32_t other, bool other_writes)
{
    for (uint32_t k = 0; k < ir_operand_count(ir, other); k++) {
        struct view of_other = ir_read_view(ir, other, k);
        if ((k >= ir->op.read_count[other]) == other_writes && views_overlap(view, of_other))
            return views_intersection(view, of_other);
    }
    return view;
}

static void report_race(struct race_check *w, struct access op, struct view view,
                        struct access other, uint32_t ranks)
{
    struct verifier *v = w->v;
    if (ranks == 0 || (w->reported_op == op.op && w->reported_other_op == other.op))
        return;
    w->reported_op = op.op;
    w->reported_other_op = other.op;
    struct view shared = elements_common_with_operand(v->ir, view, other.op, other.is_write);
    verify_fail(v, "%s %s %s, which %s %s, and neither is ordered before the other on %s",
                op_text(v, op.op), op.is_write ? "writes" : "reads", view_text(v, shared),
                op_text(v, other.op), other.is_write ? "writes" : "reads",
                rank_text(v, ranks_lowest(v, ranks)));
}

/* The walk over a pile ends after this many accesses that are ordered before the new one. Accesses that the new one
 * replaces on all ranks do not count. */
enum { LATEST = 4 };

/* Reports races between a new access and the accesses of a pile, and drops those that the new one replaces. Returns the
 * pile's new top; IR_NONE if it is empty. */
static uint32_t check_accesses_of_stream_for_races(struct race_check *w, uint32_t top,
                                                   struct access new, struct view view)
{
    uint32_t *link = &top;
    uint32_t ordered_ones = 0;
    while (*link != IR_NONE) {
        struct access *a = &w->access[*link];
        if (a->op == new.op) {
            if (new.is_write && a->is_write)
                report_race(w, new, view, *a, new.ranks);
            link = &a->next_older_access;
            continue;
        }
        bool ordered = order_is_before(w->order, a->op, new.op);
        if (!ordered && (new.is_write || a->is_write))
            report_race(w, new, view, *a, ranks_intersection(w->v, a->ranks, new.ranks));
        /* The new access replaces the old one from now on; each race is reported only once. */
        bool covers_access = new.is_write || (ordered && !a->is_write);
        if (covers_access)
            a->ranks = ranks_difference(w->v, a->ranks, new.ranks);
        if (a->ranks == 0) {
            uint32_t gone = *link;
            *link = a->next_older_access;
            a->next_older_access = w->spare_access;
            w->spare_access = gone;
        } else {
            link = &a->next_older_access;
        }
        if (ordered && !(covers_access && new.ranks == w->all_ranks) && ++ordered_ones == LATEST)
            break;
    }
    return top;
}

static void check_slot_for_races(struct race_check *w, uint32_t slot, struct access new,
                                 struct view view)
{
    uint8_t stream = w->order->stream_of_op[new.op - w->order->first_op];
    /* the top of the pile to which the op's access belongs, and the top of the pile before it in the slot's list */
    uint32_t own = IR_NONE, before_own = IR_NONE;
    uint32_t before = IR_NONE, top = w->newest_access_by_slot[slot];
    while (top != IR_NONE) {
        uint32_t next = w->access[top].next;
        /* accesses by ops of other roles are to the memory of other ranks, so such piles are dropped */
        bool other_role = w->access[top].op < w->order->first_op;
        uint8_t pile_stream = other_role
                                  ? ORDER_NO_STREAM
                                  : w->order->stream_of_op[w->access[top].op - w->order->first_op];
        bool writes = w->access[top].is_write;
        top = other_role ? IR_NONE : check_accesses_of_stream_for_races(w, top, new, view);
        uint32_t *link =
            before == IR_NONE ? &w->newest_access_by_slot[slot] : &w->access[before].next;
        *link = top == IR_NONE ? next : top;
        if (top != IR_NONE) {
            w->access[top].next = next;
            if (pile_stream == stream && writes == new.is_write) {
                own = top;
                before_own = before;
            }
            before = top;
        }
        top = next;
    }
    if (new.ranks == 0 || (own != IR_NONE && w->access[own].op == new.op))
        return;
    uint32_t a = new_access_row(w);
    uint32_t *link = own == IR_NONE || before_own == IR_NONE ? &w->newest_access_by_slot[slot]
                                                             : &w->access[before_own].next;
    new.next_older_access = own;
    new.next = own == IR_NONE ? w->newest_access_by_slot[slot] : w->access[own].next;
    w->access[a] = new;
    *link = a;
}

/* Checks that an op works in place only if its kind can, and then on exactly the same elements: with a partial overlap,
 * the result would depend on how the kernel is written. */
static void check_op_may_work_in_place(struct verifier *v, uint32_t op)
{
    const struct ir *ir = v->ir;
    uint32_t reads = ir->op.read_count[op], writes = ir->op.write_count[op];
    const uint32_t *read = ir_operands(ir, op), *write = read + reads;
    for (uint32_t k = 0; k < writes; k++) {
        uint32_t buffer = ir_buffer_of_operand(ir, write[k]);
        for (uint32_t r = 0; r < reads; r++) {
            bool again = r > 0 && read[r] == read[r - 1];
            if (again || ir_buffer_of_operand(ir, read[r]) != buffer)
                continue;
            struct view in = ir_view_of_operand(ir, read[r]),
                        out = ir_view_of_operand(ir, write[k]);
            bool same = in.begin == out.begin && in.count == out.count;
            if (!same && views_overlap(in, out))
                verify_fail(
                    v,
                    "%s reads %s and writes %s, which overlap in part: they must be the same "
                    "elements or have none in common",
                    op_text(v, op), view_text(v, in), view_text(v, out));
            if (same && !work_may_be_in_place((enum work_kind)ir->op.kind[op], r, k))
                verify_fail(
                    v,
                    "%s writes %s, which it also reads, but this kind of op does not work in place",
                    op_text(v, op), view_text(v, out));
        }
    }
}

void check_races(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct buffers_cut_at_operand_ends *slots = verifier_element_slots(v);
    struct race_check w = {.v = v,
                           .newest_access_by_slot = ir_new_empty_ids(slots->slot_count),
                           .spare_access = IR_NONE,
                           .reported_op = IR_NONE};
    for (uint32_t role = 0; role < ir->role_count; role++) {
        w.order = verifier_order_of_role(v, role);
        w.all_ranks = ranks_running_with_guard(v, role, IR_NONE16);
        for (uint32_t op = w.order->first_op; op < w.order->first_op + w.order->op_count; op++) {
            struct access new = {.op = op,
                                 .ranks = ranks_running_with_guard(v, role, ir->op.guard[op])};
            for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
                uint32_t buffer, from, to;
                uint32_t operand = ir->operand[ir->op.operand_begin[op] + k];
                find_element_slots_of_operand(slots, ir, operand, &buffer, &from, &to);
                new.is_write = k >= ir->op.read_count[op];
                for (uint32_t slot = from; slot < to; slot++)
                    check_slot_for_races(&w, slot, new, ir_view_of_operand(ir, operand));
            }
            check_op_may_work_in_place(v, op);
        }
    }
    free(w.newest_access_by_slot);
    free(w.access);
    verify_set_what_was_checked_text(v, "%" PRIu32 " ops of %" PRIu32 " roles, once for all ranks",
                                     ir->op.count, ir->role_count);
}

/* ---- read before write ---- */

struct written_check {
    struct verifier *v;
    uint32_t *ranks_that_wrote_by_slot; /* [slots] the set of ranks that have written it */
};

static void check_read(struct written_check *w, uint32_t op, uint32_t ranks, uint32_t operand)
{
    struct verifier *v = w->v;
    const struct ir *ir = v->ir;
    uint32_t buffer, from, to, bad_from = IR_NONE, bad_to = 0, rank = IR_NONE;
    find_element_slots_of_operand(&v->element_slots_of_buffers, ir, operand, &buffer, &from, &to);
    const bool given = ir->buffer.category[buffer] == CATEGORY_INPUT &&
                       ir->buffer.memory[buffer] != MEMORY_HBM &&
                       liveness_is_persistent(ir, buffer);
    if (ir->buffer.binding[buffer] != IR_NONE16 || given)
        return;
    for (uint32_t slot = from; slot < to; slot++) {
        uint32_t without = ranks_difference(v, ranks, w->ranks_that_wrote_by_slot[slot]);
        if (without == 0)
            continue;
        if (bad_from == IR_NONE) {
            bad_from = slot;
            rank = ranks_lowest(v, without);
        }
        if (bad_from != IR_NONE && (bad_to == 0 || bad_to == slot))
            bad_to = slot + 1;
        /* record these ranks as writers all the same, so that each fault is reported once */
        w->ranks_that_wrote_by_slot[slot] =
            ranks_union(v, w->ranks_that_wrote_by_slot[slot], ranks);
    }
    if (bad_from == IR_NONE)
        return;
    uint64_t end = bad_to < v->element_slots_of_buffers.first_slot[buffer + 1]
                       ? v->element_slots_of_buffers.first_element[bad_to]
                       : ir_buffer_elements(ir, (buffer_id){buffer});
    struct view view = {.buffer = {buffer},
                        .begin = v->element_slots_of_buffers.first_element[bad_from],
                        .count = end - v->element_slots_of_buffers.first_element[bad_from]};
    verify_fail(v, "%s reads %s, which no earlier op has written on %s", op_text(v, op),
                view_text(v, view), rank_text(v, rank));
}

/* Returns those of the ranks that run an op that read its operands or, if `writing`, write them: only the root of a
 * scatter reads, and only the root of a reduction to one rank writes. */
static uint32_t ranks_that_read_or_write_operands(struct verifier *v, uint32_t ranks, uint32_t op,
                                                  bool writing)
{
    const struct work *work = ir_work(v->ir, op);
    if (work->kind != (writing ? WORK_REDUCE : WORK_SCATTER))
        return ranks;
    return ranks_intersection(
        v, ranks,
        ranks_with_group_index(v, (uint32_t)work->broadcast.group, (uint32_t)work->broadcast.root));
}

void check_reads_follow_writes(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct buffers_cut_at_operand_ends *slots = verifier_element_slots(v);
    struct written_check w = {.v = v};
    w.ranks_that_wrote_by_slot = heap_zalloc(
        slots->slot_count, sizeof *w.ranks_that_wrote_by_slot); /* set 0: no rank has written it */
    for (uint32_t r = 0; r < ir->role_count; r++) {
        const struct role *role = &ir->role[r];
        for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++) {
            const uint32_t *operand = ir_operands(ir, op);
            uint32_t ranks = ranks_running_with_guard(v, r, ir->op.guard[op]);
            uint32_t reading = ranks_that_read_or_write_operands(v, ranks, op, false);
            uint32_t writing = ranks_that_read_or_write_operands(v, ranks, op, true);
            for (uint32_t k = 0; k < ir->op.read_count[op]; k++)
                check_read(&w, op, reading, operand[k]);
            for (uint32_t k = ir->op.read_count[op]; k < ir_operand_count(ir, op); k++) {
                uint32_t buffer, from, to;
                find_element_slots_of_operand(slots, ir, operand[k], &buffer, &from, &to);
                for (uint32_t slot = from; slot < to; slot++)
                    w.ranks_that_wrote_by_slot[slot] =
                        ranks_union(v, w.ranks_that_wrote_by_slot[slot], writing);
            }
        }
    }
    free(w.ranks_that_wrote_by_slot);
    verify_set_what_was_checked_text(
        v, "%" PRIu32 " slots of %" PRIu32 " buffers on %" PRIu32 " ranks", slots->slot_count,
        ir->buffer.count, mesh_rank_count(&ir->mesh));
}

/* ---- pageable-copy ---- */

/* Ops of a role that write pageable memory and may not have ended when the host issues the next op. D2H copies are not
 * among them: CUDA returns from such a copy only when it has ended. */
struct pending_pageable_writers {
    uint32_t *op, count;
    size_t capacity;
};

/* Removes the writers that have certainly ended once op `held` has ended, the last op that blocked the host. held
 * IR_NONE: no op has, so none is removed. */
static void drop_writers_ended_with_op(struct pending_pageable_writers *w,
                                       const struct order *order, uint32_t held)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (held == IR_NONE || w->op[i] > held || !order_is_before(order, w->op[i], held))
            w->op[kept++] = w->op[i];
    w->count = kept;
}

/* Reports the pending ops that write elements which the copy reads, on ranks that run both. */
static void check_pageable_copy(struct verifier *v, uint32_t role, uint32_t copy,
                                const struct pending_pageable_writers *pending)
{
    const struct ir *ir = v->ir;
    struct view read = ir_read_view(ir, copy, 0);
    for (uint32_t i = 0; i < pending->count; i++) {
        uint32_t op = pending->op[i];
        uint32_t ranks = ranks_intersection(v, ranks_running_with_guard(v, role, ir->op.guard[op]),
                                            ranks_running_with_guard(v, role, ir->op.guard[copy]));
        for (uint32_t k = ir->op.read_count[op]; ranks != 0 && k < ir_operand_count(ir, op); k++)
            if (views_overlap(read, ir_read_view(ir, op, k)))
                verify_fail(
                    v,
                    "%s reads %s in pageable memory as soon as the host issues it, and on %s "
                    "the host has not waited for %s, which writes it",
                    op_text(v, copy),
                    view_text(v, views_intersection(read, ir_read_view(ir, op, k))),
                    rank_text(v, ranks_lowest(v, ranks)), op_text(v, op));
    }
}

void check_pageable_copies(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct pending_pageable_writers pending = {0};
    uint32_t copies = 0;
    for (uint32_t role = 0; role < ir->role_count; role++) {
        const struct order *order = verifier_order_of_role(v, role);
        uint32_t held = IR_NONE;
        pending.count = 0;
        for (uint32_t op = order->first_op; op < order->first_op + order->op_count; op++) {
            enum work_kind kind = ir->op.kind[op];
            if (kind == WORK_H2D && ir->op.read_count[op] > 0 &&
                ir->buffer.memory[ir_touched_buffer(ir, op, 0)] == MEMORY_PAGEABLE) {
                drop_writers_ended_with_op(&pending, order, held);
                check_pageable_copy(v, role, op, &pending);
                copies++;
            }
            bool writes = false;
            for (uint32_t k = ir->op.read_count[op];
                 kind != WORK_D2H && k < ir_operand_count(ir, op); k++)
                writes |= ir->buffer.memory[ir_touched_buffer(ir, op, k)] == MEMORY_PAGEABLE;
            if (writes) {
                pending.op = heap_grow(pending.op, &pending.capacity, (size_t)pending.count + 1,
                                       sizeof *pending.op);
                pending.op[pending.count++] = op;
            }
            if (order_kind_of_op(ir, op) != ORDER_RUNS_ON_STREAM)
                held = op;
        }
    }
    free(pending.op);
    verify_set_what_was_checked_text(v, "%" PRIu32 " copies from pageable memory", copies);
}

/* ---- lifetimes ---- */

/* True if the op has ended when all ops of the buffer's free set have ended. */
static bool op_has_ended_once_free_set_has(const struct ir *ir, const struct order *order,
                                           uint32_t buffer, uint32_t op)
{
    const op_id *set = ir_free_set(ir, buffer);
    for (uint32_t k = 0; k < ir->buffer.free_count[buffer]; k++) {
        uint32_t last = set[k].i;
        if (last == op)
            return true;
        if (last > op && last - order->first_op < order->op_count &&
            order_is_before(order, op, last))
            return true;
    }
    return false;
}

void check_use_after_free(struct verifier *v)
{
    const struct ir *ir = v->ir;
    for (uint32_t role = 0; role < ir->role_count; role++) {
        const struct order *order = verifier_order_of_role(v, role);
        for (uint32_t op = order->first_op; op < order->first_op + order->op_count; op++)
            for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
                struct view view = ir_read_view(ir, op, k);
                uint32_t buffer = view.buffer.i;
                if (ir->buffer.free_count[buffer] == 0 || liveness_is_persistent(ir, buffer) ||
                    op_has_ended_once_free_set_has(ir, order, buffer, op) ||
                    buffer_is_touched_by_earlier_operand(ir, op, k))
                    continue;
                op_id last = ir_free_set(ir, buffer)[ir->buffer.free_count[buffer] - 1u];
                verify_fail(
                    v, "%s %s %s, which is free after %s%s, but the op is not ordered before that",
                    op_text(v, op), k < ir->op.read_count[op] ? "reads" : "writes",
                    view_text(v, view),
                    last.i < ir->op.count ? op_text(v, last.i) : "an op that is not there",
                    ir->buffer.free_count[buffer] > 1 ? " and others" : "");
            }
    }
    verify_set_what_was_checked_text(v, "%" PRIu32 " operands", ir->operand_count);
}

void check_double_free(struct verifier *v)
{
    const struct ir *ir = v->ir;
    uint32_t freed = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        const op_id *set = ir_free_set(ir, b);
        uint32_t count = ir->buffer.free_count[b];
        freed += count != 0;
        if (count != 0 && liveness_is_persistent(ir, b)) {
            verify_fail(v, "%s is persistent and is freed after op %" PRIu32, buffer_text(v, b),
                        set[0].i);
            continue;
        }
        for (uint32_t k = 0; k < count; k++) {
            bool again = false;
            for (uint32_t i = 0; i < k; i++)
                again |= set[i].i == set[k].i;
            if (again)
                verify_fail(v, "%s is freed twice after op %" PRIu32, buffer_text(v, b), set[k].i);
            else if (!role_has_op(&ir->role[ir->buffer.role[b]], set[k].i))
                verify_fail(v,
                            "%s of role %s is freed after op %" PRIu32
                            ", which is not an op of that role",
                            buffer_text(v, b), ir->role[ir->buffer.role[b]].name, set[k].i);
        }
    }
    verify_set_what_was_checked_text(v, "%" PRIu32 " free sets", freed);
}

void check_leaks(struct verifier *v)
{
    const struct ir *ir = v->ir;
    bool *touched = heap_zalloc(ir->buffer.count, sizeof *touched);
    for (uint32_t op = 0; op < ir->op.count; op++)
        for (uint32_t k = 0; k < ir_operand_count(ir, op); k++)
            touched[ir_touched_buffer(ir, op, k)] = true;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        if (ir->buffer.binding[b] != IR_NONE16)
            continue;
        if (!touched[b])
            verify_fail(v, "no op reads or writes %s", buffer_text(v, b));
        else if (ir->buffer.free_count[b] == 0 && !liveness_is_persistent(ir, b))
            verify_fail(v, "%s is never freed and not persistent", buffer_text(v, b));
    }
    free(touched);
    verify_set_what_was_checked_text(v, "%" PRIu32 " buffers", ir->buffer.count);
}
