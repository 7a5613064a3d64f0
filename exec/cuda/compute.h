/* exec/cuda/compute.h: launches the kernels of exec/cuda/kernels.h that compute an op.
 *
 * The table has a row for each kind of work that needs no library of NVIDIA's: products and attention are in matmul.h
 * and attention.h, communication in loopback.c and nccl_op.c, copies in prepare.c. Needs no CUDA header. */
#ifndef EXEC_CUDA_COMPUTE_H
#define EXEC_CUDA_COMPUTE_H

#include "exec/backend.h"
#include "exec/cuda/kernels.h"

struct cuda_place {
    cudaStream_t stream;
    /* the bytes that the row's `scratch` returns, aligned to CUDA_SCRATCH_ALIGNMENT */
    void *scratch;
    int32_t *fault;     /* the rank's: a kernel that meets wrong data writes the op's mark here */
    int32_t fault_mark; /* op + 1 */
    const int32_t *visible_keys; /* of an op with mask DOCUMENTS: its cuda_mask's; else NULL */
    /* of work that moves rows which ranks need: its lists, by enum moved_list; NULL: other work, or no schedule */
    const struct cuda_row_pairs *pairs;
    /* with routing that is not even: the first copy of each expert among those that a rank deals, [experts + 1] */
    const int64_t *dealt;
};

/* Enqueues a call; returns a cudaError_t. */
typedef int cuda_compute(const struct call *call, const struct cuda_place *place);

struct cuda_compute_row {
    cuda_compute *run;
    size_t (*scratch)(const struct work *work); /* NULL: none */
};

extern const struct cuda_compute_row cuda_compute_rows[WORK_KIND_COUNT];

/* Makes `count` elements of y what they are before a sum is added to them: those of `before`, or zeros if
 * before.data is NULL. They may be the same elements. Returns a cudaError_t. */
int cuda_begin_sum(struct cuda_array y, struct cuda_array before, int64_t count,
                   cudaStream_t stream);

/* Explains the fault that kernels of this kind report, for a message. */
const char *cuda_fault_text(enum work_kind kind);

static inline struct cuda_array cuda_array_of(struct operand operand)
{
    return (struct cuda_array){operand.data, operand.dtype};
}

#endif
