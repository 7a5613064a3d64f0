/* predict/setup/at_most.h: why a run does less than is predicted, so that its memory and time are at most those of the
 * prediction: --at-most, which launch files give. */
#ifndef PREDICT_SETUP_AT_MOST_H
#define PREDICT_SETUP_AT_MOST_H

#include "base/diag.h"
#include "base/text.h"

#include <stdint.h>

enum at_most_reason { AT_MOST_ADAPTER, AT_MOST_BITS, AT_MOST_LENGTHS, AT_MOST_REASONS };

/* The words of --at-most, as "adapter". */
extern const char *const at_most_words[AT_MOST_REASONS];

/* Reads words that commas separate into a mask of reasons, bit 1 << reason. */
enum status at_most_read(uint32_t *reasons, const char *words, struct diag *diag);

/* Appends, for each reason, what the prediction contains and the run does not: "all weights are trained, and the run
 * trains an adapter; ..." */
void at_most_put(struct text *out, uint32_t reasons);

#endif
