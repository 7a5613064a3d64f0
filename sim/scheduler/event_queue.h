/* sim/scheduler/event_queue.h: a queue of events by date, ahead of the engine's clock: those that start their flows,
 * and the ends of those whose flows are uncontended (sim/scheduler/uncontended.h). */
#ifndef SIM_EVENT_QUEUE_H
#define SIM_EVENT_QUEUE_H

#include "sim/scheduler/scheduler_state.h"

/* Queues the start (starts) or the end of an event's flows. */
void event_queue_add(struct scheduler *s, double date_s, size_t event, bool starts);

/* Returns the earliest row, at one date ends before starts, then in the order of addition; NULL: the queue is empty.
 * Drops ends of events that went to the engine meanwhile. The row is valid until the queue changes. */
const struct queued_event *event_queue_first(struct scheduler *s);
void event_queue_drop_first(struct scheduler *s);

#endif
