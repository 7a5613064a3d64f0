/* exec/cuda/compute.h: launches the kernels of exec/cuda/kernels.h that compute an op.
 *
 * The table has a row for each kind of work that kernels of our own compute alone. Products and attention are in
 * matmul.h and attention.h, communication is in loopback.c and nccl_op.c, and copies and fills are in enqueue.c. Needs
 * no CUDA header. */
#ifndef EXEC_CUDA_COMPUTE_H
#define EXEC_CUDA_COMPUTE_H

#include "exec/backend.h"
#include "exec/cuda/kernels.h"

struct cuda_launch_context {
    cudaStream_t stream;
    /* scratch memory of the op: as many bytes as the function `scratch` of its row returns (for attention,
     * attention_scratch_bytes()), aligned to CUDA_SCRATCH_ALIGNMENT */
    void *scratch;
    /* memory of the host, to which a kernel that finds wrong data writes fault_op_plus_1 */
    int32_t *fault_op_plus_1_address;
    int32_t fault_op_plus_1; /* op + 1 */
    /* for attention over documents (work_pairs_depend_on_rank()): the first and the end of the keys that each row sees
     * (struct cuda_mask); else NULL */
    const int32_t *visible_keys;
    /* for attention over documents that cuDNN computes: where the documents begin in q, k and v; else NULL */
    const struct fused_documents *documents;
    /* [MOVED_LIST_COUNT] for work that moves rows between context ranks: its lists of rows; else NULL */
    const struct cuda_moved_row_pairs *moved_row_pair_lists;
    /* for work on rows of experts, if routing is not even: [experts + 1], where the copies for each expert begin among
     * those that a rank sends; else NULL */
    const int64_t *expert_begins;
};

/* Enqueues the work of a call on place->stream. Returns a cudaError_t. */
typedef int cuda_compute(const struct call *call, const struct cuda_launch_context *place);

struct cuda_kernel_table_row {
    cuda_compute *run;
    size_t (*scratch)(const struct work *work); /* bytes of scratch memory; NULL: none */
};

extern const struct cuda_kernel_table_row cuda_compute_rows[WORK_KIND_COUNT];

/* Enqueues a fill of `count` elements of y with the values to which a sum is then added: those of `before`, or zeros if
 * before.data is NULL. The two arrays may be the same. Returns a cudaError_t. */
int cuda_set_to_before_or_zero(struct cuda_array y, struct cuda_array before, int64_t count,
                               cudaStream_t stream);

/* Returns the words of a message for the fault that kernels of this kind report. */
const char *cuda_fault_text(enum work_kind kind);

static inline struct cuda_array cuda_array_of(struct operand operand)
{
    return (struct cuda_array){operand.data, operand.dtype};
}

#endif
