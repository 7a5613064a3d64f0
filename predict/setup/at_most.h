/* predict/setup/at_most.h: the reasons of --at-most: why a run does less than the configuration that is predicted in
 * its place, so that its memory and time are at most the predicted ones. Reading a launch file gives the option. */
#ifndef PREDICT_SETUP_AT_MOST_H
#define PREDICT_SETUP_AT_MOST_H

#include "base/diag.h"
#include "base/text.h"

#include <stdint.h>

/* A reason why a run needs at most the predicted memory and time. */
enum reason_run_does_less {
    RUN_DOES_LESS_AS_ADAPTER_IS_TRAINED, /* the run trains an adapter or a part of the weights */
    RUN_DOES_LESS_AS_WEIGHTS_QUANTISED,  /* its frozen weights have 8 or 4 bits */
    RUN_DOES_LESS_AS_SEQUENCES_SHORTER,  /* its sequences are shorter than the longest */
    RUN_DOES_LESS_REASON_COUNT
};

/* The words of --at-most, such as "adapter". */
extern const char *const at_most_words[RUN_DOES_LESS_REASON_COUNT];

/* Reads words, with commas between them, into a mask of reasons: bit 1 << enum reason_run_does_less. */
enum status at_most_read_reasons(uint32_t *reasons, const char *words, struct diag *diag);

/* Appends, for each reason, what the prediction contains and the run does not: "all weights are trained here, and the
 * run trains an adapter ...; ..." */
void at_most_put_reasons(struct text *out, uint32_t reasons);

#endif
