/* sim/sim.h: simulates a schedule on a cluster: one call that predicts a step.
 *
 * The schedule says what is done and in which order, the cluster where bytes move and how fast, and the costs how long
 * each shape takes. The result says when each op starts and ends and how much memory is live at most, for every class
 * of ranks that behave the same, and how much each link carries. docs/simulation.md derives the model. SimGrid shares
 * the links between flows.
 *
 * Each simulation runs in a forked child, so any number may run at once, and none affects a later one. The same
 * input gives exactly the same times.
 *
 * The folder sim/ predicts how long a schedule takes on a cluster, and says what the time was spent on. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/diag.h"
#include "models/cluster.h"
#include "schedule/ir/ir.h"
#include "sim/result/sim_result.h"
#include "sim/traffic/sim_costs.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* Simulates one step. Returns STATUS_BAD_INPUT if the schedule cannot end on this cluster: for example, it has more
 * ranks than there are GPUs, members of a group disagree, or there is a deadlock (the message then names rank, op and
 * what the op waits for). Returns STATUS_SYSTEM if the child process fails. name: the schedule's name in messages.
 * *result must be all-zero; release it in either case. */
enum status sim_run(const struct ir *ir, const struct cluster *cluster,
                    const struct sim_costs *costs, const struct sim_options *options,
                    const char *name, struct sim_result *result, struct diag *diag);

/* Adds rows to *trace for ranks [rank_begin, rank_end): each op that did work, ordered by
 * (start, rank, op); with memory, also the live bytes by memory and category. */
void sim_make_trace(const struct ir *ir, const struct sim_result *result, uint32_t rank_begin,
                    uint32_t rank_end, bool memory, struct trace *trace);

#endif
