/* exec/cuda/fused.h: attention in one kernel, by cuDNN, through its C backend interface.
 *
 * The operation graph is the composite one, which cuDNN takes since 9.10.2 (versions.h):
 * products, a softmax of pointwise operations and reductions, masks of generated indices; cuDNN
 * recognises it and generates a fused kernel. A plan belongs to sizes and type; building one takes
 * about a second of a core, so distinct plans are built by several threads. Works on one head of
 * sequences at a time laid out (rows, heads, dim), as the schedule's tensors are. */
#ifndef EXEC_CUDA_FUSED_H
#define EXEC_CUDA_FUSED_H

#ifdef HAVE_CUDNN
#include "exec/cuda/library.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fused_mask {
    FUSED_ALL,
    FUSED_FROM_START, /* query i sees keys up to i */
    FUSED_TO_END      /* the last query sees all keys: query i up to i + kv - q; q <= kv */
};

struct fused_shape {
    int64_t q, kv, heads, kv_heads, dim;
    uint8_t mask; /* enum fused_mask */
    uint8_t backward, f16, unused[5];
};

struct fused;

/* An empty plan. */
struct fused *fused_new(const struct cudnn *dnn, const struct fused_shape *shape);
void fused_free(struct fused *fused);

/* Builds it for the device of a handle, or, when device is not NULL, for that description of one
 * (handle is then NULL): that shows whether cuDNN takes the graph without having a device. False:
 * refused, and `words` says by which call with which words. */
bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                 char *words, size_t size);

/* Bytes of scratch of a plan that was built; statistics (heads, q) in fp32 aside. */
size_t fused_scratch(const struct fused *fused);

/* Enqueues on the handle's stream; NULL, or the library's words. stats: natural logarithms of
 * sums, fp32 (heads, q). */
const char *fused_forward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                          const void *k, const void *v, void *o, float *stats, void *scratch);
const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *scratch);

#endif
#endif
