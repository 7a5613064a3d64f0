/* models/states.h: the precision of the parameters and moments that AdamW keeps and updates.
 *
 * docs/strategies/weights.md, "Optimizer states", has the sources and the bytes of a parameter. */
#ifndef MODELS_STATES_H
#define MODELS_STATES_H

#include "models/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum states {
    STATES_FP32, /* fp32 parameters, both moments in fp32 */
    STATES_BF16, /* the bf16 parameters themselves, both moments in bf16 */
    STATES_8BIT, /* fp32 parameters; moments of a byte an element, and an fp32 scale per block */
    STATES_8BIT_BF16, /* the bf16 parameters themselves, moments as with 8bit */
    STATES_COUNT
};
extern const char *const states_names[STATES_COUNT];

enum { STATES_BLOCK = 256 }; /* elements of a block of an 8-bit moment */

/* True if AdamW updates parameters in bf16, from gradients in bf16. */
bool states_are_bf16(enum states states);
/* True if moments have 8 bits. */
bool states_have_8bit_moments(enum states states);
/* states_master_dtype() returns the dtype of the parameters that AdamW updates, called the master;
 * states_moment_dtype() that of its two moments. A moment in u8 has the scales of its blocks, as bytes, after its
 * elements. */
enum dtype states_master_dtype(enum states states);
enum dtype states_moment_dtype(enum states states);
/* Returns the number of elements of one moment of `count` parameters; for 8-bit moments, with the bytes of the
 * scales. */
uint64_t states_moment_elements(enum states states, uint64_t count);
/* Returns the bytes per parameter that AdamW keeps: the master and both moments, whose 8-bit blocks are taken as full.
 * The gradient does not count, nor does the parameter in `dtype`, with which the step computes; if that is the master
 * itself (`dtype` is the master's), the master does not count either. For `dtype` bf16 the result is 12, 4, 6.03 or
 * 2.03, in the order of the enum. */
double states_bytes_per_parameter(enum states states, enum dtype dtype);
/* Returns the bytes that one step of AdamW reads and writes of the masters and moments of `count` parameters. */
double states_traffic_bytes(enum states states, uint64_t count);

#endif
