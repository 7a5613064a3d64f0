/* exec/cuda/compute.h: launches the kernels of exec/cuda/kernels.h that compute an op.
 *
 * The table has a row for each kind of work that needs no library of NVIDIA's: products and attention are in matmul.h
 * and attention.h, communication in loopback.c and nccl_op.c, copies in enqueue.c. Needs no CUDA header. */
#ifndef EXEC_CUDA_COMPUTE_H
#define EXEC_CUDA_COMPUTE_H

#include "exec/backend.h"
#include "exec/cuda/kernels.h"

struct cuda_launch_context {
    cudaStream_t stream;
    /* the scratch memory of the op: as many bytes as the row's function `scratch` returns, aligned to
     * CUDA_SCRATCH_ALIGNMENT */
    void *scratch;
    /* host memory of the rank, to which a kernel that finds wrong data writes fault_mark */
    int32_t *fault_mark_address;
    int32_t fault_mark; /* op + 1 */
    /* for attention over documents (work_has_documents()): cuda_mask.visible; else NULL */
    const int32_t *visible_keys;
    /* for such an op: where its documents lie in q, k and v; else NULL */
    const struct fused_documents *documents;
    /* for work that moves rows which ranks need of each other: its lists of rows, by enum moved_list; else NULL */
    const struct cuda_row_pairs *row_pairs;
    /* if routing is not even: [experts + 1] the first copy of each expert among the copies that a rank sends */
    const int64_t *expert_begins;
};

/* Enqueues a call; returns a cudaError_t. */
typedef int cuda_compute(const struct call *call, const struct cuda_launch_context *place);

struct cuda_compute_row {
    cuda_compute *run;
    size_t (*scratch)(const struct work *work); /* NULL: none */
};

extern const struct cuda_compute_row cuda_compute_rows[WORK_KIND_COUNT];

/* Fills `count` elements of y with the values to which a sum is then added: those of `before`, or zeros if before.data
 * is NULL. The two arrays may be the same. Returns a cudaError_t. */
int cuda_begin_sum(struct cuda_array y, struct cuda_array before, int64_t count,
                   cudaStream_t stream);

/* Explains the fault that kernels of this kind report, for a message. */
const char *cuda_fault_text(enum work_kind kind);

static inline struct cuda_array cuda_array_of(struct operand operand)
{
    return (struct cuda_array){operand.data, operand.dtype};
}

#endif
