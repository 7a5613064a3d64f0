/* sim/scheduler/event_queue.h: what is to happen at a date that is known, ahead of the engine's clock: events that
 * start their flows, and events that end whose flows are alone (sim/scheduler/uncontended.h). */
#ifndef SIM_EVENT_QUEUE_H
#define SIM_EVENT_QUEUE_H

#include "sim/scheduler/scheduler_state.h"

void event_queue_add(struct scheduler *s, double date_s, size_t event, bool starts);

/* What comes first, ends before starts, then as it was added; NULL: nothing. Ends of events that went
 * to the engine meanwhile are left out. Good until the event queue changes. */
const struct queued_event *event_queue_first(struct scheduler *s);
void event_queue_drop_first(struct scheduler *s);

#endif
