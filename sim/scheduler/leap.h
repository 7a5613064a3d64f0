/* sim/scheduler/leap.h: periods that are left out while the events run.
 *
 * Where ranks drift against each other, it is not known ahead after how many layers the times repeat. So the
 * simulation starts on the whole list, and watches each of its runs of equal periods (sim/plan/depth.h): when
 * some periods in a row followed the one before after the same time on all ranks, the hosts go on with the last
 * periods of the run, and those between never happen. An op that waits for a left-out op waits for the op as far
 * back from the last simulated one.
 *
 * So that no rank has begun a period that is to be left out, hosts issue only some periods ahead of the one
 * that all ranks have ended. Where that delayed an op, the times must not be used, and leap.late says so. The
 * times are those of a shorter list in any case: depth_expand() decides whether those of the whole list follow. */
#ifndef SIM_LEAP_H
#define SIM_LEAP_H

#include "sim/scheduler/scheduler_state.h"

/* Starts to watch the runs of s->times; does nothing if there are none. */
void leap_init(struct scheduler *s);

/* To be called when an op has ended and its successors know: passes its end on across gaps, and watches its
 * period. */
void leap_ended(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s);

/* True if the host of a rank may issue its next op; moves the rank past ops that are left out. */
bool leap_may_issue(const struct scheduler *s, struct rank_state *rank_state);

/* Sets leap.late if an op starts at a date before the clock, which left-out periods may cause. */
void leap_check_date(struct scheduler *s, double date_s);

/* Counts, after the run, the events of left-out periods as transfers of the period before their gap. */
void leap_count_events(struct scheduler *s);

#endif
