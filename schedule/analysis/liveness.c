#include "schedule/analysis/liveness.h"

#include "schedule/analysis/free_sets.h"
#include "schedule/analysis/happens_before.h"

static void add_touches_of_role(struct free_sets *sets, const struct ir *ir,
                                const struct order *order)
{
    for (uint32_t op = order->first_op; op < order->first_op + order->op_count; op++)
        for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
            uint32_t buffer = ir_touched_buffer(ir, op, k);
            if (!liveness_is_persistent(ir, buffer))
                free_sets_add_touch(sets, order, buffer, op);
        }
}

void liveness_compute_free_sets(struct ir *ir)
{
    struct free_sets sets;
    struct order order = {0};
    free_sets_init(&sets, ir->buffer.count);
    for (uint32_t role = 0; role < ir->role_count; role++) {
        order_compute_clocks_of_role(&order, ir, role);
        add_touches_of_role(&sets, ir, &order);
    }
    order_release(&order);
    ir->free_op_count = 0;
    free_sets_store(&sets, ir, 0);
    free_sets_release(&sets);
}
