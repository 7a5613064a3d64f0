/* cli/report/kernels.h: says which attention kernels the rows of a ranking were predicted with. Profiles use
 * different ones (FlashAttention-2 or cuDNN on Hopper), which can change a ranking more than layouts do. */
#ifndef CLI_REPORT_KERNELS_H
#define CLI_REPORT_KERNELS_H

#include "base/text.h"
#include "models/work.h"

#include <stdbool.h>

/* Which rows of a ranking were predicted with which attention kernels. All-zero is empty. */
struct rows_by_attention_kernels {
    /* the names of the rows with each kind of kernels: "ulysses, fpdt"; empty: no row has them */
    struct text row_names_by_attention_impl[ATTENTION_IMPL_COUNT];
};
void kernels_release(struct rows_by_attention_kernels *kernels);

/* Notes that the row named `who` was predicted with the kernels `impl`. Repeated calls change nothing. */
void kernels_add_row_of_attention_impl(struct rows_by_attention_kernels *kernels,
                                       enum attention_impl impl, const char *who);
/* Returns whether rows were predicted with different kernels. */
bool do_attention_kernels_differ(const struct rows_by_attention_kernels *kernels);

/* Appends "attention's differ: fa2 of ulysses; cudnn of ring; --attention cudnn makes them alike"; nothing if all are
 * the same. suggested: the value that the text suggests for --attention. */
void put_attention_kernels_if_differ(struct text *out,
                                     const struct rows_by_attention_kernels *kernels,
                                     enum attention_impl suggested);

#endif
