/* tests/exec/mutant_write.h: a schedule with one fault, and the writer that makes a new schedule from the
 * mutant's list of ops, with the original waits, lifetimes and arena or with new ones. Included by test files
 * only. */
#ifndef TESTS_EXEC_MUTANT_WRITE_H
#define TESTS_EXEC_MUTANT_WRITE_H

#include "schedule/analysis/liveness.h"
#include "schedule/analysis/waits.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/exec/matrix.h"

/* A schedule with one fault. */
struct mutant {
    struct ir *ir;
    struct check_random *random;
    uint32_t *list; /* the new order of ops; NULL: the tables of *ir were edited */
    uint32_t count;
    bool is_derived_again; /* waits, lifetimes and arena are derived anew */
    char what[160];        /* the fault in words */
};

/* Copies all of a schedule but its roles, its ops and its plan of memory. */
static inline void copy_ir_without_ops(struct ir *to, const struct ir *from)
{
    to->mesh = from->mesh;
    to->layout = from->layout;
    to->global_batch = from->global_batch;
    to->micro_batch = from->micro_batch;
    to->dtype = from->dtype;
    for (uint32_t i = 0; i < from->group_count; i++)
        ir_add_group(to, from->group[i].name, from->group[i].axis, from->group[i].axis_count);
    for (uint32_t i = 0; i < from->guard_count; i++)
        ir_add_guard(to, from->guard[i]);
    for (uint32_t i = 0; i < from->stream_count; i++)
        ir_add_stream(to, from->stream[i].name, from->stream[i].stream_class);
    for (uint32_t i = 0; i < from->tensor_count; i++)
        ir_add_tensor(to, from->tensor[i]);
    for (uint32_t i = 0; i < from->bundle_count; i++)
        ir_add_bundle(to, from->bundle[i]);
    for (uint32_t i = 0; i < from->binding_count; i++)
        ir_add_binding(to, from->binding[i]);
    for (uint32_t b = 0; b < from->buffer.count; b++) {
        const struct buffer_table *t = &from->buffer;
        ir_add_buffer(to, &(struct buffer_desc){.stem = from->word[t->stem[b]],
                                                .number = t->number[b],
                                                .memory = t->memory[b],
                                                .dtype = t->dtype[b],
                                                .category = t->category[b],
                                                .flags = t->flags[b],
                                                .role = t->role[b],
                                                .layer = t->layer[b],
                                                .binding = t->binding[b],
                                                .dims = from->dims[t->dims[b]]});
    }
}

/* The state of writing a mutant. With `is_derived_again`, order and waits describe the ops of the role that are written
 * already. */
struct mutant_builder {
    const struct ir *from;
    struct ir *to;
    struct order order;
    struct waits *waits;
    uint32_t *row; /* by op of `from`: the last row written for it, or IR_NONE */
    bool is_derived_again;
};

/* Appends op `op` of w->from to w->to. It waits for the same ops as before, except those that are not written yet.
 * With w->is_derived_again it also waits for each earlier op that conflicts with it, and waits that follow from others
 * are left out. */
static inline void append_op_of_mutant(struct mutant_builder *w, uint32_t op)
{
    const struct op_table *t = &w->from->op;
    struct view view[16];
    op_id wait[64];
    uint32_t count = 0, operands = (uint32_t)t->read_count[op] + t->write_count[op];
    struct op_desc desc = {
        .work = *ir_work(w->from, op),
        .stream = t->stream[op],
        .read_count = t->read_count[op],
        .write_count = t->write_count[op],
        .guard = t->guard[op],
        .tags = {t->phase[op], t->region[op], t->layer[op], t->chunk[op], t->step[op],
                 t->micro[op]},
        .read = view,
        .write = view + t->read_count[op],
        .wait = wait,
    };
    for (uint32_t k = 0; k < operands; k++)
        view[k] = ir_view_of_operand(w->from, w->from->operand[t->operand_begin[op] + k]);
    for (uint32_t k = 0; k < t->wait_count[op]; k++) {
        uint32_t row = w->row[w->from->wait[t->wait_begin[op] + k].i];
        if (row != IR_NONE && count < ARRAY_LEN(wait))
            wait[count++].i = row;
    }
    uint32_t at = w->to->op.count;
    if (w->is_derived_again) {
        enum order_op_kind place = order_kind_of_op(w->from, op);
        order_open_op(&w->order, place, t->stream[op]);
        for (uint32_t k = 0; k < count; k++)
            waits_add_op(w->waits, wait[k].i);
        struct touch touch[16];
        for (uint32_t k = 0; k < operands; k++)
            touch[k] = (struct touch){view[k].buffer.i, k >= t->read_count[op], view[k].begin,
                                      view[k].begin + view[k].count};
        waits_add_conflicting_ops(w->waits, touch, operands, t->stream[op]);
        const op_id *kept = waits_join_and_return_needed(w->waits, &w->order, &count);
        count = count < ARRAY_LEN(wait) ? count : ARRAY_LEN(wait);
        for (uint32_t k = 0; k < count; k++)
            wait[k] = kept[k];
        order_close_op(&w->order);
        waits_record_touches(w->waits, touch, operands, t->stream[op], at);
    }
    desc.wait_count = (uint16_t)count;
    w->row[op] = ir_add_op(w->to, &desc).i;
}

/* Copies the offsets of buffers, and their free sets without ops that were left out. */
static inline void copy_memory_plan_of_mutant(struct mutant_builder *w)
{
    const struct buffer_table *t = &w->from->buffer;
    for (uint32_t b = 0; b < t->count; b++) {
        op_id ops[64];
        const op_id *set = ir_free_set(w->from, b);
        uint16_t count = 0;
        for (uint32_t k = 0; k < t->free_count[b] && count < ARRAY_LEN(ops); k++)
            if (w->row[set[k].i] != IR_NONE)
                ops[count++].i = w->row[set[k].i];
        ir_set_free_set(w->to, (buffer_id){b}, ops, count);
        w->to->buffer.offset[b] = t->offset[b];
    }
    memcpy(w->to->planned_bytes, w->from->planned_bytes, sizeof w->to->planned_bytes);
}

/* Writes the ops of the mutant's list as a schedule into *to, which must be empty. */
static inline void build_schedule_of_mutant(const struct mutant *m, struct ir *to)
{
    struct mutant_builder w = {.from = m->ir, .to = to, .is_derived_again = m->is_derived_again};
    w.row = heap_alloc(m->ir->op.count + 1, sizeof *w.row);
    memset(w.row, 0xff, m->ir->op.count * sizeof *w.row);
    copy_ir_without_ops(to, m->ir);
    for (uint32_t i = 0, r = 0; r < m->ir->role_count; r++) { /* a role, then its ops */
        const struct role *role = &m->ir->role[r];
        ir_add_role(to, role->name, role->axis, role->axis_count);
        order_begin_list(&w.order, to->stream_count, to->op.count);
        w.waits = waits_new(&w.order, to->buffer.count);
        for (; i < m->count && ir_role_of_op(m->ir, m->list[i]) == r; i++)
            append_op_of_mutant(&w, m->list[i]);
        waits_free(w.waits);
        order_release(&w.order);
    }
    if (m->is_derived_again) {
        liveness_compute_free_sets(to);
        offsets_plan(to, NULL);
    } else {
        copy_memory_plan_of_mutant(&w);
    }
    free(w.row);
}

#endif
