/* exec/cpu/kernels.h: the arithmetic of compute work on a processor, in fp32.
 *
 * Kernels take operands as fp32 (index operands as i32); cpu_compute_call() converts those in bf16, fp16 and fp64
 * before and after, unless the kernel takes any dtype. Products go through CBLAS on the calling thread; most sums over
 * many terms are kept in fp64. Copies use memmove: operands of a broken schedule may overlap, which is wrong but
 * defined. docs/ir.md, "Kinds", says what each kind computes. */
#ifndef EXEC_CPU_KERNELS_H
#define EXEC_CPU_KERNELS_H

#include "exec/backend.h"

#include <stddef.h>

/* Does the work of a call. Returns NULL, or text that says what is wrong with the call or its data. scratch holds as
 * many floats as the function `scratch` of the kind's row returns, and is aligned to 64 bytes. */
typedef const char *cpu_math(const struct call *call, float *scratch);

struct cpu_kernel_table_row {
    cpu_math *run;
    size_t (*scratch)(const struct work *work); /* floats; NULL: none */
    /* the kernel reads and writes operands in the dtype in which they are stored */
    bool takes_any_dtype;
};

/* [WORK_KIND_COUNT] the row of each kind; all zero for communication, copies, SYNC kinds and opaque work */
extern const struct cpu_kernel_table_row cpu_math_rows[WORK_KIND_COUNT];

/* Returns how many floats of scratch cpu_compute_call() needs for an op: for its kernel and for operands that it
 * converts. */
size_t cpu_scratch_floats(const struct ir *ir, uint32_t op);
/* Returns the largest cpu_scratch_floats() of op[0..count). */
size_t cpu_most_scratch_floats(const struct ir *ir, const uint32_t *op, uint32_t count);

/* Converts operands to fp32, does the work, and converts results back. Returns NULL, or what is wrong, as a cpu_math
 * does. */
const char *cpu_compute_call(const struct call *call, float *scratch);

/* Does what cpu_compute_call() does, but AdamW on up to `threads` threads and without scratch (exec/cpu/parts.c). The
 * results have the same bits for any number of threads. */
const char *cpu_compute_call_threaded(const struct call *call, float *scratch, uint32_t threads);

/* ---- matrix products: exec/cpu/matmul.c ---- */
cpu_math cpu_matmul;
size_t cpu_matmul_scratch_floats(const struct work *work);

/* ---- casts to and from 8 and 4 bits: exec/cpu/quantise.c ---- */
cpu_math cpu_quantise, cpu_dequantise;

/* ---- attention: exec/cpu/attention.c and exec/cpu/attention_backward.c ---- */

/* The rows of a tile of queries, and of a tile of keys. Tiles are multiplied by CBLAS. A pair of tiles is skipped if
 * the mask hides all of it; in the forward only if the keys lie before or after all keys that the queries see. */
enum { ATTENTION_QUERY_TILE = 128, ATTENTION_KEY_TILE = 256 };
cpu_math cpu_attention, cpu_attention_backward, cpu_merge, cpu_sink, cpu_sink_backward;
size_t cpu_attention_scratch_floats(const struct work *work);
size_t cpu_attention_backward_scratch_floats(const struct work *work);

/* The keys that a query sees, from `begin` to `end` - 1. cpu_visible_keys() returns those of query i of an
 * attention. */
struct visible_keys {
    int64_t begin, end;
};
struct visible_keys cpu_visible_keys(const struct call *call, int64_t i);

/* ---- norms and sums over rows: exec/cpu/norms.c ---- */
cpu_math cpu_rmsnorm, cpu_rmsnorm_backward, cpu_layernorm, cpu_layernorm_backward, cpu_column_sum;
size_t cpu_column_scratch_floats(const struct work *work);

/* ---- functions of elements, and sums of squares: exec/cpu/pointwise.c ---- */
cpu_math cpu_swiglu, cpu_swiglu_backward, cpu_gelu, cpu_gelu_backward, cpu_add, cpu_cast,
    cpu_fill_zeros, cpu_adamw, cpu_square_sum, cpu_clip;

/* ---- RoPE and the keys of latent attention: exec/cpu/rope.c and exec/cpu/latent.c ---- */
cpu_math cpu_rope, cpu_rope_backward, cpu_latent_keys, cpu_latent_keys_backward;
size_t cpu_rope_scratch_floats(const struct work *work);

/* ---- mixtures of experts: exec/cpu/experts.c ---- */
cpu_math cpu_route, cpu_route_backward, cpu_permute, cpu_unpermute, cpu_unpermute_backward,
    cpu_permute_weights, cpu_permute_weights_backward;
size_t cpu_route_scratch_floats(const struct work *work);

/* ---- embedding and loss: exec/cpu/loss.c ---- */
cpu_math cpu_embedding, cpu_embedding_backward, cpu_cross_entropy, cpu_cross_entropy_backward,
    cpu_cross_entropy_partial, cpu_cross_entropy_finish, cpu_cross_entropy_partial_backward;

/* ---- moves of elements: exec/cpu/pack.c; the last two functions are in exec/cpu/attention.c ---- */
cpu_math cpu_pack, cpu_unpack, cpu_head_expand, cpu_head_reduce, cpu_take_rows, cpu_add_rows,
    cpu_merge_rows, cpu_row_dot;

#endif
