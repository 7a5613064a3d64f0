/* traces/kernel_times.h: what the kernels of each operator take in a recording of the PyTorch profiler on a GPU.
 *
 * An operator that a recorded step names ("mm", "add.Tensor") is the profiler's outermost operator of that name
 * ("aten::mm", "aten::add") around the launch of a kernel; its time is that of the kernels, copies and memsets that it
 * launched. Calls are the same if operator, shapes of inputs and dtype are. Messages are left out. A kernel that
 * PyTorch's Inductor wrote is an operator of its own, without the number that ends its name ("triton_poi_fused_add");
 * launched by a CUDA graph it has no shapes. */
#ifndef TRACES_KERNEL_TIMES_H
#define TRACES_KERNEL_TIMES_H

#include "base/arena.h"
#include "base/diag.h"
#include "traces/kineto_events.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The key of an operator: calls with equal keys are summed. */
struct kernel_key {
    /* as recorded steps name it, without an overload if the profiler says none: "mm", "fsdp.copy" */
    const char *op;
    const char *inputs; /* the shapes of inputs that have one: "[1024,640][640,256]" */
    uint8_t dtype;      /* enum step_dtype of the first of them; STEP_OTHER: integers, or unknown */
};

struct kernel_time {
    struct kernel_key key;
    bool lacks_shapes; /* the profiler left out the shapes of a list of tensors, or all of them */
    size_t call_count; /* in all steps */
    double median_s;   /* seconds of one call: the median over all calls */
    double total_s;    /* of all calls */
};

/* All-zero is empty. Rows are in the order of their keys. */
struct kernel_times {
    struct arena arena;
    struct kernel_time *rows;
    size_t row_count;
    size_t step_count; /* the profiler's steps; at least 1 */
    struct kineto_device device;
    double unassigned_s; /* seconds of kernels whose operator is unknown, in all steps */
};

/* Reads data[0..size). wanted[0..count): the names of operators in recorded steps, by which kernels are summed; those
 * of other operators are summed by the innermost one. A recording without kernels of a GPU that take time in a step, or
 * without shapes of inputs, is an error, and so is a call whose kernels take more than 10^6 s. Release *times in either
 * case. */
enum status kernel_times_read(struct kernel_times *times, const char *name, const char *data,
                              size_t size, const char *const *wanted, size_t count,
                              struct diag *diag);
void kernel_times_release(struct kernel_times *times);

/* True if a recorded step's name of an operator, "add.Tensor" or "add", is that of the profiler's operator `op`,
 * "add". */
bool kernel_times_is_operator(const char *recorded, const char *op);
/* Returns the row of a recorded operator: that with its shapes and dtype; else the only one with its shapes, if the
 * dtype of either is unknown; else the only one of the operator in which the profiler left out the shapes of a list of
 * tensors, unless its dtype is another one. NULL: there is none. */
const struct kernel_time *kernel_times_find(const struct kernel_times *times,
                                            const struct kernel_key *recorded);

#endif
