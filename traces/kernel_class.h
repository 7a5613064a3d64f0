/* traces/kernel_class.h: classifies a kernel's work by its name.
 *
 * Names are those of PyTorch operators ("aten::mm"), of GPU kernels ("ampere_bf16_s16816gemm_...")
 * and of our kinds of work ("matmul"). The classes are coarse, so that rows of two programs can be
 * compared by class even if the programs split the same work differently. */
#ifndef TRACES_KERNEL_CLASS_H
#define TRACES_KERNEL_CLASS_H

#include <stdbool.h>

enum kernel_class {
    CLASS_NO_WORK, /* does nothing by itself: views, allocations, waits */
    CLASS_MATMUL,
    CLASS_ATTENTION,
    CLASS_NORM,
    CLASS_ELEMENTWISE, /* also reductions, changes of layout, embeddings and losses */
    CLASS_OPTIMIZER,
    CLASS_COPY, /* between device and host */
    CLASS_COMMUNICATION,
    CLASS_OTHER, /* the name does not tell the class */
    CLASS_COUNT
};

const char *kernel_class_name(enum kernel_class class);

/* Returns the class of one of our kinds of work, by its name; CLASS_OTHER for kinds without a class, and for names that
 * are no kind. */
enum kernel_class kernel_class_of_kind(const char *kind);
/* Returns the class of a PyTorch operator. CLASS_NO_WORK also stands for operators that only call others. */
enum kernel_class kernel_class_of_operator(const char *name);
/* True if an operator of class communication comes before the message to which it belongs: FSDP's copies into the
 * buffer of a collective, and the call of the collective. */
bool kernel_class_is_message_preparation(const char *name);
/* Returns the class of a GPU kernel or copy. */
enum kernel_class kernel_class_of_kernel(const char *name);

/* The rule by which an operator's flops follow from the shapes of its inputs. */
enum flops_formula_form {
    FLOPS_UNKNOWN,
    FLOPS_PRODUCT,      /* (..., m, k) x (..., k, n): inputs 0 and 1 */
    FLOPS_ADDED_PRODUCT /* a product of inputs 1 and 2, to which input 0 is added */
};
enum flops_formula_form operator_find_flops_form(const char *name);

#endif
