/* schedule/activations/classes.h: which activations could be kept on the host between forward and backward, found
 * from the list of ops.
 *
 * SPPO (arXiv 2503.10377, section 5.1) distinguishes three types of activations and gives a number of bytes for each;
 * here the type follows from which ops read a buffer. A unit is a micro-batch or a subsequence of one (op label
 * micro).
 *
 * The folder schedule/activations/ holds the passes that recompute activations, or move them to the host and back. */
#ifndef SCHEDULE_ACTIVATIONS_CLASSES_H
#define SCHEDULE_ACTIVATIONS_CLASSES_H

#include "schedule/ir/ir.h"

enum activation_class {
    ACTIVATION_NONE, /* no layer's forward makes the buffer */
    /* type 0: other units read or write it too (keys and values), or a backward op writes it */
    ACTIVATION_SHARED_BY_UNITS,
    /* type 1: made in a unit's forward and read again only in the backward of the same unit */
    ACTIVATION_FOR_OWN_BACKWARD,
    /* Type 2, our addition to the paper's types. Activations that the backward does not read and that are freed within
     * the forward of their unit; and activations that leave the layers: those sent to another stage, and the head's
     * input. */
    ACTIVATION_FREED_IN_FORWARD,
    ACTIVATION_CLASS_COUNT
};
extern const char *const activation_class_names[ACTIVATION_CLASS_COUNT];

/* Fills class[ir->buffer.count] with the class of every buffer, from the `count` ops op[] in list order; op NULL: all
 * ops of the ir, in the order of its table. */
void activations_classify(const struct ir *ir, const uint32_t *op, uint32_t count, uint8_t *class);

/* The buffers that one unit makes in one layer, and that have the same name stem and class. */
struct activation_row {
    const char *name_stem; /* in the ir */
    uint8_t class;
    uint64_t bytes, buffer_count;
};
/* Returns the activations of one layer in the first unit of a finished schedule, the largest first; the array is on the
 * heap. */
struct activation_row *activations_of_layer(const struct ir *ir, uint16_t layer, uint32_t *count);

#endif
