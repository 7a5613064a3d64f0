/* Prepares, before the first step, what ops need besides their operands: plans and scratch memory. */
#include "exec/cuda/cuda.h"

#include "exec/cuda/epilogues.h"
#include "exec/cuda/nccl.h"

#include <inttypes.h>
#include <stdlib.h>

/* Returns this process's first rank of a role; IR_NONE: it has none. This rank stands for the others of its role. They
 * differ only in the addresses of their memory, which is aligned in the same way, and in the numbers of rows that work
 * on rows of experts has. */
static uint32_t first_rank_of_role(const struct cuda *cuda, uint32_t role)
{
    for (uint32_t r = cuda->run->first_rank; r < cuda->run->first_rank + cuda->run->rank_count; r++)
        if (assignment_role_of(&cuda->run->assignment, r) == role)
            return r;
    return IR_NONE;
}

/* Returns the scaling of a cast to 8 bits or of a product; other work has none. */
static enum scaling operand_scaling_of(const struct work *work)
{
    return work->kind == WORK_QUANTISE ? (enum scaling)work->quantise.scaling
           : work->kind == WORK_MATMUL ? (enum scaling)work->matmul.scaling
                                       : SCALING_NONE;
}

/* Returns the words that name work for which this backend has no kernel; NULL: it has one. */
static const char *missing_kernel_text(const struct work *work)
{
    return (work->kind == WORK_RMSNORM && work->rmsnorm.bare) ||
                   (work->kind == WORK_RMSNORM_BACKWARD && work->rmsnorm_backward.bare)
               ? "norms without weights (qk_norm_bare)"
               : NULL;
}

/* Refuses an op with a scaling, a kind of work or a dtype (fp64) that this backend does not compute. */
static enum status check_types(const struct cuda *cuda, const struct call *call, struct diag *diag)
{
    const struct exec_run *run = cuda->run;
    const enum scaling scaling = operand_scaling_of(call->work);
    const bool has_blocks = scaling == SCALING_VECTOR || scaling == SCALING_BLOCK;
    const char *why = has_blocks ? products_why_no_block_scales(cuda->products) : NULL;
    if (why != NULL)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has scaling=%s, for which %s; --backend cpu has it",
                          call->op, work_kind_info((enum work_kind)call->work->kind)->name,
                          scaling_names[scaling], why);
    if (scaling > SCALING_TENSOR && !has_blocks)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has scaling=%s; the cuda backend has scales for a "
                          "tensor and for blocks of 128 (--products fp8-tensor, fp8-delayed, "
                          "fp8-block); --backend cpu has it",
                          call->op, work_kind_info((enum work_kind)call->work->kind)->name,
                          scaling_names[operand_scaling_of(call->work)]);
    if (operand_scaling_of(call->work) != SCALING_NONE && work_row_group_count(call->work) > 1)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has a scale for each of groups=%" PRId64
                          "; the cuda backend multiplies experts in 16 bits; --backend cpu has it",
                          call->op, work_kind_info((enum work_kind)call->work->kind)->name,
                          work_row_group_count(call->work));
    if (missing_kernel_text(call->work) != NULL)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) is one of %s, which the cuda backend does not "
                          "execute; --backend cpu does",
                          call->op, work_kind_info((enum work_kind)call->work->kind)->name,
                          missing_kernel_text(call->work));
    for (uint32_t k = 0; k < call->read_count + (uint32_t)call->write_count; k++) {
        const struct operand *o =
            k < call->read_count ? &call->read[k] : &call->write[k - call->read_count];
        if (o->dtype == DTYPE_F64)
            return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                              "op %" PRIu32 " (%s) has an operand in f64, which the cuda backend "
                              "does not compute in; bf16, f16 and f32 would do",
                              call->op, work_kind_info((enum work_kind)call->work->kind)->name);
    }
    return STATUS_OK;
}

/* Returns the bytes of a norm's statistics. */
static size_t norm_statistics_bytes(const struct work *norm)
{
    return (size_t)norm->rows.rows * (norm->kind == WORK_LAYERNORM ? 2 : 1) * sizeof(float);
}

static bool is_rope(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_ROPE || ir->op.kind[op] == WORK_ROPE_BACKWARD;
}

/* If the options ask for it, and the ops from `op` on are RoPE and a pack or unpack that one kernel may compute, plans
 * them as one call. */
static void prepare_rotated_pack(struct cuda *cuda, uint32_t op, struct cuda_prepared_op *prepared)
{
    struct epilogue_rotated_pack found;
    cuda->rope_count += is_rope(cuda->run->ir, op);
    if (!cuda->run->options->uses_epilogues || prepared->is_computed_by_previous_op ||
        !epilogue_find_rotated_pack(cuda->run->ir, op, &found))
        return;
    prepared->rotates_and_packs = true;
    for (uint32_t i = 1; i < found.op_count; i++)
        cuda->prepared_ops[op + i].is_computed_by_previous_op = true;
    cuda->joined_rope_count += found.rope_count;
}

/* Plans an op for a rank. `first` is the first rank of its role. What is planned for that rank holds for the others of
 * the role, too. Only if the op's numbers of rows depend on the rank (routed rows) does a call for another rank add to
 * the plans. */
static enum status prepare_op(struct cuda *cuda, uint32_t first, uint32_t rank, uint32_t op,
                              struct diag *diag)
{
    struct cuda_prepared_op *prepared = &cuda->prepared_ops[op];
    struct call call;
    struct attention_documents documents;
    size_t scratch = 0;
    run_fill_call(cuda->run, rank, op, &call);
    if (rank != first && call.routed_rows == NULL)
        return STATUS_OK;
    enum status status = check_types(cuda, &call, diag);
    if (status != STATUS_OK || cuda_runs_on_host(cuda->run->ir, op))
        return status;
    const struct cuda_kernel_table_row *row = &cuda_compute_rows[call.work->kind];
    if (rank == first)
        cuda->epilogue_op_count[call.work->kind == WORK_GELU         ? PRODUCT_GELU
                                : call.work->kind == WORK_COLUMN_SUM ? PRODUCT_COLUMN_SUM
                                                                     : PRODUCT_NO_EPILOGUE]++;
    if (rank == first && (call.work->kind == WORK_RMSNORM || call.work->kind == WORK_LAYERNORM))
        cuda->norm_count++;
    if (cuda->run->options->uses_epilogues &&
        epilogue_addition_can_compute_norm(cuda->run->ir, op)) {
        prepared->computes_next_norm = cuda->prepared_ops[op + 1].is_computed_by_previous_op = true;
        prepared->scratch_bytes = norm_statistics_bytes(ir_work(cuda->run->ir, op + 1));
        cuda->joined_norm_count++;
    }
    if (rank == first)
        prepare_rotated_pack(cuda, op, prepared);
    switch ((enum work_kind)call.work->kind) {
    case WORK_MATMUL:
        return cuda_prepare_product(cuda, &call, prepared, diag);
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        prepared->attention =
            attention_new(cuda->attentions, &call,
                          cuda_find_documents(cuda->run, op, &documents) ? &documents : NULL, diag);
        return prepared->attention != NULL ? STATUS_OK : STATUS_SYSTEM;
    default:
        scratch = row->scratch != NULL       ? row->scratch(call.work)
                  : cuda->run->world != NULL ? nccl_scratch_bytes(&call)
                                             : 0;
        prepared->scratch_bytes =
            scratch > prepared->scratch_bytes ? scratch : prepared->scratch_bytes;
        return STATUS_OK;
    }
}

enum status cuda_prepare_ops(struct cuda *cuda, struct diag *diag)
{
    const struct exec_run *run = cuda->run;
    const struct ir *ir = run->ir;
    enum status status = STATUS_OK;
    cuda->prepared_ops = heap_zalloc((size_t)ir->op.count + 1, sizeof *cuda->prepared_ops);
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++) {
        const uint32_t role = assignment_role_of(&run->assignment, r);
        const uint32_t first = first_rank_of_role(cuda, role), begin = ir->role[role].op_begin;
        for (uint32_t k = 0; k < ir->role[role].op_count && status == STATUS_OK; k++)
            status = prepare_op(cuda, first, r, begin + k, diag);
    }
    if (status == STATUS_OK)
        status = attentions_build(cuda->attentions, diag);
    for (uint32_t op = 0; op < ir->op.count && status == STATUS_OK; op++)
        if (cuda->prepared_ops[op].attention != NULL)
            cuda->prepared_ops[op].scratch_bytes =
                attention_scratch_bytes(cuda->prepared_ops[op].attention);
    return status;
}

void cuda_free_prepared_ops(struct cuda *cuda)
{
    for (uint32_t op = 0; cuda->prepared_ops != NULL && op < cuda->run->ir->op.count; op++)
        free(cuda->prepared_ops[op].product_plans_by_group_rows);
    free(cuda->prepared_ops);
}
