/* Copies that nobody reads go, and what is gathered for them: those that a layer's first forward makes
 * for a backward which then starts from the recomputation's. Nothing waits for a copy but through what it
 * writes. */
#include "schedule/activations/passes.h"
#include "schedule/emit/op_list.h"

#include <stdlib.h>

static bool copies(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_H2D || ir->op.kind[op] == WORK_D2H ||
           (ir->op.kind[op] == WORK_ALL_GATHER && ir->op.region[op] == REGION_OFFLOAD);
}

void pass_unread(struct emit *e, struct program *program)
{
    const struct ir *ir = e->ir;
    uint8_t *read = heap_zalloc((size_t)ir->buffer.count + 1, 1); /* by an op listed later */
    uint32_t kept = program->count;
    for (uint32_t i = program->count; i-- > 0;) {
        uint32_t op = program->op[i], reads = ir->op.reads[op];
        if (copies(ir, op) && !read[program_operand(ir, op, 1)])
            continue;
        for (uint32_t k = 0; k < reads; k++)
            read[program_operand(ir, op, k)] = 1;
        program->op[--kept] = op;
    }
    for (uint32_t i = kept; i < program->count; i++)
        program->op[i - kept] = program->op[i];
    program->count -= kept;
    free(read);
}
