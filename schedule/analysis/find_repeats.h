/* schedule/analysis/find_repeats.h: the runs of a sample, found by labels and proven by comparing iterations.
 *
 * The folder schedule/analysis/ derives facts from a finished list of ops: what happens before what, waits, first
 * uses, free sets, liveness, repeats. */
#ifndef SCHEDULE_FIND_REPEATS_H
#define SCHEDULE_FIND_REPEATS_H

#include "schedule/ir/ir.h"

/* Finds the runs of a role, whose ops are finished, and adds them to ir->repeats, whose other members are given
 * (turn, copies, of_units, layers). Returns true if every op of the iterations at the gap belongs to a run, and the
 * three iterations around the gap are isomorphic: they refer to the same things, up to a shift. False: the list
 * stands only for itself. */
bool find_repeats(struct ir *ir, uint32_t role);

/* Returns how often a buffer that lives throughout is there in the whole list: once, or 1 + copies times. */
uint32_t repeats_of_state(const struct ir *ir, uint32_t buffer);

#endif
