#include "sim/stages.h"

#include "base/arena.h"

#include <stdlib.h>

static double kernel_busy_s(const struct waterfall *w)
{
    double busy_s = 0;
    /* the causes before CAUSE_ALL_TO_ALL are those of kernels, and of an optimizer step on the
     * host */
    for (int cause = 0; cause < CAUSE_ALL_TO_ALL; cause++)
        busy_s += w->cause_s[cause];
    return busy_s;
}

static void sum_over_stages(struct stages *s, const struct sim_result *result)
{
    s->mean_busy_s = s->fill_s = s->drain_s = s->pipeline_imbalance_s = 0;
    s->documents_s = s->offload_s = s->other_s = 0;
    for (uint32_t role = 0; role < s->stage_count; role++) {
        const struct waterfall *w = &s->waterfall[role];
        double share = (double)s->rank_count_by_stage[role] / result->rank_count,
               busy_s = kernel_busy_s(w);
        double known = busy_s + w->cause_s[CAUSE_PIPELINE_FILL] + w->cause_s[CAUSE_PIPELINE_DRAIN] +
                       w->cause_s[CAUSE_PIPELINE_IMBALANCE] + w->cause_s[CAUSE_DOCUMENT_IMBALANCE] +
                       w->cause_s[CAUSE_OFFLOAD];
        s->mean_busy_s += share * busy_s;
        s->fill_s += share * w->cause_s[CAUSE_PIPELINE_FILL];
        s->drain_s += share * w->cause_s[CAUSE_PIPELINE_DRAIN];
        s->pipeline_imbalance_s += share * w->cause_s[CAUSE_PIPELINE_IMBALANCE];
        s->documents_s += share * w->cause_s[CAUSE_DOCUMENT_IMBALANCE];
        s->offload_s += share * w->cause_s[CAUSE_OFFLOAD];
        s->other_s += share * (w->step_s - known);
    }
    double idle = result->step_s - s->mean_busy_s;
    s->bubble_to_busy = s->mean_busy_s > 0 ? idle / s->mean_busy_s : 0;
    s->bubble_to_step = result->step_s > 0 ? idle / result->step_s : 0;
}

void stages_make(struct stages *s, const struct ir *ir, const struct sim_result *result,
                 struct waterfall_peak peak)
{
    *s = (struct stages){.stage_count = ir->role_count};
    s->rank_count_by_stage = heap_zalloc(s->stage_count + 1u, sizeof *s->rank_count_by_stage);
    s->waterfall = heap_zalloc(s->stage_count + 1u, sizeof *s->waterfall);
    for (uint32_t rank = 0; rank < result->rank_count; rank++) {
        uint32_t role = result->classes[result->class_of_rank[rank]].role;
        if (role != IR_NONE && s->rank_count_by_stage[role]++ == 0)
            waterfall_make(&s->waterfall[role], ir, result, peak, rank);
    }
    sum_over_stages(s, result);
}

void stages_attribute_documents(struct stages *s, const struct stages *uniform,
                                const struct sim_result *result)
{
    for (uint32_t role = 0; role < s->stage_count; role++)
        waterfall_attribute_documents(&s->waterfall[role], &uniform->waterfall[role]);
    sum_over_stages(s, result);
}

bool stages_parts_sum_to_step(const struct stages *s)
{
    bool parts_sum_to_step = true;
    for (uint32_t role = 0; role < s->stage_count; role++)
        parts_sum_to_step = parts_sum_to_step && waterfall_adds_up(&s->waterfall[role]);
    return parts_sum_to_step;
}

void stages_release(struct stages *s)
{
    free(s->rank_count_by_stage);
    free(s->waterfall);
    *s = (struct stages){0};
}
