/* schedule/weights/early_gather.h: the casts and gathers of parameters with which a step begins. Private to
 * schedule/weights/. */
#ifndef SCHEDULE_EARLY_GATHER_H
#define SCHEDULE_EARLY_GATHER_H

#include "schedule/emit/emit.h"

/* Emits the casts and gathers of all bundles that need them. Returns the last gather; IR_NONE: there is none. */
op_id early_gather_emit_all_bundles(struct emit *e);

#endif
