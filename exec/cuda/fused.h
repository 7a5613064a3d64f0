/* exec/cuda/fused.h: attention in one kernel, by cuDNN, through its C backend interface.
 *
 * The operation graph is the one that cuDNN calls composite and takes since 9.10.2 (versions.h): products, a softmax of
 * pointwise operations and reductions, and masks of generated indices. cuDNN recognises it and generates a fused
 * kernel. A plan is valid for given sizes and a type. Building one takes about a second of a core, so distinct plans
 * are built by several threads. A call computes all heads of one sequence, of a piece of it, or of packed documents. q,
 * k, v and o are stored as (rows, heads, dim), as in the schedule's tensors. */
#ifndef EXEC_CUDA_FUSED_H
#define EXEC_CUDA_FUSED_H

#include <stdint.h>

/* The masks of fused attention. A build without cuDNN uses them, too: to name the visible part of a tile
 * (attention.h). */
enum fused_mask {
    FUSED_MASK_NONE,
    FUSED_MASK_CAUSAL_FROM_START, /* query i sees keys up to i */
    FUSED_MASK_CAUSAL_TO_END /* the last query sees all keys: query i up to i + kv - q; q <= kv */
};

/* The sizes and offsets of a call's documents, in device memory (cuDNN's ragged layout). Document d has q_rows[d] rows
 * of q, kv_rows[d] rows of k and v, and begins at element q_offset[d] of q, and likewise in the other tensors. Element
 * `documents` of an array of offsets is the end of the last document. */
struct fused_documents {
    const int32_t *q_rows, *kv_rows;                                         /* (documents) */
    const int64_t *q_offset, *k_offset, *v_offset, *o_offset, *stats_offset; /* (documents + 1) */
};

#ifdef HAVE_CUDNN
#include "exec/cuda/library.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

struct fused_shape {
    int64_t q, kv, heads, kv_heads, dim, vdim; /* dim: of heads of q and k; vdim: of v and o */
    /* a query sees only the last `window` of the keys that the mask shows; 0: all of them. A window needs a mask other
     * than FUSED_MASK_NONE, and q <= kv. */
    int64_t window;
    uint8_t mask; /* enum fused_mask */
    uint8_t is_backward, is_f16, unused[5];
    /* The number of packed documents, each of which is a rectangle of its own, masked as `mask` says; 0: there is one
     * rectangle, of q x kv. With documents q and kv are the most rows of a document, and all_q and all_kv the rows of
     * the tensors. */
    int64_t documents, all_q, all_kv;
};

struct fused;

/* Returns a plan of this shape, which is not built yet. */
struct fused *fused_new(const struct cudnn *dnn, const struct fused_shape *shape);
void fused_free(struct fused *fused);

/* Builds the plan for the device of `handle`. If handle is NULL, it builds for `device`, cuDNN's description of a
 * device: that shows without a GPU whether cuDNN accepts the graph. Returns false if cuDNN refuses; words[size] then
 * has the call and its error message. */
bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                 char *words, size_t size);

/* Returns the bytes of scratch memory that a built plan needs. They do not include `stats`. */
size_t fused_scratch_bytes(const struct fused *fused);

/* fused_forward() and fused_backward() enqueue attention on the handle's stream. Each returns NULL, or the library's
 * error message. stats: the log-sum-exp of each row's scores in fp32, (heads, q) or, with documents, (all_q, heads).
 * documents: NULL if the shape has none. Rows that are in no document are neither read nor written. */
const char *fused_forward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                          const void *k, const void *v, void *o, float *stats, void *scratch,
                          const struct fused_documents *documents);
const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *scratch,
                           const struct fused_documents *documents);

#endif
#endif
