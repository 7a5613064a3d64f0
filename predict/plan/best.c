#include "predict/plan/best.h"

#include "base/interrupt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void best_release(struct best *best)
{
    space_release(&best->space);
    free(best->row);
    *best = (struct best){0};
}

void outcome_take_times(struct outcome *o, const struct prediction *p)
{
    const struct stages *stages = &p->stages;
    o->kind = OUTCOME_TIMED;
    o->most = p->tokens_per_s_gpu;
    o->step_s = p->sim.step_s;
    o->intervals = intervals_of(p);
    o->sequences = (double)prediction_sequences(p);
    o->explained = o->packed_set == NULL || !p->question.skip_causes;
    memcpy(o->cause_s, p->waterfall.cause_s, sizeof o->cause_s);
    for (int cause = 0; cause < CAUSE_COUNT && stages->count > 1; cause++) {
        o->cause_s[cause] = 0;
        for (uint32_t i = 0; i < stages->count; i++)
            o->cause_s[cause] +=
                stages->of[i].cause_s[cause] * stages->ranks[i] / p->sim.rank_count;
    }
    if (o->packed_set != NULL)
        o->spread = step_spread_of(&o->step_s, 1);
    o->bubble = stages->count > 1 ? stages->to_step : 0;
    o->exposed = o->step_s > 0 ? o->cause_s[CAUSE_OFFLOAD] / o->step_s : 0;
}

bool best_is_better(enum goal goal, const struct outcome *a, const struct outcome *b)
{
    if ((a->kind == OUTCOME_TIMED) != (b->kind == OUTCOME_TIMED))
        return a->kind == OUTCOME_TIMED;
    if (a->kind != OUTCOME_TIMED)
        return false;
    if (goal == GOAL_LONGEST && a->tokens != b->tokens)
        return a->tokens > b->tokens;
    return a->spread.steps != b->spread.steps ? a->spread.steps > b->spread.steps
                                              : a->most > b->most;
}

const char *best_ended_by(const struct best *best)
{
    return interrupted() != 0 ? interrupt_name() : best->late ? "--within" : NULL;
}

double best_gap(const struct best *best)
{
    double most = best->row[0].most;
    for (size_t i = 0; i < best->count; i++)
        if (best->row[i].kind == OUTCOME_SLOWER || best->row[i].kind == OUTCOME_LEFT)
            most = fmax(most, best->row[i].most);
    return most / best->row[0].most - 1;
}

void best_rank(struct best *best)
{
    for (size_t i = 1; i < best->count; i++)
        for (size_t k = i; k > 0 && best_is_better(best->goal, &best->row[k], &best->row[k - 1]);
             k--) {
            struct outcome swap = best->row[k];
            best->row[k] = best->row[k - 1];
            best->row[k - 1] = swap;
        }
}
