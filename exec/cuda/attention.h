/* exec/cuda/attention.h: attention and its gradient on a device, planned before the step.
 *
 * An op is computed by fused kernels of cuDNN if these support its operands and its mask, and exec_options.attention
 * allows it. Operands must have 16 bits, and heads a multiple of 8 columns. The mask is causal from the first key on,
 * causal up to the last key, or none; the causal ones perhaps with a window (fused_graph.c). Packed documents are
 * computed so only if the caller asks for cuDNN. Every other op is computed by tiles: products by cuBLASLt with kernels
 * of our own around them (attention_tiles.c). Tiles take every shape, and operands of any one type that cuBLASLt
 * multiplies. The fused kernels are checked against them. */
#ifndef EXEC_CUDA_ATTENTION_H
#define EXEC_CUDA_ATTENTION_H

#include "exec/backend.h"
#include "exec/cuda/compute.h"
#include "exec/cuda/matmul.h"

struct attention; /* the sizes and plans of one op's attention */

/* The plans and the state of all attention ops of a run. */
struct attentions;

/* Makes the state of all attention of a run. wanted: the caller's exec_options.attention. If it asks for cuDNN, and
 * cuDNN cannot be opened, returns NULL after a message. If it leaves the choice open, tiles are used then, and
 * attentions_why_not_fused() says why. */
struct attentions *attentions_new(struct products *products, enum exec_attention wanted,
                                  struct diag *diag);
void attentions_free(struct attentions *attentions);

/* The packed documents of an op, on all ranks for which it is planned, as cuDNN takes them: one after the other in q
 * and in k and v, and all with one mask. */
struct attention_documents {
    const char *why_unsupported; /* why cuDNN cannot take the documents; NULL: it can */
    int64_t count;               /* number of documents, which is the same on each rank */
    int64_t most_q, most_kv;     /* the most rows of q, and of k and v, in one document */
    bool cover_q, cover_kv;      /* every row of q, or of k and v, is in a document */
    bool has_whole_kv_tiles;     /* the keys of each are a multiple of VERSION_TILE (versions.h) */
    uint8_t mask;                /* enum fused_mask */
};

/* Plans the attention of a call; of the call's addresses only the alignment matters. documents: those of an attention
 * over documents (work_pairs_depend_on_rank()), else NULL. Returns NULL, after a message, if no implementation that
 * exec_options.attention allows can compute it. */
struct attention *attention_new(struct attentions *attentions, const struct call *call,
                                const struct attention_documents *documents, struct diag *diag);
/* Builds all plans of cuDNN, with at most as many threads as there are processors. If cuDNN refuses one, tiles are
 * planned for its ops or, if the caller asks for cuDNN, the call fails. */
enum status attentions_build(struct attentions *attentions, struct diag *diag);
/* Call after attentions_build(). Returns why some attention is computed by tiles; NULL: none is, or the caller asked
 * for tiles. */
const char *attentions_why_not_fused(const struct attentions *attentions);
/* Returns cuDNN's version; 0: it is not open. */
int attentions_cudnn_version(const struct attentions *attentions);
/* Writes to text what computes attention: "cudnn", "tiles", "cudnn and tiles" or, without attention, "none". If
 * attentions_why_not_fused() has a reason, it follows in parentheses. */
void attentions_describe(const struct attentions *attentions, char *text, size_t size);

size_t attention_scratch_bytes(const struct attention *attention);

/* Makes the cuDNN handle of a stream; sets *handle to NULL if no attention of the run is computed by cuDNN. */
enum status attentions_open_stream(const struct attentions *attentions, cudaStream_t stream,
                                   void **handle, struct diag *diag);
void attentions_close_stream(const struct attentions *attentions, void *handle);

/* Enqueues the attention of a call. handle: the one that attentions_open_stream() made for the stream. Returns NULL, or
 * the error message of the library that refused. */
const char *attention_run(const struct attention *attention, const struct call *call,
                          const struct cuda_launch_context *place, void *handle);

/* The part of a masked tile that a fused kernel computes: the queries from first_query on (earlier ones see no key),
 * and the keys before key_count (no query sees later ones). */
struct attention_fused_part {
    int64_t first_query, query_count, key_count; /* query_count 0: no query sees any key */
    int64_t window; /* the most keys that a query sees; 0: all that the mask allows */
    uint8_t mask;   /* enum fused_mask */
};
/* Finds the part of a tile that a fused kernel computes. Returns false if no fused mask equals the tile's, or if cuDNN
 * does not take its window: the part then has fewer than two queries, or more queries than keys. */
bool attention_find_fused_part(const struct work *work, struct attention_fused_part *part);

/* ---- attention by products and kernels of our own: attention_tiles.c ---- */

struct attention_tiles;
struct attention_tiles *attention_tiles_new(struct products *products, const struct call *call,
                                            struct diag *diag);
void attention_tiles_free(struct attention_tiles *tiles);
size_t attention_tiles_scratch_bytes(const struct attention_tiles *tiles);
const char *attention_tiles_run(const struct attention_tiles *tiles, const struct call *call,
                                const struct cuda_launch_context *place);

#endif
