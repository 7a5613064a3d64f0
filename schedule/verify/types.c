/* The rule `operand-type`: the dtypes that each kind requires of its operands (models/work_operands.h), and the dtype
 * of the step. */
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <stdlib.h>

/* The ops that compute in another dtype than that of the schedule. */
struct ops_with_other_dtype {
    /* op_count: their number. first_op: the first of them. first_operand: the index of its first operand in another
     * dtype, where reads come before writes */
    uint32_t op_count, first_op, first_operand;
};

/* Returns an operand as a text, for example "read 2, w0, in f32". */
static const char *operand_text(struct verifier *v, uint32_t op, uint32_t k)
{
    const struct ir *ir = v->ir;
    bool write = k >= ir->op.read_count[op];
    struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
    return arena_printf(&v->arena, "%s %" PRIu32 ", %s, in %s", write ? "write" : "read",
                        (write ? k - ir->op.read_count[op] : k) + 1, view_text(v, view),
                        dtype_name((enum dtype)ir->buffer.dtype[view.buffer.i]));
}

/* Checks the dtype of operand k. first[type]: the first operand of each type, with which others of that type must
 * agree; IR_NONE: there was none yet. */
static void check_operand_type(struct verifier *v, uint32_t op, uint32_t k,
                               const struct work_operand *operand, uint32_t *first)
{
    const struct ir *ir = v->ir;
    enum work_type type = operand->type;
    enum dtype fixed = operand->dtype;
    enum dtype dtype = ir->buffer.dtype[ir_touched_buffer(ir, op, k)];
    if (type == WORK_TYPE_GIVEN_DTYPE) {
        if (dtype != fixed)
            verify_fail(v, "%s: operand %s, must be %s", op_text(v, op), operand_text(v, op, k),
                        dtype_name(fixed));
        return;
    }
    if (type == WORK_TYPE_NARROW) {
        if (fixed == DTYPE_E2M1X2 ? dtype != fixed : dtype != DTYPE_E4M3 && dtype != DTYPE_E5M2)
            verify_fail(v, "%s: operand %s, must be %s", op_text(v, op), operand_text(v, op, k),
                        fixed == DTYPE_E2M1X2 ? "e2m1x2" : "e4m3 or e5m2");
        return;
    }
    if (type != WORK_TYPE_OP_DTYPE && !dtype_is_compute_type(dtype)) {
        verify_fail(v, "%s: operand %s, must be of a floating-point dtype", op_text(v, op),
                    operand_text(v, op, k));
        return;
    }
    if (type == WORK_TYPE_ANY_FLOAT || (type == WORK_TYPE_STEP_DTYPE_OR_F32 && dtype == DTYPE_F32))
        return;
    uint32_t *like = &first[type == WORK_TYPE_STEP_DTYPE_OR_F32 ? WORK_TYPE_STEP_DTYPE : type];
    if (*like == IR_NONE)
        *like = k;
    else if (dtype != ir->buffer.dtype[ir_touched_buffer(ir, op, *like)])
        verify_fail(v, "%s has %s: its dtype must be that of %s%s", op_text(v, op),
                    operand_text(v, op, k), operand_text(v, op, *like),
                    type == WORK_TYPE_STEP_DTYPE_OR_F32 ? ", or f32" : "");
}

static void check_op_types(struct verifier *v, uint32_t op, const struct operand_needs *types,
                           struct ops_with_other_dtype *other)
{
    const struct ir *ir = v->ir;
    uint32_t first[WORK_TYPE_GIVEN_DTYPE], reads = ir->op.read_count[op],
                                           writes = ir->op.write_count[op];
    for (int i = 0; i < WORK_TYPE_GIVEN_DTYPE; i++)
        first[i] = IR_NONE;
    for (uint32_t k = 0; k < reads && k < types->read_count; k++)
        check_operand_type(v, op, k, &types->read[k], first);
    for (uint32_t k = 0; k < writes && k < types->write_count; k++) {
        const enum dtype dtype = ir->buffer.dtype[ir_touched_buffer(ir, op, reads + k)];
        check_operand_type(v, op, reads + k,
                           work_operand_at(types->write, types->write_count, k, dtype), first);
    }
    uint32_t k = first[WORK_TYPE_STEP_DTYPE];
    if (k == IR_NONE || ir->buffer.dtype[ir_touched_buffer(ir, op, k)] == ir->dtype)
        return;
    if (other->op_count++ == 0) {
        other->first_op = op;
        other->first_operand = k;
    }
}

void check_types(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct operand_needs *all = find_operand_needs_of_all_shapes(v);
    struct ops_with_other_dtype other = {0};
    for (uint32_t op = 0; op < ir->op.count; op++)
        check_op_types(v, op, &all[ir->op.shape[op]], &other);
    /* without a line 'tokens' in the text, all four of these are 0 */
    bool said =
        ir->layout.sequence_tokens > 0 || ir->global_batch > 0 || ir->micro_batch > 0 || ir->dtype;
    if (other.op_count > 0 && said)
        verify_fail(v,
                    "%s has %s: with dtype=%s of the line 'tokens' it must be %s (%" PRIu32
                    " op%s compute%s in another dtype)",
                    op_text(v, other.first_op),
                    operand_text(v, other.first_op, other.first_operand),
                    dtype_name((enum dtype)ir->dtype), dtype_name((enum dtype)ir->dtype),
                    other.op_count, other.op_count == 1 ? "" : "s", other.op_count == 1 ? "s" : "");
    free(all);
    verify_set_what_was_checked_text(v, "%" PRIu32 " ops of %" PRIu32 " shapes", ir->op.count,
                                     ir->shape_count);
}
