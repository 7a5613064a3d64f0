/* Plans of a schedule's products, which run with cuBLASLt (matmul.h), and their launches. A product has one plan for
 * each number of rows that its groups have. If its call also computes the next op, the plan includes that op. */
#include "exec/cuda/cuda.h"

#include "exec/cuda/epilogues.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- plans of products ---- */

static uint8_t one_if_nonzero(int64_t parameter)
{
    return parameter != 0;
}

/* Returns log2 of the alignment, in bytes, that the elements 0, step, 2 step, ... of an operand have in common. */
static uint8_t group_alignment_log2(const struct operand *operand, int64_t step)
{
    const uintptr_t bytes = (uintptr_t)step * dtype_bytes((enum dtype)operand->dtype);
    return product_address_alignment_log2((const void *)((uintptr_t)operand->data | bytes));
}

/* Returns the product of one group. It has `rows` rows of a; for the gradient of a weight, it has `rows` rows of a and
 * of b. */
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
        .accumulates = one_if_nonzero(w->matmul.accumulate),
        .has_bias = w->matmul.epilogue == EPILOGUE_BIAS,
        .a_align_log2 = product_address_alignment_log2(call->read[0].data),
        .b_align_log2 = product_address_alignment_log2(call->read[1].data),
        .y_align_log2 = product_address_alignment_log2(call->write[0].data),
    };
    if (work_row_group_count(w) > 1 || w->matmul.part > 0) {
        /* a group may begin at any row, and whole matrices precede its matrix of weights */
        shape.a_align_log2 = group_alignment_log2(&call->read[0], shape.a_stride);
        shape.b_align_log2 = group_alignment_log2(&call->read[1], turned ? n : n * k);
        shape.y_align_log2 = group_alignment_log2(&call->write[0], turned ? m * n : n);
        if (shape.has_bias && group_alignment_log2(&call->read[2], n) < shape.y_align_log2)
            shape.y_align_log2 = group_alignment_log2(&call->read[2], n);
    }
    return shape;
}

/* Returns the number of rows that a product's groups share out: k for the gradient of a weight, else m. */
static int64_t rows_of_all_groups(const struct work *work)
{
    return work->matmul.form == MATMUL_TN ? work->matmul.k : work->matmul.m;
}

static enum status report_unsupported_product_types(const struct exec_run *run,
                                                    const struct call *call, struct diag *diag,
                                                    const char *what)
{
    return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                      "op %" PRIu32 " (%s): %s; the cuda backend wants one type there", call->op,
                      work_kind_info((enum work_kind)call->work->kind)->name, what);
}

/* Returns how many rows group g has, and moves *end, where the group before it ends, to where this one ends. */
static int64_t next_group_row_count(const struct call *call, int64_t g, int64_t *end)
{
    const int64_t begin = *end;
    *end = assignment_group_rows_end(call->routed_rows, rows_of_all_groups(call->work),
                                     work_row_group_count(call->work), g, begin);
    return *end - begin;
}

/* Returns the index of the first plan for at least `rows` rows; group_product_plan_count: there is none. */
static uint32_t find_plan_for_rows(const struct cuda_prepared_op *prepared, int64_t rows)
{
    uint32_t low = 0, high = prepared->group_product_plan_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (prepared->product_plans_by_group_rows[middle].rows < rows)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the plan for groups of `rows` rows, if there is none yet. Groups without rows need none. */
static enum status add_plan_for_group_rows(const struct cuda *cuda, const struct call *call,
                                           int64_t rows, struct cuda_prepared_op *prepared,
                                           struct diag *diag)
{
    const uint32_t at = find_plan_for_rows(prepared, rows);
    if (rows == 0 || (at < prepared->group_product_plan_count &&
                      prepared->product_plans_by_group_rows[at].rows == rows))
        return STATUS_OK;
    const struct product_shape shape = product_shape_of(call, rows);
    const struct product *product = products_plan(cuda->products, &shape, diag);
    if (product == NULL)
        return STATUS_SYSTEM;
    prepared->product_plans_by_group_rows =
        heap_realloc(prepared->product_plans_by_group_rows, prepared->group_product_plan_count + 1,
                     sizeof *prepared->product_plans_by_group_rows);
    memmove(prepared->product_plans_by_group_rows + at + 1,
            prepared->product_plans_by_group_rows + at,
            (prepared->group_product_plan_count++ - at) *
                sizeof *prepared->product_plans_by_group_rows);
    prepared->product_plans_by_group_rows[at] = (struct cuda_group_product_plan){rows, product};
    return STATUS_OK;
}

/* True if the bias has another type than the result. A router's has, since its logits are fp32. The product then reads
 * a copy of the bias in the result's type, in the scratch memory after the library's workspace. */
static bool must_cast_bias(const struct call *call)
{
    return call->work->matmul.epilogue == EPILOGUE_BIAS &&
           call->read[2].dtype != call->write[0].dtype;
}

/* Returns where an epilogue writes its sums. This is the result of the next op. But if the sums are to be added to that
 * result, or if its address is no multiple of 16, it is the scratch memory after the library's workspace. */
static void *epilogue_sums_address(const struct call *next, void *scratch)
{
    const struct operand *y = &next->write[0];
    const bool own =
        next->work->column_sum.accumulate == 0 && product_address_alignment_log2(y->data) >= 4;
    return own ? y->data : (char *)scratch + PRODUCT_WORKSPACE;
}

/* Plans a product whose call also computes the next op. Returns false if the library has no algorithm for it or does
 * not support the addresses. */
static bool plan_with_epilogue(const struct cuda *cuda, const struct call *call,
                               enum product_epilogue epilogue, struct cuda_prepared_op *prepared)
{
    struct call next;
    run_fill_call(cuda->run, call->rank, call->op + 1, &next);
    const int64_t rows = rows_of_all_groups(call->work);
    struct product_shape shape = product_shape_of(call, rows);
    shape.epilogue = (uint8_t)epilogue;
    if (epilogue == PRODUCT_GELU) {
        if (shape.y_align_log2 < 4) /* the library wants 16 bytes for the second result */
            return false;
        shape.y_align_log2 = product_address_alignment_log2(next.write[0].data);
    }
    const struct product *product = products_plan(cuda->products, &shape, NULL);
    if (product == NULL)
        return false;
    prepared->product_plans_by_group_rows =
        heap_alloc(1, sizeof *prepared->product_plans_by_group_rows);
    prepared->product_plans_by_group_rows[prepared->group_product_plan_count++] =
        (struct cuda_group_product_plan){rows, product};
    prepared->epilogue = (uint8_t)epilogue;
    if (epilogue == PRODUCT_COLUMN_SUM)
        prepared->scratch_bytes +=
            next.write[0].element_count * dtype_bytes((enum dtype)next.write[0].dtype);
    return true;
}

/* Plans a product and the op after it as one call. Returns false if the options or the library do not allow it. */
static bool plan_with_next_op(struct cuda *cuda, const struct call *call,
                              struct cuda_prepared_op *prepared)
{
    const enum product_epilogue epilogue = cuda->run->options->uses_epilogues
                                               ? epilogue_for_product(cuda->run->ir, call->op)
                                               : PRODUCT_NO_EPILOGUE;
    if (epilogue == PRODUCT_NO_EPILOGUE)
        return false;
    cuda->candidate_count[epilogue]++;
    if (!plan_with_epilogue(cuda, call, epilogue, prepared))
        return false;
    cuda->joined_count[epilogue]++;
    cuda->prepared_ops[call->op + 1].is_computed_by_previous_op = true;
    return true;
}

/* Returns how many rows the blocks of a product's factor have, in which numbers share a scale; 0: the factor has no
 * such blocks. */
static int scale_block_rows_of_factor(const struct work *work, int which)
{
    const enum scaling scaling = work_scale_layout(work, which).scaling;
    return scaling == SCALING_BLOCK ? CUDA_SCALE_BLOCK : scaling == SCALING_VECTOR ? 1 : 0;
}

/* Returns the offset, in a product's scratch memory, of the scales of factor `which` (0 or 1) in the library's order;
 * for 2, where all scales end. Scales follow the workspace and the copy of the bias (must_cast_bias()). */
static size_t offset_of_scales_in_scratch(const struct call *call, int which)
{
    const struct work *w = call->work;
    const size_t cast = must_cast_bias(call) ? call->read[2].element_count *
                                                   dtype_bytes((enum dtype)call->write[0].dtype)
                                             : 0;
    size_t offset = PRODUCT_WORKSPACE + (cast + 255) / 256 * 256;
    for (int k = 0; k < which; k++) {
        const int block_rows = scale_block_rows_of_factor(w, k);
        const size_t scales = block_rows == 0
                                  ? 0
                                  : cuda_laid_out_scale_count(k == 0 ? w->matmul.m : w->matmul.n,
                                                              w->matmul.k, block_rows);
        offset += (scales * sizeof(float) + 255) / 256 * 256;
    }
    return offset;
}

enum status cuda_prepare_product(struct cuda *cuda, const struct call *call,
                                 struct cuda_prepared_op *prepared, struct diag *diag)
{
    const struct product_shape shape = product_shape_of(call, 1);
    if (!shape.has_scales && shape.b_type != shape.a_type)
        return report_unsupported_product_types(cuda->run, call, diag,
                                                "its factors have different types");
    prepared->scratch_bytes = offset_of_scales_in_scratch(call, 2);
    if (plan_with_next_op(cuda, call, prepared))
        return STATUS_OK;
    enum status status = STATUS_OK;
    int64_t first = 0;
    for (int64_t g = 0; g < work_row_group_count(call->work) && status == STATUS_OK; g++)
        status = add_plan_for_group_rows(cuda, call, next_group_row_count(call, g, &first),
                                         prepared, diag);
    return status;
}

/* ---- launches of products ---- */

/* Returns the address of an operand's element. */
static void *element_address(const struct operand *operand, int64_t index)
{
    return (char *)operand->data + (size_t)index * dtype_bytes((enum dtype)operand->dtype);
}

/* Sets the `count` elements from `first` on of a gradient to which no rows contribute. They become the elements of c if
 * the gradient accumulates onto c, else 0. */
static int set_gradient_without_rows(const struct cuda_stream *stream, const struct call *call,
                                     const struct operand *c, int64_t first, int64_t count)
{
    const struct operand *y = &call->write[0];
    struct cuda_array before = {0};
    if (call->work->matmul.accumulate)
        before = (struct cuda_array){element_address(c, first), c->dtype};
    return cuda_set_to_before_or_zero((struct cuda_array){element_address(y, first), y->dtype},
                                      before, count, stream->handle);
}

/* Runs the product of group g, whose `rows` rows begin at `first`. bias: the biases of all groups, in the type of y;
 * NULL: there are none. If only the rank's part of a weight is multiplied, g is the index of that part. */
static int run_product_group(const struct cuda *cuda, const struct cuda_stream *stream,
                             const struct call *call, const struct operand *bias, int64_t g,
                             int64_t first, int64_t rows)
{
    const struct work *w = call->work;
    const struct cuda_prepared_op *prepared = &cuda->prepared_ops[call->op];
    const bool turned = w->matmul.form == MATMUL_TN;
    const int64_t m = w->matmul.m, n = w->matmul.n, k = w->matmul.k;
    const int64_t result = turned ? g * m * n : first * n;
    const struct operand *c =
        w->matmul.accumulate ? &call->read[bias != NULL ? 3 : 2] : &call->write[0];
    if (rows == 0)
        return turned ? set_gradient_without_rows(stream, call, c, result, m * n) : 0;
    return product_run(
        cuda->products,
        prepared->product_plans_by_group_rows[find_plan_for_rows(prepared, rows)].product, 1,
        element_address(&call->read[0], first * (turned ? m : k)),
        element_address(&call->read[1], turned ? first * n : g * n * k),
        bias != NULL ? element_address(bias, g * n) : NULL, element_address(c, result),
        element_address(&call->write[0], result), NULL, stream->scratch, stream->handle);
}

/* Runs a product whose call also computes the next op. */
static int run_product_with_epilogue(const struct cuda *cuda, const struct cuda_stream *stream,
                                     const struct call *call)
{
    const struct cuda_prepared_op *prepared = &cuda->prepared_ops[call->op];
    const struct product *product = prepared->product_plans_by_group_rows[0].product;
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

/* Runs all groups of a product. If only the rank's part of a weight is multiplied, runs the one product with that part;
 * for the gradient, it first sets the whole gradient as set_gradient_without_rows() does, so that the other parts have
 * results, too. */
static int run_product_groups(const struct cuda *cuda, const struct cuda_stream *stream,
                              const struct call *call)
{
    const struct work *w = call->work;
    int64_t first = 0;
    int status = 0;
    struct operand cast = call->read[2];
    if (must_cast_bias(call)) {
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
        return status != 0
                   ? status
                   : run_product_group(cuda, stream, call, NULL, call->index_in_sharding_group, 0,
                                       rows_of_all_groups(w));
    }
    for (int64_t g = 0; g < work_row_group_count(w) && status == 0; g++) {
        const int64_t begin = first, rows = next_group_row_count(call, g, &first);
        status = run_product_group(cuda, stream, call, bias, g, begin, rows);
    }
    return status;
}

bool cuda_run_product(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct cuda *cuda = cuda_of_run(stream->rank->run);
    const struct work *w = call->work;
    int status = 0;
    if (w->matmul.scaling != SCALING_NONE) {
        const struct operand *scales =
            &call->read[2 + (w->matmul.epilogue == EPILOGUE_BIAS) + (w->matmul.accumulate != 0)];
        const void *of[2] = {scales[0].data, scales[1].data};
        for (int k = 0; k < 2 && status == 0 && scale_block_rows_of_factor(w, k) > 0; k++) {
            float *to =
                (float *)(void *)((char *)stream->scratch + offset_of_scales_in_scratch(call, k));
            const int error =
                cuda_lay_out_scales(to, of[k], k == 0 ? w->matmul.m : w->matmul.n, w->matmul.k,
                                    scale_block_rows_of_factor(w, k), stream->handle);
            status = error == 0 ? 0 : (int)CUBLAS_STATUS_EXECUTION_FAILED;
            of[k] = to;
        }
        if (status == 0)
            status = product_set_scales(
                cuda->products, cuda->prepared_ops[call->op].product_plans_by_group_rows[0].product,
                of[0], of[1]);
    }
    if (status == 0)
        status = cuda->prepared_ops[call->op].epilogue != PRODUCT_NO_EPILOGUE
                     ? run_product_with_epilogue(cuda, stream, call)
                     : run_product_groups(cuda, stream, call);
    if (status == 0)
        return true;
    char words[160];
    snprintf(words, sizeof words, "cublasLtMatmul: %s", product_error_text(cuda->products, status));
    return cuda_record_library_failure(stream, call->op, words);
}
