/* schedule/attention/elementwise.h: new tensors, and the ops on the compute stream that fill, cast or rearrange a
 * tensor. The whole of schedule/attention/, schedule/step/ and schedule/weights/ use them. */
#ifndef SCHEDULE_ATTENTION_ELEMENTWISE_H
#define SCHEDULE_ATTENTION_ELEMENTWISE_H

#include "schedule/emit/emit.h"

/* Returns the whole of a new buffer; d1 = 0: it has one dimension. */
struct view emit_tensor(struct emit *e, const char *stem, enum category category, enum dtype dtype,
                        int64_t d0, int64_t d1);
/* As emit_tensor(), in the dtype of computation. */
struct view emit_computed(struct emit *e, const char *stem, enum category category, int64_t d0,
                          int64_t d1);
/* Returns a new buffer of `count` elements that exists during the whole step and is bound to data of it. */
buffer_id emit_bound(struct emit *e, const char *stem, struct binding binding,
                     enum category category, enum dtype dtype, int64_t count);
enum dtype dtype_of(const struct emit *e, struct view x);
int64_t bytes_of(const struct emit *e, struct view x);

/* Zeroes x and returns it. */
struct view emit_zeros(struct emit *e, struct view x);
/* Casts x into y, element by element, and returns y. */
struct view emit_cast(struct emit *e, struct view x, struct view y);
/* Returns x in another dtype, in a new buffer of one dimension; x itself when it has that dtype. */
struct view emit_as(struct emit *e, struct view x, enum dtype dtype, const char *stem,
                    enum category category);
/* Emits a PACK, which writes x[rows, parts width] to y as [parts, rows, width], or an UNPACK, its inverse, and returns
 * y. With parts = 1 it is a copy. */
struct view emit_pack(struct emit *e, enum work_kind kind, struct view x, struct view y,
                      int64_t rows, int64_t parts, int64_t width);
/* Sends x to the rank of the same place `by` stages after this one (before it: negative), or receives x from it. */
op_id emit_message(struct emit *e, enum work_kind kind, uint8_t stream, int64_t by, struct view x,
                   int64_t channel);
/* The host waits for everything issued before on a stream. */
void emit_wait(struct emit *e, uint8_t stream);

#endif
