/* cli/measure/not_honoured.h: which choices of a configuration its execution does not follow, although its prediction
 * does. */
#ifndef CLI_MEASURE_NOT_HONOURED_H
#define CLI_MEASURE_NOT_HONOURED_H

#include "base/text.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>

/* Appends a clause for each choice that execution does not follow, separated by "; "; nothing if it follows all. host:
 * the step runs on the processor (--backend cpu). */
void put_clauses_of_not_honoured_choices(struct text *out, const struct choices *choices,
                                         bool host);

#endif
