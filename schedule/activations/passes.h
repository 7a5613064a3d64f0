/* schedule/activations/passes.h: passes over the list of ops that decide which activations are saved for the backward,
 * and in which memory.
 *
 * Each pass rewrites *list. step_build() runs the passes that the choices ask for, in this order: one of
 * pass_offload_ratio(), pass_offload_first_layers() and pass_recompute(); then pass_discard(),
 * pass_remove_dead_copies(), pass_gradients_in_place() and pass_offload_checkpoints(). */
#ifndef SCHEDULE_ACTIVATIONS_PASSES_H
#define SCHEDULE_ACTIVATIONS_PASSES_H

#include "schedule/emit/op_list.h"

/* Returns the row of an op's unit and layer in a table [units][layers]. Such a row is called a segment. */
static inline uint32_t segment_of_op(const struct ir *ir, uint32_t layers, uint32_t op)
{
    return (uint32_t)ir->op.micro[op] * layers + ir->op.layer[op];
}

/* Adds a repetition of an op in the phase `recompute` and returns it. of: its operands, those of the op or others in
 * their place. It waits for the repetitions of the ops for which the op waits; repetition_of_op: by op, the op that
 * repeats it (IR_NONE: none), of which the row of `op` is set. */
op_id pass_repeat_op(struct ir *ir, uint32_t op, const buffer_id *of, uint32_t *repetition_of_op);

/* Repeats each layer's forward before its backward, which then reads the repeated activations, so that those of the
 * first forward are freed early. What is repeated depends on choices.activations. */
void pass_recompute(struct emit *e, struct op_list *list);
/* Drops the results of the modules of --recompute-modules, and makes them again where the backward reads them. All
 * other activations must be kept, except that pass_recompute() may have made attention's core again. */
void pass_discard(struct emit *e, struct op_list *list);
/* Removes copies between device and host whose result no op reads, and gathers for such copies. */
void pass_remove_dead_copies(struct emit *e, struct op_list *list);
/* Copies tensors to the host in the forward, and back before they are read: with CHOICE_ACTIVATIONS_OFFLOAD the inputs
 * of layers, with CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD the tensors that selective checkpointing saves. */
void pass_offload_checkpoints(struct emit *e, struct op_list *list);
/* Copies what the first choices.host_layers layers save to the host, and back before their backward. */
void pass_offload_first_layers(struct emit *e, struct op_list *list);
/* Copies the part of the saved activations that choices.offload_ratio names to the host, and back before they are
 * read. */
void pass_offload_ratio(struct emit *e, struct op_list *list);
/* Writes gradients over saved tensors, as kernels of Liger-Kernel do. */
void pass_gradients_in_place(struct emit *e, struct op_list *list);

#endif
