/* exec/cuda/attention.h: attention and its gradient on a device, planned before the step.
 *
 * cuDNN's fused kernels where it has them (16-bit types, no window, and a mask whose tile is a
 * square, a rectangle or aligned at its end: attention_cudnn.c), otherwise products by cuBLASLt
 * around kernels of our own (attention_tiles.c), which takes every shape and type and is also what
 * the fused kernels are checked with. */
#ifndef EXEC_CUDA_ATTENTION_H
#define EXEC_CUDA_ATTENTION_H

#include "exec/backend.h"
#include "exec/cuda/compute.h"
#include "exec/cuda/matmul.h"

struct attention; /* of one op: sizes, plans */

/* All attention of a run. */
struct attentions;

/* wanted: the caller's option. Where it asks for cuDNN and that cannot be opened, the call fails; where it leaves the
 * choice open, attentions_why_tiles() says why cuDNN is not used. */
struct attentions *attentions_new(struct products *products, enum exec_attention wanted,
                                  struct diag *diag);
void attentions_free(struct attentions *attentions);

/* Plans a call that will be run; of its addresses only the alignment matters. Returns NULL, with a message, if no
 * implementation can do it. */
struct attention *attention_new(struct attentions *attentions, const struct call *call,
                                struct diag *diag);
/* Builds what is still to be built, by as many threads as there are processors. */
enum status attentions_build(struct attentions *attentions, struct diag *diag);
/* Call after attentions_build(). Returns why some attention is computed by tiles although they were not asked for; NULL:
 * none is. */
const char *attentions_why_tiles(const struct attentions *attentions);
/* cuDNN's version; 0: it is not open. */
int attentions_cudnn(const struct attentions *attentions);
/* "cudnn", "tiles", "cudnn and tiles"; and, if the caller did not ask for them, why tiles. */
void attentions_describe(const struct attentions *attentions, char *text, size_t size);

size_t attention_scratch(const struct attention *attention);

/* Makes what each stream with attention needs for itself; NULL: nothing. */
enum status attentions_open_stream(const struct attentions *attentions, cudaStream_t stream,
                                   void **handle, struct diag *diag);
void attentions_close_stream(const struct attentions *attentions, void *handle);

/* Enqueues; NULL, or the words of whoever refused. handle: the stream's. */
const char *attention_run(const struct attention *attention, const struct call *call,
                          const struct cuda_place *place, void *handle);

/* The part of a masked tile that a fused kernel can compute: queries first .. first + q (queries before see no key) and
 * keys 0 .. kv (no query sees later keys). */
struct attention_part {
    int64_t first, q, kv; /* q 0: no query sees any key */
    uint8_t mask;         /* enum fused_mask */
};
/* False: no fused mask is this one. */
bool attention_part_of(const struct work *work, struct attention_part *part);

/* ---- attention_tiles.c ---- */

struct attention_tiles;
struct attention_tiles *attention_tiles_new(struct products *products, const struct call *call,
                                            struct diag *diag);
void attention_tiles_free(struct attention_tiles *tiles);
size_t attention_tiles_scratch(const struct attention_tiles *tiles);
const char *attention_tiles_run(const struct attention_tiles *tiles, const struct call *call,
                                const struct cuda_place *place);

#endif
