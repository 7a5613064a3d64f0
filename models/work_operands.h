/* models/work_operands.h: the operands of each kind of work, with their sizes and dtypes.
 *
 * docs/ir.md, "Kinds", says what the operands of a kind mean. The verifier checks the ops of a schedule by this
 * table, and a microbenchmark makes the buffers of its op by it. */
#ifndef MODELS_WORK_OPERANDS_H
#define MODELS_WORK_OPERANDS_H

#include "models/work.h"

enum { WORK_OPERANDS_MAX = 11 }; /* reads of one op, or writes */

enum work_side { WORK_READS, WORK_WRITES };

/* The dtypes that an operand may have. */
enum work_type {
    WORK_TYPE_STEP_DTYPE,        /* the dtype in which the step computes */
    WORK_TYPE_STEP_DTYPE_OR_F32, /* the step's dtype or f32: an operand that is summed over a step */
    WORK_TYPE_OP_FLOAT_DTYPE, /* a floating-point dtype, the same for all such operands of an op */
    WORK_TYPE_ANY_FLOAT,      /* any floating-point dtype */
    WORK_TYPE_OP_DTYPE,       /* any dtype, the same for all such operands of an op */
    WORK_TYPE_NARROW,         /* if `dtype` is a 4-bit dtype, that one; else any 8-bit dtype */
    WORK_TYPE_GIVEN_DTYPE,    /* `dtype` */
};

struct work_operand {
    /* the formula of the count as the table has it, such as "rows*cols"; for messages */
    const char *formula;
    uint32_t formula_text_size;
    bool count_is_bytes;          /* the count is in bytes: for communication and copies */
    bool optional;                /* may be left out */
    bool is_absent_in_microbench; /* optional, and left out of the op of a microbenchmark */
    /* `count` is only the usual count: an op of a schedule may have another */
    bool is_only_usual_count;
    uint8_t type;  /* enum work_type */
    uint8_t dtype; /* enum dtype in a microbenchmark; DTYPE_COUNT: the one it computes in */
    /* for a read: the write that may update its buffer in place; -1: none */
    int8_t in_place_write_index;
    uint64_t count; /* elements or bytes; UINT64_MAX if it does not fit */
};

/* Fills operand[] with the operands of work on one side, in order, and returns their number. members: the number of
 * ranks in the group of communication, 1 for other kinds. Optional operands are the last of their side. */
uint32_t work_operands(const struct work *work, enum work_side side, uint32_t members,
                       struct work_operand operand[static WORK_OPERANDS_MAX]);

/* Returns the row of operand[0..count) that describes operand k of an op. dtype: the dtype of that operand in the op.
 * It is row k, with one exception: a loss writes an optional softmax and then optional temporaries of dtype u8. If it
 * writes temporaries only, its operand k has dtype u8 and is described by row k + 1. */
const struct work_operand *work_operand_at(const struct work_operand *operand, uint32_t count,
                                           uint32_t k, enum dtype dtype);

#endif
