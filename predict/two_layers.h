/* predict/two_layers.h: what layers save for their backward, found by building a schedule of two of them.
 *
 * The first layer's tensors are those that count: the second one reads what the first one leaves, as every layer but
 * the last does. */
#ifndef PREDICT_TWO_LAYERS_H
#define PREDICT_TWO_LAYERS_H

#include "base/diag.h"
#include "schedule/activations/classes.h"
#include "schedule/choices/choices.h"

/* Builds the request's step with two layers of its model, all activations kept, and whole weights on every rank. Sets
 * *row to what it saves (activations_of_layer()), an array of *rows rows, whose name_stem is NULL, and which the caller
 * frees. diag: NULL if no message is wanted; if the request is refused, *row is NULL. */
enum status two_layers_table(struct activation_row **row, uint32_t *rows,
                             const struct request *request, struct diag *diag);

#endif
