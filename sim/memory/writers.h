/* sim/memory/writers.h: the first op that writes each buffer.
 *
 * Of rows that repeat (ir.repeat) only the first period is looked at, and the stride of each buffer that it
 * writes. */
#ifndef SIM_WRITERS_H
#define SIM_WRITERS_H

#include "schedule/ir/ir.h"

/* All-zero is empty. */
struct writers {
    uint32_t *first;      /* per buffer; IR_NONE: no op writes it, or it lives throughout */
    uint32_t *persistent; /* buffers that live throughout, in order */
    uint32_t persistent_count;
};

void writers_init(struct writers *writers, const struct ir *ir);
void writers_release(struct writers *writers);

#endif
