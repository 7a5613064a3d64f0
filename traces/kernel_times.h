/* traces/kernel_times.h: what the kernels of each operator take in a recording of the PyTorch profiler on a GPU.
 *
 * An operator of a recorded step ("mm", "add.Tensor") corresponds to the profiler's operator of that name ("aten::mm",
 * "aten::add"): the outermost one around the launch of a kernel. Its time is that of the kernels, copies and memsets
 * that it launched. Calls with the same operator, shapes of inputs and dtype make one row. Messages are left out. A
 * kernel that PyTorch's Inductor wrote is an operator of its own, whose name lacks the number at its end
 * ("triton_poi_fused_add"); if a CUDA graph launched it, its shapes are not known. */
#ifndef TRACES_KERNEL_TIMES_H
#define TRACES_KERNEL_TIMES_H

#include "base/arena.h"
#include "base/diag.h"
#include "traces/kineto_events.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The key of an operator: calls with equal keys are summed. */
struct operator_key {
    /* as recorded steps name it, without an overload if the profiler says none: "mm", "fsdp.copy" */
    const char *op;
    const char *inputs; /* the shapes of inputs that have one: "[1024,640][640,256]" */
    /* enum step_dtype of the first of them; STEP_DTYPE_OTHER: another type, or unknown */
    uint8_t dtype;
};

struct operator_kernel_time {
    struct operator_key key;
    /* the profiler left out the shapes of a list of tensors, or all of them */
    bool has_missing_shapes;
    size_t call_count; /* in all steps */
    double median_s;   /* seconds of one call: the median over all calls */
    double total_s;    /* of all calls */
};

/* All-zero is empty. Rows are in the order of their keys. */
struct kernel_times {
    struct arena arena;
    struct operator_kernel_time *rows;
    size_t row_count;
    size_t step_count; /* the profiler's steps; at least 1 */
    struct kineto_device device;
    /* seconds of kernels whose operator is unknown, in all steps */
    double seconds_of_unassigned_kernels;
};

/* Reads data[0..size). wanted[0..count): the names of operators in recorded steps. The time of a kernel counts for the
 * outermost such operator around its launch; if there is none, for the innermost operator. It is an error if no kernel
 * of a GPU takes time in a step, if shapes of inputs were not recorded, or if the kernels of a call take more than
 * 10^6 s. Release *times in either case. */
enum status kernel_times_read(struct kernel_times *times, const char *name, const char *data,
                              size_t size, const char *const *wanted, size_t count,
                              struct diag *diag);
void kernel_times_release(struct kernel_times *times);

/* True if a recorded step's name of an operator, "add.Tensor" or "add", is that of the profiler's operator `op`,
 * "add". */
bool kernel_times_is_recorded_name_of(const char *recorded, const char *op);
/* Returns the row for an operator of a recorded step, the first of these that exists; else NULL:
 *   - the row with its shapes and dtype;
 *   - the only row with its shapes, if the dtype of the row or of the operator is unknown;
 *   - the only row of the operator with has_missing_shapes, if its dtype is the same or one of the two is unknown. */
const struct operator_kernel_time *kernel_times_find(const struct kernel_times *times,
                                                     const struct operator_key *recorded);

#endif
