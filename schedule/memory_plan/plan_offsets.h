/* schedule/memory_plan/plan_offsets.h: the offset of each buffer in its arena.
 *
 * Two buffers may share bytes when every op of the free set of the one is ordered before every touch of the
 * other (schedule/analysis/liveness.h). */
#ifndef SCHEDULE_MEMORY_PLAN_PLAN_OFFSETS_H
#define SCHEDULE_MEMORY_PLAN_PLAN_OFFSETS_H

#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

struct first_uses;
struct order;

/* Bytes of each memory, for one role; from offsets_plan(), those of the role with the largest arena. */
struct offsets_memory_figures {
    uint64_t planned_bytes[MEMORY_COUNT];
    /* the most bytes live at once if ops ran one after another in list order; of a short list only the bytes of
     * persistent buffers */
    uint64_t live_bytes[MEMORY_COUNT];
    /* A lower bound of the arena: the most bytes live at once if each buffer keeps its bytes until some later first use
     * is ordered after its free set. The order of ops prevents the reuse of max_live_bytes - live_bytes; the planner
     * wastes planned_bytes - max_live_bytes. */
    uint64_t max_live_bytes[MEMORY_COUNT];
};

/* Plans an offset for every buffer from the free sets, with one arena for each memory and role, and sets
 * ir->planned_bytes. live_ranges_aligned_bytes() gives the sizes. A buffer that is not persistent and that no op uses
 * gets offset UINT64_MAX. Equal irs get equal offsets. figures: NULL, or receives how well the plan succeeded. */
void offsets_plan(struct ir *ir, struct offsets_memory_figures *figures);

/* Which of a role's memories are planned, and how well. */
struct offsets_scope {
    /* bit m: plan the arena of memory m. In other memories buffers get no offset, and the figures are not filled */
    unsigned memory_mask;
    /* plan as well as possible; false: plan quickly, for an arena that is probably not the largest */
    bool is_tight;
};
#define OFFSETS_ALL_MEMORIES (~0u)

/* Plans the offsets of one role's buffers; changes neither those of other roles nor ir->planned_bytes. order,
 * first_uses: those of the role, or both NULL. For a short list (ir->repeats) it plans the arena of the whole list, and
 * returns false if the short list does not represent that list. */
bool offsets_plan_role(struct ir *ir, uint32_t role, const struct order *order,
                       const struct first_uses *first_uses, struct offsets_scope scope,
                       struct offsets_memory_figures *figures);

/* Completes a plan whose roles were all planned quickly. For each memory it plans the role with the largest arena
 * again, carefully, until the role whose arena is largest was planned carefully or wastes at most 1 part in 128. Sets
 * ir->planned_bytes. memories: a bit for each memory that is planned; of: the figures of each role, which it
 * updates. */
void offsets_replan_largest(struct ir *ir, unsigned memories, struct offsets_memory_figures *of);

#endif
