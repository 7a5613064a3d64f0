/* The rule `routing`: the shares of experts, and the parameters of work on their rows. */
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <stdlib.h>

void check_routing(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct routing *r = &ir->routing;
    const uint32_t ep = ir_find_by_name(ir, IR_GROUP, "ep", 2),
                   ranks = ep == IR_NONE ? 1 : group_rank_count(&ir->mesh, &ir->group[ep]);
    const char **why = heap_zalloc((size_t)ir->shape_count + 1, sizeof(char *));
    uint32_t ops = 0;
    for (uint32_t s = 0; s < ir->shape_count; s++) /* a schedule has far fewer shapes than ops */
        why[s] = routing_why_work_unfit(r, &ir->shape[s], ep, ranks);
    for (uint32_t l = 0; l < r->layer_count; l++)
        if (r->share_list_by_layer[l] == ROUTING_NO_SHARE_LIST)
            verify_fail(v, "layer %" PRIu32 " of %" PRIu32 " has no shares of experts", l,
                        r->layer_count);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const char *fault = why[ir->op.shape[op]];
        ops += work_routing_list_index(ir_work(ir, op)) >= 0;
        if (fault != NULL)
            verify_fail(v, "%s has a route, and %s", op_text(v, op), fault);
    }
    free((void *)why);
    verify_set_what_was_checked_text(v, "%" PRIu32 " lists of shares, %" PRIu32 " ops",
                                     r->list_count, ops);
}
