/* exec/cuda/fused.h: attention in one kernel, by cuDNN, through its C backend interface.
 *
 * The operation graph is the composite one, which cuDNN takes since 9.10.2 (versions.h): products, a softmax of
 * pointwise operations and reductions, masks of generated indices; cuDNN recognises it and generates a fused kernel.
 * A plan is valid for given sizes and a type; building one takes about a second of a core, so distinct plans are
 * built by several threads. A call computes all heads of one sequence, or of a piece of it; q, k, v and o are stored
 * as (rows, heads, dim), as in the schedule's tensors. */
#ifndef EXEC_CUDA_FUSED_H
#define EXEC_CUDA_FUSED_H

#include <stdint.h>

/* The masks of fused attention; without cuDNN they still name the parts of a tile (attention.h). */
enum fused_mask {
    FUSED_ALL,
    FUSED_FROM_START, /* query i sees keys up to i */
    FUSED_TO_END      /* the last query sees all keys: query i up to i + kv - q; q <= kv */
};

/* The sizes and offsets of a call's documents, in device memory (cuDNN's ragged layout). Document d has q_rows[d] rows
 * of q, kv_rows[d] of k and v, and begins in each tensor at element offset[d]; offset[documents] is where the last one
 * ends. */
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
    /* a query sees only the last `window` of the keys that the mask shows; 0: all of them. It needs a mask other than
     * FUSED_ALL, and q <= kv */
    int64_t window;
    uint8_t mask; /* enum fused_mask */
    uint8_t is_backward, is_f16, unused[5];
    /* Packed documents: their number; 0: one rectangle. Each is a rectangle of its own, masked as `mask` says; q and kv
     * are then the most rows of one, and all_q and all_kv the rows of the tensors. */
    int64_t documents, all_q, all_kv;
};

struct fused;

/* Returns a plan that is not built yet. */
struct fused *fused_new(const struct cudnn *dnn, const struct fused_shape *shape);
void fused_free(struct fused *fused);

/* Builds the plan for the device of `handle`. With handle NULL, `device` is cuDNN's description of the device instead,
 * so that it shows without a GPU whether cuDNN accepts the graph. Returns false if cuDNN refuses; words[size] then has
 * the call and its error message. */
bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                 char *words, size_t size);

/* Returns the bytes of scratch of a built plan, without the statistics (heads, q) in fp32. */
size_t fused_scratch_bytes(const struct fused *fused);

/* Enqueue a forward or backward on the handle's stream. Each returns NULL, or the library's error message. stats: the
 * log-sum-exp of each row's scores, fp32 (heads, q) or, with documents, (all_q, heads). documents: NULL if the shape
 * has none. Rows that are in no document are neither read nor written. */
const char *fused_forward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                          const void *k, const void *v, void *o, float *stats, void *scratch,
                          const struct fused_documents *documents);
const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *scratch,
                           const struct fused_documents *documents);

#endif
#endif
