#include "schedule/verify/verify.h"

#include "base/c_locale.h"
#include "base/text.h"
#include "schedule/verify/rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static const struct verifier_rule {
    const char *name;
    void (*check)(struct verifier *v);
    const char *guarantee;
} rules[] = {
    {"wait-on-nothing", check_waits, "every wait names an earlier op of the same role"},
    {"deadlock", check_deadlock, "whatever ops cost, every op of every rank ends"},
    {"race", check_races,
     "of two ops that touch an element, one of them writing, one has ended before the other "
     "starts"},
    {"read-before-write", check_reads_follow_writes,
     "on every rank, every element has been written before it is read"},
    {"pageable-copy", check_pageable_copies,
     "what a copy to the device reads in pageable memory has been written when the host issues it"},
    {"use-after-free", check_use_after_free,
     "every touch of a buffer has ended when its free set has"},
    {"double-free", check_double_free, "a buffer is freed once, and only when it may be"},
    {"leak", check_leaks, "every buffer is used, and freed unless persistent"},
    {"arena-overlap", check_overlap, "buffers that can be live together share no bytes"},
    {"over-capacity", check_capacity, "the planned arenas fit their memories"},
    {"guard-on-collective", check_guards, "all members of a group take part in what it does"},
    {"collective-mismatch", check_collectives,
     "all members of a group issue the same collectives, shifts and barriers in the same order"},
    {"unmatched-message", check_messages,
     "every send has its receive, in order, of the same size and type"},
    {"operand-size", check_operands, "operands have the sizes that their op computes on"},
    {"operand-type", check_types,
     "operands have the types that their op computes in, and ops compute in the schedule's dtype"},
    {"placement", check_placement,
     "ops run on streams, and touch memories and buffers, that their kind can"},
    {"binding", check_bindings, "bound buffers hold what their bundles and groups say"},
    {"documents", check_documents,
     "packed sequences consist of their documents, and attention over them has rows that there "
     "are"},
    {"coverage", check_coverage,
     "the tiles of a plan hold every visible pair once, and every layer computes all of them"},
    {"routing", check_routing,
     "work on the rows of experts names shares, and has room for the fullest rank"},
};

_Static_assert(ARRAY_LEN(rules) == VERIFY_RULE_COUNT, "a report has a row per rule");

const char *verify_rule_name(size_t rule)
{
    assert(rule < VERIFY_RULE_COUNT);
    return rules[rule].name;
}

const char *verify_rule_guarantee(size_t rule)
{
    assert(rule < VERIFY_RULE_COUNT);
    return rules[rule].guarantee;
}

enum status verify(const struct ir *ir, const struct verify_arena_limits *limits, const char *name,
                   struct verify_report *report, struct diag *diag)
{
    struct verify_report own;
    if (!report)
        report = &own;
    *report = (struct verify_report){0};
    struct verifier v = {
        .ir = ir, .limits = limits, .at = {.name = name}, .diag = diag, .role_of_order = IR_NONE};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < VERIFY_RULE_COUNT; i++) {
        v.result = &report->result[i];
        v.rule = rules[i].name;
        rules[i].check(&v);
        if (v.result->failure_count > 0)
            status = STATUS_NO;
        if (v.result->failure_count > VERIFY_MESSAGES_SHOWN_MAX)
            diag_note(diag, v.at, "%s: there are %" PRIu64 " more faults of this rule", v.rule,
                      v.result->failure_count - VERIFY_MESSAGES_SHOWN_MAX);
    }
    free(v.element_slots_of_buffers.first_slot);
    free(v.element_slots_of_buffers.first_element);
    free(v.element_slots_of_buffers.range_first_slot);
    free(v.element_slots_of_buffers.range_end_slot);
    rank_sets_release(&v.ranks);
    exchange_release(&v.exchange);
    order_release(&v.order);
    arena_release(&v.arena);
    return status;
}
