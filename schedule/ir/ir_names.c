/* schedule/ir/ir_names.c: returns the names of rows, and finds rows by their names. */
#include "schedule/ir/ir_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t ir_split_name(const char *name, size_t size, uint32_t *number)
{
    uint64_t value = 0, place = 1;
    size_t stem = size;
    *number = IR_NONE;
    for (size_t i = size; i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9'; i--) {
        value += place * (uint64_t)(name[i - 1] - '0');
        place *= 10;
        if (value >= IR_NONE || size - i >= 10)
            break;
        /* a number of several digits does not begin with 0, but may have a 0 further on */
        if (name[i - 1] == '0' && i != size)
            continue;
        *number = (uint32_t)value;
        stem = i - 1;
    }
    return stem;
}

const char *ir_name_of(const struct ir *ir, enum ir_table_with_names table, uint32_t row)
{
    switch (table) {
    case IR_GROUP:
        return ir->group[row].name;
    case IR_ROLE:
        return ir->role[row].name;
    case IR_STREAM:
        return ir->stream[row].name;
    case IR_TENSOR:
        return ir->tensor[row].name;
    case IR_BUNDLE:
        return ir->bundle[row].name;
    default:
        return ir->word[row];
    }
}

uint32_t ir_find_by_name(const struct ir *ir, enum ir_table_with_names table, const char *name,
                         size_t size)
{
    if (!ir->index)
        return IR_NONE;
    const struct id_map *map = &ir->index->name[table];
    for (struct id_probe p = id_map_begin_probe(map, hash_text(name, size));
         id_map_next_row_with_hash(map, &p);) {
        const char *found = ir_name_of(ir, table, p.row);
        if (strlen(found) == size && memcmp(found, name, size) == 0)
            return p.row;
    }
    return IR_NONE;
}

static uint64_t buffer_hash(uint32_t stem, uint32_t number)
{
    return hash_word(0, (uint64_t)stem << 32 | number);
}

buffer_id ir_find_buffer(const struct ir *ir, const char *name, size_t size)
{
    uint32_t number;
    size_t stem_size = ir_split_name(name, size, &number);
    uint32_t stem = ir_find_by_name(ir, IR_WORD, name, stem_size);
    if (stem == IR_NONE)
        return (buffer_id){IR_NONE};
    struct ir_index *index = ir->index;
    for (; index->buffers_in_name_map < ir->buffer.count; index->buffers_in_name_map++) {
        uint32_t b = index->buffers_in_name_map;
        id_map_add(&index->buffer, buffer_hash(ir->buffer.stem[b], ir->buffer.number[b]), b);
    }
    struct id_probe p = id_map_begin_probe(&index->buffer, buffer_hash(stem, number));
    while (id_map_next_row_with_hash(&index->buffer, &p))
        if (ir->buffer.stem[p.row] == stem && ir->buffer.number[p.row] == number)
            return (buffer_id){p.row};
    return (buffer_id){IR_NONE};
}

size_t ir_buffer_name(const struct ir *ir, buffer_id buffer, char *text, size_t size)
{
    uint32_t number = ir->buffer.number[buffer.i];
    const char *stem = ir->word[ir->buffer.stem[buffer.i]];
    if (number == IR_NONE)
        return (size_t)snprintf(text, size, "%s", stem);
    return (size_t)snprintf(text, size, "%s%" PRIu32, stem, number);
}
