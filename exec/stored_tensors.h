/* exec/stored_tensors.h: the codes and scales of weights that a schedule stores in 4 or 8 bits
 * (models/frozen_storage.h). The buffers that are bound to them are filled once; no op writes them. */
#ifndef EXEC_STORED_TENSORS_H
#define EXEC_STORED_TENSORS_H

#include "exec/exec_options.h"
#include "models/frozen_storage.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* The codes and scales of a tensor, both NULL if it is not stored. */
struct stored_tensor {
    uint8_t *codes, *scales;
    enum frozen_storage storage;
};

/* Returns a row for each tensor of the ir, with memory for codes and scales; NULL: none is stored. */
struct stored_tensor *stored_tensors_new(const struct ir *ir);
void stored_tensors_free(struct stored_tensor *stored, const struct ir *ir);

/* stored_tensors_encode() stores the codes and scales of a tensor's values; stored_tensors_decode() writes the values
 * that the stored codes and scales stand for. */
void stored_tensors_encode(struct stored_tensor *stored, const struct tensor *tensor,
                           const double *values);
void stored_tensors_decode(const struct stored_tensor *stored, const struct tensor *tensor,
                           double *values);

/* True if the buffer is bound to the codes or the scales of a stored bundle. */
bool stored_tensors_is_source_of_buffer(const struct exec_buffer *buffer);
/* Fills a buffer for which stored_tensors_is_source_of_buffer() is true: with the rank's part of the codes of a bundle,
 * or with all scales of the bundle. */
void stored_tensors_fill(const struct stored_tensor *stored, const struct exec_buffer *buffer);

#endif
