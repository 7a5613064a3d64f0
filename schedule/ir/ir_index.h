/* schedule/ir/ir_index.h: the hash tables of an ir. Private to schedule/ir/ir*.c. */
#ifndef SCHEDULE_IR_INDEX_H
#define SCHEDULE_IR_INDEX_H

#include "schedule/ir/id_map.h"
#include "schedule/ir/ir.h"

enum { IR_RECENT_RANGES = 4096 };

struct ir_index {
    /* Maps that find the row of an equal entry before one is added. Those in `name` find rows by their names. */
    struct id_map shape, dims, extent, name[IR_TABLE_COUNT];

    /* Finds buffers by name. Only code that reads text looks buffers up, so the map is filled when the first buffer is
     * looked up. It then has the first `buffers_in_name_map` buffers. */
    struct id_map buffer;
    uint32_t buffers_in_name_map;

    /* for each word, the number of the next buffer with this stem */
    uint32_t *next_buffer_number_by_stem;

    uint32_t recent_ranges_by_hash[IR_RECENT_RANGES]; /* rows of recently added ranges, by hash */

    /* the role to which ops are added: the last one added, or the one that the parser is in */
    uint32_t role_that_gets_new_ops;
};

/* Returns the ir's index, which the first call makes. */
struct ir_index *ir_index(struct ir *ir);

/* Splits a buffer's name into stem and number. The number is the longest run of digits at the end that is the decimal
 * form of a number below IR_NONE, without leading zeros; it is IR_NONE if there is none. Returns the size of the
 * stem. */
size_t ir_split_name(const char *name, size_t size, uint32_t *number);

#endif
