/* schedule/ir/ir_index.h: the hash tables of an ir. Private to schedule/ir/ir*.c. */
#ifndef SCHEDULE_IR_INDEX_H
#define SCHEDULE_IR_INDEX_H

#include "schedule/ir/id_map.h"
#include "schedule/ir/ir.h"

enum { IR_RECENT_RANGES = 4096 };

struct ir_index {
    /* Maps for finding rows while rows are added; those of tables whose rows have names find the names. */
    struct id_map shape, dims, extent, name[IR_TABLE_COUNT];

    /* Names of buffers. Only texts look buffers up by name, so the map is filled at the first look-up; the first
     * `named` buffers are in it. */
    struct id_map buffer;
    uint32_t named;

    uint32_t *next_number; /* per word: the number of the next buffer of this stem */

    uint32_t recent_range[IR_RECENT_RANGES]; /* rows of ranges by their hash */

    uint32_t open_role; /* where ops go: the last role added, or the one the parser is in */
};

/* Makes the ir's index, at the first call. */
struct ir_index *ir_index(struct ir *ir);

/* Splits a buffer's name into stem and number. The number is the longest run of digits at the end that prints as a
 * 32-bit number does (no leading zeros); IR_NONE when there is none. Returns the stem's size. */
size_t ir_split_name(const char *name, size_t size, uint32_t *number);

#endif
