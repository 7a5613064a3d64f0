/* sim/traffic/steady.h: derives the times of iterations that were not simulated from those that were.
 *
 * If the iterations around a gap follow each other after the same time (the period), on all ranks and streams, and no
 * other event is open meanwhile, then the left-out iterations can only do the same again, and every op after the gap
 * comes later by one period for each of them. docs/simulation.md proves it; every start is then checked against all
 * that it waits for. The gaps are those of a short list, which represents a longer list (schedule/ir/repeats.h). */
#ifndef SIM_STEADY_H
#define SIM_STEADY_H

#include "sim/traffic/fold.h"
#include "sim/traffic/traffic.h"

/* The start and end of every op: those of the first class of ranks (struct fold), then those of the next class, and so
 * on. */
struct steady_times {
    double *start_s, *end_s;
};

/* Sets period_s[run] for each run of a short list, the time from one iteration to the next, and *step_s, the date when
 * the whole list ends. Returns false if the times of the whole list do not follow from those of the short list. */
bool steady_find_periods_and_step(const struct traffic *traffic, const struct fold *fold,
                                  struct steady_times times, double *period_s, double *step_s);

#endif
