/* The last pass: writes the rows of a role in list order, and adds waits, free sets and offsets.
 *
 * Tables that the order of ops does not affect (shapes, sizes, names, groups, bindings) are moved from the emitted ir
 * as they are, so their ids stay valid. Ops, operands and buffers are written anew, each column front to back. A role
 * is emitted and finished before the next one begins, so the staging tables hold only one role at a time. */
#include "schedule/step/finalize.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/first_uses.h"
#include "schedule/analysis/free_sets.h"
#include "schedule/analysis/liveness.h"
#include "schedule/analysis/waits.h"
#include "schedule/emit/op_list.h"
#include "schedule/memory_plan/plan_offsets.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct role_writer {
    const struct emit *e;
    const struct ir *input;
    struct ir *output;
    struct order *order;
    struct first_uses *first_uses;
    struct waits *waits;
    struct free_sets free_sets;
    uint32_t first_not_persistent_buffer; /* the first new buffer that is not persistent */
    uint32_t *new_buffer;                 /* new id of each old buffer; IR_NONE: none */
    uint32_t *new_op;                     /* new id of each old op */
    /* for each old op, a row of e->added_dependencies; IR_NONE: none */
    uint32_t *dependency_row_by_op;
    /* [rows of e->added_dependencies] another row with the same waiting op; IR_NONE: none */
    uint32_t *next_dependency_row_of_same_op;
    uint32_t *next_buffer_number_by_stem; /* [stems] the number of the next buffer */
};

/* Swaps the members of struct ir that are declared before `buffer`: the tables that all roles share. write_role()
 * writes the other tables. */
static void swap_tables_shared_by_roles(struct ir *a, struct ir *b)
{
    struct ir was_a = *a;
    size_t size = offsetof(struct ir, buffer);
    memcpy(a, b, size);
    memcpy(b, &was_a, size);
}

/* Returns the new row of a buffer; the first call for a buffer writes the row. */
static inline uint32_t write_buffer(struct role_writer *f, uint32_t from)
{
    struct buffer_table *out = &f->output->buffer;
    if (f->new_buffer[from] != IR_NONE)
        return f->new_buffer[from];
    uint32_t to = f->new_buffer[from] = ir_copy_buffer(out, &f->input->buffer, from);
    out->number[to] = f->next_buffer_number_by_stem[out->stem[to]]++;
    return to;
}

/* Copies the columns of ops to their new rows; write_operands_and_waits_of_op() later sets their operands and waits.
 * Ops often have consecutive ids, and those are copied together. */
static void copy_op_columns(struct role_writer *f, const struct op_list *list)
{
    struct op_table *out = &f->output->op;
    for (uint32_t i = 0, rows; i < list->count; i += rows) {
        uint32_t from = list->op[i];
        for (rows = 1; i + rows < list->count && list->op[i + rows] == from + rows;)
            rows++;
        ir_copy_ops(out, out->count + i, &f->input->op, from, rows);
    }
}

/* ---- operands and waits ---- */

/* Returns the operand with its new ids, and sets *touch to the buffer and the elements that the op reads or writes. */
static inline uint32_t translate_operand(struct role_writer *f, uint32_t operand,
                                         struct touch *touch)
{
    if (!(operand & IR_OPERAND_IS_RANGE_ROW)) {
        touch->first_element = 0;
        touch->end_element = TOUCH_END_OF_WHOLE_BUFFER;
        return touch->buffer = write_buffer(f, operand);
    }
    struct ir_range range = f->input->range[operand & ~IR_OPERAND_IS_RANGE_ROW];
    const struct ir_element_extent *extent = &f->output->extent[range.extent_row];
    range.buffer.i = touch->buffer = write_buffer(f, range.buffer.i);
    touch->first_element = extent->begin;
    touch->end_element = extent->begin + extent->count;
    return ir_add_range(f->output, range) | IR_OPERAND_IS_RANGE_ROW;
}

static void write_waits(struct role_writer *f, uint32_t row)
{
    struct ir *out = f->output;
    uint32_t count;
    const op_id *kept = waits_join_and_return_needed(f->waits, f->order, &count);
    assert(count < IR_NONE16);
    ir_reserve(out, 0, 0, 0, count);
    out->op.wait_count[row] = (uint16_t)count;
    for (uint32_t i = 0; i < count; i++)
        out->wait[out->wait_count++] = kept[i];
}

/* Writes the row of old op i, of which all columns but operands and waits are set already, and sets its operands and
 * waits. */
static void write_operands_and_waits_of_op(struct role_writer *f, uint32_t i)
{
    const struct op_table *in = &f->input->op;
    struct op_table *out = &f->output->op;
    uint32_t row = out->count++, reads = in->read_count[i], operands = reads + in->write_count[i];
    const uint32_t *operand = ir_operands(f->input, i);
    uint32_t *carried = f->output->operand + f->output->operand_count;
    uint8_t stream = in->stream[i];
    struct touch touch[16];
    assert(operands <= ARRAY_LEN(touch));
    f->new_op[i] = row;
    out->operand_begin[row] = f->output->operand_count;
    f->output->operand_count += operands;

    order_open_op(f->order, order_kind_of_op(f->output, row), stream);
    for (uint32_t k = 0; k < in->wait_count[i]; k++)
        waits_add_op(f->waits, f->new_op[f->input->wait[in->wait_begin[i] + k].i]);
    for (uint32_t k = f->dependency_row_by_op[i]; k != IR_NONE;
         k = f->next_dependency_row_of_same_op[k])
        waits_add_op(f->waits, f->new_op[f->e->added_dependencies[k].awaited_op.i]);
    for (uint32_t k = 0; k < operands; k++) {
        touch[k].is_write = k >= reads;
        carried[k] = translate_operand(f, operand[k], &touch[k]);
    }
    out->wait_begin[row] = f->output->wait_count;
    out->wait_count[row] = 0;
    if (waits_add_conflicting_ops(f->waits, touch, operands, stream) > 0)
        write_waits(f, row);
    for (uint32_t k = 0; k < operands; k++) {
        first_uses_add_touch(f->first_uses, f->order, touch[k].buffer, row);
        if (touch[k].buffer >= f->first_not_persistent_buffer)
            free_sets_add_touch(&f->free_sets, f->order, touch[k].buffer, row);
    }
    order_close_op(f->order);
    waits_record_touches(f->waits, touch, operands, stream, row);
}

/* ---- the whole role ---- */

/* Adds ops to the free sets of buffers: those until which an implementation holds a buffer after its last use. */
static void extend_free_sets(struct role_writer *f)
{
    struct ir *out = f->output;
    for (uint32_t i = 0; i < f->e->extension_count; i++) {
        uint32_t buffer = f->new_buffer[f->e->extension[i].buffer.i],
                 until = f->new_op[f->e->extension[i].kept_until_op.i];
        const op_id *set = ir_free_set(out, buffer);
        op_id held[IR_STREAMS_MAX + 1]; /* the last op of each stream, and of the host */
        uint16_t count = 0;
        assert(out->buffer.free_count[buffer] < ARRAY_LEN(held));
        for (uint32_t k = 0; k < out->buffer.free_count[buffer]; k++)
            if (set[k].i != until)
                held[count++] = set[k];
        held[count++].i = until;
        ir_set_free_set(out, (buffer_id){buffer}, held, count);
    }
}

/* Returns, for each name stem, the number of the next buffer with that stem: earlier roles have used the numbers below
 * it. */
static uint32_t *next_number_of_stems(const struct ir *out)
{
    uint32_t *next = heap_zalloc(out->word_count, sizeof *next);
    for (uint32_t b = 0; b < out->buffer.count; b++)
        next[out->buffer.stem[b]]++;
    return next;
}

/* Returns an array on the heap, with an element for each buffer: true if an op of the list reads or writes the
 * buffer. */
static bool *buffers_touched_by_list(const struct ir *in, const struct op_list *list)
{
    bool *touched = heap_zalloc((size_t)in->buffer.count + 1, sizeof *touched);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i],
                       operands = (uint32_t)in->op.read_count[op] + in->op.write_count[op];
        for (uint32_t k = 0; k < operands; k++)
            touched[ir_touched_buffer(in, op, k)] = true;
    }
    return touched;
}

/* Forgets the rows of the staging tables and keeps their memory for the next role. */
static void clear_staging_rows(struct ir *staging)
{
    staging->op.count = 0;
    staging->buffer.count = 0;
    staging->range_count = 0;
    staging->operand_count = 0;
    staging->wait_count = 0;
    staging->free_op_count = 0;
}

/* Appends a role's ops and buffers to the tables of *out, without offsets. *order and *first_uses then hold the role's
 * clocks and first uses. */
static void write_role(const struct emit *e, const struct op_list *list, struct ir *out,
                       struct order *order, struct first_uses *first_uses)
{
    struct ir *in = e->ir;
    uint32_t first = out->op.count, first_buffer = out->buffer.count,
             /* an upper limit of the number of buffers of *out after this role */
        buffers = out->buffer.count + in->buffer.count;
    struct role_writer f = {
        .e = e,
        .input = in,
        .output = out,
        .order = order,
        .first_uses = first_uses,
        .new_buffer = ir_new_empty_ids(in->buffer.count),
        .new_op = heap_alloc(in->op.count, sizeof *f.new_op),
        .dependency_row_by_op = ir_new_empty_ids(in->op.count),
        .next_buffer_number_by_stem = next_number_of_stems(out),
    };
    f.next_dependency_row_of_same_op =
        heap_alloc((size_t)e->added_dependency_count + 1, sizeof *f.next_dependency_row_of_same_op);
    for (uint32_t i = 0; i < e->added_dependency_count; i++) {
        uint32_t *held = &f.dependency_row_by_op[e->added_dependencies[i].waiting_op.i];
        f.next_dependency_row_of_same_op[i] = *held;
        *held = i;
    }

    ir_reserve(out, list->count, in->buffer.count, in->operand_count, 0);
    order_begin_list(order, out->stream_count, first);
    f.waits = waits_new(order, buffers);
    first_uses_begin(first_uses, order, buffers);
    free_sets_init(&f.free_sets, buffers);
    /* Persistent buffers come first, in the order in which they were made: all of them for a whole step, else (--scope)
     * those that ops use. */
    bool *touched =
        e->choices->scope != SCOPE_WHOLE_STEP ? buffers_touched_by_list(in, list) : NULL;
    for (uint32_t b = 0; b < in->buffer.count; b++)
        if (liveness_is_persistent(in, b) && (touched == NULL || touched[b]))
            write_buffer(&f, b);
    free(touched);
    f.first_not_persistent_buffer = out->buffer.count;
    copy_op_columns(&f, list);
    for (uint32_t i = 0; i < list->count; i++)
        write_operands_and_waits_of_op(&f, list->op[i]);
    waits_free(f.waits);
    free_sets_store(&f.free_sets, out, first_buffer);
    free_sets_release(&f.free_sets);
    extend_free_sets(&f);
    free(f.new_buffer);
    free(f.new_op);
    free(f.dependency_row_by_op);
    free(f.next_dependency_row_of_same_op);
    free(f.next_buffer_number_by_stem);
}

bool finalize_role(const struct emit *e, const struct op_list *list, struct ir *out,
                   struct offsets_memory_figures *figures)
{
    struct order order = {0};
    struct first_uses first_uses = {0};
    uint32_t first = out->op.count;
    swap_tables_shared_by_roles(e->ir, out);
    write_role(e, list, out, &order, &first_uses);
    if (out->role_count > 0) { /* there is no role if there is no op */
        out->role[e->role].op_begin = first;
        out->role[e->role].op_count = list->count;
    }
    bool stands = out->repeats.copies_per_gap == 0 ||
                  find_repeats(out, e->role, first_uses.first_op_by_buffer);
    if (stands)
        stands = offsets_plan_role(out, e->role, &order, &first_uses,
                                   (struct offsets_scope){e->mask_of_memories_with_offsets,
                                                          .is_tight = e->choices->pp == 1},
                                   figures);
    swap_tables_shared_by_roles(e->ir, out);
    clear_staging_rows(e->ir);
    first_uses_release(&first_uses);
    order_release(&order);
    return stands;
}

void finalize_move_shared_tables(const struct emit *e, struct ir *out)
{
    swap_tables_shared_by_roles(e->ir, out);
}
