/* exec/plan.h: what a schedule means to each rank, worked out once before it runs.
 *
 * Roles, guards and places in groups are looked up per rank; every communication op gets the
 * number under which it meets its counterparts: members of a group match by issue order, sends
 * and receives first-in-first-out per (source, destination, channel). */
#ifndef EXEC_PLAN_H
#define EXEC_PLAN_H

#include "base/diag.h"
#include "exec/bindings.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_RANKS_MAX = 1024 }; /* each is several threads */

/* One op's part in a message between two ranks. */
struct plan_message {
    uint32_t source, destination, channel;
    uint32_t send_op, recv_op; /* IR_NONE: no op does */
};

/* The elements of a rank's operand that count in a sum over ranks. */
struct plan_shares {
    struct share *share;
    uint32_t count;
};

/* What an attention op sees on a rank. */
struct plan_pieces {
    struct attention_piece *piece;
    uint32_t count;
};

struct exec_plan {
    const struct ir *ir;
    uint32_t ranks;
    uint16_t *role;      /* (ranks) */
    bool *passes;        /* (ranks, guards) */
    uint32_t *instance;  /* (ranks, groups) of the group that the rank is in; IR_NONE: in none */
    uint32_t *index;     /* (ranks, groups) its index there */
    uint32_t *size;      /* (groups) members of an instance */
    uint32_t *instances; /* (groups) */
    uint32_t *call;      /* (ops) collectives: how many of the group the role lists before */
    uint32_t *calls;     /* (groups) the most that a role lists */
    uint32_t *barriers;  /* (groups) the same for barriers, which are counted apart */
    bool *
        softmax; /* (ops) CROSS_ENTROPY_BACKWARD: a CROSS_ENTROPY wrote its first read as softmax */
    struct plan_shares *shares; /* (rows, ranks): of SQUARE_SUM ops */
    uint32_t *share_row;        /* (ops) row of shares, or IR_NONE */
    struct plan_pieces *pieces; /* (rows, ranks): of shapes with mask DOCUMENTS */
    uint32_t *pieces_row;       /* (shapes) row of pieces, or IR_NONE */
    struct plan_message *message;
    uint32_t message_count;
    uint32_t *message_of; /* (ranks, op_stride) of a SEND or RECV that is not guarded out; NULL when
                             there are none. Index: op less the role's first. */
    uint32_t op_stride;   /* ops of the largest role */
    struct arena arena;
};

/* Checks all that running relies on (operand sizes and dtypes, offsets within the arenas, waits
 * on ops of the same role, groups that hold the ranks that use them) and fills *plan. */
enum status plan_init(struct exec_plan *plan, const struct ir *ir, const char *name,
                      struct diag *diag);
void plan_release(struct exec_plan *plan);

/* The ops of a rank that stand on one stream, in list order. */
struct plan_stream {
    uint32_t *op; /* (op_count) */
    uint32_t op_count;
};

/* Fills list (streams of the schedule), all-zero before, for a rank, and place (ops of its role): each op's
 * place on its stream, of SYNC ops, which stand on none, among those of the host. list[].op and place are
 * from malloc(). */
void plan_list_streams(const struct exec_plan *plan, uint32_t rank, struct plan_stream *list,
                       uint32_t **place);

static inline uint32_t plan_role_of(const struct exec_plan *plan, uint32_t rank)
{
    return plan->role[rank];
}
/* Does the op its work on the rank, or has it a guard that fails there? */
static inline bool plan_works(const struct exec_plan *plan, uint32_t rank, uint32_t op)
{
    uint16_t guard = plan->ir->op.guard[op];
    return guard == IR_NONE16 || plan->passes[(size_t)rank * plan->ir->guard_count + guard];
}
static inline uint32_t plan_first(const struct exec_plan *plan, uint32_t rank)
{
    return plan->ir->role[plan->role[rank]].op_begin;
}
static inline uint32_t plan_ops(const struct exec_plan *plan, uint32_t rank)
{
    return plan->ir->role[plan->role[rank]].op_count;
}
/* Place of a rank in a group. */
static inline uint32_t plan_instance(const struct exec_plan *plan, uint32_t rank, uint32_t group)
{
    return plan->instance[(size_t)rank * plan->ir->group_count + group];
}
static inline uint32_t plan_index(const struct exec_plan *plan, uint32_t rank, uint32_t group)
{
    return plan->index[(size_t)rank * plan->ir->group_count + group];
}
static inline uint32_t plan_message(const struct exec_plan *plan, uint32_t rank, uint32_t op)
{
    return plan->message_of[(size_t)rank * plan->op_stride + (op - plan_first(plan, rank))];
}
/* ALL_TO_ALL .. SHIFT: all members of a group instance take part. */
bool plan_is_collective(enum work_kind kind);

#endif
