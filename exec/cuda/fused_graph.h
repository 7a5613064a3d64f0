/* exec/cuda/fused_graph.h: the graph of operations of a fused attention, which only fused_graph.c and fused_plan.c
 * know.
 *
 * All descriptors belong to the struct and are freed with it. After the first refusal that fused_record_refusal()
 * records, the functions below do not call cuDNN any more, and refusal_text holds its error message. */
#ifndef EXEC_CUDA_FUSED_GRAPH_H
#define EXEC_CUDA_FUSED_GRAPH_H

#include "exec/cuda/fused.h"

#ifdef HAVE_CUDNN
/* The most descriptors, operations and numbers given by value that a graph has. */
enum { FUSED_DESCRIPTORS = 224, FUSED_OPERATIONS = 40, FUSED_SCALARS = 8 };

/* Ids of the tensors that have memory, and of numbers given by value, by which a call binds addresses to them. */
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
    UID_DELTA,  /* the dot product of dO and O in each row and head, which cuDNN wants in memory */
    UID_DQ_SUM, /* fp32, of dQ's size: the sum of dQ over blocks of keys */
    /* numbers given by value */
    UID_SCALE,                 /* the factor of scores before the softmax */
    UID_SCORE_OF_MASKED_PAIRS, /* minus infinity */
    UID_ONE,                   /* 1: UID_DELTA is the dot product times this */
    UID_QUERY_COUNT,           /* without documents: the queries */
    UID_OF_KEY_COUNT,          /* without documents: the keys */
    UID_WINDOW,                /* the most keys that a query sees */
    UID_SCORE_BEYOND_DOCUMENT, /* minus infinity */
    /* tensors with memory */
    UID_Q_ROWS, /* for documents: the rows of each, and at which element of each tensor it begins */
    UID_KV_ROWS,
    UID_Q_OFFSET,
    UID_K_OFFSET,
    UID_V_OFFSET,
    UID_O_OFFSET,
    UID_STATS_OFFSET,
    UID_DK_OF_QUERY_HEADS, /* for documents with grouped heads: dK and dV of each query head, in memory */
    UID_DV_OF_QUERY_HEADS,
    UID_FIRST_VIRTUAL = 100 /* ids from here on belong to values within the kernel */
};

typedef cudnnBackendDescriptor_t descriptor;

/* A number given by value, with its id in the graph. */
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
    /* the scratch memory: the library's workspace, then the arrays that begin at the offsets */
    size_t workspace_bytes, delta_offset, dq_sum_offset, dk_each_offset, dv_each_offset,
        scratch_bytes;
    /* with documents: the tensors of how many rows each has, and of where each begins; else NULL */
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

/* Adds the operations of g->shape, those of a forward or of a backward. */
void fused_add_operations(struct fused *g);

#endif
#endif
