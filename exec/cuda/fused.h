/* exec/cuda/fused.h: attention in one kernel, by cuDNN, through its C backend interface.
 *
 * The operation graph is the composite one, which cuDNN takes since 9.10.2 (versions.h): products, a softmax of
 * pointwise operations and reductions, masks of generated indices; cuDNN recognises it and generates a fused kernel.
 * A plan is valid for given sizes and a type; building one takes about a second of a core, so distinct plans are
 * built by several threads. A call computes all heads of one sequence, or of a piece of it; q, k, v and o are stored
 * as (rows, heads, dim), as in the schedule's tensors. */
#ifndef EXEC_CUDA_FUSED_H
#define EXEC_CUDA_FUSED_H

/* The masks of fused attention; without cuDNN they still name the parts of a tile (attention.h). */
enum fused_mask {
    FUSED_ALL,
    FUSED_FROM_START, /* query i sees keys up to i */
    FUSED_TO_END      /* the last query sees all keys: query i up to i + kv - q; q <= kv */
};

#ifdef HAVE_CUDNN
#include "exec/cuda/library.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fused_shape {
    int64_t q, kv, heads, kv_heads, dim, vdim; /* dim: of heads of q and k; vdim: of v and o */
    /* a query sees only the last `window` of the keys that the mask shows; 0: all of them. It needs a mask other than
     * FUSED_ALL, and q <= kv */
    int64_t window;
    uint8_t mask; /* enum fused_mask */
    uint8_t is_backward, is_f16, unused[5];
};

struct fused;

/* Returns a plan that is not built yet. */
struct fused *fused_new(const struct cudnn *dnn, const struct fused_shape *shape);
void fused_free(struct fused *fused);

/* Builds the plan, for the device of `handle`, or for `device`, a description of a device, if it is not NULL (handle is
 * then NULL): this shows without a GPU whether cuDNN accepts the graph. Returns false if cuDNN refuses; words[size]
 * then has the call and its error message. */
bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                 char *words, size_t size);

/* Returns the bytes of scratch of a built plan, without the statistics (heads, q) in fp32. */
size_t fused_scratch_bytes(const struct fused *fused);

/* Enqueue a forward or backward on the handle's stream. Each returns NULL, or the library's error message. stats: the
 * log-sum-exp of each row's scores, fp32 (heads, q). */
const char *fused_forward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                          const void *k, const void *v, void *o, float *stats, void *scratch);
const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *scratch);

#endif
#endif
