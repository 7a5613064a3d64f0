/* schedule/ir/ir_index.h: the hash tables of an ir. Private to schedule/ir/ir*.c. */
#ifndef SCHEDULE_IR_INDEX_H
#define SCHEDULE_IR_INDEX_H

#include "schedule/ir/id_map.h"
#include "schedule/ir/ir.h"

enum { IR_RANGE_CACHE = 4096, IR_STEM_CACHE = 256 }; /* powers of two */

struct ir_index {
    /* Maps for finding rows while rows are added. */
    struct id_map shape, dims, extent, word, group, role, tensor, bundle, binding, guard;

    /* Names of buffers. Only texts look buffers up by name, so the map is filled at the first look-up; the first
     * `named` buffers are in it. */
    struct id_map buffer;
    uint32_t named;

    uint32_t *next_number; /* per word: the number of the next buffer of this stem */
    uint32_t *stem_dims;   /* per word: the dims of its last buffer; IR_NONE: none yet */
    uint32_t stem_capacity;

    uint32_t open_role; /* where ops go: the last role added, or the one the parser is in */

    /* Rows most recently made, tried before the hash tables. */
    uint32_t last_shape[WORK_KIND_COUNT]; /* IR_NONE: none yet */
    uint32_t last_extent;
    struct ir_recent_stem {
        const char *text; /* which may say something else by now */
        uint32_t row;
    } * recent_stem; /* (IR_STEM_CACHE) by the text's address; NULL: none yet */
    uint32_t
        *recent_range; /* (IR_RANGE_CACHE) by hash of the range; IR_NONE: none. NULL: none yet */

    const struct work_kind_info *kind[WORK_KIND_COUNT];
};

/* Makes the ir's index, at the first call. */
struct ir_index *ir_make_index(struct ir *ir);
static inline struct ir_index *ir_index(struct ir *ir)
{
    return ir->index ? ir->index : ir_make_index(ir);
}

/* Splits a buffer's name into stem and number. The number is the longest run of digits at the end that prints as a
 * 32-bit number does (no leading zeros); IR_NONE when there is none. Returns the stem's size. */
size_t ir_split_name(const char *name, size_t size, uint32_t *number);

/* Returns a range of a buffer as an operand. */
uint32_t ir_range_operand(struct ir *ir, const struct view *view);

/* Returns the word's row, which is added if `add`; else IR_NONE when it is not there. */
uint32_t ir_word(struct ir *ir, const char *text, size_t size);
uint32_t ir_find_word(const struct ir *ir, const char *text, size_t size);

#endif
