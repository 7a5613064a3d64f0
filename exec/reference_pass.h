/* exec/reference_pass.h: the pass of one sequence through the transformer of the reference, forward and backward.
 *
 * Private to the files of exec/reference*.c. */
#ifndef EXEC_REFERENCE_PASS_H
#define EXEC_REFERENCE_PASS_H

#include "exec/reference.h"

#include <stdbool.h>

/* Computes one sequence. number: the sequence's index in its batch; it and the reference's seed determine the rounding.
 * documents: those of the sequence; NULL: it is one document. labels: as in struct reference_batch, but not NULL.
 * expert[layer]: (seq_len, experts_per_token), the expert of each copy of a token, or -1 - the expert if it drops the
 * copy; NULL for a layer without experts. The caller has checked tokens and labels. Returns the sum of the losses of
 * the tokens that count. With gradients, it adds the gradient of `scale` times that sum to the grad of every tensor. */
double reference_run_sequence(struct reference *reference, const int32_t *tokens,
                              const int32_t *labels, size_t seq_len, const int32_t *const *expert,
                              const struct document_list *documents, uint64_t number, double scale,
                              bool gradients);

#endif
