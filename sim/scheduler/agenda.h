/* sim/scheduler/agenda.h: what is to happen at a date that is known, ahead of the engine's clock: events that
 * start their flows, and events that end whose flows are alone (sim/scheduler/alone.h). */
#ifndef SIM_AGENDA_H
#define SIM_AGENDA_H

#include "sim/scheduler/scheduler_state.h"

void agenda_add(struct scheduler *s, double date_s, size_t event, bool starts);

/* What comes first, ends before starts, then as it was added; NULL: nothing. Ends of events that went
 * to the engine meanwhile are left out. Good until the agenda changes. */
const struct appointment *agenda_first(struct scheduler *s);
void agenda_drop_first(struct scheduler *s);

#endif
