/* predict/setup/at_most.h: the reasons of --at-most: why a run does less than the configuration that is predicted in
 * its place, so that its memory and time are at most the predicted ones. Reading a launch file gives the option. */
#ifndef PREDICT_SETUP_AT_MOST_H
#define PREDICT_SETUP_AT_MOST_H

#include "base/diag.h"
#include "base/text.h"

#include <stdint.h>

enum at_most_reason {
    AT_MOST_AS_ADAPTER_IS_TRAINED,    /* the run trains an adapter or a part of the weights */
    AT_MOST_AS_WEIGHTS_HAVE_FEW_BITS, /* its frozen weights have 8 or 4 bits */
    AT_MOST_AS_SEQUENCES_ARE_SHORTER, /* its sequences are shorter than the longest */
    AT_MOST_REASONS
};

/* The words of --at-most, such as "adapter". */
extern const char *const at_most_words[AT_MOST_REASONS];

/* Reads words, with commas between them, into a mask of reasons: bit 1 << enum at_most_reason. */
enum status at_most_read(uint32_t *reasons, const char *words, struct diag *diag);

/* Appends, for each reason, what the prediction contains and the run does not: "all weights are trained here, and the
 * run trains an adapter ...; ..." */
void at_most_put(struct text *out, uint32_t reasons);

#endif
