/* Casts of a matrix to 8 bits, with a scale for each block, and casts back from 8 or 4 bits (docs/ir.md, "Matrix
 * products and attention"). */
#include "exec/assignment.h"
#include "exec/cpu/kernels.h"

#include "exec/number.h"
#include "models/frozen_storage.h"

#include <math.h>
#include <string.h>

/* A matrix whose element (i, j) is first_element[i * row_stride + j * col_stride]. */
struct strided_matrix {
    const float *first_element;
    int64_t rows, cols, row_stride, col_stride;
};

/* Returns the largest magnitude of a block of at most block.rows x block.cols elements that begins at (i, j). */
static float largest_in_block(const struct strided_matrix *x, int64_t i, int64_t j,
                              struct scaling_block block)
{
    float most = 0;
    for (int64_t r = i; r < x->rows && r < i + block.rows; r++)
        for (int64_t c = j; c < x->cols && c < j + block.cols; c++)
            most = fmaxf(most, fabsf(x->first_element[r * x->row_stride + c * x->col_stride]));
    return most;
}

/* Writes scale number `which`, that of a block with the largest magnitude amax, and returns its inverse, by which the
 * block's numbers are multiplied before they are rounded. */
static float write_block_scale(const struct call *call, void *scales, int64_t which, float amax)
{
    const enum dtype dtype = (enum dtype)call->write[0].dtype;
    if (call->work->quantise.scaling == SCALING_MX) {
        const int exponent = number_scale_exponent(amax, dtype, call->work->quantise.down != 0);
        ((uint8_t *)scales)[which] = (uint8_t)(exponent + 127);
        return ldexpf(1, -exponent);
    }
    const float least = 1e-12f; /* torchao/float8/float8_utils.py: EPS */
    const float inverse_scale = number_largest_finite(dtype) / fmaxf(amax, least);
    ((float *)scales)[which] = 1 / inverse_scale;
    return inverse_scale;
}

/* Writes an 8-bit copy of x, row after row, and its scales, block after block, from scale number `which` on. Scales are
 * fp32, or bytes for SCALING_MX. With quantise.given, an operand gives the largest magnitude. */
static void quantise_copy(const struct call *call, struct strided_matrix x, void *to, void *scales,
                          int64_t which)
{
    const float *given = call->work->quantise.given ? call->read[1].data : NULL;
    const struct scaling_block block =
        scaling_block((enum scaling)call->work->quantise.scaling, x.rows, x.cols);
    const enum dtype dtype = (enum dtype)call->write[0].dtype;
    for (int64_t i = 0; i < x.rows; i += block.rows)
        for (int64_t j = 0; j < x.cols; j += block.cols) {
            const float amax = given != NULL ? *given : largest_in_block(&x, i, j, block);
            const float factor = write_block_scale(call, scales, which++, amax);
            for (int64_t r = i; r < x.rows && r < i + block.rows; r++)
                for (int64_t c = j; c < x.cols && c < j + block.cols; c++) {
                    const float value =
                        x.first_element[r * x.row_stride + c * x.col_stride] * factor;
                    number_from_f32((uint8_t *)to + r * x.cols + c, dtype, &value, 1);
                }
        }
}

/* Writes an 8-bit copy and its scales for each group of rows; with `turned`, of the transpose of the group's matrix. */
static void quantise_groups(const struct call *call, bool turned, const struct operand *to,
                            const struct operand *scales)
{
    const struct scaling_layout layout = work_scale_layout(call->work, turned);
    const int64_t rows = call->work->quantise.rows, cols = call->work->quantise.cols;
    int64_t first = 0;
    for (int64_t g = 0; g < layout.groups; g++) {
        const int64_t end =
            assignment_group_rows_end(call->routed_rows, rows, layout.groups, g, first);
        const float *at = (const float *)call->read[0].data + first * cols;
        const struct strided_matrix x = {at, end - first, cols, cols, 1};
        const struct strided_matrix back = {at, cols, end - first, 1, cols};
        if (end > first)
            quantise_copy(call, turned ? back : x, (uint8_t *)to->data + first * cols, scales->data,
                          scaling_layout_first_scale_of_group(&layout, g, first));
        first = end;
    }
}

const char *cpu_quantise(const struct call *call, float *scratch)
{
    (void)scratch;
    const int64_t rows = call->work->quantise.rows, cols = call->work->quantise.cols;
    const struct strided_matrix x = {call->read[0].data, rows, cols, cols, 1};
    if (call->work->quantise.scaling == SCALING_NV)
        return "has scaling=nv, which is predicted and not executed";
    if (call->work->quantise.finds) {
        *(float *)call->write[0].data =
            largest_in_block(&x, 0, 0, (struct scaling_block){.rows = rows, .cols = cols});
        return NULL;
    }
    quantise_groups(call, call->work->quantise.turned, &call->write[0], &call->write[1]);
    if (call->work->quantise.both)
        quantise_groups(call, true, &call->write[2], &call->write[3]);
    return NULL;
}

const char *cpu_dequantise(const struct call *call, float *scratch)
{
    (void)scratch;
    if (call->work->dequantise.storage == FROZEN_STORAGE_16BIT)
        return "has storage=16bit, which has neither codes nor scales";
    frozen_storage_decode((enum frozen_storage)call->work->dequantise.storage,
                          call->work->dequantise.rows, call->work->dequantise.cols,
                          call->read[0].data, call->read[1].data, call->write[0].data);
    return NULL;
}
