/* Checks that roles which share an instance of a group issue the same collectives on it. */
#include "sim/traffic/traffic_parts.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* True if an op is one of those that the group's members must issue in the same order. */
static bool is_group_op(const struct traffic *traffic, uint32_t op, uint32_t group)
{
    uint16_t comm = traffic->comm_class_by_op[op];
    return comm != IR_NONE16 && traffic->comm[comm].group == group &&
           traffic->comm[comm].kind != COMM_P2P;
}

/* Advances *i to the role's first op, at *i or later, for which is_group_op() is true. Returns false if there is
 * none. */
static bool find_next_group_op(const struct traffic *traffic, const struct role *role,
                               uint32_t group, uint32_t *i)
{
    while (*i < role->op_count && !is_group_op(traffic, role->op_begin + *i, group))
        ++*i;
    return *i < role->op_count;
}

static enum status check_group_order_of_roles(const struct traffic *traffic, uint32_t group,
                                              uint32_t a, uint32_t b, const char *name,
                                              struct diag *diag)
{
    const struct ir *ir = traffic->ir;
    const struct role *role_a = &ir->role[a], *role_b = &ir->role[b];
    struct loc at = {.name = name};
    for (uint32_t i = 0, j = 0;; i++, j++) {
        bool more_a = find_next_group_op(traffic, role_a, group, &i);
        bool more_b = find_next_group_op(traffic, role_b, group, &j);
        if (!more_a && !more_b)
            return STATUS_OK;
        uint32_t op_a = role_a->op_begin + i, op_b = role_b->op_begin + j;
        if (more_a != more_b)
            return diag_error(
                diag, at, STATUS_BAD_INPUT,
                "op %u (%s) of role %s has no counterpart in role %s, which shares group %s",
                more_a ? op_a : op_b, traffic_work_kind_name(ir, more_a ? op_a : op_b),
                more_a ? role_a->name : role_b->name, more_a ? role_b->name : role_a->name,
                ir->group[group].name);
        const struct work *work_a = ir_work(ir, op_a), *work_b = ir_work(ir, op_b);
        if (work_a->kind != work_b->kind || memcmp(work_a->p, work_b->p, sizeof work_a->p) != 0)
            return diag_error(
                diag, at, STATUS_BAD_INPUT,
                "op %u (%s, %lld bytes) of role %s meets op %u (%s, %lld bytes) of role %s on "
                "group %s: kind and sizes must be the same",
                op_a, traffic_work_kind_name(ir, op_a), (long long)work_payload_bytes(work_a),
                role_a->name, op_b, traffic_work_kind_name(ir, op_b),
                (long long)work_payload_bytes(work_b), role_b->name, ir->group[group].name);
    }
}

static enum status check_group_order_of_instance(const struct traffic *traffic, uint32_t group,
                                                 uint32_t instance, uint32_t size, uint8_t *checked,
                                                 const char *name, struct diag *diag)
{
    const struct ir *ir = traffic->ir;
    uint32_t first_rank =
        group_global_rank_of_member(&traffic->mesh, &ir->group[group], instance, 0);
    uint32_t first = traffic->role_of_rank[first_rank];
    for (uint32_t k = 1; k < size; k++) {
        uint32_t rank = group_global_rank_of_member(&traffic->mesh, &ir->group[group], instance, k);
        uint32_t role = traffic->role_of_rank[rank];
        if (role == first)
            continue;
        uint32_t outside = role == IR_NONE ? rank : first_rank;
        uint32_t other = role == IR_NONE ? first : role;
        if (role == IR_NONE || first == IR_NONE) {
            uint32_t i = 0;
            if (find_next_group_op(traffic, &ir->role[other], group, &i))
                return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                  "op %u (%s) of role %s needs rank %u, which is in no role",
                                  ir->role[other].op_begin + i,
                                  traffic_work_kind_name(ir, ir->role[other].op_begin + i),
                                  ir->role[other].name,
                                  traffic->schedule_rank_by_planned_rank[outside]);
            continue;
        }
        uint8_t *done = &checked[(size_t)first * ir->role_count + role];
        if (*done)
            continue;
        *done = 1;
        enum status status = check_group_order_of_roles(traffic, group, first, role, name, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status traffic_check_groups(const struct traffic *traffic, const char *name, struct diag *diag)
{
    const struct ir *ir = traffic->ir;
    enum status status = STATUS_OK;
    size_t pairs = (size_t)ir->role_count * ir->role_count;
    uint8_t *used = heap_zalloc(ir->group_count + 1u, 1);
    uint8_t *checked = heap_alloc(pairs + 1, 1);
    for (uint32_t l = 0; l < traffic->comm_class_count; l++)
        if (traffic->comm[l].group != IR_NONE16 && traffic->comm[l].kind != COMM_P2P)
            used[traffic->comm[l].group] = 1;
    for (uint32_t g = 0; g < ir->group_count && status == STATUS_OK; g++) {
        uint32_t size = group_rank_count(&traffic->mesh, &ir->group[g]);
        uint32_t instances = group_instance_count(&traffic->mesh, &ir->group[g]);
        memset(checked, 0, pairs + 1);
        for (uint32_t i = 0; used[g] && i < instances && status == STATUS_OK; i++)
            status = check_group_order_of_instance(traffic, g, i, size, checked, name, diag);
    }
    free(used);
    free(checked);
    return status;
}
