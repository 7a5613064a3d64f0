/* Prepares what ops need besides their operands before the first step (plans and scratch memory), and chooses the
 * function that puts each kind of work on a stream. */
#include "exec/cuda/cuda.h"

#include "exec/cpu/kernels.h"
#include "exec/cuda/epilogues.h"
#include "exec/cuda/nccl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- planning ---- */

/* Returns the run's first rank of a role, which represents the others: they differ only in the addresses of blocks of
 * memory, which are aligned alike, and in the sizes of work on rows of experts. IR_NONE: the run has none. */
static uint32_t rank_of_role(const struct cuda *cuda, uint32_t role)
{
    for (uint32_t r = cuda->run->first_rank; r < cuda->run->first_rank + cuda->run->rank_count; r++)
        if (assignment_role_of(&cuda->run->assignment, r) == role)
            return r;
    return IR_NONE;
}

static uint8_t flag_from_parameter(int64_t parameter)
{
    return parameter != 0;
}

/* Returns the alignment of an operand's elements 0, step, 2 step, ... */
static uint8_t group_alignment(const struct operand *operand, int64_t step)
{
    const uintptr_t bytes = (uintptr_t)step * dtype_bytes((enum dtype)operand->dtype);
    return product_alignment((const void *)((uintptr_t)operand->data | bytes));
}

/* Returns the product of one group with `rows` rows of a or, for the gradient of a weight, `rows` rows of both a and
 * b. */
static struct product_shape product_shape_of(const struct call *call, int64_t rows)
{
    const struct work *w = call->work;
    const bool turned = w->matmul.form == MATMUL_TN;
    int64_t m = turned ? w->matmul.m : rows, n = w->matmul.n, k = turned ? rows : w->matmul.k;
    struct product_shape shape = {
        .m = m,
        .n = n,
        .k = k,
        .a_stride = w->matmul.form == MATMUL_TN ? m : k,
        .b_stride = w->matmul.form == MATMUL_NT ? k : n,
        .y_stride = n,
        .form = (uint8_t)w->matmul.form,
        .a_type = call->read[0].dtype,
        .b_type = call->read[1].dtype,
        .has_scales = w->matmul.scaling != SCALING_NONE,
        .scaling = (uint8_t)w->matmul.scaling,
        .y_type = call->write[0].dtype,
        .accumulates = flag_from_parameter(w->matmul.accumulate),
        .has_bias = w->matmul.epilogue == EPILOGUE_BIAS,
        .a_align = product_alignment(call->read[0].data),
        .b_align = product_alignment(call->read[1].data),
        .y_align = product_alignment(call->write[0].data),
    };
    if (work_row_groups(w) > 1 || w->matmul.part > 0) {
        /* a group may begin at any row, and its matrix of weights follows whole matrices */
        shape.a_align = group_alignment(&call->read[0], shape.a_stride);
        shape.b_align = group_alignment(&call->read[1], turned ? n : n * k);
        shape.y_align = group_alignment(&call->write[0], turned ? m * n : n);
        if (shape.has_bias && group_alignment(&call->read[2], n) < shape.y_align)
            shape.y_align = group_alignment(&call->read[2], n);
    }
    return shape;
}

/* Returns the number of rows that a product's groups share out: k for the gradient of weights, otherwise m. */
static int64_t rows_to_share_out(const struct work *work)
{
    return work->matmul.form == MATMUL_TN ? work->matmul.k : work->matmul.m;
}

static enum status report_types(const struct exec_run *run, const struct call *call,
                                struct diag *diag, const char *what)
{
    return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                      "op %" PRIu32 " (%s): %s; the cuda backend wants one type there", call->op,
                      work_kind_info((enum work_kind)call->work->kind)->name, what);
}

/* Returns how many rows group g has. *first: on entry the end of the group before, where the rows begin; on return
 * their end. */
static int64_t rows_of_group(const struct call *call, int64_t g, int64_t *first)
{
    const int64_t begin = *first;
    *first = assignment_group_rows_end(call->routed_rows, rows_to_share_out(call->work),
                                       work_row_groups(call->work), g, begin);
    return *first - begin;
}

/* Returns the index of the first plan that is for `rows` rows or more; the number of plans if there is none. */
static uint32_t find_plan(const struct cuda_prepared *prepared, int64_t rows)
{
    uint32_t low = 0, high = prepared->plan_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (prepared->group_plans[middle].rows < rows)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the plan for groups of `rows` rows, if there is none yet. Groups without rows need none. */
static enum status plan_group(const struct cuda *cuda, const struct call *call, int64_t rows,
                              struct cuda_prepared *prepared, struct diag *diag)
{
    const uint32_t at = find_plan(prepared, rows);
    if (rows == 0 || (at < prepared->plan_count && prepared->group_plans[at].rows == rows))
        return STATUS_OK;
    const struct product_shape shape = product_shape_of(call, rows);
    const struct product *product = products_plan(cuda->products, &shape, diag);
    if (product == NULL)
        return STATUS_SYSTEM;
    prepared->group_plans = heap_realloc(prepared->group_plans, prepared->plan_count + 1,
                                         sizeof *prepared->group_plans);
    memmove(prepared->group_plans + at + 1, prepared->group_plans + at,
            (prepared->plan_count++ - at) * sizeof *prepared->group_plans);
    prepared->group_plans[at] = (struct cuda_group_plan){rows, product};
    return STATUS_OK;
}

/* True if the bias has another type than the result; a router's has, since its logits are fp32. Such a bias is cast to
 * the result's type, in the scratch memory after the library's workspace. */
static bool casts_bias(const struct call *call)
{
    return call->work->matmul.epilogue == EPILOGUE_BIAS &&
           call->read[2].dtype != call->write[0].dtype;
}

/* Returns where an epilogue writes its sums: to the result of the next op; or, if they must be added there, or if that
 * does not begin at a multiple of 16 bytes, to the scratch memory after the library's workspace. */
static void *epilogue_sums_address(const struct call *next, void *scratch)
{
    const struct operand *y = &next->write[0];
    const bool own = next->work->column_sum.accumulate == 0 && product_alignment(y->data) >= 4;
    return own ? y->data : (char *)scratch + PRODUCT_WORKSPACE;
}

/* Plans a product whose call also computes the next op. Returns false if the library has no algorithm for it, or does
 * not support the addresses. */
static bool plan_with_epilogue(const struct cuda *cuda, const struct call *call,
                               enum product_epilogue epilogue, struct cuda_prepared *prepared)
{
    struct call next;
    run_fill_call(cuda->run, call->rank, call->op + 1, &next);
    const int64_t rows = rows_to_share_out(call->work);
    struct product_shape shape = product_shape_of(call, rows);
    shape.epilogue = (uint8_t)epilogue;
    if (epilogue == PRODUCT_GELU) {
        if (shape.y_align < 4) /* 16 bytes, which the library asks of what it keeps */
            return false;
        shape.y_align = product_alignment(next.write[0].data);
    }
    const struct product *product = products_plan(cuda->products, &shape, NULL);
    if (product == NULL)
        return false;
    prepared->group_plans = heap_alloc(1, sizeof *prepared->group_plans);
    prepared->group_plans[prepared->plan_count++] = (struct cuda_group_plan){rows, product};
    prepared->epilogue = (uint8_t)epilogue;
    if (epilogue == PRODUCT_COLUMN_SUM)
        prepared->scratch_bytes +=
            next.write[0].element_count * dtype_bytes((enum dtype)next.write[0].dtype);
    return true;
}

/* Plans a product and the op after it as one call, if both options and library allow it. */
static bool plan_with_next_op(struct cuda *cuda, const struct call *call,
                              struct cuda_prepared *prepared)
{
    const enum product_epilogue epilogue = cuda->run->options->uses_epilogues
                                               ? epilogue_for_product(cuda->run->ir, call->op)
                                               : PRODUCT_ALONE;
    if (epilogue == PRODUCT_ALONE)
        return false;
    cuda->candidate_count[epilogue]++;
    if (!plan_with_epilogue(cuda, call, epilogue, prepared))
        return false;
    cuda->joined_count[epilogue]++;
    cuda->prepared_ops[call->op + 1].is_computed_by_previous_op = true;
    return true;
}

/* Returns the rows of a block of numbers that share a scale in a factor of a product; 0: it has no such blocks. */
static int block_rows_of_factor(const struct work *work, int which)
{
    const enum scaling scaling = work_scale_layout(work, which).scaling;
    return scaling == SCALING_BLOCK ? CUDA_SCALE_BLOCK : scaling == SCALING_VECTOR ? 1 : 0;
}

/* Returns where in a product's scratch memory the scales of factor `which` lie in the order that the library wants, or
 * with 2 where they end: after the workspace and a bias that is cast. */
static size_t scales_offset(const struct call *call, int which)
{
    const struct work *w = call->work;
    const size_t cast = casts_bias(call) ? call->read[2].element_count *
                                               dtype_bytes((enum dtype)call->write[0].dtype)
                                         : 0;
    size_t offset = PRODUCT_WORKSPACE + (cast + 255) / 256 * 256;
    for (int k = 0; k < which; k++) {
        const int block_rows = block_rows_of_factor(w, k);
        const size_t scales =
            block_rows == 0
                ? 0
                : cuda_laid_out_scales(k == 0 ? w->matmul.m : w->matmul.n, w->matmul.k, block_rows);
        offset += (scales * sizeof(float) + 255) / 256 * 256;
    }
    return offset;
}

/* Plans a product, with all groups that it has on the call's rank. */
static enum status prepare_product(struct cuda *cuda, const struct call *call,
                                   struct cuda_prepared *prepared, struct diag *diag)
{
    const struct product_shape shape = product_shape_of(call, 1);
    if (!shape.has_scales && shape.b_type != shape.a_type)
        return report_types(cuda->run, call, diag, "its factors have different types");
    prepared->scratch_bytes = scales_offset(call, 2);
    if (plan_with_next_op(cuda, call, prepared))
        return STATUS_OK;
    enum status status = STATUS_OK;
    int64_t first = 0;
    for (int64_t g = 0; g < work_row_groups(call->work) && status == STATUS_OK; g++)
        status = plan_group(cuda, call, rows_of_group(call, g, &first), prepared, diag);
    return status;
}

static bool runs_on_host(const struct ir *ir, uint32_t op)
{
    return ir->stream[ir->op.stream[op]].stream_class == STREAM_HOST;
}

/* Returns the scaling of a cast or a product. */
static enum scaling scaling_of(const struct work *work)
{
    return work->kind == WORK_QUANTISE ? (enum scaling)work->quantise.scaling
           : work->kind == WORK_MATMUL ? (enum scaling)work->matmul.scaling
                                       : SCALING_NONE;
}

/* Returns which work this backend has no kernel for, in words; NULL: it has a kernel. */
static const char *missing_kernel_text(const struct work *work)
{
    return (work->kind == WORK_RMSNORM && work->rmsnorm.bare) ||
                   (work->kind == WORK_RMSNORM_BACKWARD && work->rmsnorm_backward.bare)
               ? "norms without weights (qk_norm_bare)"
               : NULL;
}

/* Refuses an op whose scaling, kind of work or dtype (fp64) this backend does not compute. */
static enum status check_types(const struct cuda *cuda, const struct call *call, struct diag *diag)
{
    const struct exec_run *run = cuda->run;
    const enum scaling scaling = scaling_of(call->work);
    const bool has_blocks = scaling == SCALING_VECTOR || scaling == SCALING_BLOCK;
    const char *why = has_blocks ? products_why_no_blocks(cuda->products) : NULL;
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
                          scaling_names[scaling_of(call->work)]);
    if (scaling_of(call->work) != SCALING_NONE && work_row_groups(call->work) > 1)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "op %" PRIu32 " (%s) has a scale for each of groups=%" PRId64
                          "; the cuda backend multiplies experts in 16 bits; --backend cpu has it",
                          call->op, work_kind_info((enum work_kind)call->work->kind)->name,
                          work_row_groups(call->work));
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
static size_t statistics_bytes(const struct work *norm)
{
    return (size_t)norm->rows.rows * (norm->kind == WORK_LAYERNORM ? 2 : 1) * sizeof(float);
}

static bool is_rope(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_ROPE || ir->op.kind[op] == WORK_ROPE_BACKWARD;
}

/* Plans RoPE and the pack beside it as one call, if the options ask for it. */
static void prepare_rotated_pack(struct cuda *cuda, uint32_t op, struct cuda_prepared *prepared)
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

/* Plans an op for a rank of its role. `first` is the first such rank, whose plan does for the others where sizes do not
 * depend on the rank. */
static enum status prepare_op(struct cuda *cuda, uint32_t first, uint32_t rank, uint32_t op,
                              struct diag *diag)
{
    struct cuda_prepared *prepared = &cuda->prepared_ops[op];
    struct call call;
    struct attention_documents documents;
    size_t scratch = 0;
    run_fill_call(cuda->run, rank, op, &call);
    if (rank != first && call.routed_rows == NULL)
        return STATUS_OK;
    enum status status = check_types(cuda, &call, diag);
    if (status != STATUS_OK || runs_on_host(cuda->run->ir, op))
        return status;
    const struct cuda_compute_row *row = &cuda_compute_rows[call.work->kind];
    if (rank == first)
        cuda->epilogue_op_count[call.work->kind == WORK_GELU         ? PRODUCT_GELU
                                : call.work->kind == WORK_COLUMN_SUM ? PRODUCT_COLUMN_SUM
                                                                     : PRODUCT_ALONE]++;
    if (rank == first && (call.work->kind == WORK_RMSNORM || call.work->kind == WORK_LAYERNORM))
        cuda->norm_count++;
    if (cuda->run->options->uses_epilogues && epilogue_can_be_norm(cuda->run->ir, op)) {
        prepared->computes_next_norm = cuda->prepared_ops[op + 1].is_computed_by_previous_op = true;
        prepared->scratch_bytes = statistics_bytes(ir_work(cuda->run->ir, op + 1));
        cuda->joined_norm_count++;
    }
    if (rank == first)
        prepare_rotated_pack(cuda, op, prepared);
    switch ((enum work_kind)call.work->kind) {
    case WORK_MATMUL:
        return prepare_product(cuda, &call, prepared, diag);
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
        const uint32_t first = rank_of_role(cuda, role), begin = ir->role[role].op_begin;
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
        free(cuda->prepared_ops[op].group_plans);
    free(cuda->prepared_ops);
}

/* ---- putting work on a stream ---- */

static bool record_op_failure(const struct cuda_stream *stream, uint32_t op, const char *words)
{
    run_record_failure(stream->rank->run, stream->rank->rank, op, "%s", words);
    return false;
}

static struct cuda_launch_context launch_context_of(const struct cuda_stream *stream, uint32_t op)
{
    return (struct cuda_launch_context){.stream = stream->handle,
                                        .scratch = stream->scratch,
                                        .fault_mark_address = stream->rank->fault_mark_address,
                                        .fault_mark = (int32_t)op + 1,
                                        .row_pairs = cuda_row_pairs_of_op(stream->rank, op),
                                        .expert_begins = cuda_expert_begins(stream->rank, op)};
}

/* Returns the address of an operand's element. */
static void *element_address(const struct operand *operand, int64_t index)
{
    return (char *)operand->data + (size_t)index * dtype_bytes((enum dtype)operand->dtype);
}

/* Sets `count` elements of a gradient, from `first` on, to which no row adds: to those of c if the gradient accumulates
 * onto c, else to zero. */
static int set_gradient_without_rows(const struct cuda_stream *stream, const struct call *call,
                                     const struct operand *c, int64_t first, int64_t count)
{
    const struct operand *y = &call->write[0];
    struct cuda_array before = {0};
    if (call->work->matmul.accumulate)
        before = (struct cuda_array){element_address(c, first), c->dtype};
    return cuda_begin_sum((struct cuda_array){element_address(y, first), y->dtype}, before, count,
                          stream->handle);
}

/* Runs the product of group g, whose `rows` rows begin at `first`. bias: the biases of all groups, in the type of y;
 * NULL: none. If only a rank's part of a weight is multiplied, g is the number of that part. */
static int run_product_group(const struct cuda *cuda, const struct cuda_stream *stream,
                             const struct call *call, const struct operand *bias, int64_t g,
                             int64_t first, int64_t rows)
{
    const struct work *w = call->work;
    const struct cuda_prepared *prepared = &cuda->prepared_ops[call->op];
    const bool turned = w->matmul.form == MATMUL_TN;
    const int64_t m = w->matmul.m, n = w->matmul.n, k = w->matmul.k;
    const int64_t result = turned ? g * m * n : first * n;
    const struct operand *c =
        w->matmul.accumulate ? &call->read[bias != NULL ? 3 : 2] : &call->write[0];
    if (rows == 0)
        return turned ? set_gradient_without_rows(stream, call, c, result, m * n) : 0;
    return product_run(cuda->products, prepared->group_plans[find_plan(prepared, rows)].product, 1,
                       element_address(&call->read[0], first * (turned ? m : k)),
                       element_address(&call->read[1], turned ? first * n : g * n * k),
                       bias != NULL ? element_address(bias, g * n) : NULL,
                       element_address(c, result), element_address(&call->write[0], result), NULL,
                       stream->scratch, stream->handle);
}

/* Runs a product whose call computes the next op, too. */
static int run_product_with_epilogue(const struct cuda *cuda, const struct cuda_stream *stream,
                                     const struct call *call)
{
    const struct cuda_prepared *prepared = &cuda->prepared_ops[call->op];
    const struct product *product = prepared->group_plans[0].product;
    const void *a = call->read[0].data, *b = call->read[1].data;
    void *y = call->write[0].data;
    struct call next;
    run_fill_call(stream->rank->run, stream->rank->rank, call->op + 1, &next);
    void *to = next.write[0].data;
    if (prepared->epilogue == PRODUCT_GELU) {
        const bool biased = call->work->matmul.epilogue == EPILOGUE_BIAS;
        return product_run(cuda->products, product, 1, a, b, biased ? call->read[2].data : NULL, to,
                           to, y, stream->scratch, stream->handle);
    }
    const struct cuda_array sums = {epilogue_sums_address(&next, stream->scratch),
                                    next.write[0].dtype},
                            own = cuda_array_of(next.write[0]);
    const int status = product_run(cuda->products, product, 1, a, b, NULL,
                                   call->work->matmul.accumulate ? call->read[2].data : y, y,
                                   sums.data, stream->scratch, stream->handle);
    if (status != 0 || sums.data == to)
        return status;
    const int64_t count = (int64_t)next.write[0].element_count;
    const int error = next.work->column_sum.accumulate
                          ? cuda_add(own, cuda_array_of(next.read[1]), sums, count, stream->handle)
                          : cuda_cast(own, sums, count, stream->handle);
    return error == 0 ? 0 : (int)CUBLAS_STATUS_EXECUTION_FAILED;
}

/* Runs all groups of a product, or the product by the rank's part of a weight. The other parts of that weight's
 * gradient are set as for a group without rows. */
static int run_product_groups(const struct cuda *cuda, const struct cuda_stream *stream,
                              const struct call *call)
{
    const struct work *w = call->work;
    int64_t first = 0;
    int status = 0;
    struct operand cast = call->read[2];
    if (casts_bias(call)) {
        cast.dtype = call->write[0].dtype;
        cast.data = (char *)stream->scratch + PRODUCT_WORKSPACE;
        status = cuda_cast(cuda_array_of(cast), cuda_array_of(call->read[2]),
                           (int64_t)cast.element_count, stream->handle);
    }
    const struct operand *bias = w->matmul.epilogue == EPILOGUE_BIAS ? &cast : NULL;
    if (w->matmul.part > 0) {
        if (w->matmul.form == MATMUL_TN)
            status = set_gradient_without_rows(stream, call, &call->read[2], 0,
                                               (int64_t)call->write[0].element_count);
        return status != 0 ? status
                           : run_product_group(cuda, stream, call, NULL, call->part_index, 0,
                                               rows_to_share_out(w));
    }
    for (int64_t g = 0; g < work_row_groups(w) && status == 0; g++) {
        const int64_t begin = first, rows = rows_of_group(call, g, &first);
        status = run_product_group(cuda, stream, call, bias, g, begin, rows);
    }
    return status;
}

static bool run_product(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct cuda *cuda = cuda_of(stream->rank->run);
    const struct work *w = call->work;
    int status = 0;
    if (w->matmul.scaling != SCALING_NONE) {
        const struct operand *scales =
            &call->read[2 + (w->matmul.epilogue == EPILOGUE_BIAS) + (w->matmul.accumulate != 0)];
        const void *of[2] = {scales[0].data, scales[1].data};
        for (int k = 0; k < 2 && status == 0 && block_rows_of_factor(w, k) > 0; k++) {
            float *to = (float *)(void *)((char *)stream->scratch + scales_offset(call, k));
            const int error =
                cuda_lay_out_scales(to, of[k], k == 0 ? w->matmul.m : w->matmul.n, w->matmul.k,
                                    block_rows_of_factor(w, k), stream->handle);
            status = error == 0 ? 0 : (int)CUBLAS_STATUS_EXECUTION_FAILED;
            of[k] = to;
        }
        if (status == 0)
            status = product_set_scales(
                cuda->products, cuda->prepared_ops[call->op].group_plans[0].product, of[0], of[1]);
    }
    if (status == 0)
        status = cuda->prepared_ops[call->op].epilogue != PRODUCT_ALONE
                     ? run_product_with_epilogue(cuda, stream, call)
                     : run_product_groups(cuda, stream, call);
    if (status == 0)
        return true;
    char words[160];
    snprintf(words, sizeof words, "cublasLtMatmul: %s", product_error_text(cuda->products, status));
    return record_op_failure(stream, call->op, words);
}

static bool run_attention(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct cuda *cuda = cuda_of(stream->rank->run);
    struct cuda_launch_context place = launch_context_of(stream, call->op);
    place.visible_keys = cuda_visible_keys(stream->rank, call->op);
    place.documents = cuda_documents_of_op(stream->rank, call->op);
    const char *words =
        attention_run(cuda->prepared_ops[call->op].attention, call, &place, stream->cudnn_handle);
    return words == NULL || record_op_failure(stream, call->op, words);
}

/* Runs an op of a host stream, such as AdamW, with the CPU backend's kernels on the rank's share of the processor
 * threads. CUDA calls it in the stream's order. */
static void CUDART_CB run_on_processor(void *argument)
{
    const struct cuda_host_work *work = argument;
    struct exec_run *run = work->run;
    double start_s = run_now_s() - run->epoch_s;
    (void)cpu_compute_call_threaded(&work->call, work->scratch, run->threads_per_rank);
    if (run->options->times_by_cupti)
        *run_op_time(run, work->call.rank, work->call.op) =
            (struct op_time){start_s, run_now_s() - run->epoch_s};
}

/* Runs an addition and the norm after it as one kernel, and returns a cudaError_t. The norm's statistics first go to
 * scratch memory, because the plan of offsets may place them over a term that other blocks still read. */
static int run_add_and_norm(const struct cuda_stream *stream, const struct call *call)
{
    struct call next;
    run_fill_call(stream->rank->run, stream->rank->rank, call->op + 1, &next);
    const bool centred = next.work->kind == WORK_LAYERNORM;
    const struct cuda_add_norm n = {
        .y = cuda_array_of(next.write[0]),
        .sum = cuda_array_of(call->write[0]),
        .a = cuda_array_of(call->read[0]),
        .b = cuda_array_of(call->read[1]),
        .weight = cuda_array_of(next.read[1]),
        .bias = cuda_array_of(next.read[centred ? 2 : 1]),
        .stats = stream->scratch,
        .rows = next.work->rows.rows,
        .cols = next.work->rows.cols,
        .eps = next.model.norm_eps,
        .centred = centred,
    };
    const int error = cuda_add_norm(&n, stream->handle);
    return error != 0
               ? error
               : (int)cudaMemcpyAsync(next.write[1].data, n.stats, statistics_bytes(next.work),
                                      cudaMemcpyDeviceToDevice, stream->handle);
}

/* Returns what a rope reads or writes away from the pack. */
static const struct operand *outer_operand(const struct call *rope, bool is_read)
{
    return is_read ? &rope->read[0] : &rope->write[0];
}

/* Runs RoPE and the pack beside it as one kernel; returns a cudaError_t. */
static int run_rotated_pack(const struct cuda_stream *stream, uint32_t op)
{
    struct exec_run *run = stream->rank->run;
    struct epilogue_rotated_pack found;
    struct call pack, rope[2];
    const bool is_found = epilogue_find_rotated_pack(run->ir, op, &found);
    assert(is_found);
    run_fill_call(run, stream->rank->rank, found.pack, &pack);
    for (uint32_t i = 0; i < found.rope_count; i++)
        run_fill_call(run, stream->rank->rank, found.rope[i], &rope[i]);
    const struct work *w = pack.work, *turn = rope[0].work;
    const bool reads = found.packs;
    const struct operand *whole = found.rope_count == 1 ? outer_operand(&rope[0], reads)
                                  : reads               ? &pack.read[0]
                                                        : &pack.write[0];
    struct cuda_rotated_pack r = {
        .pack = {.whole = whole->data,
                 .rows = w->pack.rows,
                 .parts = w->pack.parts,
                 .block_cols = {w->pack.w[0], w->pack.w[1], w->pack.w[2]},
                 .element_bytes = (int)dtype_bytes((enum dtype)whole->dtype)},
        .dtype = whole->dtype,
        .position = rope[0].read[1].data,
        .turn = {.rows = turn->rope.rows,
                 .heads = turn->rope.heads + (found.rope_count == 2 ? rope[1].work->rope.heads : 0),
                 .dim = turn->rope.dim,
                 .rotated = turn->rope.rotated ? turn->rope.rotated : turn->rope.dim,
                 .theta = rope[0].model.rope_theta,
                 .direction = found.packs ? 1 : -1},
    };
    for (uint32_t k = 0; k < (reads ? pack.write_count : pack.read_count); k++)
        r.pack.block[k] = found.rope_count == 2 && k < 2 ? outer_operand(&rope[k], !reads)->data
                          : reads                        ? pack.write[k].data
                                                         : pack.read[k].data;
    return cuda_rotated_pack(&r, found.packs, stream->handle);
}

static bool run_compute(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    struct cuda_rank *rank = stream->rank;
    cudaError_t error;
    if (cuda_of(rank->run)->prepared_ops[call->op].is_computed_by_previous_op)
        return true;
    if (runs_on_host(rank->run->ir, call->op)) {
        struct cuda_host_work *work = &rank->host_work[cuda_local_op(rank, call->op)];
        *work = (struct cuda_host_work){rank->run, *call, stream->host_scratch};
        error = cudaLaunchHostFunc(stream->handle, run_on_processor, work);
        return error == cudaSuccess ||
               cuda_record_failure(rank, call->op, "cudaLaunchHostFunc", error);
    }
    struct cuda_launch_context place = launch_context_of(stream, call->op);
    const struct cuda_prepared *prepared = &cuda_of(rank->run)->prepared_ops[call->op];
    error = (cudaError_t)(prepared->computes_next_norm ? run_add_and_norm(stream, call)
                          : prepared->rotates_and_packs
                              ? run_rotated_pack(stream, call->op)
                              : cuda_compute_rows[call->work->kind].run(call, &place));
    return error == cudaSuccess ||
           cuda_record_failure(rank, call->op, "launching its kernels", error);
}

static bool run_fill(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct operand *y = &call->write[0];
    cudaError_t error = cudaMemsetAsync(
        y->data, 0, y->element_count * dtype_bytes((enum dtype)y->dtype), stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemsetAsync", error);
}

static bool run_copy(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct operand *y = &call->write[0];
    cudaError_t error = cudaMemcpyAsync(
        y->data, call->read[0].data, y->element_count * dtype_bytes((enum dtype)y->dtype),
        call->work->kind == WORK_H2D ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
        stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemcpyAsync", error);
}

/* Runs a collective of a group with one member; all other communication is launched together with its peers, or by
 * NCCL. */
static bool run_single_member_collective(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    if (cuda_moves_nothing(&stream->rank->run->assignment, call))
        return true;
    if (call->work->kind == WORK_EXCHANGE) /* no row arrives */
        return run_fill(context, call);
    cudaError_t error = cudaMemcpyAsync(call->write[0].data, call->read[0].data,
                                        call->write[0].element_count *
                                            dtype_bytes((enum dtype)call->write[0].dtype),
                                        cudaMemcpyDeviceToDevice, stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemcpyAsync", error);
}

backend_kernel *const cuda_kernels[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = run_product,
    [WORK_ATTENTION] = run_attention,
    [WORK_ATTENTION_BACKWARD] = run_attention,
    [WORK_MERGE] = run_compute,
    [WORK_SINK] = run_compute,
    [WORK_SINK_BACKWARD] = run_compute,
    [WORK_RMSNORM] = run_compute,
    [WORK_RMSNORM_BACKWARD] = run_compute,
    [WORK_LAYERNORM] = run_compute,
    [WORK_LAYERNORM_BACKWARD] = run_compute,
    [WORK_ROPE] = run_compute,
    [WORK_ROPE_BACKWARD] = run_compute,
    [WORK_LATENT_KEYS] = run_compute,
    [WORK_LATENT_KEYS_BACKWARD] = run_compute,
    [WORK_SWIGLU] = run_compute,
    [WORK_SWIGLU_BACKWARD] = run_compute,
    [WORK_GELU] = run_compute,
    [WORK_GELU_BACKWARD] = run_compute,
    [WORK_ROUTE] = run_compute,
    [WORK_ROUTE_BACKWARD] = run_compute,
    [WORK_PERMUTE] = run_compute,
    [WORK_UNPERMUTE] = run_compute,
    [WORK_UNPERMUTE_BACKWARD] = run_compute,
    [WORK_EMBEDDING] = run_compute,
    [WORK_EMBEDDING_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY] = run_compute,
    [WORK_CROSS_ENTROPY_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY_PARTIAL] = run_compute,
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY_FINISH] = run_compute,
    [WORK_ADD] = run_compute,
    [WORK_QUANTISE] = run_compute, /* of a tensor or blocks of 128: check_types() */
    [WORK_DEQUANTISE] = run_compute,
    [WORK_CAST] = run_compute,
    [WORK_FILL] = run_fill,
    [WORK_PACK] = run_compute,
    [WORK_UNPACK] = run_compute,
    [WORK_HEAD_EXPAND] = run_compute,
    [WORK_HEAD_REDUCE] = run_compute,
    [WORK_TAKE_ROWS] = run_compute,
    [WORK_ADD_ROWS] = run_compute,
    [WORK_MERGE_ROWS] = run_compute,
    [WORK_ROW_DOT] = run_compute,
    [WORK_COLUMN_SUM] = run_compute,
    [WORK_ADAMW] = run_compute,
    [WORK_SQUARE_SUM] = run_compute,
    [WORK_CLIP] = run_compute,
    [WORK_ALL_TO_ALL] = run_single_member_collective,
    [WORK_ALL_GATHER] = run_single_member_collective,
    [WORK_REDUCE_SCATTER] = run_single_member_collective,
    [WORK_ALL_REDUCE] = run_single_member_collective,
    [WORK_REDUCE] = run_single_member_collective,
    [WORK_BROADCAST] = run_single_member_collective,
    [WORK_SCATTER] = run_single_member_collective,
    [WORK_EXCHANGE] = run_single_member_collective,
    [WORK_SHIFT] = run_single_member_collective,
    [WORK_SEND] = run_single_member_collective,
    [WORK_RECV] = run_single_member_collective,
    [WORK_H2D] = run_copy,
    [WORK_D2H] = run_copy,
};
