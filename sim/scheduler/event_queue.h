/* sim/scheduler/event_queue.h: a queue, sorted by date, of events that are handled ahead of the engine's clock: the
 * starts of flows, and the ends of uncontended flows (sim/scheduler/uncontended.h). */
#ifndef SIM_EVENT_QUEUE_H
#define SIM_EVENT_QUEUE_H

#include "sim/scheduler/scheduler_state.h"

/* Queues the start (starts) or the end of an event's flows. */
void event_queue_add(struct scheduler *s, double date_s, size_t event, bool starts);

/* Returns the earliest row; NULL if the queue is empty. At equal dates ends come before starts, and then the row that
 * was added first. Ends of events that have been moved to the engine are dropped. The row is valid until the queue
 * changes. */
const struct queued_event *event_queue_earliest(struct scheduler *s);

#endif
