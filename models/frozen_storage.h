/* models/frozen_storage.h: how frozen weights beside adapters are stored in 4 or 8 bits, as bitsandbytes does (QLoRA,
 * Dettmers et al., arXiv 2305.14314, section 3; LLM.int8(), arXiv 2208.07339).
 *
 * A weight is a matrix of rows x cols, row-major. It is stored as codes, one for each element, and scales:
 *   nf4         A code has 4 bits, the index of one of 16 values; the first of two codes is the high half of a byte. A
 *               block of 64 consecutive elements has an fp32 scale, the largest magnitude in it.
 *   nf4-double  Codes are those of nf4. The mean of all scales of the weight is an fp32 offset. What a scale is above
 *               the offset is stored in 8 bits, the index of one of 256 values; 256 scales have one fp32 scale.
 *   int8        A code is a signed byte. A row has an fp32 scale, the largest magnitude in it, for which 127 stands.
 * The functions take scales as bytes, since those of nf4-double have two dtypes: first the 8-bit scales, padded with
 * zeros to a multiple of 4 bytes, then their fp32 scales, then the offset. */
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

/* Return the bytes of the codes of `elements` elements, and the bytes of all scales of a weight. storage must not be
 * FROZEN_STORAGE_16BIT, which has neither, here and below. */
uint64_t frozen_storage_code_bytes(enum frozen_storage storage, uint64_t elements);
uint64_t frozen_storage_scale_bytes(enum frozen_storage storage, int64_t rows, int64_t cols);

/* Writes the codes and the scales of a weight, whose elements are values[0 .. rows * cols). */
void frozen_storage_encode(enum frozen_storage storage, int64_t rows, int64_t cols,
                           const double *values, uint8_t *codes, uint8_t *scales);
/* Writes the elements of a weight, for which its codes and scales stand, into values[0 .. rows * cols). */
void frozen_storage_decode(enum frozen_storage storage, int64_t rows, int64_t cols,
                           const uint8_t *codes, const uint8_t *scales, float *values);

enum { FROZEN_STORAGE_VALUES = 16, FROZEN_STORAGE_SCALE_VALUES = 256 };
/* frozen_storage_values[] are the values that 4-bit codes stand for; frozen_storage_scale_values() writes those that
 * 8-bit scales stand for. Both are in ascending order. */
extern const float frozen_storage_values[FROZEN_STORAGE_VALUES];
void frozen_storage_scale_values(float value[static FROZEN_STORAGE_SCALE_VALUES]);

#endif
