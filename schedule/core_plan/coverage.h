/* schedule/core_plan/coverage.h: the rule `coverage` of core plans, and bounds with which a plan can be compared.
 *
 * A plan is right if every token has one owner, all ranks own equally many tokens, and every visible pair of a query
 * and a key lies in exactly one tile. A message names a token, or a query and a key, for which this does not hold. */
#ifndef SCHEDULE_CORE_PLAN_COVERAGE_H
#define SCHEDULE_CORE_PLAN_COVERAGE_H

#include "schedule/core_plan/core_plan.h"
#include "schedule/core_plan/row_bytes.h"

/* Checks a plan. Adds a message for the first fault of each sequence, for ten sequences at most. Returns STATUS_NO if
 * there is a fault. name: the plan's name in messages. */
enum status core_plan_check(const struct core_plan *plan, const char *name, struct diag *diag);

/* The work and the messages of one rank in the forward of a sequence. A row counts once, even if several rounds use
 * it. */
struct coverage_rank_load {
    double visible_pairs;
    int64_t own_tokens;    /* tokens that it owns */
    int64_t received_keys; /* rows of keys and values that it receives */
    /* rows of queries that the rank receives; it sends back their results */
    int64_t received_queries;
};
/* Sets load[ranks] to the work and the messages of each rank in the forward of that sequence of the plan, which
 * core_plan_check() has found right. */
void coverage_find_rank_loads(const struct core_plan *plan, size_t sequence,
                              struct coverage_rank_load *load);

/* A lower bound of the rows of keys that ranks receive if each of R ranks owns S / R of the S tokens and computes the
 * queries of its own tokens: the sum over all ranks, and the rows of the rank that receives the most. */
struct received_keys_lower_bound {
    double all_ranks, fullest_rank;
};
/* Returns the bound struct received_keys_lower_bound. pairs: the visible pairs of all ranks together. window: 0: there
 * is none.
 *
 * Derivation: let `own` be S / R. In a document of n tokens, let rank i own a(i) tokens, the last of them at place
 * p(i), counted from 1. The query at that place sees p(i) keys, so the rank receives at least p(i) - a(i). If ranks are
 * sorted by their last tokens, the first i ranks own all tokens up to p(i), and perhaps later ones: p(i) >= a(1) + ...
 * + a(i). So rank i receives at least a(1) + ... + a(i-1), and the last one n - own. The sum over the m ranks of a
 * document is (m-1) a(1) + (m-2) a(2) + ... + a(m-1). It is least if m = ceil(n / own) and only the first rank owns
 * fewer than `own`, namely the remainder r; then it is (m-1) r + own (m-1) (m-2) / 2. Ranks that own neighbouring
 * tokens receive exactly this. With a window, only the pairs give a bound: P pairs of `own` queries need P / own keys,
 * so all ranks together receive at least P / own - S. */
struct received_keys_lower_bound
coverage_bound_of_received_keys(const struct document_list *documents, int64_t window,
                                uint32_t ranks, double pairs);

/* Returns a lower bound of the bytes that the busiest rank receives and sends in a forward, whichever rank computes
 * each tile. A rank that computes P pairs reads q queries and k keys with q k >= P; it owns `own` tokens, so it must
 * get the other queries and keys from other ranks. pairs: the visible pairs of all ranks together. moves: queries may
 * be sent to other ranks, too; false: only keys. */
double coverage_bound_of_busiest_rank_bytes(double pairs, uint32_t ranks, double own,
                                            const struct row_bytes *bytes, bool moves);

#endif
