#include "predict/plan/best.h"

#include "base/interrupt.h"

#include <math.h>
#include <stdlib.h>

void best_release(struct best *best)
{
    space_release(&best->space);
    free(best->row);
    *best = (struct best){0};
}

bool best_is_better(enum plan_goal goal, const struct outcome *a, const struct outcome *b)
{
    if ((a->kind == OUTCOME_SIMULATED) != (b->kind == OUTCOME_SIMULATED))
        return a->kind == OUTCOME_SIMULATED;
    if (a->kind != OUTCOME_SIMULATED)
        return false;
    if (goal == GOAL_LONGEST && a->sequence_tokens != b->sequence_tokens)
        return a->sequence_tokens > b->sequence_tokens;
    return a->spread.step_count != b->spread.step_count
               ? a->spread.step_count > b->spread.step_count
               : a->rate_bound > b->rate_bound;
}

const char *best_end_reason(const struct best *best)
{
    return interrupt_caught_signal_number() != 0 ? interrupt_describe_signal()
           : best->hit_time_limit                ? "--within"
                                                 : NULL;
}

double best_share_unsimulated_may_gain(const struct best *best)
{
    double most = best->row[0].rate_bound;
    for (size_t i = 0; i < best->row_count; i++)
        if (best->row[i].kind == OUTCOME_BOUND_NOT_BETTER ||
            best->row[i].kind == OUTCOME_NOT_SEARCHED)
            most = fmax(most, best->row[i].rate_bound);
    return most / best->row[0].rate_bound - 1;
}

void best_sort_rows(struct best *best)
{
    for (size_t i = 1; i < best->row_count; i++)
        for (size_t k = i; k > 0 && best_is_better(best->goal, &best->row[k], &best->row[k - 1]);
             k--) {
            struct outcome swap = best->row[k];
            best->row[k] = best->row[k - 1];
            best->row[k - 1] = swap;
        }
}
