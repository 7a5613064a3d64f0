/* The rule `routing`: the shares of experts, and the parameters of work on their rows. */
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <string.h>

/* Returns the number of ranks that have different experts. */
static uint32_t expert_ranks(const struct ir *ir)
{
    for (uint32_t g = 0; g < ir->group_count; g++)
        if (strcmp(ir->group[g].name, "ep") == 0)
            return (uint32_t)group_size(&ir->mesh, &ir->group[g]);
    return 1;
}

void check_routing(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct routing *r = &ir->routing;
    const uint32_t ranks = expert_ranks(ir);
    uint32_t ops = 0;
    for (uint32_t l = 0; l < r->layers; l++)
        if (r->list_of[l] == ROUTING_NONE)
            verify_fail(v, "layer %" PRIu32 " of %" PRIu32 " has no shares of experts", l,
                        r->layers);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const char *why = routing_unfit(r, ir_work(ir, op), ranks);
        ops += work_route(ir_work(ir, op)) >= 0;
        if (why != NULL)
            verify_fail(v, "%s has a route, and %s", op_text(v, op), why);
    }
    verify_checked(v, "%" PRIu32 " lists of shares, %" PRIu32 " ops", r->list_count, ops);
}
