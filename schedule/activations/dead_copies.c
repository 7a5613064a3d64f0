/* Removes copies to or from the host whose result no op reads, and gathers before such copies whose result only they
 * read. A layer's first forward makes these copies for the backward. If recomputation is added, the backward reads the
 * copies that the recomputation makes, and nothing reads the first ones. Removing a copy breaks no order: ops wait for
 * a copy only because of what it writes. */
#include "schedule/activations/passes.h"
#include "schedule/emit/op_list.h"

#include <stdlib.h>
#include <string.h>

static bool is_host_copy(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_H2D || ir->op.kind[op] == WORK_D2H ||
           (ir->op.kind[op] == WORK_ALL_GATHER && ir->op.region[op] == REGION_OFFLOAD);
}

void pass_remove_dead_copies(struct emit *e, struct op_list *list)
{
    const struct ir *ir = e->ir;
    /* [buffers] 1 if an op that comes later in the list, and stays there, reads the buffer */
    uint8_t *read = heap_zalloc((size_t)ir->buffer.count + 1, 1);
    uint32_t kept = list->count;
    for (uint32_t i = list->count; i-- > 0;) {
        uint32_t op = list->op[i], reads = ir->op.read_count[op];
        if (is_host_copy(ir, op) && !read[ir_touched_buffer(ir, op, 1)])
            continue;
        for (uint32_t k = 0; k < reads; k++)
            read[ir_touched_buffer(ir, op, k)] = 1;
        list->op[--kept] = op;
    }
    list->count -= kept;
    memmove(list->op, list->op + kept, list->count * sizeof *list->op);
    free(read);
}
