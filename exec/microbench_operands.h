/* exec/microbench_operands.h: the operands of an op that is measured without a schedule. Private to exec/. */
#ifndef EXEC_MICROBENCH_OPERANDS_H
#define EXEC_MICROBENCH_OPERANDS_H

#include "exec/backend.h"

struct bench_operand {
    uint64_t element_count;
    uint8_t dtype;                     /* enum dtype */
    int index_of_write_in_same_buffer; /* for a read: the write that uses the same buffer; -1: none */
};

struct bench_operands {
    uint32_t read_count, write_count;
    struct bench_operand read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
};

/* Sets *operands to the element count and dtype of each operand of the work. Where the work has a group, its parameter
 * is the number of members. Returns false if a count is 0 or exceeds what a buffer may hold, or if a collective's
 * elements do not divide evenly over its members. */
bool bench_list_operands(const struct work *work, enum dtype dtype,
                         struct bench_operands *operands);

/* Returns the number below which the indices in an operand of dtype i32 (tokens, labels, positions) are valid. */
int64_t bench_index_operand_limit(const struct work *work);

#endif
