/* exec/operands.h: checks the operands of an op against the counts and types of models/work_operands.h.
 *
 * Kernels take their sizes from the shape, so a view of another size would make them read or write outside of it.
 * Where the table says f32, any of bf16, f16, f32 and f64 is accepted, since a schedule that is checked in f64 has f64
 * everywhere. */
#ifndef EXEC_OPERANDS_H
#define EXEC_OPERANDS_H

#include "base/diag.h"
#include "schedule/ir/ir.h"

/* Checks the element counts and dtypes of an op's operands. members: the number of ranks of its group, for
 * communication; else 0. The message names the op and the operand. */
enum status operands_check(const struct ir *ir, uint32_t op, uint32_t members, const char *name,
                           struct diag *diag);

#endif
