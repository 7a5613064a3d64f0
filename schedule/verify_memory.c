/* Rules on what ops touch: races, reads of nothing, life and death of buffers.
 *
 * A race is looked for in one walk over a role's ops. For each slot of a buffer (verify_rules.h) the
 * walk keeps the accesses that a later op could still race with. An access drops out when
 * a later one is ordered behind it and would race with all that it would: writes stand for
 * everything before them, reads for earlier reads. So a slot holds about one write, and one read
 * per stream, and the walk is linear in the operands.
 *
 * Guards: two ops race only when some rank runs both, and an op stands for another only when it runs
 * wherever that one does. */
#include "schedule/id_map.h"
#include "schedule/lifetimes.h"
#include "schedule/verify_rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint32_t operands_of(const struct ir *ir, uint32_t op)
{
    return (uint32_t)ir->op.reads[op] + ir->op.writes[op];
}

static struct view operand_view(const struct ir *ir, uint32_t op, uint32_t k)
{
    return ir_view(ir, ir->operand[ir->op.operand_begin[op] + k]);
}

static bool views_meet(struct view a, struct view b)
{
    return a.buffer.i == b.buffer.i && a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

static struct view views_common(struct view a, struct view b)
{
    uint64_t begin = a.begin > b.begin ? a.begin : b.begin;
    uint64_t a_end = a.begin + a.count, b_end = b.begin + b.count;
    uint64_t end = a_end < b_end ? a_end : b_end;
    return (struct view){.buffer = a.buffer, .begin = begin, .count = end - begin};
}

/* --- race --- */

struct access {
    uint32_t op, next;
    bool writes;
};

struct race_walk {
    struct verifier *v;
    const struct order *order;
    uint32_t role;
    uint32_t *head; /* per slot */
    struct access *access;
    uint32_t count, capacity, spare;
    uint32_t shown_op, shown_other; /* the pair of the last message: its other slots are no news */
};

static void add_access(struct race_walk *w, uint32_t slot, uint32_t op, bool writes)
{
    uint32_t a = w->spare;
    if (a != IR_NONE) {
        w->spare = w->access[a].next;
    } else {
        if (w->count == w->capacity) {
            w->capacity = (uint32_t)heap_next_capacity(w->capacity, (size_t)w->count + 1);
            w->access = heap_realloc(w->access, w->capacity, sizeof *w->access);
        }
        a = w->count++;
    }
    w->access[a] = (struct access){.op = op, .next = w->head[slot], .writes = writes};
    w->head[slot] = a;
}

/* The elements that a view shares with a fitting operand of the other op. */
static struct view shared_elements(const struct ir *ir, struct view view, uint32_t other,
                                   bool other_writes)
{
    for (uint32_t k = 0; k < operands_of(ir, other); k++) {
        struct view of_other = operand_view(ir, other, k);
        if ((k >= ir->op.reads[other]) == other_writes && views_meet(view, of_other))
            return views_common(view, of_other);
    }
    return view;
}

static void report_race(struct race_walk *w, uint32_t op, struct view view, bool writes,
                        struct access other)
{
    struct verifier *v = w->v;
    if (w->shown_op == op && w->shown_other == other.op)
        return;
    uint32_t rank = verify_meet(v, w->role, v->ir->op.guard[op], v->ir->op.guard[other.op]);
    if (rank == IR_NONE)
        return;
    w->shown_op = op;
    w->shown_other = other.op;
    struct view shared = shared_elements(v->ir, view, other.op, other.writes);
    verify_fail(v, "%s %s %s, which %s %s, and neither is ordered before the other on %s",
                op_text(v, op), writes ? "writes" : "reads", view_text(v, shared),
                op_text(v, other.op), other.writes ? "writes" : "reads", rank_text(v, rank));
}

static void race_slot(struct race_walk *w, uint32_t slot, uint32_t op, struct view view,
                      bool writes)
{
    const struct ir *ir = w->v->ir;
    uint16_t guard = ir->op.guard[op];
    uint32_t *link = &w->head[slot];
    bool is_there = false;
    while (*link != IR_NONE) {
        struct access *a = &w->access[*link];
        bool gone = false;
        if (a->op == op) {
            if (writes && a->writes)
                report_race(w, op, view, writes, *a);
            a->writes |= writes;
            is_there = true;
        } else if (a->op < w->order->begin) {
            gone = true; /* another role's, so another rank's memory */
        } else {
            bool conflict = writes || a->writes;
            bool ordered = order_before(w->order, a->op, op);
            if (conflict && !ordered)
                report_race(w, op, view, writes, *a);
            bool stands_for = writes || !a->writes;
            bool runs_too = guard == IR_NONE16 || guard == ir->op.guard[a->op];
            gone = stands_for && runs_too && (ordered || writes); /* reported once is enough */
        }
        if (gone) {
            uint32_t unused = *link;
            *link = a->next;
            a->next = w->spare;
            w->spare = unused;
        } else {
            link = &a->next;
        }
    }
    if (!is_there)
        add_access(w, slot, op, writes);
}

/* An op may work in place, on the same elements; anything in between would depend on how its
 * kernel goes about it. */
static void check_in_place(struct verifier *v, uint32_t op)
{
    const struct ir *ir = v->ir;
    for (uint32_t r = 0; r < ir->op.reads[op]; r++)
        for (uint32_t k = 0; k < ir->op.writes[op]; k++) {
            const uint32_t *operand = ir->operand + ir->op.operand_begin[op];
            if (!((operand[r] | operand[ir->op.reads[op] + k]) & IR_RANGE))
                continue; /* two whole buffers */
            struct view in = ir_read(ir, op, r), out = ir_write(ir, op, k);
            bool again = r > 0 && operand[r] == operand[r - 1];
            if (again || !views_meet(in, out) || (in.begin == out.begin && in.count == out.count))
                continue;
            verify_fail(v, "%s reads %s and writes %s: neither the same elements nor others",
                        op_text(v, op), view_text(v, in), view_text(v, out));
        }
}

void check_races(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct slots *slots = verify_slots(v);
    struct race_walk w = {.v = v, .spare = IR_NONE, .shown_op = IR_NONE};
    w.head = heap_alloc(slots->count, sizeof *w.head);
    memset(w.head, 0xff, slots->count * sizeof *w.head);
    for (w.role = 0; w.role < ir->role_count; w.role++) {
        w.order = verify_order_of(v, w.role);
        for (uint32_t op = w.order->begin; op < w.order->begin + w.order->count; op++) {
            for (uint32_t k = 0; k < operands_of(ir, op); k++) {
                uint32_t buffer, from, to;
                uint32_t operand = ir->operand[ir->op.operand_begin[op] + k];
                slots_of(slots, ir, operand, &buffer, &from, &to);
                for (uint32_t slot = from; slot < to; slot++)
                    race_slot(&w, slot, op, ir_view(ir, operand), k >= ir->op.reads[op]);
            }
            check_in_place(v, op);
        }
    }
    free(w.head);
    free(w.access);
    verify_checked(v, "%" PRIu32 " ops of %" PRIu32 " roles, once for all ranks", ir->op.count,
                   ir->role_count);
}

/* --- read before write --- */

/* Sets of ranks that have written a slot. Rows EMPTY and FULL stand for themselves. */
enum { EMPTY, FULL, FIRST_SET };

struct write_walk {
    struct verifier *v;
    const struct rank_sets *ranks;
    uint32_t role;
    uint32_t *written; /* per slot: a row of `set` */
    struct set_step {  /* row, after a write under a guard, becomes this row */
        uint32_t row, becomes;
        uint16_t guard, role;
    } * step;
    uint64_t *set; /* (count, words) */
    uint32_t count, capacity, steps, step_capacity;
    struct id_map step_of;
};

static uint32_t new_set(struct write_walk *w)
{
    if (w->count == w->capacity) {
        w->capacity = (uint32_t)heap_next_capacity(w->capacity, (size_t)w->count + 1);
        w->set = heap_realloc(w->set, w->capacity, w->ranks->words * sizeof *w->set);
    }
    memset(w->set + (size_t)w->count * w->ranks->words, 0, w->ranks->words * sizeof *w->set);
    return w->count++;
}

/* The ranks of `row` and those that run under the guard; remembered, since few differ. */
static uint32_t add_writers(struct write_walk *w, uint32_t row, uint16_t guard)
{
    uint64_t hash = hash_word(hash_word(row, guard), w->role);
    for (struct id_probe p = id_map_start(&w->step_of, hash); id_map_next(&w->step_of, &p);) {
        const struct set_step *s = &w->step[p.row];
        if (s->row == row && s->guard == guard && s->role == w->role)
            return s->becomes;
    }
    uint32_t words = w->ranks->words, made = new_set(w);
    const uint64_t *old = w->set + (size_t)row * words;
    const uint64_t *all = w->ranks->of_role + (size_t)w->role * words;
    const uint64_t *more = w->ranks->of_guard + (size_t)guard * words;
    uint64_t *set = w->set + (size_t)made * words;
    bool same = true, full = true;
    for (uint32_t i = 0; i < words; i++) {
        set[i] = old[i] | (more[i] & all[i]);
        same &= set[i] == old[i];
        full &= set[i] == all[i];
    }
    uint32_t becomes = full ? FULL : same ? row : made;
    if (becomes != made)
        w->count--;
    if (w->steps == w->step_capacity) {
        w->step_capacity = (uint32_t)heap_next_capacity(w->step_capacity, (size_t)w->steps + 1);
        w->step = heap_realloc(w->step, w->step_capacity, sizeof *w->step);
    }
    w->step[w->steps] = (struct set_step){
        .row = row, .becomes = becomes, .guard = guard, .role = (uint16_t)w->role};
    id_map_add(&w->step_of, hash, w->steps++);
    return becomes;
}

/* The first rank that runs under the guard and is not in the set. */
static uint32_t first_without(const struct write_walk *w, uint32_t row, uint16_t guard)
{
    if (row == FULL)
        return IR_NONE;
    uint32_t words = w->ranks->words;
    for (uint32_t i = 0; i < words; i++) {
        uint64_t left =
            w->ranks->of_role[(size_t)w->role * words + i] & ~w->set[(size_t)row * words + i];
        if (guard != IR_NONE16)
            left &= w->ranks->of_guard[(size_t)guard * words + i];
        for (uint32_t bit = 0; left != 0; bit++, left >>= 1)
            if (left & 1)
                return i * 64 + bit;
    }
    return IR_NONE;
}

static void check_read(struct write_walk *w, uint32_t op, uint32_t operand)
{
    struct verifier *v = w->v;
    const struct ir *ir = v->ir;
    uint32_t buffer, from, to, bad_from = IR_NONE, bad_to = 0, rank = IR_NONE;
    slots_of(&v->slots, ir, operand, &buffer, &from, &to);
    if (ir->buffer.binding[buffer] != IR_NONE16)
        return;
    for (uint32_t slot = from; slot < to; slot++) {
        if (w->written[slot] == FULL)
            continue;
        uint32_t without = first_without(w, w->written[slot], ir->op.guard[op]);
        if (without == IR_NONE)
            continue;
        if (bad_from == IR_NONE) {
            bad_from = slot;
            rank = without;
        }
        if (bad_from != IR_NONE && (bad_to == 0 || bad_to == slot))
            bad_to = slot + 1;
        w->written[slot] = FULL; /* reported once is enough */
    }
    if (bad_from == IR_NONE)
        return;
    uint64_t end = bad_to < v->slots.first[buffer + 1]
                       ? v->slots.begin[bad_to]
                       : ir_buffer_elements(ir, (buffer_id){buffer});
    struct view view = {.buffer = {buffer},
                        .begin = v->slots.begin[bad_from],
                        .count = end - v->slots.begin[bad_from]};
    verify_fail(v, "%s reads %s, which no earlier op has written on %s", op_text(v, op),
                view_text(v, view), rank_text(v, rank));
}

void check_written(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct slots *slots = verify_slots(v);
    struct write_walk w = {.v = v, .ranks = verify_ranks(v)};
    w.written = heap_zalloc(slots->count, sizeof *w.written); /* EMPTY */
    for (int i = 0; i < FIRST_SET; i++)
        new_set(&w);
    for (w.role = 0; w.role < ir->role_count; w.role++) {
        const struct role *role = &ir->role[w.role];
        for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++) {
            const uint32_t *operand = ir->operand + ir->op.operand_begin[op];
            for (uint32_t k = 0; k < ir->op.reads[op]; k++)
                check_read(&w, op, operand[k]);
            for (uint32_t k = ir->op.reads[op]; k < operands_of(ir, op); k++) {
                uint32_t buffer, from, to;
                uint16_t guard = ir->op.guard[op];
                slots_of(slots, ir, operand[k], &buffer, &from, &to);
                for (uint32_t slot = from; slot < to; slot++)
                    if (w.written[slot] != FULL)
                        w.written[slot] =
                            guard == IR_NONE16 ? FULL : add_writers(&w, w.written[slot], guard);
            }
        }
    }
    free(w.written);
    free(w.step);
    free(w.set);
    id_map_release(&w.step_of);
    verify_checked(v, "%" PRIu32 " slots of %" PRIu32 " buffers on %" PRIu32 " ranks", slots->count,
                   ir->buffer.count, mesh_ranks(&ir->mesh));
}

/* --- life and death --- */

/* Has the op ended when all ops of the buffer's free set have? */
static bool ends_in_time(const struct ir *ir, const struct order *order, uint32_t buffer,
                         uint32_t op)
{
    const op_id *set = ir->free_op + ir->buffer.free_begin[buffer];
    for (uint32_t k = 0; k < ir->buffer.free_count[buffer]; k++) {
        uint32_t last = set[k].i;
        if (last == op)
            return true;
        if (last > op && last - order->begin < order->count && order_before(order, op, last))
            return true;
    }
    return false;
}

static bool touched_by_earlier_operand(const struct ir *ir, uint32_t op, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        if (operand_view(ir, op, i).buffer.i == operand_view(ir, op, k).buffer.i)
            return true;
    return false;
}

void check_use_after_free(struct verifier *v)
{
    const struct ir *ir = v->ir;
    for (uint32_t role = 0; role < ir->role_count; role++) {
        const struct order *order = verify_order_of(v, role);
        for (uint32_t op = order->begin; op < order->begin + order->count; op++)
            for (uint32_t k = 0; k < operands_of(ir, op); k++) {
                struct view view = operand_view(ir, op, k);
                uint32_t buffer = view.buffer.i;
                if (ir->buffer.free_count[buffer] == 0 || lifetimes_persistent(ir, buffer) ||
                    ends_in_time(ir, order, buffer, op) || touched_by_earlier_operand(ir, op, k))
                    continue;
                op_id last =
                    ir->free_op[ir->buffer.free_begin[buffer] + ir->buffer.free_count[buffer] - 1u];
                verify_fail(v, "%s %s %s, which is free after %s%s, and is not ordered before that",
                            op_text(v, op), k < ir->op.reads[op] ? "reads" : "writes",
                            view_text(v, view),
                            last.i < ir->op.count ? op_text(v, last.i) : "an op that is not there",
                            ir->buffer.free_count[buffer] > 1 ? " and others" : "");
            }
    }
    verify_checked(v, "%" PRIu32 " operands", ir->operand_count);
}

static bool in_role(const struct ir *ir, uint32_t role, uint32_t op)
{
    return op >= ir->role[role].op_begin && op - ir->role[role].op_begin < ir->role[role].op_count;
}

void check_double_free(struct verifier *v)
{
    const struct ir *ir = v->ir;
    uint32_t freed = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        const op_id *set = ir->free_op + ir->buffer.free_begin[b];
        uint32_t count = ir->buffer.free_count[b];
        freed += count != 0;
        if (count != 0 && lifetimes_persistent(ir, b)) {
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
            else if (!in_role(ir, ir->buffer.role[b], set[k].i))
                verify_fail(v, "%s of role %s is freed after op %" PRIu32 ", which is not its op",
                            buffer_text(v, b), ir->role[ir->buffer.role[b]].name, set[k].i);
        }
    }
    verify_checked(v, "%" PRIu32 " free sets", freed);
}

void check_leaks(struct verifier *v)
{
    const struct ir *ir = v->ir;
    bool *touched = heap_zalloc(ir->buffer.count, sizeof *touched);
    for (uint32_t op = 0; op < ir->op.count; op++)
        for (uint32_t k = 0; k < operands_of(ir, op); k++)
            touched[operand_view(ir, op, k).buffer.i] = true;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        if (ir->buffer.binding[b] != IR_NONE16)
            continue;
        if (!touched[b])
            verify_fail(v, "no op reads or writes %s", buffer_text(v, b));
        else if (ir->buffer.free_count[b] == 0 && !lifetimes_persistent(ir, b))
            verify_fail(v, "%s is never freed and not persistent", buffer_text(v, b));
    }
    free(touched);
    verify_checked(v, "%" PRIu32 " buffers", ir->buffer.count);
}
