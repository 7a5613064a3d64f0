/* schedule/core_plan/coverage.h: the rule `coverage` of core plans, and how far a plan is from what is possible.
 *
 * A plan is right if every token has one owner, all ranks own equally many tokens, and every visible pair of a query and
 * a key lies in exactly one tile. Whatever is wrong is proved by a token, or by a query and a key. */
#ifndef SCHEDULE_CORE_PLAN_COVERAGE_H
#define SCHEDULE_CORE_PLAN_COVERAGE_H

#include "schedule/core_plan/core_plan.h"

/* Adds a message for the first fault of each sequence. Returns STATUS_NO if there is one. */
enum status core_plan_check(const struct core_plan *plan, const char *name, struct diag *diag);

/* One rank's part of a sequence. Rows count once, in however many rounds they are used. */
struct coverage_load {
    double pairs;
    int64_t own;
    int64_t keys;    /* rows of keys and values that it receives */
    int64_t queries; /* rows of queries that it receives, and whose results it sends back */
};
/* Fills load[ranks] for a sequence of a plan that core_plan_check() has found right. */
void coverage_loads(const struct core_plan *plan, size_t sequence, struct coverage_load *load);

/* Bytes of a row that travels in one direction: of a key with its value; of a query to the rank that computes it; of its
 * result back. */
struct coverage_bytes {
    double key, query, result;
};
/* Returns bytes that some rank must at least receive and send in a forward, whoever computes which tile: P pairs need q
 * queries and k keys with q k >= P, of which it owns `own` each. pairs: of all ranks. moves: queries may travel. */
double coverage_least_bytes(double pairs, uint32_t ranks, double own,
                            const struct coverage_bytes *bytes, bool moves);

#endif
