/* schedule/analysis/find_repeats.h: the runs of a sample, found by labels and proven by comparing iterations.
 *
 * The folder schedule/analysis/ derives facts from a finished list of ops: what happens before what, waits, first
 * uses, free sets, liveness, repeats. */
#ifndef SCHEDULE_FIND_REPEATS_H
#define SCHEDULE_FIND_REPEATS_H

#include "schedule/ir/ir.h"

/* Adds the runs of a role, whose ops are finished, to ir->repeats, where the rest is given (turn, copies,
 * of_units, layers). Returns false, and the list then stands only for itself, unless every op of the iterations at
 * the gap is of a run, and the three iterations around the gap are alike up to the distance of what they refer to. */
bool find_repeats(struct ir *ir, uint32_t role);

/* Returns how often a buffer that lives throughout is there in the whole list: once, or 1 + copies times. */
uint32_t repeats_of_state(const struct ir *ir, uint32_t buffer);

#endif
