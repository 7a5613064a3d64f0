/* predict/two_layers.h: which tensors a layer saves for its backward, found by building a schedule of two layers.
 *
 * The result has the tensors of the first layer. Another layer follows it, as one follows every layer of a model but
 * the last, so it saves what those layers save. */
#ifndef PREDICT_TWO_LAYERS_H
#define PREDICT_TWO_LAYERS_H

#include "base/diag.h"
#include "schedule/activations/classes.h"
#include "schedule/choices/choices.h"

/* Builds the request's step with two layers of its model, all activations kept, and weights that are replicated over
 * data-parallel ranks. Sets *row to an array of *rows rows about what the first layer saves (activations_of_layer()),
 * which the caller frees. The name_stem of each row is NULL. If the request is refused, *row is NULL. diag: NULL if no
 * message is wanted. */
enum status two_layers_make_activation_table(struct activation_row **row, uint32_t *rows,
                                             const struct request *request, struct diag *diag);

#endif
