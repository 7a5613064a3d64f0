/* exec/cuda/kernels.h: C functions that launch our own kernels, for work that no library does.
 *
 * Every launcher enqueues on a stream and returns a cudaError_t (0: enqueued). Arrays carry their element type, so
 * one kernel serves fp32, bf16 and fp16. All arithmetic is fp32, and sums over many terms follow fixed trees, so no
 * sum depends on the order in which threads run. Rows are loaded 16 bytes at a time where addresses and sizes allow
 * it, else element by element. `scratch` is device memory, aligned to 256 bytes, of the size that the function next
 * to the launcher returns.
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

/* Values of enum activation_function (models/work.h); CUDA_OWN: the function that the kind has by itself. */
enum cuda_function { CUDA_OWN, CUDA_GELU, CUDA_RELU2, CUDA_CLAMPED };

/* Values of enum route_score (models/work.h). */
enum cuda_route_score { CUDA_SOFTMAX, CUDA_SOFTMAX_OF_CHOSEN, CUDA_SIGMOID };

struct cuda_array {
    void *data;
    uint8_t dtype; /* enum cuda_type */
};

enum { CUDA_SCRATCH_ALIGNMENT = 256 };

/* ---- element by element: kernels_pointwise.cu ---- */

int cuda_add(struct cuda_array y, struct cuda_array a, struct cuda_array b, int64_t count,
             cudaStream_t stream);
/* y = a + b + bias, where bias (cols) is added to every row. */
int cuda_add_bias(struct cuda_array y, struct cuda_array a, struct cuda_array b,
                  struct cuda_array bias, int64_t rows, int64_t cols, cudaStream_t stream);
int cuda_cast(struct cuda_array y, struct cuda_array x, int64_t count, cudaStream_t stream);
/* A weight in 4 or 8 bits (models/frozen_storage.h). scales: fp32, or, with has_narrow_scales, bytes, padded to a
 * multiple of 4, then an fp32 scale for 256 of them, then an offset. */
struct cuda_stored {
    const uint8_t *codes, *scales;
    int64_t count, scale_elements; /* elements in all, and those that share a scale */
    bool has_bytes, has_narrow_scales;
    float value[16], scale_value[256];
};
int cuda_dequantise(struct cuda_array y, struct cuda_stored stored, cudaStream_t stream);
/* weights [rows] multiply the rows of y; NULL: all are 1. */
int cuda_swiglu(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                int64_t cols, enum cuda_function function, cudaStream_t stream);
int cuda_swiglu_backward(struct cuda_array dx, struct cuda_array dy, struct cuda_array x,
                         int64_t rows, int64_t cols, enum cuda_function function,
                         cudaStream_t stream);
/* The same with weights, whose gradients d_weights [rows] it sets. dx may be x. */
int cuda_weighted_swiglu_backward(struct cuda_array dx, float *d_weights, struct cuda_array dy,
                                  struct cuda_array x, const float *weights, int64_t rows,
                                  int64_t cols, enum cuda_function function, cudaStream_t stream);
int cuda_gelu(struct cuda_array y, struct cuda_array x, int64_t count, enum cuda_function function,
              cudaStream_t stream);
int cuda_gelu_backward(struct cuda_array dx, struct cuda_array dy, struct cuda_array x,
                       int64_t count, enum cuda_function function, cudaStream_t stream);

/* Constants of AdamW in one step: decay_factor is 1 - lr weight_decay, corrected_lr is lr / (1 - beta1^t),
 * root_correction is 1 / sqrt(1 - beta2^t). */
struct cuda_adamw {
    float beta1, beta2, one_less_beta1, one_less_beta2, eps, decay_factor, corrected_lr,
        root_correction, max_norm;
};
/* squares: the sum of the squares of all gradients' elements; NULL: gradients are not clipped. param.data NULL: no copy
 * of the parameters is written. */
int cuda_adamw(struct cuda_array param, struct cuda_array master_new, struct cuda_array m_new,
               struct cuda_array v_new, struct cuda_array grad, struct cuda_array master,
               struct cuda_array m, struct cuda_array v, const float *squares, int64_t count,
               struct cuda_adamw constants, cudaStream_t stream);
/* Computes y = x min(1, max_norm / (sqrt(*squares) + 1e-6)), where *squares is the sum of the squares of all
 * gradients' elements; y = x if max_norm is 0. */
int cuda_clip(struct cuda_array y, struct cuda_array x, const float *squares, double max_norm,
              int64_t count, cudaStream_t stream);
/* cuda_square_sum() computes *sum = *before (NULL: 0) + the sum of x^2 / copies, where `copies` is the number of ranks
 * that hold x. scratch has cuda_square_sum_scratch_bytes() bytes. */
size_t cuda_square_sum_scratch_bytes(int64_t count);
int cuda_square_sum(float *sum, const float *before, struct cuda_array x, int64_t count,
                    uint32_t copies, void *scratch, cudaStream_t stream);

/* cuda_largest_magnitude() sets *largest to the largest absolute value of x. scratch has cuda_largest_scratch_bytes()
 * bytes. */
size_t cuda_largest_scratch_bytes(int64_t count);
int cuda_largest_magnitude(float *largest, struct cuda_array x, int64_t count, void *scratch,
                           cudaStream_t stream);
/* An 8-bit type. bias: the exponent bits of the number 1; largest: the largest number. */
struct cuda_eight_bits {
    int mantissa_bits, bias;
    float largest;
};
/* Sets *scale = max(*largest, 1e-12) / type.largest, and copy = x / *scale, which is (rows, cols) as x or, if `turned`,
 * its transpose (cols, rows). */
int cuda_quantise(void *copy, float *scale, struct cuda_array x, int64_t rows, int64_t cols,
                  bool turned, const float *largest, struct cuda_eight_bits type,
                  cudaStream_t stream);

/* Fills to (rows, cols) with the same numbers as draw_fill() (exec/draw.h). */
struct draw;
int cuda_draw(struct cuda_array to, const struct draw *draw, cudaStream_t stream);

/* The columns of a block of numbers that share a scale. A block has 1 row, or as many rows as columns. */
enum { CUDA_SCALE_BLOCK = 128 };
/* Does what cuda_quantise() does, but with a scale for each block of block_rows x CUDA_SCALE_BLOCK of the copy; the
 * scales are stored row of blocks after row of blocks. */
int cuda_quantise_blocks(void *copy, float *scales, struct cuda_array x, int64_t rows, int64_t cols,
                         bool turned, int block_rows, struct cuda_eight_bits type,
                         cudaStream_t stream);
/* Copies the scales of a matrix (rows, cols) into the order in which cuBLASLt reads them: those of blocks of one row
 * column after column, those of square blocks row after row, and each of these lines padded to a multiple of 4 scales.
 * `to` has room for cuda_laid_out_scales() numbers. */
size_t cuda_laid_out_scales(int64_t rows, int64_t cols, int block_rows);
int cuda_lay_out_scales(float *to, const float *from, int64_t rows, int64_t cols, int block_rows,
                        cudaStream_t stream);

enum { CUDA_REDUCE_MEMBERS = 64 }; /* the most members of cuda_reduce() */
/* Sets `to` to the sum of `members` arrays of one type, added in order, or, with `maximum`, to their largest
 * elements. */
int cuda_reduce(struct cuda_array to, const void *const *from, int members, bool maximum,
                int64_t count, cudaStream_t stream);

/* ---- kernels that move elements: kernels_layout.cu ---- */

/* The operands of cuda_pack() and cuda_unpack(). cuda_pack() copies `whole`, (rows, parts * (w0 + w1 + w2)), where w0,
 * w1 and w2 are block_cols[], into up to three blocks: one (parts, rows, w) for each w that is not 0. cuda_unpack()
 * copies them back. */
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
/* The operands of latent attention's keys. Forward: makes k (rows, heads, plain + rotated) and v (rows, heads, vdim) of
 * all heads from `up`, the up-projection (rows, heads, plain + vdim), and `shared`, the key columns that heads share
 * (rows, rotated). Backward: makes the gradients `up` and `shared` from the gradients k and v. */
struct cuda_latent {
    struct cuda_array up, shared, k, v;
    int64_t rows, heads, plain, rotated, vdim;
};
int cuda_latent_keys(struct cuda_latent latent, cudaStream_t stream);
int cuda_latent_keys_backward(struct cuda_latent latent, cudaStream_t stream);
/* A pair of rows: a row in packed order, and one of a rank's own rows. Pairs with the same own row are consecutive, and
 * sums over them are in the order of the pairs. In struct cuda_row_pairs, `pair` is in device memory; NULL: pair i is
 * (i, i). */
struct cuda_row_pair {
    int64_t packed, own;
};
struct cuda_row_pairs {
    const struct cuda_row_pair *pair;
    int64_t count;
};
/* Copies, in each part, row `packed` of x (parts, x_rows) to row `own` of y (parts, y_rows); with to_packed, row `own`
 * of x to row `packed` of y. row_bytes: bytes of a row. zeroes_other_rows: the other rows of y become 0; else they
 * stay. */
struct cuda_row_copy {
    void *y;
    const void *x;
    int64_t parts, y_rows, x_rows, row_bytes;
    bool to_packed, zeroes_other_rows;
};
int cuda_take_rows(struct cuda_row_copy copy, struct cuda_row_pairs pairs, cudaStream_t stream);
/* Adds, in each part, row `packed` of x (parts, x_rows, width) to row `own` of y (parts, y_rows, width). */
int cuda_add_rows(float *y, int64_t y_rows, struct cuda_array x, int64_t x_rows, int64_t parts,
                  int64_t width, struct cuda_row_pairs pairs, cudaStream_t stream);
int cuda_embedding(struct cuda_array y, const int32_t *token, struct cuda_array table, int64_t rows,
                   int64_t cols, int64_t vocab, int64_t first, cudaStream_t stream);
/* cuda_embedding_backward() sets table = before + the gradients dy of each token's row. before: the gradient so far;
 * before.data NULL: it is 0. scratch has cuda_embedding_backward_scratch_bytes() bytes. */
size_t cuda_embedding_backward_scratch_bytes(int64_t rows, int64_t vocab);
int cuda_embedding_backward(struct cuda_array table, struct cuda_array dy, const int32_t *token,
                            struct cuda_array before, int64_t rows, int64_t cols, int64_t vocab,
                            int64_t first, void *scratch, cudaStream_t stream);

/* ---- rotations of heads: kernels_rope.cu ---- */

/* Applies RoPE to the last `rotated` columns of each head; direction 1 rotates and -1 rotates back. The other columns
 * of a head are copied, and so are those of a row, of `stride` elements, after heads x dim. */
struct cuda_rope_shape {
    int64_t rows, heads, dim, rotated, stride;
    double theta;
    int direction;
};
int cuda_rope(struct cuda_array y, struct cuda_array x, const int32_t *position,
              struct cuda_rope_shape turn, cudaStream_t stream);

/* Computes cuda_rope() and cuda_pack() (packs), or cuda_unpack() and cuda_rope(), in one pass over memory, with the
 * same bits: the first heads x dim columns of a row of pack.whole are its heads, and turn.stride is not read. Nothing
 * that is written overlaps what is read. Half of `rotated`, dim and the widths of blocks are multiples of 8, blocks
 * that are left out come last, and no head is split between parts. */
enum { CUDA_ROTATED_PAIRS = 256 }; /* the most pairs of columns in a head */
struct cuda_rotated_pack {
    struct cuda_pack pack;
    uint8_t dtype; /* enum cuda_type: that of all arrays */
    const int32_t *position;
    struct cuda_rope_shape turn;
};
int cuda_rotated_pack(const struct cuda_rotated_pack *r, bool packs, cudaStream_t stream);

/* ---- mixtures of experts: kernels_experts.cu ---- */

/* The routing of copies of tokens (models/work.h). */
struct cuda_route {
    int64_t rows, experts, copies_per_token;
    enum cuda_route_score score;
    bool norm;
    float scale;
    /* [experts + 1] the first copy of each expert; NULL: routing is even */
    const int64_t *expert_begins;
};
int cuda_route(float *weights, const float *logits, struct cuda_route route, cudaStream_t stream);
int cuda_route_backward(struct cuda_array d_logits, const float *d_weights, const float *logits,
                        struct cuda_route route, cudaStream_t stream);
int cuda_permute(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                 int64_t cols, int64_t copies, cudaStream_t stream);
/* weights NULL: all are 1. */
int cuda_unpermute(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                   int64_t cols, int64_t copies, cudaStream_t stream);
int cuda_unpermute_backward(struct cuda_array dx, float *d_weights, struct cuda_array dy,
                            struct cuda_array x, const float *weights, int64_t rows, int64_t cols,
                            int64_t copies, cudaStream_t stream);
/* Transposes weights [rows, copies] to y [copies, rows], the order of experts; the backward does the reverse. */
int cuda_permute_weights(float *y, const float *weights, int64_t rows, int64_t copies,
                         cudaStream_t stream);
int cuda_permute_weights_backward(float *d_weights, const float *dy, int64_t rows, int64_t copies,
                                  cudaStream_t stream);
/* Copies rows of `row_bytes` bytes from the order [ranks, experts, copies], by the ranks that sent them, to the order
 * [experts, ranks, copies]; with to_rank_order in the other direction. expert_begins [experts + 1]: the first copy of
 * each expert among the copies that every rank sends. */
struct cuda_routed_rows {
    void *y;
    const void *x;
    const int64_t *expert_begins;
    int64_t experts, ranks, row_count, row_bytes; /* row_count: rows of all experts and ranks */
    bool to_rank_order;
};
int cuda_reorder_expert_rows(struct cuda_routed_rows rows, cudaStream_t stream);

/* ---- norms and sums over rows: kernels_norms.cu ---- */

/* before, weight_before and bias_before are the gradients so far, to which sums are added. data NULL: they are 0;
 * weight_before and bias_before are then both NULL. */
int cuda_rmsnorm(struct cuda_array y, float *rstd, struct cuda_array x, struct cuda_array weight,
                 int64_t rows, int64_t cols, double eps, cudaStream_t stream);
int cuda_layernorm(struct cuda_array y, float *stats, struct cuda_array x, struct cuda_array weight,
                   struct cuda_array bias, int64_t rows, int64_t cols, double eps,
                   cudaStream_t stream);
/* Computes sum = a + b and y, the norm of the sum, in one pass over memory. All arrays are bf16, but the statistics fp32. Every bit of the
 * results is that of cuda_add() and then a norm. y and sum do not overlap; each may be the same array as a or b. */
enum { CUDA_ADD_NORM_COLS = 16384 }; /* the longest rows that it takes */
struct cuda_add_norm {
    struct cuda_array y, sum, a, b, weight, bias;
    float *stats;
    int64_t rows, cols;
    double eps;
    bool centred; /* a layer norm; else an RMS norm, whose bias is not read */
};
int cuda_add_norm(const struct cuda_add_norm *n, cudaStream_t stream);
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

/* The functions with an argument `fault` write `mark` to it for a label that is neither -1 nor in the vocabulary.
 * before: the loss so far; NULL: 0. */

/* Sets *sum = *before (NULL: 0) + the sum of `rows` terms divided by `count`, added in a fixed order. */
int cuda_add_loss_terms(float *sum, const float *before, const float *term, int64_t rows,
                        double count, cudaStream_t stream);
size_t cuda_cross_entropy_scratch_bytes(int64_t rows);
int cuda_cross_entropy(float *loss, float *lse, struct cuda_array softmax, struct cuda_array logits,
                       const int32_t *label, const float *before, int64_t rows, int64_t vocab,
                       double count, int32_t *fault, int32_t mark, void *scratch,
                       cudaStream_t stream);
int cuda_cross_entropy_backward(struct cuda_array dx, struct cuda_array x, const int32_t *label,
                                bool softmax, int64_t rows, int64_t vocab, double count,
                                int32_t *fault, int32_t mark, cudaStream_t stream);
/* Computes the statistics of one part of the vocabulary from its logits (rows, vocab). The first `columns` columns
 * belong to the tokens from `first` on; the columns after them are padding. */
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

/* ---- around attention: kernels_attention.cu ---- */

/* Merges a block's result into the running one: out and block are (rows, dim), lse and block_lse (rows). */
int cuda_merge(float *out, float *lse, struct cuda_array block, const float *block_lse,
               int64_t rows, int64_t dim, cudaStream_t stream);

/* Merges row `packed` of a block (rows, heads, dim) into row `own` of the running result (out_rows, heads, dim).
 * before, lse_before: the result so far, which may be out and lse; NULL: there is none yet. */
struct cuda_merged_rows {
    float *out, *lse;
    const float *before, *lse_before, *block_lse;
    struct cuda_array block;
    int64_t out_rows, heads, dim;
};
int cuda_merge_rows(struct cuda_merged_rows merged, struct cuda_row_pairs pairs,
                    cudaStream_t stream);

/* The keys that row i of a tile sees. */
struct cuda_mask {
    int64_t offset; /* key j only if j <= i + offset; INT64_MAX: all */
    int64_t window; /* and only if j > i + offset - window; 0: all */
    /* for packed documents: (rows, 2), the first key that a row sees and the end of its keys; NULL: offset and window
     * determine them */
    const int32_t *visible;
};
/* Computes p = softmax(scale s) over the keys that a row sees, and lse[(first + row) * lse_step]; a row that sees no
 * key gets p = 0 and lse = -inf. s is (rows, keys) fp32, and p has the same shape. Row i of s is masked as row first +
 * i. */
int cuda_softmax(struct cuda_array p, float *lse, int64_t lse_step, const float *s, int64_t first,
                 int64_t rows, int64_t keys, struct cuda_mask mask, float scale,
                 cudaStream_t stream);
/* Computes the gradient of a softmax: p = exp(scale s - lse), ds = p (dp - delta) scale. */
int cuda_softmax_backward(struct cuda_array p, struct cuda_array ds, const float *s,
                          const float *dp, const float *lse, int64_t lse_step, const float *delta,
                          int64_t first, int64_t rows, int64_t keys, struct cuda_mask mask,
                          float scale, cudaStream_t stream);
/* Sets delta[i] to the sum over dim of o d_o in row i; rows are `step` elements apart. */
int cuda_row_dot(float *delta, struct cuda_array o, struct cuda_array d_o, int64_t rows,
                 int64_t dim, int64_t step, cudaStream_t stream);
/* The output and the log-sum-exp of attention, and the sinks, a score of each head that belongs to no key. */
struct cuda_sinks {
    struct cuda_array o, sink; /* (rows, heads, dim), (heads) */
    const float *lse;          /* (rows, heads) */
    int64_t rows, heads, dim;
};
/* Computes the output and log-sum-exp of attention with the sinks from those without. */
int cuda_sink(struct cuda_array o_new, float *lse_new, struct cuda_sinks s, cudaStream_t stream);
/* Multiplies term[row, head] by - exp(sink - lse), where the lse includes the sinks. A term that was d_o . o becomes
 * the row's part of the gradient of the sink. */
int cuda_sink_terms(float *term, struct cuda_sinks s, cudaStream_t stream);
/* Computes the transpose of x, (rows, cols): y[c * rows + r] = x[r * cols + c]. */
int cuda_transpose(float *y, const float *x, int64_t rows, int64_t cols, cudaStream_t stream);
/* Copies rows of dim elements, which begin to_step and from_step elements apart. */
int cuda_copy_rows(struct cuda_array to, int64_t to_step, struct cuda_array from, int64_t from_step,
                   int64_t rows, int64_t dim, cudaStream_t stream);
/* Sets x[i] = value for count elements. */
int cuda_fill_f32(float *x, float value, int64_t count, cudaStream_t stream);

/* ---- for measurements: kernels_measure.cu ---- */

int cuda_launch_empty_kernel(cudaStream_t stream);
/* Launches `blocks` blocks that copy memory, as the channels of a collective do, until *stop is not 0 (host memory that
 * the device sees), and for at most `nanoseconds`. Each block takes so much shared memory that no block of a matrix
 * product fits on the same multiprocessor. */
int cuda_sm_hog(void *to, const void *from, size_t bytes, int blocks, uint64_t nanoseconds,
                const int32_t *stop, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
