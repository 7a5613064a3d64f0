/* schedule/emit/tensor_parallel.h: Megatron tensor and sequence parallelism (Shoeybi et al., arXiv 1909.08053;
 * Korthikanti et al., arXiv 2205.05198).
 *
 * The tp tensor ranks cut heads, the feed-forward width and the vocabulary. Products come in pairs: wqkv and wo, w13
 * and w2. Outside the pairs the ranks cut the tokens of each sequence. A gather collects all tokens before the first
 * product of a pair; a reduce-scatter after the second sums its result and cuts it by tokens. The backward does the
 * reverse, and gathers the saved local input of the first product once more for its weight gradient. Everything inside
 * a pair, attention included, sees a transformer of 1/tp the width on all tokens of the tensor ranks. PyTorch's DTensor
 * does the same with copies around collectives, or with all tokens on every tensor rank (enum tensor_plan); there the
 * next compute op waits for a gather or a reduction of a product, unless async TP runs it in pieces.
 *
 * Rows: e->unit.rows inside the pairs, of all tensor ranks' tokens; outside e->unit.own_rows, which is e->unit.rows /
 * tp, or e->unit.rows if every rank has all tokens. With tp = 1 nothing is sent. Then, and if every rank has all
 * tokens, gathers return their views unchanged. */
#ifndef SCHEDULE_EMIT_TENSOR_PARALLEL_H
#define SCHEDULE_EMIT_TENSOR_PARALLEL_H

#include "schedule/emit/emit.h"

/* Makes the stream of the tensor ranks' collectives and, if gathers share a buffer (tensor_gathers_share_buffer), that
 * buffer; nothing with one tensor rank. Call it after emit_mesh(). layers: false for an attention operator by itself,
 * which gathers no rows. */
void tensor_make_shared_gather_buffer(struct emit *e, bool layers);

/* The order of the rows of a gather. TENSOR_ROWS_BY_SEQUENCE: the rows of each sequence in order, as attention needs
 * them. TENSOR_ROWS_IN_ANY_ORDER: any order, which is enough for products. */
enum tensor_row_order { TENSOR_ROWS_BY_SEQUENCE, TENSOR_ROWS_IN_ANY_ORDER };

/* Returns x[tp * rows, cols], gathered from all tensor ranks' x[rows, cols]. Only products may read the result: if
 * their operands are gathered in 8 bits, nothing else is written. held: if the implementation keeps one buffer for such
 * gathers during the step, no weight gradient is deferred and the gather is not in 8 bits, the result is in that
 * buffer; else it is in a new one. */
struct view tensor_gather(struct emit *e, struct view x, int64_t cols, enum tensor_row_order order,
                          const char *stem, bool held);
/* Does what tensor_gather() does, but never gathers in 8 bits, so that any op may read the result. It is in a new
 * buffer. */
struct view tensor_gather_unquantised(struct emit *e, struct view x, int64_t cols,
                                      enum tensor_row_order order, const char *stem);
/* Does what tensor_gather() does, for an input that `products` products of the framework read. With
 * TENSOR_PLAN_GATHER_PER_LINEAR the input is gathered once for each of them. Layers that are compiled gather it once,
 * since a compiled graph drops equal gathers (torch/_functorch/compile_utils.py, fx_graph_cse()). The result is that of
 * the first gather. */
struct view tensor_gather_input(struct emit *e, struct view x, int64_t cols,
                                enum tensor_row_order order, int products);
/* Does what tensor_reduce_scatter() does, for the gradient of an input that `products` products of the framework read.
 * With TENSOR_PLAN_GATHER_PER_LINEAR, or if all tensor ranks have all tokens, the framework reduces the gradient of
 * each product and adds the results. Here one product stands for all, so one reduction, the last, gives the sum. The
 * others only take the time and the memory that they take in the framework; nothing reads their results. */
void tensor_reduce_input_gradient(struct emit *e, struct view x, struct view y,
                                  enum tensor_row_order order, int products);
/* Emits an all-reduce of x over the tensor ranks, and makes the next compute op wait for it. Nothing reads its result:
 * it only takes the time of a reduction that the framework does, where another op of the schedule has computed the sum
 * already. */
void tensor_emit_unread_reduction(struct emit *e, struct view x);
/* Gathers x from all tensor ranks into y, which has room for all rows, by one all-gather in the order of ranks. */
void tensor_gather_to(struct emit *e, struct view x, struct view y);
/* Returns this rank's equal part of x, where x is the same on all tensor ranks. An op has the same operand on every
 * rank, so it cannot select a part by rank; an all-to-all delivers the part instead. */
struct view tensor_deliver_own_part(struct emit *e, struct view x, const char *stem);
/* Sums all tensor ranks' x[rows, cols] and writes this rank's rows of the sum to y. If every rank has all tokens, it
 * writes the whole sum; then x and y are the same view. */
void tensor_reduce_scatter(struct emit *e, struct view x, struct view y,
                           enum tensor_row_order order);
/* Does what tensor_reduce_scatter() does, for a tensor that has `cols` columns and not the model's hidden size. */
void tensor_reduce_scatter_rows_of_width(struct emit *e, struct view x, struct view y, int64_t cols,
                                         enum tensor_row_order order);
/* Does what emit_matmul() does for a product that reads the result of a gather, or whose result is reduce-scattered.
 * That collective moves `rows` rows in this order; the product has m of them. With the plan async there is one op for
 * each piece of rows that the collective moves, if m is a whole number of pieces, so that a piece is multiplied while
 * others are sent; else there is one op. */
void tensor_matmul(struct emit *e, enum tensor_row_order order, int64_t rows, enum matmul_form form,
                   struct view a, struct view b, struct view bias, struct view y, int64_t m,
                   int64_t n, int64_t k);
/* Returns the view to which a product writes if its result will be reduce-scattered to y: a new buffer with the rows of
 * all tensor ranks; or y itself if there is one tensor rank, or if every rank has all tokens. */
struct view tensor_product_output(struct emit *e, struct view y, int64_t cols, const char *stem);

#endif
