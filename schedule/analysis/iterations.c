#include "schedule/analysis/iterations.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_PER_ITERATION_MAX = 16, /* the most blocks of an iteration */
    LAYER_ITERATIONS_MIN = 3,      /* the fewest iterations of a run of layers */
    /* the fewest iterations of a run of units. While a pipeline fills and drains, shorter sequences are equal too, but
     * do not continue. */
    UNIT_ITERATIONS_MIN = 5
};

struct op_block {
    uint32_t first_op, op_count;
    int32_t layer_or_unit; /* the layer or the unit; -1: none */
    uint8_t phase;
};

struct op_blocks {
    struct op_block *row;
    uint32_t count;
};

/* ---- labels ---- */

int32_t bundle_first_layer(const struct ir *ir, uint16_t bundle)
{
    static const char head[] = "layers.";
    const char *name = ir->bundle[bundle].name;
    char *end = NULL;
    if (strncmp(name, head, sizeof head - 1) != 0)
        return -1;
    long layer = strtol(name + sizeof head - 1, &end, 10);
    return end > name + sizeof head - 1 ? (int32_t)layer : -1;
}

static int32_t layer_of_optimizer_states(const struct ir *ir, uint32_t op)
{
    for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
        uint16_t binding = ir->buffer.binding[ir_touched_buffer(ir, op, k)];
        if (binding != IR_NONE16 && ir->binding[binding].bundle != IR_NONE16)
            return bundle_first_layer(ir, ir->binding[binding].bundle);
    }
    return -1;
}

int32_t iteration_label_of_op(const struct ir *ir, uint32_t op, bool of_units)
{
    if (of_units)
        return ir->op.micro[op] != IR_NONE16 ? ir->op.micro[op] : -1;
    if (ir->op.layer[op] != IR_NONE16)
        return ir->op.layer[op];
    return ir->op.phase[op] == PHASE_OPTIMIZER ? layer_of_optimizer_states(ir, op) : -1;
}

/* ---- blocks ---- */

static void add_block(struct op_blocks *b, const struct ir *ir, uint32_t op, int32_t label)
{
    b->row[b->count++] =
        (struct op_block){.first_op = op, .layer_or_unit = label, .phase = ir->op.phase[op]};
}

/* Adds a key to those seen. Returns false if it was there already. */
static bool add_key_if_new(uint64_t *seen, uint32_t *count, uint64_t key)
{
    for (uint32_t i = *count; i > 0; i--)
        if (seen[i - 1] == key)
            return false;
    seen[(*count)++] = key;
    return true;
}

/* Finds the blocks of a role (schedule/analysis/iterations.h). A block may contain gathers of weights for the next
 * layer. The optimizer visits a layer several times, so there a block begins wherever the updated layer changes. */
static struct op_blocks find_blocks(const struct ir *ir, const struct role *role, bool of_units)
{
    uint32_t begin = role->op_begin, end = begin + role->op_count, seen_count = 0;
    uint64_t *seen = heap_alloc((size_t)role->op_count + 1, sizeof *seen), last_key = UINT64_MAX;
    struct op_blocks b = {.row = heap_alloc((size_t)role->op_count + 1, sizeof *b.row)};
    int32_t updated = -2;
    for (uint32_t op = begin; op < end; op++) {
        int32_t label = iteration_label_of_op(ir, op, of_units);
        bool optimizer = ir->op.phase[op] == PHASE_OPTIMIZER;
        uint64_t forward = ir->op.phase[op] == PHASE_FORWARD,
                 unit = of_units ? 0 : ir->op.micro[op],
                 key = (unit << 32 | (uint32_t)label) << 1 | forward;
        if (optimizer && !of_units && label != updated)
            add_block(&b, ir, op, label);
        updated = optimizer ? label : -2;
        if (optimizer || label < 0 || key == last_key)
            continue;
        last_key = key;
        if (add_key_if_new(seen, &seen_count, key))
            add_block(&b, ir, op, label);
    }
    for (uint32_t i = 0; i < b.count; i++)
        b.row[i].op_count = (i + 1 < b.count ? b.row[i + 1].first_op : end) - b.row[i].first_op;
    free(seen);
    return b;
}

/* ---- equal blocks ---- */

/* Returns a number for the two memories between which an op copies; 0 for other ops. Copies from and to pageable
 * memory use other links than those of pinned memory. */
static uint64_t key_of_memories_copied_between(const struct ir *ir, uint32_t op)
{
    uint8_t kind = ir->op.kind[op];
    if (kind != WORK_H2D && kind != WORK_D2H)
        return 0;
    return 1u + ir->buffer.memory[ir_touched_buffer(ir, op, 0)] * 4u +
           ir->buffer.memory[ir_touched_buffer(ir, op, ir->op.read_count[op])];
}

static bool blocks_are_equal(const struct ir *ir, const struct op_block *a,
                             const struct op_block *b)
{
    const struct op_table *t = &ir->op;
    uint32_t i = a->first_op, k = b->first_op, ops = a->op_count;
    if (ops != b->op_count || memcmp(t->shape + i, t->shape + k, ops * sizeof *t->shape) != 0 ||
        memcmp(t->stream + i, t->stream + k, ops * sizeof *t->stream) != 0 ||
        memcmp(t->guard + i, t->guard + k, ops * sizeof *t->guard) != 0)
        return false;
    /* Equal shapes mean equal kinds. Copies must also be between the same memories. */
    for (uint32_t op = 0; op < ops; op++)
        if (key_of_memories_copied_between(ir, i + op) !=
            key_of_memories_copied_between(ir, k + op))
            return false;
    return true;
}

/* ---- iterations ---- */

/* Returns the label of an iteration, which consists of `length` blocks: that of its first block. If blocks are of
 * units, an iteration may have forwards of one unit and the backward of another; its label is then that of the first
 * block that is not a forward, if there is one. */
static int32_t label_of_iteration_at_block(const struct op_block *block, uint32_t length,
                                           bool of_units)
{
    for (uint32_t i = 0; of_units && i < length; i++)
        if (block[i].phase != PHASE_FORWARD)
            return block[i].layer_or_unit;
    return block->layer_or_unit;
}

static void find_label_step(struct run_of_equal_iterations *run, const struct op_block *block,
                            bool of_units)
{
    run->first = label_of_iteration_at_block(block, run->blocks_per_iteration, of_units);
    run->is_in_optimizer = block->phase == PHASE_OPTIMIZER;
    for (uint32_t i = 1; i < run->iteration_count; i++) {
        int32_t step = label_of_iteration_at_block(block + i * run->blocks_per_iteration,
                                                   run->blocks_per_iteration, of_units) -
                       label_of_iteration_at_block(block + (i - 1) * run->blocks_per_iteration,
                                                   run->blocks_per_iteration, of_units);
        if (i > 1 && step != run->step) {
            run->step = 0;
            return;
        }
        run->step = step;
    }
}

/* True if the iterations can be a run. Layers are taken in periods of layers_per_period (1 for units). So labels must
 * grow or fall by one period from each iteration to the next. The first label must be the first layer of a period if
 * labels grow, and the last one if they fall. In the optimizer an iteration updates one bundle, which has all layers of
 * a period and carries the label of the first. */
static bool can_be_run_of_iterations(const struct repeats *r,
                                     const struct run_of_equal_iterations *run)
{
    int32_t layers = r->layers_per_period, at = run->first % layers;
    return run->first >= 0 && (run->step == layers || run->step == -layers) &&
           at == (run->step > 0 || run->is_in_optimizer ? 0 : layers - 1);
}

/* Returns the longest sequence of equal iterations that begins with block `at` and can be a run. Of the numbers of
 * blocks per iteration with which enough iterations are equal (LAYER_ITERATIONS_MIN, UNIT_ITERATIONS_MIN), only the
 * smallest is tried. iteration_count 0: there is no such sequence. */
static struct run_of_equal_iterations
find_iterations_from_block(const struct ir *ir, const struct op_blocks *b, uint32_t at)
{
    const struct repeats *r = &ir->repeats;
    for (uint32_t length = 1; length <= BLOCKS_PER_ITERATION_MAX; length++) {
        uint32_t equal = 0;
        while (at + equal + length < b->count &&
               blocks_are_equal(ir, &b->row[at + equal], &b->row[at + equal + length]))
            equal++;
        struct run_of_equal_iterations run = {.first_op = b->row[at].first_op,
                                              .iteration_count = equal / length + 1,
                                              .blocks_per_iteration = length};
        if (run.iteration_count <
            (r->iterations_are_units ? UNIT_ITERATIONS_MIN : LAYER_ITERATIONS_MIN))
            continue;
        for (uint32_t i = 0; i < length; i++)
            run.ops_per_iteration += b->row[at + i].op_count;
        find_label_step(&run, &b->row[at], r->iterations_are_units);
        if (can_be_run_of_iterations(r, &run))
            return run;
        break;
    }
    return (struct run_of_equal_iterations){0};
}

struct run_of_equal_iterations *find_iterations(const struct ir *ir, uint32_t role, uint32_t *count)
{
    struct op_blocks b = find_blocks(ir, &ir->role[role], ir->repeats.iterations_are_units);
    struct run_of_equal_iterations *runs = NULL;
    size_t capacity = 0;
    *count = 0;
    for (uint32_t at = 0; at < b.count;) {
        struct run_of_equal_iterations run = find_iterations_from_block(ir, &b, at);
        at += run.iteration_count > 0 ? run.iteration_count * run.blocks_per_iteration : 1;
        if (run.iteration_count == 0)
            continue;
        runs = heap_grow(runs, &capacity, *count + (size_t)1, sizeof *runs);
        runs[(*count)++] = run;
    }
    free(b.row);
    return runs;
}
