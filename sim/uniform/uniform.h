/* sim/uniform/uniform.h: long rings, in which every rank is taken to run the same work.
 *
 * In each step of a causal ring a rank runs one of two variants of the same work, and guards on its index in the ring
 * choose which (docs/strategies/rings.md). No two ranks make the same choice in every step, so ranks of a ring
 * cannot be folded, and the time of its simulation grows with the square of its ranks. If guards distinguish more
 * than `above` ranks, their groups are made "even" instead: every rank runs the variants that the last rank of its
 * group runs. The last rank of a zigzag ring always runs the variant with all queries, which is the longer one and
 * decides the time of each step.
 *
 * Without packed documents, a group is made even only if its guards come in pairs (below N, from N on), guard only
 * computation, and the flops of both sides differ by at most EVEN_FLOPS_TOLERANCE. Other groups stay as they are: for
 * example, a contiguous ring, whose last rank has more work, or a group whose guards choose which rank sends. Only
 * times are made even: sim_flops() counts what ranks really execute, and buffers and offsets are the schedule's.
 *
 * With packed documents every context rank has a time of its own. If there are more than `above`
 * context ranks, and visible_why_schedule_unfit() has no objection, all ranks are taken as the fullest
 * (visible_find_fullest_place()): they run the variants that it runs, and the caller gives sim_costs
 * without times by place, those of the fullest rank instead. The pairs of the ranks may then
 * differ by any factor, which the caller reports.
 *
 * The folder sim/uniform/ simulates long rings as if every rank did the work of its group's last or fullest rank, so
 * that ranks fold. */
#ifndef SIM_UNIFORM_UNIFORM_H
#define SIM_UNIFORM_UNIFORM_H

#include "schedule/ir/ir.h"
#include "schedule/ir/mesh.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    EVEN_ABOVE_RANKS = 64, /* ranks: where guards distinguish more, groups are even */
    /* the least `above` that a user may give: EVEN_TIME_ERROR_MAX was measured on rings of 32 ranks and more */
    EVEN_ABOVE_RANKS_MIN = 31,
    EVEN_ABOVE_RANKS_NEVER = MESH_RANKS_MAX, /* ranks: no schedule has more */
};

/* The largest relative difference of flops between two variants that members of an even group run. In a zigzag ring
 * they differ by their merges. */
#define EVEN_FLOPS_TOLERANCE 0.1
/* The largest relative difference between the time of an even step and that of the exact one, in either direction, over
 * the cases of tests/cli/predict/even_nightly.cmd. */
#define EVEN_TIME_ERROR_MAX 0.02
/* The share by which the visible pairs of the fullest context rank may exceed the mean before a prediction points to
 * --exact. */
#define EVEN_PAIRS_TOLERANCE 0.1

/* True if all context ranks are taken as the fullest: the schedule has attention over packed documents on more than
 * `above` context ranks (0: EVEN_ABOVE_RANKS), and visible_why_schedule_unfit() has no objection. */
bool uniform_takes_ranks_as_fullest(const struct ir *ir, uint32_t above);

/* Returns an array [ir->guard_count + 1], which the caller frees. For each guard of an even group,
 * the element is 1 + the index of that member of the group whose variants all members run; for
 * other guards it is 0. The last element is 1 if uniform_takes_ranks_as_fullest(). Otherwise groups become
 * even only if their guards together distinguish more than `above` ranks (0: EVEN_ABOVE_RANKS) and the
 * schedule has no packed documents. */
uint32_t *uniform_mark_guards(const struct ir *ir, uint32_t above);

/* Returns how many ranks the guards of even groups distinguish, or the number of context ranks that are taken as the
 * fullest; 0: there is neither. */
uint32_t uniform_rank_count(const struct ir *ir, const uint32_t *uniform_rank_plus_1_by_guard);

/* Returns what guard_passes() returns for guard g. In an even group every rank gets the answer of one and the same
 * member. */
bool uniform_does_guard_pass(const struct ir *ir, const uint32_t *uniform_rank_plus_1_by_guard,
                             uint32_t g, uint32_t rank);

#endif
