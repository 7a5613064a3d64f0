#include "schedule/activations/classes.h"

#include <stdlib.h>
#include <string.h>

const char *const activation_class_names[ACTIVATION_CLASS_COUNT] = {"none", "read continuously",
                                                                    "read once", "short-lived"};

/* Bits of buffer_uses.use_bits: the uses of a buffer after a layer's forward made it. SHARED: an op of another unit
 * reads or writes it, or an op that belongs to no layer's forward writes it. READ_BACK: an op of a layer reads it after
 * the forward. READ_OUTSIDE: an op that belongs to no layer reads it after the forward. */
enum { SHARED = 1, READ_BACK = 2, READ_OUTSIDE = 4 };

struct buffer_uses {
    uint16_t maker_unit; /* the unit that made the buffer */
    bool is_made_in_forward;
    uint8_t use_bits; /* the uses that there are, as bits of the enum above */
};

static void add_read_to_buffer_uses(const struct ir *ir, uint32_t op, struct buffer_uses *use)
{
    bool forward = ir->op.phase[op] == PHASE_FORWARD, layer = ir->op.layer[op] != IR_NONE16;
    if (!use->is_made_in_forward)
        return;
    if (ir->op.micro[op] != use->maker_unit)
        use->use_bits |= SHARED;
    else if (!forward)
        use->use_bits |= layer ? READ_BACK : READ_OUTSIDE;
}

static void add_write_to_buffer_uses(const struct ir *ir, uint32_t op, struct buffer_uses *use)
{
    bool forward = ir->op.phase[op] == PHASE_FORWARD && ir->op.layer[op] != IR_NONE16;
    if (!use->is_made_in_forward && forward) {
        use->is_made_in_forward = true;
        use->maker_unit = ir->op.micro[op];
    } else if (!forward || ir->op.micro[op] != use->maker_unit) {
        use->use_bits |= SHARED;
    }
}

void activations_classify(const struct ir *ir, const uint32_t *list, uint32_t count, uint8_t *class)
{
    struct buffer_uses *use = heap_zalloc((size_t)ir->buffer.count + 1, sizeof *use);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = list != NULL ? list[i] : i, reads = ir->op.read_count[op];
        for (uint32_t k = 0; k < reads; k++)
            add_read_to_buffer_uses(ir, op, &use[ir_touched_buffer(ir, op, k)]);
        for (uint32_t k = reads; k < reads + (uint32_t)ir->op.write_count[op]; k++)
            add_write_to_buffer_uses(ir, op, &use[ir_touched_buffer(ir, op, k)]);
    }
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        bool fixed =
            (ir->buffer.flags[b] & BUFFER_PERSISTENT) != 0 || ir->buffer.memory[b] != MEMORY_HBM;
        if (!use[b].is_made_in_forward || fixed)
            class[b] = ACTIVATION_NONE;
        else if (use[b].use_bits & SHARED)
            class[b] = ACTIVATION_SHARED_BY_UNITS;
        else
            class[b] = use[b].use_bits == READ_BACK ? ACTIVATION_FOR_OWN_BACKWARD
                                                    : ACTIVATION_FREED_IN_FORWARD;
    }
    free(use);
}

static int compare_rows_by_bytes(const void *a, const void *b)
{
    const struct activation_row *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name_stem, y->name_stem);
}

struct activation_row *activations_of_layer(const struct ir *ir, uint16_t layer, uint32_t *count)
{
    struct activation_row *row = NULL;
    size_t capacity = 0;
    uint32_t rows = 0;
    uint8_t *class = heap_zalloc((size_t)ir->buffer.count + 1, 1);
    activations_classify(ir, NULL, ir->op.count, class);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        if (ir->op.phase[op] != PHASE_FORWARD || ir->op.layer[op] != layer || ir->op.micro[op] != 0)
            continue;
        uint32_t reads = ir->op.read_count[op];
        for (uint32_t k = reads; k < reads + (uint32_t)ir->op.write_count[op]; k++) {
            uint32_t b = ir_touched_buffer(ir, op, k), r = 0;
            if (class[b] == ACTIVATION_NONE)
                continue;
            const char *stem = ir->word[ir->buffer.stem[b]];
            while (r < rows && (row[r].name_stem != stem || row[r].class != class[b]))
                r++;
            if (r == rows) {
                row = heap_grow(row, &capacity, rows + 1u, sizeof *row);
                row[rows++] = (struct activation_row){.name_stem = stem, .class = class[b]};
            }
            row[r].bytes += ir_buffer_bytes(ir, (buffer_id){b});
            row[r].buffer_count++;
            class[b] = ACTIVATION_NONE; /* so that the buffer is counted once */
        }
    }
    if (rows > 0)
        qsort(row, rows, sizeof *row, compare_rows_by_bytes);
    free(class);
    *count = rows;
    return row;
}
