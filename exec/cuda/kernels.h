/* exec/cuda/kernels.h: C functions that launch our own kernels, for work that no library does.
 *
 * Every launcher enqueues on a stream and returns a cudaError_t (0: enqueued). Arrays carry their element type, so
 * one kernel serves fp32, bf16 and fp16. Arithmetic is fp32, but RoPE's angles and the sum of cuda_add_terms() are
 * computed in fp64. Sums over many terms follow fixed trees, so no sum depends on the order in which threads run. Rows
 * are loaded 16 bytes at a time where addresses and sizes allow it, else element by element. `scratch` is device
 * memory, aligned to 256 bytes, of the size that the function next to the launcher returns.
 *
 * Needs no CUDA header: the tests compile the same kernels for the processor. */
#ifndef EXEC_CUDA_KERNELS_H
#define EXEC_CUDA_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

/* Values of enum dtype (models/dtype.h), which C++ cannot read. */
enum cuda_type { CUDA_BF16, CUDA_F16, CUDA_F32 };

/* Values of enum activation_function (models/work.h). CUDA_OWN: the function that the kind of work has by itself, silu
 * for a SwiGLU and GELU for a plain GELU. */
enum cuda_activation_kind { CUDA_OWN, CUDA_GELU, CUDA_RELU2, CUDA_CLAMPED };

/* Values of enum route_score (models/work.h). */
enum cuda_route_score_kind { CUDA_SOFTMAX, CUDA_SOFTMAX_OF_CHOSEN, CUDA_SIGMOID };

struct cuda_array {
    void *data;
    uint8_t dtype; /* enum cuda_type */
};

enum { CUDA_SCRATCH_ALIGNMENT = 256 };

/* ---- functions of elements, and sums of elements: kernels_pointwise.cu; 8-bit copies: kernels_quantise.cu ---- */

int cuda_add(struct cuda_array y, struct cuda_array a, struct cuda_array b, int64_t count,
             cudaStream_t stream);
/* Computes y = a + b + bias, where bias (cols) is added to every row. */
int cuda_add_bias(struct cuda_array y, struct cuda_array a, struct cuda_array b,
                  struct cuda_array bias, int64_t rows, int64_t cols, cudaStream_t stream);
int cuda_cast(struct cuda_array y, struct cuda_array x, int64_t count, cudaStream_t stream);
/* A weight whose elements are stored as codes in 4 or 8 bits (models/frozen_storage.h). has_bytes: the codes have 8
 * bits, each a signed number of 127ths of the scale; else 4 bits, and value[] says what each code stands for, in units
 * of the scale.
 *
 * `scales` holds fp32 scales. With has_narrow_scales it holds one byte for each scale, padded to a multiple of 4 bytes;
 * an fp32 factor for each 256 of them; and an fp32 offset. A scale is then scale_value[byte] * factor + offset. */
struct cuda_stored_weight {
    const uint8_t *codes, *scales;
    int64_t count;          /* the number of elements */
    int64_t scale_elements; /* the number of elements that share a scale */
    bool has_bytes, has_narrow_scales;
    float value[16], scale_value[256];
};
int cuda_dequantise(struct cuda_array y, struct cuda_stored_weight stored, cudaStream_t stream);
/* Computes a gated activation, SwiGLU or that of `function`, of x (rows, 2, cols), gate and then up. Row i of y is
 * multiplied by weights[i]; weights NULL: it is not multiplied. */
int cuda_swiglu(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                int64_t cols, enum cuda_activation_kind function, cudaStream_t stream);
int cuda_swiglu_backward(struct cuda_array dx, struct cuda_array dy, struct cuda_array x,
                         int64_t rows, int64_t cols, enum cuda_activation_kind function,
                         cudaStream_t stream);
/* Does what cuda_swiglu_backward() does, for a forward with weights, and also sets d_weights [rows], their gradients.
 * dx may be x. */
int cuda_weighted_swiglu_backward(struct cuda_array dx, float *d_weights, struct cuda_array dy,
                                  struct cuda_array x, const float *weights, int64_t rows,
                                  int64_t cols, enum cuda_activation_kind function,
                                  cudaStream_t stream);
int cuda_gelu(struct cuda_array y, struct cuda_array x, int64_t count,
              enum cuda_activation_kind function, cudaStream_t stream);
int cuda_gelu_backward(struct cuda_array dx, struct cuda_array dy, struct cuda_array x,
                       int64_t count, enum cuda_activation_kind function, cudaStream_t stream);

/* The constants of AdamW in step t: decay_factor is 1 - lr weight_decay, corrected_lr is lr / (1 - beta1^t),
 * root_correction is 1 / sqrt(1 - beta2^t). max_norm: the norm to which gradients are clipped; 0: they are not
 * clipped. */
struct cuda_adamw {
    float beta1, beta2, one_less_beta1, one_less_beta2, eps, decay_factor, corrected_lr,
        root_correction, max_norm;
};
/* Updates a parameter. *squares is the sum of the squares of all gradients' elements; squares NULL: gradients are not
 * clipped. param.data NULL: the kernel writes no copy of the parameter in the type of computation. */
int cuda_adamw(struct cuda_array param, struct cuda_array master_new, struct cuda_array m_new,
               struct cuda_array v_new, struct cuda_array grad, struct cuda_array master,
               struct cuda_array m, struct cuda_array v, const float *squares, int64_t count,
               struct cuda_adamw constants, cudaStream_t stream);
/* Computes y = x min(1, max_norm / (sqrt(*squares) + 1e-6)), where *squares is the sum of the squares of all gradients'
 * elements. max_norm 0: computes y = x. */
int cuda_clip(struct cuda_array y, struct cuda_array x, const float *squares, double max_norm,
              int64_t count, cudaStream_t stream);
/* cuda_square_sum() computes *sum = *before + the sum of x^2 / copies, where `copies` is the number of ranks that hold
 * x. before NULL: it stands for 0. scratch has cuda_square_sum_scratch_bytes() bytes. */
size_t cuda_square_sum_scratch_bytes(int64_t count);
int cuda_square_sum(float *sum, const float *before, struct cuda_array x, int64_t count,
                    uint32_t copies, void *scratch, cudaStream_t stream);

/* cuda_largest_magnitude() sets *largest to the largest absolute value of x. scratch has
 * cuda_largest_magnitude_scratch_bytes() bytes. */
size_t cuda_largest_magnitude_scratch_bytes(int64_t count);
int cuda_largest_magnitude(float *largest, struct cuda_array x, int64_t count, void *scratch,
                           cudaStream_t stream);
/* An 8-bit type. bias: the exponent that the number 1 is stored with. */
struct cuda_eight_bit_format {
    int mantissa_bits, bias;
    float largest_finite;
};
/* Sets *scale = max(*largest, 1e-12) / type.largest_finite, and copy = x / *scale, rounded to the type; magnitudes
 * above type.largest_finite become type.largest_finite. x is (rows, cols). The copy has the same shape or, with
 * `turned`, is the transpose (cols, rows). */
int cuda_quantise(void *copy, float *scale, struct cuda_array x, int64_t rows, int64_t cols,
                  bool turned, const float *largest, struct cuda_eight_bit_format type,
                  cudaStream_t stream);

/* Fills `to`, which is (rows, cols), with the same numbers as draw_fill() (exec/draw.h). */
struct draw;
int cuda_draw(struct cuda_array to, const struct draw *draw, cudaStream_t stream);

/* The columns of a block of numbers that share a scale. A block has 1 row or CUDA_SCALE_BLOCK rows. */
enum { CUDA_SCALE_BLOCK = 128 };
/* Does what cuda_quantise() does, but finds the largest magnitude itself, and gives each block of block_rows x
 * CUDA_SCALE_BLOCK numbers of the copy its own scale. The scales are stored as a matrix, which has a row for each row
 * of blocks. */
int cuda_quantise_blocks(void *copy, float *scales, struct cuda_array x, int64_t rows, int64_t cols,
                         bool turned, int block_rows, struct cuda_eight_bit_format type,
                         cudaStream_t stream);
/* cuda_lay_out_scales() copies the scales of a matrix (rows, cols) to the order in which cuBLASLt reads them. With
 * block_rows 1 it writes a line of scales for each column of blocks; else, for each row of blocks. It pads each line
 * with zeros to a multiple of 4 scales. `to` has room for cuda_laid_out_scale_count() numbers. */
size_t cuda_laid_out_scale_count(int64_t rows, int64_t cols, int block_rows);
int cuda_lay_out_scales(float *to, const float *from, int64_t rows, int64_t cols, int block_rows,
                        cudaStream_t stream);

enum { CUDA_REDUCE_MEMBERS_MAX = 64 }; /* the most members of cuda_reduce() */
/* Sets `to` to the sum of `members` arrays, added in order; with `maximum`, each element to the largest of theirs. All
 * arrays have one type. */
int cuda_reduce(struct cuda_array to, const void *const *from, int members, bool maximum,
                int64_t count, cudaStream_t stream);

/* ---- moves of elements, and the embedding: kernels_layout.cu ---- */

/* The operands of cuda_pack() and cuda_unpack(). cuda_pack() copies `whole`, (rows, parts * (w0 + w1 + w2)), into up to
 * three blocks. w0, w1 and w2 are block_cols[]. Each w that is not 0 has a block, (parts, rows, w); block[] holds these
 * blocks without gaps. cuda_unpack() copies the blocks back. */
struct cuda_pack {
    void *whole, *block[3];
    int64_t rows, parts, block_cols[3];
    int element_bytes;
};
int cuda_pack(const struct cuda_pack *pack, cudaStream_t stream);
int cuda_unpack(const struct cuda_pack *pack, cudaStream_t stream);
int cuda_head_expand(struct cuda_array y, struct cuda_array x, int64_t groups, int64_t dim,
                     int64_t copies, cudaStream_t stream);
int cuda_head_reduce(struct cuda_array y, struct cuda_array x, int64_t groups, int64_t dim,
                     int64_t copies, cudaStream_t stream);
/* The operands of latent attention's keys. Forward makes k (rows, heads, plain + rotated) and v (rows, heads, vdim) of
 * all heads from `up`, the up-projection (rows, heads, plain + vdim), and `shared`, the key columns that heads share
 * (rows, rotated). Backward has the gradients of all four: it makes those of `up` and `shared` from those of k and
 * v. */
struct cuda_latent_keys_operands {
    struct cuda_array up, shared, k, v;
    int64_t rows, heads, plain, rotated, vdim;
};
int cuda_latent_keys(struct cuda_latent_keys_operands latent, cudaStream_t stream);
int cuda_latent_keys_backward(struct cuda_latent_keys_operands latent, cudaStream_t stream);
/* A pair of an outer and an inner row (exec/moved_rows.h). Pairs with the same inner row are consecutive, and kernels
 * add or merge their outer rows in the order of the pairs. In struct cuda_moved_row_pairs, `pairs` is in device memory;
 * NULL: pair i is (i, i). */
struct cuda_moved_row_pair {
    int64_t outer, inner;
};
struct cuda_moved_row_pairs {
    const struct cuda_moved_row_pair *pairs;
    int64_t count;
};
/* A copy of rows of row_bytes bytes, in each of `parts` parts: the outer row of each pair in x (parts, x_rows) is
 * copied to the inner row in y (parts, y_rows); with to_outer, the inner row in x to the outer row in y.
 * zeroes_other_rows: the other rows of y become 0; else they stay. */
struct cuda_row_copy {
    void *y;
    const void *x;
    int64_t parts, y_rows, x_rows, row_bytes;
    bool to_outer, zeroes_other_rows;
};
int cuda_take_rows(struct cuda_row_copy copy, struct cuda_moved_row_pairs pairs,
                   cudaStream_t stream);
/* Adds, in each part, the outer row of each pair in x (parts, x_rows, width) to the inner row in y (parts, y_rows,
 * width). */
int cuda_add_rows(float *y, int64_t y_rows, struct cuda_array x, int64_t x_rows, int64_t parts,
                  int64_t width, struct cuda_moved_row_pairs pairs, cudaStream_t stream);
int cuda_embedding(struct cuda_array y, const int32_t *token, struct cuda_array table, int64_t rows,
                   int64_t cols, int64_t vocab, int64_t first, cudaStream_t stream);
/* cuda_embedding_backward() computes the gradient of the table, whose rows belong to the tokens [first..first + vocab).
 * The gradient of a row is that of `before` plus the sum of dy at all positions that have the row's token. before: the
 * gradient so far; before.data NULL: it is 0. scratch has cuda_embedding_backward_scratch_bytes() bytes. */
size_t cuda_embedding_backward_scratch_bytes(int64_t rows, int64_t vocab);
int cuda_embedding_backward(struct cuda_array table, struct cuda_array dy, const int32_t *token,
                            struct cuda_array before, int64_t rows, int64_t cols, int64_t vocab,
                            int64_t first, void *scratch, cudaStream_t stream);

/* ---- rotations of heads: kernels_rope.cu ---- */

/* The shape of RoPE: a row has `stride` elements, of which the first heads x dim are its heads. The last `rotated`
 * columns of each head are rotated, and all other columns of the row copied. rotation_sign 1 rotates, -1 rotates
 * back. */
struct cuda_rope_shape {
    int64_t rows, heads, dim, rotated, stride;
    double theta;
    int rotation_sign;
};
int cuda_rope(struct cuda_array y, struct cuda_array x, const int32_t *position,
              struct cuda_rope_shape turn, cudaStream_t stream);

/* the most pairs of columns in a head for cuda_rotated_pack() */
enum { CUDA_ROTATED_PAIRS_MAX = 256 };
/* The operands of cuda_rotated_pack(). With `packs` it does what cuda_rope() and then cuda_pack() do; else, what
 * cuda_unpack() and then cuda_rope() do. It reads and writes memory once, and every bit is that of the two functions.
 * The first heads x dim columns of a row of pack.whole are its heads; rope_shape.stride is not read. These conditions
 * must hold:
 * - arrays that are read and arrays that are written do not overlap;
 * - rotated / 2, dim and the widths of blocks are multiples of 8;
 * - the blocks that are left out (block_cols 0) are the last ones;
 * - no head is split between parts. */
struct cuda_rotated_pack {
    struct cuda_pack pack;
    uint8_t dtype; /* enum cuda_type, the same for all arrays */
    const int32_t *position;
    struct cuda_rope_shape rope_shape;
};
int cuda_rotated_pack(const struct cuda_rotated_pack *r, bool packs, cudaStream_t stream);

/* ---- mixtures of experts: kernels_experts.cu ---- */

/* The operands of a router's kernels: the number of rows, experts and copies, and the way in which copies of tokens are
 * scored (models/work.h). */
struct cuda_route {
    int64_t rows, experts, copies_per_token;
    enum cuda_route_score_kind score;
    bool divides_scores_by_sum;
    float scale;
    /* [experts + 1] the number of the first copy that each expert computes, and then the number of copies; NULL:
     * routing is even */
    const int64_t *expert_begins;
};
int cuda_route(float *weights, const float *logits, struct cuda_route route, cudaStream_t stream);
int cuda_route_backward(struct cuda_array d_logits, const float *d_weights, const float *logits,
                        struct cuda_route route, cudaStream_t stream);
int cuda_permute(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                 int64_t cols, int64_t copies, cudaStream_t stream);
/* Sets each row of y to the sum of its copies in x, each times its weight. weights NULL: all are 1. */
int cuda_unpermute(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                   int64_t cols, int64_t copies, cudaStream_t stream);
int cuda_unpermute_backward(struct cuda_array dx, float *d_weights, struct cuda_array dy,
                            struct cuda_array x, const float *weights, int64_t rows, int64_t cols,
                            int64_t copies, cudaStream_t stream);
/* cuda_permute_weights() transposes weights [rows, copies] to y [copies, rows], the order of experts; its backward
 * transposes the gradient back. */
int cuda_permute_weights(float *y, const float *weights, int64_t rows, int64_t copies,
                         cudaStream_t stream);
int cuda_permute_weights_backward(float *d_weights, const float *dy, int64_t rows, int64_t copies,
                                  cudaStream_t stream);
/* Rows of row_bytes bytes that cuda_reorder_expert_rows() copies from x to y. The source has the order [ranks, experts,
 * copies] of the ranks that sent them, and the target [experts, ranks, copies]; with is_to_rank_order it is the other
 * way round. Every rank sends the same number of copies to an expert. expert_begins [experts + 1]: the number of each
 * expert's first copy among the copies of one rank, and then the end of the last expert's. */
struct cuda_routed_rows {
    void *y;
    const void *x;
    const int64_t *expert_begins;
    int64_t experts, ranks, row_count, row_bytes; /* row_count: that of all experts and ranks */
    bool is_to_rank_order;
};
int cuda_reorder_expert_rows(struct cuda_routed_rows rows, cudaStream_t stream);

/* ---- norms and sums over rows: kernels_norms.cu ---- */

/* These functions compute the norms of rows. stats [rows, 2] receives the mean and 1 / the standard deviation of each
 * row; rstd [rows] receives 1 / the root of the row's mean square. */
int cuda_rmsnorm(struct cuda_array y, float *rstd, struct cuda_array x, struct cuda_array weight,
                 int64_t rows, int64_t cols, double eps, cudaStream_t stream);
int cuda_layernorm(struct cuda_array y, float *stats, struct cuda_array x, struct cuda_array weight,
                   struct cuda_array bias, int64_t rows, int64_t cols, double eps,
                   cudaStream_t stream);
enum { CUDA_ADD_NORM_COLS_MAX = 16384 }; /* the longest row that cuda_add_norm() takes */
/* The operands of cuda_add_norm(). It computes sum = a + b and y, the norm of the sum, in one pass over memory; every
 * bit is that of cuda_add() and then a norm. stats is fp32, and all other arrays are bf16. `y` and `sum` do not
 * overlap, but each may be the same array as `a` or `b`. */
struct cuda_add_norm {
    struct cuda_array y, sum, a, b, weight, bias;
    float *stats;
    int64_t rows, cols;
    double eps;
    bool subtracts_mean; /* a layer norm; else an RMS norm, whose bias is not read */
};
int cuda_add_norm(const struct cuda_add_norm *n, cudaStream_t stream);
/* These functions compute the gradients of norms, and the sums of columns. They add their sums to the gradients so far:
 * before, weight_before and bias_before. An array whose `data` is NULL stands for a gradient of 0; weight_before.data
 * and bias_before.data are both NULL or neither. scratch has cuda_column_scratch_bytes() bytes, where `sums` is 2 for a
 * layer norm's gradients and else 1. */
size_t cuda_column_scratch_bytes(int64_t rows, int64_t cols, int sums);
int cuda_rmsnorm_backward(struct cuda_array dx, struct cuda_array dweight, struct cuda_array dy,
                          struct cuda_array x, struct cuda_array weight, const float *rstd,
                          struct cuda_array before, int64_t rows, int64_t cols, void *scratch,
                          cudaStream_t stream);
int cuda_layernorm_backward(struct cuda_array dx, struct cuda_array dweight,
                            struct cuda_array dbias, struct cuda_array dy, struct cuda_array x,
                            struct cuda_array weight, const float *stats,
                            struct cuda_array weight_before, struct cuda_array bias_before,
                            int64_t rows, int64_t cols, void *scratch, cudaStream_t stream);
int cuda_column_sum(struct cuda_array y, struct cuda_array x, struct cuda_array before,
                    int64_t rows, int64_t cols, void *scratch, cudaStream_t stream);

/* ---- loss: kernels_loss.cu ---- */

/* Losses. A function with an argument `fault` sets *fault = mark if a label is neither -1 nor in the vocabulary.
 * before: the loss so far; NULL: it is 0. */

/* Sets *sum = *before + (the sum of the first `rows` terms, added in a fixed order) / count. */
int cuda_add_terms(float *sum, const float *before, const float *term, int64_t rows, double count,
                   cudaStream_t stream);
size_t cuda_cross_entropy_scratch_bytes(int64_t rows);
int cuda_cross_entropy(float *loss, float *lse, struct cuda_array softmax, struct cuda_array logits,
                       const int32_t *label, const float *before, int64_t rows, int64_t vocab,
                       double count, int32_t *fault, int32_t mark, void *scratch,
                       cudaStream_t stream);
int cuda_cross_entropy_backward(struct cuda_array dx, struct cuda_array x, const int32_t *label,
                                bool softmax, int64_t rows, int64_t vocab, double count,
                                int32_t *fault, int32_t mark, cudaStream_t stream);
/* Computes the statistics of one part of a vocabulary that is split over ranks, from its logits (rows, vocab). The part
 * has the tokens [first..first + columns); the columns after the first `columns` are padding. stats is (rows, 3): the
 * largest logit, the sum of the exponentials of logits minus the largest one, and the label's logit, 0 if the label is
 * -1 or in another part. */
int cuda_cross_entropy_partial(float *stats, struct cuda_array x, const int32_t *label,
                               int64_t rows, int64_t vocab, int64_t columns, int64_t first,
                               cudaStream_t stream);
int cuda_cross_entropy_partial_backward(struct cuda_array dx, struct cuda_array x,
                                        const int32_t *label, const float *lse, int64_t rows,
                                        int64_t vocab, int64_t columns, int64_t first, double count,
                                        cudaStream_t stream);
int cuda_cross_entropy_finish(float *loss, float *lse, const float *stats, const int32_t *label,
                              const float *before, int64_t rows, int64_t parts, double count,
                              void *scratch, cudaStream_t stream);

/* ---- kernels beside attention's products: kernels_attention.cu ---- */

/* Merges the attention over a block of keys into the running result, `out` and `lse`. `out` and `block` are (rows,
 * dim), `lse` and `block_lse` (rows). */
int cuda_merge(float *out, float *lse, struct cuda_array block, const float *block_lse,
               int64_t rows, int64_t dim, cudaStream_t stream);

/* The operands of cuda_merge_rows(), which merges the outer row of each pair, of a block (rows, heads, dim), into the
 * inner row of the running result (out_rows, heads, dim). `before` and `lse_before` are the result so far, which may be
 * `out` and `lse`; NULL: there is none yet. */
struct cuda_row_merge {
    float *out, *lse;
    const float *before, *lse_before, *block_lse;
    struct cuda_array block;
    int64_t out_rows, heads, dim;
};
int cuda_merge_rows(struct cuda_row_merge merged, struct cuda_moved_row_pairs pairs,
                    cudaStream_t stream);

/* The keys that row i of a tile sees: those that meet all of these conditions. */
struct cuda_mask {
    /* keys j with j <= i + offset; INT64_MAX: all keys, and the window is not read */
    int64_t offset;
    int64_t window; /* keys j with j > i + offset - window; 0: no such condition */
    /* for packed documents: (rows, 2), the first key that each row sees and the end of its keys, which take the place
     * of both conditions; else NULL */
    const int32_t *visible_key_range_by_row;
};
/* Computes p = softmax(scale s) over the keys that a row sees, and sets lse[(first + row) * lse_step] to the row's
 * log-sum-exp. Rows are masked as the rows from `first` on. A row that sees no key gets p = 0 and lse = -INFINITY. s is
 * (rows, keys) fp32, and p has the same shape. */
int cuda_softmax(struct cuda_array p, float *lse, int64_t lse_step, const float *s, int64_t first,
                 int64_t rows, int64_t keys, struct cuda_mask mask, float scale,
                 cudaStream_t stream);
/* Computes the gradient of a softmax: sets p = exp(scale s - lse), and ds = p (dp - delta) scale; both are 0 for keys
 * that a row does not see. delta (rows) is that of cuda_row_dot(). Rows are masked, and `lse` is indexed, as in
 * cuda_softmax(). */
int cuda_softmax_backward(struct cuda_array p, struct cuda_array ds, const float *s,
                          const float *dp, const float *lse, int64_t lse_step, const float *delta,
                          int64_t first, int64_t rows, int64_t keys, struct cuda_mask mask,
                          float scale, cudaStream_t stream);
/* Sets delta[i] to the dot product of row i of o and of d_o, which have `dim` elements. Rows begin `step` elements
 * apart. */
int cuda_row_dot(float *delta, struct cuda_array o, struct cuda_array d_o, int64_t rows,
                 int64_t dim, int64_t step, cudaStream_t stream);
/* An attention's output and log-sum-exp, and its sinks. The sink of a head is a score that belongs to no key. */
struct cuda_sink_operands {
    struct cuda_array o, sink; /* (rows, heads, dim), (heads) */
    const float *lse;          /* (rows, heads) */
    int64_t rows, heads, dim;
};
/* Adds the sinks to an attention: computes the output and the log-sum-exp with sinks from those without. */
int cuda_sink(struct cuda_array o_new, float *lse_new, struct cuda_sink_operands s,
              cudaStream_t stream);
/* Multiplies term[row, head] by -exp(sink - lse), where lse includes the sinks. If the term was the dot product of d_o
 * and o, it becomes the row's part of the sink's gradient. */
int cuda_sink_terms(float *term, struct cuda_sink_operands s, cudaStream_t stream);
/* Computes the transpose of x, (rows, cols): y[c * rows + r] = x[r * cols + c]. */
int cuda_transpose(float *y, const float *x, int64_t rows, int64_t cols, cudaStream_t stream);
/* Copies `rows` rows of `dim` elements. Rows begin to_step elements apart in `to`, and from_step in `from`. */
int cuda_copy_rows(struct cuda_array to, int64_t to_step, struct cuda_array from, int64_t from_step,
                   int64_t rows, int64_t dim, cudaStream_t stream);
/* Sets each of `count` elements of x to `value`. */
int cuda_fill_f32(float *x, float value, int64_t count, cudaStream_t stream);

/* ---- kernels of measurements: kernels_measure.cu ---- */

int cuda_launch_empty_kernel(cudaStream_t stream);
/* Launches `blocks` blocks that copy memory, as the channels of a collective do. They end when *stop, in host memory
 * that the device sees, is not 0, and after at most `nanoseconds`. Each block takes so much shared memory that a large
 * block of a matrix product does not fit on the same multiprocessor. */
int cuda_sm_hog(void *to, const void *from, size_t bytes, int blocks, uint64_t nanoseconds,
                const int32_t *stop, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
