/* models/frozen_storage.h: how frozen weights beside adapters are stored in 4 or 8 bits, as bitsandbytes does (QLoRA,
 * Dettmers et al., arXiv 2305.14314, section 3; LLM.int8(), arXiv 2208.07339).
 *
 * A weight is a matrix of rows x cols, stored as codes and scales:
 *   nf4         4 bits an element, the first of two in the high half of a byte: the index of one of 16 values. 64
 *               elements, in the order of rows, share an fp32 scale, their largest magnitude.
 *   nf4-double  the same, but the scales are stored in 8 bits: indices of 256 values. 256 of them share an fp32 scale,
 *               and all of a weight an fp32 offset, their mean.
 *   int8        a signed byte an element; a row shares an fp32 scale, its largest magnitude, which 127 stands for.
 * Scales are bytes here, since those of nf4-double have two dtypes: 8-bit scales, padded to 4 bytes, then their fp32
 * scales, then the offset. */
#ifndef MODELS_FROZEN_STORAGE_H
#define MODELS_FROZEN_STORAGE_H

#include <stdint.h>

enum frozen_storage {
    FROZEN_STORAGE_16BIT, /* in the dtype of computation: neither codes nor scales */
    FROZEN_STORAGE_NF4,
    FROZEN_STORAGE_NF4_DOUBLE,
    FROZEN_STORAGE_INT8,
    FROZEN_STORAGE_COUNT
};
extern const char *const frozen_storage_names[FROZEN_STORAGE_COUNT];

/* Return the bytes of the codes of `elements` elements, and those of the scales of a weight. */
uint64_t frozen_storage_code_bytes(enum frozen_storage storage, uint64_t elements);
uint64_t frozen_storage_scale_bytes(enum frozen_storage storage, int64_t rows, int64_t cols);

/* Writes the codes and the scales of a weight. */
void frozen_storage_encode(enum frozen_storage storage, int64_t rows, int64_t cols,
                           const double *values, uint8_t *codes, uint8_t *scales);
/* Writes the values that codes and scales stand for. */
void frozen_storage_decode(enum frozen_storage storage, int64_t rows, int64_t cols,
                           const uint8_t *codes, const uint8_t *scales, float *values);

enum { FROZEN_STORAGE_VALUES = 16, FROZEN_STORAGE_SCALE_VALUES = 256 };
/* The values of 4-bit codes in ascending order; frozen_storage_scale_values() writes those of 8-bit scales, in
 * ascending order, too. */
extern const float frozen_storage_values[FROZEN_STORAGE_VALUES];
void frozen_storage_scale_values(float value[static FROZEN_STORAGE_SCALE_VALUES]);

#endif
