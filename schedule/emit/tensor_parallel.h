/* schedule/emit/tensor_parallel.h: Megatron tensor and sequence parallelism (Shoeybi et al., arXiv 1909.08053;
 * Korthikanti et al., arXiv 2205.05198).
 *
 * tp ranks cut heads, the feed-forward width and the vocabulary; outside the pairs of products they cut the tokens of
 * each sequence. A gather collects all tokens before wqkv and w13, and a reduce-scatter sums and cuts them after wo
 * and w2. Backward it is the other way round, and the saved local input of wqkv and w13 is gathered once more for
 * their weight gradients. Everything in between, attention included, sees a transformer of 1/tp the width on all
 * tokens of the tensor ranks. PyTorch's DTensor does the same with copies around collectives, or with all tokens on
 * every tensor rank (enum tensor_plan); there a collective's result is waited for at once.
 *
 * Rows: e->unit.rows of whole tokens inside the pairs, e->unit.own_rows = e->unit.rows / tp outside. With tp = 1
 * nothing is sent and views are returned unchanged. */
#ifndef SCHEDULE_EMIT_TENSOR_PARALLEL_H
#define SCHEDULE_EMIT_TENSOR_PARALLEL_H

#include "schedule/emit/emit.h"

/* Makes the streams and buffers of the tensor group, after emit_mesh(). layers: false for an attention operator by
 * itself, which gathers no rows. */
void tensor_setup(struct emit *e, bool layers);

/* The order of rows that a gather produces. SEQUENCES: the rows of each sequence in order, as attention needs them;
 * each sequence is gathered by itself. ANY: any order, which is enough for products. */
enum tensor_rows { TENSOR_SEQUENCES, TENSOR_ANY };

/* Returns x[tp * rows, cols], gathered from all tensor ranks' x[rows, cols], for products to read: where these gather in
 * 8 bits, no other op may read the result. held: if the implementation keeps one
 * buffer for such gathers throughout the step, and no weight gradient is deferred, the result is written there; else it
 * is a new buffer. */
struct view tensor_gather(struct emit *e, struct view x, int64_t cols, enum tensor_rows order,
                          const char *stem, bool held);
/* Does what tensor_gather() does, for rows that other ops than products read; they are never gathered in 8 bits. */
struct view tensor_gather_unquantised(struct emit *e, struct view x, int64_t cols,
                                      enum tensor_rows order, const char *stem);
/* Does what tensor_gather() does, for an input that `products` products of the framework read. With TENSOR_PLAN_LINEAR
 * and layers that are not compiled it is gathered once for each of them; else once. */
struct view tensor_gather_input(struct emit *e, struct view x, int64_t cols, enum tensor_rows order,
                                int products);
/* Does what tensor_reduce_scatter() does, for the gradient of an input that `products` products of the framework read.
 * With TENSOR_PLAN_LINEAR, or if all tensor ranks have all tokens, the framework reduces the gradient of each product
 * and adds the results. Here the products are one, so one reduction gives the sum; each further reduction only takes
 * the time and the memory of another product's, and nothing reads its result. */
void tensor_reduce_input_gradient(struct emit *e, struct view x, struct view y,
                                  enum tensor_rows order, int products);
/* Emits an all-reduce of x over the tensor ranks whose result nothing reads, and makes the next compute op wait for it.
 * It takes the time of a reduction that the framework does, while the schedule has the sum from another op. */
void tensor_reduce_unread(struct emit *e, struct view x);
/* Does what tensor_gather() does, into y, which has room for all rows. */
void tensor_gather_to(struct emit *e, struct view x, struct view y);
/* Returns this rank's equal part of x, where x is the same on all tensor ranks. An op has the same operand on every
 * rank, so it cannot select a part by rank; an all-to-all delivers the part instead. */
struct view tensor_own_part(struct emit *e, struct view x, const char *stem);
/* Sums all tensor ranks' x[rows, cols] and writes this rank's rows of the sum to y. */
void tensor_reduce_scatter(struct emit *e, struct view x, struct view y, enum tensor_rows order);
/* Does what tensor_reduce_scatter() does, for a tensor that has `cols` columns and not the model's hidden size. */
void tensor_reduce_scatter_columns(struct emit *e, struct view x, struct view y, int64_t cols,
                                   enum tensor_rows order);
/* Does what emit_matmul() does for a product that reads the result of a gather, or whose result is reduce-scattered.
 * That collective moves `rows` rows in this order; the product has m of them. With the plan async there is one op for
 * each piece of rows that the collective moves, if m is a whole number of pieces, so that a piece is multiplied while
 * others are sent; else there is one op. */
void tensor_matmul(struct emit *e, enum tensor_rows order, int64_t rows, enum matmul_form form,
                   struct view a, struct view b, struct view bias, struct view y, int64_t m,
                   int64_t n, int64_t k);
/* Returns where a product whose result is scattered writes: y itself, or a new buffer tp times as long. */
struct view tensor_product_output(struct emit *e, struct view y, int64_t cols, const char *stem);

#endif
