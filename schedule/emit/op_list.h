/* schedule/emit/op_list.h: the list of ops while passes rewrite it.
 *
 * Emission appends ops to the tables of an ir; passes append more and decide the order
 * in which the finished schedule lists them. So a pass never moves a row: it makes a
 * new list of op ids, and edits operands of the rows it redirects. schedule/emit/finalize.c
 * writes the rows out in list order. */
#ifndef SCHEDULE_EMIT_OP_LIST_H
#define SCHEDULE_EMIT_OP_LIST_H

#include "schedule/analysis/liveness.h"
#include "schedule/emit/emit.h"

#include <stdint.h>

struct program {
    uint32_t *op; /* ids in list order */
    uint32_t count, capacity;
};

void program_release(struct program *program);
void program_grow(struct program *program);
static inline void program_push(struct program *program, op_id op)
{
    if (program->count == program->capacity)
        program_grow(program);
    program->op[program->count++] = op.i;
}
/* Ops in a row. */
void program_push_all(struct program *program, const uint32_t *op, uint32_t count);

/* The ops of the ir in the order in which they were emitted. */
void program_init(struct program *program, const struct ir *ir);

/* How many of `count` listed ops from the first on have its layer, phase and micro-batch: most have those of
 * the op before. */
uint32_t program_alike(const struct ir *ir, const uint32_t *op, uint32_t count);

/* Makes operand k of the op (reads first, then writes) name another buffer, same range. */
void program_redirect(struct ir *ir, uint32_t op, uint32_t k, buffer_id buffer);
/* The buffer that operand k names. */
static inline uint32_t program_operand(const struct ir *ir, uint32_t op, uint32_t k)
{
    uint32_t operand = ir->operand[ir->op.operand_begin[op] + k];
    return operand & IR_RANGE ? ir->range[operand & ~IR_RANGE].buffer.i : operand;
}

/* Passes, in the order in which compose_build() runs them. Each replaces *program. */

/* Layers forget what their forward kept, and compute it again before their backward. */
void pass_recompute(struct emit *e, struct program *program);
/* Copies between device and host whose result nobody reads are left out. */
void pass_unread(struct emit *e, struct program *program);
/* Chunks wait for what goes to the host (schedule/attention/fpdt_host.c): what two of them keep there, and
 * two of what one rank gathers for all, are on the device at once. */
void pass_keep(struct emit *e, struct program *program);
/* What recomputation starts from goes to the host in the forward and comes back before it is read. */
void pass_offload(struct emit *e, struct program *program);
/* The same of what selective checkpointing keeps (schedule/activations/offload_kept.c). */
void pass_offload_kept(struct emit *e, struct program *program);
/* Part of what the forward keeps goes to the host and comes back before it is read. */
void pass_offload_ratio(struct emit *e, struct program *program);
/* Parameters are gathered before use, gradients reduced after their last part, the optimizer appended. */
void pass_weights(struct emit *e, struct program *program);

/* Lays out bundles of tensors, and makes the buffers that live through the step. */
void weights_setup(struct emit *e);

/* Adds role e->role with its program to *out: ops in list order, buffers that are touched, waits for
 * every data dependency between streams that nothing else implies, free sets, arena offsets. Of several
 * roles each is packed quickly, and lifetimes_tighten() has the last word; *figures: what packing took.
 * The draft e->ir then has no ops and buffers, and all its other tables, for the next role. */
void finish_role(const struct emit *e, const struct program *program, struct ir *out,
                 struct lifetimes_figures *figures);
/* When all roles are there: gives *out those other tables; e->ir is of no further use. */
void finish(const struct emit *e, struct ir *out);

#endif
