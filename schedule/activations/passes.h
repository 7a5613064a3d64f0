/* schedule/activations/passes.h: passes over the list of ops that decide what waits in memory for the backward.
 *
 * Each replaces *list; compose_build() runs them in this order. */
#ifndef SCHEDULE_ACTIVATIONS_PASSES_H
#define SCHEDULE_ACTIVATIONS_PASSES_H

#include "schedule/emit/op_list.h"

/* Layers forget what their forward kept, and compute it again before their backward. */
void pass_recompute(struct emit *e, struct op_list *list);
/* Copies between device and host whose result nobody reads are left out. */
void pass_dead_copies(struct emit *e, struct op_list *list);
/* What recomputation starts from goes to the host in the forward and comes back before it is read. */
void pass_offload(struct emit *e, struct op_list *list);
/* The same of what selective checkpointing keeps (schedule/activations/offload_kept.c). */
void pass_offload_kept(struct emit *e, struct op_list *list);
/* Part of what the forward keeps goes to the host and comes back before it is read. */
void pass_offload_ratio(struct emit *e, struct op_list *list);

#endif
