#include "sim/stages.h"

#include "base/arena.h"

#include <stdlib.h>

static double busy_of(const struct waterfall *w)
{
    double busy = 0;
    /* the causes before CAUSE_ALL_TO_ALL are those of kernels */
    for (int cause = 0; cause < CAUSE_ALL_TO_ALL; cause++)
        busy += w->cause_s[cause];
    return busy;
}

static void add_up(struct stages *s, const struct sim_result *result)
{
    s->busy_s = s->fill_s = s->drain_s = s->imbalance_s = 0;
    s->documents_s = s->offload_s = s->other_s = 0;
    for (uint32_t role = 0; role < s->count; role++) {
        const struct waterfall *w = &s->waterfall[role];
        double share = (double)s->ranks[role] / result->rank_count, busy = busy_of(w);
        double known = busy + w->cause_s[CAUSE_FILL] + w->cause_s[CAUSE_DRAIN] +
                       w->cause_s[CAUSE_PIPELINE] + w->cause_s[CAUSE_DOCUMENTS] +
                       w->cause_s[CAUSE_OFFLOAD];
        s->busy_s += share * busy;
        s->fill_s += share * w->cause_s[CAUSE_FILL];
        s->drain_s += share * w->cause_s[CAUSE_DRAIN];
        s->imbalance_s += share * w->cause_s[CAUSE_PIPELINE];
        s->documents_s += share * w->cause_s[CAUSE_DOCUMENTS];
        s->offload_s += share * w->cause_s[CAUSE_OFFLOAD];
        s->other_s += share * (w->step_s - known);
    }
    double idle = result->step_s - s->busy_s;
    s->to_useful = s->busy_s > 0 ? idle / s->busy_s : 0;
    s->to_step = result->step_s > 0 ? idle / result->step_s : 0;
}

void stages_make(struct stages *s, const struct ir *ir, const struct sim_result *result,
                 struct waterfall_peak peak)
{
    *s = (struct stages){.count = ir->role_count};
    s->ranks = heap_zalloc(s->count + 1u, sizeof *s->ranks);
    s->waterfall = heap_zalloc(s->count + 1u, sizeof *s->waterfall);
    for (uint32_t rank = 0; rank < result->rank_count; rank++) {
        uint32_t role = result->classes[result->class_of_rank[rank]].role;
        if (role != IR_NONE && s->ranks[role]++ == 0)
            waterfall_make(&s->waterfall[role], ir, result, peak, rank);
    }
    add_up(s, result);
}

void stages_take_documents(struct stages *s, const struct stages *uniform,
                           const struct sim_result *result)
{
    for (uint32_t role = 0; role < s->count; role++)
        waterfall_take_documents(&s->waterfall[role], &uniform->waterfall[role]);
    add_up(s, result);
}

bool stages_add_up(const struct stages *s)
{
    bool add_up = true;
    for (uint32_t role = 0; role < s->count; role++)
        add_up = add_up && waterfall_adds_up(&s->waterfall[role]);
    return add_up;
}

void stages_release(struct stages *s)
{
    free(s->ranks);
    free(s->waterfall);
    *s = (struct stages){0};
}
