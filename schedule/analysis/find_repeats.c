#include "schedule/analysis/find_repeats.h"

#include "schedule/analysis/iterations.h"
#include "schedule/analysis/liveness.h"

#include <stdlib.h>
#include <string.h>

enum { BEFORE_MIN = 2 }; /* the fewest iterations of a run before its gap */

struct repeat_finder {
    struct ir *ir;
    const struct role *role;
    uint32_t role_index; /* index of the role */
    /* [buffers] the first op of the role that reads or writes each buffer; IR_NONE: none does */
    const uint32_t *first_op_by_buffer;
    uint32_t first_run_of_role; /* index of the role's first run */
};

/* ---- runs ---- */

/* Appends the runs of the role to ir->repeats.run. Returns false if there are none, or if one has fewer than BEFORE_MIN
 * iterations before its gap or none after it. */
static bool find_runs(struct repeat_finder *f)
{
    struct repeats *r = &f->ir->repeats;
    uint32_t count;
    struct run_of_equal_iterations *found = find_iterations(f->ir, f->role_index, &count);
    struct repeat_run *row = arena_array(&f->ir->arena, r->run_count + count + 1u, sizeof *row);
    if (r->run_count > 0)
        memcpy(row, r->run, r->run_count * sizeof *row);
    r->run = row;
    bool have_gaps = count > 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct run_of_equal_iterations *of = &found[i];
        int32_t first = of->first / r->layers_per_period, step = of->step / r->layers_per_period,
                gap = step > 0 ? r->iteration_value_of_first_copy - first
                               : first - r->iteration_value_of_first_copy + 1;
        have_gaps &= gap >= BEFORE_MIN && gap < (int32_t)of->iteration_count;
        row[r->run_count] = (struct repeat_run){
            .role = f->role_index,
            .first_op = of->first_op,
            .ops_per_iteration = of->ops_per_iteration,
            .iteration_count = of->iteration_count,
            .gap_before_iteration = (uint32_t)gap,
            .first_value = first,
            .value_step = step,
            .ops_left_out_before = repeats_whole_op_count(r, REPEATS_ALL_ROLES, 0)};
        r->run_count++;
    }
    free(found);
    return have_gaps;
}

/* True if every op of the period of layers, or of the unit, on either side of the gap belongs to a run. */
static bool all_ops_at_gaps_belong_to_runs(const struct repeat_finder *f)
{
    const struct repeats *r = &f->ir->repeats;
    for (uint32_t op = f->role->op_begin; op < f->role->op_begin + f->role->op_count; op++) {
        int32_t label = iteration_label_of_op(f->ir, op, r->iterations_are_units),
                value = label / r->layers_per_period;
        if (label >= 0 &&
            (value == r->iteration_value_of_first_copy ||
             value == r->iteration_value_of_first_copy - 1) &&
            repeats_place_of_op(r, op).run == NULL)
            return false;
    }
    return true;
}

/* ---- whether iterations are isomorphic ---- */

static bool free_sets_correspond(const struct ir *ir, uint32_t a, int32_t value, uint32_t b,
                                 int32_t step)
{
    uint32_t count = ir->buffer.free_count[a];
    const op_id *of_a = ir_free_set(ir, a), *of_b = ir_free_set(ir, b);
    if (count != ir->buffer.free_count[b])
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!repeats_refs_match_over_iterations(&ir->repeats, of_a[i].i, value, of_b[i].i, step))
            return false;
    return true;
}

/* Returns the index of the first operand that lies in `buffer`. The op must have such an operand. */
static uint32_t operand_index_of_buffer(const struct ir *ir, uint32_t op, uint32_t buffer)
{
    uint32_t slot = 0;
    while (ir_touched_buffer(ir, op, slot) != buffer)
        slot++;
    return slot;
}

static bool buffers_correspond(const struct repeat_finder *f, uint32_t op, int32_t value,
                               uint32_t a, uint32_t b, int32_t step)
{
    const struct ir *ir = f->ir;
    const struct buffer_table *t = &ir->buffer;
    if (t->memory[a] != t->memory[b] || t->dtype[a] != t->dtype[b] ||
        t->category[a] != t->category[b] || t->flags[a] != t->flags[b] || t->dims[a] != t->dims[b])
        return false;
    if (liveness_is_persistent(ir, a))
        return true;
    uint32_t first_a = f->first_op_by_buffer[a], first_b = f->first_op_by_buffer[b];
    return operand_index_of_buffer(ir, first_a, a) == operand_index_of_buffer(ir, first_b, b) &&
           repeats_refs_match_over_iterations(&ir->repeats, first_a, value, first_b, step) &&
           (first_a != op || free_sets_correspond(ir, a, value, b, step));
}

static bool operands_correspond(const struct repeat_finder *f, uint32_t op, int32_t value,
                                uint32_t other, int32_t step)
{
    const struct ir *ir = f->ir;
    const uint32_t *a = ir_operands(ir, op), *b = ir_operands(ir, other);
    for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
        if ((a[k] & IR_OPERAND_IS_RANGE_ROW) != (b[k] & IR_OPERAND_IS_RANGE_ROW))
            return false;
        if (!buffers_correspond(f, op, value, ir_buffer_of_operand(ir, a[k]),
                                ir_buffer_of_operand(ir, b[k]), step))
            return false;
    }
    return true;
}

static bool waits_correspond(const struct ir *ir, uint32_t op, int32_t value, uint32_t other,
                             int32_t step)
{
    for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
        if (!repeats_refs_match_over_iterations(&ir->repeats, ir_waits(ir, op)[w].i, value,
                                                ir_waits(ir, other)[w].i, step))
            return false;
    return true;
}

/* True if two ops have the same phase, region and numbers of operands and waits. find_iterations() has compared their
 * shapes, streams and guards. */
static bool ops_have_same_labels_and_counts(const struct ir *ir, uint32_t a, uint32_t b)
{
    const struct op_table *t = &ir->op;
    return t->phase[a] == t->phase[b] && t->region[a] == t->region[b] &&
           t->read_count[a] == t->read_count[b] && t->write_count[a] == t->write_count[b] &&
           t->wait_count[a] == t->wait_count[b];
}

/* True if a run's last iteration before its gap, which the whole list copies, and the first one after the gap are
 * isomorphic (schedule/analysis/find_repeats.h). */
static bool iterations_correspond(const struct repeat_finder *f, const struct repeat_run *run)
{
    uint32_t begin = run->first_op + (run->gap_before_iteration - 1) * run->ops_per_iteration;
    for (uint32_t op = begin; op < begin + run->ops_per_iteration; op++) {
        int32_t value = repeats_place_of_op(&f->ir->repeats, op).value_of_iteration;
        if (!ops_have_same_labels_and_counts(f->ir, op, op + run->ops_per_iteration) ||
            !operands_correspond(f, op, value, op + run->ops_per_iteration, run->value_step) ||
            !waits_correspond(f->ir, op, value, op + run->ops_per_iteration, run->value_step))
            return false;
    }
    return true;
}

/* ---- the functions of the header ---- */

bool find_repeats(struct ir *ir, uint32_t role, const uint32_t *first_op_by_buffer)
{
    struct repeat_finder f = {.ir = ir,
                              .role = &ir->role[role],
                              .role_index = role,
                              .first_op_by_buffer = first_op_by_buffer,
                              .first_run_of_role = ir->repeats.run_count};
    if (role >= ir->role_count)
        return false;
    bool found = find_runs(&f) && all_ops_at_gaps_belong_to_runs(&f);
    for (uint32_t i = f.first_run_of_role; found && i < ir->repeats.run_count; i++)
        found = iterations_correspond(&f, &ir->repeats.run[i]);
    return found;
}

uint32_t repeats_count_buffer_instances(const struct ir *ir, uint32_t buffer)
{
    const struct repeats *r = &ir->repeats;
    uint16_t binding = ir->buffer.binding[buffer];
    if (r->copies_per_gap == 0 || r->iterations_are_units || binding == IR_NONE16 ||
        ir->binding[binding].bundle == IR_NONE16)
        return 1;
    int32_t layer = bundle_first_layer(ir, ir->binding[binding].bundle);
    return layer >= 0 && layer / r->layers_per_period == r->iteration_value_of_first_copy - 1
               ? 1 + r->copies_per_gap
               : 1;
}
