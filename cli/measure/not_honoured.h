/* cli/measure/not_honoured.h: what a prediction of a configuration counts, and its execution does not do. */
#ifndef CLI_MEASURE_NOT_HONOURED_H
#define CLI_MEASURE_NOT_HONOURED_H

#include "base/text.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>

/* Appends what execution does otherwise than the choices say, a clause each, separated by "; ". Appends nothing if it
 * does all as they say. host: it runs on the processor (--backend cpu). */
void not_honoured_put(struct text *out, const struct choices *choices, bool host);

#endif
