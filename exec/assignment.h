/* exec/assignment.h: the role, groups, messages and guards of each rank, derived from a schedule once before it runs.
 *
 * Roles, guards and places in groups are looked up per rank. Every communication op gets the number by which it is
 * matched with its counterparts: members of a group match by issue order, sends and receives first-in-first-out per
 * (source, destination, channel). */
#ifndef EXEC_ASSIGNMENT_H
#define EXEC_ASSIGNMENT_H

#include "base/diag.h"
#include "exec/bindings.h"
#include "schedule/ir/ir.h"
#include "schedule/ir/needed.h"

#include <stdbool.h>
#include <stdint.h>

enum { ASSIGNMENT_RANKS_MAX = 1024 }; /* each rank needs several threads */

/* One op's part in a message between two ranks. */
struct assignment_message {
    uint32_t source, destination, channel;
    uint32_t send_op, recv_op; /* IR_NONE: no op does */
};

/* The elements of a rank's operand that count in a sum over ranks. */
struct assignment_shares {
    struct copied_run *share;
    uint32_t count;
};

/* The rows of experts on a rank, with routing that is not even (schedule/ir/routing.h). The members of group `ep`, each
 * with experts / ranks experts, send each other rows. */
struct dealt_rows {
    struct work work;               /* that of the shape, with the rank's real number of rows */
    const int64_t *count;           /* [experts] the copies that each rank deals to an expert */
    int64_t rows;                   /* that the rank's experts get of all ranks together */
    uint32_t experts, ranks, first; /* first: of the rank's experts */
    const int32_t *expert; /* of work route: [slots] the expert of each slot (models/work.h) */
    /* of permute and unpermute: [rows] the token's row that is copied to each row of the experts, -1 if that is
     * padding, and which of the token's copies it is */
    const int64_t *row, *copy;
    /* of an all-to-all that sends tokens once: token[first_token[ranks]]; a rank sends those from first_token[k] to
     * below first_token[k + 1] to member k */
    const int64_t *token, *first_token;
};

/* Returns the end of the rows of group g, which begin at `first`. Group g has the rows of the rank's g-th expert or, if
 * dealt is NULL, an even share of `total` rows. */
int64_t assignment_group_end(const struct dealt_rows *dealt, int64_t total, int64_t groups,
                             int64_t g, int64_t first);

/* Returns the copies that each rank deals to the experts of a member of group `ep`. */
int64_t assignment_dealt(const struct dealt_rows *dealt, uint32_t member);

/* The pieces of keys that an attention op sees on a rank. */
struct assignment_pieces {
    struct attention_piece *piece;
    uint32_t count;
};

/* Rows that ranks need of each other (schedule/ir/needed.h, schedule/ir/tile_plan.h), of one shape on one rank. sent
 * and received are by peer; received rows have their places in packed order. held: the rows in packed order that the rank
 * owns itself; only plans of tiles have them. The arrays are the assignment's. */
struct assignment_rows {
    struct needed_rows sent, received;
    struct held_rows held;
    uint32_t peers;
};

struct assignment {
    const struct ir *ir;
    uint32_t ranks;
    uint16_t *role;      /* (ranks) */
    bool *passes;        /* (ranks, guards) */
    uint32_t *instance;  /* (ranks, groups) of the group that the rank is in; IR_NONE: in none */
    uint32_t *index;     /* (ranks, groups) its index there */
    uint32_t *size;      /* (groups) members of an instance */
    uint32_t *instances; /* (groups) */
    uint32_t *call;      /* (ops) of a collective: how many of its group the role lists before it */
    uint32_t *calls;     /* (groups) the most collectives that a role lists */
    uint32_t *barriers;  /* (groups) the most barriers that a role lists */
    /* (ops) CROSS_ENTROPY_BACKWARD: a CROSS_ENTROPY wrote its first read as softmax */
    bool *softmax;
    struct assignment_shares *shares; /* (rows, ranks): of SQUARE_SUM ops */
    uint32_t *share_row;              /* (ops) row of shares, or IR_NONE */
    struct assignment_pieces *pieces; /* (rows, ranks): of shapes with mask DOCUMENTS */
    uint32_t *pieces_row;             /* (shapes) row of pieces, or IR_NONE */
    struct assignment_rows *rows;     /* (rows, ranks): of shapes that move rows which ranks need */
    uint32_t *rows_row;               /* (shapes) row of rows, or IR_NONE */
    uint32_t rows_count;
    struct dealt_rows *dealt; /* (rows, ranks): of shapes with a route */
    uint32_t *dealt_row;      /* (shapes) row of dealt, or IR_NONE */
    struct assignment_message *message;
    uint32_t message_count;
    /* (ranks, op_stride) the number of each SEND or RECV that no guard leaves out; NULL when there are none. Index:
     * op minus the role's first. */
    uint32_t *message_of;
    uint32_t op_stride; /* ops of the largest role */
    struct arena arena;
};

/* Checks everything that a run relies on (operand sizes and dtypes, offsets within the arenas, waits
 * on ops of the same role, groups that hold the ranks that use them) and fills *assignment. */
enum status assignment_init(struct assignment *assignment, const struct ir *ir, const char *name,
                            struct diag *diag);
void assignment_release(struct assignment *assignment);

/* Returns for each buffer whether it is bound to one of `kinds` (a mask of 1u << enum binding_kind) and an op may read
 * elements of it that no earlier op of the list has written; from malloc(). */
bool *assignment_reads_first(const struct ir *ir, uint32_t kinds);

/* The ops of a rank on one stream, in list order. */
struct assignment_stream {
    uint32_t *op; /* (op_count) */
    uint32_t op_count;
};

/* Lists the ops of a rank by stream. list (one row per stream, all-zero before) gets the ops of each stream, *place
 * each op's place on its stream; a SYNC op, which is on no stream, has its place among the host's SYNC ops. list[].op
 * and *place are from malloc(). */
void assignment_list_streams(const struct assignment *assignment, uint32_t rank,
                             struct assignment_stream *list, uint32_t **place);

static inline uint32_t assignment_role_of(const struct assignment *assignment, uint32_t rank)
{
    return assignment->role[rank];
}
/* True if the op does its work on the rank: it has no guard, or its guard passes there. */
static inline bool assignment_works(const struct assignment *assignment, uint32_t rank, uint32_t op)
{
    uint16_t guard = assignment->ir->op.guard[op];
    return guard == IR_NONE16 ||
           assignment->passes[(size_t)rank * assignment->ir->guard_count + guard];
}
static inline uint32_t assignment_first(const struct assignment *assignment, uint32_t rank)
{
    return assignment->ir->role[assignment->role[rank]].op_begin;
}
static inline uint32_t assignment_ops(const struct assignment *assignment, uint32_t rank)
{
    return assignment->ir->role[assignment->role[rank]].op_count;
}
/* Returns the instance of a group that a rank is in; assignment_index() returns the rank's index there. */
static inline uint32_t assignment_instance(const struct assignment *assignment, uint32_t rank,
                                           uint32_t group)
{
    return assignment->instance[(size_t)rank * assignment->ir->group_count + group];
}
static inline uint32_t assignment_index(const struct assignment *assignment, uint32_t rank,
                                        uint32_t group)
{
    return assignment->index[(size_t)rank * assignment->ir->group_count + group];
}
static inline uint32_t assignment_message(const struct assignment *assignment, uint32_t rank,
                                          uint32_t op)
{
    return assignment->message_of[(size_t)rank * assignment->op_stride +
                                  (op - assignment_first(assignment, rank))];
}
/* True for ALL_TO_ALL .. SHIFT, in which all members of a group instance take part. */
bool assignment_is_collective(enum work_kind kind);

/* Fills message[] and message_of[], which assignment_init() does: the n-th send of a channel from one rank to another
 * and the n-th receive there are one message. Fails if a group ends before the other end of one. */
enum status assignment_match_messages(struct assignment *assignment, const char *name,
                                      struct diag *diag);

#endif
