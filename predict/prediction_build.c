#include "predict/prediction_build.h"

#include "schedule/choices/profile.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/step/build.h"

#include <string.h>

bool prediction_is_judged_by_reserved(const struct prediction *p)
{
    return p->has_choices ? !p->choices.profile->is_ideal : prediction_is_recorded(p);
}

/* Returns the memories whose arenas are planned, as a bit mask. */
static unsigned planned_memories_mask(const struct prediction *p)
{
    if (p->question.wants_step_time_only)
        return 0;
    return p->question.skips_offsets && prediction_is_judged_by_reserved(p) ? 1u << MEMORY_PAGEABLE
                                                                            : OFFSETS_ALL_MEMORIES;
}

/* The lengths of short lists, in layers or units; they are tried from the shortest to the longest. A short list is
 * built if the whole list can have LONG_LIST ops or more. It is simulated only if the whole list can have
 * LONG_TO_SIMULATE ops or more: shorter lists are simulated fast as a whole. */
static const uint32_t short_list_lengths[] = {7, 9, 10, 13, 16};
enum { LONG_LIST = 10000, LONG_TO_SIMULATE = 200000 };

/* Builds the first short list, of the lengths from short_list_lengths[first] on, that represents the whole list, and
 * sets p->short_list_length_index to its index. Returns false, without a schedule, if none represents it, if the whole
 * list is short, or if the question asks for the whole list. */
static bool build_short_list(struct prediction *p, size_t first)
{
    if (p->question.builds_whole_list || step_max_ops_of_rank(&p->choices) < LONG_LIST)
        return false;
    for (p->short_list_length_index = first;
         p->short_list_length_index < ARRAY_LEN(short_list_lengths); p->short_list_length_index++)
        if (step_build_short(&p->ir, &p->choices, short_list_lengths[p->short_list_length_index],
                             planned_memories_mask(p)))
            return true;
    return false;
}

enum status prediction_build(struct prediction *p, struct diag *diag)
{
    if (build_short_list(p, p->short_list_length_index))
        return STATUS_OK;
    return step_build_with_planned_memories(&p->ir, &p->choices, planned_memories_mask(p), diag);
}

enum status prediction_build_longer_list(struct prediction *p, bool whole, struct diag *diag)
{
    sim_result_release(&p->sim);
    stages_release(&p->stages);
    ir_release(&p->ir);
    if (!whole && build_short_list(p, p->short_list_length_index + 1))
        return STATUS_OK;
    return step_build_with_planned_memories(&p->ir, &p->choices, planned_memories_mask(p), diag);
}

bool prediction_simulates_built_list(const struct prediction *p)
{
    return p->ir.repeats.copies_per_gap == 0 ||
           (!p->question.is_exact && step_max_ops_of_rank(&p->choices) >= LONG_TO_SIMULATE);
}
