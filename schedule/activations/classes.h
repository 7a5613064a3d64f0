/* schedule/activations/classes.h: the activations that could be kept on the host between forward and backward, found
 * from the list of ops.
 *
 * SPPO (arXiv 2503.10377, section 5.1) distinguishes types of activations, and gives a number of bytes for each. Here
 * the type follows from the ops that read a buffer. A unit is a micro-batch or a subsequence of one (op label micro).
 *
 * The folder schedule/activations/ holds the passes that recompute activations, or move them to the host and back. */
#ifndef SCHEDULE_ACTIVATIONS_CLASSES_H
#define SCHEDULE_ACTIVATIONS_CLASSES_H

#include "schedule/ir/ir.h"

enum activation_class {
    ACTIVATION_NONE, /* no layer's forward makes the buffer, it is persistent, or it is not on the device */
    /* type 0: other units read or write the buffer too (keys and values), or an op of no layer's forward writes it */
    ACTIVATION_SHARED_BY_UNITS,
    /* type 1: made in a unit's forward; after the forward, only the backward of layers of the same unit reads it */
    ACTIVATION_FOR_OWN_BACKWARD,
    /* type 2, our addition to the paper's types: all other activations of a unit's forward. Most are freed within that
     * forward. The others leave the layers: they are sent to another stage, or are the head's input. */
    ACTIVATION_FREED_IN_FORWARD,
    ACTIVATION_CLASS_COUNT
};
extern const char *const activation_class_names[ACTIVATION_CLASS_COUNT];

/* Sets class[b] for every buffer b of the ir to its class, from the ops op[count] in list order. op NULL: from all ops
 * of the ir in the order of its table; count must be their number. */
void activations_classify(const struct ir *ir, const uint32_t *op, uint32_t count, uint8_t *class);

/* The buffers of one class that have the same name stem, of those that one unit makes in one layer. */
struct activation_row {
    const char *name_stem; /* in the ir */
    uint8_t class;
    uint64_t bytes, buffer_count;
};
/* Returns the activations of one layer in the first unit of a finished schedule, the largest first, and sets *count to
 * their number. The caller frees the array. */
struct activation_row *activations_of_layer(const struct ir *ir, uint16_t layer, uint32_t *count);

#endif
