/* schedule/verify/verifier.c: what the rules share: reports of faults, the order of ops, the slots of buffers, and
 * texts for messages. */
#include "base/ascending.h"
#include "base/c_locale.h"
#include "base/text.h"
#include "schedule/verify/rules.h"
#include "schedule/verify/verify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void verify_fail(struct verifier *v, const char *format, ...)
{
    if (v->result->failure_count++ >= VERIFY_MESSAGES_SHOWN_MAX)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    diag_error(v->diag, v->at, STATUS_NO, "%s: %s", v->rule, text);
}

void verify_set_what_was_checked_text(struct verifier *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c_vsnprintf(v->result->what_was_checked_text, sizeof v->result->what_was_checked_text, format,
                args);
    va_end(args);
}

/* ---- data that rules share, computed at the first use ---- */

const struct order *verifier_order_of_role(struct verifier *v, uint32_t role)
{
    if (v->role_of_order != role) {
        order_compute_clocks_of_role(&v->order, v->ir, role);
        v->role_of_order = role;
    }
    return &v->order;
}

/* Returns the slot of `buffer` that begins at an element, or, for the buffer's end, the slot after its last one. */
static uint32_t slot_that_begins_at_element(const struct buffers_cut_at_operand_ends *s,
                                            uint32_t buffer, uint64_t element)
{
    uint32_t first = s->first_slot[buffer], end = s->first_slot[buffer + 1];
    const uint64_t *found =
        bsearch(&element, s->first_element + first, end - first, sizeof element, ascending_u64);
    return found ? (uint32_t)(found - s->first_element) : end;
}

const struct buffers_cut_at_operand_ends *verifier_element_slots(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct buffers_cut_at_operand_ends *s = &v->element_slots_of_buffers;
    if (s->first_slot)
        return s;
    /* the edges of a buffer: element 0, and both ends of each range that is used */
    uint32_t buffers = ir->buffer.count;
    uint64_t *first_edge = heap_zalloc((size_t)buffers + 1, sizeof *first_edge);
    for (uint32_t b = 0; b < buffers; b++)
        first_edge[b + 1] = 1;
    for (uint32_t r = 0; r < ir->range_count; r++)
        first_edge[ir->range[r].buffer.i + 1] += 2;
    for (uint32_t b = 0; b < buffers; b++)
        first_edge[b + 1] += first_edge[b];
    uint64_t *edge = heap_zalloc(first_edge[buffers], sizeof *edge);
    uint32_t *filled = heap_alloc(buffers, sizeof *filled);
    for (uint32_t b = 0; b < buffers; b++)
        filled[b] = 1;
    for (uint32_t r = 0; r < ir->range_count; r++) {
        struct view range = ir_range_view(ir, r);
        uint64_t *row = edge + first_edge[range.buffer.i];
        row[filled[range.buffer.i]++] = range.begin;
        row[filled[range.buffer.i]++] = range.begin + range.count;
    }
    /* The edges of each buffer are sorted, duplicates removed, and the edge at the buffer's end dropped. The rest are
     * the first elements of the slots. */
    s->first_slot = heap_alloc((size_t)buffers + 1, sizeof *s->first_slot);
    for (uint32_t b = 0; b < buffers; b++) {
        uint64_t *row = edge + first_edge[b];
        s->first_slot[b] = s->slot_count;
        uint64_t elements = ir_buffer_elements(ir, (buffer_id){b});
        qsort(row, filled[b], sizeof *row, ascending_u64);
        for (uint32_t i = 0; i < filled[b]; i++)
            if (row[i] < elements && (i == 0 || row[i] != row[i - 1])) {
                /* this never overwrites a row that is still to be read: first_edge[b] + i >= s->slot_count */
                edge[s->slot_count++] = row[i];
                assert(s->slot_count < UINT32_MAX);
            }
    }
    s->first_slot[buffers] = s->slot_count;
    s->first_element = edge;
    free(first_edge);
    free(filled);

    s->range_first_slot = heap_alloc(ir->range_count, sizeof *s->range_first_slot);
    s->range_end_slot = heap_alloc(ir->range_count, sizeof *s->range_end_slot);
    for (uint32_t r = 0; r < ir->range_count; r++) {
        struct view range = ir_range_view(ir, r);
        s->range_first_slot[r] = slot_that_begins_at_element(s, range.buffer.i, range.begin);
        s->range_end_slot[r] =
            slot_that_begins_at_element(s, range.buffer.i, range.begin + range.count);
    }
    return s;
}

void find_element_slots_of_operand(const struct buffers_cut_at_operand_ends *slots,
                                   const struct ir *ir, uint32_t operand, uint32_t *buffer,
                                   uint32_t *from, uint32_t *to)
{
    if (operand & IR_OPERAND_IS_RANGE_ROW) {
        uint32_t range = operand & ~IR_OPERAND_IS_RANGE_ROW;
        *buffer = ir->range[range].buffer.i;
        *from = slots->range_first_slot[range];
        *to = slots->range_end_slot[range];
    } else {
        *buffer = operand;
        *from = slots->first_slot[operand];
        *to = slots->first_slot[operand + 1];
    }
}

/* ---- texts, which are not made for messages that will not be shown ---- */

static bool has_shown_enough_messages(const struct verifier *v)
{
    return v->result->failure_count >= VERIFY_MESSAGES_SHOWN_MAX;
}

const char *op_text(struct verifier *v, uint32_t op)
{
    if (has_shown_enough_messages(v))
        return "";
    const struct ir *ir = v->ir;
    const char *kind = work_kind_info(ir->op.kind[op])->name;
    const char *stream = ir->stream[ir->op.stream[op]].name;
    if (ir->op.guard[op] == IR_NONE16)
        return arena_printf(&v->arena, "op %" PRIu32 " (%s on %s)", op, kind, stream);
    const struct guard *guard = &ir->guard[ir->op.guard[op]];
    return arena_printf(&v->arena, "op %" PRIu32 " (%s on %s, guard %s%s%" PRIu32 ")", op, kind,
                        stream, ir->group[guard->group].name, guard_signs[guard->comparison_kind],
                        guard->value);
}

const char *buffer_text(struct verifier *v, uint32_t buffer)
{
    if (has_shown_enough_messages(v))
        return "";
    char name[512];
    ir_buffer_name(v->ir, (buffer_id){buffer}, name, sizeof name);
    return arena_printf(&v->arena, "%s", name);
}

const char *view_text(struct verifier *v, struct view view)
{
    if (has_shown_enough_messages(v))
        return "";
    const char *name = buffer_text(v, view.buffer.i);
    if (view.begin == 0 && view.count == ir_buffer_elements(v->ir, view.buffer))
        return name;
    return arena_printf(&v->arena, "%s[%" PRIu64 ":%" PRIu64 "]", name, view.begin,
                        view.begin + view.count);
}

const char *rank_text(struct verifier *v, uint32_t rank)
{
    if (has_shown_enough_messages(v))
        return "";
    const struct mesh *mesh = &v->ir->mesh;
    uint32_t coordinate[MESH_AXES_MAX];
    mesh_coordinates(mesh, rank, coordinate);
    struct text text = {0};
    text_printf(&text, "rank %" PRIu32, rank);
    for (uint32_t a = 0; a < mesh->axis_count; a++)
        text_printf(&text, "%s%s=%" PRIu32, a ? " " : " (", mesh->axis[a].name, coordinate[a]);
    if (mesh->axis_count)
        text_putc(&text, ')');
    const char *kept = arena_text(&v->arena, text.data, text.size);
    text_release(&text);
    return kept;
}
