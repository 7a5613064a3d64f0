#include "exec/operands.h"

#include "exec/backend.h"
#include "models/work_operands.h"

#include <inttypes.h>
#include <stdio.h>

_Static_assert((int)CALL_OPERANDS_MAX >= (int)WORK_OPERANDS_MAX,
               "a call has room for all operands of a kind");

/* The operands that an op reads, or those that it writes: `expected` is what the op's kind requires
 * (models/work_operands.h), and `views` what the schedule gives. */
struct operand_side {
    const char *name; /* "read" or "write" */
    struct work_operand expected[WORK_OPERANDS_MAX];
    uint32_t least_count, most_count; /* the fewest and the most operands that the kind takes */
    struct view views[CALL_OPERANDS_MAX];
    uint32_t view_count;
};

/* Returns the words for a condition that the kernels require and that the op's sizes do not meet; NULL: they meet all.
 * The numbers of operands are checked elsewhere. members: the number of ranks of the op's group; 1 if it has none. */
static const char *unmet_size_condition(const struct work *work, enum dtype dtype, uint32_t members)
{
    switch ((enum work_kind)work->kind) {
    case WORK_OPAQUE:
        return "it is an operator of a recorded program, which is simulated and never executed";
    case WORK_MATMUL: /* BLAS counts with 32 bits */
        if (work->matmul.m > INT32_MAX || work->matmul.n > INT32_MAX || work->matmul.k > INT32_MAX)
            return "m, n and k must be below 2^31";
        if (work_row_group_count(work) > 1 && work->matmul.epilogue == EPILOGUE_BIAS &&
            work->matmul.form == MATMUL_TN)
            return "a gradient in groups adds no bias";
        break;
    case WORK_ROUTE:
    case WORK_ROUTE_BACKWARD:
        if (work->route.experts <= 0 || work->route.copies > work->route.experts)
            return "a token cannot have more copies than there are experts";
        break;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        if (work->attention.scaling != SCALING_NONE)
            return "attention's core in 8 bits (--attention-products fp8) is predicted and never "
                   "executed; choose bf16";
        if (work->attention.kv_heads <= 0 || work->attention.heads % work->attention.kv_heads != 0)
            return "the heads of keys must divide those of queries";
        if (work->attention.dim <= 0 || work->attention.heads > INT32_MAX / work->attention.dim)
            return "heads x dim must be from 1 to 2^31 - 1";
        if (work->attention.heads > INT32_MAX / work_attention_vdim(work))
            return "heads x vdim must be from 1 to 2^31 - 1";
        if (work->attention.q > INT32_MAX / 2 || work->attention.kv > INT32_MAX / 2)
            return "queries and keys must be below 2^30";
        break;
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD:
        if (work->rope.dim <= 0 || work->rope.heads <= 0 ||
            (work->rope.rotated == 0 && work->rope.dim % 2 != 0))
            return "it needs heads of an even dim";
        if (work->rope.rotated > work->rope.dim || work->rope.rotated % 2 != 0)
            return "an even number of columns, at most dim, must be rotated";
        if (work->rope.stride != 0 && work->rope.stride / work->rope.dim < work->rope.heads)
            return "the stride must be at least heads x dim";
        break;
    case WORK_GELU:
    case WORK_GELU_BACKWARD:
        if (work->activation.function == FUNCTION_CLAMPED)
            return "function=clamped is that of a gate, which gelu has not";
        break;
    case WORK_ADD: /* p[0] is the count, p[1] the columns */
        if (work->p[1] > 0 && work->p[0] % work->p[1] != 0)
            return "the columns must divide the count";
        break;
    case WORK_ALL_TO_ALL:
    case WORK_REDUCE_SCATTER:
    case WORK_SCATTER:
        if (work_payload_bytes(work) % ((int64_t)dtype_bytes(dtype) * members) != 0)
            return "every member must get whole elements";
        break;
    default:
        break;
    }
    return NULL;
}

static bool count_is_allowed(const struct operand_side *side)
{
    for (uint32_t k = 0; k < side->most_count; k++) {
        const struct work_operand *want = &side->expected[k];
        uint64_t most = want->count_is_bytes ? INT64_MAX : IR_ELEMENTS_MAX;
        if (!want->is_only_usual_count && (want->count == 0 || want->count > most))
            return false;
    }
    return true;
}

static void fill_expected_operands(struct operand_side *side, enum work_side which,
                                   const struct work *work, uint32_t members)
{
    side->name = which == WORK_READS ? "read" : "write";
    side->most_count = side->least_count = work_operands(work, which, members, side->expected);
    while (side->least_count > 0 && side->expected[side->least_count - 1].optional)
        side->least_count--;
}

static bool dtype_is_allowed(const struct work_operand *want, enum dtype dtype)
{
    if (want->type == WORK_TYPE_OP_DTYPE || want->dtype == DTYPE_U8)
        return true;
    if (want->type == WORK_TYPE_GIVEN_DTYPE && want->dtype == DTYPE_I32)
        return dtype == DTYPE_I32;
    if (want->type == WORK_TYPE_NARROW)
        return want->dtype == DTYPE_E2M1X2 ? dtype == DTYPE_E2M1X2
                                           : dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2;
    if (want->type == WORK_TYPE_GIVEN_DTYPE && !dtype_is_compute_type((enum dtype)want->dtype))
        return dtype == want->dtype;
    /* any compute type is accepted, since a schedule that is checked in f64 has f64 everywhere */
    return dtype_is_compute_type(dtype);
}

static enum status check_operands_of_side(const struct ir *ir, uint32_t op,
                                          const struct operand_side *side, const char *name,
                                          struct diag *diag)
{
    for (uint32_t k = 0; k < side->view_count; k++) {
        struct view view = side->views[k];
        enum dtype dtype = (enum dtype)ir->buffer.dtype[view.buffer.i];
        const struct work_operand *want =
            work_operand_at(side->expected, side->most_count, k, dtype);
        uint64_t have = want->count_is_bytes ? view.count * dtype_bytes(dtype) : view.count;
        char buffer[64];
        if ((want->is_only_usual_count || have == want->count) && dtype_is_allowed(want, dtype))
            continue;
        ir_buffer_name(ir, view.buffer, buffer, sizeof buffer);
        return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s): %s %" PRIu32 " is %" PRIu64
                          " elements of %s in %s; its shape needs %" PRIu64 "%s of %s",
                          op, work_kind_info(ir->op.kind[op])->name, side->name, k, view.count,
                          dtype_name(dtype), buffer, want->count,
                          want->count_is_bytes ? " bytes" : "",
                          dtype_is_allowed(want, DTYPE_U8)    ? "any type"
                          : dtype_is_allowed(want, DTYPE_I32) ? "i32"
                          : want->type == WORK_TYPE_NARROW || !dtype_is_allowed(want, DTYPE_F32)
                              ? "an 8- or 4-bit type"
                              : "a floating-point type");
    }
    return STATUS_OK;
}

/* Checks that all operands between which the op moves or sums elements have the same dtype. */
static enum status check_moved_dtypes(const struct ir *ir, uint32_t op,
                                      const struct operand_side *sides, const char *name,
                                      struct diag *diag)
{
    const struct view *first = NULL;
    for (uint32_t k = 0; k < sides[0].view_count + sides[1].view_count; k++) {
        const struct operand_side *side = &sides[k < sides[0].view_count ? 0 : 1];
        uint32_t i = k < sides[0].view_count ? k : k - sides[0].view_count;
        if (side->expected[i].type != WORK_TYPE_OP_DTYPE && !side->expected[i].count_is_bytes)
            continue;
        if (first == NULL)
            first = &side->views[i];
        uint8_t from = ir->buffer.dtype[first->buffer.i],
                to = ir->buffer.dtype[side->views[i].buffer.i];
        if (from != to)
            return diag_error(diag, (struct loc){name, 0, 0}, STATUS_BAD_INPUT,
                              "op %" PRIu32 " (%s) moves %s into %s; a cast would convert it", op,
                              work_kind_info(ir->op.kind[op])->name, dtype_name((enum dtype)from),
                              dtype_name((enum dtype)to));
    }
    return STATUS_OK;
}

/* Writes how many operands the kind takes to text, "2" or "1 to 2", and returns text. */
static const char *print_expected_count(char *text, size_t size, const struct operand_side *side)
{
    if (side->least_count == side->most_count)
        snprintf(text, size, "%" PRIu32, side->most_count);
    else
        snprintf(text, size, "%" PRIu32 " to %" PRIu32, side->least_count, side->most_count);
    return text;
}

enum status operands_check(const struct ir *ir, uint32_t op, uint32_t members, const char *name,
                           struct diag *diag)
{
    const struct work *work = ir_work(ir, op);
    const char *kind = work_kind_info(work->kind)->name;
    const struct loc at = {name, 0, 0};
    struct operand_side side[2] = {{.view_count = ir->op.read_count[op]},
                                   {.view_count = ir->op.write_count[op]}};
    char reads[32], writes[32];
    members = members ? members : 1;
    for (int s = 0; s < 2; s++)
        fill_expected_operands(&side[s], (enum work_side)s, work, members);
    if (side[0].view_count < side[0].least_count || side[0].view_count > side[0].most_count ||
        side[1].view_count < side[1].least_count || side[1].view_count > side[1].most_count)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has %" PRIu32 " reads and %" PRIu32
                          " writes; its shape needs %s and %s",
                          op, kind, side[0].view_count, side[1].view_count,
                          print_expected_count(reads, sizeof reads, &side[0]),
                          print_expected_count(writes, sizeof writes, &side[1]));
    for (uint32_t k = 0; k < side[0].view_count; k++)
        side[0].views[k] = ir_read_view(ir, op, k);
    for (uint32_t k = 0; k < side[1].view_count; k++)
        side[1].views[k] = ir_write_view(ir, op, k);
    enum dtype dtype = DTYPE_U8;
    if (side[0].view_count > 0)
        dtype = (enum dtype)ir->buffer.dtype[side[0].views[0].buffer.i];
    const char *fault = !count_is_allowed(&side[0]) || !count_is_allowed(&side[1])
                            ? "an operand would have no elements, or 2^60 or more"
                            : unmet_size_condition(work, dtype, members);
    if (fault != NULL)
        return diag_error(diag, at, STATUS_BAD_INPUT, "op %" PRIu32 " (%s) cannot be executed: %s",
                          op, kind, fault);
    enum status status = check_moved_dtypes(ir, op, side, name, diag);
    for (int s = 0; s < 2 && status == STATUS_OK; s++)
        status = check_operands_of_side(ir, op, &side[s], name, diag);
    return status;
}
