/* schedule/emit/tensor_parallel.h: Megatron tensor and sequence parallelism (Shoeybi et al., arXiv
 * 1909.08053; Korthikanti et al., arXiv 2205.05198).
 *
 * tp ranks cut heads, the feed-forward width and the vocabulary, and outside the matmul pairs the
 * tokens of each sequence. A gather makes the tokens whole before wqkv and w13, a scatter sums and
 * cuts them after wo and w2; backward the other way round, and the saved local input of wqkv and w13
 * is gathered once more for their weight gradients. What lies between, attention included, sees a
 * transformer of 1/tp the width on all tokens of the tensor ranks.
 *
 * Rows: e->unit.rows of whole tokens inside the pairs, e->unit.own_rows = e->unit.rows / tp outside. With tp = 1
 * nothing is sent and views come back as they are. */
#ifndef SCHEDULE_EMIT_TENSOR_PARALLEL_H
#define SCHEDULE_EMIT_TENSOR_PARALLEL_H

#include "schedule/emit/emit.h"

/* The streams and buffers of the tensor group, after emit_mesh(); an attention operator alone, without
 * `layers`, gathers no rows. */
void tensor_setup(struct emit *e, bool layers);

/* Whose tokens a gather makes whole: for later ops the order of rows matters in attention, where each
 * sequence is gathered by itself, and not in products. */
enum tensor_rows { TENSOR_SEQUENCES, TENSOR_ANY };

/* x[tp * rows, cols] of all tensor ranks' x[rows, cols]; held: into the buffer that the
 * implementation keeps for that throughout. */
struct view tensor_gather(struct emit *e, struct view x, int64_t cols, enum tensor_rows order,
                          const char *stem, bool held);
/* The same into y, which has room for all. */
void tensor_gather_to(struct emit *e, struct view x, struct view y);
/* The equal part of x, the same on all tensor ranks, that is this rank's. Operands are named alike on
 * all of them, so it comes by an all-to-all. */
struct view tensor_own(struct emit *e, struct view x, const char *stem);
/* The sum of all tensor ranks' x[rows, cols], cut to this rank's rows, into y. */
void tensor_scatter(struct emit *e, struct view x, struct view y, enum tensor_rows order);
/* Where a product whose result is scattered writes: y itself, or a new buffer tp times as long. */
struct view tensor_product(struct emit *e, struct view y, int64_t cols, const char *stem);

#endif
