/* exec/assignment.h: what each rank of a schedule does: its role, groups, guards and messages, and the rows and
 * elements that its ops use. All of it is derived from the schedule once, before the run.
 *
 * Roles, guards and indices in groups are looked up by rank. Communication ops that belong together find each other by
 * number: the n-th collective of a group on one rank is that of the other members, and the n-th send from one rank to
 * another on a channel is received by the n-th receive there. */
#ifndef EXEC_ASSIGNMENT_H
#define EXEC_ASSIGNMENT_H

#include "base/diag.h"
#include "exec/bindings.h"
#include "schedule/ir/ir.h"
#include "schedule/ir/needed.h"

#include <stdbool.h>
#include <stdint.h>

enum { ASSIGNMENT_RANKS_MAX = 1024 }; /* each rank needs several threads */

/* A message from one rank to another, and the ops that send and receive it. */
struct assignment_message {
    uint32_t source, destination, channel;
    uint32_t send_op, recv_op; /* IR_NONE: no op sends, or receives, it */
};

/* The elements of one operand that a rank's SQUARE_SUM adds. Each run has the number of ranks that hold its
 * elements. */
struct assignment_square_sum_runs {
    struct copied_run *runs;
    uint32_t run_count;
};

/* The rows of experts that work of one shape has on a rank, if routing is not even (schedule/ir/routing.h). The experts
 * are divided over the `ranks` members of group `ep`: member i has those from i * experts / ranks on. Members send each
 * other the rows, which are copies of tokens, that their experts compute. */
struct routed_rows {
    struct work work_of_rank; /* the work of the shape, with the rank's real number of rows */
    /* [experts] how many rows the expert computes for each rank: that rank's copies without those that the expert
     * drops, plus padding */
    const int64_t *rows_per_rank_by_expert;
    /* the rows that the rank's experts compute for all ranks; for an all-to-all that sends each token once, the tokens
     * that arrive; for a permutation of the rank's own tokens (PERMUTE_OWN), the rows for all experts */
    int64_t row_count;
    uint32_t experts, ranks, first_expert; /* first_expert: the first of the rank's own experts */
    /* for ROUTE and its backward: [tokens * copies of a token] the expert of each slot; slot j * tokens + t is copy j
     * of token t */
    const int32_t *expert_of_slot;
    /* for permutations: source_row[i] is the input row that is copied to row i of the experts, or -1 if row i is
     * padding; source_copy[i] says which of its token's copies row i is */
    const int64_t *source_row, *source_copy;
    /* for an all-to-all that sends each token once: the rank sends to member k the tokens sent_token[i], where i is at
     * least first_sent_token[k] and less than first_sent_token[k + 1] */
    const int64_t *sent_token, *first_sent_token;
};

/* Returns the end of the rows of group g of `groups`, which begin at `first`. Group g has the rows of the rank's g-th
 * expert; if `routed` is NULL, it has its even share of `total` rows. */
int64_t assignment_group_rows_end(const struct routed_rows *routed, int64_t total, int64_t groups,
                                  int64_t g, int64_t first);

/* Returns how many rows the experts of one member of group `ep` compute for each rank. */
int64_t assignment_rows_per_rank_of_member(const struct routed_rows *routed, uint32_t member);

/* The pieces of keys (schedule/ir/visible.h) that an attention op sees on a rank. */
struct assignment_attention_pieces {
    struct attention_piece *pieces;
    uint32_t piece_count;
};

/* The rows that one rank moves in work of one shape (schedule/ir/row_use.h). sent: the rows that it sends, sorted by
 * receiver. received: the rows that it receives, sorted by sender; each also has its index among the rows in order of
 * positions, as attention reads them ("packed order"). held: the packed rows that are the rank's own; empty unless the
 * shape is one of a tile plan. The arrays belong to the assignment. */
struct assignment_exchanged_rows {
    struct needed_rows sent, received;
    struct own_packed_rows held;
    uint32_t peer_count;
};

/* The roles, groups, messages and rows of the ranks of a schedule. Arrays have the sizes in parentheses. */
struct assignment {
    const struct ir *ir;
    uint32_t ranks;
    uint16_t *role_of_rank;         /* (ranks) */
    bool *passes_by_rank_and_guard; /* (ranks, guards) */
    /* (ranks, groups) the instance of the group to which the rank belongs; IR_NONE: the rank is in no instance */
    uint32_t *instance_by_rank_and_group;
    uint32_t *index_in_group_by_rank;  /* (ranks, groups) the rank's index in that instance */
    uint32_t *member_count_by_group;   /* (groups) members of an instance */
    uint32_t *instance_count_by_group; /* (groups) instances of the group */
    /* (ops) for a collective or a BARRIER: how many collectives, or barriers, of its group come before it in the role's
     * list */
    uint32_t *collective_number_by_op;
    uint32_t
        *max_collectives_of_role_by_group;   /* (groups) the most collectives that a role lists */
    uint32_t *max_barriers_of_role_by_group; /* (groups) the most barriers that a role lists */
    /* (ops) for CROSS_ENTROPY_BACKWARD: its first operand is a softmax that a CROSS_ENTROPY has written, and not
     * logits */
    bool *reads_softmax_by_op;
    struct assignment_square_sum_runs
        *square_sum_runs;                  /* (rows, ranks), one row for each SQUARE_SUM op */
    uint32_t *square_sum_runs_index_by_op; /* (ops) row of square_sum_runs, or IR_NONE */
    /* (rows, ranks), one row for each shape with work_pairs_depend_on_rank() */
    struct assignment_attention_pieces *attention_pieces;
    uint32_t *attention_pieces_index_by_shape; /* (shapes) row of attention_pieces, or IR_NONE */
    /* (exchanged_rows_shape_count, ranks), one row for each shape that moves rows between context ranks */
    struct assignment_exchanged_rows *exchanged_rows;
    uint32_t *exchanged_rows_index_by_shape; /* (shapes) row of exchanged_rows, or IR_NONE */
    uint32_t exchanged_rows_shape_count;     /* number of rows of exchanged_rows */
    /* (rows, ranks), one row for each shape with a routing that is not even */
    struct routed_rows *routed_rows;
    uint32_t *routed_rows_index_by_shape; /* (shapes) row of routed_rows, or IR_NONE */
    struct assignment_message *messages;
    uint32_t message_count;
    /* (ranks, max_op_count_of_role) for each SEND and RECV that no guard leaves out, by its index in its role's list:
     * the row of messages[]; NULL if the schedule has no messages */
    uint32_t *message_index_by_rank_and_op;
    uint32_t max_op_count_of_role; /* ops of the largest role */
    struct arena arena;
};

/* Fills *assignment, and checks what a run relies on: operands have the right sizes and dtypes, offsets lie within the
 * arenas, ops wait for ops of their own role, and groups hold the ranks that use them. *assignment must be released in
 * either case. */
enum status assignment_init(struct assignment *assignment, const struct ir *ir, const char *name,
                            struct diag *diag);
void assignment_release(struct assignment *assignment);

/* Returns an array from malloc(), [buffers]: true if the buffer is bound to one of `kinds` (a mask of 1u << enum
 * binding_kind) and an op may read elements of it that no earlier op of the list has written. */
bool *assignment_find_reads_before_writes(const struct ir *ir, uint32_t kinds);

/* The ops of a rank on one stream, in list order. */
struct assignment_stream_ops {
    uint32_t *ops; /* (op_count) */
    uint32_t op_count;
};

/* Lists the ops of a rank by stream. list[streams], all-zero before, receives the ops of each stream; *place receives,
 * for each op of the role, its index in its stream's list. A SYNC op is on no stream: its index is among the host's
 * SYNC ops. list[].ops and *place are from malloc(). */
void assignment_list_ops_by_stream(const struct assignment *assignment, uint32_t rank,
                                   struct assignment_stream_ops *list, uint32_t **place);

static inline uint32_t assignment_role_of(const struct assignment *assignment, uint32_t rank)
{
    return assignment->role_of_rank[rank];
}
/* True if the op does its work on the rank: it has no guard, or its guard passes there. */
static inline bool assignment_op_works_on_rank(const struct assignment *assignment, uint32_t rank,
                                               uint32_t op)
{
    uint16_t guard = assignment->ir->op.guard[op];
    return guard == IR_NONE16 ||
           assignment->passes_by_rank_and_guard[(size_t)rank * assignment->ir->guard_count + guard];
}
static inline uint32_t assignment_first_op(const struct assignment *assignment, uint32_t rank)
{
    return assignment->ir->role[assignment->role_of_rank[rank]].op_begin;
}
static inline uint32_t assignment_op_count(const struct assignment *assignment, uint32_t rank)
{
    return assignment->ir->role[assignment->role_of_rank[rank]].op_count;
}
/* assignment_group_instance() returns the instance of a group that a rank is in, or IR_NONE. assignment_group_index()
 * returns the rank's index in that instance. */
static inline uint32_t assignment_group_instance(const struct assignment *assignment, uint32_t rank,
                                                 uint32_t group)
{
    return assignment
        ->instance_by_rank_and_group[(size_t)rank * assignment->ir->group_count + group];
}
static inline uint32_t assignment_group_index(const struct assignment *assignment, uint32_t rank,
                                              uint32_t group)
{
    return assignment->index_in_group_by_rank[(size_t)rank * assignment->ir->group_count + group];
}
static inline uint32_t assignment_message_index(const struct assignment *assignment, uint32_t rank,
                                                uint32_t op)
{
    return assignment
        ->message_index_by_rank_and_op[(size_t)rank * assignment->max_op_count_of_role +
                                       (op - assignment_first_op(assignment, rank))];
}
/* True for the kinds from ALL_TO_ALL to SHIFT, in which all members of a group's instance take part. */
bool assignment_is_collective(enum work_kind kind);

/* Fills messages[] and message_index_by_rank_and_op[]; only assignment_init() calls it. The n-th send from one rank to
 * another on a channel and the n-th receive there are one message. Fails if a message names a member that its group
 * does not have. */
enum status assignment_match_messages(struct assignment *assignment, const char *name,
                                      struct diag *diag);

#endif
