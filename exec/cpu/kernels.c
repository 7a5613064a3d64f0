#include "exec/cpu/kernels.h"

#include "exec/number.h"

const struct cpu_kernel_table_row cpu_math_rows[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = {cpu_matmul, cpu_matmul_scratch_floats, false},
    [WORK_QUANTISE] = {cpu_quantise, NULL, false},
    [WORK_DEQUANTISE] = {cpu_dequantise, NULL, false},
    [WORK_ATTENTION] = {cpu_attention, cpu_attention_scratch_floats, false},
    [WORK_ATTENTION_BACKWARD] = {cpu_attention_backward, cpu_attention_backward_scratch_floats,
                                 false},
    [WORK_MERGE] = {cpu_merge, NULL, false},
    [WORK_SINK] = {cpu_sink, NULL, false},
    [WORK_SINK_BACKWARD] = {cpu_sink_backward, NULL, false},
    [WORK_RMSNORM] = {cpu_rmsnorm, NULL, false},
    [WORK_RMSNORM_BACKWARD] = {cpu_rmsnorm_backward, cpu_column_scratch_floats, false},
    [WORK_LAYERNORM] = {cpu_layernorm, NULL, false},
    [WORK_LAYERNORM_BACKWARD] = {cpu_layernorm_backward, cpu_column_scratch_floats, false},
    [WORK_ROPE] = {cpu_rope, cpu_rope_scratch_floats, false},
    [WORK_ROPE_BACKWARD] = {cpu_rope_backward, cpu_rope_scratch_floats, false},
    [WORK_LATENT_KEYS] = {cpu_latent_keys, NULL, false},
    [WORK_LATENT_KEYS_BACKWARD] = {cpu_latent_keys_backward, NULL, false},
    [WORK_SWIGLU] = {cpu_swiglu, NULL, false},
    [WORK_SWIGLU_BACKWARD] = {cpu_swiglu_backward, NULL, false},
    [WORK_GELU] = {cpu_gelu, NULL, false},
    [WORK_GELU_BACKWARD] = {cpu_gelu_backward, NULL, false},
    [WORK_ROUTE] = {cpu_route, cpu_route_scratch_floats, false},
    [WORK_ROUTE_BACKWARD] = {cpu_route_backward, cpu_route_scratch_floats, false},
    [WORK_PERMUTE] = {cpu_permute, NULL, false},
    [WORK_UNPERMUTE] = {cpu_unpermute, NULL, false},
    [WORK_UNPERMUTE_BACKWARD] = {cpu_unpermute_backward, NULL, false},
    [WORK_PERMUTE_WEIGHTS] = {cpu_permute_weights, NULL, false},
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = {cpu_permute_weights_backward, NULL, false},
    [WORK_EMBEDDING] = {cpu_embedding, NULL, false},
    [WORK_EMBEDDING_BACKWARD] = {cpu_embedding_backward, NULL, false},
    [WORK_CROSS_ENTROPY] = {cpu_cross_entropy, NULL, false},
    [WORK_CROSS_ENTROPY_BACKWARD] = {cpu_cross_entropy_backward, NULL, false},
    [WORK_CROSS_ENTROPY_PARTIAL] = {cpu_cross_entropy_partial, NULL, false},
    [WORK_CROSS_ENTROPY_FINISH] = {cpu_cross_entropy_finish, NULL, false},
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = {cpu_cross_entropy_partial_backward, NULL, false},
    [WORK_ADD] = {cpu_add, NULL, false},
    [WORK_CAST] = {cpu_cast, NULL, false},
    [WORK_FILL] = {cpu_fill_zeros, NULL, true},
    [WORK_PACK] = {cpu_pack, NULL, true},
    [WORK_UNPACK] = {cpu_unpack, NULL, true},
    [WORK_HEAD_EXPAND] = {cpu_head_expand, NULL, false},
    [WORK_HEAD_REDUCE] = {cpu_head_reduce, NULL, false},
    [WORK_TAKE_ROWS] = {cpu_take_rows, NULL, true},
    [WORK_ADD_ROWS] = {cpu_add_rows, NULL, false},
    [WORK_MERGE_ROWS] = {cpu_merge_rows, NULL, false},
    [WORK_ROW_DOT] = {cpu_row_dot, NULL, false},
    [WORK_COLUMN_SUM] = {cpu_column_sum, cpu_column_scratch_floats, false},
    [WORK_ADAMW] = {cpu_adamw, NULL, false},
    [WORK_SQUARE_SUM] = {cpu_square_sum, NULL, false},
    [WORK_CLIP] = {cpu_clip, NULL, false},
};

enum { LINE_FLOATS = 16 }; /* 64 bytes */

static size_t round_up_to_cache_line(size_t floats)
{
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

/* True if operands of this dtype are converted to fp32 for a kernel. Indices, bytes and 8- or 4-bit numbers are not. */
static bool is_converted_to_f32(enum dtype dtype)
{
    return dtype == DTYPE_BF16 || dtype == DTYPE_F16 || dtype == DTYPE_F64;
}

static size_t scratch_floats_of_work(const struct work *work)
{
    const struct cpu_kernel_table_row *row = &cpu_math_rows[work->kind];
    return row->scratch != NULL ? round_up_to_cache_line(row->scratch(work)) : 0;
}

size_t cpu_scratch_floats(const struct ir *ir, uint32_t op)
{
    const struct work *work = ir_work(ir, op);
    size_t scratch_floats = scratch_floats_of_work(work);
    if (cpu_math_rows[work->kind].run == NULL || cpu_math_rows[work->kind].takes_any_dtype)
        return scratch_floats;
    for (uint32_t k = 0; k < ir->op.read_count[op] + (uint32_t)ir->op.write_count[op]; k++) {
        struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
        if (is_converted_to_f32(ir->buffer.dtype[view.buffer.i]))
            scratch_floats += round_up_to_cache_line(view.count);
    }
    return scratch_floats;
}

size_t cpu_most_scratch_floats(const struct ir *ir, const uint32_t *op, uint32_t count)
{
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t needed = cpu_scratch_floats(ir, op[i]);
        most = needed > most ? needed : most;
    }
    return most;
}

const char *cpu_compute_call(const struct call *call, float *scratch)
{
    const struct cpu_kernel_table_row *row = &cpu_math_rows[call->work->kind];
    if (row->takes_any_dtype)
        return row->run(call, scratch);
    struct call staged = *call;
    float *next = scratch + scratch_floats_of_work(call->work);
    for (uint32_t k = 0; k < call->read_count; k++)
        if (is_converted_to_f32(call->read[k].dtype)) {
            number_to_f32(next, call->read[k].data, call->read[k].dtype,
                          call->read[k].element_count);
            staged.read[k].data = next;
            next += round_up_to_cache_line(call->read[k].element_count);
        }
    for (uint32_t k = 0; k < call->write_count; k++)
        if (is_converted_to_f32(call->write[k].dtype)) {
            staged.write[k].data = next;
            next += round_up_to_cache_line(call->write[k].element_count);
        }
    const char *fault_text = row->run(&staged, scratch);
    for (uint32_t k = 0; k < call->write_count; k++)
        if (is_converted_to_f32(call->write[k].dtype))
            number_from_f32(call->write[k].data, call->write[k].dtype, staged.write[k].data,
                            call->write[k].element_count);
    return fault_text;
}
