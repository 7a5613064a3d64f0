/* schedule/verify/rules.h: what the rules of the verifier share. Only files of this folder include it.
 *
 * A rule is a function that inspects v->ir and calls verify_fail() for each fault that it finds, with the fault's
 * text only; verify_fail() adds names and counts. Data that is costly to make and that several rules use is made at its
 * first use and kept in struct verifier. */
#ifndef SCHEDULE_VERIFY_RULES_H
#define SCHEDULE_VERIFY_RULES_H

#include "base/arena.h"
#include "models/work_operands.h"
#include "schedule/analysis/happens_before.h"
#include "schedule/ir/id_map.h"
#include "schedule/verify/exchange.h"

#include <stdbool.h>

/* Buffers are divided into slots at the ends of all ranges that ops use, so that every op uses a slot as a whole or not
 * at all. The slots of a buffer are consecutive; a buffer that ops use only as a whole has one slot. */
struct buffers_cut_at_operand_ends {
    uint32_t *first_slot;                        /* [buffers + 1] the first slot of each */
    uint64_t *first_element;                     /* [slots] the first element of each */
    uint32_t *range_first_slot, *range_end_slot; /* [rows of ir.range] the slots of each range */
    uint32_t slot_count;
};

/* Sets of ranks: each has a number, and is a bit set of words_per_set words. */
struct rank_sets {
    uint32_t words_per_set;
    uint16_t *role;           /* [ranks]; IR_NONE16: the rank has no role */
    uint64_t *ranks_of_role;  /* (roles, words) */
    uint64_t *ranks_of_guard; /* (guards, words) */
    /* ---- only ranks.c uses the members below ---- */
    uint64_t *bits; /* (set_count, words) the sets, by number */
    uint32_t set_count;
    size_t capacity;
    uint64_t *scratch_set_words; /* (words) room for a set that may be new */
    struct id_map set_by_bits;
};

struct verify_arena_limits;
struct verify_result;

struct verifier {
    const struct ir *ir;
    const struct verify_arena_limits *limits;
    struct loc at;
    struct diag *diag;
    struct verify_result *result; /* the result of the rule that runs */
    const char *rule;             /* the name of that rule */
    struct arena arena;           /* memory for texts and small tables */
    struct order order;
    uint32_t role_of_order; /* the role whose clocks `order` holds; IR_NONE: none */
    struct buffers_cut_at_operand_ends element_slots_of_buffers;
    struct rank_sets ranks;
    struct exchange exchange;
    /* some op waits for an op that does not come before it in its role; known after check_waits() has run */
    bool has_forward_waits;
};

/* Reports one fault. The text has no "rule: " and no newline. */
void verify_fail(struct verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Records what the rule has looked at, for the report ("41216 ops of 4 roles"). */
void verify_set_what_was_checked_text(struct verifier *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const struct order *verifier_order_of_role(struct verifier *v, uint32_t role);
const struct buffers_cut_at_operand_ends *verifier_element_slots(struct verifier *v);
const struct rank_sets *verifier_rank_sets(struct verifier *v);

/* True if an earlier operand of the op is of the same buffer as operand k. */
static inline bool buffer_is_touched_by_earlier_operand(const struct ir *ir, uint32_t op,
                                                        uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        if (ir_touched_buffer(ir, op, i) == ir_touched_buffer(ir, op, k))
            return true;
    return false;
}

/* Finds the buffer of an operand (an entry of ir.operand), and its slots *from .. *to - 1 that the operand covers. */
void find_element_slots_of_operand(const struct buffers_cut_at_operand_ends *slots,
                                   const struct ir *ir, uint32_t operand, uint32_t *buffer,
                                   uint32_t *from, uint32_t *to);

/* Sets of ranks are named by numbers. 0 is the empty set, and equal sets have equal numbers. ranks_running_with_guard()
 * returns the set of a role's ranks that run ops with a guard (IR_NONE16: all of the role). The next three return the
 * union, difference and intersection of two sets. */
uint32_t ranks_running_with_guard(struct verifier *v, uint32_t role, uint16_t guard);
uint32_t ranks_union(struct verifier *v, uint32_t a, uint32_t b);
uint32_t ranks_difference(struct verifier *v, uint32_t a, uint32_t b);
uint32_t ranks_intersection(struct verifier *v, uint32_t a, uint32_t b);
/* Returns the set of the ranks that have that index in their instance of the group. */
uint32_t ranks_with_group_index(struct verifier *v, uint32_t group, uint32_t index);
/* Returns the lowest rank of a set; IR_NONE: the set is empty. */
uint32_t ranks_lowest(struct verifier *v, uint32_t set);
void rank_sets_release(struct rank_sets *sets);

/* The operands that an op of a shape must have. If the shape has a fault, they are those for a group of one member. */
struct operand_needs {
    const char *fault; /* a fault of the shape itself; NULL: none */
    struct work_operand read[WORK_OPERANDS_MAX], write[WORK_OPERANDS_MAX];
    uint32_t read_count, read_count_least, write_count, write_count_least;
};

/* Returns the needs of all shapes, in an array on the heap. */
struct operand_needs *find_operand_needs_of_all_shapes(struct verifier *v);

/* These return texts for messages, in v->arena. If the rule's next messages will not be shown, they return "". */
const char *op_text(struct verifier *v, uint32_t op);         /* "op 7 (matmul on compute)" */
const char *buffer_text(struct verifier *v, uint32_t buffer); /* "kv1" */
const char *view_text(struct verifier *v, struct view view);  /* "kv1[0:64]", "kv1" when whole */
const char *rank_text(struct verifier *v, uint32_t rank);     /* "rank 3 (cp=1 hp=1)" */

/* True if members of a group match their ops of this kind by order of issue: collectives, shifts, barriers. */
bool is_collective(enum work_kind kind);
static inline bool is_message(enum work_kind kind)
{
    return kind == WORK_SEND || kind == WORK_RECV;
}

/* the rules in order.c */
void check_waits(struct verifier *v);
void check_deadlock(struct verifier *v);
/* the rules in memory.c */
void check_races(struct verifier *v);
void check_reads_follow_writes(struct verifier *v);
void check_pageable_copies(struct verifier *v);
void check_use_after_free(struct verifier *v);
void check_double_free(struct verifier *v);
void check_leaks(struct verifier *v);
/* the rules in arena.c */
void check_overlap(struct verifier *v);
void check_capacity(struct verifier *v);
/* the rules in comm.c */
void check_collectives(struct verifier *v);
void check_messages(struct verifier *v);
void check_guards(struct verifier *v);
/* the rule in types.c */
void check_types(struct verifier *v);
/* the rule in documents.c */
void check_documents(struct verifier *v);
/* the rule in coverage.c */
void check_coverage(struct verifier *v);
/* the rule in routing.c */
void check_routing(struct verifier *v);
/* the rule in operands.c */
void check_operands(struct verifier *v);
/* the rules in placement.c */
void check_placement(struct verifier *v);
void check_bindings(struct verifier *v);

#endif
