/* exec/cuda/attention.h: attention and its gradient on a device, planned before the step.
 *
 * If cuDNN has fused kernels for an op (16-bit types, and a mask whose tile is a square, a rectangle or aligned at its
 * end, the first two perhaps with a window: fused_plan.c; or whole packed documents, if the caller asks for cuDNN),
 * those run; otherwise products by cuBLASLt with kernels of our own around them (attention_tiles.c). The tiles take
 * every shape and type, and the fused kernels are checked against them. */
#ifndef EXEC_CUDA_ATTENTION_H
#define EXEC_CUDA_ATTENTION_H

#include "exec/backend.h"
#include "exec/cuda/compute.h"
#include "exec/cuda/matmul.h"

struct attention; /* the sizes and plans of one op's attention */

/* The plans and the state of all attention ops of a run. */
struct attentions;

/* Makes the state of all attention of a run. wanted: the caller's exec_options.attention. If it asks for cuDNN and
 * cuDNN cannot be opened, the call fails; if it leaves the choice open, attentions_why_tiles() says why cuDNN is not
 * used. */
struct attentions *attentions_new(struct products *products, enum exec_attention wanted,
                                  struct diag *diag);
void attentions_free(struct attentions *attentions);

/* Packed documents of an op, on all ranks for which it is planned, as cuDNN takes them: rectangles that lie one after
 * the other in q as in k and v, all with one mask. */
struct attention_documents {
    const char *why_not;     /* why cuDNN cannot take the documents; NULL: it can */
    int64_t count;           /* number of documents, which is the same on each rank */
    int64_t most_q, most_kv; /* the most rows of q, and of k and v, in one document */
    bool cover_q, cover_kv;  /* every row of q, or of k and v, is in a document */
    bool whole_kv_tiles;     /* the keys of each are a multiple of VERSION_TILE (versions.h) */
    uint8_t mask;            /* enum fused_mask */
};

/* Plans the attention of a call; of the call's addresses only the alignment matters. documents: those of an attention
 * over documents (work_has_documents()), else NULL. Returns NULL, with a message, if no implementation that the
 * caller's option allows can do it. */
struct attention *attention_new(struct attentions *attentions, const struct call *call,
                                const struct attention_documents *documents, struct diag *diag);
/* Builds the plans that are not built yet, with as many threads as there are processors. */
enum status attentions_build(struct attentions *attentions, struct diag *diag);
/* Call after attentions_build(). Returns the reason if some attention is computed by tiles although the caller did
 * not ask for tiles; else NULL. */
const char *attentions_why_tiles(const struct attentions *attentions);
/* Returns cuDNN's version; 0: it is not open. */
int attentions_cudnn_version(const struct attentions *attentions);
/* Writes "cudnn", "tiles", "cudnn and tiles" or, without attention, "none" into text. If tiles are used although the
 * caller did not ask for them, the reason follows. */
void attentions_describe(const struct attentions *attentions, char *text, size_t size);

size_t attention_scratch_bytes(const struct attention *attention);

/* Makes the handle that a stream with attention needs; sets *handle to NULL if it needs none. */
enum status attentions_open_stream(const struct attentions *attentions, cudaStream_t stream,
                                   void **handle, struct diag *diag);
void attentions_close_stream(const struct attentions *attentions, void *handle);

/* Enqueues the attention of a call; returns NULL, or the error message of the library that refused. handle: the
 * stream's, of attentions_open_stream(). */
const char *attention_run(const struct attention *attention, const struct call *call,
                          const struct cuda_launch_context *place, void *handle);

/* The part of a masked tile that a fused kernel can compute: queries first .. first + q (earlier queries see no key)
 * and keys 0 .. kv (no query sees later keys). */
struct attention_part {
    int64_t first_query, query_count, key_count; /* query_count 0: no query sees any key */
    int64_t window; /* the most keys that a query sees; 0: all that the mask allows */
    uint8_t mask;   /* enum fused_mask */
};
/* Finds the part that a fused kernel can compute. False: no fused mask equals this op's. */
bool attention_find_fused_part(const struct work *work, struct attention_part *part);

/* ---- attention_tiles.c ---- */

struct attention_tiles;
struct attention_tiles *attention_tiles_new(struct products *products, const struct call *call,
                                            struct diag *diag);
void attention_tiles_free(struct attention_tiles *tiles);
size_t attention_tiles_scratch_bytes(const struct attention_tiles *tiles);
const char *attention_tiles_run(const struct attention_tiles *tiles, const struct call *call,
                                const struct cuda_launch_context *place);

#endif
