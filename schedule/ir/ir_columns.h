/* schedule/ir/ir_columns.h: how the tables of an ir grow. Private to schedule/ir/ir*.c. */
#ifndef SCHEDULE_IR_COLUMNS_H
#define SCHEDULE_IR_COLUMNS_H

#include "schedule/ir/ir.h"

/* The most rows of a table: ids have 32 bits in most tables, and 16 bits in those with ROWS_WITH_16_BIT_IDS_MAX.
 * IR_NONE and IR_NONE16 are not ids. */
#define ROWS_MAX ((uint64_t)UINT32_MAX - 1)
#define ROWS_WITH_16_BIT_IDS_MAX ((uint64_t)IR_NONE16 - 1)

/* Returns the new capacity of a table that has room for `capacity` rows and must have room for `needed` rows. */
uint32_t ir_grown_capacity(uint32_t capacity, uint64_t needed);

/* Make room for `more` rows in all columns. */
void ir_grow_buffers(struct buffer_table *table, uint64_t more);
void ir_grow_ops(struct op_table *table, uint64_t more);

/* Makes room for `more` rows after ir->NAME_count in the array ir->NAME. */
#define RESERVE(ir, name, more)                                                                    \
    do {                                                                                           \
        uint64_t needed_ = (uint64_t)(ir)->name##_count + (more);                                  \
        if (needed_ > (ir)->name##_capacity) {                                                     \
            (ir)->name##_capacity = ir_grown_capacity((ir)->name##_capacity, needed_);             \
            (ir)->name = heap_realloc((ir)->name, (ir)->name##_capacity, sizeof *(ir)->name);      \
        }                                                                                          \
    } while (0)

#endif
