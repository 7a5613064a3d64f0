/* models/work_operands.h: how many operands each kind of work has, their sizes and types.
 *
 * What the operands of a kind mean stands in docs/ir.md, "Kinds". The verifier holds the ops of a
 * schedule to this, and a microbenchmark makes the buffers of its op by it. */
#ifndef MODELS_WORK_OPERANDS_H
#define MODELS_WORK_OPERANDS_H

#include "models/work.h"

enum { WORK_OPERANDS_MAX = 8 }; /* reads of one op, or writes */

enum work_side { WORK_READS, WORK_WRITES };

struct work_operand {
    const char *formula; /* of the count, in the table: "rows*cols"; for messages */
    uint32_t formula_size;
    bool in_bytes;  /* the count is of bytes: of communication and copies */
    bool optional;  /* may be left out */
    bool rare;      /* optional, and an op that is made up goes without */
    bool any_count; /* a schedule's op may have another count than the usual one, which this is */
    bool any_dtype; /* another dtype */
    uint8_t dtype;  /* enum dtype; DTYPE_COUNT: the one that the op computes in */
    int8_t over;    /* of a read: the write whose buffer it is, when brought up to date; or -1 */
    uint64_t count; /* elements or bytes; UINT64_MAX when it is more than 64 bits say */
};

/* The operands of work with its parameters, in order; returns how many. members: of the group of
 * communication, 1 for other kinds. Optional ones are the last of their side. */
uint32_t work_operands(const struct work *work, enum work_side side, uint32_t members,
                       struct work_operand operand[static WORK_OPERANDS_MAX]);

#endif
