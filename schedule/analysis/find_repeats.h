/* schedule/analysis/find_repeats.h: finds the runs of a short list (schedule/ir/repeats.h). A run is a sequence of
 * equal iterations; the whole list has more of them, in the run's gap.
 *
 * The folder schedule/analysis/ derives facts from a finished list of ops: what happens before what, waits, first uses,
 * free sets, liveness, repeats. */
#ifndef SCHEDULE_FIND_REPEATS_H
#define SCHEDULE_FIND_REPEATS_H

#include "schedule/ir/ir.h"

/* Finds the runs of a role by the labels of its ops, and appends them to ir->repeats.run. The role's list must be
 * complete. The caller has set these members of ir->repeats: copies_per_gap, iteration_value_of_first_copy,
 * iterations_are_units and layers_per_period. first_op_by_buffer: by buffer, the first op of the role that reads or
 * writes it.
 *
 * Returns true if the list can be used as a short list. That holds if there are runs, if each has at least two
 * iterations before its gap and one after it, if every op of the layers or units on both sides of the gap belongs to a
 * run, and if the two iterations at each gap are isomorphic: they refer to corresponding ops and buffers. */
bool find_repeats(struct ir *ir, uint32_t role, const uint32_t *first_op_by_buffer);

/* Returns the number of instances that a persistent buffer has in the whole list: 1 + copies_per_gap if it is bound to
 * a bundle of the layers that are copied, else 1. */
uint32_t repeats_count_buffer_instances(const struct ir *ir, uint32_t buffer);

#endif
