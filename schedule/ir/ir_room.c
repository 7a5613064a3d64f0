/* The memory of an ir: columns that grow together, and the release of all of them. */
#include "schedule/ir/ir_columns.h"

#include "schedule/ir/ir_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_KNOWN = 1024 };

uint32_t ir_grown_capacity(uint32_t capacity, uint64_t needed)
{
    assert(needed <= ROWS_MAX);
    size_t next = heap_next_capacity(capacity, (size_t)needed);
    /* A request for ROWS_KNOWN rows or more comes only from a caller that knows how many rows it will add. Then there
     * is room for exactly these. */
    if (needed >= (uint64_t)capacity + ROWS_KNOWN)
        next = (size_t)needed;
    return next < ROWS_MAX ? (uint32_t)next : (uint32_t)ROWS_MAX;
}

struct table_column {
    /* the offset of the member, a pointer to the column, in its table, and the bytes of an element of the column */
    size_t pointer_offset, element_size;
};

#define COLUMN(table, name)                                                                        \
    {                                                                                              \
        offsetof(struct table, name), sizeof *((struct table *)0)->name                            \
    }

static const struct table_column buffer_columns[] = {
    COLUMN(buffer_table, memory),  COLUMN(buffer_table, dtype),   COLUMN(buffer_table, category),
    COLUMN(buffer_table, flags),   COLUMN(buffer_table, role),    COLUMN(buffer_table, layer),
    COLUMN(buffer_table, binding), COLUMN(buffer_table, dims),    COLUMN(buffer_table, stem),
    COLUMN(buffer_table, number),  COLUMN(buffer_table, free_op), COLUMN(buffer_table, free_count),
    COLUMN(buffer_table, offset),
};

static const struct table_column op_columns[] = {
    COLUMN(op_table, kind),   COLUMN(op_table, stream),        COLUMN(op_table, phase),
    COLUMN(op_table, region), COLUMN(op_table, read_count),    COLUMN(op_table, write_count),
    COLUMN(op_table, layer),  COLUMN(op_table, chunk),         COLUMN(op_table, step),
    COLUMN(op_table, micro),  COLUMN(op_table, guard),         COLUMN(op_table, wait_count),
    COLUMN(op_table, shape),  COLUMN(op_table, operand_begin), COLUMN(op_table, wait_begin),
};

/* Returns a column's pointer. It is copied as bytes, since each column has a pointer type of its own. */
static void *column_pointer(const void *table, struct table_column column)
{
    void *data;
    memcpy(&data, (const char *)table + column.pointer_offset, sizeof data);
    return data;
}

static void set_column(void *table, struct table_column column, void *data)
{
    memcpy((char *)table + column.pointer_offset, &data, sizeof data);
}

/* Makes room for `more` rows in a table. */
static void grow_table(void *table, uint32_t count, uint32_t *capacity, uint64_t more,
                       const struct table_column *column, size_t columns)
{
    if (count + more <= *capacity)
        return;
    *capacity = ir_grown_capacity(*capacity, count + more);
    for (size_t i = 0; i < columns; i++)
        set_column(
            table, column[i],
            heap_realloc(column_pointer(table, column[i]), *capacity, column[i].element_size));
}

void ir_grow_buffers(struct buffer_table *table, uint64_t more)
{
    grow_table(table, table->count, &table->capacity, more, buffer_columns,
               ARRAY_LEN(buffer_columns));
}

void ir_grow_ops(struct op_table *table, uint64_t more)
{
    grow_table(table, table->count, &table->capacity, more, op_columns, ARRAY_LEN(op_columns));
}

void ir_copy_ops(struct op_table *out, uint32_t to, const struct op_table *in, uint32_t from,
                 uint32_t rows)
{
    for (size_t i = 0; i < ARRAY_LEN(op_columns); i++) {
        size_t size = op_columns[i].element_size;
        memcpy((char *)column_pointer(out, op_columns[i]) + to * size,
               (const char *)column_pointer(in, op_columns[i]) + from * size, rows * size);
    }
}

static void free_columns(void *table, const struct table_column *column, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(column_pointer(table, column[i]));
}

/* The arrays of an ir that are not columns of buffer_table or op_table. */
static const struct table_column arrays[] = {
    COLUMN(ir, group),  COLUMN(ir, guard),   COLUMN(ir, role),    COLUMN(ir, stream),
    COLUMN(ir, tensor), COLUMN(ir, bundle),  COLUMN(ir, binding), COLUMN(ir, shape),
    COLUMN(ir, dims),   COLUMN(ir, extent),  COLUMN(ir, range),   COLUMN(ir, operand),
    COLUMN(ir, wait),   COLUMN(ir, free_op), COLUMN(ir, word),
};

/* ---- the index, release and reserve ---- */

struct ir_index *ir_index(struct ir *ir)
{
    if (!ir->index)
        ir->index = heap_zalloc(1, sizeof *ir->index);
    return ir->index;
}

void ir_release(struct ir *ir)
{
    struct ir_index *index = ir->index;
    free_columns(ir, arrays, ARRAY_LEN(arrays));
    free_columns(&ir->buffer, buffer_columns, ARRAY_LEN(buffer_columns));
    free_columns(&ir->op, op_columns, ARRAY_LEN(op_columns));
    if (index) {
        id_map_release(&index->shape);
        id_map_release(&index->dims);
        id_map_release(&index->extent);
        id_map_release(&index->buffer);
        for (int table = 0; table < IR_TABLE_COUNT; table++)
            id_map_release(&index->name[table]);
        free(index->next_buffer_number_by_stem);
        free(index);
    }
    arena_release(&ir->arena);
    *ir = (struct ir){0};
}

void ir_reserve(struct ir *ir, uint64_t ops, uint64_t buffers, uint64_t operands, uint64_t waits)
{
    assert(ir->buffer.count + buffers <= IR_OPERAND_IS_RANGE_ROW);
    ir_grow_ops(&ir->op, ops);
    ir_grow_buffers(&ir->buffer, buffers);
    RESERVE(ir, operand, operands);
    RESERVE(ir, wait, waits);
}
