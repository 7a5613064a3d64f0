#include "schedule/passes/lifetimes.h"
#include "sim/memory/blocks.h"
#include "sim/memory/writers.h"
#include "tests/schedule/composed.h"

#include <stdlib.h>
#include <string.h>

enum { WORLDS = 24 };

/* Of all ops, one after the other. */
static uint32_t *first_of_all(const struct ir *ir)
{
    uint32_t *first = heap_alloc(ir->buffer.count + 1u, sizeof *first);
    memset(first, 0xff, (ir->buffer.count + 1u) * sizeof *first);
    for (uint32_t op = ir->op.count; op-- > 0;)
        for (uint32_t k = 0; k < ir->op.writes[op]; k++)
            first[ir_write(ir, op, k).buffer.i] = op;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (lifetimes_persistent(ir, b))
            first[b] = IR_NONE;
    return first;
}

static void check_writers(const char *label, const struct ir *ir)
{
    struct writers w = {0};
    uint32_t *first = first_of_all(ir), wrong = 0, persistent = 0;
    writers_init(&w, ir);
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        wrong += w.first[b] != first[b];
        if (lifetimes_held(ir, b) && persistent < w.persistent_count)
            wrong += w.persistent[persistent++] != b;
    }
    CHECK_INT(label, wrong, 0);
    CHECK_INT(label, persistent, w.persistent_count);
    writers_release(&w);
    free(first);
}

/* Every buffer in one block, and those that stand for each other of one size, memory and category. */
static void check_blocks(const char *label, const struct ir *ir)
{
    const struct buffer_table *t = &ir->buffer;
    uint32_t at = 0, repeated = 0, unlike = 0;
    for (struct blocks b = blocks_begin(ir); blocks_next(&b);) {
        CHECK_INT(label, b.buffer, at);
        CHECK(label, b.buffers <= blocks_largest(ir));
        at += b.buffers * b.times;
        repeated += b.times > 1;
        for (uint32_t i = b.buffer + b.buffers; i < at; i++)
            unlike += t->dims[i] != t->dims[i - b.buffers] ||
                      t->dtype[i] != t->dtype[i - b.buffers] ||
                      t->memory[i] != t->memory[i - b.buffers] ||
                      t->category[i] != t->category[i - b.buffers];
    }
    CHECK_INT(label, at, t->count);
    CHECK_INT(label, unlike, 0);
    CHECK(label, (repeated > 0) == (ir->repeat_count > 0));
}

/* As wide as models are, without which fewer lists repeat; of layers, and half of them of micro-batches. */
static void first_writers_are_those_of_all_ops(void)
{
    struct check_random random = check_random_make();
    int repeating = 0;
    for (int i = 0; i < WORLDS; i++) {
        struct request request = shapes_request(&random, 8, false);
        struct transformer model = *request.model;
        struct choices choices = {0};
        struct ir ir;
        char label[256];
        model.layers = check_random_i64(&random, 12, 48);
        model.hidden *= 64;
        model.head_dim *= 8;
        model.ffn *= 64;
        request.global_batch *= i % 2 == 0 ? 16 : 1;
        shapes_label(&request, label, sizeof label);
        request.model = &model;
        if (build(&ir, &choices, &request, label)) {
            check_writers(label, &ir);
            check_blocks(label, &ir);
            repeating += ir.repeat_count > 0;
        }
        ir_release(&ir);
    }
    CHECK("half of them repeat", 2 * repeating > WORLDS);
}

static const struct check_case cases[] = {
    {"first writers are those of all ops", first_writers_are_those_of_all_ops},
};
CHECK_MAIN("writers", cases)
