/* exec/cuda/fused_graph.h: the graph of operations of a fused attention, used only by fused_plan.c.
 *
 * All descriptors belong to the struct and are freed with it. After the first refusal cuDNN is not called any more,
 * and refusal_text holds its error message. */
#ifndef EXEC_CUDA_FUSED_GRAPH_H
#define EXEC_CUDA_FUSED_GRAPH_H

#include "exec/cuda/fused.h"

#ifdef HAVE_CUDNN
enum { FUSED_DESCRIPTORS = 224, FUSED_OPERATIONS = 40, FUSED_SCALARS = 8 };

/* Names of the tensors that have memory, and of numbers given by value. */
enum uid {
    UID_Q = 1,
    UID_K,
    UID_V,
    UID_O,
    UID_STATS,
    UID_D_O,
    UID_DQ,
    UID_DK,
    UID_DV,
    UID_DELTA,  /* rowsum(dO o O), (heads, q): cuDNN wants it in memory */
    UID_DQ_SUM, /* fp32 (heads, q, dim): blocks of keys add to it */
    UID_SCALE,
    UID_HIDDEN,
    UID_ONE,
    UID_ROWS,
    UID_COLS,
    UID_WINDOW,
    UID_BEYOND,
    UID_Q_ROWS, /* of documents: their rows, and where they begin in each tensor */
    UID_KV_ROWS,
    UID_Q_OFFSET,
    UID_K_OFFSET,
    UID_V_OFFSET,
    UID_O_OFFSET,
    UID_STATS_OFFSET,
    UID_DK_EACH, /* of documents with grouped heads: dK and dV of each query head, in memory */
    UID_DV_EACH,
    UID_INNER = 100 /* ids from here on are of values within the kernel */
};

typedef cudnnBackendDescriptor_t descriptor;

struct scalar {
    int64_t uid;
    union {
        float f;
        int32_t i;
    };
};

struct fused {
    const struct cudnn *dnn;
    struct fused_shape shape;
    descriptor descriptors[FUSED_DESCRIPTORS], operation[FUSED_OPERATIONS], plan;
    int64_t descriptor_count, operation_count, inner_tensor_count;
    struct scalar scalar[FUSED_SCALARS];
    int scalar_count;
    size_t workspace_bytes, delta_offset, dq_sum_offset, dk_each_offset, dv_each_offset,
        scratch_bytes;
    /* of documents: the tensors of their rows, and of where they begin; else NULL */
    descriptor q_rows, kv_rows, q_offset, k_offset, v_offset, o_offset, stats_offset;
    bool has_failed;
    char refusal_text[400];
};

void fused_record_refusal(struct fused *g, const char *call, cudnnStatus_t status);
descriptor fused_make_descriptor(struct fused *g, cudnnBackendDescriptorType_t type);
void fused_set_attribute(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *value);
void fused_set_descriptor(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                          descriptor value);
void fused_finalize(struct fused *g, descriptor d);

/* Adds the operations of the shape, forward or backward. */
void fused_add_operations(struct fused *g);

#endif
#endif
