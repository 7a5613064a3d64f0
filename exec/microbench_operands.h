/* exec/microbench_operands.h: the operands that a made-up op needs. Private to exec/. */
#ifndef EXEC_MICROBENCH_OPERANDS_H
#define EXEC_MICROBENCH_OPERANDS_H

#include "exec/backend.h"

struct bench_operand {
    uint64_t count;
    uint8_t dtype; /* enum dtype */
    int same;      /* of a read: the write whose buffer it is; -1: none */
};

struct bench_operands {
    uint32_t reads, writes;
    struct bench_operand read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
};

/* Elements and dtypes of each operand of work whose group is a number of members; false when a
 * size exceeds what a buffer may hold. */
bool bench_operands(const struct work *work, enum dtype dtype, struct bench_operands *operands);

/* Indices below this are valid for a read of dtype I32: tokens, labels, positions. */
int64_t bench_index_limit(const struct work *work);

#endif
